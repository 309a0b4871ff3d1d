"""Repairs of what a reconciliation found: only on request, each fenced by what was judged then."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from itertools import islice
from typing import Any, Final, Protocol

import msgspec

from redrive import seams
from redrive.domain.errors import InvalidRequest, RedriveError
from redrive.domain.reconcile import REPAIR_OF, REPAIRS, Held, Repair
from redrive.ledger.drivers.port import Mode
from redrive.ledger.reconcile import Own, Progress, Reconciliation
from redrive.ledger.spool import Finding
from redrive.ledger.steps import Program, Rows, Statement, Step
from redrive.ledger.transaction import framed
from redrive.ledger.values import checked_key

BATCH: Final = 500
REFUSALS_MAX: Final = 100
NO_PAYLOAD: Final = "the ledger has no payload of it: its producer must publish it again"
CANNOT_WITHDRAW: Final = "this queue cannot take a single message out"
NO_KEY: Final = "its job key is none that a ledger keeps"


class Withdraws(Protocol):
    """A transport that can take single messages out."""

    def withdraw(
        self, queue: str, items: Sequence[tuple[Held, int | None]], reason: str
    ) -> list[bool | RedriveError]:
        """Remove messages whose jobs are final, each with the job's completion time in ms or None: True,
        False when it was gone before, or the refusal."""


class Planned(msgspec.Struct, frozen=True, kw_only=True):
    """One line of a repair's plan: what is done to a finding; ``obstacle`` says why it cannot be done."""

    finding: Finding
    action: str
    obstacle: str | None = None


class Repaired(msgspec.Struct, kw_only=True):
    """What a repair did: ``done``; ``changed``: the job had moved on since and was left alone;
    ``impossible`` as its plan said; ``refused`` by the queue, the first of them named."""

    repair: str
    done: int = 0
    changed: int = 0
    impossible: int = 0
    refused: int = 0
    refusals: list[str] = []


def plan(found: Reconciliation, repair: Repair, transport: Any) -> Iterator[Planned]:
    """What ``repair`` would do, one finding after the other; nothing is changed."""
    if repair not in REPAIRS:
        raise InvalidRequest(f"repair must be one of {', '.join(REPAIRS)}, got {repair!r}")
    causes = [cause for cause, of in REPAIR_OF.items() if of == repair]
    for finding in found.findings(causes):
        yield Planned(
            finding=finding,
            action=_ACTIONS[repair](finding),
            obstacle=_obstacle(finding, repair, transport),
        )


def carry_out(
    own: Own,
    found: Reconciliation,
    repair: Repair,
    transport: Any,
    *,
    reason: str,
    producer: str,
    progress: Progress | None,
) -> Repaired:
    """Do what :func:`plan` says. A job that changed meanwhile is left alone."""
    told = Repaired(repair=repair)
    steps = plan(found, repair, transport)
    while batch := list(islice(steps, BATCH)):
        possible = [step.finding for step in batch if step.obstacle is None]
        told.impossible += len(batch) - len(possible)
        if repair == "ack":
            _withdraw(found.summary.queue, possible, transport, reason, told)
        else:
            queue = found.summary.queue
            done = own(lambda dialect, mode: _written(dialect, mode, repair, possible, queue, producer))  # noqa: B023 - run at once
            told.done += done
            told.changed += len(possible) - done
        if progress is not None:
            progress(f"repairing: {repair}", len(batch), None)
    return told


def _withdraw(queue: str, findings: list[Finding], transport: Any, reason: str, told: Repaired) -> None:
    items = [
        (
            Held(each.job_key, each.message_id or "", each.held_in or queue, each.held_state or ""),
            each.completed_at_ms,
        )
        for each in findings
    ]
    if not items:
        return
    for (held, _), result in zip(items, transport.withdraw(queue, items, reason), strict=True):
        if isinstance(result, RedriveError):
            told.refused += 1
            if len(told.refusals) < REFUSALS_MAX:
                told.refusals.append(f"{held.message_id}: {result.code}: {result.message}")
        elif result:
            told.done += 1
        else:
            told.changed += 1


def _written(
    dialect: str, mode: Mode, repair: Repair, findings: list[Finding], queue: str, producer: str
) -> Program:
    return framed(dialect, mode, _write(dialect, repair, findings, queue, producer), read_committed=True)


def _write(
    dialect: str, repair: Repair, findings: list[Finding], queue: str, producer: str
) -> Generator[Step, Any, int]:
    count = 0
    for finding in sorted(findings, key=lambda each: each.job_key):  # one order of locks
        values: dict[str, Any] = {
            "job_key": checked_key(dialect, finding.job_key),
            "generation": finding.generation,
            "now_ms": seams.wall_ms(),
        }
        name = {"requeue": "requeue", "adopt": "adopt"}.get(repair) or (
            "note_isolated" if finding.ledger_state == "accepted" else "redrive"
        )
        if name == "adopt":
            values |= {"queue": queue, "message_id": finding.message_id, "producer": producer}
        answer: Rows = yield Statement(name, values)
        count += min(1, answer.touched)
    return count


def _obstacle(finding: Finding, repair: Repair, transport: Any) -> str | None:
    if repair == "requeue" and not finding.payload:
        return NO_PAYLOAD
    if repair == "ack" and not hasattr(transport, "withdraw"):
        return CANNOT_WITHDRAW
    if repair == "adopt":
        try:
            checked_key("", finding.job_key)
        except RedriveError:
            return NO_KEY
    return None


_ACTIONS: Final[dict[Repair, Callable[[Finding], str]]] = {
    "requeue": lambda finding: f"publish under generation {finding.generation + 1}",
    "ack": lambda finding: f"take message {finding.message_id} out of {finding.held_in}",
    "adopt": lambda finding: f"enter as accepted, with message {finding.message_id}",
    "sync": lambda finding: (
        "note as isolated"
        if finding.ledger_state == "accepted"
        else f"note as accepted ({finding.held_state})"
    ),
}
