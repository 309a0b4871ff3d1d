"""A cron expression: five fields, read once and refused with a reason before anything is stored.

cronsim, which steps through the calendar underneath, takes more than the contract does (six fields, ``L``,
``#``) and says less when it refuses; so everything is judged here first.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final, NoReturn

from redrive.domain import limits
from redrive.domain.errors import InvalidRequest

ALIASES: Final = {
    "@hourly": "0 * * * *",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@weekly": "0 0 * * 0",
    "@monthly": "0 0 1 * *",
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
}


@dataclass(frozen=True, slots=True)
class Expression:
    """An expression that fires.

    ``text``: the five fields, one space between them. ``fixed_time``: neither minute nor hour begins with a
    star. Only such an expression is adjusted at a change of the clock; the others go on in elapsed time.
    """

    text: str
    fixed_time: bool


@dataclass(frozen=True, slots=True)
class _Field:
    name: str
    low: int
    high: int
    names: tuple[str, ...] = ()

    @property
    def values(self) -> int:
        """How many there are; Sunday, which is 0 and 7, is one."""
        return min(self.high - self.low + 1, 7 if self.names[:1] == ("SUN",) else 60)


_MONTHS: Final = ("JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC")
_DAYS: Final = ("SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT")
_DAY, _WEEKDAY = _Field("day of month", 1, 31), _Field("day of week", 0, 7, _DAYS)
_FIELDS: Final = (
    _Field("minute", 0, 59), _Field("hour", 0, 23), _DAY, _Field("month", 1, 12, _MONTHS), _WEEKDAY,
)  # fmt: skip
_LONGEST: Final = (31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)  # days of a month, at most
_TERM = re.compile(r"(?P<first>\*|[0-9A-Z]+)(?:-(?P<last>[0-9A-Z]+))?(?:/(?P<step>[0-9]+))?", re.ASCII)
_EXTENDED = {
    _DAY.name: re.compile(r"L", re.ASCII),
    _WEEKDAY.name: re.compile(rf"[0-7]L|(?:[0-7]|{'|'.join(_DAYS)})#[1-5]", re.ASCII),
}


def parse(text: str, *, allow_extended: bool = False) -> Expression:
    """The expression in ``text``: five fields, or ``@hourly`` … ``@yearly``.

    ``allow_extended`` takes ``L`` (day of month), ``5L`` and ``5#2`` (day of week), too. ``InvalidRequest``
    names the field, its limits and the actual value, and hints at what to write.
    """
    if len(text) > limits.CRON_EXPRESSION_CHARS_MAX:
        _refuse(
            f"has {len(text)} characters, at most {limits.CRON_EXPRESSION_CHARS_MAX}",
            "use ranges and steps, or several schedules",
        )
    given = text.strip()
    if given.startswith("@"):
        given = _alias(given)
    parts = given.split()
    if len(parts) != len(_FIELDS):
        _refuse(
            f"has {len(parts)} fields, exactly 5 are allowed: minute hour day-of-month month day-of-week",
            "seconds are not supported: leave the first field away" if len(parts) > 5 else "write * for any",
            len(parts),
        )
    sets = [_values(field, part.upper(), allow_extended) for field, part in zip(_FIELDS, parts, strict=True)]
    expression = Expression(" ".join(parts), not parts[0].startswith("*") and not parts[1].startswith("*"))
    _fires(expression, parts, sets)
    return expression


def walls_from(expression: Expression, start: datetime) -> Iterator[datetime]:
    """The expression's wall times from ``start`` (naive, included) on, by the calendar alone; they end after
    50 years without any."""
    from cronsim import CronSim

    # cronsim reads 5-5/2 as 5-59/2; cron(8) steps through the range, which is 5 alone.
    plain = re.sub(r"\b(\w+)-\1/[0-9]+", r"\1", expression.text, flags=re.ASCII)
    steps: Iterator[datetime] = CronSim(plain, start - timedelta(seconds=1))
    return steps


def _alias(given: str) -> str:
    if given.lower() == "@reboot":
        _refuse(
            "is @reboot, which is no time",
            "publish from the program that starts, or use @hourly … @yearly",
            given,
        )
    if given.lower() not in ALIASES:
        _refuse(f"is {given!r}, which is not known", f"known are {', '.join(ALIASES)}", given)
    return ALIASES[given.lower()]


def _fires(expression: Expression, parts: list[str], sets: list[set[int] | None]) -> None:
    """Refuse what no calendar has. Only an AND of the two day fields can be impossible: with OR, each day of
    week comes."""
    days, months, weekdays = sets[2:]
    if parts[2].startswith("*") or parts[4].startswith("*"):
        if days is None or weekdays is None:  # with L or # it takes a look at fifty years
            fires = next(walls_from(expression, datetime(2000, 1, 1)), None) is not None  # noqa: DTZ001
        else:
            fires = min(days) <= max(_LONGEST[month - 1] for month in months or ())
        if not fires:
            _refuse(
                f"never fires: day of month {parts[2]}, month {parts[3]}, day of week {parts[4]} never meet",
                "for the last day of a month, run on 28-31 and let the job look at the date",
            )


def _values(field: _Field, text: str, extended: bool) -> set[int] | None:
    """The numbers of a field; None: it has an ``L`` or ``#`` that only the calendar knows."""
    found: set[int] = set()
    open_ended = False
    for item in text.split(","):
        if field.name in _EXTENDED and _EXTENDED[field.name].fullmatch(item):
            if not extended:
                _refuse_in(field, item, "has an L or #, which is not supported", "an operator may allow both")
            open_ended = True
            continue
        found.update(_item(field, item))
    return None if open_ended else found


def _item(field: _Field, item: str) -> range:
    match = _TERM.fullmatch(item)
    if match is None or (match["first"] == "*" and match["last"] is not None):
        _refuse_in(field, item, "is not a number, range, step or list", _hint(field, item))
    if match["first"] == "*":
        first, last = field.low, field.high
    else:
        first = _number(field, match["first"])
        last = _number(field, match["last"]) if match["last"] else field.high if match["step"] else first
    if last < first:
        sunday = field is _WEEKDAY and last == 0
        _refuse_in(
            field,
            item,
            f"is a range that ends ({last}) before it begins ({first})",
            "write Sunday as 7 at the end of a range" if sunday else "split it into two ranges with a comma",
        )
    step = int(match["step"]) if match["step"] else 1
    if not 1 <= step <= field.values:
        _refuse_in(
            field,
            item,
            f"has the step {step}, allowed is 1 … {field.values}",
            "a step does not reach into the next hour, day, month or year" if step else "",
        )
    return range(first, last + 1, step)


def _number(field: _Field, text: str) -> int:
    if text in field.names:
        return field.names.index(text) + field.low
    if not text.isdecimal():
        _refuse_in(field, text, "is not a number" + (" or name" if field.names else ""), _hint(field, text))
    if not field.low <= int(text) <= field.high:
        _refuse_in(field, text, f"is outside {field.low} … {field.high}", "")
    return int(text)


def _hint(field: _Field, item: str) -> str:
    """What the author may have meant: dialects of cron that are not this one."""
    if "?" in item:
        return "write * for any"
    if "#" in item or item.endswith("L"):
        return "L and # are not supported (an operator may allow L as a day of month, 5L and 5#2)"
    if field is _DAY and "W" in item:
        return "W (the nearest weekday) is not supported"
    if item.startswith("H"):
        return "H is not supported; jitter_seconds spreads schedules"
    return f"names are {field.names[0]} … {field.names[-1]}" if field.names else "for example 5, 1-5, */15"


def _refuse_in(field: _Field, item: str, what: str, hint: str) -> NoReturn:
    _refuse(f"{field.name} {item!r} {what}", hint or f"{field.low} … {field.high} are allowed", item, field)


def _refuse(what: str, hint: str, actual: object = None, field: _Field | None = None) -> NoReturn:
    details: dict[str, object] = {"field": "cron_expr"}
    if field is not None:
        details |= {"part": field.name, "minimum": field.low, "maximum": field.high}
    if actual is not None:
        details["actual"] = actual
    raise InvalidRequest(
        f"cron_expr {what}" if field is None else f"cron_expr: {what}", hint=hint, details=details
    )
