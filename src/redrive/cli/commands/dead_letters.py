"""``redrive dlq``: what died and why, by cause, and the way back."""

from __future__ import annotations

from typing import Annotated, Any, Final

import typer

from redrive.cli.failures import NO, USAGE, Refusal
from redrive.cli.output import Column, note
from redrive.cli.session import LIMIT, Limit, Options, Session, command

app = typer.Typer(help="Dead letters: list, groups, show, redrive.", no_args_is_help=True)

Queue = Annotated[str, typer.Argument(help="The source queue, or its dead-letter queue.", metavar="QUEUE")]
SELECT: Final[Options] = {
    "error_type": Annotated[str | None, typer.Option(help="Of the error's type.", metavar="TYPE")],
    "fingerprint": Annotated[str | None, typer.Option(help="Of one cause (see dlq groups).")],
    "job_key": Annotated[str | None, typer.Option(help="Of this job.", metavar="KEY")],
    "since": Annotated[
        str | None, typer.Option(help="Dead at or after, as 2026-10-23T02:00:00Z.", metavar="TIME")
    ],
    "until": Annotated[str | None, typer.Option(help="Dead before.", metavar="TIME")],
    "attempts_min": Annotated[int | None, typer.Option(help="With at least so many attempts.")],
    "text": Annotated[str | None, typer.Option(help="With this text in the error.")],
}
DIED = typer.Option(
    help="max_attempts, rejected, lease_expired, undecodable, expired or checksum.", metavar="REASON"
)
Died = Annotated[str | None, DIED]
Ids = Annotated[
    list[str] | None, typer.Option("--id", help="Only this message; repeatable.", metavar="MESSAGE_ID")
]
All = Annotated[bool, typer.Option("--all", help="Without any filter: the oldest, up to --max.")]
Max = Annotated[int, typer.Option("--max", min=1, help="At most so many.")]
Reason = Annotated[str | None, typer.Option(help="Why; kept in the audit log.")]
IN_ONE_CALL: Final = 1_000
DEAD: Final[tuple[Column, ...]] = (
    "message_id",
    "job_key",
    "dead_at",
    "reason",
    "attempts",
    ("error", lambda row: _error(row.get("error"))),
    "fingerprint",
)
GROUPED: Final[tuple[Column, ...]] = (
    "fingerprint",
    "count",
    "reason",
    ("error", lambda row: _error(row.get("error"))),
    "first_dead_at",
    "last_dead_at",
    "sample_message_id",
)


ATTEMPTS: Final[tuple[Column, ...]] = (
    "delivery",
    "attempt",
    "end",
    ("error", lambda row: _error(row.get("error"))),
    "consumer_id",
    "leased_at",
    "ended_at",
)
SKIPPED: Final[tuple[Column, ...]] = ("message_id", "reason", "detail")


@command(app, "list", groups={"select": SELECT})
def listed(
    session: Session, queue: Queue, select: dict[str, Any], reason: Died = None, limit: Limit = LIMIT
) -> None:
    """List dead letters with why they died, oldest first."""
    request = {"queue": queue, "reason": reason, **select}
    session.show_items("queue.dlq.list", request, DEAD, limit=limit, empty=f"no dead letters of {queue}")


@command(app, "groups", groups={"select": SELECT})
def groups(
    session: Session, queue: Queue, select: dict[str, Any], reason: Died = None, limit: Limit = LIMIT
) -> None:
    """Group dead letters by the fingerprint of their error: one line a cause, the largest first."""
    request = {"queue": queue, "reason": reason, **select}
    session.show_items("queue.dlq.groups", request, GROUPED, limit=limit, empty=f"no dead letters of {queue}")


@command(app, "show")
def show(
    session: Session,
    message_id: Annotated[str, typer.Argument(help="As dlq list shows it.", metavar="MESSAGE_ID")],
) -> None:
    """Show one dead letter: payload, error, attempts, and every stay in the dead letters.

    Exit code 1 when the message is not a dead letter (any more).
    """
    import msgspec

    exact = session.client.exact("queue.message", {"message_id": message_id})
    found = msgspec.json.decode(exact)
    if found["state"] != "dead":
        raise Refusal(
            NO, f"message {message_id} is {found['state']}, no dead letter", hint="redrive message show"
        )
    if session.out.as_json:
        session.out.json(exact)
        return
    stay = found["lineage"][-1] if found["lineage"] else {}
    error = stay.get("error") or {}
    told = {name: stay.get(name) for name in ("reason", "fingerprint", "dead_at", "origin")}
    told |= {"error": _error(error), "stack": error.get("stack") or None}
    kept = ("message_id", "job_key", "payload", "attempt", "delivery", "enqueued_at", "expires_at", "headers")
    session.out.record({**{name: found[name] for name in kept}, **told})
    session.out.table(found["attempts"], ATTEMPTS, empty="no attempts are kept")


@command(app, "redrive", groups={"select": SELECT})
def redrive(
    session: Session,
    queue: Queue,
    select: dict[str, Any],
    ids: Ids = None,
    dead_reason: Annotated[str | None, DIED] = None,
    everything: All = False,
    most: Max = IN_ONE_CALL,
    reason: Reason = None,
) -> None:
    """Send dead letters back to their queue with a fresh attempt budget, by a plan; they keep their ids.

    Name what to send: --id, a filter, or --all. What is skipped is listed with why. Exit code 1 when nothing
    was redriven.
    """
    if not everything and not ids and dead_reason is None and not select:
        raise Refusal(
            USAGE, "what to redrive is not named", hint="Give --id, a filter or --all.", code="SELECTION"
        )
    request = {"queue": queue, "message_ids": ids or None, "reason": reason, **select}
    if ids or most <= IN_ONE_CALL:
        one_call = {"dead_reason": dead_reason, "max_messages": min(most, IN_ONE_CALL)}
        done = session.client.call("queue.dlq.redrive", request | one_call)
    else:
        done = _by_plan(session, queue, {**select, "reason": dead_reason, "max_messages": most}, reason)
    redriven = done["redriven"]
    if session.out.as_json:
        session.out.json(done)
    else:
        stayed = f", {done['skipped_count']} skipped" if done["skipped_count"] else ""
        session.out.line(f"{redriven} redriven to {queue.removesuffix('.dlq')}{stayed}")
        if done["skipped"]:
            session.out.table(done["skipped"], SKIPPED, empty="")
        if more := done["skipped_count"] - len(done["skipped"]):
            note(f"{more} more were skipped")
        if redriven > 1:
            note(f"they go at the plan's pace: redrive plan watch {done['plan_id']}")
    if not redriven:
        raise typer.Exit(NO)


def _by_plan(session: Session, queue: str, select: dict[str, Any], reason: str | None) -> dict[str, Any]:
    """More than one call takes: one plan over all of them, since a second call would find those that the
    first one's plan has not sent yet."""
    from redrive.cli.watching import frozen

    request = {"queue": queue, "select": select, "reason": reason or "dlq redrive"}
    plan_id = session.client.call("redrive.plan.create", request)["plan_id"]
    session.client.call("redrive.plan.start", {"plan_id": plan_id, "reason": reason})
    members = frozen(session, plan_id)["members"]
    return {"redriven": members, "plan_id": plan_id, "skipped_count": 0, "skipped": []}


def _error(error: Any) -> str:
    if not isinstance(error, dict):
        return "" if error is None else str(error)
    return ": ".join(part for part in (error.get("type"), error.get("message")) if part)
