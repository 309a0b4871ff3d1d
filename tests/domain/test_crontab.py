"""A crontab(5) file: what becomes a schedule, and what is said of the rest."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from redrive.domain.crontab import CHARS_MAX, Entry, read, schedule_of
from redrive.domain.errors import InvalidRequest

FILE = r"""# jobs of the night
SHELL=/bin/bash
MAILTO="ops@example.org"
API_TOKEN = s3cr3t

30 2 * * *  /usr/bin/settle --region eu   # the command's own words
@daily      find /var/spool -mtime +3 -delete
CRON_TZ=America/New_York
0 9 * * MON-FRI	report "a=b" \% done
@reboot     warm-up
15 10 * *   too few
5/15 * * * * ambiguous
0 0 1 1 *   mail -s hi%hello
0 0 * * 5#2 second friday
CRON_TZ=Mars/Olympus
0 1 * * *   lost
CRON_TZ=
0 2 * * *   found
"""


def test_lines_become_schedules() -> None:
    """Commands are as they stand there; CRON_TZ holds for what follows it."""
    assert read(FILE).entries == (
        Entry(6, "30 2 * * *", "/usr/bin/settle --region eu   # the command's own words"),
        Entry(7, "@daily", "find /var/spool -mtime +3 -delete"),
        Entry(9, "0 9 * * MON-FRI", 'report "a=b" % done', "America/New_York"),
        Entry(18, "0 2 * * *", "found"),
    )


@pytest.mark.parametrize(
    ("line", "why"),
    [
        (2, "the variable SHELL: no shell is started"), (3, "the variable MAILTO: nothing is mailed"),
        (4, "the variable API_TOKEN: set it where the worker runs"), (10, "@reboot"),
        (11, "its day of week is no number"),
        (12, "'5/15' is read as 5 alone by some"), (13, "a percent sign"),
        (14, "an operator may allow"), (15, "'Mars/Olympus' is not a zone"), (16, "CRON_TZ of line 15"),
    ],
)  # fmt: skip
def test_what_is_not_taken_over_is_said_with_its_line(line: int, why: str) -> None:
    """Every other line has one finding that says why."""
    found = [finding for finding in read(FILE).findings if finding.line == line]
    assert len(found) == 1
    assert why in found[0].why
    assert not found[0].taken


def test_no_command_and_no_value_is_repeated() -> None:
    """Findings hold neither: both may be secrets."""
    said = " ".join(finding.why for finding in read(FILE).findings)
    for secret in (
        "too",
        "TOO",
        "s3cr3t",
        "ops@example.org",
        "/bin/bash",
        "warm-up",
        "hello",
        "second friday",
    ):
        assert secret not in said


def test_the_systems_form_has_a_user() -> None:
    """With the option the user is cut off, and named as left out; without it, it would be the command."""
    text = "17 *\t* * *\troot    cd / && run-parts /etc/cron.hourly\n@daily www-data tidy\n0 0 * * * root\n"
    crontab = read(text, user_column=True)
    assert crontab.entries == (
        Entry(1, "17 * * * *", "cd / && run-parts /etc/cron.hourly", user="root"),
        Entry(2, "@daily", "tidy", user="www-data"),
    )
    assert [(f.line, f.taken) for f in crontab.findings] == [(1, True), (2, True), (3, False)]
    assert read(text).entries[0].command.startswith("root ")


def test_the_body_of_a_create() -> None:
    """The command is the payload of a publish; the file's own zone goes before the machine's."""
    first, _, third, _ = read(FILE).entries
    assert schedule_of(first, "night", "Europe/Berlin") == {
        "name": "crontab line 6",
        "cron_expr": "30 2 * * *",
        "timezone": "Europe/Berlin",
        "publish": {"queue": "night", "payload": {"command": first.command}},
    }
    assert schedule_of(third, "night", "Europe/Berlin")["timezone"] == "America/New_York"


def test_a_file_that_is_too_long_is_refused() -> None:
    """At the limit it is read; above it, the refusal names both numbers."""
    assert read("#" * CHARS_MAX).entries == ()
    with pytest.raises(InvalidRequest, match=f"has {CHARS_MAX + 1} characters, at most {CHARS_MAX}"):
        read("#" * (CHARS_MAX + 1))


@given(st.text(alphabet="0159*/,-@%\\=# \t\nABdailyreboot", max_size=200))
def test_every_line_is_an_entry_or_a_finding(text: str) -> None:
    """Nothing escapes, and nothing is dropped without a word."""
    crontab = read(text)
    spoken = {entry.line for entry in crontab.entries} | {finding.line for finding in crontab.findings}
    lines = enumerate(text.splitlines(), start=1)
    assert spoken == {n for n, line in lines if line.strip() and not line.strip().startswith("#")}
