"""Redrive plans: selection, envelope, abort rules, progress, items, estimate (section 5 of the contract)."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import Meta, Raw, Struct

from redrive.contract.shapes.bounds import (
    Answer,
    Cursor,
    Instant,
    Key,
    ListLimit,
    MessageId,
    QueueName,
    Reason,
    Request,
)
from redrive.contract.shapes.dead import DeadReason, SearchText
from redrive.domain import limits
from redrive.domain.plans import Outcome

PlanStateName = Literal["freezing", "draft", "running", "paused", "completed", "aborted"]
PlanId = Annotated[str, Meta(min_length=1, max_length=limits.KEY_BYTES_MAX)]
Rate = Annotated[
    float,
    Meta(
        ge=limits.PLAN_RATE_MIN, le=limits.PLAN_RATE_MAX,
        description=f"Members a second, default {limits.PLAN_RATE_DEFAULT:g}.",
    ),
]  # fmt: skip
InFlight = Annotated[
    int,
    Meta(
        ge=1, le=limits.PLAN_IN_FLIGHT_MAX,
        description=f"Members sent and not finished, default {limits.PLAN_IN_FLIGHT_DEFAULT}.",
    ),
]  # fmt: skip
RampSeconds = Annotated[
    float,
    Meta(
        ge=0, le=limits.PLAN_RAMP_SECONDS_MAX,
        description="Seconds over which the rate grows evenly from a tenth, default 0.",
    ),
]  # fmt: skip
Share = Annotated[float, Meta(ge=0.001, le=1, description="Failures among verdicts of members.")]
Window = Annotated[int, Meta(ge=10, le=limits.PLAN_WINDOW_SECONDS_MAX, description="Seconds, default 60.")]
Ceiling = Annotated[float, Meta(ge=0.001, le=1e9)]


class Selection(Struct, kw_only=True, forbid_unknown_fields=True, gc=False):
    """Which dead letters: ids, or filters that must all hold; neither: the oldest. ``max_messages`` bounds
    it (default without ids: every one that matches)."""

    message_ids: (
        Annotated[list[MessageId], Meta(min_length=1, max_length=limits.BATCH_ENTRIES_MAX)] | None
    ) = None
    reason: DeadReason | None = None
    error_type: SearchText | None = None
    fingerprint: Annotated[str, Meta(min_length=1, max_length=64)] | None = None
    job_key: Key | None = None
    since: Instant | None = None
    until: Instant | None = None
    attempts_min: Annotated[int, Meta(ge=0, le=1_000_000)] | None = None
    text: SearchText | None = None
    max_messages: Annotated[int, Meta(ge=1, le=limits.PLAN_MEMBERS_MAX)] | None = None


class EnvelopeFields(Struct, kw_only=True, forbid_unknown_fields=True, gc=False):
    """How fast. An absent field has its default."""

    rate_per_second: Rate | None = None
    max_in_flight: InFlight | None = None
    ramp_seconds: RampSeconds | None = None


class AbortFields(Struct, kw_only=True, forbid_unknown_fields=True, gc=False):
    """When the plan stops itself. An absent field has its default; ``failure_ratio`` 1 stops only when
    everything fails, ``same_fingerprint`` false switches that rule off."""

    same_fingerprint: bool | None = None
    failure_ratio: Share | None = None
    window_seconds: Window | None = None
    oldest_ready_age_seconds: Ceiling | None = None
    service_time_p95_ms: Ceiling | None = None
    dead_growth_per_minute: Ceiling | None = None


class PlanCreate(Request, kw_only=True):
    """Freeze the selected dead letters into a plan; ``dry_run`` only says what it would be."""

    queue: QueueName
    select: Selection
    reason: Reason
    edit: Raw | None = None
    envelope: EnvelopeFields | None = None
    abort: AbortFields | None = None
    dry_run: bool | None = None


class PlanGet(Request, kw_only=True):
    """One plan."""

    plan_id: PlanId


class PlanList(Request, kw_only=True):
    """Page through plans, newest first."""

    queue: QueueName | None = None
    state: PlanStateName | None = None
    limit: ListLimit | None = None
    cursor: Cursor | None = None


class PlanItems(Request, kw_only=True):
    """Page through a plan's members, in the order in which they are sent."""

    plan_id: PlanId
    outcome: Outcome | None = None
    limit: ListLimit | None = None
    cursor: Cursor | None = None


class PlanChange(Request, kw_only=True):
    """Start, pause, resume or abort a plan; resuming after a rule has fired needs a reason."""

    plan_id: PlanId
    reason: Reason | None = None


class Evidence(Struct, kw_only=True, forbid_unknown_fields=True, gc=False):
    """What the ledger says of a job that is already done."""

    job_key: Key
    completed_at: Instant
    result_hash: Annotated[str, Meta(max_length=128)] | None = None


class ResolveItem(Struct, kw_only=True, forbid_unknown_fields=True, gc=False):
    """A member whose job is completed."""

    message_id: MessageId
    evidence: Evidence


class PlanResolve(Request, kw_only=True):
    """Close unsent members as already completed, on the word of this key."""

    plan_id: PlanId
    items: Annotated[list[ResolveItem], Meta(min_length=1, max_length=limits.BATCH_ENTRIES_MAX)]


class EstimateGet(Request, kw_only=True):
    """What redriving this selection would take."""

    queue: QueueName
    select: Selection
    envelope: EnvelopeFields | None = None


class EstimateRecord(Answer, kw_only=True):
    """``serial_seconds``: one worker, one job after the other. ``spare_per_second``: what the consumers can
    do beside the arrivals; ``suggested_rate`` is below it. Null where nothing was measured that could tell;
    ``bound`` names what sets the pace; ``complete`` false: there are at least so many."""

    count: int
    serial_seconds: float | None
    seconds_at_envelope: float | None
    spare_per_second: float | None
    suggested_rate: float | None
    bound: str
    complete: bool = True


class EnvelopeRecord(Answer, kw_only=True):
    """The envelope in force."""

    rate_per_second: float
    max_in_flight: int
    ramp_seconds: float


class AbortRecord(Answer, kw_only=True):
    """The rules in force; null: off."""

    same_fingerprint: bool
    failure_ratio: float | None
    window_seconds: int
    oldest_ready_age_seconds: float | None
    service_time_p95_ms: float | None
    dead_growth_per_minute: float | None


class PausedRecord(Answer, kw_only=True):
    """By whom, or by which rule with its limit and what was seen."""

    reason: str
    at: str
    actor: str | None = None
    rule: str | None = None
    limit: float | None = None
    seen: float | None = None


class PlanGroup(Answer, kw_only=True):
    """Members of one fingerprint, in a dry run."""

    fingerprint: str | None
    reason: str
    error_type: str | None
    count: int


class PlanRecord(Answer, kw_only=True):
    """A plan, or (``state`` ``dry_run``, no ``plan_id``) what it would be; ``groups``, ages and ``complete``
    (false: there are at least so many ``members``) are a dry run's. ``counts`` has the members by outcome."""

    plan_id: str | None
    queue: str
    state: str
    selection: dict[str, Any]
    members: int
    members_sha256: str | None
    envelope: EnvelopeRecord
    abort: AbortRecord
    edit: Raw | None
    paused_by: PausedRecord | None
    counts: dict[str, int]
    estimate: EstimateRecord | None
    reason: str | None
    actor: str
    created_at: str | None
    started_at: str | None
    finished_at: str | None
    groups: list[PlanGroup] | None = None
    oldest_dead_at: str | None = None
    newest_dead_at: str | None = None
    complete: bool | None = None


class PlanPage(Answer, kw_only=True):
    """A page of plans."""

    items: list[PlanRecord]
    next_cursor: str | None = None


class PlanItemRecord(Answer, kw_only=True):
    """A member and what became of it."""

    n: int
    message_id: str
    job_key: str
    fingerprint: str | None
    outcome: Outcome
    sent_at: str | None
    finished_at: str | None
    failures: int
    detail: str | None


class PlanItemPage(Answer, kw_only=True):
    """A page of members."""

    items: list[PlanItemRecord]
    next_cursor: str | None = None


class PlanResolved(Answer, kw_only=True):
    """How many members were closed; ``left`` names those that were not, with their outcome."""

    resolved: int
    left: dict[str, str]
