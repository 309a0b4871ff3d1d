"""``redrive config``: every setting, where it comes from, and what is wrong."""

from __future__ import annotations

from typing import Any, Final

import typer

from redrive.cli.failures import NO
from redrive.cli.origins import Problem
from redrive.cli.output import Column, note
from redrive.cli.session import FLAGS, Session, command
from redrive.cli.settings import TYPES, description, hidden, variables

app = typer.Typer(help="Settings: show, check.", no_args_is_help=True)
ALL: Final = tuple(FLAGS)
COLUMNS: Final[tuple[Column, ...]] = ("setting", "value", "from")


@command(app, "show", flags=ALL)
def show(session: Session) -> None:
    """Print every setting, its value and where it comes from; secrets and passwords are shown as ***."""
    found = session.found
    rows = [
        {"setting": name, "value": hidden(name, found.values[name]), "from": found.origins[name]}
        for name in TYPES
    ]
    if session.out.as_json:
        session.out.json({"settings": rows, "problems": _problems(session)})
        return
    session.out.table(rows, COLUMNS, empty="no settings")
    for problem in _told(session):
        note(f"redrive: {'warning' if problem.warning else 'error'}: {problem}")


@command(app, "check", flags=ALL)
def check(session: Session) -> None:
    """Check the settings; exit code 1 when one is wrong. Each problem names its place and what is allowed.

    A variable that begins with REDRIVE_ and that nothing reads is a warning.
    """
    problems = _told(session)
    wrong = any(not problem.warning for problem in problems)
    if session.out.as_json:
        session.out.json({"valid": not wrong, "problems": _problems(session)})
    else:
        for problem in problems:
            session.out.line(f"{'warning' if problem.warning else 'error'}: {problem}")
        if not wrong:
            session.out.line("the settings are valid")
    if wrong:
        raise typer.Exit(NO)


@command(app, "settings", flags=())
def settings(session: Session) -> None:
    """List what can be set, and how: --name, REDRIVE_NAME, or name in redrive.toml."""
    rows = [{"setting": name, "variable": variables(name)[0], "value": description(name)} for name in TYPES]
    if session.out.as_json:
        session.out.json({"items": rows})
    else:
        session.out.table(rows, ("setting", "variable", "value"), empty="no settings")


def _problems(session: Session) -> list[dict[str, Any]]:
    return [
        {"where": problem.where, "problem": problem.what, "warning": problem.warning}
        for problem in _told(session)
    ]


def _told(session: Session) -> list[Problem]:
    return [*session.found.problems, *session.found.unread]
