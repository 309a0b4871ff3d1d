"""What engines keep of a redrive plan. Times are the engine's milliseconds since the epoch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from redrive.domain.abort import AbortRules
from redrive.domain.envelope import Envelope, Pace
from redrive.domain.patterns import EVERY_QUEUE
from redrive.domain.plans import PlanState
from redrive.storage.values import DeadFilter


class Paused(msgspec.Struct, frozen=True):
    """Who or what paused a plan: ``actor`` a key's name, or ``rule`` with its ``limit`` and what was
    ``seen``; ``reason`` is the operator's or the rule's sentence."""

    reason: str
    at_ms: int
    actor: str | None = None
    rule: str | None = None
    limit: float | None = None
    seen: float | None = None


class Plan(msgspec.Struct):
    """One plan. ``number`` is the engine's own.

    ``select`` and ``members_max`` say who belongs to it, ``explicit`` whether ids or filters were given;
    while it freezes, ``cursor_ms``/``cursor_id`` is the last record written down, and ``listed`` says that
    it was the last of all. ``start`` asks to run when frozen. No member below number ``floor`` is pending.
    ``patterns`` are the queues that its maker's key may see; ``edit`` is a JSON merge patch.
    ``running_since_ms`` is when it was last started or resumed: rules look no further back.
    ``tokens``/``paced_ms``/``running_ms`` are its pace; ``holder`` is the node that moves it until
    ``held_until_ms``.
    """

    number: int
    plan_id: str
    queue: str
    state: PlanState
    select: DeadFilter
    explicit: bool
    members_max: int
    reason: str | None
    actor: str
    envelope: Envelope
    abort: AbortRules
    created_ms: int
    patterns: tuple[str, ...] = EVERY_QUEUE
    edit: bytes | None = None
    start: bool = False
    members: int = 0
    members_sha256: str | None = None
    cursor_ms: int = 0
    cursor_id: str = ""
    listed: bool = False
    floor: int = 0
    tokens: float = 1.0
    paced_ms: int = 0
    running_ms: int = 0
    ready_age_at_start: float = 0.0
    paused_by: Paused | None = None
    started_ms: int | None = None
    running_since_ms: int = 0
    finished_ms: int | None = None
    holder: str = ""
    held_until_ms: int = 0

    @property
    def pace(self) -> Pace:
        """Its token bucket."""
        return Pace(self.tokens, self.paced_ms, self.running_ms)

    @pace.setter
    def pace(self, pace: Pace) -> None:
        self.tokens, self.paced_ms, self.running_ms = pace.tokens, pace.at_ms, pace.running_ms


class PlanItem(msgspec.Struct):
    """One member: the dead-letter record (message id, redrive count) and what became of it.

    ``died_of`` is the record's fingerprint. ``failures`` counts failed deliveries since it was sent, the
    last at ``failed_ms``; ``returned`` whether it was rejected with the fingerprint it had died of.
    ``detail`` is for a person.
    """

    plan: int
    n: int
    message_id: str
    redrive_count: int
    job_key: str
    died_of: str | None
    outcome: str = "pending"
    sent_ms: int | None = None
    finished_ms: int | None = None
    failures: int = 0
    failed_ms: int | None = None
    returned: bool = False
    detail: str | None = None


class Verdicts(msgspec.Struct, frozen=True):
    """What a plan's members have shown: sent and unfinished; verdicts of the window; who came back."""

    in_flight: int
    succeeded: int
    failed: int
    returned: int
    returned_id: str | None
    returned_fingerprint: str | None


class Verdict(msgspec.Struct, frozen=True):
    """What became of one delivery, or of the message, of a member.

    ``outcome`` ends it: ``completed``, ``dead_again`` or ``gone``; None is a failed delivery that is tried
    again. ``failed``: the delivery failed, ``rejected`` for good, with this ``fingerprint``.
    """

    message_id: str
    outcome: str | None = None
    failed: bool = False
    rejected: bool = False
    fingerprint: str | None = None
    detail: str | None = None


def judge(item: PlanItem, verdict: Verdict, now_ms: int) -> None:
    """Write the verdict into the item. One that died again may still be done late, by its last holder."""
    if verdict.failed:
        item.failures += 1
        item.failed_ms = now_ms
        item.returned = item.returned or (
            verdict.rejected and verdict.fingerprint is not None and verdict.fingerprint == item.died_of
        )
    if verdict.outcome is not None:
        item.outcome, item.finished_ms = verdict.outcome, now_ms
        item.detail = "; ".join(said for said in (item.detail, verdict.detail) if said) or None


#: What a plan was made with; everything else changes.
MADE_WITH = (
    "select", "explicit", "members_max", "reason", "actor", "envelope", "abort", "created_ms", "patterns",
    "edit",
)  # fmt: skip
_COLUMNS = ("number", "plan_id", "queue", "state")
_CHANGES = tuple(name for name in Plan.__struct_fields__ if name not in (*MADE_WITH, *_COLUMNS))


def made_with(plan: Plan) -> bytes:
    """The part that never changes, as JSON."""
    return msgspec.json.encode({name: getattr(plan, name) for name in MADE_WITH})


def progress(plan: Plan) -> bytes:
    """The part that changes, as JSON."""
    return msgspec.json.encode({name: getattr(plan, name) for name in _CHANGES})


def plan_from(row: Sequence[Any]) -> Plan:
    """The columns number, plan_id, queue, state, made_with, progress."""
    parts = msgspec.json.decode(row[4]) | msgspec.json.decode(row[5])
    return msgspec.convert(dict(zip(_COLUMNS, row, strict=False)) | parts, Plan)


def item_from(row: Sequence[Any]) -> PlanItem:
    """The columns of ``PlanItem`` in their order."""
    item = PlanItem(*row)
    item.returned = bool(item.returned)
    return item
