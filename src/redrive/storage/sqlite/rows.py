"""Values as SQLite is given them; rows come back through ``storage.rows``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from redrive.storage.rows import policy_text
from redrive.storage.values import DeadFilter, DeadLetter, Queue


def queue_columns(queue: Queue) -> tuple[Any, ...]:
    """Every column of ``queues`` but the number."""
    return (
        queue.name, queue.kind, queue.state, policy_text(queue.policy), queue.dead_letter_queue,
        queue.implicit, queue.holds_dead, queue.created_ms, float(queue.tokens), queue.tokens_at_ms,
        queue.policy_count,
    )  # fmt: skip


def dead_columns(record: DeadLetter) -> tuple[Any, ...]:
    """The fields of a record in the order of the class."""
    return msgspec.structs.astuple(record)


def filter_parameters(select: DeadFilter, **more: Any) -> dict[str, Any]:
    """A filter as named parameters."""
    ids = None if select.message_ids is None else msgspec.json.encode(select.message_ids).decode()
    return {
        "queue": select.queue,
        "message_ids": ids,
        "reason": select.reason,
        "error_type": select.error_type,
        "fingerprint": select.fingerprint,
        "job_key": select.job_key,
        "since_ms": select.since_ms,
        "until_ms": select.until_ms,
        "attempts_min": select.attempts_min,
        "text": select.text,
        "without_held": select.without_held,
        **more,
    }


def json_list(values: Sequence[Any]) -> str:
    """A list for ``json_each``."""
    return msgspec.json.encode(values).decode()
