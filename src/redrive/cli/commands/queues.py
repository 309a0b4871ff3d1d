"""``redrive queue``: make queues, look at them, stop and start them, empty and delete them."""

from __future__ import annotations

from typing import Annotated, Any, Final

import typer

from redrive.cli.confirm import confirm, may_ask
from redrive.cli.output import Column
from redrive.cli.session import LIMIT, OPERATOR, Limit, Options, Session, command
from redrive.cli.text import counted

app = typer.Typer(help="Queues: create, list, stats, pause, resume, purge, delete.", no_args_is_help=True)

Name = Annotated[str, typer.Argument(help="The queue's name.", metavar="QUEUE")]
Reason = Annotated[str | None, typer.Option(help="Why; kept in the audit log.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]

POLICY: Final[Options] = {
    "type": Annotated[str | None, typer.Option(help="standard (default) or fifo.", metavar="TYPE")],
    "max_retries": Annotated[int | None, typer.Option(help="Retries after the first delivery.")],
    "visibility_timeout_default": Annotated[
        float | None, typer.Option("--visibility-timeout", help="Seconds that a delivery is hidden.")
    ],
    "retention_seconds": Annotated[int | None, typer.Option(help="Seconds that a message may wait.")],
    "dead_letter_queue": Annotated[str | None, typer.Option(help="Where dead letters go.", metavar="QUEUE")],
    "max_in_flight": Annotated[int | None, typer.Option(help="Leases at once; 0: no limit.")],
    "max_per_second": Annotated[float | None, typer.Option(help="Leases a second; 0: no limit.")],
    "max_lease_seconds": Annotated[float | None, typer.Option(help="The longest lease.")],
    "max_redrives": Annotated[int | None, typer.Option(help="How often one message may be redriven.")],
    "redrive_policy": Annotated[
        str | None, typer.Option(help="free, review or forbidden.", metavar="POLICY")
    ],
    "fifo_on_dead": Annotated[
        str | None, typer.Option(help="block or continue: a FIFO group with a dead letter.", metavar="WHAT")
    ],
    "enable_priority": Annotated[bool | None, typer.Option(help="Whether priorities count.")],
    "content_deduplication": Annotated[bool | None, typer.Option(help="Equal payloads are duplicates.")],
    "require_receipt_handle": Annotated[bool | None, typer.Option(help="Settle with a handle only.")],
    "redact": Annotated[
        list[str] | None,
        typer.Option(
            help="A payload's field (a.b, a.*.b) or headers.NAME that is never shown; repeatable.",
            metavar="PATH",
        ),
    ],
}
BACKOFF: Final[Options] = {
    "base_seconds": Annotated[float | None, typer.Option("--backoff-base", help="Seconds before a retry.")],
    "factor": Annotated[float | None, typer.Option("--backoff-factor", help="How it grows each time.")],
    "max_seconds": Annotated[float | None, typer.Option("--backoff-max", help="Its longest, in seconds.")],
    "jitter": Annotated[bool | None, typer.Option(help="Draw the wait from 0 to its length.")],
}
GROUPS: Final = {"policy": POLICY, "backoff": BACKOFF}
LISTED: Final[tuple[Column, ...]] = (
    "name",
    "type",
    ("state", lambda row: "paused" if row.get("paused") else row.get("state")),
    "max_retries",
    ("visibility", lambda row: f"{row['visibility_timeout_default']:g} s"),
    ("retention", lambda row: f"{row['message_retention_days']:g} d"),
    "dead_letter_queue",
)
COUNTED: Final[tuple[Column, ...]] = (
    "queue", "ready", "delayed", "leased", "waiting", "dead",
    ("oldest ready", lambda row: f"{row['oldest_ready_age_seconds']:.1f} s"),
    "consumers", "paused",
)  # fmt: skip


@command(app, "create", flags=OPERATOR, groups=GROUPS)
def create(session: Session, queue: Name, policy: dict[str, Any], backoff: dict[str, Any]) -> None:
    """Make a queue, or confirm that it exists with these settings; exit code 1 when it has others."""
    _write(session, "queue.create", queue, policy, backoff)


@command(app, "update", flags=OPERATOR, groups=GROUPS)
def update(session: Session, queue: Name, policy: dict[str, Any], backoff: dict[str, Any]) -> None:
    """Change the settings of a queue that are given; the others stay."""
    _write(session, "queue.update", queue, policy, backoff)


@command(app, "list")
def listed(session: Session, limit: Limit = LIMIT) -> None:
    """List the queues that the key may see."""
    session.show_items("queue.list", {}, LISTED, limit=limit, empty="no queues")


@command(app, "show")
def show(session: Session, queue: Name) -> None:
    """Show a queue with every setting at its effective value."""
    session.show_record("queue.get", {"queue": queue})


@command(app, "stats")
def stats(
    session: Session,
    queue: Annotated[str | None, typer.Argument(help="Default: all.", metavar="[QUEUE]")] = None,
) -> None:
    """Show the numbers of one queue, or of all; they are at most 5 seconds old."""
    if queue is not None:
        session.show_record("queue.stats", {"queue": queue})
        return
    import msgspec

    queues, _ = session.client.items("queue.list", {}, None)
    names = [msgspec.json.decode(item)["name"] for item in queues]
    rows = [session.client.call("queue.stats", {"queue": name}) for name in names]
    if session.out.as_json:
        session.out.json({"items": rows, "next_cursor": None})
    else:
        session.out.table(rows, COUNTED, empty="no queues")


@command(app, "pause", flags=OPERATOR)
def pause(session: Session, queue: Name, reason: Reason = None) -> None:
    """Stop delivery; publishing goes on, and what is leased can be settled."""
    session.do("queue.pause", {"queue": queue, "reason": reason}, lambda done: f"{done['name']} is paused")


@command(app, "resume", flags=OPERATOR)
def resume(session: Session, queue: Name, reason: Reason = None) -> None:
    """Start delivery again."""
    session.do(
        "queue.resume", {"queue": queue, "reason": reason}, lambda done: f"{done['name']} delivers again"
    )


@command(app, "purge", flags=OPERATOR)
def purge(session: Session, queue: Name, reason: Reason = None, yes: Yes = False) -> None:
    """Delete all messages that a queue holds now, the leased ones too; its dead letters stay."""
    from redrive.domain.errors import ConfirmationRequired

    may_ask(f"purging {queue}", yes=yes)
    details: dict[str, Any] = {}
    try:
        session.client.call("queue.purge", {"queue": queue})
    except ConfirmationRequired as asked:
        details = asked.details or {}
    counts = ", ".join(f"{details.get(name, 0)} {name}" for name in ("ready", "delayed", "waiting", "leased"))
    confirm(f"Delete {counted(details.get('messages', 0), 'message')} of {queue} ({counts})?", yes=yes)
    request = {"queue": queue, "confirm": details.get("confirm"), "reason": reason}
    session.do(
        "queue.purge", request, lambda done: f"{counted(done['purged'], 'message')} of {queue} deleted"
    )


@command(app, "delete", flags=OPERATOR)
def delete(session: Session, queue: Name, reason: Reason = None, yes: Yes = False) -> None:
    """Delete a queue and its messages; its dead letters stay."""
    may_ask(f"deleting {queue}", yes=yes)
    held = session.client.call("queue.stats", {"queue": queue})
    messages = sum(held[name] for name in ("ready", "delayed", "waiting", "leased"))
    confirm(f"Delete the queue {queue} with {counted(messages, 'message')}?", yes=yes)
    session.do(
        "queue.delete",
        {"queue": queue, "reason": reason},
        lambda done: f"{queue} is deleted, with {counted(done['messages'], 'message')}",
    )


def _write(
    session: Session, capability_id: str, queue: str, policy: dict[str, Any], backoff: dict[str, Any]
) -> None:
    request = {"name": queue, **policy}
    if backoff:
        request["retry_policy"] = backoff
    session.show_record(capability_id, request)
