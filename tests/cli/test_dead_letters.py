"""``redrive dlq``: what died, why, by cause, and back."""

from __future__ import annotations

from typing import Any

import pytest

from tests.cli.program import Program


def _die(client: Any, queue: str, *messages: str) -> list[str]:
    """Make a dead letter of each error message; their ids."""
    for number, _ in enumerate(messages):
        client.call("queue.publish", {"queue": queue, "payload": number, "job_key": f"{queue}:{number}"})
    ids = []
    for found, message in zip(
        client.call("queue.consume", {"queue": queue, "max_messages": len(messages), "view": "messages"})[
            "messages"
        ],
        messages,
        strict=True,
    ):
        error = {"type": "Mismatch", "message": message, "stack": "line 1\nline 2"}
        client.dead_letter(
            queue, found["message_id"], found["receipt_handle"], reason="rejected", error=error
        )
        ids.append(found["message_id"])
    return ids


def test_the_morning_after(redrive: Program, client: Any) -> None:
    """List, groups, show, redrive one by id with a reason; it is ready again under the same id."""
    first, second = _die(client, "night", "no such payment", "wrong currency")
    items = redrive("dlq", "list", "night", "--json").json["items"]
    assert [(item["message_id"], item["error"]["message"]) for item in items] == [
        (first, "rejected: no such payment"),
        (second, "rejected: wrong currency"),
    ]
    assert "Mismatch: rejected: no such payment" in redrive("dlq", "list", "night").out
    groups = redrive("dlq", "groups", "night", "--json").json["items"]
    assert sorted(group["count"] for group in groups) == [1, 1]
    filtered = redrive("dlq", "list", "night", "--fingerprint", items[0]["fingerprint"], "--json").json[
        "items"
    ]
    assert [item["message_id"] for item in filtered] == [first]
    shown = redrive("dlq", "show", first)
    assert (shown.code, "no such payment" in shown.out, "line 2" in shown.out) == (0, True, True)
    assert (
        redrive("dlq", "show", first, "--json").json["lineage"][0]["fingerprint"] == items[0]["fingerprint"]
    )
    done = redrive("dlq", "redrive", "night", "--id", first, "--reason", "payment 7 was missing")
    assert (done.code, done.out) == (0, "1 redriven to night\n")
    again = redrive("dlq", "show", first)
    assert (again.code, "is ready, no dead letter" in again.err) == (1, True)
    assert redrive("message", "show", first, "--json").json["state"] == "ready"
    reasons = [
        row["reason"] for row in redrive("audit", "list", "--action", "dlq.redrive", "--json").json["items"]
    ]
    assert "payment 7 was missing" in reasons


def test_what_to_redrive_must_be_named(redrive: Program, client: Any) -> None:
    """Nothing named is exit code 2 and nothing is sent; a filter that matches nothing is exit code 1."""
    _die(client, "named", "a", "b")
    assert redrive.inside("dlq", "redrive", "named").code == 2
    assert len(redrive.inside("dlq", "list", "named", "--json").json["items"]) == 2
    none = redrive.inside("dlq", "redrive", "named", "--error-type", "Other", "--json")
    assert (none.code, none.json["redriven"]) == (1, 0)
    one = redrive.inside("dlq", "redrive", "named", "--all", "--max", "1", "--json")
    assert (one.code, one.json["redriven"]) == (0, 1)
    assert (
        redrive.inside("dlq", "redrive", "named", "--error-type", "Mismatch", "--json").json["redriven"] == 1
    )


def test_what_is_skipped_is_listed_with_why(redrive: Program, client: Any) -> None:
    """As a table for people and in the answer of --json; exit code 1 when nothing went."""
    client.call("queue.create", {"name": "mixed"})
    first, second = _die(client, "mixed", "a", "b")
    client.call("queue.consume", {"queue": "mixed.dlq", "max_messages": 1})
    some = redrive("dlq", "redrive", "mixed", "--all")
    assert (some.code, some.out.splitlines()[0]) == (0, "1 redriven to mixed, 1 skipped")
    assert some.out.splitlines()[1].split() == ["message", "id", "reason", "detail"]
    assert some.out.splitlines()[2].split()[:2] == [first, "in_use"]
    assert second not in some.out
    none = redrive("dlq", "redrive", "mixed", "--id", first, "--json")
    assert (none.code, none.json["redriven"], none.json["skipped_count"]) == (1, 0, 1)
    assert (none.json["skipped"][0]["message_id"], none.json["skipped"][0]["reason"]) == (first, "in_use")


def test_more_are_skipped_than_an_answer_names(redrive: Program, client: Any) -> None:
    """Their number is told, so that nobody takes the table for all of them."""
    client.call("queue.create", {"name": "closed", "redrive_policy": "forbidden"})
    _die(client, "closed", *["a"] * 103)
    done = redrive("dlq", "redrive", "closed", "--all")
    assert (done.code, done.out.splitlines()[0]) == (1, "0 redriven to closed, 103 skipped")
    assert (done.out.count("redrive_policy of closed is forbidden"), done.err) == (
        100,
        "3 more were skipped\n",
    )


def test_more_than_one_call_takes(redrive: Program, client: Any) -> None:
    """--max above a call's limit goes over several calls, and ends when nothing is left."""
    client.call("queue.create", {"name": "flood", "max_retries": 0})
    for start in range(0, 1_500, 500):
        messages = [{"payload": n} for n in range(start, start + 500)]
        client.call("queue.publish_batch", {"queue": "flood", "messages": messages})
    for _ in range(2):
        request = {"queue": "flood", "max_messages": 750, "view": "messages"}
        for message in client.call("queue.consume", request)["messages"]:
            client.nack("flood", message["message_id"], message["receipt_handle"], permanent=True)
    done = redrive("dlq", "redrive", "flood", "--all", "--max", "100000", "--json")
    assert (done.code, done.json["redriven"]) == (0, 1_500)
    # one plan: a second call would find again what the first one's plan has not sent yet
    [plan] = client.call("redrive.plan.list", {"queue": "flood"})["items"]
    assert (plan["plan_id"], plan["members"]) == (done.json["plan_id"], 1_500)
    client.call("redrive.plan.abort", {"plan_id": plan["plan_id"]})


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["list", "nowhere"], 1, "QUEUE_NOT_FOUND"),
        (["list", "night", "--since", "yesterday"], 2, "since must be an RFC 3339 time, got 'yesterday'"),
        (["list", "night", "--reason", "bored"], 2, "reason must be one of"),
        (["show", "nope"], 1, "MESSAGE_NOT_FOUND"),
        (["redrive", "night", "--all", "--max", "0"], 2, "--max"),
    ],
)
def test_wrong_words(redrive: Program, words: list[str], code: int, said: str) -> None:
    """The exit code and the reason."""
    redrive.inside("queue", "create", "night")
    done = redrive.inside("dlq", *words)
    assert done.code == code, done.err
    assert said in done.err


def test_a_message_can_be_cancelled(redrive: Program, client: Any) -> None:
    """At once when it waits; it is gone then."""
    message_id = client.call("queue.publish", {"queue": "cancel", "payload": 1})["message_id"]
    assert (
        redrive("message", "list", "cancel", "--state", "ready", "--json").json["items"][0]["message_id"]
        == message_id
    )
    assert redrive("message", "cancel", "cancel", message_id).out == "cancelled\n"
    gone = redrive("message", "show", message_id)
    assert (gone.code, "gone" in gone.out, "removed    cancelled" in gone.out) == (0, True, True)
    assert redrive("message", "show", "nobody").code == 1
