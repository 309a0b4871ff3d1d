"""Follows a plan until it ends or pauses. The server moves it; whoever watches may go away."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, Final

import typer

from redrive import seams
from redrive.cli.failures import NO, OUT_OF_REACH, Refusal
from redrive.cli.output import note, progress
from redrive.cli.plan_views import finished, members_of, paused_by
from redrive.cli.session import Session

LOOK_SECONDS: Final = 0.5
FREEZE_SECONDS: Final = 60.0
"""How long a plan may freeze without one more member before nobody waits for it any longer."""


def watch(session: Session, plan_id: str) -> None:
    """Show progress until the plan is completed (exit 0), aborted or paused (exit 1); raises Refusal for one
    that nobody started. Ctrl-C stops the watching only."""
    try:
        plan = _followed(session, plan_id)
    except KeyboardInterrupt:
        note(f"redrive: no longer watching; the plan goes on: redrive plan watch {plan_id}")
        raise
    if session.out.as_json:
        session.out.json(session.client.exact("redrive.plan.get", {"plan_id": plan_id}))
    else:
        by = paused_by(plan["paused_by"])
        session.out.line(f"{plan_id} is {plan['state']}: {members_of(plan['counts']) or 'no members'}")
        if by:
            session.out.line(f"paused by {by}")
    if plan["state"] != "completed":
        raise typer.Exit(NO)


def frozen(session: Session, plan_id: str) -> Any:
    """The plan when its members are written down; raises Refusal (exit 3) when that stands still."""
    grown, since = -1, seams.monotonic()
    while True:
        plan = session.client.call("redrive.plan.get", {"plan_id": plan_id})
        if plan["state"] != "freezing":
            return plan
        if plan["members"] > grown:
            grown, since = plan["members"], seams.monotonic()
        if seams.monotonic() - since > FREEZE_SECONDS:
            raise Refusal(
                OUT_OF_REACH,
                f"plan {plan_id} has {grown} members since {FREEZE_SECONDS:g} s and is not frozen yet",
                hint=f"The server's log says more. redrive plan show {plan_id}",
                code="NOT_FROZEN",
            )
        _pause()


def _followed(session: Session, plan_id: str) -> Any:
    plan = frozen(session, plan_id)
    if plan["state"] == "draft":
        raise Refusal(NO, f"plan {plan_id} is a draft", hint=f"redrive plan start {plan_id}", code="CONFLICT")
    if not session.out.as_json:
        note(f"watching {plan_id}; Ctrl-C leaves it running")
    with progress("redriving", plan["members"]) as advance:
        shown = 0
        while True:
            shown = _advanced(advance, shown, finished(plan["counts"]))
            if plan["state"] != "running":
                return plan
            _pause()
            plan = session.client.call("redrive.plan.get", {"plan_id": plan_id})


def _advanced(advance: Callable[[int], None], shown: int, done: int) -> int:
    advance(done - shown)
    return done


def _pause() -> None:
    seams.wait(threading.Event(), LOOK_SECONDS)
