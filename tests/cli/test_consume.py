"""``redrive consume``: looking costs nothing, and what is acknowledged was printed."""

from __future__ import annotations

from typing import Any

from tests.cli.program import Program


def test_looking_spends_no_attempt(redrive: Program, client: Any) -> None:
    """Twice the same message with attempt 1; it is ready again afterwards."""
    client.call("queue.publish", {"queue": "look", "payload": {"a": 1}, "job_key": "k"})
    for _ in range(2):
        (message,) = redrive("consume", "look", "--json").json["messages"]
        assert (message["attempt"], message["payload"], message["job_key"]) == (1, {"a": 1}, "k")
    assert "k" in redrive("consume", "look").out
    (kept,) = client.call("queue.messages", {"queue": "look"})["items"]
    assert (kept["state"], kept["attempt"]) == ("ready", 0)


def test_acknowledged_is_gone(redrive: Program, client: Any) -> None:
    """Only as many as asked for."""
    client.call("queue.publish_batch", {"queue": "ack", "messages": [{"payload": n} for n in range(3)]})
    taken = redrive("consume", "ack", "--ack", "--max", "2", "--json").json["messages"]
    left = client.call("queue.messages", {"queue": "ack"})["items"]
    assert ([message["payload"] for message in taken], [item["payload"] for item in left]) == ([0, 1], [2])


def test_a_kept_lease_shows_its_handle(redrive: Program, client: Any) -> None:
    """With it the message can be settled by hand."""
    client.call("queue.publish", {"queue": "lease", "payload": 1})
    (message,) = redrive("consume", "lease", "--lease", "--visibility-timeout", "600", "--json").json[
        "messages"
    ]
    (held,) = client.call("queue.messages", {"queue": "lease"})["items"]
    assert held["state"] == "leased"
    handle = {"message_id": message["message_id"], "receipt_handle": message["receipt_handle"]}
    assert client.call("queue.ack", {"queue": "lease", **handle}) == {"acknowledged": True}


def test_nothing_there_is_no_error(redrive: Program) -> None:
    """Exit code 0, nothing on stdout; a queue that does not exist is one."""
    redrive("queue", "create", "empty")
    done = redrive("consume", "empty")
    assert (done.code, done.out, "nothing to deliver" in done.err) == (0, "", True)
    assert redrive("consume", "empty", "--json").json["messages"] == []


def test_wrong_options(redrive: Program) -> None:
    """Exit code 2, with the limit where there is one."""
    redrive("queue", "create", "x")
    assert redrive.inside("consume", "x", "--ack", "--lease").code == 2
    assert (
        "max_messages must be at most 1000, got 5000" in redrive.inside("consume", "x", "--max", "5000").err
    )
    assert "wait_seconds must be at most 20, got 60" in redrive.inside("consume", "x", "--wait", "60").err


def test_a_paused_queue_does_not_look_empty(redrive: Program, client: Any) -> None:
    """It says so, and how many are ready."""
    client.call("queue.publish", {"queue": "held", "payload": 1})
    client.call("queue.pause", {"queue": "held"})
    done = redrive.inside("consume", "held")
    assert (done.code, done.out, "held is paused (1 ready)" in done.err) == (0, "", True), done.err


def test_a_misspelt_queue_is_not_made(redrive: Program, client: Any) -> None:
    """Exit code 1, and it is not there afterwards."""
    done = redrive.inside("consume", "typo")
    assert (done.code, "QUEUE_NOT_FOUND" in done.err) == (1, True), done.err
    assert "typo" not in [item["name"] for item in client.call("queue.list")["items"]]


def test_what_the_queue_redacts_is_not_printed(redrive: Program) -> None:
    """Looking never shows it, a list neither; who takes the messages over gets them whole."""
    redrive("queue", "create", "pay", "--redact", "card", "--redact", "headers.token", "--max-retries", "0")
    words = ["--header", "token=abcdef", "--header", "trace=seen"]
    assert (
        redrive("publish", "pay", '{"card":"4111-2222","amount":12345678901234567890123.50}', *words).code
        == 0
    )
    for command in (["consume", "pay"], ["consume", "pay", "--json"], ["message", "list", "pay", "--json"]):
        done = redrive(*command)
        assert done.code == 0, done.err
        assert ("4111" in done.out, "abcdef" in done.out, "amount" in done.out) == (False, False, True)
        if "--json" in command:
            assert "12345678901234567890123.50" in done.out
    taken = redrive("consume", "pay", "--ack", "--json")
    assert ("4111-2222" in taken.out, "abcdef" in taken.out) == (True, True)
