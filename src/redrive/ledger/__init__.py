"""The application's side: one effect a job, and the evidence for it, in the application's own database.

``Ledger().apply_once(connection, job_key, change)`` is its smallest use.
"""

from __future__ import annotations

from redrive.ledger.errors import LeaseLost, LedgerError, LedgerNotInstalled, LedgerRetry, TransactionEnded
from redrive.ledger.ledger import Ledger
from redrive.ledger.reconcile import Reconciliation, Summary
from redrive.ledger.records import (
    GENERATION_HEADER,
    Applied,
    AttemptRecord,
    Completion,
    Job,
    JobRecord,
    LedgerStatus,
    OutboxRow,
)
from redrive.ledger.repairs import Planned, Repaired
from redrive.ledger.spool import Finding

__all__ = [
    "GENERATION_HEADER",
    "Applied",
    "AttemptRecord",
    "Completion",
    "Finding",
    "Job",
    "JobRecord",
    "LeaseLost",
    "Ledger",
    "LedgerError",
    "LedgerNotInstalled",
    "LedgerRetry",
    "LedgerStatus",
    "OutboxRow",
    "Planned",
    "Reconciliation",
    "Repaired",
    "Summary",
    "TransactionEnded",
]
