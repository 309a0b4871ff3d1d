"""What a decision does: the facts change, and the records that go with it are noted."""

from __future__ import annotations

from typing import Any

import msgspec

from redrive.domain.decide import cause
from redrive.domain.facts import Change, Decision, Facts, Slot
from redrive.domain.fingerprint import ErrorInfo, fingerprint
from redrive.domain.states import Event, State
from redrive.storage.execute.workspace import Workspace
from redrive.storage.plans import Verdict
from redrive.storage.values import Attempt, DeadLetter, Group, NewMessage, Queue, Tombstone


def publish(
    work: Workspace, queue_id: int, rows: list[NewMessage], first_due_ms: int, to: State = State.AVAILABLE
) -> None:
    """New messages of one queue, the first of which is due then."""
    if not rows:
        return
    work.inserts += rows
    work.stats[queue_id].published += len(rows)
    work.wake(queue_id, first_due_ms)
    if work.observe:
        for _ in rows:
            work.observe(State.NONE, Event.PUBLISH, to)


def publish_in_group(work: Workspace, row: NewMessage, group: Group) -> None:
    """A new message at the end of its group."""
    if group.live == 0 and not group.blocked:
        group.head_due_ms = row.due_ms
    group.live += 1
    work.mark_group(group, stale=False)
    publish(work, row.queue_id, [row], row.due_ms, State.WAITING)


def carry_out(
    work: Workspace, event: Event, facts: Facts, decision: Decision, error: ErrorInfo | None = None
) -> None:
    """Change ``facts`` as decided. ``error`` is what the worker said of the failure."""
    if work.observe:
        work.observe(facts.state, event, decision.to)
    if decision.change is Change.TOUCH:
        facts.lease_until_ms = decision.lease_until_ms
        facts.cancelled = facts.cancelled or event is Event.CANCEL
        work.mark(facts, Change.TOUCH)
        return
    _end_attempt(work, event, facts, decision, error)
    _give_up_head(work, facts)
    if decision.change is Change.REMOVE:
        _remove(work, facts, decision)
    elif decision.bury is not None:
        _bury(work, event, facts, decision, error)
    elif decision.change is Change.TRANSFER:
        _unbury(work, facts, decision)
    else:
        facts.slot = facts.rest_slot
        facts.due_ms, facts.attempt = decision.due_ms, decision.attempt
        facts.releases, facts.ended = decision.releases, decision.ended
        work.wake(facts.queue_id, facts.due_ms)
        work.mark(facts, Change.RESCHEDULE)


def _end_attempt(
    work: Workspace, event: Event, facts: Facts, decision: Decision, error: ErrorInfo | None
) -> None:
    if decision.attempt_end is None:
        return
    facts.first_failed_ms = facts.first_failed_ms or work.now_ms
    if decision.attempt_end != "released" and not facts.dead:
        _tell_plan(
            work,
            facts,
            failed=True,
            rejected=decision.bury == "rejected",
            fingerprint=_cause(event, decision, error),
        )
    work.attempts.append(
        Attempt(
            facts.message_id,
            facts.delivery,
            facts.attempt,
            facts.consumer_id,
            facts.leased_ms,
            work.now_ms,
            decision.attempt_end,
            error_bytes(error),
            error.fingerprint if error else None,
        )
    )


def _give_up_head(work: Workspace, facts: Facts) -> None:
    """The message no longer is its group's busy head; whoever is next may be due."""
    if facts.group_id is not None:
        group = work.group(facts.group_id)
        if group.busy == facts.id:
            group.busy = None
        work.mark_group(group)


def _leave_group(work: Workspace, facts: Facts) -> Group | None:
    if facts.group_id is None:
        return None
    group = work.group(facts.group_id)
    group.live -= 1
    work.mark_group(group)
    facts.group_id = None
    return group


def _join_group(work: Workspace, facts: Facts, queue: Queue, key: str, position: int | None) -> None:
    """Enter a group, at the place held before if there is one."""
    group = work.load_groups([(queue.id, key)])[queue.id, key]
    facts.group_id = group.id
    facts.position = group.next_position if position is None else position
    group.next_position = max(group.next_position, facts.position + 1)
    group.live += 1
    work.mark_group(group)


def _remove(work: Workspace, facts: Facts, decision: Decision) -> None:
    queue = work.queue_of(facts)
    record = work.open_records.get(facts.message_id) if facts.dead else None
    _leave_group(work, facts)
    if record is not None:
        _close(work, record, decision.close or "consumed")
    if decision.tombstone is not None:
        origin = record.origin if record else None
        work.tombstones.append(
            Tombstone(
                facts.message_id,
                origin or queue.title,
                facts.job_key,
                decision.tombstone,
                record.reason if record else None,
                record.fingerprint if record else None,
                facts.enqueued_ms,
                work.now_ms,
                facts.body_hash,
                facts.first_failed_ms or None,
                record.dead_ms if record else None,
                work.archives.get(facts.message_id),
            )
        )
        if decision.tombstone == "expired":
            work.forgotten[origin or queue.title] += 1
        if not facts.dead:
            _tell_plan(work, facts, outcome="gone", detail=decision.tombstone)
    else:
        work.count_ack(facts.queue_id, facts.attempt, facts.leased_ms)
        if not facts.dead or decision.close == "resolved_late":
            _tell_plan(work, facts, outcome="completed")
    work.facts[facts.message_id] = None
    work.removed.append(facts)
    work.mark(facts, Change.REMOVE)


def _bury(work: Workspace, event: Event, facts: Facts, decision: Decision, error: ErrorInfo | None) -> None:
    """Move to the dead-letter queue, with a record of why."""
    assert decision.bury is not None
    source = work.queue_of(facts)
    if facts.dead:  # found corrupt on the dead side: kept there, never served, in nobody's way
        _leave_group(work, facts)
        facts.slot = Slot.HELD
        work.open_records[facts.message_id].reason = "checksum"
        work.closed.append(work.open_records[facts.message_id])
        work.mark(facts, Change.TRANSFER)
        return
    target = work.dead_letter_queue(source)
    position, group = facts.position, _leave_group(work, facts)
    in_place = target.id == source.id  # published into the dead-letter queue by hand: it dies where it stands
    blocks = (
        group is not None
        and source.policy.fifo_on_dead == "block"
        and source.state != "deleting"  # its group goes with it; a namesake's group is another one
        and not in_place  # there is no group behind it to protect
    )
    if group is not None and blocks:
        group.blocked += 1
    record = DeadLetter(
        message_id=facts.message_id,
        delivery=facts.delivery,
        dlq_id=target.id,
        origin=None if in_place else source.title,
        source_group=group.key if group else None,
        source_position=position,
        blocks=blocks,
        job_key=facts.job_key,
        reason=decision.bury,
        error_type=error.type if error else None,
        error=error_bytes(error),
        fingerprint=_cause(event, decision, error),
        attempts=facts.attempt,
        first_failed_ms=facts.first_failed_ms or work.now_ms,
        dead_ms=work.now_ms,
        expires_ms=work.now_ms + target.policy.retention_seconds * 1000,
        redrive_count=facts.redriven,
    )
    work.open_records[facts.message_id] = record
    work.buried.append(record)
    work.stats[source.id].dead += 1
    _tell_plan(work, facts, outcome="dead_again", detail=decision.bury)
    facts.dead, facts.cancelled, facts.ended = True, False, decision.ended
    facts.queue_id, facts.due_ms, facts.expires_ms = target.id, work.now_ms, record.expires_ms
    held = decision.bury == "checksum"
    if target.grouped and not held:
        _join_group(work, facts, target, record.source_group or "", None)
    facts.slot = Slot.HELD if held else facts.rest_slot
    work.wake(target.id, facts.due_ms)
    work.mark(facts, Change.TRANSFER)


def _unbury(work: Workspace, facts: Facts, decision: Decision) -> None:
    """Redrive: back to the source, with a fresh budget, its own id, group and place."""
    record = work.open_records[facts.message_id]
    assert record.origin is not None
    target = work.by_name[record.origin]
    _leave_group(work, facts)
    _close(work, record, decision.close or "redriven")
    facts.dead, facts.queue_id = False, target.id
    facts.attempt = facts.releases = facts.first_failed_ms = 0
    if not target.policy.enable_priority:  # a level that nobody claims would strand it
        facts.priority = 0
    facts.redriven += 1
    facts.due_ms = decision.due_ms
    facts.expires_ms = work.now_ms + target.policy.retention_seconds * 1000
    if target.grouped:
        place = record.source_position if record.source_group is not None else None
        _join_group(work, facts, target, record.source_group or "", place)
    facts.slot = facts.rest_slot
    work.stats[target.id].redriven += 1
    work.wake(target.id, facts.due_ms)
    work.mark(facts, Change.TRANSFER)


def _close(work: Workspace, record: DeadLetter, how: str) -> None:
    """Close a dead-letter record; however it is closed, it unblocks its group."""
    record.closed_ms, record.closed_by = work.now_ms, how
    work.open_records.pop(record.message_id, None)
    work.closed.append(record)
    if not record.blocks or record.origin is None:
        return
    record.blocks = False
    work.load_queues([record.origin])
    source = work.by_name.get(record.origin)
    if source is not None and record.source_group is not None:
        group = work.load_groups([(source.id, record.source_group)])[source.id, record.source_group]
        group.blocked = max(0, group.blocked - 1)
        work.mark_group(group)


def _cause(event: Event, decision: Decision, error: ErrorInfo | None) -> str | None:
    """The fingerprint of a failure; without an error, of the way in which the message died."""
    if error is not None:
        return error.fingerprint
    if decision.bury is None:
        return None
    return cause(event, None) or fingerprint(decision.bury, "")  # whatever a policy made of it


def _tell_plan(work: Workspace, facts: Facts, **verdict: Any) -> None:
    """A plan may wait for what becomes of a message that was redriven."""
    if facts.redriven:
        work.verdicts.append(Verdict(facts.message_id, **verdict))


def error_bytes(error: ErrorInfo | None) -> bytes | None:
    """An error as the JSON that the store keeps."""
    return None if error is None else msgspec.json.encode(error)
