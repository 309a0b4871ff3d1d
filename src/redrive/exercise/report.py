"""An exercise as a person and as a program read it."""

from __future__ import annotations

from typing import Any

from redrive.arena.verdicts import claims_json, claims_table
from redrive.exercise.options import Options
from redrive.exercise.run import Outcome


def table(outcome: Outcome, options: Options) -> Any:
    """The claims as a rich Table."""
    without = f", unsafe: {options.unsafe}" if options.unsafe else ""
    return claims_table(f"The exercise on {outcome.names.queue}{without}", outcome.claims)


def after(outcome: Outcome, options: Options) -> list[str]:
    """The lines below the table."""
    held = sum(claim.holds for claim in outcome.claims)
    lines = [f"{held} of {len(outcome.claims)} claims hold, in {outcome.seconds:.0f} s."]
    if outcome.evidence.late:
        lines.append(f"Waited in vain for: {', '.join(outcome.evidence.late)}.")
    if options.unsafe:
        lines.append("This is the damage without that safety; leave out --unsafe to see the same with it.")
    return lines


def as_json(outcome: Outcome, options: Options) -> dict[str, Any]:
    """The claims with the evidence they rest on; seconds, and ids as queue and ledger gave them."""
    evidence = outcome.evidence
    plan = {name: evidence.plan.get(name) for name in ("plan_id", "state", "members", "members_sha256")}
    return {
        "queue": outcome.names.queue,
        "unsafe": options.unsafe,
        "seconds": round(outcome.seconds, 1),
        "holds": outcome.holds,
        "claims": claims_json(outcome.claims),
        "waited_in_vain": evidence.late,
        "published": evidence.published,
        "jobs": list(evidence.jobs.values()),
        "isolated": evidence.isolated,
        "plan": {**plan, "items": evidence.plan_items} if evidence.plan else None,
        "surge": {
            "jobs": options.surge,
            "objective_seconds": options.objective_seconds,
            "peak_ready": evidence.peak.get("ready"),
            "peak_oldest_ready_age_seconds": evidence.peak.get("oldest_ready_age_seconds"),
            "recovered_seconds": evidence.recovered_seconds,
            "drained_seconds": evidence.drained_seconds,
        },
        "log": outcome.log,
    }
