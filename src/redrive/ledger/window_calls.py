"""The Ledger's calls for windows, and the window that a run gets."""

from __future__ import annotations

from collections.abc import Coroutine
from dataclasses import dataclass
from datetime import datetime
from typing import Any, overload

from redrive.ledger import windows as programs
from redrive.ledger.batch_records import WindowDone, WindowRecord
from redrive.ledger.driving import AsyncConnectionLike, Drives
from redrive.ledger.instants import instant, micros
from redrive.ledger.values import page_size
from redrive.ledger.windows import HOLD_SECONDS, HOLD_SECONDS_MAX, WAIT_SECONDS, WAIT_SECONDS_MAX, Bounds

_LAST_US = 2**62


@dataclass(frozen=True, slots=True)
class Window:
    """The range ``[start, end)`` that a run covers, in UTC; truthy when it is this run's to do.

    Falsy: ``why`` says what stands against it (completed already, another run, a batch), and ``busy``
    whether that passes by itself.
    """

    name: str
    start: datetime
    end: datetime
    why: str
    busy: bool
    bounds: Bounds
    ledger: WindowCalls

    def __bool__(self) -> bool:
        return bool(self.bounds.holder)

    def complete(self, connection: Any = None) -> Any:
        """The work is done: the mark moves to ``end`` with the commit of ``connection``'s transaction, which
        should be the work's own. WindowLost when another run took the window: roll back. Awaitable for an
        async connection."""
        return self.ledger._fenced(connection, "window_complete", self.bounds, batch=None)

    def keep(self, seconds: float = HOLD_SECONDS, *, connection: Any = None) -> Any:
        """The run is alive: it has the window for ``seconds`` from now. WindowLost as :meth:`complete`."""
        hold_ms = int(programs.bounded(seconds, "seconds", HOLD_SECONDS_MAX) * 1000)
        return self.ledger._fenced(connection, "window_keep", self.bounds, hold_ms=hold_ms)

    def release(self, connection: Any = None) -> Any:
        """Give it up without completing it: it stays open, and the next run resumes it at once."""
        return self.ledger._fenced(connection, "window_release", self.bounds)


class WindowCalls(Drives):
    """Windows: what a schedule's runs have covered, without hole and without overlap."""

    @overload
    def window(
        self,
        name: str,
        *,
        until: datetime,
        connection: AsyncConnectionLike,
        start: datetime | None = None,
        overlapping: programs.Overlapping = "skip",
        wait_seconds: float = WAIT_SECONDS,
        hold_seconds: float = HOLD_SECONDS,
    ) -> Coroutine[Any, Any, Window]: ...

    @overload
    def window(
        self,
        name: str,
        *,
        until: datetime,
        connection: Any = None,
        start: datetime | None = None,
        overlapping: programs.Overlapping = "skip",
        wait_seconds: float = WAIT_SECONDS,
        hold_seconds: float = HOLD_SECONDS,
    ) -> Window: ...

    def window(
        self,
        name: str,
        *,
        until: datetime,
        connection: Any = None,
        start: datetime | None = None,
        overlapping: programs.Overlapping = "skip",
        wait_seconds: float = WAIT_SECONDS,
        hold_seconds: float = HOLD_SECONDS,
    ) -> Any:
        """Open the window ``[end of the last completed one, until)`` of ``name``, or resume the open one.

        ``until`` and ``start`` (where the very first one begins; later it is not looked at) are
        timezone-aware datetimes, kept to the microsecond. An open window keeps the cut that it was opened
        with until it is completed, whatever later calls ask for; only its completion moves the mark:
        ``window.complete()`` in the work's own transaction, or a batch that it is attached to. Falsy when
        there is nothing to do, and when another run or a batch has it: ``overlapping="wait"`` waits up to
        ``wait_seconds`` for that and then raises WindowBusy (never inside a transaction). A run has the
        window for ``hold_seconds`` by the database's clock; after that the next run resumes it, and this
        one's completion raises WindowLost. To catch up: ``while window := ledger.window(...)``.
        """
        wanted = programs.Wanted(
            name=name,
            until_us=micros(until, "until"),
            start_us=None if start is None else micros(start, "start"),
            hold_ms=int(programs.bounded(hold_seconds, "hold_seconds", HOLD_SECONDS_MAX) * 1000),
        )
        programs.bounded(wait_seconds, "wait_seconds", WAIT_SECONDS_MAX)

        def make(driver: Any, mode: Any) -> Any:
            return self._windowed(programs.opened(driver.dialect, mode, wanted, overlapping, wait_seconds))

        return self._drive(connection, make)

    def windows(self, *, after: str = "", limit: int = 100, connection: Any = None) -> list[WindowRecord]:
        """A page of the windows, by name; at most 1,000."""
        page_size(limit)
        found: list[WindowRecord] = self._drive(
            connection, lambda driver, mode: programs.listed(driver.dialect, mode, after, limit)
        )
        return found

    def window_history(
        self, name: str, *, before: datetime | None = None, limit: int = 100, connection: Any = None
    ) -> list[WindowDone]:
        """The completed windows of ``name`` that start before ``before``, newest first; at most 1,000."""
        page_size(limit)
        before_us = _LAST_US if before is None else micros(before, "before")
        found: list[WindowDone] = self._drive(
            connection, lambda driver, mode: programs.history(driver.dialect, mode, name, before_us, limit)
        )
        return found

    def _windowed(self, program: Any) -> Any:
        bounds: Bounds = yield from program
        start, end = instant(bounds.start_us), instant(bounds.end_us)
        return Window(bounds.name, start, end, bounds.why, bounds.busy, bounds, self)

    def _fenced(self, connection: Any, name: str, bounds: Bounds, **values: Any) -> Any:
        return self._drive(
            connection,
            lambda driver, mode: programs.fenced(driver.dialect, mode, name, bounds, **values),
        )
