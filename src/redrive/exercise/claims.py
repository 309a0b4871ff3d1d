"""The claims of an exercise: for each, what was expected and what queue, ledger and tables show."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from redrive.arena.claims import Claim, counted
from redrive.exercise.evidence import Evidence
from redrive.exercise.options import INVALID, JOBS, TWICE, VALID, Names, Options

PUBLISHED: Final = 4


def judge(evidence: Evidence, options: Options, names: Names) -> list[Claim]:
    """Every claim, in the order of the story."""
    return [make(evidence, options, names) for make in _CLAIMS]


def left_behind(left: list[str]) -> Claim:
    """That nothing of the exercise is on the server or in the database any more."""
    return Claim("left behind", "nothing", "; ".join(left) or "nothing", not left)


def _stopped(evidence: Evidence, _: Options, __: Names) -> Claim:
    how = "killed" if evidence.killed else "not killed"
    return Claim(
        "consumers stopped after the first delivery",
        f"killed after commit, before ack: 1 effect, {PUBLISHED} messages held",
        f"{how}: {counted(evidence.effects_at_stop, 'effect')}, {evidence.held} messages held",
        evidence.killed and (evidence.effects_at_stop, evidence.held) == (1, PUBLISHED),
    )


def _valid(evidence: Evidence, _: Options, names: Names) -> Claim:
    state, effects = _state(evidence, VALID), _effects(evidence, names, VALID)
    return Claim(
        "the valid job",
        "completed, 1 effect",
        f"{state}, {counted(effects, 'effect')}; attempts {_outcomes(evidence, VALID)}",
        (state, effects) == ("completed", 1) and _times(evidence, VALID, "done") == 1,
    )


def _twice(evidence: Evidence, _: Options, names: Names) -> Claim:
    state, effects = _state(evidence, TWICE), _effects(evidence, names, TWICE)
    messages = {row["message_id"] for row in _attempts(evidence, TWICE)}
    both = messages == set(evidence.published[TWICE]) and len(messages) == 2
    refused = _times(evidence, TWICE, "duplicate")
    return Claim(
        "the job sent twice",
        "completed, 1 effect; 2 messages, duplicate refused",
        f"{state}, {counted(effects, 'effect')}; {counted(len(messages), 'message')}, "
        f"duplicate refused {counted(refused, 'time')}",
        (state, effects, both) == ("completed", 1, True)
        and refused >= 1
        and _times(evidence, TWICE, "done") == 1,
    )


def _isolated(evidence: Evidence, _: Options, names: Names) -> Claim:
    ids = evidence.published[INVALID]
    found = [(item["job_key"], item["reason"], [item["message_id"]]) for item in evidence.isolated]
    shown = ", ".join(f"{item['job_key']} ({item['reason']}: {item['error']})" for item in evidence.isolated)
    return Claim(
        "the job that could not be valid",
        "alone in the dead letters, its ledger state isolated, 0 effects",
        f"{shown or 'no dead letter'}; ledger {evidence.isolated_state or 'unknown'}, "
        f"{counted(evidence.effects_when_isolated, 'effect')}",
        found == [(names.key(INVALID), "rejected", ids)]
        and (evidence.isolated_state, evidence.effects_when_isolated) == ("isolated", 0),
    )


def _redriven(evidence: Evidence, _: Options, __: Names) -> Claim:
    ids = evidence.published[INVALID]
    members = [(item["message_id"], item["outcome"]) for item in evidence.plan_items]
    state = evidence.plan.get("state", "not made")
    return Claim(
        "corrected and redriven, only that item",
        "plan completed, its 1 member completed, 1 redriven in all",
        f"plan {state}, members {', '.join(outcome for _, outcome in members) or 'none'}, "
        f"{evidence.redriven_total} redriven in all",
        state == "completed" and members == [(ids[0], "completed")] and evidence.redriven_total == 1,
    )


def _completed_after(evidence: Evidence, _: Options, names: Names) -> Claim:
    state, effects = _state(evidence, INVALID), _effects(evidence, names, INVALID)
    attempts = _attempts(evidence, INVALID)
    own = {row["message_id"] for row in attempts} == set(evidence.published[INVALID])
    outcomes = [row["outcome"] for row in attempts]
    return Claim(
        "… and completed under its original message id",
        "completed, 1 effect; attempts reject, done of one message id, the published one",
        f"{state}, {counted(effects, 'effect')}; attempts {', '.join(outcomes) or 'none'} of "
        f"{'that id' if own else 'other ids'}",
        (state, effects, own) == ("completed", 1, True)
        and (outcomes.count("reject"), outcomes.count("done"), outcomes[-1:]) == (1, 1, ["done"]),
    )


def _ledger(evidence: Evidence, _: Options, __: Names) -> Claim:
    states = [_state(evidence, name) for name in JOBS]
    done = states.count("completed")
    shown = f"{done} completed, {len(states) - done} not"
    return Claim("the ledger", "3 completed, 0 not", shown, done == len(JOBS))


def _grown(evidence: Evidence, options: Options, __: Names) -> Claim:
    peak = evidence.peak
    ready, age = peak.get("ready", 0), peak.get("oldest_ready_age_seconds", 0.0)
    return Claim(
        "surge: consumers stopped, the backlog grows",
        f"{options.surge} ready, the oldest for more than {options.objective_seconds:g} s",
        f"{ready} ready, the oldest for {age:.2f} s",
        ready == options.surge and age > options.objective_seconds,
    )


def _recovered(evidence: Evidence, options: Options, __: Names) -> Claim:
    took = evidence.recovered_seconds
    shown = "not in time" if took is None else f"within it {took:.1f} s after the restart"
    return Claim(
        "surge: the oldest ready age is back",
        f"≤ {options.objective_seconds:g} s, at most {options.wait_seconds:g} s after the restart",
        f"{shown}, {evidence.age_after:.1f} s at the end",
        took is not None and evidence.age_after <= options.objective_seconds,
    )


def _surge(evidence: Evidence, options: Options, names: Names) -> Claim:
    counts = [evidence.effects.get(key, 0) for key in names.surge_keys(options.surge)]
    once, more, lost = counts.count(1), sum(count > 1 for count in counts), counts.count(0)
    took = "" if evidence.drained_seconds is None else f", drained in {evidence.drained_seconds:.1f} s"
    return Claim(
        "surge: every job once",
        f"{options.surge} once, 0 more than once, 0 lost, nothing in the queue",
        f"{once} once, {more} more than once, {lost} lost, {evidence.left_in_queue} in the queue{took}",
        (once, more, lost, evidence.left_in_queue) == (options.surge, 0, 0, 0),
    )


def _state(evidence: Evidence, name: str) -> str:
    return str(evidence.jobs[name]["state"])


def _attempts(evidence: Evidence, name: str) -> list[dict[str, str]]:
    return list(evidence.jobs[name]["attempts"])


def _outcomes(evidence: Evidence, name: str) -> str:
    return ", ".join(row["outcome"] for row in _attempts(evidence, name)) or "none"


def _times(evidence: Evidence, name: str, outcome: str) -> int:
    return sum(row["outcome"] == outcome for row in _attempts(evidence, name))


def _effects(evidence: Evidence, names: Names, name: str) -> int:
    return evidence.effects.get(names.key(name), 0)


_CLAIMS: Final[tuple[Callable[[Evidence, Options, Names], Claim], ...]] = (
    _stopped, _valid, _twice, _isolated, _redriven, _completed_after, _ledger, _grown, _recovered, _surge,
)  # fmt: skip
