"""Rows of SQLite to values and back."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import msgspec

from redrive.domain.facts import Facts
from redrive.domain.policy import QueuePolicy
from redrive.storage.values import Attempt, DeadFilter, DeadLetter, Group, Queue, StoredMessage

FACTS_COLUMNS = len(Facts.__struct_fields__)
Row = Sequence[Any]


@lru_cache(maxsize=1024)
def policy_from(text: str) -> QueuePolicy:
    """A stored policy; a field that a newer version added has its default."""
    return msgspec.json.decode(text, type=QueuePolicy)


def policy_text(policy: QueuePolicy) -> str:
    """A policy as it is stored."""
    return msgspec.json.encode(policy).decode()


def queue_from(row: Row) -> Queue:
    """The columns of ``queues`` in their order."""
    number, name, kind, state, policy, dead, implicit, holds_dead, created_ms, tokens, tokens_at_ms = row
    return Queue(
        number, name, kind, state, policy_from(policy), dead, bool(implicit), bool(holds_dead), created_ms,
        tokens, tokens_at_ms,
    )  # fmt: skip


def queue_columns(queue: Queue) -> tuple[Any, ...]:
    """Every column of ``queues`` but the number."""
    return (
        queue.name, queue.kind, queue.state, policy_text(queue.policy), queue.dead_letter_queue,
        queue.implicit, queue.holds_dead, queue.created_ms, float(queue.tokens), queue.tokens_at_ms,
    )  # fmt: skip


def facts_from(row: Row) -> Facts:
    """The columns of ``Facts`` in their order."""
    facts = Facts(*row[:FACTS_COLUMNS])
    facts.cancelled, facts.dead = bool(facts.cancelled), bool(facts.dead)
    return facts


def group_from(row: Row) -> Group:
    """The columns of ``groups`` in their order."""
    return Group(*row)


def dead_from(row: Row) -> DeadLetter:
    """The columns of ``DeadLetter`` in their order."""
    record = DeadLetter(*row)
    record.blocks = bool(record.blocks)
    return record


def dead_columns(record: DeadLetter) -> tuple[Any, ...]:
    """The fields of a record in the order of the class."""
    return msgspec.structs.astuple(record)


def attempt_from(row: Row) -> Attempt:
    """The columns of ``Attempt`` in their order."""
    return Attempt(*row)


def stored_from(row: Row) -> StoredMessage:
    """Facts, queue name and state, group key, headers, body."""
    facts = facts_from(row)
    name, state, group_key, headers, body = row[FACTS_COLUMNS:]
    title = name.split("/", 2)[2] if state == "deleting" else name
    return StoredMessage(facts, title, group_key, headers, body, facts.body_hash)


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
        **more,
    }


def json_list(values: Sequence[Any]) -> str:
    """A list for ``json_each``."""
    return msgspec.json.encode(values).decode()
