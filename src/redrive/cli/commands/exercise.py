"""``redrive exercise``: the staging exercise against the configured server and database."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from redrive.cli.failures import NO, OUT_OF_REACH, USAGE, Refusal
from redrive.cli.interrupts import terminable
from redrive.cli.output import note
from redrive.cli.session import SERVER, Session, command
from redrive.cli.settings import without_password

if TYPE_CHECKING:
    from redrive.exercise import Options, Outcome, Place


class Safety(StrEnum):
    """What the exercise can leave out, to show the damage."""

    NO_LEDGER = "no-ledger"


Surge = Annotated[int | None, typer.Option(help="How many jobs make the backlog (default 200).")]
Objective = Annotated[
    float | None, typer.Option(help="Seconds that the oldest ready message may be old (default 5).")
]
Wait = Annotated[float | None, typer.Option(help="The longest wait for any step, in seconds (default 60).")]
Consumers = Annotated[int | None, typer.Option(help="Consumer processes at once (default 2).")]
JobSeconds = Annotated[float | None, typer.Option(help="Seconds that each job takes (default 0.02).")]
LeaseSeconds = Annotated[
    int | None, typer.Option(help="Seconds that a killed consumer's messages stay hidden (default 5).")
]
Unsafe = Annotated[Safety | None, typer.Option(help="Leave one safety out, to see the damage.")]


def register(app: typer.Typer) -> None:
    """Add the command to ``app``."""
    command(app, "exercise", flags=(*SERVER, "ledger"))(exercise)


def exercise(
    session: Session,
    surge: Surge = None,
    objective: Objective = None,
    wait: Wait = None,
    consumers: Consumers = None,
    job_seconds: JobSeconds = None,
    lease_seconds: LeaseSeconds = None,
    unsafe: Unsafe = None,
) -> None:
    """Prove recovery on this server and this database: three jobs, one repair, one surge.

    One valid job, one sent twice, one that cannot be valid; the consumer is killed after the first delivery;
    the source record is corrected and only that item redriven; then consumers stop, a backlog grows, and its
    oldest ready age must come back. It uses a queue and tables of its own and removes them, whatever happens.
    The key needs the scopes admin, publish, consume and operate. Exit code 1: a claim does not hold.
    """
    given = {
        "surge": surge,
        "objective_seconds": objective,
        "wait_seconds": wait,
        "consumers": consumers,
        "job_seconds": job_seconds,
        "lease_seconds": lease_seconds,
        "unsafe": None if unsafe is None else unsafe.value,
    }
    options = _options({name: value for name, value in given.items() if value is not None})
    place = _place(session)
    with terminable(), _explained(place):
        from redrive.exercise import run

        outcome = run(place, session.client.transport, options, note)
    _show(session, outcome, options)
    if not outcome.holds:
        raise typer.Exit(NO)


def _options(given: dict[str, Any]) -> Options:
    from redrive.exercise import Options

    try:
        return Options(**given)
    except ValueError as error:
        raise Refusal(USAGE, str(error), code="EXERCISE") from error


def _place(session: Session) -> Place:
    from redrive.cli.stores import sqlite_file
    from redrive.exercise import Place

    settings = session.settings
    if not settings.url.lower().startswith(("http://", "https://")):
        raise Refusal(
            USAGE,
            f"the exercise needs a server, and {without_password(settings.url)} is a store",
            hint="Start one with `redrive serve`, and name it with --url http://… (REDRIVE_URL).",
            code="EXERCISE",
        )
    if settings.ledger is None:
        hint = "Give --ledger sqlite:///app.db, postgresql://… or mysql://… (REDRIVE_LEDGER)."
        raise Refusal(USAGE, "the application's database is not named", hint=hint, code="LEDGER")
    file = sqlite_file(settings.ledger)
    if file is not None and not file.is_file():
        raise Refusal(
            USAGE, f"ledger {settings.ledger}: no such file", hint="redrive ledger install", code="LEDGER"
        )
    return Place(settings.url, settings.ledger, settings.api_key, settings.ca_file)


@contextmanager
def _explained(place: Place) -> Iterator[None]:
    """What the ledger refuses before anything is made, and what its database does, with their exit codes."""
    from redrive.ledger import LedgerNotInstalled

    where = without_password(place.database)
    try:
        yield
    except LedgerNotInstalled as error:
        hint = f"redrive ledger install --ledger {where}"
        raise Refusal(USAGE, f"{where}: {error.message}", hint=hint, code=error.code) from error
    except Exception as error:
        if type(error).__module__.partition(".")[0] not in ("psycopg", "pymysql", "sqlite3"):
            raise
        hint = "The user of this database must be allowed to make and drop tables."
        reason = str(error).strip().partition("\n")[0]
        raise Refusal(OUT_OF_REACH, f"{where}: {reason}", hint=hint, code="LEDGER") from error


def _show(session: Session, outcome: Outcome, options: Options) -> None:
    from redrive.exercise import report

    if session.out.as_json:
        session.out.json(report.as_json(outcome, options))
        return
    session.out.rich(report.table(outcome, options))
    for line in report.after(outcome, options):
        session.out.line(line)
    if outcome.log:
        note(f"the consumers' log ends:\n{outcome.log}")
