"""A runnable request and its answer's data for every capability; path parameters are among the fields."""

from __future__ import annotations

from typing import Any

_ID = "019a1f3c-5a10-7000-8000-00000000002a"
_OTHER = "019a1f3c-5a10-7000-8000-00000000002b"
_HANDLE = "d1.4mLx0u9pQb2nRk7v"
_AT = "2026-10-23T02:00:00.000Z"
_LATER = "2026-10-23T02:00:30.000Z"
_PAYLOAD = {"shard": 7, "date": "2026-10-23"}
_KEY = "settlement:2026-10-23:7"
_ERROR = {"type": "LedgerMismatch", "message": "no such payment", "stack": ""}

_RECORD: dict[str, Any] = {
    "name": "settlement", "type": "standard", "dead_letter_queue": "settlement.dlq", "max_retries": 5,
    "retention_seconds": 1209600, "message_retention_days": 14, "visibility_timeout_default": 30,
    "enable_priority": False,
    "retry_policy": {"base_seconds": 1, "factor": 2, "max_seconds": 900, "jitter": True},
    "fifo_on_dead": "block", "content_deduplication": False, "max_in_flight": None, "max_per_second": None,
    "max_lease_seconds": 43200, "max_redrives": 10, "redrive_policy": "free",
    "require_receipt_handle": False, "redact": [], "created_at": _AT, "implicit": False, "state": "active",
}  # fmt: skip
_DELIVERED: dict[str, Any] = {
    "message_id": _ID, "job_key": _KEY, "payload": _PAYLOAD, "receipt_handle": _HANDLE, "attempt": 1,
    "delivery": 1, "previous": None, "enqueued_at": _AT, "lease_expires_at": _LATER,
    "message_group_id": None, "priority": 0, "headers": {}, "redrive": None,
}  # fmt: skip
_SEEN: dict[str, Any] = {
    "message_id": _ID, "job_key": _KEY, "queue": "settlement", "state": "ready", "payload": _PAYLOAD,
    "attempt": 0, "delivery": 0, "previous": None, "enqueued_at": _AT, "visible_at": _AT,
    "lease_expires_at": None, "expires_at": "2026-11-06T02:00:00.000Z", "message_group_id": None,
    "priority": 0, "headers": {}, "redrive": None,
}  # fmt: skip
_STATS: dict[str, Any] = {
    "queue": "settlement", "ready": 12, "delayed": 0, "leased": 3, "waiting": 0, "dead": 1,
    "oldest_ready_age_seconds": 1.4, "oldest_dead_age_seconds": 3600, "dead_per_minute": 0,
    "attempts": {"1": 14, "2": 1}, "attempts_settled": {"1": 11985}, "published_total": 12000,
    "acked_total": 11984, "dead_total": 1, "redriven_total": 0, "expired_total": 0,
    "service_time_ms": {"p50": 12, "p95": 40, "p99": 95}, "consumers": 3, "arrivals_per_minute": 200,
    "unfenced_settles_total": 0, "blocked_groups": 0, "paused": False,
}  # fmt: skip
_DEAD: dict[str, Any] = {
    "message_id": _ID, "job_key": _KEY, "queue": "settlement.dlq", "payload": _PAYLOAD, "attempt": 6,
    "delivery": 6, "enqueued_at": _AT, "message_group_id": None, "priority": 0, "headers": {},
    "reason": "rejected", "error": _ERROR, "fingerprint": "9b1c7e0d2a4f6853", "attempts": 6,
    "first_failed_at": _AT, "dead_at": _LATER, "expires_at": "2026-11-22T02:00:30.000Z",
    "redrive_count": 0, "origin": "settlement",
}  # fmt: skip
_GROUP: dict[str, Any] = {
    "fingerprint": "9b1c7e0d2a4f6853", "count": 1, "first_dead_at": _LATER, "last_dead_at": _LATER,
    "reason": "rejected", "error": _ERROR, "sample_message_id": _ID, "sample_job_key": _KEY,
}  # fmt: skip
_KEY_RECORD: dict[str, Any] = {
    "id": "key_5a10", "name": "night workers", "scopes": ["consume"], "queues": ["settlement*"],
    "created_at": _AT, "expires_at": None, "revoked_at": None, "last_used_at": None,
}  # fmt: skip
_LEASE = {"queue": "settlement", "message_id": _ID, "receipt_handle": _HANDLE}
_NAMED = {"queue": "settlement"}


def _page(item: dict[str, Any]) -> dict[str, Any]:
    return {"items": [item], "next_cursor": None}


EXAMPLES: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "queue.create": ({"name": "settlement", "max_retries": 5}, _RECORD),
    "queue.update": ({"name": "settlement", "max_in_flight": 50}, {**_RECORD, "max_in_flight": 50}),
    "queue.list": ({"limit": 100}, _page(_RECORD)),
    "queue.get": (_NAMED, _RECORD),
    "queue.delete": (_NAMED, {"deleted": True, "messages": 15, "leased": 3}),
    "queue.pause": ({**_NAMED, "reason": "provider outage"}, {**_RECORD, "state": "paused"}),
    "queue.resume": ({**_NAMED, "reason": "provider is back"}, _RECORD),
    "queue.purge": ({**_NAMED, "confirm": "purge-6f2d"}, {"purged": 15}),
    "queue.stats": (_NAMED, _STATS),
    "queue.messages": ({**_NAMED, "state": "ready", "limit": 10}, _page(_SEEN)),
    "queue.message": ({"message_id": _ID}, {**_SEEN, "attempts": [], "lineage": []}),
    "queue.publish": (
        {**_NAMED, "payload": _PAYLOAD, "job_key": _KEY, "idempotency_key": _KEY},
        {"message_id": _ID, "duplicate": False},
    ),
    "queue.publish_batch": (
        {**_NAMED, "messages": [{"payload": _PAYLOAD, "job_key": _KEY}, {"shard": 8}]},
        {"items": [{"message_id": _ID}, {"message_id": "019a1f3c-5a10-7000-8000-00000000002b"}]},
    ),
    "queue.consume": (
        {**_NAMED, "max_messages": 10, "visibility_timeout": 30, "wait_seconds": 20},
        {"messages": [_DELIVERED], "items": [_DELIVERED], "lease_seconds": 30},
    ),
    "queue.ack": (_LEASE, {"acknowledged": True}),
    "queue.ack_batch": (
        {**_NAMED, "items": [{"message_id": _ID, "receipt_handle": _HANDLE}]},
        {"items": [{"acknowledged": True}]},
    ),
    "queue.nack": (
        {**_LEASE, "error": {"type": "TimeoutError", "message": "provider did not answer"}},
        {"state": "delayed", "visible_at": _LATER, "attempts_left": 5},
    ),
    "queue.extend": (
        {**_LEASE, "visibility_timeout": 60},
        {"lease_expires_at": "2026-10-23T02:01:00.000Z", "lease_seconds": 60},
    ),
    "queue.release": (_LEASE, {"state": "ready"}),
    "queue.dead_letter": ({**_LEASE, "reason": "no such payment", "error": _ERROR}, {"state": "dead"}),
    "queue.cancel": ({**_NAMED, "message_id": _ID}, {"cancelled": True, "requested": False}),
    "queue.dlq.list": ({**_NAMED, "reason": "rejected", "limit": 10}, _page(_DEAD)),
    "queue.dlq.groups": (_NAMED, _page(_GROUP)),
    "queue.dlq.redrive": (
        {**_NAMED, "message_ids": [_ID, _OTHER], "reason": "record corrected"},
        {
            "redriven": 1, "plan_id": None, "skipped_count": 1,
            "skipped": [{
                "message_id": _OTHER, "reason": "in_use", "detail": "it is leased from the dead-letter queue",
            }],
        },
    ),
    "account.keys.create": (
        {"name": "night workers", "scopes": ["consume"], "queues": ["settlement*"]},
        {**_KEY_RECORD, "secret": "rdk_<shown once>"},
    ),
    "account.keys.list": ({"limit": 100}, _page(_KEY_RECORD)),
    "account.keys.rotate": ({"id": "key_5a10"}, {**_KEY_RECORD, "secret": "rdk_<shown once>"}),
    "account.keys.revoke": (
        {"id": "key_5a10", "reason": "left the team"},
        {**_KEY_RECORD, "revoked_at": _LATER},
    ),
    "audit.list": (
        {"limit": 10},
        _page({
            "id": "019a1f3c-5a10-7000-8000-0000000000a1", "at": _AT, "actor": "ops", "action": "queue.pause",
            "queue": "settlement", "reason": "provider outage", "selection_sha256": None, "outcome": "done",
            "details": None,
        }),
    ),
    "admin.backup": (
        {"name": "before-upgrade.db"},
        {"name": "before-upgrade.db", "bytes": 1048576, "finished_at": _LATER},
    ),
}  # fmt: skip
