"""When an expression is due: against hand-written times, and against cron(8)'s own loop."""

from __future__ import annotations

import zoneinfo
from datetime import datetime, timedelta
from itertools import pairwise

import pytest

from redrive.domain.cron import ALIASES, Due, Gap, Overlap, due_between, latest_due, next_due, parse
from redrive.domain.zones import changes
from tests.domain.cron.literals import Literal, literals
from tests.domain.cron.oracle import clock, ms, runs, utc

LITERALS = literals()

#: Each zone with its changes of 2026 and 2027, in UTC, by hand. One without changes is looked at on days on
#: which others change.
ZONES = {
    "Europe/Berlin": "2026-03-29T01:00 2026-10-25T01:00 2027-03-28T01:00 2027-10-31T01:00",
    "Europe/Dublin": "2026-03-29T01:00 2026-10-25T01:00 2027-03-28T01:00 2027-10-31T01:00",
    "America/New_York": "2026-03-08T07:00 2026-11-01T06:00 2027-03-14T07:00 2027-11-07T06:00",
    "America/St_Johns": "2026-03-08T05:30 2026-11-01T04:30 2027-03-14T05:30 2027-11-07T04:30",
    "America/Havana": "2026-03-08T05:00 2026-11-01T05:00 2027-03-14T05:00 2027-11-07T05:00",
    "America/Santiago": "2026-04-05T03:00 2026-09-06T04:00 2027-04-04T03:00 2027-09-05T04:00",
    "Africa/Cairo": "2026-04-23T22:00 2026-10-29T21:00 2027-04-29T22:00 2027-10-28T21:00",
    "Africa/Casablanca": "2026-02-15T02:00 2026-03-22T02:00 2027-02-07T02:00 2027-03-14T02:00",
    "Asia/Beirut": "2026-03-28T22:00 2026-10-24T21:00 2027-03-27T22:00 2027-10-30T21:00",
    "Asia/Kolkata": "2026-03-29T01:00 2026-10-25T01:00 2027-03-28T01:00 2027-10-31T01:00",
    "Australia/Lord_Howe": "2026-04-04T15:00 2026-10-03T15:30 2027-04-03T15:00 2027-10-02T15:30",
    "Pacific/Chatham": "2026-04-04T14:00 2026-09-26T14:00 2027-04-03T14:00 2027-09-25T14:00",
}
EXPRESSIONS = (
    "* * * * *", "*/7 * * * *", "*/15 * * * *", "*/30 * * * *", "5 * * * *", "0,30 * * * *",
    "0 */2 * * *", "30 */3 * * *", "45 */1 * * *", "* 2 * * *", "*/20 1-3 * * *", "*/30 0 * * *",
    "*/10 23 * * *", "0 0 * * *", "1 0 * * *", "30 0 * * *", "59 0 * * *", "0 1 * * *", "30 1 * * *",
    "59 1 * * *", "0 2 * * *", "15 2 * * *", "30 2 * * *", "45 2 * * *", "59 2 * * *", "0 3 * * *",
    "30 3 * * *", "45 3 * * *", "30 23 * * *", "59 23 * * *", "0 0-5 * * *", "0,15,30,45 1,2,3 * * *",
    "10-50/20 0-3 * * *", "30 2 * * 0", "30 2 * * MON-SAT", "0 0 1 * *", "30 2 1-7 * 6,7",
    "30 1 */2 * 0,6", "15 0,2,23 * 3,4,9-11 *", "0 1 29 2-3 */2",
)  # fmt: skip
DAY = timedelta(days=1)


def due(
    expression: str,
    zone: str,
    after: datetime,
    until: datetime,
    gap: Gap = "run_after",
    overlap: Overlap = "once",
) -> list[tuple[int, str | None]]:
    """What the product says, as (milliseconds, edge)."""
    dues = due_between(parse(expression), zone, ms(after), ms(until), gap=gap, overlap=overlap, limit=100_000)
    return [(d.at_ms, d.edge) for d in dues]


@pytest.mark.parametrize("case", LITERALS, ids=lambda c: f"{c.zone} {c.after} {c.expression}")
def test_what_was_written_by_hand(case: Literal) -> None:
    """The product and the oracle both say what the table says."""
    after, until = utc(case.after), utc(case.until)
    expected = [(ms(utc(at)), edge) for at, edge in case.expected]
    assert due(case.expression, case.zone, after, until) == expected
    five = ALIASES.get(case.expression, case.expression)
    start = after - DAY  # the loop has to have seen what the clock showed before
    told = [ms(at) for at in runs(five, clock(case.zone, start, until)) if at > after]
    assert told == [at for at, _ in expected]


def test_the_table_is_long_enough() -> None:
    """Sixty expectations or more, and forty expressions over twelve zones."""
    assert len(LITERALS) >= 60
    assert len(ZONES) == 12
    assert len(set(EXPRESSIONS)) == 40


@pytest.mark.parametrize("zone", ZONES)
def test_the_changes_of_two_years(zone: str) -> None:
    """The product finds the changes that were written by hand. A failure here alone may mean that a
    government has changed its mind: then the table needs the new times."""
    found = [change.at * 1_000 for year in (2026, 2027) for change in changes(zone, year)]
    assert found == ([] if zone == "Asia/Kolkata" else [ms(utc(at)) for at in ZONES[zone].split()])


@pytest.mark.parametrize("zone", ZONES)
def test_forty_expressions_around_each_change(zone: str) -> None:
    """From a day before each change to a day after, the product runs what cron(8)'s loop runs."""
    for change in map(utc, ZONES[zone].split()):
        minutes = clock(zone, change - DAY, change + DAY)
        for expression in EXPRESSIONS:
            told = [ms(at) for at in runs(expression, minutes)]
            said = [at for at, _ in due(expression, zone, change - DAY, change + DAY)]
            assert said == told, f"{expression} around {change:%F %R}"


@pytest.mark.parametrize(
    ("zone", "expression", "change", "options", "expected"),
    [
        ("Europe/Berlin", "30 2 * * *", "2026-03-29T01:00", ("skip", "once"), []),
        ("Europe/Berlin", "0 2,3 * * *", "2026-03-29T01:00", ("skip", "once"), ["01:00"]),
        ("Europe/Berlin", "30 2 * * *", "2026-10-25T01:00", ("skip", "once"), ["00:30"]),
        ("Europe/Berlin", "30 2 * * *", "2026-10-25T01:00", ("run_after", "twice"), ["00:30", "01:30"]),
        ("Europe/Berlin", "0 2 * * *", "2026-10-25T01:00", ("run_after", "twice"), ["00:00", "01:00"]),
        ("America/Havana", "0 0 * * *", "2026-11-01T05:00", ("run_after", "twice"), ["04:00", "05:00"]),
        ("Europe/Berlin", "*/30 2 * * *", "2026-03-29T01:00", ("run_after", "once"), []),
        ("Europe/Berlin", "30 2 * * *", "2026-03-29T01:00", ("run_after", "twice"), ["01:00"]),
    ],
)
def test_gap_and_overlap_can_be_chosen(
    zone: str, expression: str, change: str, options: tuple[Gap, Overlap], expected: list[str]
) -> None:
    """Each schedule may skip what falls into a gap, and run twice in an overlap."""
    at = utc(change)
    said = due(expression, zone, at - DAY / 4, at + DAY / 4, *options)
    assert [t for t, _ in said] == [ms(utc(f"{change[:10]}T{clock_}")) for clock_ in expected]


@pytest.mark.parametrize("zone", ["Europe/Berlin", "America/Havana", "UTC"])
def test_a_daily_job_does_not_drift(zone: str) -> None:
    """Over two years a job at 07:30 runs each day at 07:30 by the wall (G7)."""
    at, local = ms(utc("2026-01-01T00:00")), zoneinfo.ZoneInfo(zone)
    days = list(due_between(parse("30 7 * * *"), zone, at, at + 730 * 86_400_000, limit=1_000))
    walls = [(utc("1970-01-01T00:00") + timedelta(milliseconds=d.at_ms)).astimezone(local) for d in days]
    assert len(walls) == 730
    assert {(wall.hour, wall.minute) for wall in walls} == {(7, 30)}
    assert all((b.date() - a.date()).days == 1 for a, b in pairwise(walls))


@pytest.mark.parametrize(
    ("expression", "zone", "after", "at"),
    [
        ("0 0 29 2 *", "UTC", "2026-01-01T00:00", "2028-02-29T00:00"),
        ("0 12 29 2 */7", "Europe/Berlin", "2026-01-01T00:00", "2032-02-29T11:00"),
        ("0 0 29 2 *", "UTC", "2097-01-01T00:00", "2104-02-29T00:00"),
    ],
)
def test_rare_days_come(expression: str, zone: str, after: str, at: str) -> None:
    """29 February, also where it has to be a Sunday, and also where a century leaves it out."""
    assert next_due(parse(expression), zone, ms(utc(after))) == Due(ms(utc(at)))


def test_a_clock_that_is_set_by_more_than_three_hours_is_corrected() -> None:
    """Samoa left out 30 December 2011: nothing of that day is made up for, as in cron(8)."""
    said = due("0 2 * * *", "Pacific/Apia", utc("2011-12-29T00:00"), utc("2012-01-01T00:00"))
    assert said == [
        (ms(utc("2011-12-29T12:00")), None),
        (ms(utc("2011-12-30T12:00")), None),
        (ms(utc("2011-12-31T12:00")), None),
    ]


@pytest.mark.parametrize(
    ("expression", "days"),
    [("* * * * *", 1), ("30 2 * * *", 7), ("0 0 1 1 *", 7 * 366), ("0 0 29 2 *", 40 * 366)],
)
def test_the_latest_are_found_without_the_years_before(expression: str, days: int) -> None:
    """The last due times of half a century are those of a look at its last days."""
    rule, until = parse(expression), ms(utc("2026-10-25T12:00"))
    since = until - days * 86_400_000
    last = list(due_between(rule, "Europe/Berlin", since, until, limit=10_000))[-5:]
    assert latest_due(rule, "Europe/Berlin", 0, until, limit=5) == last
    assert len(last) == 5
    assert latest_due(rule, "Europe/Berlin", until - 1, until, limit=5) == [
        d for d in last if d.at_ms == until
    ]


@pytest.mark.parametrize("after_ms", [-1, -(10**15), 10**15, 10**18])
def test_times_beyond_any_calendar(after_ms: int) -> None:
    """Before the epoch counts as the epoch; there is nothing after the last year."""
    found = next_due(parse("0 0 * * *"), "UTC", after_ms)
    assert (found.at_ms if found else None) == (0 if after_ms < 0 else None)


@pytest.mark.parametrize(("gap", "overlap", "which"), [("skip", "once", 0), ("run_after", "twice", 1)])
def test_the_oracle_tells_other_rules_apart(gap: Gap, overlap: Overlap, which: int) -> None:
    """The control: with another rule for gaps or overlaps, the product no longer does what the loop does."""
    change = utc(ZONES["Europe/Berlin"].split()[which])
    told = [ms(at) for at in runs("30 2 * * *", clock("Europe/Berlin", change - DAY, change + DAY))]
    said = [at for at, _ in due("30 2 * * *", "Europe/Berlin", change - DAY, change + DAY, gap, overlap)]
    assert said != told
