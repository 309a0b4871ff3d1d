"""Policies, tombstones, the audit log over dictionaries; see ``storage.evidence_port`` for what each does."""

from __future__ import annotations

from collections.abc import Sequence

from redrive.storage.audit_chain import append
from redrive.storage.memory.select import policies_of
from redrive.storage.memory.tables import Tables
from redrive.storage.values import AuditHead, AuditRow, FingerprintRule, Tombstone


class MemoryEvidence:
    """The part of a transaction that keeps evidence."""

    _t: Tables

    def fingerprint_policies(self, queue_id: int) -> list[FingerprintRule]:
        return policies_of(self._t, queue_id)

    def put_fingerprint_policy(self, queue_id: int, rule: FingerprintRule) -> None:
        self._t.put(self._t.policies, (queue_id, rule.fingerprint), rule)

    def drop_fingerprint_policy(self, queue_id: int, fingerprint: str) -> None:
        self._t.drop(self._t.policies, (queue_id, fingerprint))

    def insert_tombstones(self, rows: Sequence[Tombstone]) -> None:
        for tombstone in rows:
            self._t.put(self._t.tombstones, tombstone.message_id, tombstone)

    def insert_audit(self, rows: Sequence[AuditRow]) -> None:
        head, chained = append([self._t.audit_head.get("", AuditHead())], rows)
        for row in chained:
            self._t.put(self._t.audit, row.id, row)
        self._t.put(self._t.audit_head, "", head)
