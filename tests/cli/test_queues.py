"""``redrive queue``: the life of a queue, and what is asked before something is destroyed."""

from __future__ import annotations

from typing import Any

import pytest

from tests.cli.program import Program


def test_a_queues_life(redrive: Program) -> None:
    """Create, confirm, show, change, pause, resume, list, count, delete."""
    made = redrive(
        "queue", "create", "life", "--max-retries", "3", "--no-jitter", "--redact", "card", "--json"
    )
    assert (made.code, made.json["max_retries"], made.json["redact"]) == (0, 3, ["card"])
    assert made.json["retry_policy"]["jitter"] is False
    assert redrive("queue", "create", "life", "--max-retries", "3").code == 0
    other = redrive("queue", "create", "life", "--max-retries", "4")
    assert (other.code, "QUEUE_EXISTS" in other.err) == (1, True)
    assert redrive("queue", "update", "life", "--max-retries", "0", "--json").json["max_retries"] == 0
    shown = redrive("queue", "show", "life")
    assert "max retries" in shown.out
    assert redrive("queue", "pause", "life", "--reason", "outage").out == "life is paused\n"
    assert redrive("queue", "stats", "life", "--json").json["paused"] is True
    assert redrive("queue", "resume", "life").code == 0
    listed = redrive("queue", "list", "--json").json
    assert listed["next_cursor"] is None
    assert "life" in [item["name"] for item in listed["items"]]
    counted = redrive("queue", "stats", "--json").json["items"]
    assert "life" in [item["queue"] for item in counted]
    assert redrive("queue", "delete", "life", "--yes", "--json").json["deleted"] is True
    gone = redrive("queue", "show", "life")
    assert (gone.code, "QUEUE_NOT_FOUND" in gone.err) == (1, True)
    reasons = [row["reason"] for row in redrive("audit", "list", "--queue", "life", "--json").json["items"]]
    assert "outage" in reasons


def test_a_list_goes_over_pages_and_says_when_there_is_more(redrive: Program) -> None:
    """The limit is a limit of items, 0 is all of them; a person is told of the rest."""
    for number in range(3):
        redrive.inside("queue", "create", f"page-{number}")
    first = redrive.inside("queue", "list", "--limit", "2", "--json").json
    assert (len(first["items"]), bool(first["next_cursor"])) == (2, True)
    assert len(redrive.inside("queue", "list", "--limit", "0", "--json").json["items"]) >= 3
    assert "--limit 0 shows all" in redrive.inside("queue", "list", "--limit", "2").err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["create", "bad/name"], "name must be a name of 1 to 80 letters"),
        (["create", "q", "--max-retries", "5000"], "max_retries must be at most 1000, got 5000"),
        (["create", "q", "--type", "lifo"], "type must be"),
        (
            ["create", "q", "--visibility-timeout", "0"],
            "visibility_timeout_default must be at least 1, got 0",
        ),
        (["create", "q", "--max-retries", "few"], "--max-retries"),
        (["create"], "Missing argument"),
    ],
)
def test_wrong_values_are_named_with_field_limit_and_value(
    redrive: Program, words: list[str], said: str
) -> None:
    """Exit code 2, the words of the contract, no traceback."""
    done = redrive.inside("queue", *words)
    assert done.code == 2, done.err
    assert said in done.err
    assert "Traceback" not in done.err


@pytest.mark.parametrize("verb", ["purge", "delete"])
def test_a_script_must_say_yes(redrive: Program, client: Any, verb: str) -> None:
    """Without a terminal and without --yes nothing is sent: exit code 2, and the message is still there."""
    client.call("queue.publish", {"queue": f"asked-{verb}", "payload": 1})
    done = redrive("queue", verb, f"asked-{verb}")
    assert (done.code, "--yes" in done.err) == (2, True)
    assert len(client.call("queue.messages", {"queue": f"asked-{verb}"})["items"]) == 1


@pytest.mark.parametrize("verb", ["purge", "delete"])
def test_a_person_is_asked(redrive: Program, client: Any, verb: str) -> None:
    """What will be lost is counted; anything but yes is no, exit code 1."""
    queue = f"person-{verb}"
    client.call("queue.publish", {"queue": queue, "payload": 1})
    refused = redrive.at_terminal(["queue", verb, queue], "")
    assert (refused.code, "1 message" in refused.out, "nothing was done" in refused.out) == (1, True, True)
    assert len(client.call("queue.messages", {"queue": queue})["items"]) == 1
    assert redrive.at_terminal(["queue", verb, queue], "y").code == 0
    if verb == "purge":
        assert client.call("queue.messages", {"queue": queue})["items"] == []
    else:
        assert redrive("queue", "show", queue).code == 1


def test_purge_says_how_many(redrive: Program, client: Any) -> None:
    """With --yes the token is fetched and used."""
    client.call("queue.publish_batch", {"queue": "full", "messages": [{"payload": n} for n in range(3)]})
    assert redrive("queue", "purge", "full", "--yes", "--reason", "test data", "--json").json == {"purged": 3}
    assert redrive("queue", "purge", "full", "--yes").out == "0 messages of full deleted\n"
