"""A plan for people: what it is, how far it is, how long it takes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from redrive.cli.output import Column
from redrive.cli.session import Session
from redrive.cli.text import counted

LISTED: Final[tuple[Column, ...]] = (
    "plan_id", "queue", "state", "members",
    ("done", lambda row: members_of(row["counts"])),
    ("paused by", lambda row: paused_by(row.get("paused_by"))),
    "reason", "actor", "created_at",
)  # fmt: skip
ITEMS: Final[tuple[Column, ...]] = (
    "n", "message_id", "job_key", "outcome", "failures", "finished_at", "detail",
)  # fmt: skip
GROUPED: Final[tuple[Column, ...]] = ("fingerprint", "count", "reason", "error_type")


def show(session: Session, plan: Mapping[str, Any]) -> None:
    """Everything of a plan, field by field; of a dry run also its groups."""
    rules = {name: value for name, value in plan["abort"].items() if value not in (None, False)}
    session.out.record(
        {
            "plan_id": plan["plan_id"],
            "queue": plan["queue"],
            "state": plan["state"],
            "paused_by": paused_by(plan["paused_by"]) or None,
            "members": plan["members"]
            if plan.get("complete") is not False
            else f"at least {plan['members']}",
            "counts": members_of(plan["counts"]),
            "members_sha256": plan["members_sha256"],
            "selection": plan["selection"],
            "oldest_dead_at": plan.get("oldest_dead_at"),
            "newest_dead_at": plan.get("newest_dead_at"),
            "envelope": envelope(plan["envelope"]),
            "estimate": estimate(plan["estimate"]),
            "abort": ", ".join(
                name if value is True else f"{name} {value:g}" for name, value in rules.items()
            ),
            "edit": plan["edit"],
            "reason": plan["reason"],
            "actor": plan["actor"],
            "created_at": plan["created_at"],
            "started_at": plan["started_at"],
            "finished_at": plan["finished_at"],
        }
    )
    if plan.get("groups"):
        session.out.table(plan["groups"], GROUPED, empty="")


def members_of(counts: Mapping[str, int]) -> str:
    """``12 completed, 3 pending``, as the outcomes come in the life of a member."""
    from redrive.domain.plans import OUTCOMES

    return ", ".join(f"{counts[name]} {name}" for name in OUTCOMES if counts.get(name))


def finished(counts: Mapping[str, int]) -> int:
    """How many members have their final outcome."""
    from redrive.domain.plans import OPEN

    return sum(count for name, count in counts.items() if name not in OPEN)


def paused_by(paused: Mapping[str, Any] | None) -> str:
    """Who or which rule, with its numbers; empty for a plan that is not paused."""
    if paused is None:
        return ""
    if paused["rule"] is None:
        return f"{paused['actor']}: {paused['reason']}" if paused["reason"] else str(paused["actor"])
    numbers = "" if paused["limit"] is None else f" (limit {paused['limit']:g}, seen {paused['seen']:g})"
    return f"the rule {paused['rule']}{numbers}: {paused['reason']}"


def envelope(given: Mapping[str, Any]) -> str:
    """``10 a second, 100 in flight, ramp of 60 s``."""
    ramp = f", ramp of {given['ramp_seconds']:g} s" if given["ramp_seconds"] else ""
    return f"{given['rate_per_second']:g} a second, {given['max_in_flight']} in flight{ramp}"


def estimate(found: Mapping[str, Any] | None) -> str:
    """How long, bound by what, and what there is to spare."""
    if found is None:
        return ""
    said = [counted(found["count"], "message")]
    if found["seconds_at_envelope"] is not None:
        said.append(f"{duration(found['seconds_at_envelope'])} at this envelope (bound by {found['bound']})")
    if found["serial_seconds"] is not None:
        said.append(f"{duration(found['serial_seconds'])} one after the other")
    if found["spare_per_second"] is not None:
        said.append(f"{found['spare_per_second']:g} a second to spare")
    if found["suggested_rate"] is not None:
        said.append(f"suggested rate {found['suggested_rate']:g}")
    return ", ".join(said)


def duration(seconds: float) -> str:
    """``0.4 s``, ``12 s``, ``50 min``, ``3 h 20 min``."""
    if seconds < 10:
        return f"{seconds:.1f} s"
    if seconds < 120:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 120 else f"{minutes // 60} h {minutes % 60} min"
