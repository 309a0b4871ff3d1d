"""Redrive plans: made, frozen slice by slice, moved within their envelope, paused by their rules."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import msgspec

from redrive.domain import abort, histogram, limits
from redrive.domain.abort import Fired, Readings
from redrive.domain.errors import InvalidRequest, PlanNotFound
from redrive.domain.patterns import may_see
from redrive.domain.plans import PlanEvent, PlanState, members_sha256, next_state
from redrive.storage.execute.idempotency import Answers
from redrive.storage.execute.members import GONE, item_of, obstacle, resolve, send
from redrive.storage.execute.settle import Deferred
from redrive.storage.execute.upkeep import STATS_SLOT_MS
from redrive.storage.execute.workspace import Workspace
from redrive.storage.plan_commands import (
    Advanced,
    AdvancePlan,
    ChangePlan,
    MakePlan,
    PlanMade,
    Resolved,
    ResolvePlan,
    SealPlan,
    Skipped,
)
from redrive.storage.plans import Paused, Plan, PlanItem, Verdicts
from redrive.storage.values import AuditRow, Queue, StatsDelta

SLICE = 500  # records written down, or members looked at, in one transaction
_HOLD_MS = 3_000  # after which another node takes over the plan of one that died
_BUSY_WAIT_MS = 50
_IN_FLIGHT_WAIT_MS = 10  # where members are settled on other nodes; of its own a node hears at once
_ENDING_WAIT_MS = 200
_VERDICTS_MAX = 10_000  # of one window, that are counted


def make(work: Workspace, command: MakePlan) -> PlanMade:
    """A plan over the selected records. What fits into one transaction is frozen, and runs, at once."""
    asked = msgspec.structs.replace(command.plan, select=command.plan.select.for_redrive())
    answers, resource = Answers(work), 0
    if command.idempotent is not None:
        work.load_queues([asked.queue])
        resource = work.by_name[asked.queue].id if asked.queue in work.by_name else 0
        answers.load([(resource, command.idempotent)])
        stored = answers.find(resource, command.idempotent)
        if stored is not None:
            return msgspec.structs.replace(msgspec.json.decode(stored, type=PlanMade), replayed=True)
    [plan_id] = work.source.message_ids(work.now_ms, 1)
    plan = work.tx.insert_plan(msgspec.structs.replace(asked, plan_id=plan_id, created_ms=work.now_ms))
    at_once = plan.members_max <= limits.BATCH_ENTRIES_MAX
    items = _write_down(work, plan, limits.BATCH_ENTRIES_MAX if at_once else SLICE)
    stayed = _look(work, plan, items) if at_once else []
    work.tx.insert_items(items)
    if plan.listed:
        _seal(work, plan, members_sha256(sorted(item.message_id for item in items)))
        if plan.state is PlanState.RUNNING:
            _advance(work, plan)  # which node moves it is still open
    work.tx.write_plan(plan)
    accepted = plan.members - len(stayed)
    if plan.members < plan.members_max:  # otherwise some were cut off, which is not gone
        asked_for, found = dict.fromkeys(plan.select.message_ids or ()), {item.message_id for item in items}
        stayed.extend(Skipped(message_id, *GONE) for message_id in asked_for if message_id not in found)
    counts: Counter[str] = Counter(member.obstacle for member in stayed)
    made = PlanMade(plan, accepted, dict(counts), stayed[: limits.REDRIVE_SKIPPED_MAX])
    if command.idempotent is not None:
        answers.add(resource, command.idempotent, msgspec.json.encode(made))
        answers.flush()
    _audit(work, command.audit, plan, {"members": plan.members, "skipped": dict(counts)})
    return made


def seal(work: Workspace, command: SealPlan) -> Plan | Deferred:
    """Every member is written down: the plan gets its hash, and runs if it was told to."""
    plan = _found(work, command.plan_id)
    if isinstance(plan, Deferred) or plan.state is not PlanState.FREEZING or not plan.listed:
        return plan
    _seal(work, plan, command.sha256)
    work.tx.write_plan(plan)
    frozen = AuditRow(0, plan.actor, "plan.freeze", plan.queue, plan.reason, None, "done")
    _audit(work, frozen, plan, {"members": plan.members})
    return plan


def change(work: Workspace, command: ChangePlan) -> Plan | Deferred:
    """What an operator asks of a plan."""
    plan = _found(work, command.plan_id)
    if isinstance(plan, Deferred):
        return plan
    if command.event is PlanEvent.START and plan.state is PlanState.FREEZING:
        plan.start = True  # it runs when it is frozen
    else:
        _change(work, plan, command)
    work.tx.write_plan(plan)
    _audit(work, command.audit, plan, {"state": plan.state})
    return plan


def _change(work: Workspace, plan: Plan, command: ChangePlan) -> None:
    was, by = plan.state, plan.paused_by
    plan.state = next_state(plan.plan_id, was, command.event)
    if plan.state is was:
        return
    if plan.state is PlanState.PAUSED:
        plan.paused_by = Paused(command.reason or "", work.now_ms, actor=command.actor)
    elif plan.state is PlanState.ABORTED:
        plan.finished_ms = work.now_ms
    elif plan.state is PlanState.RUNNING:
        if by is not None and by.rule is not None and not command.reason:
            raise InvalidRequest(
                f"reason is required to resume plan {plan.plan_id}: the rule {by.rule} paused it",
                hint=by.reason,
                details={"field": "reason", "rule": by.rule},
            )
        _run(work, plan)


def advance(work: Workspace, command: AdvancePlan) -> Advanced:
    """One slice of a plan that freezes or runs."""
    plan, busy = work.tx.plan(command.plan_id)
    if plan is None:
        return Advanced(None, wait_ms=_BUSY_WAIT_MS if busy else None)
    if plan.holder != command.node and plan.held_until_ms > work.now_ms:
        return Advanced(plan.state, wait_ms=min(_HOLD_MS, plan.held_until_ms - work.now_ms))
    if plan.state is PlanState.FREEZING:
        if not plan.listed:
            work.tx.insert_items(_write_down(work, plan, SLICE))
            work.tx.write_plan(plan)
        return Advanced(plan.state, wait_ms=0, listed=plan.listed)
    if plan.state is not PlanState.RUNNING:
        return Advanced(plan.state)
    before = msgspec.structs.replace(plan)
    done = _advance(work, plan, command.node)
    if plan != before:
        work.tx.write_plan(plan)
    return done


def resolve_members(work: Workspace, command: ResolvePlan) -> Resolved | Deferred:
    """Close unsent members whose jobs are completed, on the caller's word."""
    plan = _found(work, command.plan_id)
    if isinstance(plan, Deferred):
        return plan
    if plan.finished_ms is not None:
        next_state(plan.plan_id, plan.state, PlanEvent.PAUSE)  # refused: it has ended
    items = {item.message_id: item for item in work.tx.items(plan.number, sorted(command.items))}
    work.load_facts(items)
    left: dict[str, str] = {}
    changed = []
    for message_id, evidence in command.items.items():
        item = items.get(message_id)
        if item is None or item.outcome != "pending":
            left[message_id] = "no member" if item is None else item.outcome
        elif message_id in work.busy:
            left[message_id] = "pending"
        elif item.job_key != evidence["job_key"]:
            left[message_id] = f"pending: its job key is {item.job_key}"
        else:
            why = obstacle(work, plan, item)
            if why is not None and why[0] != "skipped":
                left[message_id] = why[0]
            else:
                resolve(work, item, evidence)
                changed.append(item)
    work.tx.write_items(changed)
    _audit(
        work, command.audit, plan, {"resolved": [i.message_id for i in changed[:100]], "count": len(changed)}
    )
    return Resolved(len(changed), left)


def _found(work: Workspace, plan_id: str) -> Plan | Deferred:
    plan, busy = work.tx.plan(plan_id)
    if plan is None:
        if busy:
            return Deferred()
        raise PlanNotFound(f"plan {plan_id} is not found")
    return plan


def _write_down(work: Workspace, plan: Plan, limit: int) -> list[PlanItem]:
    """The next members, oldest first; the plan remembers where it is."""
    wanted = min(limit, plan.members_max - plan.members)
    records = work.tx.select_dead(plan.select, (plan.cursor_ms, plan.cursor_id), wanted)
    seen = [record for record in records if record.origin is None or may_see(plan.patterns, record.origin)]
    items = [item_of(plan, plan.members + n, record) for n, record in enumerate(seen)]
    plan.members += len(items)
    plan.listed = len(records) < wanted or plan.members >= plan.members_max
    if records:
        plan.cursor_ms, plan.cursor_id = records[-1].dead_ms, records[-1].message_id
    return items


def _look(work: Workspace, plan: Plan, items: list[PlanItem]) -> list[Skipped]:
    """Note at once which members cannot go."""
    work.load_facts(item.message_id for item in items)
    stayed = []
    for item in items:
        why = None if item.message_id in work.busy else obstacle(work, plan, item)
        if why is not None:
            item.outcome, item.detail, item.finished_ms = why[0], why[1], work.now_ms
            stayed.append(Skipped(item.message_id, *why))
    return stayed


def _seal(work: Workspace, plan: Plan, sha256: str) -> None:
    plan.members_sha256 = sha256
    plan.state = next_state(plan.plan_id, plan.state, PlanEvent.FROZEN)
    if plan.start:
        plan.state = next_state(plan.plan_id, plan.state, PlanEvent.START)
        _run(work, plan)


def _run(work: Workspace, plan: Plan) -> None:
    plan.started_ms, plan.running_since_ms = plan.started_ms or work.now_ms, work.now_ms
    plan.paused_by, plan.paced_ms, plan.tokens = None, work.now_ms, 1.0
    queue = _queue(work, plan)
    plan.ready_age_at_start = 0.0 if queue is None else _ready_age(work, queue)


def _queue(work: Workspace, plan: Plan) -> Queue | None:
    work.load_queues([plan.queue])
    return work.by_name.get(plan.queue)


def _ready_age(work: Workspace, queue: Queue) -> float:
    due_ms = work.tx.next_due(queue.id, queue.levels, queue.grouped)
    return 0.0 if due_ms is None else max(0, work.now_ms - due_ms) / 1000


def _advance(work: Workspace, plan: Plan, node: str = "") -> Advanced:
    now = work.now_ms
    since = max(now - plan.abort.window_seconds * 1000, plan.running_since_ms)
    seen = work.tx.verdicts(plan.number, since, plan.running_since_ms, _VERDICTS_MAX)
    stop = abort.fired(plan.abort, _readings(work, plan, seen))
    if stop is not None:
        _stop(work, plan, stop)
        return Advanced(plan.state)
    if node and (plan.holder != node or plan.held_until_ms - now < _HOLD_MS // 2):
        plan.holder, plan.held_until_ms = node, now + _HOLD_MS
    pace = plan.pace.refill(now, plan.envelope)
    room = pace.grant(plan.envelope, seen.in_flight)
    sent, more = _send(work, plan, room) if room else (0, True)
    if sent:
        pace = plan.pace = pace.spend(sent)
    in_flight = seen.in_flight + sent
    if not more and not in_flight and not _left(work, plan):
        plan.state = next_state(plan.plan_id, plan.state, PlanEvent.FINISH)
        plan.finished_ms, plan.holder, plan.held_until_ms = now, "", 0
        return Advanced(plan.state, sent)
    if not more:
        return Advanced(plan.state, sent, _ENDING_WAIT_MS)
    full = in_flight >= plan.envelope.max_in_flight
    wait_ms = _IN_FLIGHT_WAIT_MS if full else pace.wait_ms(plan.envelope, in_flight)
    return Advanced(plan.state, sent, wait_ms, full=full)


def _left(work: Workspace, plan: Plan) -> bool:
    return bool(work.tx.pending(plan.number, plan.floor, 1))


def _send(work: Workspace, plan: Plan, room: int) -> tuple[int, bool]:
    """Move up to ``room`` members; how many went, and whether there may be more."""
    sent, looked, at, floor = 0, 0, plan.floor, None
    changed: list[PlanItem] = []
    more = True
    while sent < room and looked < SLICE:
        items = work.tx.pending(plan.number, at, min(room - sent, SLICE - looked))
        if not items:
            more = False
            break
        looked, at = looked + len(items), items[-1].n + 1
        work.load_facts(item.message_id for item in items)
        for item in items:
            if item.message_id in work.busy:  # its turn comes again
                floor = item.n if floor is None else floor
                more = True
                continue
            why = obstacle(work, plan, item) or send(work, plan, item)
            if why is None:
                sent += 1
            else:
                item.outcome, item.detail, item.finished_ms = why[0], why[1], work.now_ms
            changed.append(item)
    work.tx.write_items(changed)
    plan.floor = at if floor is None else floor
    return sent, more or floor is not None


def _readings(work: Workspace, plan: Plan, seen: Verdicts) -> Readings:
    rules = plan.abort
    readings = Readings(
        returned=seen.returned,
        returned_id=seen.returned_id,
        returned_fingerprint=seen.returned_fingerprint,
        succeeded=seen.succeeded,
        failed=seen.failed,
    )
    asked = (rules.oldest_ready_age_seconds, rules.service_time_p95_ms, rules.dead_growth_per_minute)
    queue = None if asked == (None, None, None) else _queue(work, plan)
    if queue is None:
        return readings
    slots = max(1, rules.window_seconds * 1000 // STATS_SLOT_MS)
    total = StatsDelta()
    since = work.now_ms // STATS_SLOT_MS - slots
    for slot, raw in work.tx.stats(queue.id, since):
        if slot > since:
            total.add(msgspec.json.decode(raw, type=StatsDelta))
    return replace(
        readings,
        consumers=len(total.slots),
        ready_age_seconds=_ready_age(work, queue),
        ready_age_at_start=plan.ready_age_at_start,
        service_time_p95_ms=histogram.percentile(total.service_ms, 0.95),
        dead_per_minute=total.dead * 60_000 / (slots * STATS_SLOT_MS),
    )


def _stop(work: Workspace, plan: Plan, stop: Fired) -> None:
    plan.state = next_state(plan.plan_id, plan.state, PlanEvent.PAUSE)
    plan.paused_by = Paused(stop.sentence, work.now_ms, rule=stop.rule, limit=stop.limit, seen=stop.seen)
    plan.holder, plan.held_until_ms = "", 0
    row = AuditRow(work.now_ms, "rule", "plan.pause", plan.queue, stop.sentence, plan.members_sha256, "done")
    _audit(work, row, plan, {"rule": stop.rule, "limit": stop.limit, "seen": stop.seen})


def _audit(work: Workspace, row: AuditRow | None, plan: Plan, detail: dict[str, Any]) -> None:
    said = msgspec.json.encode({"plan_id": plan.plan_id, **detail})
    work.audit(row, detail=said, selection_hash=plan.members_sha256)
