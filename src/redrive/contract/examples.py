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
    "policy": "retry",
}  # fmt: skip
_HELD: dict[str, Any] = {
    "queue": "settlement", "fingerprint": "9b1c7e0d2a4f6853", "policy": "hold",
    "reason": "no such payment: the ledger team looks", "actor": "ops", "set_at": _AT,
}  # fmt: skip
_ESTIMATE: dict[str, Any] = {
    "count": 12000, "serial_seconds": 3000, "seconds_at_envelope": 600.25, "spare_per_second": 24.5,
    "suggested_rate": 19.6, "bound": "rate_per_second", "complete": True,
}  # fmt: skip
_PLAN: dict[str, Any] = {
    "plan_id": _OTHER, "queue": "settlement", "state": "draft",
    "selection": {"fingerprint": "9b1c7e0d2a4f6853", "max_messages": 1000000}, "members": 12000,
    "members_sha256": "3b7e72edd9b2d6ef2f1e3d0a4f6d2c1b9a8f7e6d5c4b3a29180706f5e4d3c2b1",
    "envelope": {"rate_per_second": 20, "max_in_flight": 100, "ramp_seconds": 0},
    "abort": {
        "same_fingerprint": True, "failure_ratio": 0.3, "window_seconds": 60,
        "oldest_ready_age_seconds": None, "service_time_p95_ms": None, "dead_growth_per_minute": None,
    },
    "edit": None, "paused_by": None, "counts": {"pending": 12000}, "estimate": _ESTIMATE,
    "reason": "record corrected", "actor": "ops", "created_at": _AT, "started_at": None, "finished_at": None,
    "groups": None, "oldest_dead_at": None, "newest_dead_at": None,
}  # fmt: skip
_ITEM: dict[str, Any] = {
    "n": 0, "message_id": _ID, "job_key": _KEY, "fingerprint": "9b1c7e0d2a4f6853", "outcome": "dead_again",
    "sent_at": _AT, "finished_at": _LATER, "failures": 1, "detail": "rejected",
}  # fmt: skip
_PLAN_ID = {"plan_id": _OTHER}
_NO_STEP: dict[str, Any] = {
    "queue": None, "delivery": None, "attempt": None, "consumer_id": None, "leased_at": None, "end": None,
    "reason": None, "error": None, "fingerprint": None, "plan_id": None, "actor": None, "edit": None,
    "outcome": None, "detail": None,
}  # fmt: skip
_LINEAGE: dict[str, Any] = {
    "message_id": _ID, "job_key": _KEY, "queue": "settlement", "state": "gone", "message": None,
    "left_out": 0,
    "steps": [
        {**_NO_STEP, "at": _AT, "step": "published", "queue": "settlement"},
        {
            **_NO_STEP, "at": _LATER, "step": "attempt", "delivery": 1, "attempt": 1, "consumer_id": "n7",
            "leased_at": _AT, "end": "rejected", "error": _ERROR, "fingerprint": "9b1c7e0d2a4f6853",
        },
        {
            **_NO_STEP, "at": _LATER, "step": "dead", "queue": "settlement", "reason": "rejected",
            "error": _ERROR, "fingerprint": "9b1c7e0d2a4f6853",
        },
        {**_NO_STEP, "at": _LATER, "step": "redriven", "queue": "settlement", "plan_id": _OTHER},
        {**_NO_STEP, "at": _LATER, "step": "outcome", "plan_id": _OTHER, "outcome": "completed"},
    ],
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
            "redriven": 1, "plan_id": _OTHER, "skipped_count": 1,
            "skipped": [{
                "message_id": _OTHER, "reason": "in_use", "detail": "it is leased from the dead-letter queue",
            }],
        },
    ),
    "queue.dlq.policies": ({**_NAMED, "limit": 10}, _page(_HELD)),
    "queue.dlq.policy": (
        {name: _HELD[name] for name in ("queue", "fingerprint", "policy", "reason")}, _HELD,
    ),
    "redrive.plan.create": (
        {
            **_NAMED, "select": {"fingerprint": "9b1c7e0d2a4f6853"}, "reason": "record corrected",
            "envelope": {"rate_per_second": 20}, "abort": {"failure_ratio": 0.3},
        },
        _PLAN,
    ),
    "redrive.plan.list": ({"limit": 10}, _page(_PLAN)),
    "redrive.plan.get": (_PLAN_ID, _PLAN),
    "redrive.plan.items": ({**_PLAN_ID, "outcome": "dead_again"}, _page(_ITEM)),
    "redrive.plan.start": (_PLAN_ID, {**_PLAN, "state": "running", "started_at": _LATER}),
    "redrive.plan.pause": (
        {**_PLAN_ID, "reason": "provider is slow"},
        {
            **_PLAN, "state": "paused", "started_at": _AT,
            "paused_by": {
                "reason": "provider is slow", "at": _LATER, "actor": "ops", "rule": None, "limit": None,
                "seen": None,
            },
        },
    ),
    "redrive.plan.resume": (
        {**_PLAN_ID, "reason": "provider is back"},
        {**_PLAN, "state": "running", "started_at": _AT},
    ),
    "redrive.plan.abort": (
        {**_PLAN_ID, "reason": "wrong selection"},
        {**_PLAN, "state": "aborted", "finished_at": _LATER},
    ),
    "redrive.plan.resolve": (
        {**_PLAN_ID, "items": [{"message_id": _ID, "evidence": {"job_key": _KEY, "completed_at": _AT}}]},
        {"resolved": 1, "left": {}},
    ),
    "redrive.message": ({"message_id": _ID}, _LINEAGE),
    "redrive.job": (
        {"job_key": _KEY, "limit": 10},
        {"job_key": _KEY, "complete": True, **_page(_LINEAGE)},
    ),
    "redrive.estimate": ({**_NAMED, "select": {"reason": "rejected"}}, _ESTIMATE),
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
            "id": "17", "at": _AT, "actor": "ops", "action": "queue.pause",
            "queue": "settlement", "reason": "provider outage", "selection_sha256": None, "outcome": "done",
            "details": None, "on_behalf_of": "alice", "hash": "9f" * 32,
        }),
    ),
    "audit.verify": (
        {},
        {
            "rows": 17, "unchained": 0, "last_id": "17", "last_hash": "9f" * 32, "broken": None,
            "next_cursor": None,
        },
    ),
    "admin.backup": (
        {"name": "before-upgrade.db"},
        {"name": "before-upgrade.db", "bytes": 1048576, "finished_at": _LATER},
    ),
}  # fmt: skip
