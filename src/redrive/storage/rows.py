"""Rows of a SQL engine to values, in the column orders that every engine's statements share."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import msgspec

from redrive.domain.facts import Facts
from redrive.domain.policy import QueuePolicy
from redrive.storage.values import Attempt, DeadLetter, Group, Queue, StoredMessage

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
    number, name, kind, state, policy, dead, implicit, holds_dead, *rest = row
    return Queue(
        number, name, kind, state, policy_from(policy), dead, bool(implicit), bool(holds_dead), *rest
    )


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


def attempt_from(row: Row) -> Attempt:
    """The columns of ``Attempt`` in their order."""
    return Attempt(*row)


def stored_from(row: Row) -> StoredMessage:
    """Facts, queue name and state, group key, headers, body, whether at the head of its group."""
    facts = facts_from(row)
    name, state, group_key, headers, body, at_head = row[FACTS_COLUMNS:]
    title = name.split("/", 2)[2] if state == "deleting" else name
    return StoredMessage(facts, title, group_key, headers, body, facts.body_hash, bool(at_head))
