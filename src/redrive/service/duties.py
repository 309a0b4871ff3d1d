"""What the service does by itself, each at its own pace: tick, reap, age, prune, finish deletes, look around.

One thread; every duty takes bounded slices and lets requests pass between them.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from typing import Final

from redrive import seams
from redrive.domain.errors import RedriveError
from redrive.service.access import Access
from redrive.service.batching import SLICE
from redrive.service.committer import Committer
from redrive.service.retention import Retention
from redrive.service.statistics import Statistics
from redrive.storage import commands as c
from redrive.storage.port import Engine

_SLICES_MAX: Final = 500  # of one duty in a row, before the others have their turn
_TICK_SECONDS: Final = 1.0
_LOG = logging.getLogger("redrive.duties")


class Duties:
    """The loop. ``shared``: other nodes work on the same store, so what they do must be looked for."""

    def __init__(
        self,
        engine: Engine,
        committer: Committer,
        statistics: Statistics,
        access: Access,
        retention: Retention,
        *,
        shared: bool,
    ) -> None:
        self._engine = engine
        self._committer = committer
        self._statistics = statistics
        self._access = access
        self._retention = retention
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._loop, name="redrive-duties", daemon=True)
        self._plan: list[tuple[float, Callable[[], None]]] = [
            (_TICK_SECONDS, self.tick),
            (1.0, self.reap),
            (5.0, self.age),
            (5.0, self.finish_deletes),
            (60.0, self.prune),
            (60.0, self.warn),
        ]
        if shared:
            self._plan += [(1.0, self.look_around), (2.0, access.reload)]
        self._last_error = ""
        self._ticked_at = seams.monotonic()

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def stop(self) -> None:
        """End after the slice at hand, and write the last statistics."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join(10)
            self._try(self.tick)

    def tick(self) -> None:
        """Write the liveness tick with this node's statistics."""
        rows = self._statistics.changes(seams.wall_ms())
        self._committer.call(c.Tick(rows, self._statistics.node))
        self._ticked_at = seams.monotonic()

    def reap(self) -> None:
        """End the leases whose time is over."""
        self._slices(lambda: c.Expire(SLICE))

    def age(self) -> None:
        """Move or remove what has outlived its retention."""
        for following in self._retention.rounds():
            self._slices(following)
        self._retention.tell()

    def warn(self) -> None:
        """Say which dead letters retention will remove soon."""
        self._retention.warn()

    def prune(self) -> None:
        """Remove bookkeeping that is over."""
        self._slices(lambda: c.Prune(SLICE))

    def finish_deletes(self) -> None:
        """Go on with queues that were deleted; what another node holds of one is left for the next turn."""
        slices = iter(range(_SLICES_MAX))  # of all of them together
        for name in self._engine.read(lambda reader: reader.deleting(_SLICES_MAX)):
            for _ in slices:
                purged = self._slice(c.Purge(name, SLICE, deleting=True))
                goes_on = isinstance(purged, c.Purged) and purged.more and purged.removed
                if self._stop.is_set() or not goes_on:
                    break

    def look_around(self) -> None:
        """Other nodes may have made something due: polling is the truth, notifications are only faster."""
        self._committer.wake(self._committer.waiting_for())

    def _slices(self, command: Callable[[], c.Command | None]) -> None:
        for _ in range(_SLICES_MAX):
            following = command()
            if following is None:
                return
            done = self._slice(following)
            if self._stop.is_set() or not isinstance(done, int) or done < SLICE:
                return

    def _slice(self, command: c.Command) -> object:
        """One of several in a row: the tick has its turn between them, lest it looks like an outage."""
        if seams.monotonic() - self._ticked_at >= _TICK_SECONDS:
            self.tick()
        return self._committer.call(command)

    def _loop(self) -> None:
        due = {number: seams.monotonic() + every for number, (every, _) in enumerate(self._plan)}
        while not self._stop.is_set():
            number = min(due, key=lambda n: due[n])
            if seams.wait(self._stop, due[number] - seams.monotonic()):
                return
            every, duty = self._plan[number]
            self._try(duty)
            due[number] = max(due[number] + every, seams.monotonic())

    def _try(self, duty: Callable[[], None]) -> None:
        try:
            duty()
            self._last_error = ""
        except RedriveError as error:
            if str(error) != self._last_error:  # said once, however often it is so
                self._last_error = str(error)
                _LOG.warning("%s: %s", getattr(duty, "__name__", "duty"), error)
        except Exception:  # noqa: BLE001 - whatever it is, the loop and its other callers go on
            _LOG.exception("a duty failed; it is tried again")
