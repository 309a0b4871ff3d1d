"""``redrive ledger``: the application's side of the evidence, in its own database."""

from __future__ import annotations

import signal
import threading
from typing import Annotated, Any, Final

import typer

from redrive.cli.failures import NO, Refusal
from redrive.cli.output import Column, note, progress
from redrive.cli.session import SERVER, Session, command
from redrive.cli.settings import without_password
from redrive.cli.stores import opened_ledger, timed

app = typer.Typer(
    help="The ledger in the application's database: install, status, job, relay.", no_args_is_help=True
)
LEDGER: Final = ("ledger",)
STATES: Final = ("planned", "accepted", "completed", "isolated", "cancelled")

JobKey = Annotated[str, typer.Argument(help="The job's stable business key.", metavar="JOB_KEY")]
Once = Annotated[bool, typer.Option("--once", help="Publish what is planned now, then end.")]
ATTEMPTS: Final[tuple[Column, ...]] = (
    "delivery", "attempt", "outcome", "worker", "started_at", "ended_at",
    ("error", lambda row: ": ".join(part for part in (row["error_type"], row["error_message"]) if part)),
)  # fmt: skip


@command(app, "install", flags=LEDGER)
def install(session: Session) -> None:
    """Create the ledger's tables, or bring them to this version; what is there stays."""
    with opened_ledger(session, new=True) as (ledger, where):
        applied = ledger.install()
    if session.out.as_json:
        session.out.json({"ledger": where, "applied": applied})
    elif applied:
        session.out.line(f"{where}: the ledger's tables are at version {applied[-1]} now")
    else:
        session.out.line(f"{where}: the ledger's tables are up to date")


@command(app, "status", flags=LEDGER)
def status(session: Session) -> None:
    """Count the ledger's jobs by state, and what still waits for a relay."""
    from dataclasses import asdict

    with opened_ledger(session) as (ledger, _):
        found = asdict(ledger.status())
    if session.out.as_json:
        session.out.json(found)
    else:
        session.out.record(found)


@command(app, "job", flags=LEDGER)
def job(session: Session, job_key: JobKey) -> None:
    """Show one job: its state, its result, and how each of its deliveries ended.

    Exit code 1 when the ledger does not know it.
    """
    from dataclasses import asdict

    with opened_ledger(session) as (ledger, where):
        found = ledger.job(job_key)
        attempts = [timed(asdict(attempt)) for attempt in ledger.attempts(job_key)]
    if found is None:
        raise Refusal(NO, f"{where} knows no job {job_key}", code="JOB_NOT_FOUND")
    record = timed(asdict(found))
    if session.out.as_json:
        session.out.json({**record, "attempts": attempts})
        return
    session.out.record(record)
    session.out.table(attempts, ATTEMPTS, empty="no attempts are recorded")


@command(app, "relay", flags=(*SERVER, "ledger", "log_level", "log_format"))
def relay(session: Session, once: Once = False) -> None:
    """Publish what the application planned in its transactions, until SIGTERM or SIGINT.

    Workers with a ledger do this as well; any number may run. With --once: exit code 1 when something is
    left that the queue refuses.
    """
    from redrive.cli import logs
    from redrive.worker.relay import Relay

    logs.configure(session.settings)
    with opened_ledger(session) as (ledger, where):
        ledger.status()  # raises LedgerNotInstalled before anything is promised
        runner = Relay(ledger, session.client.transport)
        if once:
            _drain(session, ledger, runner)
            return
        stopping = threading.Event()
        numbers = (signal.SIGTERM, signal.SIGINT)
        before = [signal.signal(number, lambda *_: stopping.set()) for number in numbers]
        try:
            target = without_password(session.settings.url)
            note(f"redrive: relaying from {where} to {target}; stop it with Ctrl-C")
            runner.loop(stopping)
        finally:
            for number, handler in zip(numbers, before, strict=True):
                signal.signal(number, handler)


def _drain(session: Session, ledger: Any, runner: Any) -> None:
    published = 0
    with progress("relaying", ledger.status().waiting_for_relay) as advance:
        while moved := runner.once():
            published += moved
            advance(moved)
    waiting = ledger.status().waiting_for_relay
    if session.out.as_json:
        session.out.json({"published": published, "waiting_for_relay": waiting})
    else:
        session.out.line(f"{published} published, {waiting} waiting")
    if waiting:
        raise typer.Exit(NO)
