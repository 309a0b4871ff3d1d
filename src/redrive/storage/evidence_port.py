"""The part of the engine protocol about failures and what stays of them: policies, tombstones, audit log."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from redrive.storage.values import AuditHead, AuditRow, Ending, FingerprintRule, StoredMessage, Tombstone


class EvidenceTransaction(Protocol):
    """Writing evidence."""

    def fingerprint_policies(self, queue_id: int) -> list[FingerprintRule]:
        """The queue's fingerprint policies, by fingerprint; the queue is locked, so that they stay."""
        ...

    def put_fingerprint_policy(self, queue_id: int, rule: FingerprintRule) -> None:
        """Set the policy of one fingerprint; the queue is held alone."""
        ...

    def drop_fingerprint_policy(self, queue_id: int, fingerprint: str) -> None:
        """Take it back, if it is there; the queue is held alone."""
        ...

    def insert_tombstones(self, rows: Sequence[Tombstone]) -> None:
        """Store tombstones."""
        ...

    def insert_audit(self, rows: Sequence[AuditRow]) -> None:
        """Append to the audit log, each row chained to the one before. It waits for any other batch that
        appends, so it is the last thing that a batch asks for: who holds the end of the chain waits for
        nobody."""
        ...


class EvidenceReader(Protocol):
    """Reading evidence."""

    def fingerprint_policies(self, queue_id: int) -> list[FingerprintRule]:
        """The queue's fingerprint policies, by fingerprint."""
        ...

    def tombstone(self, message_id: str) -> Tombstone | None:
        """What is left of a message that was removed unfinished."""
        ...

    def over_age(self, limit: int) -> list[StoredMessage]:
        """Dead letters not leased whose retention is over, oldest first."""
        ...

    def ending(self, until_ms: int, limit: int) -> list[Ending]:
        """Open dead letters whose retention ends until then, by source; of the first ``limit`` to end."""
        ...

    def audit_page(self, after_id: int, limit: int) -> list[AuditRow]:
        """Audit rows older than ``after_id`` (0: from the newest), newest first."""
        ...

    def audit_chain(self, after: int, limit: int) -> list[AuditRow]:
        """Audit rows with a number above ``after``, in the order of the chain."""
        ...

    def audit_head(self) -> AuditHead | None:
        """Where the chain ends; None when that is lost."""
        ...
