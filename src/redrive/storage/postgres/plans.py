"""Plans as statements over columns; see ``storage.plan_port`` for what each does."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from redrive.domain.facts import Facts
from redrive.domain.plans import PlanState
from redrive.storage.plans import Plan, PlanItem, Verdicts, item_from, made_with, plan_from, progress
from redrive.storage.postgres import binary as b
from redrive.storage.postgres.opening import Opening
from redrive.storage.postgres.session import Session

_NEWEST = 2**63 - 1


class PostgresPlans(Opening):
    """The part of a transaction that keeps plans. Nobody ever waits for a plan."""

    def insert_plan(self, plan: Plan) -> Plan:
        self.wrote = True
        [(number,)] = self._session.fetch(
            "insert_plan", b.uuid(plan.plan_id), b.text(plan.queue), b.text(plan.state),
            b.int8(plan.finished_ms), made_with(plan), progress(plan),
        )  # fmt: skip
        return msgspec.structs.replace(plan, number=number)

    def plan(self, plan_id: str) -> tuple[Plan | None, bool]:
        if not b.is_message_id(plan_id):
            return None, False
        rows = self._session.fetch("lock_plan", b.uuid(plan_id))
        if rows:
            return plan_from(rows[0]), False
        return None, bool(self._session.fetch("plan", b.uuid(plan_id)))

    def write_plan(self, plan: Plan) -> None:
        self.wrote = True
        self._session.later(
            "write_plan", b.int8(plan.number), b.text(plan.state), b.int8(plan.finished_ms), progress(plan)
        )

    def insert_items(self, items: Sequence[PlanItem]) -> None:
        if not items:
            return
        self.wrote = True
        self._session.later(
            "insert_items",
            b.int8s([i.plan for i in items]),
            b.int8s([i.n for i in items]),
            b.uuids([i.message_id for i in items]),
            b.int4s([i.redrive_count for i in items]),
            b.texts([i.job_key for i in items]),
            b.texts([i.died_of for i in items]),
            b.texts([i.outcome for i in items]),
            *_changing(items),
        )

    def pending(self, plan: int, floor: int, limit: int) -> list[PlanItem]:
        return self._items("pending_items", b.int8(plan), b.int8(floor), b.int8(limit))

    def items(self, plan: int, message_ids: Sequence[str]) -> list[PlanItem]:
        known = [message_id for message_id in message_ids if b.is_message_id(message_id)]
        return self._items("items_by_member", b.int8(plan), b.uuids(known))

    def open_items(self, message_ids: Sequence[str]) -> dict[str, PlanItem]:
        return {item.message_id: item for item in self._items("open_items", b.uuids(message_ids))}

    def write_items(self, items: Sequence[PlanItem]) -> None:
        if not items:
            return
        self.wrote = True
        self._session.later(
            "write_items",
            b.int8s([i.plan for i in items]),
            b.int8s([i.n for i in items]),
            b.texts([i.outcome for i in items]),
            *_changing(items),
        )

    def verdicts(self, plan: int, since_ms: int, returned_since_ms: int, limit: int) -> Verdicts:
        [counts] = self._session.fetch("verdicts", b.int8(plan), b.int8(since_ms), b.int8(limit))
        returned = self._session.fetch(
            "items_returned", b.int8(plan), b.int8(returned_since_ms), b.int8(limit)
        )
        message_id, cause = returned[0] if returned else (None, None)
        in_flight, done, failed = counts
        return Verdicts(in_flight, done, failed, len(returned), message_id, cause)

    def stats(self, queue_id: int, since_slot: int) -> list[tuple[int, bytes]]:
        rows = self._session.fetch("stats", b.int8(queue_id), b.int8(since_slot))
        return [(slot, raw) for slot, raw in rows if slot >= since_slot]

    def content(self, number: int) -> tuple[bytes | None, bytes]:
        [(headers, body)] = self._session.fetch("content", b.int8(number))
        return headers, body

    def rewrite(self, facts: Facts, body: bytes) -> None:
        self.wrote = True
        self._session.later("rewrite", b.int8(facts.id), b.int8(facts.delivery), body, facts.body_hash)

    def plan_ids(self, message_ids: Sequence[str]) -> dict[str, str]:
        return dict(self._session.fetch("plan_ids", b.uuids(message_ids)))

    def prune_plans(self, limit: int, before_ms: int) -> int:
        self.wrote = True
        removed = 0
        for name in ("prune_items", "prune_plans"):
            [(count,)] = self._session.fetch(name, b.int8(before_ms), b.int8(limit))
            removed += count
        return removed

    def _items(self, name: str, *values: b.Parameter) -> list[PlanItem]:
        return [item_from(row) for row in self._session.fetch(name, *values)]


def _changing(items: Sequence[PlanItem]) -> tuple[b.Parameter, ...]:
    """The columns after the outcome, in their order."""
    return (
        b.int8s_or_null([i.sent_ms for i in items]),
        b.int8s_or_null([i.finished_ms for i in items]),
        b.int4s([i.failures for i in items]),
        b.int8s_or_null([i.failed_ms for i in items]),
        b.booleans([i.returned for i in items]),
        b.texts([i.detail for i in items]),
    )


class PostgresPlanReader:
    """The part of a reader that shows plans."""

    _session: Session

    def plan(self, plan_id: str) -> Plan | None:
        rows = self._session.fetch("plan", b.uuid(plan_id)) if b.is_message_id(plan_id) else []
        return plan_from(rows[0]) if rows else None

    def plan_page(self, queue: str | None, state: PlanState | None, before: int, limit: int) -> list[Plan]:
        values = b.int8(before or _NEWEST), b.text(queue), b.text(state), b.int8(limit)
        return [plan_from(row) for row in self._session.fetch("plan_page", *values)]

    def open_plans(self, limit: int) -> list[Plan]:
        return [plan_from(row) for row in self._session.fetch("open_plans", b.int8(limit))]

    def plan_items(self, plan: int, outcome: str | None, after: int, limit: int) -> list[PlanItem]:
        number, bounds = b.int8(plan), (b.int8(after), b.int8(limit))
        if outcome is None:
            rows = self._session.fetch("plan_items", number, *bounds)
        else:
            rows = self._session.fetch("plan_items_of", number, b.text(outcome), *bounds)
        return [item_from(row) for row in rows]

    def plan_counts(self, plan: int) -> dict[str, int]:
        return dict(self._session.fetch("plan_counts", b.int8(plan)))

    def member_ids(self, plan: int, after: str, limit: int) -> list[str]:
        first = b.uuid(after) if after else None
        return [row[0] for row in self._session.fetch("member_ids", b.int8(plan), first, b.int8(limit))]

    def plan_ids(self, message_ids: Sequence[str]) -> dict[str, str]:
        return dict(self._session.fetch("plan_ids", b.uuids(message_ids)))

    def memberships(self, message_id: str) -> list[tuple[Plan, PlanItem]]:
        if not b.is_message_id(message_id):
            return []
        rows = self._session.fetch("memberships", b.uuid(message_id))
        return [(plan_from(row[:6]), item_from(row[6:])) for row in rows]
