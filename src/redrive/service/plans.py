"""Redrive plans: made, looked at, told to start, pause, resume or stop; estimated before any of it."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import Raw

from redrive.contract import shapes
from redrive.contract.idempotency import Idempotency
from redrive.contract.instants import rfc3339, rfc3339_or_none
from redrive.domain import limits
from redrive.domain.abort import AbortRules
from redrive.domain.envelope import Envelope
from redrive.domain.errors import InvalidRequest, PlanNotFound, RedriveError
from redrive.domain.estimate import Estimate, estimate
from redrive.domain.plans import PlanEvent, PlanState
from redrive.domain.redaction import exactly, redact
from redrive.service.access import Caller
from redrive.service.capacity import measured
from redrive.service.context import Context, audit, idempotent, known_dead
from redrive.service.dead_letters import dead_filter
from redrive.service.looking import cursor_number
from redrive.service.showing import Paths
from redrive.service.survey import survey
from redrive.service.work import Read
from redrive.storage.plan_commands import ChangePlan, MakePlan, PlanMade, Resolved, ResolvePlan
from redrive.storage.plans import Paused, Plan, PlanItem
from redrive.storage.port import Reader
from redrive.storage.values import DeadFilter


def create(context: Context, caller: Caller, request: shapes.PlanCreate, key: Idempotency | None) -> Read:
    """A plan over the selected dead letters, or with ``dry_run`` what it would be."""
    plan = planned(caller, request)

    def run() -> Any:
        known_dead(context, caller, request.queue)
        if request.dry_run:
            return _dry_run(context, plan)
        entry = audit(caller, "plan.create", plan.queue, plan.reason)
        made: PlanMade = call(context, MakePlan(plan, idempotent(key), entry))
        context.plans_changed()
        record = context.engine.read(lambda reader: _record(reader, made.plan))
        return shapes.Replayed(record) if made.replayed else record

    return Read(run)


def planned(caller: Caller, request: shapes.PlanCreate) -> Plan:
    """The plan that a request describes, not yet stored."""
    if not request.reason.strip():
        raise InvalidRequest("reason must say why, got nothing", details={"field": "reason"})
    if request.edit is not None and request.select.message_ids is None:
        raise InvalidRequest(
            "edit needs select.message_ids: it changes named messages only", details={"field": "edit"}
        )
    return Plan(
        number=0,
        plan_id="",
        queue=request.queue,
        state=PlanState.FREEZING,
        select=(select := selected(request.queue, request.select)),
        explicit=select != DeadFilter(queue=request.queue),
        members_max=_members_max(request.select),
        reason=request.reason,
        actor=caller.who,
        envelope=enveloped(request.envelope),
        abort=_rules(request.abort),
        created_ms=0,
        patterns=caller.patterns,
        edit=None if request.edit is None else bytes(request.edit),
    )


def selected(queue: str, select: shapes.Selection) -> DeadFilter:
    """A selection as the store's filter."""
    return dead_filter(queue, select, select.reason, select.message_ids)


def enveloped(fields: shapes.EnvelopeFields | None) -> Envelope:
    """The envelope with the contract's defaults for what is absent."""
    return Envelope(**_given(fields))


def _rules(fields: shapes.AbortFields | None) -> AbortRules:
    return AbortRules(**_given(fields))


def _given(fields: Any) -> dict[str, Any]:
    given = {} if fields is None else msgspec.structs.asdict(fields)
    return {name: value for name, value in given.items() if value is not None}


def _members_max(select: shapes.Selection) -> int:
    if select.message_ids is not None:
        return min(len(select.message_ids), select.max_messages or len(select.message_ids))
    return select.max_messages or limits.PLAN_MEMBERS_MAX


def get(context: Context, caller: Caller, request: shapes.PlanGet, _key: Idempotency | None) -> Read:
    """One plan with its progress."""
    return Read(lambda: context.engine.read(lambda r: _record(r, _find(r, caller, request.plan_id))))


def listed(context: Context, caller: Caller, request: shapes.PlanList, _key: Idempotency | None) -> Read:
    """A page of plans, newest first."""

    def look(reader: Reader) -> shapes.PlanPage:
        limit, before = request.limit or limits.LIST_LIMIT_DEFAULT, cursor_number(request.cursor)
        state = None if request.state is None else PlanState(request.state)
        found = reader.plan_page(request.queue, state, before, limit + 1)
        page = [plan for plan in found[:limit] if caller.may_see(plan.queue)]
        more = str(found[limit - 1].number) if len(found) > limit else None
        return shapes.PlanPage(items=[_record(reader, plan) for plan in page], next_cursor=more)

    return Read(lambda: context.engine.read(look))


def items(context: Context, caller: Caller, request: shapes.PlanItems, _key: Idempotency | None) -> Read:
    """A page of a plan's members."""

    def look(reader: Reader) -> shapes.PlanItemPage:
        plan = _find(reader, caller, request.plan_id)
        limit = request.limit or limits.LIST_LIMIT_DEFAULT
        after = cursor_number(request.cursor) if request.cursor else -1
        found = reader.plan_items(plan.number, request.outcome, after, limit + 1)
        more = str(found[limit - 1].n) if len(found) > limit else None
        return shapes.PlanItemPage(items=[item_record(item) for item in found[:limit]], next_cursor=more)

    return Read(lambda: context.engine.read(look))


def start(context: Context, caller: Caller, request: shapes.PlanChange, _key: Idempotency | None) -> Read:
    """Let a draft run."""
    return _change(context, caller, request, PlanEvent.START)


def pause(context: Context, caller: Caller, request: shapes.PlanChange, _key: Idempotency | None) -> Read:
    """Send no more for now."""
    return _change(context, caller, request, PlanEvent.PAUSE)


def resume(context: Context, caller: Caller, request: shapes.PlanChange, _key: Idempotency | None) -> Read:
    """Go on."""
    return _change(context, caller, request, PlanEvent.RESUME)


def abort(context: Context, caller: Caller, request: shapes.PlanChange, _key: Idempotency | None) -> Read:
    """Send no more, ever; what was sent goes its way."""
    return _change(context, caller, request, PlanEvent.ABORT)


def _change(context: Context, caller: Caller, request: shapes.PlanChange, event: PlanEvent) -> Read:

    def run() -> shapes.PlanRecord:
        found = context.engine.read(lambda reader: _find(reader, caller, request.plan_id))
        entry = audit(caller, f"plan.{event}", found.queue, request.reason)
        plan: Plan = call(context, ChangePlan(found.plan_id, event, request.reason, caller.who, entry))
        context.plans_changed()
        return context.engine.read(lambda reader: _record(reader, plan))

    return Read(run)


def resolve(context: Context, caller: Caller, request: shapes.PlanResolve, _key: Idempotency | None) -> Read:
    """Close unsent members whose jobs are completed, on the caller's word."""

    def run() -> shapes.PlanResolved:
        found = context.engine.read(lambda reader: _find(reader, caller, request.plan_id))
        evidence = {
            each.message_id: {
                "job_key": each.evidence.job_key,
                "completed_at": rfc3339(each.evidence.completed_at),
                "result_hash": each.evidence.result_hash,
                "by": caller.who,
            }
            for each in request.items
        }
        entry = audit(caller, "plan.resolve", found.queue)
        done: Resolved = call(context, ResolvePlan(found.plan_id, evidence, caller.who, entry))
        context.plans_changed()
        return shapes.PlanResolved(resolved=done.resolved, left=done.left)

    return Read(run)


def estimated(
    context: Context, caller: Caller, request: shapes.EstimateGet, _key: Idempotency | None
) -> Read:
    """What redriving a selection would take."""

    def run() -> shapes.EstimateRecord:
        known_dead(context, caller, request.queue)
        select, most = selected(request.queue, request.select), _members_max(request.select)
        found = survey(context, select.for_redrive(), caller.patterns, most)
        seen = context.engine.read(lambda reader: measured(reader, request.queue))
        record = _estimate_record(estimate(found.count, enveloped(request.envelope), seen))
        return msgspec.structs.replace(record, complete=found.complete)

    return Read(run)


def call(context: Context, command: Any) -> Any:
    """The committer's answer; a refusal is raised."""
    answer = context.committer.call(command)
    if isinstance(answer, RedriveError):
        raise answer
    return answer


def _find(reader: Reader, caller: Caller, plan_id: str) -> Plan:
    plan = reader.plan(plan_id)
    if plan is None or not caller.may_see(plan.queue):
        raise PlanNotFound(f"plan {plan_id} is not found")
    return plan


def _dry_run(context: Context, plan: Plan) -> shapes.PlanRecord:
    """What the plan would be, by reading only."""
    found = survey(context, plan.select.for_redrive(), plan.patterns, plan.members_max)
    plan.members, plan.members_sha256 = found.count, found.sha256
    counts = {"pending": found.count} if found.count else {}
    record = context.engine.read(lambda reader: _record(reader, plan, counts))
    record.plan_id, record.state, record.created_at = None, "dry_run", None
    record.complete = found.complete
    record.groups = [
        shapes.PlanGroup(fingerprint=mark, reason=reason, error_type=kind, count=number)
        for (mark, reason, kind), number in sorted(found.causes.items(), key=lambda g: (-g[1], str(g[0])))
    ]
    record.oldest_dead_at = rfc3339_or_none(found.oldest_ms)
    record.newest_dead_at = rfc3339_or_none(found.newest_ms)
    return record


def _edit(reader: Reader, queue: str, patch: bytes) -> Raw:
    """A merge patch as it may be shown: a corrected card number is as secret as a wrong one."""
    known = Paths(reader)
    paths = (*known.named(queue), *known.named(queue.removesuffix(".dlq")))
    return Raw(msgspec.json.encode(redact(paths, exactly(patch)).payload) if paths else patch)


def _record(reader: Reader, plan: Plan, counts: dict[str, int] | None = None) -> shapes.PlanRecord:
    counted = reader.plan_counts(plan.number) if counts is None else counts
    left = counted.get("pending", 0)
    return shapes.PlanRecord(
        plan_id=plan.plan_id,
        queue=plan.queue,
        state=plan.state,
        selection=_selection(plan),
        members=plan.members,
        members_sha256=plan.members_sha256,
        envelope=shapes.EnvelopeRecord(
            rate_per_second=plan.envelope.rate_per_second,
            max_in_flight=plan.envelope.max_in_flight,
            ramp_seconds=plan.envelope.ramp_seconds,
        ),
        abort=shapes.AbortRecord(
            same_fingerprint=plan.abort.same_fingerprint,
            failure_ratio=plan.abort.failure_ratio,
            window_seconds=plan.abort.window_seconds,
            oldest_ready_age_seconds=plan.abort.oldest_ready_age_seconds,
            service_time_p95_ms=plan.abort.service_time_p95_ms,
            dead_growth_per_minute=plan.abort.dead_growth_per_minute,
        ),
        edit=None if plan.edit is None else _edit(reader, plan.queue, plan.edit),
        paused_by=None if plan.paused_by is None else _paused(plan.paused_by),
        counts=counted,
        estimate=_estimate_record(estimate(left, plan.envelope, measured(reader, plan.queue))),
        reason=plan.reason,
        actor=plan.actor,
        created_at=rfc3339(plan.created_ms),
        started_at=rfc3339_or_none(plan.started_ms),
        finished_at=rfc3339_or_none(plan.finished_ms),
    )


def _selection(plan: Plan) -> dict[str, Any]:
    given = msgspec.to_builtins(plan.select)
    unsaid = ("queue", "without_held")
    told = {name: value for name, value in given.items() if value is not None and name not in unsaid}
    for name in ("since", "until"):
        at = told.pop(f"{name}_ms", None)
        if at is not None:
            told[name] = rfc3339(at)
    return told | {"max_messages": plan.members_max}


def _paused(paused: Paused) -> shapes.PausedRecord:
    return shapes.PausedRecord(
        reason=paused.reason,
        at=rfc3339(paused.at_ms),
        actor=paused.actor,
        rule=paused.rule,
        limit=paused.limit,
        seen=paused.seen,
    )


def _estimate_record(found: Estimate) -> shapes.EstimateRecord:
    return shapes.EstimateRecord(
        count=found.count,
        serial_seconds=found.serial_seconds,
        seconds_at_envelope=found.seconds_at_envelope,
        spare_per_second=found.spare_per_second,
        suggested_rate=found.suggested_rate,
        bound=found.bound,
    )


def item_record(item: PlanItem) -> shapes.PlanItemRecord:
    """A member as the contract shows it."""
    return shapes.PlanItemRecord(
        n=item.n,
        message_id=item.message_id,
        job_key=item.job_key,
        fingerprint=item.died_of,
        outcome=item.outcome,  # type: ignore[arg-type]
        sent_at=rfc3339_or_none(item.sent_ms),
        finished_at=rfc3339_or_none(item.finished_ms),
        failures=item.failures,
        detail=item.detail,
    )
