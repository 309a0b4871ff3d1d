"""``redrive plan``: a redrive as an object: looked at before, paced, stopped by rules, followed."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Annotated, Any, Final

import typer

from redrive.cli import plan_views, receipts
from redrive.cli.commands.dead_letters import SELECT
from redrive.cli.failures import NO
from redrive.cli.output import note
from redrive.cli.plan_options import (
    ENVELOPE,
    GROUPS,
    Actor,
    All,
    Died,
    Ids,
    Max,
    Plan,
    Reason,
    enveloped,
    merge_patch,
    selection,
)
from redrive.cli.session import LIMIT, SERVER, Limit, Session, command
from redrive.cli.stores import opened_ledger
from redrive.cli.watching import frozen, watch

app = typer.Typer(
    help="Redrive plans: estimate, create, show, list, items, start, pause, resume, abort, resolve, watch.",
    no_args_is_help=True,
)
Queue = Annotated[str, typer.Argument(help="The source queue, or its dead-letter queue.", metavar="QUEUE")]
OneQueue = Annotated[str | None, typer.Option(help="Only of this queue.")]
State = Annotated[
    str | None, typer.Option(help="freezing, draft, running, paused, completed or aborted.", metavar="STATE")
]
Outcome = Annotated[
    str | None, typer.Option(help="Only these, as pending, dead_again, already_completed.", metavar="OUTCOME")
]
DryRun = Annotated[
    bool, typer.Option("--dry-run", help="Only say what the plan would be; nothing is stored.")
]
Start = Annotated[bool, typer.Option("--start", help="Let it run at once.")]
Edit = Annotated[
    str | None,
    typer.Option(help="A JSON merge patch on the payloads, only with --id; @FILE reads it.", metavar="JSON"),
]
WITH_LEDGER: Final = (*SERVER, "ledger")


@command(app, "estimate", groups={"select": SELECT, "envelope": ENVELOPE})
def estimate(
    session: Session, queue: Queue, select: dict[str, Any], envelope: dict[str, Any], ids: Ids = None,
    dead_reason: Died = None, everything: All = False, most: Max = None,
) -> None:  # fmt: skip
    """Say how long a redrive would take and how fast it may go; changes nothing."""
    chosen = selection(select, ids, dead_reason, everything, most)
    request = {"queue": queue, "select": chosen, "envelope": enveloped(envelope)}
    session.show_record("redrive.estimate", request)


@command(app, "create", groups=GROUPS, flags=WITH_LEDGER)
def create(
    session: Session, queue: Queue, select: dict[str, Any], envelope: dict[str, Any], abort: dict[str, Any],
    ids: Ids = None, dead_reason: Died = None, everything: All = False, most: Max = None,
    reason: Reason = None, actor: Actor = None, edit: Edit = None, dry_run: DryRun = False,
    start: Start = False,
) -> None:  # fmt: skip
    """Freeze dead letters into a plan: a draft, until it is started. They keep their ids.

    Name what belongs to it: --id, a filter, or --all. With a ledger, members whose jobs are completed are
    resolved without sending.
    """
    chosen = selection(select, ids, dead_reason, everything, most)
    request = {
        "queue": queue, "select": chosen, "envelope": enveloped(envelope), "abort": abort or None,
        "reason": reason or ("dry run" if dry_run else ""), "actor": actor, "edit": merge_patch(edit),
        "dry_run": dry_run,
    }  # fmt: skip
    with _ledger_at_hand(session) as ledger:
        if dry_run:
            made = session.client.exact("redrive.plan.create", request)
            found = None if ledger is None else receipts.count(session, ledger, queue, chosen)
            _show(session, made, found)
            return
        plan_id = session.client.call("redrive.plan.create", request)["plan_id"]
        found = None
        if ledger is not None:
            members = frozen(session, plan_id)["members"]
            found = receipts.resolve(session, ledger, plan_id, members, actor)
    if start:
        session.client.call("redrive.plan.start", {"plan_id": plan_id, "reason": reason, "actor": actor})
    _show(session, session.client.exact("redrive.plan.get", {"plan_id": plan_id}), found)
    if not start and not session.out.as_json:
        note(f"it is sent when you say so: redrive plan start {plan_id}")


@command(app, "show")
def show(session: Session, plan: Plan) -> None:
    """Show a plan with its progress."""
    _show(session, session.client.exact("redrive.plan.get", {"plan_id": plan}), None)


@command(app, "list")
def listed(session: Session, queue: OneQueue = None, state: State = None, limit: Limit = LIMIT) -> None:
    """List plans, newest first."""
    request = {"queue": queue, "state": state}
    session.show_items("redrive.plan.list", request, plan_views.LISTED, limit=limit, empty="no plans")


@command(app, "items")
def items(session: Session, plan: Plan, outcome: Outcome = None, limit: Limit = LIMIT) -> None:
    """List a plan's members and what became of each."""
    request = {"plan_id": plan, "outcome": outcome}
    session.show_items("redrive.plan.items", request, plan_views.ITEMS, limit=limit, empty="no such members")


@command(app, "start")
def start(session: Session, plan: Plan, reason: Reason = None, actor: Actor = None) -> None:
    """Let a plan run; one that still freezes runs when it is frozen."""
    _change(session, "start", plan, reason, actor)


@command(app, "pause")
def pause(session: Session, plan: Plan, reason: Reason = None, actor: Actor = None) -> None:
    """Send no more members for now; consumers go on."""
    _change(session, "pause", plan, reason, actor)


@command(app, "resume")
def resume(session: Session, plan: Plan, reason: Reason = None, actor: Actor = None) -> None:
    """Go on; after a rule has paused the plan a --reason is needed."""
    _change(session, "resume", plan, reason, actor)


@command(app, "abort")
def abort(session: Session, plan: Plan, reason: Reason = None, actor: Actor = None) -> None:
    """Send no more members, ever; what was sent goes its way, the others stay dead letters."""
    _change(session, "abort", plan, reason, actor)


@command(app, "resolve", flags=WITH_LEDGER)
def resolve(session: Session, plan: Plan, actor: Actor = None) -> None:
    """Close members whose jobs the ledger knows as completed, without sending them.

    Exit code 1 when some of them could not be closed.
    """
    with opened_ledger(session) as (ledger, _):
        receipts.check(ledger)
        members = frozen(session, plan)["members"]
        found = receipts.resolve(session, ledger, plan, members, actor)
    if session.out.as_json:
        session.out.json({"plan_id": plan, **receipts.as_fields(found)})
    else:
        receipts.tell(session, found)
    if found.open:
        raise typer.Exit(NO)


@command(app, "watch")
def watched(session: Session, plan: Plan) -> None:
    """Follow a plan until it ends or pauses; Ctrl-C leaves it running.

    Exit code 1 when it was paused, by a rule or by somebody, or aborted.
    """
    watch(session, plan)


def _change(session: Session, verb: str, plan_id: str, reason: str | None, actor: str | None) -> None:
    request = {"plan_id": plan_id, "reason": reason, "actor": actor}

    def told(plan: Any) -> str:
        waits = " and starts when it is frozen" if (verb, plan["state"]) == ("start", "freezing") else ""
        return f"{plan_id} is {plan['state']}{waits}"

    session.do(f"redrive.plan.{verb}", request, told)


def _show(session: Session, exact: bytes, found: receipts.Receipts | None) -> None:
    """A plan, and what the ledger said of its members."""
    import msgspec

    if session.out.as_json:
        more = b"" if found is None else b',"receipts":' + msgspec.json.encode(receipts.as_fields(found))
        session.out.json(exact.rstrip()[:-1] + more + b"}")
        return
    plan = msgspec.json.decode(exact)
    plan_views.show(session, plan)
    if found is None:
        return
    if plan["plan_id"] is None:
        session.out.line(
            f"{found.completed} of {found.looked_at} are completed in the ledger: they would not be sent"
        )
    else:
        receipts.tell(session, found)


@contextlib.contextmanager
def _ledger_at_hand(session: Session) -> Iterator[Any]:
    """The ledger if one is named, asked once before anything is made; else None."""
    if session.settings.ledger is None:
        yield None
        return
    with opened_ledger(session) as (ledger, _):
        receipts.check(ledger)
        yield ledger
