"""When a cron expression is due in a time zone, with the rules of Debian's cron where clocks are set.

Rule and zone are stored, never the next time in UTC: what is due follows from them at each look, so nothing
drifts when a zone's clock changes.

A time zone is a row of stretches with one offset each. Within a stretch wall times and UTC go side by side.
Where one stretch meets the next, wall times are left out (a gap) or come twice (an overlap):

- An expression with a fixed time runs right after a gap that holds its time, and once in an overlap (the
  first time); ``gap`` and ``overlap`` choose otherwise. Several times in one gap are one due time.
- An expression whose minute or hour begins with a star runs when the clock shows its time: not in a gap, and
  both times in an overlap. ``*/30 * * * *`` thereby goes on every half hour of elapsed time.
- A clock that is set by more than three hours has been corrected, not changed: nothing is made up for.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import islice, takewhile
from typing import Final, Literal

from redrive.domain.cron_expression import ALIASES, Expression, parse, walls_from
from redrive.domain.zones import LAST_YEAR, Change, Stretch, stretches, zone

__all__ = [
    "ALIASES", "Due", "Expression", "Gap", "Overlap", "due_between", "latest_due", "next_due", "parse",
    "zone",
]  # fmt: skip

Gap = Literal["run_after", "skip"]
Overlap = Literal["once", "twice"]

_EPOCH: Final = datetime(1970, 1, 1)  # noqa: DTZ001  wall times are counted from it, whatever their zone
_SECOND: Final = timedelta(seconds=1)
_CHANGE_MAX_S: Final = 3 * 3_600  # cron(8): local time changes of less than three hours
_NEVER: Final = 1 << 62
_LAST_S: Final = (LAST_YEAR - 1_970) * 365 * 86_400


@dataclass(frozen=True, slots=True)
class Due:
    """A time at which a schedule is due: ``at_ms``, milliseconds since the epoch, UTC.

    ``edge``: None, ``"gap"`` (a wall time that did not exist was moved here), ``"overlap_first"`` or
    ``"overlap_second"`` (the wall time exists twice).
    """

    at_ms: int
    edge: str | None = None


def next_due(
    expression: Expression,
    zone_name: str,
    after_ms: int,
    *,
    gap: Gap = "run_after",
    overlap: Overlap = "once",
) -> Due | None:
    """The first due time strictly after ``after_ms``; None when none comes within 50 years."""
    return next(_dues(expression, zone_name, after_ms, gap, overlap), None)


def due_between(
    expression: Expression,
    zone_name: str,
    after_ms: int,
    until_ms: int,
    *,
    gap: Gap = "run_after",
    overlap: Overlap = "once",
    limit: int,
) -> Iterator[Due]:
    """The first ``limit`` due times in (``after_ms``, ``until_ms``], in order, each once."""
    dues = _dues(expression, zone_name, after_ms, gap, overlap)
    return islice(takewhile(lambda due: due.at_ms <= until_ms, dues), limit)


def latest_due(
    expression: Expression,
    zone_name: str,
    after_ms: int,
    until_ms: int,
    *,
    gap: Gap = "run_after",
    overlap: Overlap = "once",
    limit: int,
) -> list[Due]:
    """The last ``limit`` due times in (``after_ms``, ``until_ms``], in order: the work does not grow with
    the years that a server was down, because it is looked for backwards from the end."""
    span_ms = 3_600_000
    while True:
        from_ms = max(after_ms, until_ms - span_ms)
        dues = _dues(expression, zone_name, from_ms, gap, overlap)
        last = deque(takewhile(lambda due: due.at_ms <= until_ms, dues), maxlen=limit)
        if len(last) == limit or from_ms == after_ms:
            return list(last)
        span_ms *= 4


def _dues(expression: Expression, zone_name: str, after_ms: int, gap: Gap, overlap: Overlap) -> Iterator[Due]:
    """Every due time after ``after_ms``, stretch by stretch."""
    after_s = max(after_ms // 1_000, -1)
    if after_s >= _LAST_S:
        return
    walls = _Walls(expression)
    for stretch in stretches(zone_name, after_s):
        wall = max(stretch.start, after_s + 1) + stretch.offset
        began = stretch.began
        if expression.fixed_time and began and abs(began.after - began.before) <= _CHANGE_MAX_S:
            if gap == "run_after" and stretch.start == began.at > after_s and _moved(walls, began):
                yield Due(began.at * 1_000, "gap")
                wall += 1  # the first second is taken, also by the time that regularly falls on it
            if overlap == "once":
                wall = max(wall, began.wall_before)  # what the clock has shown before
        while (wall := walls.first(wall)) < stretch.end + stretch.offset:
            yield Due((wall - stretch.offset) * 1_000, _edge(stretch, wall))
            wall += 1


def _moved(walls: _Walls, change: Change) -> bool:
    """Whether a wall time falls into the gap of a change."""
    return change.after > change.before and walls.first(change.wall_before) < change.wall_after


def _edge(stretch: Stretch, wall: int) -> str | None:
    if stretch.began and wall < stretch.began.wall_before:
        return "overlap_second"
    if stretch.upcoming and wall >= stretch.upcoming.wall_after:
        return "overlap_first"
    return None


class _Walls:
    """An expression's wall times as seconds, found by stepping on where the last look ended."""

    def __init__(self, expression: Expression) -> None:
        self._expression = expression
        self._from, self._found = _NEVER, _NEVER  # no wall time in [_from, _found), one at _found
        self._steps: Iterator[datetime] = iter(())

    def first(self, wall: int) -> int:
        """The first wall time at or after ``wall``."""
        if not self._from <= wall <= self._found:
            if wall != self._found + 1:
                self._steps = walls_from(self._expression, _EPOCH + wall * _SECOND)
            step = next(self._steps, None)
            self._from, self._found = wall, _NEVER if step is None else (step - _EPOCH) // _SECOND
        return self._found
