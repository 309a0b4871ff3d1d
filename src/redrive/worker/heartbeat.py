"""Keeps leases alive off the handlers' threads, and declares them lost while they can still be proved."""

from __future__ import annotations

import logging
import threading

from redrive import seams
from redrive.domain.errors import NotFound, RedriveError, StaleReceipt
from redrive.transports import Transport, Unreachable
from redrive.worker import faults
from redrive.worker.giveback import give_back
from redrive.worker.holdings import Held, Holdings

_LOG = logging.getLogger("redrive.worker")
_LOOK_SECONDS = 0.05
_AGAIN_SECONDS = 0.5


class Heartbeat:
    """Extends each lease at a third of its length, measured from sending the request that gave it.

    Several threads may run :meth:`loop`: one slow answer then does not starve the other leases.
    """

    def __init__(self, transport: Transport, queue: str, holdings: Holdings) -> None:
        self._transport = transport
        self._queue = queue
        self._holdings = holdings
        self._busy: set[Held] = set()
        self._lock = threading.Lock()

    def loop(self, stopped: threading.Event) -> None:
        """Beat until ``stopped``."""
        while not seams.wait(stopped, _LOOK_SECONDS):
            while (due := self._due(seams.monotonic())) is not None:
                held, ahead = due
                try:
                    self._beat(held, ahead)
                except Exception:  # noqa: BLE001 - one lease's bug must not end the others' heartbeat
                    _LOG.exception("heartbeat of %s failed", held.item[0])
                    held.beat_at = seams.monotonic() + _AGAIN_SECONDS
                finally:
                    with self._lock:
                        self._busy.discard(held)

    def _due(self, now: float) -> tuple[Held, bool] | None:
        """The most urgent lease that no other thread attends to; revokes what cannot be proved any more."""
        with self._lock:
            found: tuple[Held, bool] | None = None
            for held, ahead in self._holdings.beating():
                if held.revoked:
                    continue
                if not held.provable(now):
                    self._lost(held, "its lease could not be extended in time")
                elif held.beat_at > now or held in self._busy:
                    continue
                elif found is None or held.ends_at < found[0].ends_at:
                    found = held, ahead
            if found is not None:
                self._busy.add(found[0])
            return found

    def _beat(self, held: Held, ahead: bool) -> None:
        if ahead and self._holdings.withdraw(held):
            give_back(self._transport, self._queue, self._holdings, [held])
            return
        faults.point("in_heartbeat", held.delivery.job_key)
        sent_at = seams.monotonic()
        try:
            length = self._transport.extend(self._queue, *held.item, held.lease_seconds)
        except (StaleReceipt, NotFound) as refusal:
            if not held.settled:
                self._lost(held, refusal.message)
        except (RedriveError, Unreachable) as failure:
            _LOG.info("lease of %s not extended yet: %s", held.item[0], failure)
            held.beat_at = seams.monotonic() + _AGAIN_SECONDS * (0.5 + seams.draw())
        else:
            held.extended(sent_at=sent_at, lease_seconds=length)

    def _lost(self, held: Held, why: str) -> None:
        if not held.committed:  # then only its ack is late, and the receipt makes a repetition harmless
            _LOG.warning("lease of %s (job %s) is lost: %s", held.item[0], held.delivery.job_key, why)
        held.revoke()
