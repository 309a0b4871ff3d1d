"""What is no expression or no zone, and how it is said."""

from __future__ import annotations

import pytest

from redrive.domain import limits
from redrive.domain.cron import ALIASES, next_due, parse, zone
from redrive.domain.errors import InvalidRequest
from tests.domain.cron.oracle import ms, utc


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        ("", "has 0 fields, exactly 5", "write * for any"),
        ("* * * *", "has 4 fields, exactly 5", "write * for any"),
        ("0 * * * * *", "has 6 fields, exactly 5", "seconds are not supported"),
        ("0 0 0 1 1 * 2027", "has 7 fields, exactly 5", "seconds"),
        ("@reboot", "is @reboot", "publish from the program that starts"),
        ("@never", "'@never', which is not known", "@hourly"),
        ("60 * * * *", "minute '60' is outside 0 … 59", "0 … 59"),
        ("* 24 * * *", "hour '24' is outside 0 … 23", "0 … 23"),
        ("* * 0 * *", "day of month '0' is outside 1 … 31", "1 … 31"),
        ("* * 32 * *", "day of month '32' is outside 1 … 31", "1 … 31"),
        ("* * * 13 *", "month '13' is outside 1 … 12", "1 … 12"),
        ("* * * * 8", "day of week '8' is outside 0 … 7", "0 … 7"),
        ("30-10 * * * *", "ends (10) before it begins (30)", "two ranges"),
        ("0 0 * * FRI-SUN", "ends (0) before it begins (5)", "Sunday as 7"),
        ("*/0 * * * *", "has the step 0, allowed is 1 … 60", "allowed"),
        ("*/90 * * * *", "has the step 90, allowed is 1 … 60", "does not reach"),
        ("0 */25 * * *", "has the step 25, allowed is 1 … 24", "does not reach"),
        ("0 0 * * */8", "has the step 8, allowed is 1 … 7", "does not reach"),
        ("0 0 L * *", "day of month 'L'", "an operator may allow"),
        ("0 0 * * 5L", "day of week '5L'", "an operator may allow"),
        ("0 0 * * 5#2", "day of week '5#2'", "an operator may allow"),
        ("0 0 15W * *", "day of month '15W'", "nearest weekday"),
        ("0 0 LW * *", "day of month 'LW'", "nearest weekday"),
        ("0 0 ? * *", "day of month '?'", "write * for any"),
        ("H * * * *", "minute 'H'", "jitter_seconds"),
        ("* * * JANUARY *", "month 'JANUARY' is not a number or name", "JAN … DEC"),
        ("* * * * MONDAY", "day of week 'MONDAY' is not a number or name", "SUN … SAT"),
        ("1,,2 * * * *", "minute ''", "for example"),
        ("-5 * * * *", "minute '-5'", "for example"),
        ("1.5 * * * *", "minute '1.5'", "for example"),
        ("٣ * * * *", "minute '٣'", "for example"),
        ("*-5 * * * *", "minute '*-5'", "for example"),
        ("1/2/3 * * * *", "minute '1/2/3'", "for example"),
        ("0 0 30 2 *", "never fires", "28-31"),
        ("0 0 31 4,6,9,11 *", "never fires", "28-31"),
        ("0 0 30 FEB */2", "never fires", "28-31"),
        ("*" * 300, "has 300 characters, at most", "ranges"),
    ],
)
def test_refused_with_the_field_the_limit_and_a_hint(text: str, message: str, hint: str) -> None:
    """Each is a 400 that names the field, what is allowed, the actual value, and what to write instead."""
    with pytest.raises(InvalidRequest) as refusal:
        parse(text)
    assert message in refusal.value.message
    assert hint in refusal.value.hint
    assert refusal.value.details is not None
    assert refusal.value.details["field"] == "cron_expr"


@pytest.mark.parametrize("alias", ALIASES)
def test_aliases_become_five_fields(alias: str) -> None:
    """In either case of letters, with space around."""
    assert parse(f" {alias.upper()} ") == parse(ALIASES[alias])


@pytest.mark.parametrize(
    ("text", "fixed"),
    [
        ("30 2 * * *", True), ("30 2,3 * * *", True), ("0-30/5 2-4 1 * 1", True), ("@daily", True),
        ("* 2 * * *", False), ("*/5 2 * * *", False), ("0 * * * *", False), ("0 */2 * * *", False),
        ("@hourly", False), ("*,5 2 * * *", False),
    ],
)  # fmt: skip
def test_fixed_times_are_those_that_do_not_begin_with_a_star(text: str, fixed: bool) -> None:
    """Debian's distinction: a first star of minute or hour makes a wildcard job."""
    assert parse(text).fixed_time is fixed


def test_the_longest_expression_is_taken() -> None:
    """At the limit, and one above."""
    fits = "10 0 1 1 1" + ",1" * limits.CRON_EXPRESSION_CHARS_MAX
    fits = fits[: limits.CRON_EXPRESSION_CHARS_MAX]
    assert len(fits) == limits.CRON_EXPRESSION_CHARS_MAX
    assert parse(fits).text == fits
    with pytest.raises(InvalidRequest, match=f"at most {limits.CRON_EXPRESSION_CHARS_MAX}"):
        parse(fits + " ")


@pytest.mark.parametrize(
    ("text", "at"),
    [
        ("0 0 L * *", "2026-02-28T00:00"),
        ("0 0 * * 5L", "2026-02-27T00:00"),
        ("0 0 * * MON#2", "2026-02-09T00:00"),
        ("0 0 L,15 * *", "2026-02-15T00:00"),
    ],
)
def test_an_operator_may_allow_more(text: str, at: str) -> None:
    """With the permission, the last day, the last Friday and the second Monday."""
    found = next_due(parse(text, allow_extended=True), "UTC", ms(utc("2026-02-01T00:00")))
    assert found is not None
    assert found.at_ms == ms(utc(at))


@pytest.mark.parametrize(
    "text", ["0 0 W * *", "0 0 LW * *", "0 0 * * MON#6", "0 0 L-3 * *", "0 0 */30 2 MON#5"]
)
def test_not_even_an_operator_may_allow_these(text: str) -> None:
    """W, what is no day, and what never comes (a fifth Monday on 1 February)."""
    with pytest.raises(InvalidRequest):
        parse(text, allow_extended=True)


def test_a_step_within_one_number_is_that_number() -> None:
    """5-5/2 is 5, as in cron(8), not 5-59/2."""
    first = next_due(parse("5-5/2 * * * *"), "UTC", 0)
    assert first is not None
    second = next_due(parse("5-5/2 * * * *"), "UTC", first.at_ms)
    assert second is not None
    assert (first.at_ms, second.at_ms) == (300_000, 3_900_000)


@pytest.mark.parametrize(
    "name", ["UTC", "Europe/Berlin", "America/Argentina/Ushuaia", "Etc/GMT+5", "EST5EDT"]
)
def test_zones_of_the_database(name: str) -> None:
    """Each is found under its name."""
    assert zone(name).key == name


@pytest.mark.parametrize(
    "name",
    [
        "", " ", "Mars/Olympus", "europe/berlin", "Europe", "../etc/passwd", "/etc/localtime", "localtime",
        "posixrules", "Factory", "right/UTC", "posix/UTC", "Europe/../UTC", "UTC\n", "UTC\0", "tzdata.zi",
        "zone.tab", "E" * 500,
    ],
)  # fmt: skip
def test_no_zone_is_refused_by_name(name: str) -> None:
    """Other names, paths, and the files beside the zones."""
    with pytest.raises(InvalidRequest, match="is not a zone of the IANA database") as refusal:
        zone(name)
    assert refusal.value.details == {"field": "timezone", "actual": name[:64]}
    with pytest.raises(InvalidRequest):
        next_due(parse("* * * * *"), name, 0)
