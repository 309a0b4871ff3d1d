"""Settles what handlers did: acknowledgements after the commit and in batches, failures one by one."""

from __future__ import annotations

import logging
import threading
from typing import Any

from redrive import seams
from redrive.domain import limits
from redrive.domain.errors import NotFound, RedriveError, StaleReceipt
from redrive.transports import Nacked, Transport, Unreachable
from redrive.worker import faults
from redrive.worker.holdings import Held, Holdings
from redrive.worker.job import Job
from redrive.worker.outcome import Outcome
from redrive.worker.pace import Pace, repeatable

_LOG = logging.getLogger("redrive.worker")
LATE_ACK_SECONDS = 3_600.0  # an ack is welcome after the lease's end too: it spares a delivery
PENDING_MAX = 10_000


class Settler:
    """One worker's settlements. Each batch of acks takes what gathered while the last was on its way."""

    def __init__(
        self, transport: Transport, queue: str, holdings: Holdings, ledger: Any, stopped: threading.Event
    ) -> None:
        self._transport = transport
        self._queue = queue
        self._holdings = holdings
        self._ledger = ledger
        self._stopped = stopped
        self._pending: list[tuple[Held, float]] = []
        self._changed = threading.Condition()
        self._pace = Pace(_LOG, "ack", stopped)

    def done(self, held: Held) -> None:
        """The effect of ``held`` is committed: acknowledge it with the next batch."""
        held.committed = True
        self._holdings.settling(held)
        with self._changed:
            if len(self._pending) >= PENDING_MAX:
                dropped, _ = self._pending.pop(0)
                self._holdings.drop(dropped)
                _LOG.warning("ack of %s dropped: %d wait already", dropped.item[0], PENDING_MAX)
            self._pending.append((held, seams.monotonic() + LATE_ACK_SECONDS))
            self._changed.notify_all()

    def loop(self) -> None:
        """Send batches until stopped and empty."""
        while (batch := self._next()) is not None:
            try:
                left = self._send(batch)
            except Exception as error:  # noqa: BLE001 - acks go on whatever happened to one batch
                left = self._patient(batch)
                if not (isinstance(error, RedriveError | Unreachable) and repeatable(error)):
                    _LOG.exception("acks failed")
                if self._pace.failed(error):
                    self._give_up(left)
                    return
            with self._changed:
                self._pending[:0] = left
                self._changed.notify_all()

    def _next(self) -> list[tuple[Held, float]] | None:
        with self._changed:
            while not self._pending:
                if self._stopped.is_set():
                    return None
                self._changed.wait(0.5)
            batch = self._pending[: limits.BATCH_ENTRIES_MAX]
            del self._pending[: len(batch)]
            return batch

    def _send(self, batch: list[tuple[Held, float]]) -> list[tuple[Held, float]]:
        results = self._transport.ack(self._queue, [held.item for held, _ in batch])
        self._pace.succeeded()
        left = []
        for (held, patience), result in zip(batch, results, strict=True):
            faults.point("after_ack_sent", held.delivery.job_key)
            if isinstance(result, RedriveError) and result.retryable and seams.monotonic() < patience:
                left.append((held, patience))
                continue
            if isinstance(result, RedriveError):
                _LOG.info("ack of %s was refused: %s", held.item[0], result.message)
            elif not result:
                _LOG.info("ack of %s: it was gone already", held.item[0])
            self._holdings.drop(held)
        return left

    def _patient(self, batch: list[tuple[Held, float]]) -> list[tuple[Held, float]]:
        now = seams.monotonic()
        self._give_up([(held, patience) for held, patience in batch if patience <= now])
        return [(held, patience) for held, patience in batch if patience > now]

    def _give_up(self, batch: list[tuple[Held, float]]) -> None:
        for held, _ in batch:
            _LOG.warning("ack of %s was never answered; the job may come again", held.item[0])
            self._holdings.drop(held)

    def failed(self, held: Held, job: Job, outcome: Outcome) -> None:
        """Nack or reject ``held``, repeating until its lease ends; then write it into the ledger."""
        self._holdings.settling(held)
        faults.point("in_nack", job.key)
        try:
            nacked = self._nack(held, outcome)
        finally:
            self._holdings.drop(held)
        if self._ledger is not None:
            self._write_down(job, outcome, isolated=nacked is not None and nacked.state == "dead")

    def _write_down(self, job: Job, outcome: Outcome, *, isolated: bool) -> None:
        pace = Pace(_LOG, f"writing down the failure of {job.key}", self._stopped)
        for last in (False, False, True):
            try:
                self._ledger.failed(job, outcome.kind, outcome.info, isolated=isolated)
                return
            except Exception as error:  # noqa: BLE001 - the ledger learns the gap from the next delivery
                if last:
                    _LOG.exception("the failure of %s is not in the ledger", job.key)
                elif pace.failed(error):
                    return

    def _nack(self, held: Held, outcome: Outcome) -> Nacked | None:
        pace = Pace(_LOG, f"settling {held.item[0]}", self._stopped)
        while not held.revoked:
            try:
                return self._nack_once(held, outcome)
            except (StaleReceipt, NotFound) as refusal:
                _LOG.info("%s was not settled, its lease is over: %s", held.item[0], refusal.message)
                return None
            except (RedriveError, Unreachable) as failure:
                if not repeatable(failure):
                    _LOG.warning("%s was not settled: %s", held.item[0], failure)
                    return None
                if pace.failed(failure):
                    return None
        return None

    def _nack_once(self, held: Held, outcome: Outcome) -> Nacked:
        if outcome.kind == "undecodable":
            self._transport.dead_letter(self._queue, *held.item, reason="undecodable", error=outcome.error)
            return Nacked("dead")
        return self._transport.nack(
            self._queue,
            *held.item,
            delay_seconds=outcome.delay_seconds,
            error=outcome.error,
            permanent=outcome.kind == "reject",
        )

    def wake(self) -> None:
        """Look at once whether the loop is to end."""
        with self._changed:
            self._changed.notify_all()

    def wait_empty(self, seconds: float) -> bool:
        """Wait up to ``seconds`` until every settlement is answered; whether that came true."""
        return self._holdings.wait_empty(seconds)
