"""Plans as prepared statements; see ``storage.plan_port`` for what each does."""

from __future__ import annotations

import sys
from collections.abc import Sequence

import apsw
import msgspec

from redrive.domain.facts import Facts
from redrive.domain.plans import PlanState
from redrive.storage.plans import Plan, PlanItem, Verdicts, item_from, made_with, plan_from, progress
from redrive.storage.sqlite.rows import json_list
from redrive.storage.statements import load

SQL = load("redrive.storage.sqlite")
_NEWEST = sys.maxsize


class SqlitePlans:
    """The part of a transaction that keeps plans."""

    _connection: apsw.Connection

    def insert_plan(self, plan: Plan) -> Plan:
        values = (plan.plan_id, plan.queue, plan.state.value, plan.finished_ms, made_with(plan).decode())
        [(number,)] = self._connection.execute(SQL["insert_plan"].sql, (*values, progress(plan).decode()))
        return msgspec.structs.replace(plan, number=number)

    def plan(self, plan_id: str) -> tuple[Plan | None, bool]:
        rows = list(self._connection.execute(SQL["plan"].sql, (plan_id,)))
        return (plan_from(rows[0]) if rows else None), False

    def write_plan(self, plan: Plan) -> None:
        values = (plan.state.value, plan.finished_ms, progress(plan).decode(), plan.number)
        self._connection.execute(SQL["write_plan"].sql, values)

    def insert_items(self, items: Sequence[PlanItem]) -> None:
        self._connection.executemany(SQL["insert_item"].sql, map(msgspec.structs.astuple, items))

    def pending(self, plan: int, floor: int, limit: int) -> list[PlanItem]:
        return self._items("pending_items", plan, floor, limit)

    def items(self, plan: int, message_ids: Sequence[str]) -> list[PlanItem]:
        return self._items("items_by_member", plan, json_list(message_ids))

    def open_items(self, message_ids: Sequence[str]) -> dict[str, PlanItem]:
        return {item.message_id: item for item in self._items("open_items", json_list(message_ids))}

    def write_items(self, items: Sequence[PlanItem]) -> None:
        rows = [
            (i.outcome, i.sent_ms, i.finished_ms, i.failures, i.failed_ms, i.returned, i.detail, i.plan, i.n)
            for i in items
        ]
        self._connection.executemany(SQL["write_item"].sql, rows)

    def verdicts(self, plan: int, since_ms: int, returned_since_ms: int, limit: int) -> Verdicts:
        returned = list(self._connection.execute(SQL["items_returned"].sql, (plan, returned_since_ms, limit)))
        message_id, cause = returned[0] if returned else (None, None)
        return Verdicts(
            self._count("items_in_flight", plan),
            self._count("items_done", plan, since_ms, limit),
            self._count("items_failed", plan, since_ms, limit),
            len(returned),
            message_id,
            cause,
        )

    def stats(self, queue_id: int, since_slot: int) -> list[tuple[int, bytes]]:
        rows = self._connection.execute(SQL["stats"].sql, (queue_id, since_slot))
        return [(slot, raw) for slot, raw in rows if slot >= since_slot]

    def content(self, number: int) -> tuple[bytes | None, bytes]:
        [(headers, body)] = self._connection.execute(SQL["content"].sql, (number,))
        return headers, body

    def rewrite(self, facts: Facts, body: bytes) -> None:
        self._connection.execute(SQL["rewrite_hash"].sql, (facts.body_hash, facts.id, facts.delivery))
        self._connection.execute(SQL["rewrite_body"].sql, (body, facts.id))

    def plan_ids(self, message_ids: Sequence[str]) -> dict[str, str]:
        return dict(self._connection.execute(SQL["plan_ids"].sql, (json_list(message_ids),)))

    def prune_plans(self, limit: int, before_ms: int) -> int:
        before = self._connection.total_changes()
        for name in ("prune_items", "prune_plans"):
            self._connection.execute(SQL[name].sql, (before_ms, limit))
        return self._connection.total_changes() - before

    def _items(self, name: str, *values: object) -> list[PlanItem]:
        return [item_from(row) for row in self._connection.execute(SQL[name].sql, values)]

    def _count(self, name: str, *values: int) -> int:
        [(count,)] = self._connection.execute(SQL[name].sql, values)
        return int(count)


class SqlitePlanReader:
    """The part of a reader that shows plans."""

    _connection: apsw.Connection

    def plan(self, plan_id: str) -> Plan | None:
        rows = list(self._connection.execute(SQL["plan"].sql, (plan_id,)))
        return plan_from(rows[0]) if rows else None

    def plan_page(self, queue: str | None, state: PlanState | None, before: int, limit: int) -> list[Plan]:
        bounds = {"before": before or _NEWEST, "queue": queue, "state": state, "limit": limit}
        return [plan_from(row) for row in self._connection.execute(SQL["plan_page"].sql, bounds)]

    def open_plans(self, limit: int) -> list[Plan]:
        return [plan_from(row) for row in self._connection.execute(SQL["open_plans"].sql, (limit,))]

    def plan_items(self, plan: int, outcome: str | None, after: int, limit: int) -> list[PlanItem]:
        if outcome is None:
            rows = self._connection.execute(SQL["plan_items"].sql, (plan, after, limit))
        else:
            rows = self._connection.execute(SQL["plan_items_of"].sql, (plan, outcome, after, limit))
        return [item_from(row) for row in rows]

    def plan_counts(self, plan: int) -> dict[str, int]:
        return dict(self._connection.execute(SQL["plan_counts"].sql, (plan,)))

    def member_ids(self, plan: int, after: str, limit: int) -> list[str]:
        return [row[0] for row in self._connection.execute(SQL["member_ids"].sql, (plan, after, limit))]

    def plan_ids(self, message_ids: Sequence[str]) -> dict[str, str]:
        return dict(self._connection.execute(SQL["plan_ids"].sql, (json_list(message_ids),)))

    def memberships(self, message_id: str) -> list[tuple[Plan, PlanItem]]:
        rows = self._connection.execute(SQL["memberships"].sql, (message_id,))
        return [(plan_from(row[:6]), item_from(row[6:])) for row in rows]
