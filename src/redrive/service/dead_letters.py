"""Dead letters: listed, grouped, sent back."""

from __future__ import annotations

from typing import Any

from msgspec import Raw

from redrive.contract import shapes
from redrive.contract.idempotency import Idempotency
from redrive.contract.instants import rfc3339
from redrive.domain import limits
from redrive.domain.abort import AbortRules
from redrive.domain.envelope import Envelope
from redrive.domain.errors import InvalidRequest, LimitExceeded, RedriveError
from redrive.domain.plans import PlanState
from redrive.domain.policy import FingerprintPolicy
from redrive.service.access import Caller
from redrive.service.context import Context, audit, find_queue, idempotent, known_dead
from redrive.service.fingerprints import policies_of
from redrive.service.looking import cursor_number, sound
from redrive.service.showing import Paths, Shown
from redrive.service.work import Commit, Read
from redrive.storage.plan_commands import MakePlan
from redrive.storage.plans import Plan
from redrive.storage.port import Reader
from redrive.storage.values import DeadFilter, DeadGroup, DeadLetter, StoredMessage


def listed(
    context: Context, caller: Caller, request: shapes.DeadLetterList, _key: Idempotency | None
) -> Read:
    """A page of open dead letters, oldest first."""

    def run() -> shapes.DeadLetterPage:
        known_dead(context, caller, request.queue)
        limit = request.limit or limits.LIST_LIMIT_DEFAULT
        select, after = dead_filter(request.queue, request, request.reason), _cursor(request.cursor)

        def look(reader: Reader) -> list[tuple[StoredMessage, tuple[str, ...]]]:
            paths = Paths(reader)
            return [(stored, paths.of(stored)) for stored in reader.dead_page(select, after, limit + 1)]

        found = context.engine.read(look)
        items = [_item(one, paths) for one, paths in found[:limit] if _evident(one) or sound(one)]
        more = None
        if len(found) > limit:
            record = found[limit - 1][0].record
            assert record is not None
            more = f"{record.dead_ms}.{record.message_id}"
        return shapes.DeadLetterPage(items=items, next_cursor=more)

    return Read(run)


def groups(
    context: Context, caller: Caller, request: shapes.DeadLetterGroups, _key: Idempotency | None
) -> Read:
    """A page of the causes of open dead letters, the largest first."""

    def run() -> shapes.GroupList:
        known_dead(context, caller, request.queue)
        select = dead_filter(request.queue, request, request.reason)
        limit, seen = request.limit or limits.LIST_LIMIT_DEFAULT, cursor_number(request.cursor)

        def look(reader: Reader) -> shapes.GroupList:
            groups, paths = reader.dead_groups(select, limit + 1, seen), Paths(reader)
            samples = [(group, _sample(reader, group)) for group in groups[:limit]]
            policies = policies_of(reader, {record.origin for _, (_, record) in samples if record.origin})
            return shapes.GroupList(
                items=[
                    _group(
                        group, record, Shown(stored, paths.of(stored)),
                        policies.get((record.origin or "", record.fingerprint or "")),
                    )
                    for group, (stored, record) in samples
                ],
                next_cursor=str(seen + limit) if len(groups) > limit else None,
            )  # fmt: skip

        return context.engine.read(look)

    return Read(run)


def _sample(reader: Reader, group: DeadGroup) -> tuple[StoredMessage, DeadLetter]:
    stored = reader.message(group.sample)
    assert stored is not None
    assert stored.record is not None
    return stored, stored.record


def _group(
    group: DeadGroup, sample: DeadLetter, masked: Shown, policy: FingerprintPolicy | None
) -> shapes.DeadLetterGroup:
    return shapes.DeadLetterGroup(
        fingerprint=group.fingerprint,
        count=group.count,
        first_dead_at=rfc3339(group.first_ms),
        last_dead_at=rfc3339(group.last_ms),
        reason=sample.reason,
        error=masked.error(sample.error),
        sample_message_id=group.sample,
        sample_job_key=sample.job_key,
        policy=policy or "retry",
    )


def redrive(
    context: Context, caller: Caller, request: shapes.DeadLetterRedrive, key: Idempotency | None
) -> Commit:
    """Send selected dead letters back; without ids or filters the oldest ``max_messages``."""
    if not caller.may_see(request.queue):
        find_queue(context, caller, request.queue)
    select = dead_filter(request.queue, request, request.dead_reason, request.message_ids)
    count = request.max_messages or limits.REDRIVE_MESSAGES_DEFAULT
    if request.message_ids is not None:
        count = min(len(request.message_ids), request.max_messages or len(request.message_ids))
    if count > limits.BATCH_ENTRIES_MAX:
        raise LimitExceeded(
            f"max_messages must be at most {limits.BATCH_ENTRIES_MAX} in one call, got {count}",
            details={"field": "max_messages", "limit": limits.BATCH_ENTRIES_MAX, "actual": count},
        )
    explicit = select != DeadFilter(queue=request.queue)
    plan = Plan(
        0, "", request.queue, PlanState.FREEZING, select, explicit, count, request.reason, caller.who,
        Envelope(), AbortRules(), 0, patterns=caller.patterns, start=True,
    )  # fmt: skip
    command = MakePlan(plan, idempotent(key), audit(caller, "dlq.redrive", request.queue, request.reason))

    def finish(result: Any) -> Any:
        if isinstance(result, RedriveError):
            raise result
        context.plans_changed()
        answer = shapes.Redriven(
            redriven=result.accepted,
            plan_id=result.plan.plan_id,
            skipped_count=sum(result.skipped.values()),
            skipped=[
                shapes.SkippedMember(message_id=m.message_id, reason=m.obstacle, detail=m.detail)
                for m in result.named
            ],
        )
        return shapes.Replayed(answer) if result.replayed else answer

    return Commit(command, finish)


def dead_filter(
    queue: str,
    fields: shapes.DeadLetterFilter | shapes.Selection,
    reason: str | None,
    message_ids: list[str] | None = None,
) -> DeadFilter:
    """The store's filter for what a request selects; ``reason`` is the dead letters' own."""
    return DeadFilter(
        queue=queue,
        message_ids=None if message_ids is None else tuple(message_ids),
        reason=reason,
        error_type=fields.error_type,
        fingerprint=fields.fingerprint,
        job_key=fields.job_key,
        since_ms=fields.since,
        until_ms=fields.until,
        attempts_min=fields.attempts_min,
        text=fields.text,
    )


def _cursor(cursor: str | None) -> tuple[int, str]:
    if cursor is None:
        return 0, ""
    at, _, message_id = cursor.partition(".")
    if not at.isascii() or not at.isdigit() or len(at) > 15 or not message_id:
        raise InvalidRequest("cursor is not one that this list gave out", details={"field": "cursor"})
    return int(at), message_id


def _evident(stored: StoredMessage) -> bool:
    """Whether its record says that it is damaged: it is listed, without what can no longer be trusted."""
    return stored.record is not None and stored.record.reason == "checksum"


def _item(stored: StoredMessage, paths: tuple[str, ...]) -> shapes.DeadLetterItem:
    facts, record = stored.facts, stored.record
    assert record is not None
    evident, masked = _evident(stored), Shown(stored, paths)
    return shapes.DeadLetterItem(
        message_id=facts.message_id,
        job_key=facts.job_key,
        queue=stored.queue,
        payload=Raw(b"null") if evident else masked.payload,
        attempt=facts.attempt,
        delivery=facts.delivery,
        enqueued_at=rfc3339(facts.enqueued_ms),
        message_group_id=record.source_group or None,
        priority=facts.priority,
        headers=Raw(b"{}") if evident else masked.headers,
        reason=record.reason,
        error=masked.error(record.error),
        fingerprint=record.fingerprint,
        attempts=record.attempts,
        first_failed_at=rfc3339(record.first_failed_ms),
        dead_at=rfc3339(record.dead_ms),
        expires_at=rfc3339(record.expires_ms),
        redrive_count=record.redrive_count,
        origin=record.origin,
    )
