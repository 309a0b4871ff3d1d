"""What can be asked of redrive plans; each is a command like those of :mod:`redrive.storage.commands`."""

from __future__ import annotations

from typing import Any

import msgspec

from redrive.domain.facts import Obstacle
from redrive.domain.plans import PlanEvent, PlanState
from redrive.storage.commands import Command, Idempotent
from redrive.storage.plans import Plan
from redrive.storage.values import AuditRow


class Skipped(msgspec.Struct, frozen=True):
    """A member that stayed: ``obstacle`` as a plan's item names it, ``detail`` for a person."""

    message_id: str
    obstacle: Obstacle
    detail: str


class MakePlan(Command):
    """→ :class:`PlanMade`. ``plan`` has no number yet; whether its members can go is looked at now where all
    of them fit into one transaction, else when their turn comes."""

    plan: Plan
    idempotent: Idempotent | None = None
    audit: AuditRow | None = None

    @property
    def cost(self) -> float:
        """One for each member of a slice."""
        return float(min(self.plan.members_max, 1_000))


class PlanMade(msgspec.Struct):
    """``accepted`` counts the members that can go as far as is known; ``named`` are the first of those that
    cannot, at most ``REDRIVE_SKIPPED_MAX``, ``skipped`` maps why to how many there are."""

    plan: Plan
    accepted: int
    skipped: dict[str, int]
    named: list[Skipped]
    replayed: bool = False


class SealPlan(Command):
    """→ :class:`Plan`. All members are written down; ``sha256`` is the hash over them."""

    plan_id: str
    sha256: str


class ChangePlan(Command):
    """→ :class:`Plan`. An operator's start, pause, resume or abort."""

    plan_id: str
    event: PlanEvent
    reason: str | None
    actor: str
    audit: AuditRow | None = None


class AdvancePlan(Command):
    """→ :class:`Advanced`. One slice: of freezing, or of moving within the envelope. ``node`` asks."""

    plan_id: str
    node: str

    @property
    def cost(self) -> float:
        """A slice."""
        return 500.0


class Advanced(msgspec.Struct, frozen=True):
    """``state`` afterwards (None: another transaction holds the plan, or there is none), members ``sent``,
    and when to come again (None: not before somebody changes the plan). ``listed``: every member is
    written down and the hash is wanted. ``full``: as many are on their way as may be."""

    state: PlanState | None
    sent: int = 0
    wait_ms: int | None = None
    listed: bool = False
    full: bool = False


class ResolvePlan(Command):
    """→ :class:`Resolved`. Unsent members whose job is completed, with the evidence of each as JSON."""

    plan_id: str
    items: dict[str, Any]  # message id → evidence
    actor: str
    audit: AuditRow | None = None

    @property
    def cost(self) -> float:
        """One for each item."""
        return float(len(self.items))


class Resolved(msgspec.Struct):
    """How many were closed; ``left`` are the others, each with its outcome, or why not."""

    resolved: int
    left: dict[str, str]
