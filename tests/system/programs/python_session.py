"""requests: one session for a whole batch run, bodies on GET and DELETE, late acks, a key on every call."""

from __future__ import annotations

from typing import Any

from tests.system.programs.manners import Requests
from tests.system.programs.wire import tell

QUEUE = "session"
GONE = "019a1f3c-5a10-7000-8000-00000000002a"
ENTRIES: list[Any] = [
    "a bare text",
    7,
    {"shard": 3},
    {"payload": {"shard": 4}, "job_key": "shard:4"},
    {"body": [1, 2.5, None]},
    {"payload": 1, "shard": 5},
    None,
]


def main() -> dict[str, Any]:
    """Publish a batch, read it as ``items``, settle it in batches, look and delete with bodies."""
    session = Requests()
    published = session.call(
        "POST",
        "/v1/queue/publish_batch",
        {"queue": QUEUE, "messages": ENTRIES},
        {"Idempotency-Key": "session-batch"},
    ).data["items"]
    constant = {"Idempotency-Key": "the same on every call"}
    first = session.call("POST", "/v1/queue/consume", {"queue": QUEUE, "max_messages": 4}, constant).data
    second = session.call("POST", "/v1/queue/consume", {"queue": QUEUE, "max_messages": 4}, constant).data
    taken = first["items"] + second["items"]
    settled = [{"message_id": m["message_id"], "receipt_handle": m["receipt_handle"]} for m in taken]
    unknown = [{"message_id": GONE}, {"message_id": GONE, "receipt": "never given"}, {"message_id": "x"}]
    acked = session.call(
        "POST", "/v1/queue/ack_batch", {"queue": QUEUE, "items": settled[:3] + unknown}, constant
    )
    late = session.call("POST", "/v1/queue/ack_batch", {"queue": QUEUE, "items": [*settled, {}]}, constant)
    looked = session.call("GET", f"/v1/queue/get/{QUEUE}", {"queue": "another", "name": 3})
    listed = session.call("GET", "/v1/queue/list?limit=1000&cursor=", {"cursor": "ignored"})
    deleted = session.call("DELETE", f"/v1/queue/delete/{QUEUE}", {"force": True})
    return {
        "stored": ["message_id" in item for item in published],
        "refused": published[5]["error"]["code"],
        "views_agree": first["messages"] == first["items"] and second["messages"] == second["items"],
        "distinct": len({message["message_id"] for message in taken}),
        "payloads": [message["payload"] for message in taken],
        "job_key": next(m["job_key"] for m in taken if m["payload"] == {"shard": 4}),
        "acked": [item.get("acknowledged") for item in acked.data["items"]],
        "late": [item.get("acknowledged", item.get("error", {}).get("code")) for item in late.data["items"]],
        "looked": looked.data["name"],
        "listed": QUEUE in [item["name"] for item in listed.data["items"]],
        "deleted": deleted.data["deleted"],
        "gone": (answer := session.call("GET", f"/v1/queue/get/{QUEUE}")).status,
        "gone_error": answer.json["error"],
        "connections": session.connection.opened,
    }


if __name__ == "__main__":
    tell(main())
