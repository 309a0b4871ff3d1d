"""The REST carrier against a real HTTP server that misbehaves on purpose."""

from __future__ import annotations

import json
import logging
import threading
import traceback
from typing import Any

import msgspec
import pytest
from tests.database import free_port
from tests.transports.scripted_server import Answer, serving

from redrive import seams
from redrive.domain.errors import (
    InvalidRequest,
    Overloaded,
    PayloadTooLarge,
    QueueNotFound,
    RateLimited,
    RedriveError,
    StaleReceipt,
)
from redrive.transports import Entry, Published, Unreachable
from redrive.transports.contract_transport import ContractTransport
from redrive.transports.rest import RestCarrier, open_rest

SECRET = "rk_test_0123456789abcdef"
STORED = Answer(data={"message_id": "m1", "duplicate": False})
OVERLOADED = {"code": "OVERLOADED", "message": "busy", "http_status": 503, "retryable": True}
LIMITED = {"code": "RATE_LIMITED", "message": "slower", "http_status": 429, "retryable": True}


def consume(transport: ContractTransport, **options: Any) -> Any:
    """Consume with short defaults."""
    options = {"max_messages": 1, "visibility_timeout": None, "wait_seconds": 0} | options
    return transport.consume("work", consumer_id="me", **options)


def test_a_request_carries_key_and_strictness_and_nothing_null() -> None:
    """The bearer key and ``Prefer: handling=strict`` are sent; absent fields are not."""
    with serving(STORED) as script:
        transport = open_rest(script.url, SECRET)
        transport.publish("work", [Entry(payload=msgspec.Raw(b'{"n": 1.50}'), job_key="k")])
        transport.close()
    (seen,) = script.seen
    assert (seen.method, seen.path) == ("POST", "/v1/queue/publish")
    assert seen.headers["authorization"] == f"Bearer {SECRET}"
    assert seen.headers["prefer"] == "handling=strict"
    assert seen.body == b'{"queue":"work","payload":{"n": 1.50},"job_key":"k"}'


def test_connections_are_kept() -> None:
    """Requests one after the other share a connection."""
    with serving(Answer(data={"messages": [], "lease_seconds": 30})) as script:
        transport = open_rest(script.url)
        for _ in range(3):
            consume(transport)
        transport.close()
    assert len({seen.connection for seen in script.seen}) == 1


@pytest.mark.parametrize(
    "trouble",
    [Answer(drop=True), Answer(503, error=OVERLOADED), Answer(502, raw=b"<html>bad gateway</html>")],
    ids=["dropped", "overloaded", "proxy"],
)
def test_a_repeated_publish_converges(trouble: Answer) -> None:
    """A publish whose answer did not come is sent again, whole, under one idempotency key."""
    with serving(trouble, trouble, STORED) as script:
        transport = open_rest(script.url)
        assert transport.publish("work", [Entry(payload=1)]) == [Published("m1")]
        transport.close()
    assert len(script.seen) == 3
    assert len({seen.headers["idempotency-key"] for seen in script.seen}) == 1
    assert len({seen.body for seen in script.seen}) == 1


def test_two_publishes_have_two_keys() -> None:
    """The automatic key belongs to one call."""
    with serving(STORED) as script:
        transport = open_rest(script.url)
        transport.publish("work", [Entry(payload=1)])
        transport.publish("work", [Entry(payload=1)])
        transport.close()
    assert len({seen.headers["idempotency-key"] for seen in script.seen}) == 2


def test_the_callers_key_is_used() -> None:
    """An entry's own idempotency key is the call's for a single publish, and stays with it in a batch."""
    items = {"items": [{"message_id": "m1"}, {"error": {"code": "LIMIT_EXCEEDED", "message": "too late"}}]}
    with serving(STORED, Answer(data=items)) as script:
        transport = open_rest(script.url)
        transport.publish("work", [Entry(payload=1, idempotency_key="job#0")])
        stored, refused = transport.publish(
            "work", [Entry(payload=1, idempotency_key="job#1"), Entry(payload=2, delay_seconds=1e9)]
        )
        transport.close()
    assert script.seen[0].headers["idempotency-key"] == "job#0"
    assert json.loads(script.seen[1].body)["messages"][0]["idempotency_key"] == "job#1"
    assert stored == Published("m1")
    assert isinstance(refused, RedriveError)
    assert (refused.code, refused.message) == ("LIMIT_EXCEEDED", "too late")


def test_a_create_of_a_secret_is_never_repeated() -> None:
    """A key's creation is not recorded: when its answer is lost, the caller must look."""
    with serving(Answer(drop=True)) as script:
        transport = open_rest(script.url)
        with pytest.raises(Unreachable) as failure:
            transport.call("account.keys.create", {"name": "ci"})
        transport.close()
    assert failure.value.sent
    assert len(script.seen) == 1


def test_settlements_are_repeated_because_handles_make_them_safe() -> None:
    """ack, nack and extend survive a dropped connection."""
    items = Answer(data={"items": [{"acknowledged": True}, {"acknowledged": False}]})
    extended = Answer(data={"lease_seconds": 30, "lease_expires_at": "2026-01-01T00:00:00.000Z"})
    with serving(Answer(drop=True), items, Answer(drop=True), extended) as script:
        transport = open_rest(script.url)
        assert transport.ack("work", [("m1", "h1"), ("m2", "h2")]) == [True, False]
        assert transport.extend("work", "m1", "h1", 30) == 30
        transport.close()
    assert "idempotency-key" not in script.seen[0].headers


def test_a_refusal_is_the_taxonomys_exception() -> None:
    """Code, message, hint and details of the envelope come back as the class of that code, at once."""
    error = {"code": "STALE_RECEIPT", "message": "not yours", "hint": "consume again", "details": {"n": 1}}
    with serving(Answer(409, error=error)) as script:
        transport = open_rest(script.url)
        with pytest.raises(StaleReceipt, match="not yours") as refused:
            transport.nack("work", "m1", "h1")
        transport.close()
    assert (refused.value.hint, refused.value.details) == ("consume again", {"n": 1})
    assert len(script.seen) == 1


def test_retry_after_is_a_floor() -> None:
    """The client comes back no earlier than the server said."""
    with serving(Answer(429, error=LIMITED, headers={"Retry-After": "1"}), STORED) as script:
        transport = open_rest(script.url)
        started = seams.monotonic()
        transport.publish("work", [Entry(payload=1)])
        assert seams.monotonic() - started >= 1
        transport.close()
    assert len(script.seen) == 2


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (
            Answer(429, error={"code": "RATE_LIMITED", "message": "x"}, headers={"Retry-After": "60"}),
            RateLimited,
        ),
        (Answer(503, error=OVERLOADED, headers={"Retry-After": "60"}), Overloaded),
        (Answer(hang=threading.Event()), Unreachable),
    ],
    ids=["limited", "overloaded", "silent"],
)
def test_every_call_ends_by_its_deadline(answer: Answer, expected: type[Exception]) -> None:
    """Neither a long Retry-After nor a server that says nothing holds a caller."""
    with serving(answer) as script:
        transport = open_rest(script.url, deadline_seconds=0.4)
        started = seams.monotonic()
        with pytest.raises(expected):
            transport.publish("work", [Entry(payload=1)])
        assert seams.monotonic() - started < 3
        transport.close()


def test_a_long_poll_is_read_for_as_long_as_it_may_take() -> None:
    """The read time-out of consume is its wait and a margin."""
    go = threading.Event()
    with serving(Answer(data={"messages": [], "lease_seconds": 30}, hang=go)) as script:
        transport = open_rest(script.url, read_seconds=0.2)
        threading.Timer(0.6, go.set).start()
        assert consume(transport, wait_seconds=5).messages == []
        transport.close()
    assert len(script.seen) == 1


def test_nobody_there_is_unreachable_and_unsent() -> None:
    """A refused connection tells that nothing was sent."""
    with serving() as script:
        url = script.url
    transport = open_rest(url, deadline_seconds=0.2)
    with pytest.raises(Unreachable) as failure:
        consume(transport)
    transport.close()
    assert not failure.value.sent


def test_closing_ends_a_repetition() -> None:
    """A client that is closed stops coming back."""
    with serving(Answer(503, error=OVERLOADED, headers={"Retry-After": "20"})) as script:
        transport = open_rest(script.url, deadline_seconds=60)
        threading.Timer(0.2, transport.close).start()
        started = seams.monotonic()
        with pytest.raises(Unreachable, match="closed"):
            transport.publish("work", [Entry(payload=1)])
    assert seams.monotonic() - started < 5


@pytest.mark.parametrize("answer", [Answer(drop=True), Answer(500, raw=b"x"), Answer(200, raw=b"[]")])
def test_the_key_is_nowhere(answer: Answer, caplog: pytest.LogCaptureFixture) -> None:
    """Neither repr, nor errors, nor any log line shows the API key."""
    with caplog.at_level(logging.DEBUG), serving(answer) as script:
        transport = open_rest(script.url, SECRET, deadline_seconds=0.3)
        with pytest.raises((Unreachable, RedriveError)) as failure:
            consume(transport)
        transport.close()
    trace = "".join(traceback.format_exception(failure.value))
    assert SECRET not in repr(transport) + repr(failure.value) + trace + caplog.text


def test_the_key_comes_from_the_environment_or_its_file(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    """``REDRIVE_API_KEY`` is used when none is given, or the file that ``REDRIVE_API_KEY_FILE`` names."""
    file = tmp_path / "key"
    file.write_text("from-file\n")
    monkeypatch.setenv("REDRIVE_API_KEY_FILE", str(file))
    with serving(STORED) as script:
        for value in ("", "from-environment"):
            monkeypatch.setenv("REDRIVE_API_KEY", value)
            transport = open_rest(script.url)
            transport.publish("work", [Entry(payload=1)])
            transport.close()
    sent = [seen.headers["authorization"] for seen in script.seen]
    assert sent == ["Bearer from-file", "Bearer from-environment"]


def test_names_are_encoded_into_the_path() -> None:
    """Path parameters and queries are percent-encoded, and a prefix of the base URL is kept."""
    error = {"code": "QUEUE_NOT_FOUND", "message": "queue not found"}
    with serving(Answer(404, error=error)) as script:
        transport = open_rest(f"{script.url}/redrive/v1/")
        with pytest.raises(QueueNotFound):
            transport.call("queue.messages", {"queue": "a/b c", "limit": 5, "state": "ready&x"})
        transport.close()
    assert script.seen[0].path == "/redrive/v1/queue/messages/a%2Fb%20c?limit=5&state=ready%26x"


def test_a_payload_that_is_no_json_is_refused_before_it_is_sent() -> None:
    """NaN and lone surrogates never become null or a question mark."""
    with serving(STORED) as script:
        transport = open_rest(script.url)
        nan, surrogate, good = transport.publish(
            "work", [Entry(payload=float("nan")), Entry(payload="\ud800"), Entry(payload=2**70)]
        )
        transport.close()
    assert isinstance(nan, InvalidRequest)
    assert isinstance(surrogate, InvalidRequest)
    assert good == Published("m1")
    assert b"1180591620717411303424" in script.seen[0].body


def test_a_refused_single_publish_is_a_value() -> None:
    """One entry is answered like one of many: the refusal stands at its place."""
    with serving(Answer(413, error={"code": "PAYLOAD_TOO_LARGE", "message": "300000 bytes"})) as script:
        transport = open_rest(script.url)
        (refused,) = transport.publish("work", [Entry(payload=1)])
        transport.close()
    assert isinstance(refused, PayloadTooLarge)


@pytest.mark.parametrize("url", ["ftp://x", "http://", "http://user:secret@host"])
def test_a_wrong_base_url_is_refused_without_showing_it(url: str) -> None:
    """The error says what a base URL looks like, and never repeats a password."""
    with pytest.raises(ValueError, match="base_url must") as refused:
        RestCarrier(url)
    assert "secret" not in str(refused.value)


def test_an_outage_is_logged_when_it_begins_and_seldom(caplog: pytest.LogCaptureFixture) -> None:
    """After the first failed try, with the system's words, and not once a try or a call."""
    url = f"http://127.0.0.1:{free_port()}"
    transport = open_rest(url, SECRET, deadline_seconds=0.8)
    with caplog.at_level(logging.WARNING, "redrive.transports"):
        for _ in range(2):
            with pytest.raises(Unreachable, match=f"{url}: Connection refused"):
                consume(transport)
    transport.close()
    (said,) = [record.getMessage() for record in caplog.records]
    assert said.startswith(f"{url}: Connection refused; trying again for up to 1 s")


def test_https_to_a_plain_server_is_told_as_that() -> None:
    """The TLS library's number helps nobody."""
    with serving(STORED) as script:
        transport = open_rest(script.url.replace("http://", "https://"), deadline_seconds=0.3)
        with pytest.raises(Unreachable, match="is it http:// instead"):
            transport.call("queue.list")
        transport.close()
