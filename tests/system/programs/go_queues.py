"""net/http: a deployment that creates its queues at every start, and what that must not change."""

from __future__ import annotations

from typing import Any

from tests.system.programs.manners import Go
from tests.system.programs.wire import Answer, tell

QUEUE = "deployed"
WANTED = {
    "name": QUEUE,
    "type": "standard",
    "max_retries": 3,
    "visibility_timeout_default": 60,
    "message_retention_days": 7,
    "retry_policy": {"base_seconds": 2},
    "dead_letter_queue": None,
    "redact": None,
}


def seen(answer: Answer) -> tuple[Any, ...]:
    """The status, and the code or the record's age."""
    return answer.status, answer.code or answer.data["created_at"]


def main() -> dict[str, Any]:
    """Create, create again in several words, conflict, update, delete and create anew."""
    go = Go()

    def create(fields: dict[str, Any], key: str | None = None) -> Answer:
        return go.call("POST", "/v1/queue/create", fields, {"Idempotency-Key": key} if key else {})

    first = create(WANTED)
    same = [
        create(WANTED),
        create({"name": QUEUE}),
        create({"queue": QUEUE, "retention_seconds": 604_800}),
        create({"name": QUEUE, "retry_policy": {"factor": 2, "base_seconds": 2}, "max_in_flight": None}),
    ]
    other = create({**WANTED, "max_retries": 4, "type": "fifo"})
    updated = go.call("POST", "/v1/queue/update", {"name": QUEUE, "max_retries": 4})
    old = create(WANTED)
    new = create({**WANTED, "max_retries": 4})
    keyed = [create(WANTED | {"name": "deployed-2"}, "deploy") for _ in range(2)]
    reused = create({"name": "deployed-2", "max_retries": 9}, "deploy")
    go.call("DELETE", "/v1/queue/delete/deployed-2").data  # noqa: B018
    made_anew = create(WANTED | {"name": "deployed-2"}, "deploy")
    deleted = go.call("DELETE", f"/v1/queue/delete/{QUEUE}")
    anew = create({"name": QUEUE, "type": "fifo", "max_retries": 9})
    go.call("POST", "/v1/queue/publish", {"queue": "deployed-3", "payload": 1}).data  # noqa: B018
    implicit = go.call("GET", "/v1/queue/get/deployed-3").data
    applied = create({"name": "deployed-3", "max_retries": 1}).data
    return {
        "first": seen(first),
        "retention_seconds": first.data["retention_seconds"],
        "same": [seen(answer) for answer in same],
        "other": seen(other),
        "differences": sorted(
            name for name in ("max_retries", "type", "name") if name in other.json["error"]["message"]
        ),
        "updated": updated.data["max_retries"],
        "old": seen(old),
        "new": seen(new),
        "keyed": [(answer.status, answer.cache_hit) for answer in keyed],
        "reused": seen(reused),
        "made_anew": (made_anew.status, made_anew.cache_hit),
        "deleted": deleted.data["deleted"],
        "anew": (anew.status, anew.data["type"], anew.data["max_retries"]),
        "implicit": (implicit["implicit"], implicit["max_retries"]),
        "applied": (applied["implicit"], applied["max_retries"]),
    }


if __name__ == "__main__":
    tell(main())
