"""An oracle that shares nothing with the product: cron(8)'s loop, minute by minute, with its own matcher.

It walks over the minutes of UTC, reads the wall clock of each, and does what Debian's cron does when it
wakes: it keeps a *virtual* time, compares it with the clock and, when they differ by up to three hours, runs
jobs with a fixed time for the minutes that were left out, and none for those that come again. Slow and plain
on purpose; itself checked against `literals.py`, which was written by hand.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

MINUTE = timedelta(minutes=1)
THREE_HOURS = 180
NAMES = {
    name: number
    for names, start in (
        ("SUN MON TUE WED THU FRI SAT", 0),
        ("JAN FEB MAR APR MAY JUN JUL AUG SEP OCT NOV DEC", 1),
    )
    for number, name in enumerate(names.split(), start)
}


@dataclass(frozen=True)
class Rule:
    """An expression, taken apart by hand."""

    minutes: frozenset[int]
    hours: frozenset[int]
    days: frozenset[int]
    months: frozenset[int]
    weekdays: frozenset[int]
    wildcard: bool  # minute or hour begins with a star
    both_days: bool  # day of month or day of week begins with a star

    def matches(self, wall: datetime) -> bool:
        """Whether it is time by this wall clock."""
        if wall.minute not in self.minutes or wall.hour not in self.hours or wall.month not in self.months:
            return False
        day, weekday = wall.day in self.days, wall.isoweekday() % 7 in self.weekdays
        return (day and weekday) if self.both_days else (day or weekday)


def rule(text: str) -> Rule:
    """Read an expression that is known to be sound."""
    fields = text.split()
    ranges = [(0, 59), (0, 23), (1, 31), (1, 12), (0, 7)]
    minutes, hours, days, months, weekdays = (
        frozenset(n for part in field.split(",") for n in _numbers(part.upper(), *ends))
        for field, ends in zip(fields, ranges, strict=True)
    )
    star = [field[0] == "*" for field in fields]
    return Rule(
        minutes,
        hours,
        days,
        months,
        frozenset(n % 7 for n in weekdays),
        star[0] or star[1],
        star[2] or star[4],
    )


def _numbers(part: str, low: int, high: int) -> range:
    body, _, step = part.partition("/")
    first, _, last = body.partition("-")
    if first == "*":
        return range(low, high + 1, int(step or 1))
    begin = NAMES[first] if first in NAMES else int(first)
    end = (NAMES[last] if last in NAMES else int(last)) if last else (high if step else begin)
    return range(begin, end + 1, int(step or 1))


def clock(zone: str, after: datetime, until: datetime) -> list[tuple[datetime, datetime]]:
    """(UTC, wall clock) of each minute in [after, until]."""
    tz, minutes = ZoneInfo(zone), []
    while after <= until:
        minutes.append((after, after.astimezone(tz).replace(tzinfo=None)))
        after += MINUTE
    return minutes


def runs(text: str, minutes: Sequence[tuple[datetime, datetime]]) -> Iterator[datetime]:
    """When Debian's cron runs a job in the minutes after the first one, UTC, each once."""
    job = rule(text)
    virtual = minutes[0][1]
    for utc, wall in minutes[1:]:
        ahead = (wall - virtual) // MINUTE
        if ahead == 1 or abs(ahead) > THREE_HOURS:  # as always; or the clock was corrected
            virtual = wall
            run = job.matches(wall)
        elif ahead > 1:  # minutes were left out: fixed times run now, one after the other
            run = job.wildcard and job.matches(wall)
            while virtual < wall:
                virtual += MINUTE
                run = run or (not job.wildcard and job.matches(virtual))
        else:  # minutes come again: until the virtual time is reached only wildcard jobs run
            run = job.wildcard and job.matches(wall)
        if run:
            yield utc


def utc(text: str) -> datetime:
    """A time in UTC, written `2026-03-29T01:00`."""
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def ms(at: datetime) -> int:
    """Milliseconds since the epoch."""
    return (at - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(milliseconds=1)
