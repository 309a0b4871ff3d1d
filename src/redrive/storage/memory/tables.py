"""Plain dictionaries with an undo log, so that a failed transaction leaves no trace."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import msgspec

from redrive.domain.facts import Facts
from redrive.storage.plans import Plan, PlanItem
from redrive.storage.values import (
    Attempt,
    AuditHead,
    AuditRow,
    DeadLetter,
    FingerprintRule,
    Group,
    KeyRow,
    Queue,
    Recorded,
    Tombstone,
)  # fmt: skip

K = TypeVar("K")
V = TypeVar("V")
_ABSENT: Any = object()


class Row(msgspec.Struct):
    """One stored message."""

    facts: Facts
    job_key: str | None
    headers: bytes | None
    body: bytes


class Tables:
    """Everything that the engine keeps."""

    def __init__(self) -> None:
        self.messages: dict[int, Row] = {}
        self.numbers: dict[str, int] = {}  # message id → number
        self.queues: dict[int, Queue] = {}
        self.policies: dict[tuple[int, str], FingerprintRule] = {}  # (queue id, fingerprint) → policy
        self.groups: dict[int, Group] = {}
        self.dead: dict[tuple[str, int], DeadLetter] = {}
        self.attempts: dict[tuple[str, int], Attempt] = {}
        self.tombstones: dict[str, Tombstone] = {}
        self.audit: dict[int, AuditRow] = {}
        self.audit_head: dict[str, AuditHead] = {}
        self.recorded: dict[tuple[int, bytes], Recorded] = {}
        self.duplicates: dict[tuple[int, bytes], tuple[str, int]] = {}
        self.stats: dict[tuple[int, str, int], bytes] = {}
        self.keys: dict[str, KeyRow] = {}
        self.plans: dict[int, Plan] = {}
        self.items: dict[tuple[int, int], PlanItem] = {}
        self.clock: dict[str, int] = {}
        self.last_number = 0
        self._undo: list[Callable[[], object]] = []

    def put(self, table: dict[K, V], key: K, value: V) -> None:
        """Set one entry; ``rollback`` takes it back."""
        old = table.get(key, _ABSENT)
        if old is _ABSENT:
            self._undo.append(lambda: table.pop(key, None))
        else:
            self._undo.append(lambda: table.__setitem__(key, old))
        table[key] = value

    def drop(self, table: dict[K, V], key: K) -> None:
        """Delete one entry, if it is there; ``rollback`` brings it back."""
        if key in table:
            old = table.pop(key)
            self._undo.append(lambda: table.__setitem__(key, old))

    def number(self) -> int:
        """The next number; numbers of a rolled back transaction are not used again."""
        self.last_number += 1
        return self.last_number

    def commit(self) -> None:
        """Keep what was done."""
        self._undo.clear()

    def rollback(self) -> None:
        """Undo what was done since the last commit, newest first."""
        while self._undo:
            self._undo.pop()()
