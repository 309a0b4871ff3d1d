"""``redrive message``: look at messages without leasing them; cancel one."""

from __future__ import annotations

from typing import Annotated, Final

import typer

from redrive.cli import story
from redrive.cli.output import Column
from redrive.cli.session import LIMIT, Limit, Session, command

app = typer.Typer(help="Messages: list, show, cancel.", no_args_is_help=True)

Queue = Annotated[str, typer.Argument(help="The queue's name.", metavar="QUEUE")]
MessageId = Annotated[str, typer.Argument(help="As publish printed it.", metavar="MESSAGE_ID")]
State = Annotated[str | None, typer.Option(help="ready, delayed, leased, waiting or dead.", metavar="STATE")]
COLUMNS: Final[tuple[Column, ...]] = (
    "message_id", "job_key", "state", "attempt", "enqueued_at", "visible_at", "payload",
)  # fmt: skip


@command(app, "list")
def listed(session: Session, queue: Queue, state: State = None, limit: Limit = LIMIT) -> None:
    """List the messages of a queue; changes nothing."""
    request = {"queue": queue, "state": state}
    session.show_items("queue.messages", request, COLUMNS, limit=limit, empty=f"no messages in {queue}")


@command(app, "show")
def show(session: Session, message_id: MessageId) -> None:
    """Show one message and all that happened to it, also when it is gone; changes nothing.

    Publish, failed attempts, deaths, plans with their edits, outcomes. Exit code 1 when nothing is known of
    it: a message that was done at its first delivery leaves its evidence in the ledger alone.
    """
    exact = session.client.exact("redrive.message", {"message_id": message_id})
    if session.out.as_json:
        session.out.json(exact)
    else:
        story.show(session, story.read(exact))


@command(app, "cancel")
def cancel(session: Session, queue: Queue, message_id: MessageId) -> None:
    """Cancel a message: at once, or when its lease ends without an ack."""
    session.do(
        "queue.cancel",
        {"queue": queue, "message_id": message_id},
        lambda done: (
            "cancelled" if done["cancelled"] else "leased: it is cancelled unless its worker acks it"
        ),
    )
