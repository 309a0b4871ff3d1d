"""Lineage: publish → attempts → dead → plan → attempts …, by message id and by job key, in one answer.

Put together when it is asked for, from what the store keeps anyway: the message, its failed deliveries, its
dead-letter records, the plans that had it as a member, its tombstone.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

import msgspec
from msgspec import Raw

from redrive import seams
from redrive.contract import shapes
from redrive.contract.idempotency import Idempotency
from redrive.contract.instants import rfc3339, rfc3339_or_none
from redrive.contract.shapes import LineageStep
from redrive.domain import limits
from redrive.domain.errors import MessageNotFound, NotFound
from redrive.domain.patterns import EVERY_QUEUE
from redrive.domain.redaction import redacted
from redrive.service.access import Caller
from redrive.service.context import Context
from redrive.service.looking import error_record, policy_of, sound, source, views
from redrive.service.work import Read
from redrive.storage.plans import Plan, PlanItem
from redrive.storage.port import Engine, Reader
from redrive.storage.values import Attempt, DeadLetter, StoredMessage, Tombstone

SLICE = 20_000  # messages looked through in one snapshot for a job key
SEARCH_SECONDS = 5.0  # after which the search for a job key stops, and says so
_RANK = {name: rank for rank, name in enumerate(shapes.STEPS)}


class Known(msgspec.Struct):
    """What the store has of one message."""

    message_id: str
    stored: StoredMessage | None
    attempts: list[Attempt]
    records: list[DeadLetter]
    members: list[tuple[Plan, PlanItem]]
    tombstone: Tombstone | None

    @property
    def queue(self) -> str | None:
        """The queue that it was published to, as far as that is known."""
        if self.stored is not None:
            return source(self.stored)
        if self.records:
            return next((record.origin for record in self.records if record.origin), None)
        if self.tombstone is not None:
            return self.tombstone.queue
        return self.members[0][0].queue if self.members else None

    @property
    def job_key(self) -> str | None:
        """Its job key; None when only failed deliveries are left, which do not name it."""
        if self.stored is not None:
            return self.stored.facts.job_key
        rows = [*self.records, *([self.tombstone] if self.tombstone else [])]
        return rows[0].job_key if rows else next((item.job_key for _, item in self.members), None)

    def visible(self, caller: Caller) -> bool:
        """By the message's own queue, its source, or what is left of it."""
        names = {self.queue, self.stored.queue if self.stored else None} - {None}
        return caller.patterns == EVERY_QUEUE or any(caller.may_see(name) for name in names if name)

    def __bool__(self) -> bool:
        return any((self.stored, self.attempts, self.records, self.members, self.tombstone))


def message(
    context: Context, caller: Caller, request: shapes.MessageLineageGet, _key: Idempotency | None
) -> Read:
    """One message, held or gone, with everything that happened to it."""

    def look(reader: Reader) -> shapes.Lineage:
        known = _known(reader, request.message_id)
        if not known or not known.visible(caller):
            raise MessageNotFound(
                f"message {request.message_id} is not found: it never was, was acknowledged without a "
                "failure, or its history is over its retention",
                hint="The ledger keeps the receipts of completed jobs.",
            )
        return _lineage(reader, known)

    return Read(lambda: context.engine.read(look))


def job(context: Context, caller: Caller, request: shapes.JobLineageGet, _key: Idempotency | None) -> Read:
    """A page of a job's messages, oldest first, each with everything that happened to it."""

    def run() -> shapes.JobLineage:
        limit, after = request.limit or limits.LIST_LIMIT_DEFAULT, request.cursor or ""
        ids, complete = _messages_of(context.engine, request.job_key, after, limit + 1)

        def look(reader: Reader) -> list[shapes.Lineage]:
            each = (_known(reader, message_id) for message_id in ids[:limit])
            return [_lineage(reader, known) for known in each if known and known.visible(caller)]

        items = context.engine.read(look)
        if not items and complete and len(ids) <= limit and not after:
            raise NotFound(
                f"job {request.job_key} is not found: no queue holds it, and none of its messages failed",
                hint="The ledger keeps the receipts of completed jobs.",
            )
        more = ids[limit - 1] if len(ids) > limit else None
        return shapes.JobLineage(job_key=request.job_key, complete=complete, items=items, next_cursor=more)

    return Read(run)


def _messages_of(engine: Engine, job_key: str, after: str, limit: int) -> tuple[list[str], bool]:
    """The first ``limit`` ids of the job after ``after``, and whether every message was looked at."""
    found = set(engine.read(lambda reader: reader.dead_of_job(job_key, after, limit)))
    ends_at, at = seams.monotonic() + SEARCH_SECONDS, 0
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
    steps = sorted(_steps(known, redact), key=lambda step: (step.at, _RANK[step.step], step.delivery or 0))
    return shapes.Lineage(
        message_id=known.message_id,
        job_key=known.job_key,
        queue=known.stored.queue if known.stored else known.queue,
        state="gone" if known.stored is None else "damaged" if shown is None else shown.state,
        message=shown,
        steps=steps,
    )


def _steps(known: Known, redact: tuple[str, ...]) -> Iterator[LineageStep]:
    yield LineageStep(at=rfc3339(_published_ms(known)), step="published", queue=known.queue)
    for attempt in known.attempts:
        yield LineageStep(
            at=rfc3339(attempt.ended_ms),
            step="attempt",
            delivery=attempt.delivery,
            attempt=attempt.attempt,
            consumer_id=attempt.consumer_id,
            leased_at=rfc3339_or_none(attempt.leased_ms),
            end=attempt.end,
            error=_error(attempt.error),
            fingerprint=attempt.fingerprint,
        )
    for record in known.records:
        yield LineageStep(
            at=rfc3339(record.dead_ms),
            step="dead",
            queue=record.origin,
            delivery=record.delivery,
            reason=record.reason,
            error=_error(record.error),
            fingerprint=record.fingerprint,
        )
        if record.closed_ms is not None:
            yield LineageStep(at=rfc3339(record.closed_ms), step="closed", reason=record.closed_by)
    for plan, item in known.members:
        yield from _membership(plan, item, redact)
    if known.tombstone is not None:
        yield LineageStep(
            at=rfc3339(known.tombstone.removed_ms),
            step="removed",
            queue=known.tombstone.queue,
            reason=known.tombstone.cause,
            fingerprint=known.tombstone.fingerprint,
        )


def _membership(plan: Plan, item: PlanItem, redact: tuple[str, ...]) -> Iterator[LineageStep]:
    yield LineageStep(
        at=rfc3339(plan.created_ms),
        step="planned",
        queue=plan.queue,
        plan_id=plan.plan_id,
        actor=plan.actor,
        reason=plan.reason,
    )
    if item.sent_ms is not None:
        patch = None if plan.edit is None else _masked(plan.edit, redact)
        yield LineageStep(
            at=rfc3339(item.sent_ms), step="redriven", queue=plan.queue, plan_id=plan.plan_id, edit=patch
        )
    if item.finished_ms is not None:
        yield LineageStep(
            at=rfc3339(item.finished_ms),
            step="outcome",
            plan_id=plan.plan_id,
            outcome=item.outcome,
            detail=item.detail,
        )


def _masked(patch: bytes, redact: tuple[str, ...]) -> Raw:
    """The merge patch, which has the payload's shape, without what the queue keeps out of pages."""
    if not redact:
        return Raw(patch)
    value = json.loads(patch, parse_int=_text, parse_float=_text)
    return Raw(msgspec.json.encode(redacted(value, redact)))


def _text(number: str) -> Raw:
    return Raw(number.encode())


def _error(raw: bytes | None) -> shapes.ErrorRecord | None:
    """Without its stack, which `queue.message` shows: a lineage has many errors."""
    error = error_record(raw)
    return None if error is None else msgspec.structs.replace(error, stack="")


def _published_ms(known: Known) -> int:
    """When it was published; of a message that is gone its id says so (UUIDv7)."""
    if known.stored is not None:
        return known.stored.facts.enqueued_ms
    if known.tombstone is not None:
        return known.tombstone.enqueued_ms
    return int(known.message_id.replace("-", "")[:12], 16)
