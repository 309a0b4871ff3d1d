"""The application's side: one effect a job, and the evidence for it, in the application's own database.

``Ledger().apply_once(connection, job_key, change)`` is its smallest use.
"""

from __future__ import annotations

from redrive.ledger.batch_records import (
    Batched,
    BatchMember,
    BatchRecord,
    BatchStatus,
    FollowUp,
    WindowDone,
    WindowRecord,
)
from redrive.ledger.errors import (
    BatchClosed,
    BatchDiffers,
    BatchNotFound,
    LeaseLost,
    LedgerError,
    LedgerNotInstalled,
    LedgerRetry,
    TransactionEnded,
    WindowBusy,
    WindowLost,
)
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
from redrive.ledger.window_calls import Window

__all__ = [
    "GENERATION_HEADER",
    "Applied",
    "AttemptRecord",
    "BatchClosed",
    "BatchDiffers",
    "BatchMember",
    "BatchNotFound",
    "BatchRecord",
    "BatchStatus",
    "Batched",
    "Completion",
    "Finding",
    "FollowUp",
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
    "Window",
    "WindowBusy",
    "WindowDone",
    "WindowLost",
    "WindowRecord",
]
