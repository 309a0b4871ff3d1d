"""A plan's members: why one cannot go back, and how one does."""

from __future__ import annotations

from typing import Any

import msgspec

from redrive.domain import limits
from redrive.domain.decide import Case, decide
from redrive.domain.facts import Facts, Obstacle, Slot
from redrive.domain.merge_patch import merged, undoing
from redrive.domain.redaction import exactly, redact
from redrive.domain.states import Event
from redrive.storage.execute.fingerprints import policy_of
from redrive.storage.execute.moves import carry_out
from redrive.storage.execute.workspace import Workspace
from redrive.storage.plans import Plan, PlanItem
from redrive.storage.values import AuditRow, DeadLetter, body_hash

Why = tuple[Obstacle, str]
GONE: Why = ("gone", "no such dead letter is in this selection")


def item_of(plan: Plan, n: int, record: DeadLetter) -> PlanItem:
    """The member for an open dead-letter record."""
    return PlanItem(
        plan.number, n, record.message_id, record.redrive_count, record.job_key, record.fingerprint
    )


def obstacle(work: Workspace, plan: Plan, item: PlanItem) -> Why | None:
    """Why this member cannot go back; None when it can. Its facts are loaded and nobody else holds them."""
    facts = work.facts.get(item.message_id)
    record = work.open_records.get(item.message_id)
    if facts is None:
        return "gone", "it left the dead letters for good before its turn"
    if not facts.dead or record is None or record.redrive_count != item.redrive_count:
        return "moved_elsewhere", "it was redriven by somebody else before its turn"
    if facts.slot == Slot.LEASED:
        return "in_use", "it is leased from the dead-letter queue"
    if record.reason == "checksum":
        return "skipped", "its checksum is wrong; it is kept as evidence"
    if record.origin is None:
        return "skipped", "it was published into the dead-letter queue by hand and has no source"
    return _forbidden(work, plan, facts, record.origin)


def _forbidden(work: Workspace, plan: Plan, facts: Facts, origin: str) -> Why | None:
    work.load_queues([origin])
    target = work.by_name.get(origin)
    if target is None or target.state == "deleting":
        return "skipped", f"its source queue {origin} is not there"
    policy = target.policy
    if policy.redrive_policy == "forbidden":
        return "skipped", f"redrive_policy of {origin} is forbidden"
    if facts.redriven >= policy.max_redrives:
        return "skipped", f"it was redriven {facts.redriven} times; max_redrives of {origin} allows no more"
    held = work.open_records[facts.message_id].fingerprint
    if plan.select.without_held and policy_of(work, target, held) == "hold":  # since the plan was frozen
        return "skipped", f"{origin} holds fingerprint {held}: name it, or message_ids"
    if policy.redrive_policy == "review" and not (plan.select.message_ids and plan.reason):
        return "skipped", f"redrive_policy of {origin} is review: name message_ids and a reason"
    return None


def send(work: Workspace, plan: Plan, item: PlanItem) -> Why | None:
    """Back to the source, with a fresh budget, edited if the plan says so; why it stays, or None."""
    facts, record = work.facts[item.message_id], work.open_records[item.message_id]
    assert facts is not None
    target = work.by_name[str(record.origin)]
    if plan.edit is not None:
        why = _edit(work, plan, item, facts, target.policy.redact)
        if why is not None:
            return why
    work.set_kind(target, fifo=record.source_group is not None)
    case = Case(Event.REDRIVE, facts, target.policy, work.now_ms, grouped=target.grouped)
    carry_out(work, Event.REDRIVE, facts, decide(case))
    item.outcome, item.sent_ms = "sent", work.now_ms
    return None


def _edit(work: Workspace, plan: Plan, item: PlanItem, facts: Facts, redacted: tuple[str, ...]) -> Why | None:
    """Change the payload; why it cannot be, or None. The member tells the checksums, the audit log what was
    changed into what, without what the source keeps out of sight."""
    assert plan.edit is not None
    headers, body = work.tx.content(facts.id)
    changed = merged(body, plan.edit)
    most = limits.BODY_BYTES_MAX
    if len(changed) > most:
        return "skipped", f"its edited payload would have {len(changed)} bytes, at most {most} are allowed"
    job_key = None if facts.job_key == facts.message_id else facts.job_key
    before, facts.body_hash = facts.body_hash, body_hash(facts.message_id, job_key, headers, changed)
    work.tx.rewrite(facts, changed)
    item.detail = f"edited: checksum {before.hex()} became {facts.body_hash.hex()}"
    changes = {"patch": plan.edit, "undo": undoing(body, plan.edit)}
    told = {name: redact(redacted, exactly(raw)).payload for name, raw in changes.items()}
    said = msgspec.json.encode({"plan_id": plan.plan_id, "message_id": item.message_id, **told})
    row = AuditRow(0, plan.actor, "message.edit", plan.queue, plan.reason, None, "done")
    work.audit(row, detail=said, selection_hash=plan.members_sha256)
    return None


def resolve(work: Workspace, item: PlanItem, evidence: Any) -> None:
    """The job is already completed: the dead letter goes, with a tombstone, and nothing is sent."""
    facts = work.facts[item.message_id]
    assert facts is not None
    decision = decide(Case(Event.CANCEL, facts, work.queue_of(facts).policy, work.now_ms))
    resolved = msgspec.structs.replace(decision, close="already_completed", tombstone="already_completed")
    carry_out(work, Event.CANCEL, facts, resolved)
    item.outcome, item.finished_ms = "already_completed", work.now_ms
    item.detail = msgspec.json.encode(evidence).decode()
