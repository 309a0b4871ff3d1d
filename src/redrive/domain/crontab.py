"""A crontab(5) file as schedules, and what of it cannot be taken over.

Redrive runs no commands. A line becomes a schedule that publishes its command as a payload
(``{"command": …}``) for a worker that knows what to do with it; the reader says of every other thing in the
file what becomes of it. It never repeats a command or the value of a variable: both may hold secrets.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Final

from redrive.domain.cron import parse, zone
from redrive.domain.errors import InvalidRequest

CHARS_MAX: Final = 1_048_576  # of a file
_VARIABLE = re.compile(r"""\s*["']?(?P<name>[A-Za-z_]\w*)["']?\s*=\s*(?P<value>.*?)\s*""", re.ASCII)
_OPEN_STEP = re.compile(r"(?:^|[\s,])(?P<item>\w+/[0-9]+)", re.ASCII)
_HARMLESS = re.compile(r"[0-9*,/#?LW-]{1,20}", re.ASCII)
_PERCENT = re.compile(r"(?<!\\)%")


@dataclass(frozen=True, slots=True)
class Entry:
    """A line that can be taken over. ``line`` counts from 1; ``expression`` as it stands there; ``timezone``
    by a CRON_TZ line above it, None: the machine's own; ``user`` of the system's form."""

    line: int
    expression: str
    command: str
    timezone: str | None = None
    user: str | None = None


@dataclass(frozen=True, slots=True)
class Finding:
    """What is not taken over of a line, and why. ``taken``: the line's schedule is, without this."""

    line: int
    why: str
    taken: bool = False


@dataclass(frozen=True, slots=True)
class Crontab:
    """What a file holds, both in the order of its lines."""

    entries: tuple[Entry, ...]
    findings: tuple[Finding, ...]


def read(text: str, *, user_column: bool = False) -> Crontab:
    """Read a crontab. ``user_column``: the system's form (/etc/crontab), with a user before the command.

    A line that cannot be read is a finding, never an error; only a file above ``CHARS_MAX`` characters is
    refused (``InvalidRequest``).
    """
    if len(text) > CHARS_MAX:
        raise InvalidRequest(
            f"the crontab has {len(text)} characters, at most {CHARS_MAX}", hint="is this a crontab?"
        )
    reader = _Reader(user_column)
    for number, line in enumerate(text.splitlines(), start=1):
        if line.strip() and not line.lstrip().startswith("#"):
            reader.take(number, line.strip())
    return Crontab(tuple(reader.entries), tuple(reader.findings))


def schedule_of(entry: Entry, queue: str, timezone: str) -> dict[str, Any]:
    """The body of a create for an entry: its command is published into ``queue``. ``timezone`` is that of
    the machine whose crontab it is; a CRON_TZ line goes before it."""
    return {
        "name": f"crontab line {entry.line}",
        "cron_expr": entry.expression,
        "timezone": entry.timezone or timezone,
        "publish": {"queue": queue, "payload": {"command": entry.command}},
    }


class _Reader:
    def __init__(self, user_column: bool) -> None:
        self._user_column = user_column
        self._timezone: str | None = None
        self._bad_zone_line: int | None = None  # what follows it has no time that is known
        self.entries: list[Entry] = []
        self.findings: list[Finding] = []

    def take(self, number: int, line: str) -> None:
        """One line that is neither empty nor a comment."""
        if variable := _VARIABLE.fullmatch(line):
            self._variable(number, variable["name"], variable["value"].strip("\"'"))
            return
        try:
            entry = self._entry(number, line)
        except InvalidRequest as refusal:
            why = f"{refusal.message}; {refusal.hint}" if refusal.hint else refusal.message
            self.findings.append(Finding(number, why))
            return
        self.entries.append(entry)
        if entry.user is not None:
            self.findings.append(Finding(number, "its user: the worker's own user runs it", taken=True))

    def _entry(self, number: int, line: str) -> Entry:
        words = line.split(None, 1 if line.startswith("@") else 5)
        fields, rest = (words[:1], words[1:]) if line.startswith("@") else (words[:5], words[5:])
        expression = " ".join(fields)
        _check(expression)
        if ambiguous := _OPEN_STEP.search(expression):
            item, _, step = ambiguous["item"].partition("/")
            raise InvalidRequest(
                f"{ambiguous['item']!r} is read as {item} alone by some crons and as a range by others",
                hint=f"write {item}, or a range: {item}-LAST/{step}",
            )
        user, command = self._split(rest)
        if not command:
            raise InvalidRequest(
                "it has no command", hint="a line is five fields (or @daily …) and a command"
            )
        if _PERCENT.search(command):
            raise InvalidRequest(
                "a percent sign in its command begins the standard input, which a message has not",
                hint=r"write \% for the sign itself, or put the input into a file",
            )
        if self._bad_zone_line is not None:
            raise InvalidRequest(f"CRON_TZ of line {self._bad_zone_line} is not a zone")
        return Entry(number, expression, command.replace(r"\%", "%"), self._timezone, user)

    def _split(self, rest: list[str]) -> tuple[str | None, str]:
        text = rest[0] if rest else ""
        if not self._user_column:
            return None, text
        words = text.split(None, 1)
        return (words[0] if words else None), (words[1] if len(words) > 1 else "")

    def _variable(self, number: int, name: str, value: str) -> None:
        if name != "CRON_TZ":
            self.findings.append(Finding(number, f"the variable {name}: {_VARIABLES.get(name, _OTHER)}"))
            return
        self._timezone, self._bad_zone_line = None, None
        try:
            if value:
                self._timezone = zone(value).key
        except InvalidRequest as refusal:
            self._bad_zone_line = number
            self.findings.append(Finding(number, refusal.message))


def _check(expression: str) -> None:
    """``parse``, but what may be the beginning of a command (a field is missing) is not repeated."""
    try:
        parse(expression)
    except InvalidRequest as refusal:
        details = refusal.details or {}
        if "part" not in details or _HARMLESS.fullmatch(str(details.get("actual"))):
            raise
        raise InvalidRequest(
            f"its {details['part']} is no number, name, range, step or list", hint=refusal.hint
        ) from None


_OTHER: Final = "set it where the worker runs"
_VARIABLES: Final = {
    "MAILTO": "nothing is mailed; on_failure_webhook tells of failures",
    "MAILFROM": "nothing is mailed; on_failure_webhook tells of failures",
    "SHELL": "no shell is started; the worker decides how a command runs",
    "TZ": "it is the command's zone, not that of the times: set it where the worker runs",
    "RANDOM_DELAY": "jitter_seconds of a schedule spreads it",
}
