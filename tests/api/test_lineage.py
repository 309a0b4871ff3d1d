"""Plans and lineage over HTTP, on every engine: an edit, who acted, what was resolved, the whole story."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

from tests.api.wire import Caller

KEY = "settle/7%:é?"
TEXT = '{"amount": 12345678901234567890.50}'


def _die(live: Caller, queue: str, job_key: str) -> str:
    """A dead letter; its id."""
    request = {"queue": queue, "payload": {"pan": "4000", "amount": 1}, "job_key": job_key}
    live.post("/v1/queue/publish", request)
    [message] = live.post("/v1/queue/consume", {"queue": queue}).data["messages"]
    error = {"type": "Mismatch", "message": "no such payment"}
    live.post("/v1/queue/nack", {"message_id": message["message_id"], "permanent": True, "error": error})
    message_id: str = message["message_id"]
    return message_id


def _plan(live: Caller, queue: str, more: str) -> dict[str, Any]:
    """A started plan; ``more`` is JSON text."""
    fields = f'"queue":"{queue}","reason":"corrected","actor":"anna","envelope":{{"rate_per_second":1000}}'
    body = f"{{{fields},{more}}}"
    made = live.post("/v1/redrive/plan", body.encode())
    assert made.status == 200, made.error
    plan: dict[str, Any] = live.post(f"/v1/redrive/plan/{made.data['plan_id']}/start", {"actor": "bob"}).data
    return plan


def test_an_edit_and_its_lineage(live: Caller) -> None:
    """The patch reaches the payload with its own numbers; the story is found by id and by job key."""
    message_id = _die(live, "story", KEY)
    plan = _plan(live, "story", f'"select":{{"message_ids":["{message_id}"]}},"edit":{TEXT}')
    assert plan["actor"].endswith("(anna)")
    [message] = live.post("/v1/queue/consume", {"queue": "story", "wait_seconds": 10}).data["messages"]
    assert message["redrive"] == {"plan_id": plan["plan_id"], "count": 1}
    answer = live.get(f"/v1/queue/message/{message_id}")
    assert b'"payload":{"pan":"4000","amount":12345678901234567890.50}' in answer.body
    assert answer.data["redrive"]["plan_id"] == plan["plan_id"]
    live.post("/v1/queue/ack", {"queue": "story", "message_id": message_id})
    assert live.get(f"/v1/queue/message/{message_id}").status == 404
    found = live.get(f"/v1/redrive/message/{message_id}")
    story = found.data
    assert [step["step"] for step in story["steps"] if step["step"] != "closed"] == [
        *("published", "attempt", "dead", "planned", "redriven", "outcome"),
    ]
    assert f'"edit":{TEXT}'.encode() in found.body
    by_key = live.get(f"/v1/redrive/job/{quote(KEY, safe='')}").data
    assert (by_key["items"], by_key["complete"], by_key["next_cursor"]) == ([story], True, None)
    assert live.get("/v1/redrive/job/nobody").status == 404
    assert live.get("/v1/redrive/message/nobody").status == 404
    rows = live.get("/v1/audit/list?queue=story").data["items"]
    named = [(row["action"], row["actor"].partition(" ")[2]) for row in rows]
    assert ("plan.start", "(bob)") in named
    assert ("plan.create", "(anna)") in named


def test_redacted_fields_stay_out(live: Caller) -> None:
    """Neither the payload nor the patch shows them, dead or alive."""
    live.post("/v1/queue/create", {"name": "masked", "redact": ["pan"]})
    message_id = _die(live, "masked", "k")
    _plan(live, "masked", f'"select":{{"message_ids":["{message_id}"]}},"edit":{{"pan":"4111","n":2}}')
    live.post("/v1/queue/consume", {"queue": "masked", "wait_seconds": 10})
    found = live.get(f"/v1/redrive/message/{message_id}")
    assert found.data["message"]["payload"] == {"pan": "***", "amount": 1, "n": 2}
    [edit] = [step["edit"] for step in found.data["steps"] if step["edit"] is not None]
    assert edit == {"pan": "***", "n": 2}
    assert b"4000" not in found.body
    assert b"4111" not in found.body


def test_what_was_done_before_is_resolved(live: Caller) -> None:
    """On the word of the key: a tombstone, nothing is sent; the second time it is only told so."""
    message_id = _die(live, "resolved", "r:1")
    select = {"message_ids": [message_id]}
    plan = live.post("/v1/redrive/plan", {"queue": "resolved", "reason": "x", "select": select}).data
    evidence = {"job_key": "r:1", "completed_at": "2026-10-23T02:00:00Z", "result_hash": "ab"}
    request = {"items": [{"message_id": message_id, "evidence": evidence}], "actor": "anna"}
    path = f"/v1/redrive/plan/{plan['plan_id']}/resolve"
    assert live.post(path, request).data == {"resolved": 1, "left": {}}
    assert live.post(path, request).data == {"resolved": 0, "left": {message_id: "already_completed"}}
    story = live.get(f"/v1/redrive/message/{message_id}").data
    assert (story["state"], story["steps"][-1]["reason"]) == ("gone", "already_completed")
    [outcome] = [step for step in story["steps"] if step["step"] == "outcome"]
    assert (outcome["outcome"], outcome["plan_id"]) == ("already_completed", plan["plan_id"])
    assert "(anna)" in outcome["detail"]
    assert live.get("/v1/redrive/job/r%3A1").data["items"] == [story]
