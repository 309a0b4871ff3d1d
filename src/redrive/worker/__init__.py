"""The processes on the application's side: lease, run, settle, and move the outbox.

One file a duty: ``leasing`` polls, ``holdings`` decides what may run, ``heartbeat`` keeps leases,
``execution`` runs a job to its outcome, ``settle`` tells the queue, ``relay`` publishes what was planned,
``shift`` starts and ends them.
"""

from __future__ import annotations

from redrive.worker.job import Job, Reject, RetryLater
from redrive.worker.loading import load
from redrive.worker.worker import Worker

__all__ = ["Job", "Reject", "RetryLater", "Worker", "load"]
