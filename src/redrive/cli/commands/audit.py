"""``redrive audit``: who did what, when and why."""

from __future__ import annotations

from typing import Annotated, Final

import typer

from redrive.cli.output import Column
from redrive.cli.session import LIMIT, Limit, Session, command

app = typer.Typer(help="The audit log.", no_args_is_help=True)

Action = Annotated[str | None, typer.Option(help="Only this, as dlq.redrive.")]
Queue = Annotated[str | None, typer.Option(help="Only of this queue.")]
Since = Annotated[str | None, typer.Option(help="At or after, as 2026-10-23T02:00:00Z.", metavar="TIME")]
Until = Annotated[str | None, typer.Option(help="Before.", metavar="TIME")]
COLUMNS: Final[tuple[Column, ...]] = ("at", "actor", "action", "queue", "reason", "outcome", "details")


@command(app, "list")
def listed(
    session: Session,
    action: Action = None,
    queue: Queue = None,
    since: Since = None,
    until: Until = None,
    limit: Limit = LIMIT,
) -> None:
    """List who did what, when and why, newest first."""
    request = {"action": action, "queue": queue, "since": since, "until": until}
    session.show_items("audit.list", request, COLUMNS, limit=limit, empty="nothing in the audit log")
