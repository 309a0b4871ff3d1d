"""Reconciliation, the rule: what the ledger says of a job against what the queue says of it, key by key.

A job that the ledger knows as accepted must be completed, isolated, cancelled, or held by the queue; what the
queue holds overrides a stale state. Nothing is ever concluded from totals. Pure: the facts are gathered in
``ledger``, from a transport that can list what it holds.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import StrEnum
from typing import Final, Literal

import msgspec

Repair = Literal["requeue", "ack", "adopt", "sync"]
REPAIRS: Final[tuple[Repair, ...]] = ("requeue", "ack", "adopt", "sync")

SETTLE_SECONDS: Final = 60.0
"""How long after a job ended its message may still be leased, or its state differ: the ack or nack is on its
way, or travels with a batch."""


class Cause(StrEnum):
    """Why ledger and queue disagree. The first eight leave a job (or a message) unexplained."""

    EARLY_ACK = "early_ack"
    EXPIRED = "expired"
    PURGED = "purged"
    WITHDRAWN = "withdrawn"
    RESOLVED = "resolved"
    UNKNOWN_END = "unknown_end"
    UNKNOWN_PRODUCER = "unknown_producer"
    STILL_QUEUED = "still_queued"
    NOT_KNOWN = "not_known"
    STALE = "stale"
    ISOLATED_GONE = "isolated_gone"


LOST: Final = frozenset(
    {Cause.EARLY_ACK, Cause.EXPIRED, Cause.PURGED, Cause.WITHDRAWN, Cause.RESOLVED, Cause.UNKNOWN_END}
)
"""The ledger waits for a job whose message is gone."""
UNEXPLAINED: Final = LOST | {Cause.UNKNOWN_PRODUCER, Cause.STILL_QUEUED}
"""These, and what cannot be known, make the answer of a reconciliation no; the rest are notices."""

MEANING: Final[dict[Cause, str]] = {
    Cause.EARLY_ACK: "the queue let the message go as done, and there is no receipt: acknowledged before the "
    "effect was committed, or by a consumer without the ledger; a restored store looks the same",
    Cause.EXPIRED: "the message's retention was over before the job was done",
    Cause.PURGED: "the message was purged, or went with its queue, before the job was done",
    Cause.WITHDRAWN: "the message was cancelled at the queue; the ledger still waits for the job",
    Cause.RESOLVED: "a plan closed the message as completed on an operator's word; there is no receipt",
    Cause.UNKNOWN_END: "the message is gone: acknowledged, expired or purged, which this queue cannot tell",
    Cause.UNKNOWN_PRODUCER: "the queue holds a message that no producer planned in this ledger",
    Cause.STILL_QUEUED: "the job is final, and the queue still holds its message",
    Cause.NOT_KNOWN: "whether the queue holds the job cannot be known",
    Cause.STALE: "the ledger's state is behind the queue's, which counts",
    Cause.ISOLATED_GONE: "the job is isolated, and its dead letter is gone: nothing is left to redrive",
}
REPAIR_OF: Final[dict[Cause, Repair]] = {
    **dict.fromkeys(LOST, "requeue"),
    Cause.UNKNOWN_PRODUCER: "adopt",
    Cause.STILL_QUEUED: "ack",
    Cause.STALE: "sync",
}
"""Which repair is for which cause; the others need a person."""
REMEDY: Final[dict[Cause, str]] = {
    **dict.fromkeys(LOST, "--repair requeue publishes the job again, under its next generation"),
    Cause.UNKNOWN_PRODUCER: "find who published it; --repair adopt enters the job as accepted",
    Cause.STILL_QUEUED: "--repair ack takes the message out of the queue; a worker would find the receipt",
    Cause.NOT_KNOWN: "reconcile again over a queue that can list what it holds",
    Cause.STALE: "--repair sync writes the queue's state into the ledger",
    Cause.ISOLATED_GONE: "ledger job shows how it died; publish it anew, or cancel it in the ledger",
}

_LIVE: Final = frozenset({"ready", "delayed", "leased", "waiting"})
_OPEN: Final = frozenset({"accepted", "isolated"})
FINAL: Final = frozenset({"completed", "cancelled"})
_ENDS: Final = {
    "acked": Cause.EARLY_ACK,
    "expired": Cause.EXPIRED,
    "purged": Cause.PURGED,
    "cancelled": Cause.WITHDRAWN,
    "already_completed": Cause.RESOLVED,
}


class Held(msgspec.Struct, frozen=True, gc=False):
    """A message that the queue holds: ``queue`` is where it lies (its dead-letter queue), ``state`` ready,
    delayed, leased, waiting, dead or damaged."""

    job_key: str
    message_id: str
    queue: str
    state: str


class Fate(msgspec.Struct, frozen=True, gc=False):
    """What became of a message: still ``held``, or its ``end`` (acked, expired, purged, cancelled,
    already_completed; None: gone in a way that is not known). Not ``sure``: whether it is held is not known.
    """

    held: Held | None = None
    end: str | None = None
    sure: bool = True


class Known(msgspec.Struct, frozen=True, gc=False):
    """A job as the ledger knows it. ``waits``: a relay has still to publish it. ``payload``: the ledger has
    it, so that it can publish the job again. Times in ms since the epoch."""

    job_key: str
    queue: str
    state: str
    generation: int
    message_id: str | None
    waits: bool
    payload: bool
    completed_ms: int | None
    updated_ms: int


class Verdict(msgspec.Struct, frozen=True, gc=False):
    """That ledger and queue disagree, and on which message if one is held."""

    cause: Cause
    held: Held | None = None


def judge(
    known: Known | None, held: Sequence[Held], now_ms: int, settle_ms: int, fate: Fate | None = None
) -> Iterator[Verdict]:
    """Where ``known`` and ``held`` (of one job key) disagree; nothing when they agree.

    ``fate``: what became of the job's own message, where that was asked. Without it a job that is not held is
    ``unknown_end``.
    """
    if known is None:
        yield from (Verdict(Cause.UNKNOWN_PRODUCER, one) for one in held[:1])
    elif known.state in FINAL:
        since_ms = known.updated_ms if known.completed_ms is None else known.completed_ms
        settling = now_ms - since_ms < settle_ms
        for one in held:
            if not (settling and one.state == "leased"):
                yield Verdict(Cause.STILL_QUEUED, one)
    elif known.state in _OPEN and not known.waits:
        yield from _open(known, held, fate, settling=now_ms - known.updated_ms < settle_ms)


def _open(known: Known, held: Sequence[Held], fate: Fate | None, *, settling: bool) -> Iterator[Verdict]:
    live = [one for one in held if one.state in _LIVE]
    dead = [one for one in held if one.state == "dead"]
    if not held and fate is not None and not fate.sure:
        yield Verdict(Cause.NOT_KNOWN)
    elif known.state == "isolated":
        if not held:
            yield Verdict(Cause.ISOLATED_GONE)
        elif live and not settling:
            yield Verdict(Cause.STALE, live[0])
    elif not held:
        yield Verdict(_ENDS.get((fate and fate.end) or "", Cause.UNKNOWN_END))
    elif dead and not live and not settling:
        yield Verdict(Cause.STALE, dead[0])
