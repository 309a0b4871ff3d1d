"""``redrive ledger``: the application's side of the evidence, in its own database."""

from __future__ import annotations

import signal
import threading
from datetime import datetime
from typing import Annotated, Any, Final

import typer

from redrive.cli.failures import NO, Refusal
from redrive.cli.output import Column, note, progress
from redrive.cli.session import SERVER, Session, command
from redrive.cli.settings import without_password
from redrive.cli.stores import opened_ledger, timed

app = typer.Typer(
    help="The ledger in the application's database: install, status, job, batches, windows, relay.",
    no_args_is_help=True,
)
LEDGER: Final = ("ledger",)
STATES: Final = ("planned", "accepted", "completed", "isolated", "cancelled")

JobKey = Annotated[str, typer.Argument(help="The job's stable business key.", metavar="JOB_KEY")]
Once = Annotated[bool, typer.Option("--once", help="Publish what is planned now, then end.")]
BatchKey = Annotated[str, typer.Argument(help="The batch's key.", metavar="BATCH_KEY")]
BatchState = Annotated[
    str | None, typer.Option("--state", help="Only open (also overdue), complete or cancelled ones.")
]
Cancel = Annotated[bool, typer.Option("--cancel", help="Cancel it first.")]
WindowName = Annotated[str | None, typer.Argument(help="The window's name.", metavar="NAME")]
After = Annotated[str, typer.Option("--after", help="Only those after this key, for the next page.")]
Limit = Annotated[int, typer.Option("--limit", min=1, max=1000, help="At most as many.")]
BATCHES: Final[tuple[Column, ...]] = (
    "key", "state", "members", "open_members", "queue", "window", "deadline_at", "created_at",
)  # fmt: skip
HOLDING: Final[tuple[Column, ...]] = (
    "key", "state", "message_id", "outcome",
    ("error", lambda row: ": ".join(part for part in (row["error_type"], row["error_message"]) if part)),
    "updated_at",
)  # fmt: skip
WINDOWS: Final[tuple[Column, ...]] = ("name", "mark", "open_until", "held_by", "batch", "completed_at")
DONE: Final[tuple[Column, ...]] = ("start", "end", "batch", "opened_at", "completed_at")
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


@command(app, "batches", flags=LEDGER)
def batches(session: Session, state: BatchState = None, after: After = "", limit: Limit = 100) -> None:
    """List the batches: how many of their members are open, and whether they are late."""
    from dataclasses import asdict

    with opened_ledger(session) as (ledger, _):
        found = [_dated(asdict(each)) for each in ledger.batches(state=state, after=after, limit=limit)]
    if session.out.as_json:
        session.out.json({"batches": found})
    else:
        session.out.table(found, BATCHES, empty="no batches")


@command(app, "batch", flags=LEDGER)
def batch(session: Session, key: BatchKey, cancel: Cancel = False) -> None:
    """Show one batch: its members by state, those that hold it open and why, its follow-up.

    With --cancel it is cancelled first: members that are not completed must not run any more, the follow-up
    is never published. Exit code 1 when the ledger does not know it, or it is complete and cannot be
    cancelled.
    """
    from dataclasses import asdict

    from redrive.ledger import BatchClosed, BatchNotFound

    with opened_ledger(session) as (ledger, _):
        try:
            if cancel:
                count = ledger.cancel_batch(key)
                note(f"redrive: {count} members cancelled")
            status = ledger.batch_status(key)
        except (BatchClosed, BatchNotFound) as refused:
            raise Refusal(NO, refused.message, hint=refused.hint, code=refused.code) from None
    record = _dated(asdict(status.batch))
    holding = [timed(asdict(member)) for member in status.holding]
    follow_ups = {
        name: None if due is None else asdict(due)
        for name, due in (("then", status.then), ("on_deadline", status.on_deadline))
    }
    if session.out.as_json:
        session.out.json({**record, "counts": dict(status.counts), **follow_ups, "holding": holding})
        return
    shown = {
        name: due and f"{due['key']} ({due['state'] or 'not planned'})" for name, due in follow_ups.items()
    }
    counts = ", ".join(f"{count} {state}" for state, count in status.counts.items() if count)
    session.out.record({**record, "counts": counts, **shown})
    if holding:
        session.out.table(holding, HOLDING, empty="")
    elif status.batch.state in ("open", "overdue"):
        note("no member is isolated: it waits for those that are planned or accepted")


@command(app, "windows", flags=LEDGER)
def windows(session: Session, name: WindowName = None, after: After = "", limit: Limit = 100) -> None:
    """List the windows: up to where each is completed, and who has the open one.

    With a NAME: the completed ones of it, newest first.
    """
    from dataclasses import asdict

    with opened_ledger(session) as (ledger, _):
        if name is None:
            found = [_dated(asdict(each)) for each in ledger.windows(after=after, limit=limit)]
        else:
            found = [_dated(asdict(each)) for each in ledger.window_history(name, limit=limit)]
    if session.out.as_json:
        session.out.json({"windows": found})
    elif name is None:
        session.out.table(found, WINDOWS, empty="no windows")
    else:
        session.out.table(found, DONE, empty=f"no completed window of {name}")


def _dated(record: dict[str, Any]) -> dict[str, Any]:
    """A record with all its times as RFC 3339; a window's bounds keep their microseconds."""
    return {
        name: value.isoformat().replace("+00:00", "Z") if isinstance(value, datetime) else value
        for name, value in timed(record).items()
    }


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
