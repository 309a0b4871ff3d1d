"""``redrive publish``: one message, and many from lines of which some are bad."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.cli.program import Program

EXACT = '{"z":1,"a":12345678901234567890123,"z":1.10,"n":"\\u0000","e":"é"}'


def _payloads(client: Any, queue: str) -> list[Any]:
    return [item["payload"] for item in client.call("queue.messages", {"queue": queue})["items"]]


def test_a_message_is_published_and_its_id_printed(redrive: Program, client: Any) -> None:
    """The id alone is on stdout, and every option arrives."""
    options = ["--job-key", "k:1", "--delay", "60", "--priority", "0", "--header", "a=b=c"]
    done = redrive("publish", "one", '{"payment": 7}', *options)
    assert done.code == 0, done.err
    message = client.call("queue.message", {"message_id": done.out.strip()})
    assert (message["job_key"], message["state"], message["payload"]) == ("k:1", "delayed", {"payment": 7})
    assert message["headers"] == {"a": "b=c"}


def test_a_payload_keeps_its_text(redrive: Program) -> None:
    """From the command line, or from stdin, to the byte."""
    redrive("publish", "exact", EXACT)
    redrive("publish", "exact", "-", stdin=EXACT + "\n")
    assert redrive("consume", "exact", "--json").out.count(EXACT) == 2


def test_the_same_idempotency_key_answers_the_first_message(redrive: Program, client: Any) -> None:
    """One message, the same id twice."""
    words = ["publish", "once", "1", "--idempotency-key", "i:1", "--json"]
    assert redrive(*words).json["message_id"] == redrive(*words).json["message_id"]
    assert len(_payloads(client, "once")) == 1


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["hello"], "the payload is no JSON text"),
        (['1},"queue":"other"'], "the payload is no JSON text"),
        (['{"a": NaN}'], "the payload is no JSON text"),
        (['"\\ud800"'], "lone surrogate"),
        ([], "one of PAYLOAD, --lines and --entries is needed, got none"),
        (["1", "--lines", "-"], "got PAYLOAD and --lines"),
        (["--lines", "-", "--job-key", "k"], "job_key cannot be given for many messages"),
        (["--lines", "nofile"], "nofile: No such file or directory"),
        (["1", "--header", "x"], "header must be NAME=VALUE, got 'x'"),
        (["1", "--delay", "-5"], "delay_seconds must be at least 0, got -5"),
        (["1", "--priority", "77"], "priority must be at most 9, got 77"),
        (["1", "--job-key", "k" * 201], "job_key must be at most 200"),
    ],
)
def test_what_is_no_message_is_refused(redrive: Program, words: list[str], said: str) -> None:
    """Exit code 2 and the reason; nothing is published."""
    done = redrive.inside("publish", "refused", *words)
    assert done.code == 2, done.err
    assert said in done.err
    assert redrive.inside("queue", "show", "refused").code == 1


def test_a_payload_above_the_limit_names_it(redrive: Program) -> None:
    """As the server says it, and what no payload can be is not even sent."""
    large = redrive("publish", "large", "-", stdin="1" * 300_000)
    assert (large.code, "payload must be at most 262144 bytes, got 300000" in large.err) == (2, True)
    huge = redrive("publish", "large", "-", stdin="1" * 400_000)
    assert (huge.code, "longer than" in huge.err) == (2, True)


def test_lines_are_published_and_bad_ones_named(redrive: Program, client: Any) -> None:
    """Exit code 1; every line that is valid is there, the others are told by number and reason."""
    done = redrive("publish", "lines", "--lines", "-", stdin='{"a":1}\nnot json\n\n[1,2]\n{"b":\n"last"')
    assert done.code == 1
    assert done.out == "3 published to lines, 2 refused\n"
    told = [line.split(":")[1].strip() for line in done.err.splitlines()]
    assert told == ["line 2", "line 5"]
    assert _payloads(client, "lines") == [{"a": 1}, [1, 2], "last"]


def test_each_line_is_answered_in_order_as_json(redrive: Program, client: Any) -> None:
    """A message id or an error with the line's number, also for what the server refuses."""
    entries: list[Any] = [
        {"payload": {"a": 1}, "job_key": "e:1"},
        {"payload": 1, "job": 2},
        {"payload": 1, "priority": 99},
        {"job_key": "no payload"},
        {"payload": None, "headers": {"x": "y"}},
    ]
    text = "\n".join(json.dumps(entry) for entry in entries)
    done = redrive("publish", "entries", "--entries", "-", "--json", stdin=text)
    assert (done.code, [answer["line"] for answer in done.lines]) == (1, [1, 2, 3, 4, 5])
    assert ["error" in answer for answer in done.lines] == [False, True, True, True, False]
    assert done.lines[2]["error"] == {
        "code": "LIMIT_EXCEEDED",
        "message": "priority must be at most 9, got 99",
    }
    first = client.call("queue.message", {"message_id": done.lines[0]["message_id"]})
    assert first["job_key"] == "e:1"


def test_thousands_of_lines_are_one_command(redrive: Program) -> None:
    """Over many batches, from a file, all of them."""
    (redrive.folder / "many.jsonl").write_text("".join(f'{{"n":{n}}}\n' for n in range(2_500)))
    done = redrive("publish", "many", "--lines", "many.jsonl")
    assert (done.code, done.out) == (0, "2500 published to many, 0 refused\n")
    assert redrive("queue", "purge", "many", "--yes", "--json").json == {"purged": 2_500}


def test_a_queue_that_refuses_all_lines_says_from_where(redrive: Program, client: Any) -> None:
    """A key without the scope: exit code 3, and no line is claimed to be published."""
    secret = client.call("account.keys.create", {"name": "r", "scopes": ["consume"]})["secret"]
    done = redrive("publish", "scoped", "--lines", "-", "--json", stdin="1\n2\n", api_key=secret)
    assert (done.code, done.out) == (3, "")
    assert done.error["code"] == "FORBIDDEN"
    assert "lines from 1 on are not published" in done.error["message"]


def test_a_payload_beyond_every_limit_is_told_as_that(redrive: Program) -> None:
    """Not as text without quotes; exit code 2."""
    done = redrive.inside("publish", "big", "-", stdin=b'"' + b"x" * 12_000_000 + b'"')
    assert (done.code, "PAYLOAD_TOO_LARGE" in done.err, "quotes" in done.err) == (2, True, False), done.err
