"""Redrive: selected dead letters go back to where they came from, with a fresh budget."""

from __future__ import annotations

from collections import Counter

import msgspec

from redrive.domain.decide import Case, decide
from redrive.domain.facts import Facts, Slot
from redrive.domain.states import Event
from redrive.storage.commands import Redrive, Redriven
from redrive.storage.execute.idempotency import Answers
from redrive.storage.execute.moves import carry_out
from redrive.storage.execute.workspace import Workspace


def redrive(work: Workspace, command: Redrive) -> Redriven:
    """Move up to ``max_messages`` selected members; who cannot go is counted with the reason."""
    answers = Answers(work)
    if command.idempotent is not None:
        work.load_queues([command.select.queue])
        resource = work.by_name[command.select.queue].id if command.select.queue in work.by_name else 0
        answers.load([(resource, command.idempotent)])
        stored = answers.find(resource, command.idempotent)
        if stored is not None:
            return msgspec.structs.replace(msgspec.json.decode(stored, type=Redriven), replayed=True)
    ids = work.tx.select_dead(command.select, command.max_messages)
    work.load_facts(ids)
    skipped: Counter[str] = Counter()
    moved = 0
    for message_id in ids:
        facts = work.facts.get(message_id)
        obstacle = "in_use" if message_id in work.busy else _obstacle(work, command, facts)
        if obstacle is not None:
            skipped[obstacle] += 1
            continue
        assert facts is not None
        target = work.by_name[str(work.open_records[message_id].origin)]
        case = Case(Event.REDRIVE, facts, target.policy, work.now_ms, grouped=target.grouped)
        carry_out(work, Event.REDRIVE, facts, decide(case))
        moved += 1
    cut = len(ids) == command.max_messages  # who was cut off is not gone
    for message_id in () if cut else command.select.message_ids or ():
        if message_id not in ids:
            skipped["gone"] += 1
    result = Redriven(moved, dict(skipped))
    if command.idempotent is not None:
        answers.add(resource, command.idempotent, msgspec.json.encode(result))
        answers.flush()
    if command.audit is not None:
        detail = msgspec.json.encode({"redriven": moved, "skipped": result.skipped, "message_ids": ids[:100]})
        work.tx.insert_audit([msgspec.structs.replace(command.audit, at_ms=work.now_ms, detail=detail)])
    return result


def _obstacle(work: Workspace, command: Redrive, facts: Facts | None) -> str | None:
    """Why this member cannot go back, as a plan item's outcome; None when it can."""
    if facts is None or not facts.dead:
        return "moved_elsewhere"
    if facts.slot == Slot.LEASED:
        return "in_use"
    record = work.open_records[facts.message_id]
    if record.origin is None or record.reason == "checksum":
        return "skipped"
    if command.visible is not None and not command.visible(record.origin):
        return "gone"
    work.load_queues([record.origin])
    target = work.by_name.get(record.origin)
    if target is None or target.state == "deleting":
        return "skipped"
    policy = target.policy
    if policy.redrive_policy == "forbidden" or facts.redriven >= policy.max_redrives:
        return "skipped"
    if policy.redrive_policy == "review" and not (command.select.message_ids and command.reason):
        return "skipped"
    return None
