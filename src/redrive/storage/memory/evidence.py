"""Tombstones and the audit log over dictionaries; see ``storage.evidence_port`` for what each does."""

from __future__ import annotations

from collections.abc import Sequence

from redrive.storage.audit_chain import append
from redrive.storage.memory.tables import Tables
from redrive.storage.values import AuditHead, AuditRow, Tombstone


class MemoryEvidence:
    """The part of a transaction that keeps evidence."""

    _t: Tables

    def insert_tombstones(self, rows: Sequence[Tombstone]) -> None:
        for tombstone in rows:
            self._t.put(self._t.tombstones, tombstone.message_id, tombstone)

    def insert_audit(self, rows: Sequence[AuditRow]) -> None:
        head, chained = append([self._t.audit_head.get("", AuditHead())], rows)
        for row in chained:
            self._t.put(self._t.audit, row.id, row)
        self._t.put(self._t.audit_head, "", head)
