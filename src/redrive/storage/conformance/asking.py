"""What the scenarios ask of a rig."""

from __future__ import annotations

from typing import Any

from redrive.domain import limits
from redrive.domain.abort import AbortRules
from redrive.domain.envelope import Envelope
from redrive.domain.errors import RedriveError
from redrive.domain.fingerprint import error_info
from redrive.domain.plans import PlanState
from redrive.domain.policy import FingerprintPolicy
from redrive.domain.standing import STANDINGS, Shown, shown
from redrive.storage import commands as c
from redrive.storage.conformance.rig import Rig
from redrive.storage.plan_commands import MakePlan
from redrive.storage.plans import Plan
from redrive.storage.port import Reader
from redrive.storage.values import AuditRow, DeadFilter, QueueCounts


def refused(kind: type[RedriveError], action: Any, *arguments: Any, **fields: Any) -> RedriveError:
    """The refusal that an action must raise."""
    try:
        action(*arguments, **fields)
    except kind as refusal:
        return refusal
    raise AssertionError(f"{kind.__name__} was expected")


def key(name: str, request: bytes = b"request1") -> c.Idempotent:
    """An idempotency key."""
    return c.Idempotent("queue.publish", name, request)


def dead(rig: Rig, queue: str = "jobs", **fields: Any) -> list[Any]:
    """Open dead letters of a queue."""
    select = DeadFilter(queue=queue, **fields)
    return rig.engine.read(lambda reader: reader.dead_page(select, (0, ""), 100))


FAST = Envelope(limits.PLAN_RATE_MAX, limits.PLAN_IN_FLIGHT_MAX)
NEVER = AbortRules(same_fingerprint=False, failure_ratio=None)


def redrive(
    select: DeadFilter,
    count: int = 100,
    *,
    explicit: bool = False,
    reason: str | None = None,
    start: bool = True,
    envelope: Envelope = FAST,
    abort: AbortRules = NEVER,
    **more: Any,
) -> MakePlan:
    """A plan that sends what it can at once, and never stops itself."""
    plan = Plan(
        0, "", select.queue, PlanState.FREEZING, select, explicit, count, reason, "rig", envelope, abort, 0,
        start=start, **more,
    )  # fmt: skip
    return MakePlan(plan)


def set_policy(
    queue: str, fingerprint: str, policy: FingerprintPolicy, reason: str | None = None
) -> c.SetFingerprintPolicy:
    """A fingerprint policy, set by the rig."""
    audit = AuditRow(0, "rig", "dlq.policy", queue, reason, None, "done")
    return c.SetFingerprintPolicy(queue, fingerprint, policy, reason, audit)


def states(rig: Rig, queue: str = "jobs") -> dict[str, Shown]:
    """The state of every message of a queue; each state's page and the counts must say the same."""

    def look(reader: Reader) -> tuple[dict[str, Shown], dict[Shown, list[str]], QueueCounts]:
        found = reader.queue(queue)
        assert found is not None, f"no queue {queue}"
        every = reader.messages(found, None, None, 0, 1000)
        told = {m.facts.message_id: shown(m.facts, reader.now_ms, at_head=m.at_head) for m in every}
        pages = {
            state: [m.facts.message_id for m in reader.messages(found, state, None, 0, 1000)]
            for state in STANDINGS
        }
        return told, pages, reader.counts(found)

    told, pages, counts = rig.engine.read(look)
    for state, ids in pages.items():
        assert ids == [message_id for message_id, name in told.items() if name == state], state
    if "dead" not in told.values():  # what is dead in a dead-letter queue is counted as there to be consumed
        held: dict[Shown, int] = {
            "ready": counts.ready,
            "delayed": counts.delayed,
            "waiting": counts.waiting,
            "leased": counts.leased,
        }
        assert {name: list(told.values()).count(name) for name in held} == held
    return told


def bury(rig: Rig, count: int = 1, queue: str = "jobs", **fields: Any) -> list[str]:
    """Publish and reject messages; their ids."""
    ids = [rig.publish(queue, **fields) for _ in range(count)]
    for _ in range(count):
        [message] = rig.lease(queue, 1)
        rig.do(c.Reject(message.message_id, message.handle, error=error_info("bad input")))
    return ids
