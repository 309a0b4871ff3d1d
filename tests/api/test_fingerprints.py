"""Fingerprint policies over the wire."""

from __future__ import annotations

import pytest

from redrive.domain import limits
from redrive.domain.fingerprint import fingerprint
from tests.api.wire import Caller

BAD = fingerprint("Boom", "payment 7 is unknown")


def _failed(live: Caller, queue: str, number: int) -> str:
    """A new message whose first delivery fails; where it is then. It does not come back in this test."""
    live.post("/v1/queue/publish", {"queue": queue, "payload": number})
    (message,) = live.post("/v1/queue/consume", {"queue": queue, "view": "messages"}).data["messages"]
    error = {"type": "Boom", "message": f"payment {number} is unknown"}
    handle = {"message_id": message["message_id"], "receipt_handle": message["receipt_handle"]}
    return str(live.post("/v1/queue/nack", {**handle, "error": error, "delay_seconds": 600}).data["state"])


def test_a_policy_over_the_wire(live: Caller) -> None:
    """Set with POST, seen with GET and in the groups, refused with field, limit and value."""
    assert _failed(live, "judged", 1) == "delayed"
    path = "/v1/queue/dlq/policy/judged"
    done = live.post(path, {"fingerprint": BAD, "policy": "reject", "reason": "no such payment"})
    assert (done.status, done.data["policy"], done.data["reason"]) == (200, "reject", "no such payment")
    assert _failed(live, "judged", 2) == "dead"
    assert live.get(path).data == {"items": [done.data], "next_cursor": None}
    (group,) = live.get("/v1/queue/dlq/groups/judged").data["items"]
    assert (group["fingerprint"], group["count"], group["policy"]) == (BAD, 1, "reject")
    assert live.post(path, {"fingerprint": BAD, "policy": "retry"}).data["policy"] == "retry"
    assert _failed(live, "judged", 3) == "delayed"


@pytest.mark.parametrize(
    ("fields", "status", "said"),
    [
        ({"policy": "hold"}, 400, "fingerprint is required"),
        ({"fingerprint": BAD}, 400, "policy is required"),
        ({"fingerprint": BAD, "policy": "drop"}, 400, "policy must be one of 'retry', 'reject', 'hold'"),
        (
            {"fingerprint": "x", "policy": "hold"},
            400,
            "fingerprint must be 16 digits of 0-9 and a-f, got 'x'",
        ),
        (
            {"fingerprint": "0" * 17, "policy": "hold"},
            422,
            "fingerprint must be at most 16 characters, got 17",
        ),
        (
            {"fingerprint": BAD, "policy": "hold", "reason": "x" * (limits.REASON_CHARS_MAX + 1)},
            422,
            "reason must be at most 500 characters, got 501",
        ),
    ],
)
def test_bad_input(live: Caller, fields: dict[str, str], status: int, said: str) -> None:
    """Each names the field, the limit and what came."""
    live.post("/v1/queue/create", {"name": "judged"})
    answer = live.post("/v1/queue/dlq/policy/judged", fields)
    assert answer.status == status
    assert said in answer.error["message"]


def test_one_more_than_a_queue_takes(live: Caller) -> None:
    """422 with the limit and the number; the last that fits is fine (control)."""
    live.post("/v1/queue/create", {"name": "full"})
    for n in range(limits.FINGERPRINT_POLICIES_MAX):
        fields = {"fingerprint": f"{n:016x}", "policy": "hold"}
        assert live.post("/v1/queue/dlq/policy/full", fields).status == 200
    answer = live.post("/v1/queue/dlq/policy/full", {"fingerprint": BAD, "policy": "hold"})
    assert (answer.status, answer.error["code"]) == (422, "LIMIT_EXCEEDED")
    assert answer.error["details"] == {"field": "fingerprint", "limit": 100, "actual": 101}


def test_what_is_not_there(live: Caller) -> None:
    """An unknown queue is 404, a dead-letter queue 409."""
    fields = {"fingerprint": BAD, "policy": "hold"}
    assert live.post("/v1/queue/dlq/policy/nowhere", fields).status == 404
    assert live.get("/v1/queue/dlq/policy/nowhere").status == 404
    live.post("/v1/queue/create", {"name": "sided"})
    live.post("/v1/queue/dlq/policy/sided", {"fingerprint": BAD, "policy": "hold"})
    _failed(live, "sided", 7)
    answer = live.post("/v1/queue/dlq/policy/sided.dlq", fields)
    assert (answer.status, answer.error["code"]) == (409, "CONFLICT")
