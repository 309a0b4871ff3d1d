"""The outbox relay: what the application planned in its transactions is published, once, then accepted.

Beside it the batches of the ledger are swept: deadlines, and what a completion should have planned.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Sequence
from dataclasses import replace
from itertools import groupby
from typing import Any

from redrive import seams
from redrive.domain.errors import RedriveError
from redrive.transports import Entry, Published, Transport
from redrive.worker import faults
from redrive.worker.pace import LOG_EVERY_SECONDS, Failure, Pace

_LOG = logging.getLogger("redrive.relay")
ROWS_MAX = 500
IDLE_SECONDS = 1.0
SWEEP_SECONDS = 5.0  # between two looks for batches that are due; each batch has a pace of its own
REFUSED_SECONDS = 60.0  # before a refused job is tried again: somebody must change something first


class Relay:
    """Moves planned jobs of ``ledger`` to ``transport``. Any number may run: a key folds their work."""

    def __init__(self, ledger: Any, transport: Transport, *, idle_seconds: float = IDLE_SECONDS) -> None:
        self._ledger = ledger
        self._transport = transport
        self._idle_seconds = idle_seconds
        self._said_at = -LOG_EVERY_SECONDS
        self.moved_at = self._said_at  # when it last published something
        self.empty_at: float | None = None  # when the last look that found nothing began
        self._swept_at = -SWEEP_SECONDS
        faults.arm()

    def loop(self, stopping: threading.Event) -> None:
        """Relay until ``stopping``."""
        pace = Pace(_LOG, "outbox relay", stopping)
        while not stopping.is_set():
            try:
                moved = self.once()
                self._sweep()
            except Exception as error:  # noqa: BLE001 - the ledger's driver has errors of its own
                pace.failed(error)
                continue
            pace.succeeded()
            if not moved:
                seams.wait(stopping, self._idle_seconds * (0.5 + seams.draw()))

    def once(self) -> int:
        """Publish one batch; how many jobs became accepted."""
        looked_at = seams.monotonic()
        rows = list(self._ledger.outbox.take(ROWS_MAX))
        accepted = []
        refusals: list[tuple[Any, RedriveError]] = []
        rows.sort(key=lambda row: row.queue)  # stable: within a queue the order stays
        for queue, group in groupby(rows, key=lambda row: row.queue):
            batch = list(group)
            results = self._publish(queue, batch)
            for row, result in zip(batch, results, strict=True):
                if isinstance(result, Published):
                    faults.point("relay_published", row.job_key)
                    accepted.append(replace(row, message_id=result.message_id))
                else:
                    refusals.append((row, result))
        if accepted:
            self._ledger.outbox.accepted(accepted)
        if refusals:
            self._ledger.outbox.give_back([row for row, _ in refusals], pause_seconds=REFUSED_SECONDS)
            self._say(refusals)
        if rows:
            self.moved_at = seams.monotonic()
        else:
            self.empty_at = looked_at
        return len(accepted)

    def _sweep(self) -> None:
        now = seams.monotonic()
        if now - self._swept_at < SWEEP_SECONDS:
            return
        self._swept_at = now + SWEEP_SECONDS * 0.5 * seams.draw()  # several relays look at other times
        self._ledger.sweep()

    def _publish(self, queue: str, batch: list[Any]) -> Sequence[Published | RedriveError]:
        try:
            return self._transport.publish(queue, [entry_of(row) for row in batch])
        except Failure as failure:
            if isinstance(failure, RedriveError) and not failure.retryable:
                return [failure] * len(batch)  # this queue refuses all of them; other queues may not
            self._ledger.outbox.give_back(batch)
            raise

    def _say(self, refusals: list[tuple[Any, RedriveError]]) -> None:
        now = seams.monotonic()
        if now - self._said_at < LOG_EVERY_SECONDS:
            return
        self._said_at = now
        row, refusal = refusals[0]
        _LOG.error(
            "%d planned jobs are refused by the queue, first %s: %s: %s",
            len(refusals), row.job_key, refusal.code, refusal.message,
        )  # fmt: skip


def entry_of(row: Any) -> Entry:
    """The message of an outbox row, under the key ``job_key#generation``."""
    return Entry(
        payload=row.payload,
        job_key=row.job_key,
        idempotency_key=row.idempotency_key,
        headers=dict(row.headers) or None,
        delay_seconds=row.delay_seconds,
        priority=row.priority,
        message_group_id=row.group,
        deduplication_id=row.deduplication_id,
    )
