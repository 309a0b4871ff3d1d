"""Redrive: selected dead letters go back to where they came from, with a fresh budget."""

from __future__ import annotations

from collections import Counter

import msgspec

from redrive.domain import limits
from redrive.domain.decide import Case, decide
from redrive.domain.facts import Facts, Obstacle, Slot
from redrive.domain.states import Event
from redrive.storage.commands import Redrive, Redriven, Skipped
from redrive.storage.execute.idempotency import Answers
from redrive.storage.execute.moves import carry_out
from redrive.storage.execute.workspace import Workspace

Why = tuple[Obstacle, str]
_HELD: Why = ("in_use", "another transaction holds it; ask again")
_GONE: Why = ("gone", "no such dead letter is in this selection")


def redrive(work: Workspace, command: Redrive) -> Redriven:
    """Move up to ``max_messages`` selected members; who cannot go is counted and named with the reason."""
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
    stayed: list[Skipped] = []
    moved = 0
    for message_id in ids:
        facts = work.facts.get(message_id)
        obstacle = _HELD if message_id in work.busy else _obstacle(work, command, facts)
        if obstacle is not None:
            stayed.append(Skipped(message_id, *obstacle))
            continue
        assert facts is not None
        target = work.by_name[str(work.open_records[message_id].origin)]
        work.set_kind(target, fifo=work.open_records[message_id].source_group is not None)
        case = Case(Event.REDRIVE, facts, target.policy, work.now_ms, grouped=target.grouped)
        carry_out(work, Event.REDRIVE, facts, decide(case))
        moved += 1
    if len(ids) < command.max_messages:  # otherwise some were cut off, which is not gone
        asked, found = dict.fromkeys(command.select.message_ids or ()), set(ids)
        stayed.extend(Skipped(message_id, *_GONE) for message_id in asked if message_id not in found)
    counts: Counter[str] = Counter(member.obstacle for member in stayed)
    result = Redriven(moved, dict(counts), stayed[: limits.REDRIVE_SKIPPED_MAX])
    if command.idempotent is not None:
        answers.add(resource, command.idempotent, msgspec.json.encode(result))
        answers.flush()
    if command.audit is not None:
        detail = msgspec.json.encode({"redriven": moved, "skipped": result.skipped, "message_ids": ids[:100]})
        work.tx.insert_audit([msgspec.structs.replace(command.audit, at_ms=work.now_ms, detail=detail)])
    return result


def _obstacle(work: Workspace, command: Redrive, facts: Facts | None) -> Why | None:
    """Why this member cannot go back; None when it can."""
    if facts is None or not facts.dead:
        return "moved_elsewhere", "it is no dead letter any more"
    if facts.slot == Slot.LEASED:
        return "in_use", "it is leased from the dead-letter queue"
    record = work.open_records[facts.message_id]
    if record.reason == "checksum":
        return "skipped", "its checksum is wrong; it is kept as evidence"
    origin = record.origin
    if origin is None:
        return "skipped", "it was published into the dead-letter queue by hand and has no source"
    if command.visible is not None and not command.visible(origin):
        return _GONE
    work.load_queues([origin])
    target = work.by_name.get(origin)
    if target is None or target.state == "deleting":
        return "skipped", f"its source queue {origin} is not there"
    policy = target.policy
    if policy.redrive_policy == "forbidden":
        return "skipped", f"redrive_policy of {origin} is forbidden"
    if facts.redriven >= policy.max_redrives:
        return "skipped", f"it was redriven {facts.redriven} times; max_redrives of {origin} allows no more"
    if policy.redrive_policy == "review" and not (command.select.message_ids and command.reason):
        return "skipped", f"redrive_policy of {origin} is review: name message_ids and a reason"
    return None
