"""Plans over dictionaries; see ``storage.plan_port`` for what each does."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from copy import copy

import msgspec

from redrive.domain.facts import Facts
from redrive.domain.plans import PlanState
from redrive.storage.memory.tables import Tables
from redrive.storage.plans import Plan, PlanItem, Verdicts

_FIXED = ("number", "plan_id", "queue", "select", "explicit", "members_max", "reason", "actor", "created_ms",
          "edit", "patterns", "envelope", "abort")  # fmt: skip


class MemoryPlans:
    """The part of a transaction that keeps plans."""

    _t: Tables

    def insert_plan(self, plan: Plan) -> Plan:
        made = msgspec.structs.replace(plan, number=self._t.number())
        self._t.put(self._t.plans, made.number, made)
        return copy(made)

    def plan(self, plan_id: str) -> tuple[Plan | None, bool]:
        found = next((p for p in self._t.plans.values() if p.plan_id == plan_id), None)
        return (None if found is None else copy(found)), False

    def write_plan(self, plan: Plan) -> None:
        stored = self._t.plans[plan.number]
        fixed = {name: getattr(stored, name) for name in _FIXED}
        self._t.put(self._t.plans, plan.number, msgspec.structs.replace(plan, **fixed))

    def insert_items(self, items: Sequence[PlanItem]) -> None:
        for item in items:
            assert (item.plan, item.n) not in self._t.items
            self._t.put(self._t.items, (item.plan, item.n), copy(item))

    def pending(self, plan: int, floor: int, limit: int) -> list[PlanItem]:
        rows = (i for i in self._t.items.values() if i.plan == plan and i.n >= floor)
        found = sorted((i for i in rows if i.outcome == "pending"), key=lambda item: item.n)
        return [copy(item) for item in found[:limit]]

    def items(self, plan: int, message_ids: Sequence[str]) -> list[PlanItem]:
        rows = (i for i in self._t.items.values() if i.plan == plan and i.message_id in message_ids)
        return [copy(item) for item in rows]

    def open_items(self, message_ids: Sequence[str]) -> dict[str, PlanItem]:
        rows = sorted(self._t.items.values(), key=lambda item: item.plan)
        return {
            item.message_id: copy(item)
            for item in rows
            if item.message_id in message_ids and item.outcome in ("sent", "dead_again")
        }

    def write_items(self, items: Sequence[PlanItem]) -> None:
        for item in items:
            self._t.put(self._t.items, (item.plan, item.n), copy(item))
            sent = [
                i for i in self._t.items.values() if i.message_id == item.message_id and i.outcome == "sent"
            ]
            assert len(sent) <= 1, f"{item.message_id} was sent by two plans at once"

    def verdicts(self, plan: int, since_ms: int, returned_since_ms: int, limit: int) -> Verdicts:
        rows = sorted((i for i in self._t.items.values() if i.plan == plan), key=lambda item: item.n)
        done = [i for i in rows if i.outcome == "completed" and (i.finished_ms or 0) >= since_ms]
        failed = [i for i in rows if i.failed_ms is not None and i.failed_ms >= since_ms]
        returned = [i for i in rows if i.returned and (i.failed_ms or 0) >= returned_since_ms][:limit]
        first = returned[0] if returned else None
        return Verdicts(
            sum(i.outcome == "sent" for i in rows),
            min(limit, len(done)),
            min(limit, len(failed)),
            len(returned),
            first.message_id if first else None,
            first.died_of if first else None,
        )

    def stats(self, queue_id: int, since_slot: int) -> list[tuple[int, bytes]]:
        rows = self._t.stats.items()
        return [(slot, raw) for (number, _, slot), raw in rows if number == queue_id and slot >= since_slot]

    def content(self, number: int) -> tuple[bytes | None, bytes]:
        row = self._t.messages[number]
        return row.headers, row.body

    def rewrite(self, facts: Facts, body: bytes) -> None:
        row = self._t.messages[facts.id]
        stored = msgspec.structs.replace(row.facts, body_hash=facts.body_hash)
        self._t.put(self._t.messages, facts.id, msgspec.structs.replace(row, facts=stored, body=body))

    def plan_ids(self, message_ids: Sequence[str]) -> dict[str, str]:
        return {m: self._t.plans[i.plan].plan_id for m, i in self.open_items(message_ids).items()}

    def prune_plans(self, limit: int, before_ms: int) -> int:
        over = {p.number for p in self._t.plans.values() if p.finished_ms and p.finished_ms < before_ms}
        items = [key for key in self._t.items if key[0] in over][:limit]
        for key in items:
            self._t.drop(self._t.items, key)
        kept = {plan for plan, _ in self._t.items}
        plans = [number for number in over if number not in kept][: limit - len(items)]
        for number in plans:
            self._t.drop(self._t.plans, number)
        return len(items) + len(plans)


class MemoryPlanReader:
    """The part of a reader that shows plans."""

    _t: Tables

    def plan(self, plan_id: str) -> Plan | None:
        return next((copy(p) for p in self._t.plans.values() if p.plan_id == plan_id), None)

    def plan_page(self, queue: str | None, state: PlanState | None, before: int, limit: int) -> list[Plan]:
        rows = sorted(self._t.plans.values(), key=lambda plan: -plan.number)
        return [
            copy(plan)
            for plan in rows
            if (not before or plan.number < before)
            and (queue is None or plan.queue == queue)
            and (state is None or plan.state is state)
        ][:limit]

    def open_plans(self, limit: int) -> list[Plan]:
        rows = sorted(self._t.plans.values(), key=lambda plan: plan.number)
        return [copy(p) for p in rows if p.state in (PlanState.FREEZING, PlanState.RUNNING)][:limit]

    def plan_items(self, plan: int, outcome: str | None, after: int, limit: int) -> list[PlanItem]:
        rows = (i for i in self._t.items.values() if i.plan == plan and i.n > after)
        found = sorted((i for i in rows if outcome in (None, i.outcome)), key=lambda item: item.n)
        return [copy(item) for item in found[:limit]]

    def plan_counts(self, plan: int) -> dict[str, int]:
        return dict(Counter(i.outcome for i in self._t.items.values() if i.plan == plan))

    def member_ids(self, plan: int, after: str, limit: int) -> list[str]:
        ids = sorted(i.message_id for i in self._t.items.values() if i.plan == plan)
        return [message_id for message_id in ids if message_id > after][:limit]

    def plan_ids(self, message_ids: Sequence[str]) -> dict[str, str]:
        rows = sorted(self._t.items.values(), key=lambda item: item.plan)
        sent = (i for i in rows if i.message_id in message_ids and i.outcome in ("sent", "dead_again"))
        return {item.message_id: self._t.plans[item.plan].plan_id for item in sent}

    def memberships(self, message_id: str) -> list[tuple[Plan, PlanItem]]:
        rows = sorted(self._t.items.values(), key=lambda item: item.plan)
        return [(copy(self._t.plans[i.plan]), copy(i)) for i in rows if i.message_id == message_id]
