"""net/http: structs of a newer and an older program, with fields that this server does not know."""

from __future__ import annotations

from typing import Any

from tests.system.programs.manners import Go
from tests.system.programs.wire import Answer, tell

QUEUE = "tolerance"


def ignored(answer: Answer) -> Any:
    """What the answer says it ignored, None when it says nothing."""
    return answer.json["metadata"].get("ignored_fields")


def main() -> dict[str, Any]:
    """Unknown fields by default and in strict mode; nulls, which are no fields."""
    go = Go()
    job = {"queue": QUEUE, "payload": {"anything": {"goes": 1}}}
    strict = {"Prefer": "respond-async, handling=strict"}
    plain = go.call("POST", "/v1/queue/publish", job)
    newer = go.call("POST", "/v1/queue/publish", {**job, "tenant": "eu", "tags": [], "hint": None})
    created = go.call(
        "POST",
        "/v1/queue/create",
        {"name": QUEUE, "retry_policy": {"base_seconds": 3, "curve": "s"}, "owner": "x"},
    )
    refused = go.call("POST", "/v1/queue/publish", {**job, "delay_secs": 5}, strict)
    nulls = go.call("POST", "/v1/queue/publish", {**job, "tenant": None}, strict)
    entries = [{"payload": 1, "tenant": None, "body": None}, {"payload": 2, "job_key": None}]
    batch = go.call("POST", "/v1/queue/publish_batch", {"queue": QUEUE, "messages": entries, "mode": "fast"})
    taken = go.call("POST", "/v1/queue/consume", {"queue": QUEUE, "group": "workers", "max_messages": 100})
    acked = go.call(
        "POST",
        "/v1/queue/ack_batch",
        {"queue": QUEUE, "items": [{"message_id": m["message_id"], "at": 1} for m in taken.data["items"]]},
    )
    return {
        "plain": ignored(plain),
        "newer": ignored(newer),
        "created": ignored(created),
        "base_seconds": created.data["retry_policy"]["base_seconds"],
        "refused": (refused.status, refused.code, refused.json["error"]["details"]["field"]),
        "hint": refused.json["error"]["hint"],
        "nulls": (nulls.status, ignored(nulls)),
        "batch": [item.get("error", {}).get("message", "stored") for item in batch.data["items"]],
        "batch_ignored": ignored(batch),
        "consume_ignored": ignored(taken),
        "acked": {item.get("acknowledged") for item in acked.data["items"]} == {True},
        "acked_ignored": ignored(acked)[0],
    }


if __name__ == "__main__":
    tell(main())
