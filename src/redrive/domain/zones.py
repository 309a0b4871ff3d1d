"""Time zones, and when their clocks change."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Final
from zoneinfo import ZoneInfo

from redrive.domain.errors import InvalidRequest

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_+-]*(?:/[A-Za-z0-9_+-]+){0,2}", re.ASCII)
#: Files that lie beside the zones: this machine's own zone, and clocks that count leap seconds.
_NOT_ZONES: Final = re.compile(r"(?:posix|right|SystemV)/.*|localtime|posixrules|Factory", re.ASCII)
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_DAY_S: Final = 86_400
YEARS_AHEAD: Final = 50  # how far is looked for a time that comes
LAST_YEAR: Final = 9_000  # no time after it is looked for


@dataclass(frozen=True, slots=True)
class Change:
    """A clock is set: at ``at`` (seconds since the epoch) from UTC + ``before`` to UTC + ``after`` seconds.
    Wall times are counted as seconds, too, as if they were UTC."""

    at: int
    before: int
    after: int

    @property
    def wall_before(self) -> int:
        """Where the clock stands when it is set."""
        return self.at + self.before

    @property
    def wall_after(self) -> int:
        """Where it is set to."""
        return self.at + self.after


@dataclass(frozen=True, slots=True)
class Stretch:
    """[``start``, ``end``) in seconds since the epoch, with one ``offset``. ``began`` is the change before it
    (within the last year, else None), ``upcoming`` the one after it, if near."""

    start: int
    end: int
    offset: int
    began: Change | None
    upcoming: Change | None


def zone(name: str) -> ZoneInfo:
    """The zone of the IANA database with this name; ``InvalidRequest`` names what is not one."""
    if len(name) <= 64 and _NAME.fullmatch(name) and not _NOT_ZONES.fullmatch(name):
        try:
            return ZoneInfo(name)
        except (KeyError, ValueError, OSError):  # a folder of zones is an OSError
            pass
    raise InvalidRequest(
        f"timezone {name[:64]!r} is not a zone of the IANA database",
        hint="for example UTC, Europe/Berlin, America/New_York; upper and lower case matter",
        details={"field": "timezone", "actual": name[:64]},
    )


def stretches(name: str, from_s: int) -> Iterator[Stretch]:
    """The stretches of a zone from the one that holds ``from_s`` on, for ``YEARS_AHEAD`` years."""
    first = _year(from_s)
    offset, began = offset_s(name, from_s), None
    start = _year_s(first - 1)
    for change in changes(name, first - 1):
        if change.at <= from_s:
            start, began = change.at, change
    for year in range(first, min(first + YEARS_AHEAD, LAST_YEAR)):
        for change in changes(name, year):
            if change.at <= from_s:
                start, began = change.at, change
                continue
            yield Stretch(start, change.at, offset, began, change)
            start, offset, began = change.at, change.after, change
        upcoming = next(iter(changes(name, year + 1)), None)
        if start < (end := _year_s(year + 1)):
            yield Stretch(start, end, offset, began, upcoming)
        start = end


@lru_cache(maxsize=4_096)
def changes(name: str, year: int) -> tuple[Change, ...]:
    """The changes of a zone after the start of a year and up to its end, UTC. Found by a look at each day:
    no zone sets its clock forth and back within one."""
    found = []
    low, end = _year_s(year), _year_s(year + 1)
    before = offset_s(name, low)
    for high in range(low + _DAY_S, end + 1, _DAY_S):
        after = offset_s(name, high)
        if after != before:
            found.append(Change(_first_with(name, high - _DAY_S, high, before), before, after))
        before = after
    return tuple(found)


def offset_s(name: str, at_s: int) -> int:
    """Seconds that the zone is ahead of UTC at a time."""
    offset = (_EPOCH + timedelta(seconds=at_s)).astimezone(zone(name)).utcoffset()
    return int((offset or timedelta()).total_seconds())


def _first_with(name: str, low: int, high: int, before: int) -> int:
    """The first second in (``low``, ``high``] at which the offset is not ``before`` any more."""
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if offset_s(name, middle) == before else (low, middle)
    return high


def _year(at_s: int) -> int:
    return (_EPOCH + timedelta(seconds=at_s)).year


def _year_s(year: int) -> int:
    return int((datetime(year, 1, 1, tzinfo=UTC) - _EPOCH).total_seconds())
