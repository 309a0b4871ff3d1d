"""What an exercise has seen, for its claims and for a person who wants to see it too."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from redrive.exercise.options import JOBS, Names


@dataclass(slots=True)
class Evidence:
    """Collected while the exercise runs; ``late`` names what was waited for in vain.

    ``published``: the message ids of each job, by name. ``held`` and ``effects_at_stop``: messages in the
    queue and effects when the first consumer was dead. ``isolated``: the dead letters, with what the ledger
    said of the invalid job then. ``peak``: the queue's numbers when the backlog was at its worst, with
    consumers stopped. ``recovered_seconds``: from their restart until the oldest ready age was within the
    objective; None: not in time. Seconds are measured by a monotonic clock.
    """

    published: dict[str, list[str]] = field(default_factory=dict)
    killed: bool = False
    held: int = 0
    effects_at_stop: int = 0
    isolated: list[dict[str, Any]] = field(default_factory=list)
    isolated_state: str = ""
    effects_when_isolated: int = 0
    plan: dict[str, Any] = field(default_factory=dict)
    plan_items: list[dict[str, Any]] = field(default_factory=list)
    redriven_total: int = 0
    peak: dict[str, Any] = field(default_factory=dict)
    recovered_seconds: float | None = None
    drained_seconds: float | None = None
    age_after: float = 0.0
    effects: dict[str, int] = field(default_factory=dict)
    jobs: dict[str, dict[str, Any]] = field(default_factory=dict)
    left_in_queue: int = 0
    late: list[str] = field(default_factory=list)


def read_ledger(ledger: Any, names: Names) -> dict[str, dict[str, Any]]:
    """What the ledger has of the three jobs, by name: state, and message id and outcome of each attempt."""
    found = {}
    for name in JOBS:
        job = ledger.job(names.key(name))
        attempts = [row for row in ledger.attempts(names.key(name)) if not row.derived]
        found[name] = {
            "job_key": names.key(name),
            "state": "unknown" if job is None else job.state,
            "result": None if job is None else job.result,
            "attempts": [
                {"message_id": row.message_id, "delivery": row.delivery, "outcome": row.outcome}
                for row in attempts
            ],
        }
    return found
