"""``redrive audit``: who did what, when and why; and whether the log is as it was written."""

from __future__ import annotations

from typing import Annotated, Any, Final

import typer

from redrive.cli.failures import NO
from redrive.cli.output import Column, progress
from redrive.cli.session import LIMIT, Limit, Session, command
from redrive.cli.text import counted

app = typer.Typer(help="The audit log: list, verify.", no_args_is_help=True)

Action = Annotated[str | None, typer.Option(help="Only this, as dlq.redrive.")]
Queue = Annotated[str | None, typer.Option(help="Only of this queue.")]
Since = Annotated[str | None, typer.Option(help="At or after, as 2026-10-23T02:00:00Z.", metavar="TIME")]
Until = Annotated[str | None, typer.Option(help="Before.", metavar="TIME")]
Noted = Annotated[
    str | None,
    typer.Option(help="A row's number and hash, as an earlier check printed them.", metavar="NUMBER:HASH"),
]


def _who(row: Any) -> str:
    used_by = row.get("on_behalf_of")
    return f"{row['actor']} ({used_by})" if used_by else str(row["actor"])


COLUMNS: Final[tuple[Column, ...]] = (
    "id", "at", ("actor", _who), "action", "queue", "reason", "outcome", "details",
)  # fmt: skip


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


@command(app, "verify")
def verify(session: Session, noted: Noted = None) -> None:
    """Check that no row was changed, removed, inserted or moved; exit code 1 names the first wrong one.

    Whoever may write to the database can make the whole chain anew. Keep what this prints elsewhere, and give
    it with --noted to the next check: a chain made anew has another hash there.
    """
    found = _verified(session, noted)
    broken = found["broken"]
    if session.out.as_json:
        session.out.json({"sound": broken is None, **found})
    elif broken is not None:
        session.out.line(f"row {broken['id']}: {broken['problem']}")
    else:
        session.out.line(f"{counted(found['rows'], 'row')} as they were written{_older(found)}")
        if found["last_id"] is not None:
            session.out.line(f"the last one is {found['last_id']}:{found['last_hash']}")
    if broken is not None:
        raise typer.Exit(NO)


def _verified(session: Session, noted: str | None) -> dict[str, Any]:
    """The whole check, answer by answer: each says where the next goes on."""
    rows, cursor = 0, None
    with progress("verifying the audit log", None) as tell:
        while True:
            found = session.client.call("audit.verify", {"noted": noted, "cursor": cursor})
            rows, cursor = rows + found["rows"], found.pop("next_cursor")
            tell(found["rows"])
            if cursor is None:
                return {**found, "rows": rows}


def _older(found: dict[str, Any]) -> str:
    return f"; {counted(found['unchained'], 'row')} are older than the chain" if found["unchained"] else ""
