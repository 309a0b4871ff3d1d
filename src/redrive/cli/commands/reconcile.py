"""``redrive reconcile``: what the queue says against what the business ledger says; repairs on request."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from itertools import islice
from typing import Annotated, Any, Final

import typer

from redrive.cli.confirm import confirm, may_ask
from redrive.cli.failures import NO, USAGE, Refusal
from redrive.cli.output import Column, note, stages
from redrive.cli.session import LIMIT, SERVER, Limit, Session, command
from redrive.cli.stores import opened_ledger
from redrive.cli.text import counted

FLAGS: Final = (*SERVER, "ledger")
Queue = Annotated[str, typer.Option("--queue", help="The queue.", metavar="QUEUE")]
Repair = Annotated[
    str | None,
    typer.Option(
        help="requeue, ack, adopt or sync: show what that would do, and do it once confirmed.",
        metavar="REPAIR",
    ),
]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask before a repair.")]
Reason = Annotated[str, typer.Option(help="Why it is repaired; kept in the audit log.")]
Settle = Annotated[
    float, typer.Option("--settle", min=0, help="Seconds that a completed job may still be leased.")
]
Unplanned = Annotated[
    bool, typer.Option("--unplanned", help="Messages without a row in the ledger are in order here.")
]
FOUND: Final[tuple[Column, ...]] = (
    "cause", "job_key", "message_id",
    ("ledger", lambda row: row["ledger_state"]),
    ("queue", lambda row: row["held_state"]),
    "remedy",
)  # fmt: skip
STEPS: Final[tuple[Column, ...]] = ("job_key", "cause", "action", "obstacle")


def register(app: typer.Typer) -> None:
    """Add the command to the tree."""
    command(app, "reconcile", flags=FLAGS)(reconcile)


def reconcile(
    session: Session,
    queue: Queue,
    repair: Repair = None,
    reason: Reason = "reconciliation",
    settle: Settle = 60.0,
    unplanned: Unplanned = False,
    limit: Limit = LIMIT,
    yes: Yes = False,
) -> None:
    """Hold what a queue has against what the ledger waits for, job by job; changes nothing without --repair.

    Found are jobs whose message is gone (acknowledged early, expired, purged), messages that nobody planned,
    and messages of jobs that are done. Exit code 1 when something is unexplained, or cannot be known.
    """
    _check(repair)
    transport = session.client.transport
    with opened_ledger(session) as (ledger, _):
        with stages() as told:
            found = ledger.reconcile(
                queue, transport, settle_seconds=settle, unplanned=unplanned, progress=told
            )
        with found:
            left = found.summary.unexplained + found.summary.cannot_be_known
            if not session.out.as_json:
                _show(session, found, limit)
            planned = repaired = None
            if repair is not None:
                planned = _planned(session, ledger, found, repair, limit)
            if repair is not None and (yes or not session.out.as_json):
                repaired = _repair(session, ledger, found, repair, reason=reason, yes=yes)
                left -= 0 if repair == "sync" else repaired.done + repaired.changed
            if session.out.as_json:
                _tell(found, limit, planned, repaired)
    if left:
        raise typer.Exit(NO)


def _check(repair: str | None) -> None:
    from redrive.domain.reconcile import REPAIRS

    if repair is not None and repair not in REPAIRS:
        raise Refusal(
            USAGE,
            f"repair must be one of {', '.join(REPAIRS)}, got {repair!r}",
            hint="The table of findings names the repair of each.",
            code="REPAIR",
        )


def _show(session: Session, found: Any, limit: int) -> None:
    """Findings as a table, then what they come to."""
    from redrive.domain.reconcile import MEANING, Cause

    summary = found.summary
    causes = [Cause(cause) for cause in summary.causes]
    if causes:
        session.out.table(map(_row, _some(found.findings(), limit)), FOUND, empty="")
        if limit and sum(summary.causes.values()) > limit:
            note(f"the first {limit} findings are shown; --limit 0 shows all")
        session.out.line("")
        for cause in causes:
            session.out.line(f"{summary.causes[cause.value]} {cause.value}: {MEANING[cause]}")
    jobs = ", ".join(f"{count} {state}" for state, count in summary.jobs.items() if count)
    held = ", ".join(f"{count} {state}" for state, count in sorted(summary.held.items()))
    session.out.line(f"ledger: {jobs or 'no jobs'} of {summary.queue}; queue: {held or 'nothing'}")
    for limited in summary.limits:
        session.out.line(f"not known: {limited}")
    if summary.cannot_be_known:
        session.out.line(f"{counted(summary.cannot_be_known, 'job')} cannot be accounted for")
    verdict = "nothing is unexplained"
    if summary.unexplained:
        verdict = f"{summary.unexplained} unexplained"
    session.out.line(verdict)


def _tell(found: Any, limit: int, planned: Any, repaired: Any) -> None:
    """One JSON document, written piece by piece: findings may be many. ``plan`` without ``repaired``: it was
    not carried out, for want of --yes."""
    import msgspec

    encode = msgspec.json.encode
    out = sys.stdout.buffer
    summary = {**msgspec.to_builtins(found.summary), "explained": found.explained}
    out.write(encode({**summary, "plan": planned, "repaired": repaired})[:-1] + b',"findings":[')
    for number, finding in enumerate(_some(found.findings(), limit)):
        out.write((b"," if number else b"") + encode(_row(finding)))
    out.write(b"]}\n")


def _row(finding: Any) -> dict[str, Any]:
    import msgspec

    from redrive.contract.instants import rfc3339
    from redrive.domain.reconcile import REMEDY

    row: dict[str, Any] = msgspec.to_builtins(finding)
    completed_ms = row.pop("completed_at_ms")
    row["completed_at"] = None if completed_ms is None else rfc3339(completed_ms)
    return {**row, "remedy": REMEDY[finding.cause]}


def _planned(session: Session, ledger: Any, found: Any, repair: str, limit: int) -> dict[str, Any]:
    """What the repair would do: shown, and as a value with the first steps."""
    from redrive.domain.reconcile import REPAIR_OF, Cause

    causes = [cause.value for cause, of in REPAIR_OF.items() if of == repair]
    count = sum(found.summary.causes.get(cause, 0) for cause in causes)
    steps = [
        {
            "job_key": step.finding.job_key,
            "cause": Cause(step.finding.cause).value,
            "action": step.action,
            "obstacle": step.obstacle,
        }
        for step in _some(ledger.plan_repair(found, repair, session.client.transport), limit or count)
    ]
    if not session.out.as_json:
        session.out.line(f"\nplan of --repair {repair}: {counted(count, 'finding')}")
        session.out.table(steps, STEPS, empty="nothing is to be repaired that way")
        if count > len(steps):
            note(f"the first {len(steps)} are shown; --limit 0 shows all")
    return {"repair": repair, "findings": count, "steps": steps}


def _repair(session: Session, ledger: Any, found: Any, repair: str, *, reason: str, yes: bool) -> Any:
    """The question, then the deed. What is requeued is published at once, by a relay of this command."""
    transport = session.client.transport
    if any(step.obstacle is None for step in ledger.plan_repair(found, repair, transport)):
        may_ask(f"the repair {repair}", yes=yes)
        confirm("Carry out this plan?", yes=yes)
    with stages() as told:
        repaired = ledger.repair(found, repair, transport, reason=reason, progress=told)
        if repair == "requeue" and repaired.done:
            _relay(ledger, transport, told)
    for refusal in repaired.refusals:
        note(f"redrive: {refusal}")
    if not session.out.as_json:
        session.out.line(
            f"{repair}: {repaired.done} done, {repaired.changed} changed meanwhile and left alone, "
            f"{repaired.impossible} impossible, {repaired.refused} refused"
        )
    return repaired


def _relay(ledger: Any, transport: Any, told: Any) -> None:
    from redrive.worker.relay import Relay

    runner, waiting = Relay(ledger, transport), ledger.status().waiting_for_relay
    while waiting > 0 and (moved := runner.once()):
        waiting -= moved
        told("publishing", moved, None)
    if waiting := ledger.status().waiting_for_relay:
        note(f"redrive: {counted(waiting, 'job')} of this ledger still wait for a relay (`ledger relay`)")


def _some(items: Iterator[Any], limit: int) -> Iterator[Any]:
    return islice(items, limit) if limit else items
