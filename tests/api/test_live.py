"""The contract over HTTP with the real service: every command once, and what only the whole shows."""

from __future__ import annotations

import json
import threading
from typing import Any

import pytest

from redrive.contract import CAPABILITIES, Capability, capability_by_id
from redrive.contract.limits_table import limits_of
from redrive.contract.snippets import placed
from redrive.domain import limits
from tests.api.wire import DEADLINE_SECONDS, Caller, Reply
from tests.database import wait_for


def _publish(live: Caller, queue: str, payload: Any = 1, **fields: Any) -> str:
    message_id: str = live.post("/v1/queue/publish", {"queue": queue, "payload": payload, **fields}).data[
        "message_id"
    ]
    return message_id


def _consume(live: Caller, queue: str, **fields: Any) -> list[dict[str, Any]]:
    messages: list[dict[str, Any]] = live.post("/v1/queue/consume", {"queue": queue, **fields}).data[
        "messages"
    ]
    return messages


def test_a_messages_life(live: Caller) -> None:
    """Create, publish, look, consume, extend, nack, consume again, ack, stats."""
    record = live.post("/v1/queue/create", {"queue": "life", "retry_policy": {"base_seconds": 0}}).data
    assert (record["name"], record["type"], record["retry_policy"]["max_seconds"]) == (
        "life",
        "standard",
        900,
    )
    message_id = _publish(live, "life", {"shard": 7}, job_key="k:7", headers={"a": "b"})
    seen = live.get(f"/v1/queue/message/{message_id}").data
    assert (seen["state"], seen["payload"], seen["attempts"]) == ("ready", {"shard": 7}, [])
    (first,) = _consume(live, "life")
    assert (first["attempt"], first["delivery"], first["job_key"], first["headers"]) == (
        1,
        1,
        "k:7",
        {"a": "b"},
    )
    handle = {"queue": "life", "message_id": message_id, "receipt_handle": first["receipt_handle"]}
    assert live.post("/v1/queue/extend", {**handle, "visibility_timeout": 60}).data["lease_seconds"] == 60
    nacked = live.post("/v1/queue/nack", {**handle, "error": "boom", "delay_seconds": 0}).data
    assert nacked["attempts_left"] == 5
    (second,) = _consume(live, "life", wait_seconds=5)
    assert (second["attempt"], second["previous"]) == (2, "nack")
    stale = live.post("/v1/queue/ack", handle)
    assert (stale.status, stale.error["code"]) == (409, "STALE_RECEIPT")
    fresh = {**handle, "receipt_handle": second["receipt_handle"]}
    assert live.post("/v1/queue/ack/life", fresh).data == {"acknowledged": True}
    assert live.post("/v1/queue/ack", {"queue": "life", "message_id": message_id}).data == {
        "acknowledged": False
    }
    stats = live.get("/v1/queue/stats/li%66e").data
    assert (stats["ready"], stats["leased"], stats["paused"]) == (0, 0, False)


def test_dead_letters_are_listed_grouped_and_sent_back(live: Caller) -> None:
    """Reject, list, group, redrive with a reason, consume with a fresh budget; the audit log has it."""
    message_id = _publish(live, "dead")
    (message,) = _consume(live, "dead")
    handle = {"queue": "dead", "message_id": message_id, "receipt_handle": message["receipt_handle"]}
    error = {"type": "Mismatch", "message": "no such payment"}
    assert (
        live.post("/v1/queue/dead_letter", {**handle, "reason": "bad", "error": error}).data["state"]
        == "dead"
    )
    (letter,) = live.get("/v1/queue/dlq/list/dead?reason=rejected").data["items"]
    assert (letter["message_id"], letter["origin"], letter["error"]["type"]) == (
        message_id,
        "dead",
        "Mismatch",
    )
    assert live.get("/v1/queue/dlq/list/dead?reason=expired").data["items"] == []
    (group,) = live.get("/v1/queue/dlq/groups/dead").data["items"]
    assert (group["count"], group["sample_message_id"]) == (1, message_id)
    redriven = live.post("/v1/queue/dlq/redrive/dead", {"message_ids": [message_id], "reason": "fixed"}).data
    plan_id = redriven.pop("plan_id")
    assert redriven == {"redriven": 1, "skipped_count": 0, "skipped": []}
    again = live.post("/v1/queue/dlq/redrive/dead", {"message_ids": [message_id]}).data
    assert (again["redriven"], again["skipped_count"]) == (0, 1)
    assert again["skipped"][0]["message_id"] == message_id
    assert again["skipped"][0]["reason"] == "gone"
    assert live.get(f"/v1/redrive/plan/{plan_id}").data["counts"] == {"sent": 1}
    (again,) = _consume(live, "dead", wait_seconds=5)
    assert (again["attempt"], again["delivery"], again["redrive"]["count"]) == (1, 2, 1)
    rows = live.get("/v1/audit/list").data["items"]
    assert any(row["reason"] == "fixed" for row in rows)


def test_a_batch_of_refused_entries_makes_no_queue(live: Caller) -> None:
    """Each entry is told its fault, and the queue is not found afterwards; one good entry makes it."""
    bad = [{"payload": 1, "surplus": 2}, {"payload": 1, "deduplication_id": "d"}]
    answer = live.post("/v1/queue/publish_batch", {"queue": "refused", "messages": bad})
    assert [item["error"]["code"] for item in answer.data["items"]] == ["INVALID_REQUEST"] * 2
    assert live.post("/v1/queue/publish_batch", {"queue": "refused", "messages": bad[:1]}).status == 200
    assert live.get("/v1/queue/get/refused").status == 404
    answer = live.post("/v1/queue/publish_batch", {"queue": "refused", "messages": [*bad, {"payload": 1}]})
    assert "message_id" in answer.data["items"][2]
    assert live.get("/v1/queue/get/refused").data["implicit"] is True


def test_messages_and_stats_call_the_head_of_a_group_ready(live: Caller) -> None:
    """The list, its filter, the one message and the numbers."""
    batch = [{"payload": n, "message_group_id": "g"} for n in range(3)]
    items = live.post("/v1/queue/publish_batch", {"queue": "order", "messages": batch}).data["items"]
    shown = live.get("/v1/queue/messages/order").data["items"]
    assert [item["state"] for item in shown] == ["ready", "waiting", "waiting"]
    ready = live.get("/v1/queue/messages/order?state=ready").data["items"]
    assert [item["message_id"] for item in ready] == [items[0]["message_id"]]
    assert live.get(f"/v1/queue/message/{items[0]['message_id']}").data["state"] == "ready"
    assert live.get(f"/v1/queue/message/{items[1]['message_id']}").data["state"] == "waiting"
    stats = live.get("/v1/queue/stats/order").data
    assert (stats["ready"], stats["waiting"]) == (1, 2)


def test_payloads_come_back_as_they_were_sent(live: Caller) -> None:
    """To the byte, through the store and back."""
    text = b'{"z":1,"a":12345678901234567890123,"z":1.10,"n":"\\u0000","e":"\xc3\xa9\\ud83d\\ude00"}'
    assert live.post("/v1/queue/publish", b'{"queue":"exact","payload":' + text + b"}").status == 200
    assert live.post("/v1/queue/consume", {"queue": "exact"}).body.count(text) == 2


def test_a_body_of_megabytes_is_read_beside_the_loop(live: Caller) -> None:
    """32 entries at the body limit under an idempotency key, and their replay."""
    entry = b'{"payload":"' + b"x" * (limits.BODY_BYTES_MAX - 2) + b'"}'
    body = b'{"queue":"large","messages":[' + b",".join([entry] * 32) + b"]}"
    replies = [live.post("/v1/queue/publish_batch", body, {"Idempotency-Key": "large"}) for _ in range(2)]
    assert len(replies[0].data["items"]) == 32
    assert replies[1].data == replies[0].data
    found = _consume(live, "large", max_messages=100, view="messages")
    assert 1 <= len(found) <= 32
    assert found[0]["payload"] == "x" * (limits.BODY_BYTES_MAX - 2)


def test_batches_answer_in_order_and_keep_the_valid(live: Caller) -> None:
    """One entry's fault is its own; a batch of acks likewise."""
    messages = [{"payload": 1}, {"payload": 2, "priority": 99}, {"shard": 3}]
    items = live.post("/v1/queue/publish_batch", {"queue": "many", "messages": messages}).data["items"]
    assert [sorted(item) for item in items] == [["message_id"], ["error"], ["message_id"]]
    assert items[1]["error"]["code"] == "LIMIT_EXCEEDED"
    found = _consume(live, "many", view="messages")
    assert [message["payload"] for message in found] == [1, {"shard": 3}]
    acks: list[Any] = [
        {"message_id": message["message_id"], "receipt_handle": message["receipt_handle"]}
        for message in found
    ]
    acks.insert(1, {"receipt_handle": "x"})
    done = live.post("/v1/queue/ack_batch", {"queue": "many", "items": acks}).data["items"]
    assert [item.get("acknowledged") for item in done] == [True, None, True]
    assert done[1]["error"]["http_status"] == 400


def test_idempotency_over_the_wire(live: Caller) -> None:
    """The first answer again; another request under the key is refused; nothing twice."""
    send = {"queue": "once", "payload": {"a": 1, "b": 2}}
    replies = [live.post("/v1/queue/publish", send, {"Idempotency-Key": "k"}) for _ in range(2)]
    assert replies[0].data == replies[1].data
    assert [reply.json["metadata"]["cache_hit"] for reply in replies] == [False, True]
    other = live.post("/v1/queue/publish", {**send, "payload": 2}, {"Idempotency-Key": "k"})
    assert (other.status, other.error["code"]) == (422, "IDEMPOTENCY_KEY_REUSED")
    assert len(_consume(live, "once")) == 1


def test_a_long_poll_gets_what_is_published_while_it_waits(live: Caller) -> None:
    """In less than its time."""
    found: list[Any] = []
    waiting = threading.Thread(target=lambda: found.extend(_consume(live, "poll", wait_seconds=10)))
    waiting.start()
    wait_for(lambda: live.get("/v1/queue/get/poll").status == 200, DEADLINE_SECONDS, "the waiting consumer")
    message_id = _publish(live, "poll")
    waiting.join(DEADLINE_SECONDS)
    assert [message["message_id"] for message in found] == [message_id]


def test_nothing_is_leased_to_a_client_that_left(live: Caller) -> None:
    """The first poller goes away; the next one gets the message at its first delivery or right after it."""
    _publish(live, "left-warm")
    body = json.dumps({"queue": "left", "wait_seconds": 10}).encode()
    with live.connect() as connection:
        connection.sendall(
            b"POST /v1/queue/consume HTTP/1.1\r\nhost: x\r\nauthorization: Bearer %s\r\n"
            b"content-length: %d\r\n\r\n%s" % (str(live.key).encode(), len(body), body)
        )
        wait_for(lambda: live.get("/v1/queue/get/left").status == 200, DEADLINE_SECONDS, "the poller")
    message_id = _publish(live, "left")
    (message,) = _consume(live, "left", wait_seconds=5)
    assert message["message_id"] == message_id


def test_purge_needs_its_token(live: Caller) -> None:
    """428 with the token and counts; with it, the messages are gone."""
    for n in range(3):
        _publish(live, "purged", n)
    asked = live.post("/v1/queue/purge/purged")
    assert (asked.status, asked.error["code"]) == (428, "CONFIRMATION_REQUIRED")
    token = asked.error["details"]["confirm"]
    assert live.post("/v1/queue/purge/purged", {"confirm": token, "reason": "test"}).data["purged"] == 3
    assert _consume(live, "purged") == []


def test_existing_programs_habits(live: Caller) -> None:
    """Re-created queues, constant keys, queues never created, GET with a body, escaped probes, bare ids."""
    for _ in range(4):
        assert live.post("/v1/queue/create", {"name": "habit"}, {"Idempotency-Key": "create"}).status == 200
    assert live.post("/v1/queue/create", {"name": "habit", "max_retries": 5}).status == 200
    differs = live.post("/v1/queue/create", {"name": "habit", "max_retries": 9})
    assert (differs.status, differs.error["code"]) == (409, "QUEUE_EXISTS")
    message_id = _publish(live, "never-created", "text")
    assert _consume(live, "never-created")[0]["payload"] == "text"
    assert live.post("/v1/queue/ack", {"queue": "never-created", "message_id": message_id}).data[
        "acknowledged"
    ]
    assert live.get("/v1/queue/stats/never-created", b'{"x":1}').status == 200
    probe = live.get("/v1/queue/stats/no%20such%2Fqueue")
    assert (probe.status, "not found" in probe.error["message"]) == (404, True)
    assert live.post("/v1/queue/pause/habit").data["state"] == "paused"
    assert live("DELETE", "/v1/queue/delete/habit").data["deleted"] is True
    gone = live.get("/v1/queue/get/habit")
    assert (gone.status, "not found" in gone.error["message"]) == (404, True)


def test_metrics_show_the_queue(live: Caller) -> None:
    """Section 6 of a real queue; readiness."""
    _publish(live, "measured")
    assert live.get("/readyz").status == 200
    wait_for(
        lambda: b'redrive_queue_ready{queue="measured"} 1.0' in live.get("/metrics").body,
        DEADLINE_SECONDS,
        "statistics that know the message",
    )


def _new_key(live: Caller, **fields: Any) -> dict[str, Any]:
    data: dict[str, Any] = live.post("/v1/account/keys/create", {"name": "n", **fields}).data
    return data


def _send(live: Caller, key: str, capability: Capability, queue: str) -> Reply:
    target, body = placed(capability)
    target = target.replace("/settlement", f"/{queue}")
    if "queue" in body or "name" in body:
        body = {**body, **{name: queue for name in ("queue", "name") if name in body}}
    return Caller(live.url, key)(capability.method, target, body if capability.method == "POST" else None)


BY_QUEUE = [
    capability
    for capability in CAPABILITIES
    if capability.id.startswith("queue.")
    and capability.id not in ("queue.list", "queue.message", "queue.ack_batch", "queue.ack")
]


@pytest.mark.parametrize("capability", BY_QUEUE, ids=lambda capability: capability.id)
def test_a_queue_outside_of_the_keys_patterns_is_not_found(live: Caller, capability: Capability) -> None:
    """404 and not 403, whether the queue exists or not."""
    _publish(live, "hidden")
    key = _new_key(live, scopes=["publish", "consume", "operate", "admin"], queues=["shown*"])
    for queue in ("hidden", "hidden-and-absent"):
        reply = _send(live, key["secret"], capability, queue)
        assert (reply.status, "not found" in reply.error["message"]) == (404, True), reply.body


def test_a_message_is_judged_by_its_own_queue(live: Caller) -> None:
    """Naming another queue in the request does not open a message."""
    message_id = _publish(live, "hidden")
    key = Caller(live.url, _new_key(live, scopes=["consume", "operate"], queues=["shown*"])["secret"])
    _publish(live, "shown")
    body = {"queue": "shown", "message_id": message_id}
    assert key.post("/v1/queue/cancel", body).status == 404
    assert key.post("/v1/queue/nack", body).status == 404
    assert key.get(f"/v1/queue/message/{message_id}").status == 404
    assert key.post("/v1/queue/ack", body).data == {"acknowledged": False}
    assert live.get(f"/v1/queue/message/{message_id}").data["state"] == "ready"
    names = [item["name"] for item in key.get("/v1/queue/list").data["items"]]
    assert "hidden" not in names


def test_revoked_and_expired_keys_are_401(live: Caller) -> None:
    """A rotated key lives beside the new one until it is revoked."""
    old = _new_key(live, scopes=["operate"])
    new = live.post(f"/v1/account/keys/rotate/{old['id']}").data
    for secret in (old["secret"], new["secret"]):
        assert Caller(live.url, secret).get("/v1/queue/list").status == 200
    assert live.post(f"/v1/account/keys/revoke/{old['id']}").data["revoked_at"]
    assert Caller(live.url, old["secret"]).get("/v1/queue/list").status == 401
    assert Caller(live.url, new["secret"]).get("/v1/queue/list").status == 200
    expired = _new_key(live, expires_at="2020-01-01T00:00:00Z")
    assert Caller(live.url, expired["secret"]).get("/v1/queue/list").status == 401
    listed = live.get("/v1/account/keys/list").body.decode()
    assert old["secret"] not in listed
    assert new["secret"] not in listed


_NUMBERS = [
    (capability.id, field, row["maximum"] + 1)
    for capability in CAPABILITIES
    for field, row in limits_of(capability).items()
    if "maximum" in row
]


@pytest.mark.parametrize(("capability_id", "field", "value"), _NUMBERS)
def test_a_number_above_its_limit_is_422_over_the_wire(
    live: Caller, capability_id: str, field: str, value: float
) -> None:
    """The envelope names field, limit and value, and nothing was done."""
    capability = capability_by_id(capability_id)
    target, body = placed(capability)
    if capability.method == "POST":
        reply = live.post(target, {**body, field: value})
    else:
        reply = live.get(f"{target.partition('?')[0]}?{field}={value}")
    assert (reply.status, reply.error["code"]) == (422, "LIMIT_EXCEEDED")
    assert reply.error["details"]["field"] == field
    assert reply.error["details"]["limit"] == value - 1
