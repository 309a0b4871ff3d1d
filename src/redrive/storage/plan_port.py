"""The part of the engine protocol that keeps redrive plans; see :mod:`redrive.storage.port`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from redrive.domain.facts import Facts
from redrive.domain.plans import PlanState
from redrive.storage.plans import Plan, PlanItem, Verdicts


class PlanTransaction(Protocol):
    """What a write transaction offers. A plan's own row is the lock over its members that are pending; who
    holds a member's message may write what became of it."""

    def insert_plan(self, plan: Plan) -> Plan:
        """The plan with its number."""
        ...

    def plan(self, plan_id: str) -> tuple[Plan | None, bool]:
        """The plan, locked; or None, and whether it is there but in another transaction's hands."""
        ...

    def write_plan(self, plan: Plan) -> None:
        """Write what changes of a plan: everything but its selection and what it was made with."""
        ...

    def insert_items(self, items: Sequence[PlanItem]) -> None:
        """Store new members."""
        ...

    def pending(self, plan: int, floor: int, limit: int) -> list[PlanItem]:
        """Pending members from number ``floor`` on, in order."""
        ...

    def items(self, plan: int, message_ids: Sequence[str]) -> list[PlanItem]:
        """The members with these message ids."""
        ...

    def open_items(self, message_ids: Sequence[str]) -> dict[str, PlanItem]:
        """By message id the member of the latest plan that sent it (``sent``, or ``dead_again``)."""
        ...

    def write_items(self, items: Sequence[PlanItem]) -> None:
        """Write outcome, sent_ms, finished_ms, failures, failed_ms, returned and detail."""
        ...

    def verdicts(self, plan: int, since_ms: int, returned_since_ms: int, limit: int) -> Verdicts:
        """What the members show: completed and failed since ``since_ms``, and those that came back since
        ``returned_since_ms``, of each kind up to ``limit``."""
        ...

    def stats(self, queue_id: int, since_slot: int) -> list[tuple[int, bytes]]:
        """As the reader's: (slot, JSON) of every node since ``since_slot``."""
        ...

    def content(self, number: int) -> tuple[bytes | None, bytes]:
        """Headers and body of a message that is locked."""
        ...

    def rewrite(self, facts: Facts, body: bytes) -> None:
        """Write another body, and ``facts.body_hash`` with it."""
        ...

    def plan_ids(self, message_ids: Sequence[str]) -> dict[str, str]:
        """The plan that sent each of these messages last, by message id."""
        ...

    def prune_plans(self, limit: int, before_ms: int) -> int:
        """Remove one slice of plans that ended before, members first; the rows removed."""
        ...


class PlanReader(Protocol):
    """What a snapshot offers."""

    def plan(self, plan_id: str) -> Plan | None:
        """One plan."""
        ...

    def plan_page(self, queue: str | None, state: PlanState | None, before: int, limit: int) -> list[Plan]:
        """Plans numbered below ``before`` (0: from the newest), newest first."""
        ...

    def open_plans(self, limit: int) -> list[Plan]:
        """Plans that freeze or run, oldest first."""
        ...

    def plan_items(self, plan: int, outcome: str | None, after: int, limit: int) -> list[PlanItem]:
        """Members numbered after ``after`` (-1: from the first)."""
        ...

    def plan_counts(self, plan: int) -> dict[str, int]:
        """Members by outcome; outcomes of nobody are absent."""
        ...

    def member_ids(self, plan: int, after: str, limit: int) -> list[str]:
        """Message ids of members, sorted, after ``after``."""
        ...

    def plan_ids(self, message_ids: Sequence[str]) -> dict[str, str]:
        """As the transaction's: the plan that sent each of these messages last."""
        ...

    def memberships(self, message_id: str) -> list[tuple[Plan, PlanItem]]:
        """Every plan that had this message as a member, oldest first."""
        ...
