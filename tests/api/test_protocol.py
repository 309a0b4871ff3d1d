"""The connection: deadlines of slow heads and bodies, caps, connections, graceful stop."""

from __future__ import annotations

import contextlib
import json
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from redrive.contract import shapes
from redrive.domain import limits
from tests.api.conftest import Start, running
from tests.api.stand import KEY, StandService, delivered
from tests.api.wire import DEADLINE_SECONDS, Caller, read_all, read_answer
from tests.database import wait_for

_ROOT = Path(__file__).parents[2]  # where `tests` is found, wherever the session was started
HEAD = b"POST /v1/queue/ack HTTP/1.1\r\nhost: x\r\nauthorization: Bearer " + KEY.encode() + b"\r\n"


def _error(answer: bytes) -> dict[str, object]:
    head, _, body = answer.partition(b"\r\n\r\n")
    assert b"application/json" in head
    error: dict[str, object] = json.loads(body)["error"]
    return error


def test_slow_headers_are_answered_408_and_closed(start: Start) -> None:
    """A head that does not end within its deadline gets 408 with the envelope."""
    with Caller(start(header_seconds=0.5).url, KEY).connect() as connection:
        connection.sendall(HEAD)
        assert _error(read_all(connection))["code"] == "REQUEST_TIMEOUT"


def test_without_short_deadlines_a_slow_client_holds_its_connection(start: Start) -> None:
    """The control of the deadlines: the same clients under long ones are still waited for."""
    caller = Caller(start(header_seconds=60, body_seconds=60).url, KEY)
    with caller.connect() as slow_head, caller.connect() as slow_body:
        slow_head.sendall(HEAD)
        slow_body.sendall(HEAD + b'content-length: 100\r\n\r\n{"queue"')
        for connection in (slow_head, slow_body):
            connection.settimeout(0.4)
            with pytest.raises(TimeoutError):
                connection.recv(1)


def test_a_silent_connection_is_closed_without_an_answer(start: Start) -> None:
    """Who asks nothing is not answered, and does not hold a connection."""
    with Caller(start(header_seconds=0.2).url, KEY).connect() as connection:
        assert read_all(connection) == b""


def test_slow_bodies_are_answered_408_and_closed(start: Start) -> None:
    """A body that does not end within its deadline gets 408 with the envelope."""
    with Caller(start(body_seconds=0.2).url, KEY).connect() as connection:
        connection.sendall(HEAD + b'content-length: 100\r\n\r\n{"queue"')
        assert _error(read_all(connection))["code"] == "REQUEST_TIMEOUT"


def test_a_dripping_body_does_not_move_its_deadline(start: Start) -> None:
    """The deadline is the whole body's, not the next byte's."""
    server = start(body_seconds=0.3)
    with Caller(server.url, KEY).connect() as connection:
        connection.sendall(HEAD + b"content-length: 100000\r\n\r\n")
        stop = threading.Event()

        def drip() -> None:
            while not stop.wait(0.02):
                try:
                    connection.sendall(b" ")
                except OSError:
                    return

        dripping = threading.Thread(target=drip)
        dripping.start()
        try:
            assert _error(read_all(connection))["code"] == "REQUEST_TIMEOUT"
        finally:
            stop.set()
            dripping.join(DEADLINE_SECONDS)


def test_a_fast_request_is_not_touched_by_short_deadlines(start: Start, stand: StandService) -> None:
    """The deadlines end with what they watch: a long poll may outlast them."""
    stand.parked.add("queue.consume")
    caller = Caller(start(header_seconds=0.5, body_seconds=0.2).url, KEY)
    body = json.dumps({"queue": "q", "wait_seconds": 20}).encode()
    with caller.connect() as connection:
        connection.sendall(
            HEAD.replace(b"/ack", b"/consume") + b"content-length: %d\r\n\r\n%s" % (len(body), body)
        )
        assert stand.parked_now.wait(DEADLINE_SECONDS)
        assert not stand.tickets[0].cancelled.wait(0.6)


@pytest.mark.parametrize("chunked", [False, True], ids=["announced", "chunked"])
def test_a_body_above_the_cap_is_413_before_it_has_ended(start: Start, chunked: bool) -> None:
    """Announced bodies are refused unread; streamed ones as soon as the cap is passed."""
    caller = Caller(start(request_bytes_max=10_000).url, KEY)
    with caller.connect() as connection:
        if chunked:
            part = b"4000\r\n" + b"x" * 0x4000 + b"\r\n"
            connection.sendall(HEAD + b"transfer-encoding: chunked\r\n\r\n" + part)
        else:
            connection.sendall(HEAD + b"content-length: 10001\r\n\r\n")
        answer = read_answer(connection)
    assert b" 413 " in answer.split(b"\r\n")[0]
    error = _error(answer)
    assert error["code"] == "PAYLOAD_TOO_LARGE"
    assert "10000" in str(error["message"])


def test_a_body_at_the_cap_is_read(start: Start) -> None:
    """The cap itself is allowed: the control of the test above."""
    body = b'{"queue":"q","message_id":"m"}'
    caller = Caller(start(request_bytes_max=len(body)).url, KEY)
    assert caller.post("/v1/queue/ack", body).status == 200
    assert caller.post("/v1/queue/ack", body + b" ").status == 413


def test_headers_above_the_bound_are_431(start: Start) -> None:
    """In one piece and as an endless head."""
    caller = Caller(start(header_bytes_max=4 * limits.KIB).url, KEY)
    assert caller.post("/v1/queue/ack", {}, {"X-Big": "x" * 5_000}).status == 431
    with caller.connect() as connection:
        for _ in range(3):
            connection.sendall(HEAD if _ == 0 else b"x-a: " + b"a" * 2_000 + b"\r\n")
        assert _error(read_all(connection))["code"] == "HEADERS_TOO_LARGE"


def test_what_is_not_http_is_400_with_the_envelope(call: Caller) -> None:
    """No plain-text answers."""
    with call.connect() as connection:
        connection.sendall(b"hello\r\n\r\n")
        assert _error(read_all(connection))["code"] == "INVALID_REQUEST"


def test_connections_above_the_bound_are_503(start: Start) -> None:
    """The one above is told to come back; the others go on."""
    caller = Caller(start(connections_max=1).url, KEY)
    with caller.connect() as first:
        first.sendall(HEAD + b"content-length: 0\r\n\r\n")
        assert b" 400 " in read_answer(first)
        with caller.connect() as second:
            answer = read_all(second)
        assert b"retry-after: 1" in answer
        assert _error(answer)["code"] == "OVERLOADED"


def test_a_connection_is_kept_for_the_next_request(call: Caller) -> None:
    """Two requests over one connection, also pipelined."""
    body = b'{"queue":"q","message_id":"m"}'
    request = HEAD + b"content-length: %d\r\n\r\n%s" % (len(body), body)
    with call.connect() as connection:
        connection.sendall(request + request)
        answer = b""
        while answer.count(b'"ok":true') < 2:
            answer += connection.recv(65_536)


def test_stopping_answers_parked_polls_and_finishes(stand: StandService) -> None:
    """A stop refuses what waits with 503 and ends in time."""
    stand.parked.add("queue.consume")
    replies = []
    with running(stand) as server:
        caller = Caller(server.url, KEY)
        waiting = threading.Thread(
            target=lambda: replies.append(
                caller.post("/v1/queue/consume", {"queue": "q", "wait_seconds": 20})
            )
        )
        waiting.start()
        assert stand.parked_now.wait(DEADLINE_SECONDS)
    waiting.join(DEADLINE_SECONDS)
    assert (replies[0].status, replies[0].error["code"]) == (503, "OVERLOADED")
    assert stand.tickets[0].cancelled.is_set()


def test_a_client_that_does_not_read_is_dropped(start: Start, stand: StandService) -> None:
    """An answer that nobody takes does not hold memory for ever."""
    big = delivered(b'"' + b"x" * 2**20 + b'"')
    stand.answers["queue.consume"] = shapes.Deliveries(messages=[big] * 16, lease_seconds=30)
    server = start(body_seconds=0.2)
    caller = Caller(server.url, KEY)
    whole = 2 * 16 * 2**20
    with caller.connect() as connection:
        body = b'{"queue":"q"}'
        head = HEAD.replace(b"/ack", b"/consume")
        connection.sendall(head + b"content-length: %d\r\n\r\n%s" % (len(body), body))
        wait_for(lambda: bool(stand.seen), DEADLINE_SECONDS, "the request")
        wait_for(lambda: server.connections == 0, DEADLINE_SECONDS, "the server to drop it")
        with contextlib.suppress(ConnectionResetError):
            assert len(read_all(connection)) < whole
    assert len(caller.post("/v1/queue/consume", body).body) > whole  # the control: who reads gets it all


_PROGRAM = """
import threading
from redrive.api.server import run
from tests.api.stand import StandService
service = StandService(parked={"queue.consume"})
tell = lambda: service.parked_now.wait() and print("parked", flush=True)
threading.Thread(target=tell, daemon=True).start()
run(service, "127.0.0.1", 0, ready=lambda url: print(url, flush=True))
print("closing the store", flush=True)
"""


def test_sigterm_stops_gracefully_and_returns_to_the_caller() -> None:
    """A parked poll is refused with 503, and the caller gets to close its store before the process ends."""
    with subprocess.Popen(
        [sys.executable, "-c", _PROGRAM], stdout=subprocess.PIPE, text=True, cwd=_ROOT
    ) as server:
        try:
            assert server.stdout is not None
            caller = Caller(server.stdout.readline().strip(), KEY)
            with caller.connect() as parked, caller.connect() as idle:
                body = json.dumps({"queue": "q", "wait_seconds": 20}).encode()
                head = HEAD.replace(b"/ack", b"/consume")
                parked.sendall(head + b"content-length: %d\r\n\r\n%s" % (len(body), body))
                assert server.stdout.readline() == "parked\n"
                idle.sendall(HEAD + b"content-length: 30\r\n\r\n" + b'{"queue":"q","message_id":"m"}')
                assert b'"ok":true' in read_answer(idle)
                server.send_signal(signal.SIGTERM)
                assert _error(read_all(parked))["code"] == "OVERLOADED"
                assert read_all(idle) == b""
            rest = server.stdout.read()
            assert server.wait(DEADLINE_SECONDS) == 0
        finally:
            server.kill()
    assert "closing the store" in rest
