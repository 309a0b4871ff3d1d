"""Windows: the time range that a run covers, from the end of what is completed to a cut, without hole or
overlap."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from typing import Any, Final, Literal

from redrive import seams
from redrive.domain.errors import InvalidRequest, LimitExceeded
from redrive.ledger.batch_records import WindowDone, WindowRecord
from redrive.ledger.drivers.port import Mode
from redrive.ledger.errors import LedgerRetry, WindowBusy, WindowLost
from redrive.ledger.instants import instant, shown
from redrive.ledger.steps import Pause, Program, Rows, Statement, Step
from redrive.ledger.transaction import asked, framed
from redrive.ledger.values import checked_key, text

Overlapping = Literal["skip", "wait"]
HOLD_SECONDS: Final = 300.0
HOLD_SECONDS_MAX: Final = 7 * 86_400.0
WAIT_SECONDS: Final = 60.0
WAIT_SECONDS_MAX: Final = 3_600.0
LOOK_SECONDS: Final = 0.25


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a run asks for; times in microseconds since the epoch."""

    name: str
    until_us: int
    start_us: int | None
    hold_ms: int


@dataclass(frozen=True, slots=True)
class Bounds:
    """The window that a run has: its bounds and the holder's token. Without a token it is not the run's:
    ``why`` says what stands against it, ``busy`` whether that passes."""

    name: str
    start_us: int
    end_us: int
    holder: str = ""
    why: str = ""
    busy: bool = False

    def values(self, dialect: str) -> dict[str, Any]:
        """As the fenced statements take it."""
        return {
            "window": checked_key(dialect, self.name),
            "start_us": self.start_us,
            "end_us": self.end_us,
            "holder": self.holder,
            "now_ms": seams.wall_ms(),
        }


def bounded(value: float, field: str, most: float) -> float:
    """``value`` seconds, or LimitExceeded naming ``field``."""
    if not 0 <= value <= most:
        raise LimitExceeded(f"{field} must be from 0 to {most:g}, got {value}")
    return value


def opened(dialect: str, mode: Mode, wanted: Wanted, overlapping: str, wait_seconds: float) -> Program:
    """Open or resume the window; answers :class:`Bounds`. ``wait`` looks again until the deadline, each time
    in a transaction of its own, and raises WindowBusy after it."""
    checked_key(dialect, wanted.name, "window name")
    if overlapping not in ("skip", "wait"):
        raise InvalidRequest(f"overlapping must be skip or wait, got {overlapping!r}")
    if overlapping == "wait" and mode is not Mode.OWN:
        raise InvalidRequest(
            "overlapping='wait' on a connection inside a transaction would wait for what it cannot see",
            hint="wait before the transaction begins (without connection=), or use overlapping='skip'",
        )
    return _opened(dialect, mode, wanted, wait_seconds if overlapping == "wait" else None)


def _opened(
    dialect: str, mode: Mode, wanted: Wanted, wait_seconds: float | None
) -> Generator[Step, Any, Bounds]:
    ends_at = seams.monotonic() + (wait_seconds or 0.0)
    while True:
        found: Bounds = yield from framed(dialect, mode, _look(dialect, wanted), read_committed=True)
        if wait_seconds is None or not found.busy:
            return found
        left = ends_at - seams.monotonic()
        if left <= 0:
            raise WindowBusy(
                f"window {wanted.name!r}: waited {wait_seconds:g} s in vain: {found.why}",
                hint="`redrive ledger windows` shows who has it",
            )
        yield Pause(min(LOOK_SECONDS, left))


def _look(dialect: str, wanted: Wanted) -> Generator[Step, Any, Bounds]:
    name = {"window": checked_key(dialect, wanted.name)}
    row: Rows = yield Statement("window_get", name)
    if not row.rows:
        if wanted.start_us is None:
            raise InvalidRequest(
                f"window {wanted.name!r} has no completed end yet: the first call needs start="
            )
        if wanted.until_us <= wanted.start_us:
            return _nothing(wanted, wanted.start_us)
        first = {"start_us": wanted.start_us, "now_ms": seams.wall_ms()}
        yield Statement("window_add", {**name, **first})
        row = yield Statement("window_get", name)
        if not row.rows:
            raise LedgerRetry("another run made the window", hint="run the whole transaction again")
    against = _against(wanted, row.rows[0])
    if against is not None:  # before any lock: its batch may be about to complete it
        return against
    row = yield Statement("window_lock", name)
    if not row.rows:
        return Bounds(
            wanted.name, 0, 0, why="another run has it in a transaction that is not committed", busy=True
        )
    against = _against(wanted, row.rows[0])
    if against is not None:
        return against
    mark_us, until_us = row.rows[0][:2]
    ours = Bounds(wanted.name, int(mark_us), int(until_us or wanted.until_us), seams.token(12))
    taken: Rows = yield Statement("window_take", {**ours.values(dialect), "hold_ms": wanted.hold_ms})
    if taken.touched != 1:
        raise LedgerRetry("another run took the window", hint="run the whole transaction again")
    return ours


def _against(wanted: Wanted, row: tuple[Any, ...]) -> Bounds | None:
    """Why the run cannot have the window as it stands; None when it can."""
    mark_us, until_us, holder, live, batch, _ = row
    if until_us is None:
        return None if wanted.until_us > int(mark_us) else _nothing(wanted, int(mark_us))
    bounds = (wanted.name, int(mark_us), int(until_us))
    if batch is not None:
        return Bounds(*bounds, why=f"batch {text(batch)!r} has it, which is not complete", busy=True)
    if holder is not None and live:
        return Bounds(*bounds, why="another run has it", busy=True)
    return None


def _nothing(wanted: Wanted, mark_us: int) -> Bounds:
    return Bounds(wanted.name, mark_us, mark_us, why=f"nothing to do: it is completed up to {shown(mark_us)}")


def fenced(dialect: str, mode: Mode, name: str, bounds: Bounds, **values: Any) -> Program:
    """One of window_complete, window_keep, window_release for the run that has it; WindowLost when it has
    not."""
    return framed(dialect, mode, _fenced(name, bounds, {**bounds.values(dialect), **values}))


def _fenced(name: str, bounds: Bounds, values: dict[str, Any]) -> Generator[Step, Any, None]:
    done: Rows = yield Statement(name, values)
    if done.touched != 1:
        raise lost(bounds)


def lost(bounds: Bounds) -> WindowLost:
    """The error of a run that has not got the window any more."""
    between = f"[{shown(bounds.start_us)}, {shown(bounds.end_us)})"
    return WindowLost(
        f"window {bounds.name!r} {between} is not this run's any more",
        hint="roll this work back; a longer hold_seconds=, or window.keep() while it works, prevents it",
    )


def listed(dialect: str, mode: Mode, after: str, limit: int) -> Program:
    """Up to ``limit`` :class:`WindowRecord` above the name ``after``."""
    return asked(dialect, mode, _listed(after.encode() if dialect == "mysql" else after, limit))


def _listed(after: str | bytes, limit: int) -> Generator[Step, Any, list[WindowRecord]]:
    answer: Rows = yield Statement("windows", {"after": after, "limit": limit})
    return [
        WindowRecord(
            name=text(name),
            mark=instant(mark_us),
            open_until=None if until_us is None else instant(until_us),
            held_by="batch" if batch is not None else "run" if holder is not None and live else None,
            batch=text(batch),
            opened_at_ms=opened_ms,
            completed_at_ms=completed_ms,
        )
        for name, mark_us, until_us, holder, live, batch, opened_ms, completed_ms in answer.rows
    ]


def history(dialect: str, mode: Mode, name: str, before_us: int, limit: int) -> Program:
    """Up to ``limit`` :class:`WindowDone` of ``name`` that start before ``before_us``, newest first."""
    values = {"window": checked_key(dialect, name, "window name"), "before_us": before_us, "limit": limit}
    return asked(dialect, mode, _history(values))


def _history(values: dict[str, Any]) -> Generator[Step, Any, list[WindowDone]]:
    answer: Rows = yield Statement("windows_done", values)
    return [
        WindowDone(text(row[0]), instant(row[1]), instant(row[2]), text(row[3]), row[4], row[5])
        for row in answer.rows
    ]
