"""The lease loop: long polls for as many messages as may run soon, and comes back for ever."""

from __future__ import annotations

import logging
import threading

from redrive import seams
from redrive.transports import Lease, Transport
from redrive.worker.giveback import give_back
from redrive.worker.holdings import Held, Holdings
from redrive.worker.pace import Failure, Pace

_LOG = logging.getLogger("redrive.worker")
_ROOM_SECONDS = 1.0
_LOOK_SECONDS = 0.05


class Leasing:
    """One worker's lease loop; it leases only while ``able`` is set.

    ``pulse_at``: when it last polled with success, or had no room to.
    """

    def __init__(
        self,
        transport: Transport,
        queue: str,
        holdings: Holdings,
        *,
        visibility_timeout: float | None,
        wait_seconds: float,
        consumer_id: str,
        concurrency: int,
        able: threading.Event,
        stopping: threading.Event,
    ) -> None:
        self._transport = transport
        self._queue = queue
        self._holdings = holdings
        self._visibility_timeout = visibility_timeout
        self._wait_seconds = wait_seconds
        self._consumer_id = consumer_id
        self._concurrency = concurrency
        self._able = able
        self._stopping = stopping
        self._lease_seconds: float | None = visibility_timeout
        self.pulse_at = seams.monotonic()
        self.empty_poll_at: float | None = None  # when the last poll that found nothing was sent

    def loop(self) -> None:
        """Lease until stopping."""
        pace = Pace(_LOG, f"consume from {self._queue}", self._stopping)
        while not self._stopping.is_set():
            if not seams.wait(self._able, _LOOK_SECONDS):
                continue  # a lease that no handler can take only gets older
            room = self._holdings.wait_for_room(_ROOM_SECONDS)
            if not room:
                self.pulse_at = seams.monotonic()
                continue
            sent_at = seams.monotonic()
            try:
                lease = self._poll(room)
            except Failure as error:
                pace.failed(error)
            except Exception as error:  # noqa: BLE001 - a worker that stopped polling looks alive
                _LOG.exception("consume failed")
                pace.failed(error)
            else:
                pace.succeeded()
                self._take_in(lease, sent_at)

    def _poll(self, room: int) -> Lease:
        # A lease is measured from sending the request, so a long wait for it eats into its length: the first
        # poll only learns that length, later ones wait for a third of it at most.
        wait = 0.0 if self._lease_seconds is None else min(self._wait_seconds, self._lease_seconds / 3)
        return self._transport.consume(
            self._queue,
            max_messages=min(room, 1000),
            visibility_timeout=self._visibility_timeout,
            wait_seconds=round(wait, 3),
            consumer_id=self._consumer_id,
            concurrency=self._concurrency,
        )

    def _take_in(self, lease: Lease, sent_at: float) -> None:
        now = self.pulse_at = seams.monotonic()
        self._lease_seconds = lease.lease_seconds
        arrived = [
            Held(delivery, sent_at=sent_at, lease_seconds=lease.lease_seconds) for delivery in lease.messages
        ]
        late = [held for held in arrived if not held.provable(now)]
        back = self._holdings.add(held for held in arrived if held.provable(now))
        give_back(self._transport, self._queue, self._holdings, late + back)
        if not lease.messages:
            self.empty_poll_at = sent_at
