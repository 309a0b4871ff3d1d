"""``redrive job``: a job by its key, over every message that carried it."""

from __future__ import annotations

from typing import Annotated, Any, Final

import msgspec
import typer

from redrive.cli import story
from redrive.cli.failures import NO, Refusal
from redrive.cli.output import note
from redrive.cli.session import LIMIT, SERVER, Limit, Session, command
from redrive.cli.stores import opened_ledger, timed

app = typer.Typer(help="Jobs: show.", no_args_is_help=True)

JobKey = Annotated[str, typer.Argument(help="The job's stable business key.", metavar="JOB_KEY")]
_PAGE: Final = 100


@command(app, "show", flags=(*SERVER, "ledger"))
def show(session: Session, job_key: JobKey, limit: Limit = LIMIT) -> None:
    """Show all that happened to the messages of a job, oldest first; changes nothing.

    With a ledger also what the application recorded: the result, and the attempts that succeeded. Exit code
    1 when nothing is known of it.
    """
    recorded = _recorded(session, job_key)
    items, complete, more = _found(session, job_key, limit or None)
    known = {msgspec.json.decode(item)["message_id"] for item in items}
    items += _named_by(session, recorded, known)
    if not items and (recorded is None or recorded["state"] is None):
        raise Refusal(NO, f"job {job_key} is not found", code="NOT_FOUND")
    if session.out.as_json:
        answer = {"job_key": job_key, "complete": complete, "items": items, "next_cursor": more}
        session.out.json(answer | {"ledger": recorded})
        return
    attempts = [] if recorded is None else recorded["attempts"]
    if recorded is not None:
        session.out.record({f"ledger_{name}": recorded[name] for name in ("state", "result", "completed_at")})
    for item in items:
        lineage = story.read(item)
        mine = [each for each in attempts if each["message_id"] == lineage["message_id"]]
        session.out.line("")
        story.show(session, lineage, mine)
    if more is not None:
        note(f"the first {len(items)} messages are shown; --limit 0 shows all")
    if not complete:
        note("the queues hold more messages than could be looked through; some of this job's may be missing")


def _found(session: Session, job_key: str, limit: int | None) -> tuple[list[msgspec.Raw], bool, str | None]:
    """What the server has: its messages, whether it looked at every one, and where more begin."""
    from redrive.domain.errors import NotFound

    items: list[msgspec.Raw] = []
    complete = True
    try:
        for page in session.client.pages("redrive.job", {"job_key": job_key}, limit, size_max=_PAGE):
            items += page.items
            complete = complete and page.complete
            if limit is not None and len(items) >= limit:
                return items, complete, page.next_cursor
    except NotFound:
        pass
    return items, complete, None


def _recorded(session: Session, job_key: str) -> dict[str, Any] | None:
    """The ledger's record with its attempts; ``state`` None when it does not know the job; None without a
    ledger."""
    from dataclasses import asdict

    if session.settings.ledger is None:
        return None
    with opened_ledger(session) as (ledger, _):
        found = ledger.job(job_key)
        attempts = [timed(asdict(attempt)) for attempt in ledger.attempts(job_key)]
    record = {"state": None, "result": None, "completed_at": None, "message_id": None}
    return record | ({} if found is None else timed(asdict(found))) | {"attempts": attempts}


def _named_by(session: Session, recorded: dict[str, Any] | None, known: set[str]) -> list[msgspec.Raw]:
    """Messages that only the ledger names: done after a failure that was no death, so that the server has
    their attempts but no key to find them by."""
    from redrive.domain.errors import MessageNotFound

    if recorded is None:
        return []
    names = [recorded["message_id"], *(attempt["message_id"] for attempt in recorded["attempts"])]
    items = []
    for message_id in dict.fromkeys(name for name in names if name and name not in known):
        try:
            items.append(msgspec.Raw(session.client.exact("redrive.message", {"message_id": message_id})))
        except MessageNotFound:
            continue
    return items
