"""A message's lineage for people: what it is now, and every step that led there, a line each."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

import msgspec

from redrive.cli.session import Session
from redrive.cli.text import one_line

_NOW: Final = ("payload", "attempt", "delivery", "visible_at", "lease_expires_at", "expires_at", "headers")
_LINE_CHARS: Final = 500


def read(exact: bytes) -> dict[str, Any]:
    """A lineage of the contract as Python values."""
    found: dict[str, Any] = msgspec.json.decode(exact)
    return found


def show(session: Session, lineage: Mapping[str, Any], evidence: Iterable[Mapping[str, Any]] = ()) -> None:
    """One message: its fields, then its steps; ``evidence`` are the ledger's attempts of this message, told
    in their place, since the queue keeps failures only."""
    message = lineage["message"] or {}
    told = {name: lineage[name] for name in ("message_id", "job_key", "queue", "state")}
    session.out.record(told | {name: message[name] for name in _NOW if message.get(name) not in (None, {})})
    steps = [(step["at"], step["step"], _what(step)) for step in lineage["steps"]]
    steps += [(each["ended_at"], "ledger", _recorded(each)) for each in evidence]
    for at, step, what in sorted(steps, key=lambda each: each[0]):
        session.out.line(one_line(f"{at}  {step:<9}  {what}", _LINE_CHARS).rstrip())


def _what(step: Mapping[str, Any]) -> str:
    """A step in words: only what it has."""
    delivery = None if step["delivery"] is None else f"delivery {step['delivery']}"
    consumer = None if step["consumer_id"] is None else f"by {step['consumer_id']}"
    plan = None if step["plan_id"] is None else f"plan {step['plan_id']}"
    actor = None if step["actor"] is None else f"by {step['actor']}"
    edit = None if step["edit"] is None else f"payload edited by {msgspec.json.encode(step['edit']).decode()}"
    to = f"to {step['queue']}" if step["queue"] and step["step"] in ("published", "redriven") else None
    parts = (
        to, plan, delivery, consumer, step["end"], step["outcome"], actor, step["reason"],
        _failure(step["error"] or {}), edit, step["detail"],
    )  # fmt: skip
    return ", ".join(str(part) for part in parts if part)


def _recorded(attempt: Mapping[str, Any]) -> str:
    error = {"type": attempt["error_type"], "message": attempt["error_message"]}
    worker = None if attempt["worker"] is None else f"by {attempt['worker']}"
    parts = (f"delivery {attempt['delivery']}", worker, attempt["outcome"], _failure(error))
    return ", ".join(part for part in parts if part)


def _failure(error: Mapping[str, Any]) -> str:
    return ": ".join(part for part in (error.get("type"), error.get("message")) if part)
