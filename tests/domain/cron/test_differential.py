"""Due times beside those of croniter, a second library; each difference has a reason in the table below."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from croniter import croniter

from redrive.domain.cron import Due, Overlap, due_between, parse
from tests.domain.cron.oracle import ms, rule, utc
from tests.domain.cron.test_due import EXPRESSIONS, ZONES

#: Reason: which expressions, and what croniter does instead of cron(8).
DIFFERENCES = {
    "a wildcard job runs after a gap": "a star: it adds a run right after the gap, although the clock never"
    " showed the job's time",
    "a fixed time runs twice in an overlap": "no star: it runs again in the second hour, as our `twice`",
    "part of an hour that comes twice": "a star, and an overlap that does not begin at a full hour"
    " (Lord Howe, Chatham): it leaves out runs of the second time",
}
CALENDAR = (
    "0 0 1 * 1", "0 0 */2 * 1", "0 0 13 * FRI", "0 0 * * 5-7", "0 0 29 2 *", "0 12 31 * *",
    "15 6 1-7 */3 MON", "0 0 1,15 JAN-MAR *", "0 0 */10 * */3", "59 23 28-31 2,12 *",
    "5-59/18 */7 10-20/3 * *", "0 0 * 2 0",
)  # fmt: skip
NEAR = timedelta(hours=8)


def theirs(expression: str, zone: str, after: datetime, until: datetime) -> set[int]:
    """croniter's times, with Debian's rule for the two day fields."""
    times = croniter(expression, after.astimezone(ZoneInfo(zone)), implement_cron_bug=True)
    found: set[int] = set()
    while (at := times.get_next(datetime).astimezone(UTC)) <= until:
        found.add(ms(at))
    return found


def ours(
    expression: str, zone: str, after: datetime, until: datetime, overlap: Overlap = "once"
) -> dict[int, Due]:
    """Our times, by milliseconds."""
    dues = due_between(parse(expression), zone, ms(after), ms(until), overlap=overlap, limit=10_000)
    return {due.at_ms: due for due in dues}


def reason(expression: str, zone: str, change: datetime) -> str | None:
    """Why the two differ around a change; None: they do not; "" for no reason that is known."""
    span = (expression, zone, change - NEAR, change + NEAR)
    mine, other = ours(*span), theirs(*span)
    missing, extra = mine.keys() - other, other - mine.keys()
    if not missing and not extra:
        return None
    if not rule(expression).wildcard:
        twice = ours(*span, overlap="twice").keys() - mine.keys()
        return "a fixed time runs twice in an overlap" if not missing and extra == twice else ""
    if not missing and extra == {ms(change)}:
        return "a wildcard job runs after a gap"
    part = zone in ("Australia/Lord_Howe", "Pacific/Chatham") and not extra
    second = all(mine[at].edge == "overlap_second" for at in missing)
    return "part of an hour that comes twice" if part and second else ""


def test_each_difference_around_a_change_is_explained() -> None:
    """Forty expressions in twelve zones: they agree, or differ for a reason of the table, and each occurs."""
    reasons: Counter[str] = Counter()
    for zone, times in ZONES.items():
        for change in map(utc, times.split()[:2]):
            for expression in EXPRESSIONS:
                why = reason(expression, zone, change)
                assert why != "", f"{expression} in {zone} around {change:%F %R}"
                reasons[why or "agree"] += 1
    assert set(reasons) == {*DIFFERENCES, "agree"}
    assert reasons["agree"] > 800


@pytest.mark.parametrize("expression", CALENDAR)
def test_the_calendar_is_the_same(expression: str) -> None:
    """Days, months and weekdays over two years or eight, without any change of the clock: no difference."""
    after = utc("2026-01-01T00:00")
    until = after + timedelta(days=8 * 365 if expression.startswith("0 0 29") else 730)
    mine = ours(expression, "UTC", after, until)
    assert mine
    assert mine.keys() == theirs(expression, "UTC", after, until)
