"""What becomes of a schedule's ticks: which fire, which do not and why. Every tick leaves a row.

A tick is one due time. ``missed``: nobody was there in time. ``skipped``: a rule said no (a pause, a run that
still goes on, ``max_runs``). Nothing here knows a clock: a look takes all that became due since the last one,
and so a pause, a restart or a slow node neither loses a tick nor doubles one.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, Literal

from redrive.domain import cron, limits
from redrive.domain.errors import Conflict

CatchUp = Literal["none", "one", "all"]
OverlapPolicy = Literal["skip", "buffer_one", "allow"]

#: Ticks of one look that have a row each; what is older has one row together.
TICK_ROWS_MAX: Final = 100
#: How far the older ones are counted; beyond, their row says "more than".
TICKS_COUNTED_MAX: Final = 10_000


@dataclass(frozen=True, slots=True)
class Older:
    """Ticks that are too many for a row each: ``count`` of them (``exact``, or more than that) from
    ``first_ms`` to ``last_ms``, due times in milliseconds since the epoch."""

    count: int
    first_ms: int
    last_ms: int
    exact: bool = True


@dataclass(frozen=True, slots=True)
class TickDecision:
    """The row of a tick: ``fire`` makes a run of it; else ``reason`` says why not. With ``older`` it is the
    row of all of those, and stands at the last one's due time."""

    due_ms: int
    action: Literal["fire", "missed", "skipped"]
    reason: str | None = None
    older: Older | None = None


def pending_ticks(
    expression: cron.Expression,
    zone_name: str,
    after_ms: int,
    now_ms: int,
    *,
    gap: cron.Gap = "run_after",
    overlap: cron.Overlap = "once",
    rows: int = TICK_ROWS_MAX,
) -> tuple[list[int], Older | None]:
    """The last ``rows`` due times in (``after_ms``, ``now_ms``], oldest first, and what is older than them.

    The work is bounded by ``rows`` and ``TICKS_COUNTED_MAX``, however long nobody looked.
    """
    latest = cron.latest_due(
        expression, zone_name, after_ms, now_ms, gap=gap, overlap=overlap, limit=rows + 1
    )
    dues = [due.at_ms for due in latest]
    if len(dues) <= rows:
        return dues, None
    last_ms = dues[0]
    first_ms, count = last_ms, 0
    for due in cron.due_between(
        expression, zone_name, after_ms, last_ms, gap=gap, overlap=overlap, limit=TICKS_COUNTED_MAX + 1
    ):
        first_ms, count = min(first_ms, due.at_ms), count + 1
    exact = count <= TICKS_COUNTED_MAX
    return dues[1:], Older(min(count, TICKS_COUNTED_MAX), first_ms, last_ms, exact)


def decide_ticks(
    dues: Sequence[int],
    *,
    older: Older | None = None,
    pauses: Sequence[tuple[int, int | None]] = (),
    catch_up: CatchUp = "none",
    catch_up_limit: int = limits.CATCH_UP_LIMIT_DEFAULT,
    runs_left: int | None = None,
) -> list[TickDecision]:
    """What becomes of the ticks that became due since the last look, oldest first.

    ``dues`` are their due times in order, ``older`` those before them. ``pauses``: [from, to) during which
    the schedule was paused (``to`` None: it still is). ``runs_left``: how many may fire by ``max_runs``.

    ``catch_up`` ``none``: the latest fires, however late, unless it fell into a pause; ``one``: the latest
    fires in any case; ``all``: the latest ``catch_up_limit`` fire, those of a pause, too.
    """
    firing = _firing(dues, pauses, catch_up, catch_up_limit)
    decisions = [_of_older(older, pauses)] if older else []
    left = len(dues) if runs_left is None else max(0, runs_left)
    for due_ms in dues:
        if due_ms not in firing:
            decisions.append(_not_fired(due_ms, pauses))
        elif left == 0:
            decisions.append(TickDecision(due_ms, "skipped", "max_runs is reached"))
        else:
            left -= 1
            decisions.append(TickDecision(due_ms, "fire"))
    return decisions


def _firing(
    dues: Sequence[int], pauses: Sequence[tuple[int, int | None]], catch_up: CatchUp, limit: int
) -> frozenset[int]:
    if catch_up == "all":
        return frozenset(dues[max(0, len(dues) - limit) :])
    latest = dues[-1:]
    if catch_up == "none" and latest and paused_at(latest[0], pauses):
        return frozenset()
    return frozenset(latest)


def _not_fired(due_ms: int, pauses: Sequence[tuple[int, int | None]]) -> TickDecision:
    if paused_at(due_ms, pauses):
        return TickDecision(due_ms, "skipped", "the schedule was paused")
    return TickDecision(due_ms, "missed", "no server looked in time, and a later tick took its place")


def _of_older(older: Older, pauses: Sequence[tuple[int, int | None]]) -> TickDecision:
    """The one row of many: ``skipped`` when one pause held them all."""
    many = f"{older.count} ticks" if older.exact else f"more than {older.count} ticks"
    if any(since <= older.first_ms and (to is None or older.last_ms < to) for since, to in pauses):
        return TickDecision(older.last_ms, "skipped", f"{many}: the schedule was paused", older)
    return TickDecision(older.last_ms, "missed", f"{many}: no server looked in time, or it was paused", older)


def paused_at(at_ms: int, pauses: Sequence[tuple[int, int | None]]) -> bool:
    """Whether a time falls into one of ``pauses``."""
    return any(since <= at_ms and (to is None or at_ms < to) for since, to in pauses)


def overlap_decision(
    policy: OverlapPolicy, *, running: int, waiting: int
) -> tuple[Literal["begin", "wait", "skip"], str | None]:
    """What a tick that fires does when ``running`` runs of its schedule go on and ``waiting`` ones wait to
    begin: begin, wait for the end of the one that runs, or nothing, and why."""
    if running + waiting >= limits.RUNS_OPEN_MAX:
        return "skip", f"{running + waiting} runs are open, at most {limits.RUNS_OPEN_MAX}"
    if policy == "allow" or running + waiting == 0:
        return "begin", None
    if policy == "skip":
        return "skip", "the run before still goes on (overlap_policy skip)"
    if waiting == 0:
        return "wait", None
    return "skip", "one run goes on and one waits (overlap_policy buffer_one)"


def jitter_ms(cron_id: str, due_ms: int, jitter_seconds: float) -> int:
    """How long after its due time a tick begins: 0 … ``jitter_seconds``, in milliseconds.

    From a hash, not from chance: every node, and every restart, comes to the same.
    """
    digest = hashlib.sha256(f"{cron_id}\n{due_ms}".encode()).digest()
    return int(jitter_seconds * 1_000 * int.from_bytes(digest[:6]) / 2**48)


class RunStatus(StrEnum):
    """Where a run stands. ``waiting`` (to begin, or for its next attempt) is shown as running."""

    WAITING = "waiting"
    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    TIMED_OUT = "timed_out"
    SKIPPED = "skipped"
    MISSED = "missed"


class RunEvent(StrEnum):
    """What can happen to a run."""

    BEGIN = "begin"
    AGAIN = "again"  # its attempt failed or its holder was lost; another one follows
    SUCCEED = "succeed"
    FAIL = "fail"  # the last attempt
    TIME_OUT = "time_out"  # the last attempt did not end within timeout_seconds
    SKIP = "skip"  # it waited, and a rule says no


_S, _E = RunStatus, RunEvent

#: A tick's row begins as one of these.
FIRST_STATUS: Final = {"fire": _S.WAITING, "missed": _S.MISSED, "skipped": _S.SKIPPED}
#: (from, event) → to. What is not here is refused; nothing leads out of an end.
RUN_TRANSITIONS: Final[dict[tuple[RunStatus, RunEvent], RunStatus]] = {
    (_S.WAITING, _E.BEGIN): _S.RUNNING,
    (_S.WAITING, _E.SUCCEED): _S.SUCCEEDED,  # a publish: begun and ended in one transaction
    (_S.WAITING, _E.FAIL): _S.FAILED,
    (_S.WAITING, _E.SKIP): _S.SKIPPED,
    (_S.RUNNING, _E.AGAIN): _S.WAITING,
    (_S.RUNNING, _E.SUCCEED): _S.SUCCEEDED,
    (_S.RUNNING, _E.FAIL): _S.FAILED,
    (_S.RUNNING, _E.TIME_OUT): _S.TIMED_OUT,
}


def next_status(run_id: str, status: RunStatus, event: RunEvent) -> RunStatus:
    """Where ``event`` leads; ``Conflict`` where the run's status forbids it."""
    to = RUN_TRANSITIONS.get((status, event))
    if to is None:
        raise Conflict(
            f"run {run_id} is {status}; it cannot be told to {event}",
            details={"field": "status", "actual": status.value},
        )
    return to
