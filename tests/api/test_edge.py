"""What no client library sends: conflicting lengths, trailers, odd methods, floods."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator

import pytest

from redrive.contract import shapes
from redrive.domain import limits
from tests.api.conftest import Start, running
from tests.api.stand import KEY, StandService
from tests.api.wire import DEADLINE_SECONDS, Caller, read_all, read_answer
from tests.database import wait_for

BODY = b'{"queue":"q","message_id":"m"}'
AUTH = b"host: x\r\nauthorization: Bearer " + KEY.encode() + b"\r\n"
POST = b"POST /v1/queue/ack HTTP/1.1\r\n" + AUTH
GET = b"GET /v1/queue/list HTTP/1.1\r\n" + AUTH
LENGTH = b"content-length: 30\r\n"
CHUNKED = b"transfer-encoding: chunked\r\n"
CLOSE = b"connection: close\r\n"


@pytest.fixture(scope="module")
def shared() -> Iterator[tuple[Caller, StandService]]:
    """One server for many odd requests."""
    service = StandService()
    service.answers["queue.list"] = shapes.QueuePage(items=[])
    with running(service) as server:
        yield Caller(server.url, KEY), service


def _parts(answer: bytes) -> tuple[int, dict[str, object]]:
    head, _, body = answer.partition(b"\r\n\r\n")
    document: dict[str, object] = json.loads(body) if body else {}
    return int(head.split(b" ", 2)[1]), document


SMUGGLED = {
    "a length and chunks": POST + LENGTH + CHUNKED + b"\r\n0\r\n\r\n" + GET + b"\r\n",
    "chunks and a length": POST + CHUNKED + LENGTH + b"\r\n0\r\n\r\n" + GET + b"\r\n",
    "two lengths": POST + LENGTH + b"content-length: 5\r\n\r\n" + BODY,
    "the same length twice": POST + LENGTH + LENGTH + b"\r\n" + BODY,
    "a list of lengths": POST + b"content-length: 30, 30\r\n\r\n" + BODY,
    "a signed length": POST + b"content-length: +30\r\n\r\n" + BODY,
    "a negative length": POST + b"content-length: -1\r\n\r\n" + BODY,
    "a length beyond counting": POST + b"content-length: 99999999999999999999999\r\n\r\n" + BODY,
    "a chunk without a size": POST + CHUNKED + b"\r\nzz\r\n",
    "a chunk beyond counting": POST + CHUNKED + b"\r\nffffffffffffffffff\r\n",
    "chunks that are not last": POST + CHUNKED + b"transfer-encoding: identity\r\n\r\n1e\r\n" + BODY,
    "an unknown coding": POST + b"transfer-encoding: xchunked\r\n" + LENGTH + b"\r\n" + BODY,
    "a space before the colon": POST + b"content-length : 30\r\n\r\n" + BODY,
    "a folded header": POST + b"x-a: b\r\n c\r\n" + LENGTH + b"\r\n" + BODY,
    "NUL in a header": POST + b"x-a: b\x00c\r\n" + LENGTH + b"\r\n" + BODY,
    "a bare carriage return": POST + b"x-a: b\rx-b: c\r\n" + LENGTH + b"\r\n" + BODY,
    "bare line feeds": (POST + LENGTH + b"\r\n").replace(b"\r\n", b"\n") + BODY,
    "a raw byte in the path": b"GET /v1/queue/get/\xff HTTP/1.1\r\n" + AUTH + b"\r\n",
    "no version": POST.replace(b" HTTP/1.1", b"") + LENGTH + b"\r\n" + BODY,
    "another protocol": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    "TLS": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"\x00" * 100,
    "CONNECT": b"CONNECT a:1 HTTP/1.1\r\nhost: x\r\n\r\n",
}


@pytest.mark.parametrize("sent", SMUGGLED.values(), ids=SMUGGLED)
def test_what_two_readers_could_read_differently_is_refused_and_closed(
    shared: tuple[Caller, StandService], sent: bytes
) -> None:
    """400 with the envelope, the connection closed, nothing reached: also not what came behind."""
    call, stand = shared
    stand.seen.clear()
    with call.connect() as connection:
        connection.sendall(sent)
        status, document = _parts(read_all(connection))
    assert (status, document["ok"]) == (400, False)
    assert stand.seen == []


TOLERATED = {
    "chunks": (POST + CLOSE + CHUNKED + b"\r\n1e\r\n" + BODY + b"\r\n0\r\n\r\n", 200),
    "an absolute target": (GET.replace(b"/v1/", b"http://x/v1/") + CLOSE + b"\r\n", 200),
    "HTTP/1.0": (GET.replace(b"HTTP/1.1", b"HTTP/1.0") + b"\r\n", 200),
    "a GET with a body": (GET + CLOSE + LENGTH + b"\r\n" + BODY, 200),
    "an upgrade": (POST + b"connection: upgrade, close\r\nupgrade: h2c\r\n" + LENGTH + b"\r\n" + BODY, 200),
    "a web socket": (GET + b"connection: upgrade, close\r\nupgrade: websocket\r\n\r\n", 200),
    "an empty POST": (POST + CLOSE + b"\r\n", 400),
    "OPTIONS": (GET.replace(b"GET", b"OPTIONS") + CLOSE + b"\r\n", 405),
    "OPTIONS of all": (b"OPTIONS * HTTP/1.1\r\n" + AUTH + CLOSE + b"\r\n", 404),
    "TRACE": (GET.replace(b"GET", b"TRACE") + CLOSE + b"\r\n", 405),
    "PUT": (GET.replace(b"GET", b"PUT") + CLOSE + b"\r\n", 405),
    "steps up": (GET.replace(b"/v1/", b"/v1/../v1/") + CLOSE + b"\r\n", 404),
    "an empty step": (GET.replace(b"/v1/", b"//v1/") + CLOSE + b"\r\n", 404),
    "NUL in the path": (GET.replace(b"list", b"get/%00") + CLOSE + b"\r\n", 404),
    "gzip": (POST + CLOSE + b"content-encoding: gzip\r\n" + LENGTH + b"\r\n" + BODY, 400),
    "gzip in transfer": (POST + CLOSE + b"transfer-encoding: gzip, chunked\r\n\r\n0\r\n\r\n", 400),
    "too many fields of a query": (GET.replace(b"list", b"list?" + b"a=1&" * 101) + CLOSE + b"\r\n", 400),
    "the last of two keys counts": (
        POST + CLOSE + b"authorization: Bearer x\r\n" + LENGTH + b"\r\n" + BODY,
        401,
    ),
}


@pytest.mark.parametrize(("sent", "status"), TOLERATED.values(), ids=TOLERATED)
def test_odd_requests_have_a_plain_answer(
    shared: tuple[Caller, StandService], sent: bytes, status: int
) -> None:
    """Whatever is well-formed is answered in the envelope, with no 5xx."""
    call, _ = shared
    with call.connect() as connection:
        connection.sendall(sent)
        found, document = _parts(read_all(connection))
    assert (found, document["ok"]) == (status, status == 200)


def test_a_continuation_is_asked_for(call: Caller) -> None:
    """Who sends Expect waits for 100 before the body."""
    with call.connect() as connection:
        connection.sendall(POST + CLOSE + b"expect: 100-continue\r\n" + LENGTH + b"\r\n")
        assert connection.recv(65_536).startswith(b"HTTP/1.1 100 ")
        connection.sendall(BODY)
        assert _parts(read_all(connection))[0] == 200


def test_trailers_are_not_headers(call: Caller) -> None:
    """What comes behind the body cannot take the place of the key that came before it."""
    other = b"authorization: Bearer other\r\nprefer: handling=strict\r\nidempotency-key: t\r\n"
    with call.connect() as connection:
        connection.sendall(POST + CLOSE + CHUNKED + b"\r\n1e\r\n" + BODY + b"\r\n0\r\n" + other + b"\r\n")
        assert _parts(read_all(connection))[0] == 200


def test_endless_trailers_are_refused(start: Start) -> None:
    """They count as headers do, whatever is done with them."""
    caller = Caller(start(header_bytes_max=4 * limits.KIB).url, KEY)
    with caller.connect() as connection:
        connection.sendall(POST + CHUNKED + b"\r\n1e\r\n" + BODY + b"\r\n0\r\n")
        connection.sendall(b"x-a: " + b"a" * 2_000 + b"\r\n")
        connection.sendall((b"x-a: " + b"a" * 2_000 + b"\r\n") * 3)
        status, document = _parts(read_all(connection))
    assert (status, document["error"]["code"]) == (431, "HEADERS_TOO_LARGE")  # type: ignore[index]


def test_chunks_without_an_end_are_408(start: Start, stand: StandService) -> None:
    """The body is whole or it is nothing."""
    with Caller(start(body_seconds=0.2).url, KEY).connect() as connection:
        connection.sendall(POST + CHUNKED + b"\r\n1e\r\n" + BODY + b"\r\n")
        assert _parts(read_all(connection))[0] == 408
    assert stand.seen == []


@pytest.mark.parametrize(("fields", "status"), [(97, 200), (98, 200), (99, 431)])
def test_the_number_of_headers(shared: tuple[Caller, StandService], fields: int, status: int) -> None:
    """A hundred, two of which are the host and the key."""
    call, _ = shared
    with call.connect() as connection:
        connection.sendall(GET + b"".join(b"x-%d: 1\r\n" % n for n in range(fields)) + b"\r\n")
        assert _parts(read_answer(connection))[0] == status


@pytest.mark.parametrize(("more", "status"), [(-1, 200), (0, 200), (1, 431)])
def test_the_bytes_of_headers(start: Start, stand: StandService, more: int, status: int) -> None:
    """The target and every header with its separators."""
    stand.answers["queue.list"] = shapes.QueuePage(items=[])
    bound = 2 * limits.KIB
    fixed = len("/v1/queue/list") + len(AUTH) + len("x-a: \r\n")
    head = GET + b"x-a: " + b"a" * (bound - fixed + more) + b"\r\n\r\n"
    with Caller(start(header_bytes_max=bound).url, KEY).connect() as connection:
        connection.sendall(head)
        assert _parts(read_answer(connection))[0] == status


@pytest.mark.parametrize(("more", "status"), [(-1, 200), (0, 200), (1, 413)])
@pytest.mark.parametrize("chunked", [False, True], ids=["announced", "chunked"])
def test_the_bytes_of_a_request(start: Start, more: int, status: int, chunked: bool) -> None:
    """The same bound whether the length is announced or only seen."""
    caller = Caller(start(request_bytes_max=1_000).url, KEY)
    body = BODY + b" " * (1_000 - len(BODY) + more)
    framed = b"%x\r\n%s\r\n0\r\n\r\n" % (len(body), body) if chunked else body
    head = POST + (CHUNKED if chunked else b"content-length: %d\r\n" % len(body)) + b"\r\n"
    with caller.connect() as connection:
        connection.sendall(head + framed)
        assert _parts(read_answer(connection))[0] == status


def test_bodies_at_work_have_a_bound_together(start: Start, stand: StandService) -> None:
    """Who would be beyond it is told to come back; when the others are answered there is room again."""
    stand.parked.add("queue.ack")
    caller = Caller(start(bodies_bytes_max=1_000).url, KEY)
    body = BODY + b" " * 600
    held: list[int] = []
    holding = threading.Thread(target=lambda: held.append(caller.post("/v1/queue/ack", body).status))
    holding.start()
    assert stand.parked_now.wait(DEADLINE_SECONDS)
    refused = caller.post("/v1/queue/ack", body)
    assert (refused.status, refused.error["code"]) == (503, "OVERLOADED")
    assert int(refused.headers["retry-after"]) >= 1
    stand.parked.clear()
    assert caller.post("/v1/queue/ack", BODY).status == 200  # a small one fits beside it
    stand.tickets[0].reply(shapes.AckDone(acknowledged=True))
    holding.join(DEADLINE_SECONDS)
    assert held == [200]
    for _ in range(3):  # refused and answered ones have given back what they held
        assert caller.post("/v1/queue/ack", body).status == 200


def test_a_flood_behind_a_parked_poll_waits_unread(call: Caller, stand: StandService) -> None:
    """Requests behind a long poll on one connection are not started, and the others are served meanwhile."""
    stand.parked.add("queue.consume")
    body = b'{"queue":"q","wait_seconds":20}'
    poll = POST.replace(b"/ack", b"/consume") + b"content-length: %d\r\n\r\n%s" % (len(body), body)
    with call.connect() as connection:
        connection.sendall(poll)
        assert stand.parked_now.wait(DEADLINE_SECONDS)
        connection.settimeout(0.5)
        flood = (POST + LENGTH + b"\r\n" + BODY) * (64 * limits.MIB // 160)
        with pytest.raises(TimeoutError):  # the server stops reading
            connection.sendall(flood)
        assert call.post("/v1/queue/ack", BODY).status == 200
        assert [name for name, _, _ in stand.seen] == ["queue.consume", "queue.ack"]


def test_a_store_that_hangs_is_answered_at_the_stop(stand: StandService) -> None:
    """What the store never answered is an unknown outcome in the envelope, not a cut connection."""
    from redrive.api.settings import ApiSettings

    stand.parked.add("queue.ack")
    replies = []
    with running(stand, ApiSettings(stop_seconds=1)) as server:
        caller = Caller(server.url, KEY)
        waiting = threading.Thread(target=lambda: replies.append(caller.post("/v1/queue/ack", BODY)))
        waiting.start()
        assert stand.parked_now.wait(DEADLINE_SECONDS)
    waiting.join(DEADLINE_SECONDS)
    assert (replies[0].status, replies[0].error["code"]) == (500, "INTERNAL")
    assert "not known" in replies[0].error["message"]


def test_while_it_stops_what_was_accepted_is_answered(stand: StandService) -> None:
    """A request at work, and one whose body is still coming, get their answers."""
    stand.parked.add("queue.ack")
    with running(stand) as server:
        caller = Caller(server.url, KEY)
        with caller.connect() as working, caller.connect() as half:
            working.sendall(POST + LENGTH + b"\r\n" + BODY)
            assert stand.parked_now.wait(DEADLINE_SECONDS)
            stand.parked.clear()
            half.sendall(POST + LENGTH + b"\r\n" + BODY[:10])
            answered = server.application.endpoint
            wait_for(lambda: answered.open == 2, DEADLINE_SECONDS, "both requests")
            server.stop()
            wait_for(lambda: answered.stopping, DEADLINE_SECONDS, "the stop")
            half.sendall(BODY[10:])
            assert _parts(read_all(half))[0] == 200
            stand.tickets[0].reply(shapes.AckDone(acknowledged=True))
            assert _parts(read_all(working))[0] == 200


def test_while_it_stops_new_work_is_refused(start: Start, stand: StandService) -> None:
    """503 with Retry-After, nothing reached; readiness says so too; who may not know is still 401."""
    server = start()
    caller = Caller(server.url, KEY)
    server.application.endpoint.stop()
    refused = caller.post("/v1/queue/ack", BODY)
    assert (refused.status, refused.error["code"]) == (503, "OVERLOADED")
    assert refused.headers["retry-after"] == "1"
    assert stand.seen == []
    assert caller.get("/readyz").status == 503
    assert Caller(server.url, "wrong").post("/v1/queue/ack", BODY).status == 401


def test_large_bodies_do_not_wait_behind_reads(start: Start, stand: StandService) -> None:
    """Purges and lists that take long hold the readers, not who publishes."""
    from redrive.service import Read

    gate = threading.Event()
    reading = threading.Event()

    def slow() -> shapes.QueuePage:
        reading.set()
        assert gate.wait(DEADLINE_SECONDS)
        return shapes.QueuePage(items=[])

    prepare = stand.prepare
    stand.prepare = lambda name, *rest: Read(slow) if name == "queue.list" else prepare(name, *rest)  # type: ignore[method-assign]
    caller = Caller(start(readers=1).url, KEY)
    listing = threading.Thread(target=lambda: caller.get("/v1/queue/list"))
    listing.start()
    try:
        assert reading.wait(DEADLINE_SECONDS)
        stand.answers["queue.publish"] = shapes.PublishDone(message_id="m")
        body = b'{"queue":"q","payload":"' + b"x" * 100_000 + b'"}'
        assert caller.post("/v1/queue/publish", body).status == 200
    finally:
        gate.set()
        listing.join(DEADLINE_SECONDS)
