"""The endpoint: envelope, keys, errors, long polls."""

from __future__ import annotations

import json
import re
import uuid

import pytest

from redrive.contract import shapes
from redrive.domain.errors import Conflict, Overloaded, StorageFull
from tests.api.conftest import Start
from tests.api.stand import KEY, StandService, caller, delivered
from tests.api.wire import DEADLINE_SECONDS, Caller

ACK = {"queue": "q", "message_id": "m"}


def test_success_is_the_compact_envelope_without_an_error_field(call: Caller) -> None:
    """200 if and only if ok; data is an object; no error; metadata as the contract says."""
    reply = call.post("/v1/queue/ack", ACK)
    assert reply.status == 200
    assert re.fullmatch(
        rb'\{"ok":true,"data":\{"acknowledged":true\},"metadata":\{"request_id":"[0-9a-f-]{36}",'
        rb'"latency_ms":\d+,"vendor":"redrive","cost_usd":0,"cache_hit":false\}\}',
        reply.body,
    )
    request_id = reply.json["metadata"]["request_id"]
    assert uuid.UUID(request_id).version == 7
    assert reply.headers["x-request-id"] == request_id
    assert reply.headers["content-type"] == "application/json"


def test_failure_has_null_data_and_the_whole_error(call: Caller, stand: StandService) -> None:
    """ok false, data null, every field of error, the same status inside and outside."""
    stand.answers["queue.ack"] = Conflict("no", hint="try", details={"a": 1})
    reply = call.post("/v1/queue/ack", ACK)
    document = reply.json
    assert list(document) == ["ok", "data", "error", "metadata"]
    assert (document["ok"], document["data"]) == (False, None)
    assert document["error"] == {
        "code": "CONFLICT", "message": "no", "hint": "try", "http_status": 409, "retryable": False,
        "details": {"a": 1},
    }  # fmt: skip
    assert reply.status == 409


def test_a_replay_says_cache_hit(call: Caller, stand: StandService) -> None:
    """The first answer again is marked in metadata."""
    answer = shapes.PublishDone(message_id="m")
    stand.answers["queue.publish"] = shapes.Replayed(answer)
    reply = call.post("/v1/queue/publish", {"queue": "q", "payload": 1})
    assert reply.json["metadata"]["cache_hit"] is True
    assert reply.data == {"message_id": "m", "duplicate": False}


def test_unknown_fields_are_listed_or_refused_when_strict(call: Caller) -> None:
    """ignored_fields has dotted paths; Prefer: handling=strict makes it 400."""
    reply = call.post("/v1/queue/ack", {**ACK, "x": 1, "n": None})
    assert reply.json["metadata"]["ignored_fields"] == ["x"]
    strict = call.post("/v1/queue/ack", {**ACK, "x": 1}, {"Prefer": "handling=strict"})
    assert (strict.status, strict.error["details"]["field"]) == (400, "x")


def test_consume_writes_the_list_twice_and_payloads_exactly(call: Caller, stand: StandService) -> None:
    """messages and items are the same list; view narrows; numbers and duplicate keys are untouched."""
    text = b'{"b":12345678901234567890,"a":1.10,"a":"\\u0000"}'
    stand.answers["queue.consume"] = shapes.Deliveries(messages=[delivered(text)], lease_seconds=30)
    reply = call.post("/v1/queue/consume", {"queue": "q"})
    assert reply.body.count(b'"payload":' + text) == 2
    assert reply.data["messages"] == reply.data["items"]
    one = call.post("/v1/queue/consume", {"queue": "q", "view": "messages"})
    assert list(one.data) == ["messages", "lease_seconds"]


def test_without_a_key_or_with_a_wrong_one_it_is_401(call: Caller) -> None:
    """The answer names the scheme and nothing of the key."""
    for headers in ({}, {"Authorization": "Bearer wrong"}, {"Authorization": "Basic " + KEY}):
        reply = Caller(call.url, None).post("/v1/queue/ack", ACK, headers)
        assert (reply.status, reply.error["code"]) == (401, "UNAUTHENTICATED")
        assert "www-authenticate" in reply.headers
        assert b"wrong" not in reply.body


def test_a_missing_scope_is_403(call: Caller, stand: StandService) -> None:
    """A key without the route's scope is refused."""
    stand.access.callers["other"] = caller("k2", "publish")
    reply = Caller(call.url, "other").post("/v1/queue/ack", ACK)
    assert (reply.status, reply.error["code"]) == (403, "FORBIDDEN")


def test_unknown_paths_and_methods_have_the_envelope(call: Caller) -> None:
    """404 with the words not found; 405 with Allow; also outside of /v1."""
    for path in ("/v1/nothing", "/v1/queue", "/v1/queue/get/", "/nothing"):
        reply = call.get(path)
        assert (reply.status, reply.error["code"], reply.error["http_status"]) == (404, "NOT_FOUND", 404)
        assert "not found" in reply.error["message"]
    wrong = call.get("/v1/queue/publish")
    assert (wrong.status, wrong.headers["allow"], wrong.error["code"]) == (405, "POST", "METHOD_NOT_ALLOWED")
    assert call.post("/healthz").status == 405


def test_bodies_of_get_and_empty_posts_are_tolerated(call: Caller, stand: StandService) -> None:
    """A GET may carry any body, HEAD is answered, an empty POST is {}."""
    stand.answers["queue.list"] = shapes.QueuePage(items=[])
    assert call.get("/v1/queue/list", b"not json").data == {"items": [], "next_cursor": None}
    head = call("HEAD", "/v1/queue/list")
    assert (head.status, head.body) == (200, b"")
    stand.answers["queue.pause"] = Conflict("reached")
    assert call.post("/v1/queue/pause/q").error["message"] == "reached"


def test_a_bug_is_internal_without_details(call: Caller, stand: StandService) -> None:
    """Anything unexpected is 500 with the request id and no words of the exception."""
    stand.answers["queue.ack"] = RuntimeError("secret words")
    reply = call.post("/v1/queue/ack", ACK)
    assert (reply.status, reply.error["code"], reply.error["retryable"]) == (500, "INTERNAL", True)
    assert b"secret words" not in reply.body


@pytest.mark.parametrize(("error", "status"), [(Overloaded("x"), 503), (StorageFull("x"), 507)])
def test_refusals_of_the_store_keep_their_status(
    call: Caller, stand: StandService, error: Exception, status: int
) -> None:
    """503 brings Retry-After and the RateLimit headers."""
    stand.answers["queue.ack"] = error
    reply = call.post("/v1/queue/ack", ACK)
    assert reply.status == status
    if status == 503:
        assert int(reply.headers["retry-after"]) >= 1
        assert {"ratelimit", "ratelimit-policy"} <= reply.headers.keys()


def test_a_full_committer_is_503_with_its_retry_after(call: Caller, stand: StandService) -> None:
    """Back-pressure is answered, not waited for."""
    stand.crowded = True
    reply = call.post("/v1/queue/ack", ACK)
    assert (reply.status, reply.error["code"], reply.headers["retry-after"]) == (503, "OVERLOADED", "2")


def test_the_rate_of_a_key_is_limited_by_itself(start: Start, stand: StandService) -> None:
    """The key above its rate gets 429 with whole seconds; another key is not touched."""
    stand.access.callers["other"] = caller("k2")
    url = start(rate_per_second=0.01, rate_burst=2).url
    replies = [Caller(url, KEY).post("/v1/queue/ack", ACK) for _ in range(3)]
    assert [reply.status for reply in replies] == [200, 200, 429]
    assert replies[2].error["code"] == "RATE_LIMITED"
    assert int(replies[2].headers["retry-after"]) >= 90
    assert replies[2].headers["ratelimit"].startswith('"key";r=0;t=')
    assert Caller(url, "other").post("/v1/queue/ack", ACK).status == 200


def test_the_idempotency_header_wins_over_the_body(call: Caller, stand: StandService) -> None:
    """The header's key counts; the hash leaves the body's key out; settle routes record nothing."""
    body = {"queue": "q", "payload": {"a": 1, "b": 2}, "idempotency_key": "body"}
    stand.answers["queue.publish"] = shapes.PublishDone(message_id="m")
    call.post("/v1/queue/publish", body, {"Idempotency-Key": "header"})
    call.post("/v1/queue/publish", b'{"payload":{"b":2,"a":1},"idempotency_key":"body","queue":"q"}')
    call.post("/v1/queue/ack", {**ACK, "idempotency_key": "k"})
    first, second, ack = (idempotency for _, _, idempotency in stand.seen)
    assert first is not None
    assert second is not None
    assert (first.key, second.key, first.route) == ("header", "body", "queue.publish")
    assert first.request_hash == second.request_hash
    assert ack is None
    long = call.post("/v1/queue/publish", body, {"Idempotency-Key": "x" * 201})
    assert (long.status, long.error["details"]["limit"]) == (422, 200)


def test_a_client_that_leaves_a_long_poll_cancels_its_ticket(call: Caller, stand: StandService) -> None:
    """Nothing may be leased to a connection that is gone."""
    stand.parked.add("queue.consume")
    body = json.dumps({"queue": "q", "wait_seconds": 20}).encode()
    with call.connect() as connection:
        connection.sendall(
            b"POST /v1/queue/consume HTTP/1.1\r\nhost: x\r\nauthorization: Bearer %s\r\n"
            b"content-length: %d\r\n\r\n%s" % (KEY.encode(), len(body), body)
        )
        assert stand.parked_now.wait(DEADLINE_SECONDS)
        assert not stand.tickets[0].cancelled.is_set()
    assert stand.tickets[0].cancelled.wait(DEADLINE_SECONDS)


def test_what_was_leased_to_a_client_that_left_is_given_back(call: Caller, stand: StandService) -> None:
    """A lease that was on its way when the client went away is released at once."""
    stand.parked.add("queue.consume")
    body = json.dumps({"queue": "q", "wait_seconds": 20}).encode()
    with call.connect() as connection:
        connection.sendall(
            b"POST /v1/queue/consume HTTP/1.1\r\nhost: x\r\nauthorization: Bearer %s\r\n"
            b"content-length: %d\r\n\r\n%s" % (KEY.encode(), len(body), body)
        )
        assert stand.parked_now.wait(DEADLINE_SECONDS)
    assert stand.tickets[0].cancelled.wait(DEADLINE_SECONDS)
    stand.parked_now.clear()
    stand.parked.add("queue.release")
    stand.tickets[0].reply(shapes.Deliveries(messages=[delivered(b"1")], lease_seconds=30))
    assert stand.parked_now.wait(DEADLINE_SECONDS)
    capability_id, request, _ = stand.seen[-1]
    assert (capability_id, request.receipt_handle) == ("queue.release", "h")


def test_a_parked_poll_is_answered_when_its_reply_comes(call: Caller, stand: StandService) -> None:
    """A reply from the committer's thread reaches the waiting client."""
    stand.answers["queue.consume"] = shapes.Deliveries(messages=[delivered(b"1")], lease_seconds=30)
    reply = call.post("/v1/queue/consume", {"queue": "q", "wait_seconds": 20})
    assert len(reply.data["messages"]) == 1


def test_a_store_that_never_answers_is_an_unknown_outcome(start: Start, stand: StandService) -> None:
    """Every wait has a deadline."""
    stand.parked.add("queue.ack")
    reply = Caller(start(reply_seconds=0.1).url, KEY).post("/v1/queue/ack", ACK)
    assert (reply.status, reply.error["retryable"]) == (500, True)
    assert "not known" in reply.error["message"]
