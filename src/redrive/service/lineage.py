"""Lineage: publish → attempts → dead → plan → attempts …, by message id and by job key, in one answer.

Put together when it is asked for, from what the store keeps anyway: the message, its failed deliveries, its
dead-letter records, the plans that had it as a member, its tombstone.
"""

from __future__ import annotations

import re

from redrive import seams
from redrive.contract import shapes
from redrive.contract.idempotency import Idempotency
from redrive.domain import limits
from redrive.domain.errors import InvalidRequest, MessageNotFound, NotFound
from redrive.service.access import Caller
from redrive.service.context import Context
from redrive.service.looking import policy_of, sound, views
from redrive.service.story import Known, steps_of
from redrive.service.work import Read
from redrive.storage.port import Engine, Reader

SLICE = 20_000  # messages looked through in one snapshot for a job key
STEPS_MAX = 2_000  # of one page, which ends with the message that reaches them
SEARCH_SECONDS = 5.0  # after which the search for a job key stops, and says so
_MESSAGE_ID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}").fullmatch


def message(
    context: Context, caller: Caller, request: shapes.MessageLineageGet, _key: Idempotency | None
) -> Read:
    """One message, held or gone, with everything that happened to it."""

    def look(reader: Reader) -> shapes.Lineage:
        found = _of(reader, caller, request.message_id)
        if found is None:
            raise MessageNotFound(
                f"message {request.message_id} is not found: it never was, was acknowledged without a "
                "failure, or its history is over its retention",
                hint="The ledger keeps the receipts of completed jobs.",
            )
        return found

    return Read(lambda: context.engine.read(look))


def job(context: Context, caller: Caller, request: shapes.JobLineageGet, _key: Idempotency | None) -> Read:
    """A page of a job's messages, oldest first, each with everything that happened to it."""

    def run() -> shapes.JobLineage:
        limit, after = request.limit or limits.LIST_LIMIT_DEFAULT, _cursor(request.cursor)
        ends_at, start = seams.monotonic() + SEARCH_SECONDS, after
        items: list[shapes.Lineage] = []
        while True:  # over pages of which the key may see nothing
            ids, complete = _messages_of(context.engine, request.job_key, after, limit + 1, ends_at)
            items, left = _page(context.engine, caller, ids, limit)
            if items or not left or not complete:
                break
            after = ids[limit - 1]
        if not items and complete and not start:
            raise NotFound(
                f"job {request.job_key} is not found: no queue holds it, and none of its messages failed",
                hint="The ledger keeps the receipts of completed jobs.",
            )
        # a message that the key may see: the cursor must not name another one
        more = items[-1].message_id if items and left else None
        return shapes.JobLineage(job_key=request.job_key, complete=complete, items=items, next_cursor=more)

    return Read(run)


def _page(engine: Engine, caller: Caller, ids: list[str], limit: int) -> tuple[list[shapes.Lineage], bool]:
    """The lineages of up to ``limit`` of these messages, and whether some are left."""
    items: list[shapes.Lineage] = []
    steps = 0
    for told, message_id in enumerate(ids[:limit], start=1):
        found = engine.read(lambda reader, one=message_id: _of(reader, caller, one))  # type: ignore[misc]
        if found is not None:
            items.append(found)
            steps += len(found.steps)
        if steps >= STEPS_MAX:
            return items, told < len(ids)
    return items, len(ids) > limit


def _cursor(cursor: str | None) -> str:
    if cursor is not None and _MESSAGE_ID(cursor) is None:
        raise InvalidRequest("cursor is not one that this list gave out", details={"field": "cursor"})
    return cursor or ""


def _messages_of(
    engine: Engine, job_key: str, after: str, limit: int, ends_at: float
) -> tuple[list[str], bool]:
    """The first ``limit`` ids of the job after ``after``, and whether every message was looked at until
    ``ends_at``."""
    found = set(engine.read(lambda reader: reader.dead_of_job(job_key, after, limit)))
    at = 0
    while seams.monotonic() < ends_at:

        def look(reader: Reader, since: int = at) -> tuple[int | None, list[str]]:
            end = reader.slice_end(since, SLICE)
            return end, [] if end is None else reader.held_of_job(job_key, since, end)

        end, held = engine.read(look)
        if end is None:
            return sorted(found)[:limit], True
        at = end
        found.update(message_id for message_id in held if message_id > after)
        found = set(sorted(found)[:limit])  # a page, however many messages share the key
    return sorted(found)[:limit], False


def _of(reader: Reader, caller: Caller, message_id: str) -> shapes.Lineage | None:
    known = _known(reader, message_id)
    return _lineage(reader, known) if known and known.visible(caller) else None


def _known(reader: Reader, message_id: str) -> Known:
    stored = reader.message(message_id)
    return Known(
        message_id,
        stored,
        reader.attempts(message_id),
        reader.records(message_id),
        reader.memberships(message_id),
        reader.tombstone(message_id),
    )


def _lineage(reader: Reader, known: Known) -> shapes.Lineage:
    shown = None
    if known.stored is not None and sound(known.stored):
        shown = shapes.MessageItem(**views(reader, [known.stored])[0])
    redact = tuple(policy_of(reader, known.queue).redact) if known.queue else ()
    return shapes.Lineage(
        message_id=known.message_id,
        job_key=known.job_key,
        queue=known.stored.queue if known.stored else known.queue,
        state="gone" if known.stored is None else "damaged" if shown is None else shown.state,
        message=shown,
        steps=steps_of(known, redact),
        left_out=known.left_out,
    )
