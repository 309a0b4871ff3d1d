"""The life of a redrive plan as one table, and what can become of its members.

A plan is a redrive as an object: members frozen with a hash, an envelope, rules that stop it, an outcome for
each member. Nothing here moves a message: ``decide`` does, one member at a time.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from enum import StrEnum
from typing import Literal, get_args

from redrive.domain.errors import Conflict

#: What became of a member. ``pending`` and ``sent`` are open; the others are final.
Outcome = Literal[
    "pending", "sent", "completed", "dead_again", "already_completed", "moved_elsewhere", "in_use", "gone",
    "skipped",
]  # fmt: skip
OUTCOMES: tuple[str, ...] = get_args(Outcome)
OPEN: frozenset[str] = frozenset({"pending", "sent"})


class PlanState(StrEnum):
    """Where a plan stands."""

    FREEZING = "freezing"  # members are being written down, in slices
    DRAFT = "draft"
    RUNNING = "running"
    PAUSED = "paused"
    COMPLETED = "completed"  # every member has its final outcome
    ABORTED = "aborted"  # what was not sent stays where it is


class PlanEvent(StrEnum):
    """What can happen to a plan."""

    FROZEN = "frozen"
    START = "start"
    PAUSE = "pause"  # by an operator, or by a rule that fired
    RESUME = "resume"
    ABORT = "abort"
    FINISH = "finish"


_S, _E = PlanState, PlanEvent

#: (from, event) → to. An event that is not here is refused and changes nothing. A start or an abort during
#: freezing is remembered by the plan and carried out when it is frozen, so it does not stand here.
PLAN_TRANSITIONS: dict[tuple[PlanState, PlanEvent], PlanState] = {
    (_S.FREEZING, _E.FROZEN): _S.DRAFT,
    (_S.FREEZING, _E.ABORT): _S.ABORTED,
    (_S.DRAFT, _E.START): _S.RUNNING,
    (_S.DRAFT, _E.ABORT): _S.ABORTED,
    (_S.RUNNING, _E.START): _S.RUNNING,  # a repeated start is no news
    (_S.RUNNING, _E.RESUME): _S.RUNNING,
    (_S.RUNNING, _E.PAUSE): _S.PAUSED,
    (_S.RUNNING, _E.ABORT): _S.ABORTED,
    (_S.RUNNING, _E.FINISH): _S.COMPLETED,
    (_S.PAUSED, _E.PAUSE): _S.PAUSED,
    (_S.PAUSED, _E.RESUME): _S.RUNNING,
    (_S.PAUSED, _E.ABORT): _S.ABORTED,
    (_S.ABORTED, _E.ABORT): _S.ABORTED,
    (_S.COMPLETED, _E.START): _S.COMPLETED,
}


def next_state(plan_id: str, state: PlanState, event: PlanEvent) -> PlanState:
    """Where ``event`` leads; ``Conflict`` where the plan's state forbids it."""
    to = PLAN_TRANSITIONS.get((state, event))
    if to is None:
        allowed = sorted(e.value for s, e in PLAN_TRANSITIONS if s is state and e in _ASKED)
        raise Conflict(
            f"plan {plan_id} is {state}; it cannot be told to {event}",
            hint=f"possible now: {', '.join(allowed)}" if allowed else f"a plan that is {state} stays so",
            details={"field": "state", "actual": state.value},
        )
    return to


_ASKED = frozenset({_E.START, _E.PAUSE, _E.RESUME, _E.ABORT})  # what a person can ask for


def members_sha256(sorted_ids: Iterable[str]) -> str:
    """The hash over a plan's members: their ids, sorted, joined by newlines; 64 hexadecimal characters.

    Takes them one by one, so that a plan of a million members needs no list of them.
    """
    digest, between = hashlib.sha256(), b""
    for message_id in sorted_ids:
        digest.update(between + message_id.encode())
        between = b"\n"
    return digest.hexdigest()
