"""What the contract offers beyond the port's minimum: what a queue holds, what became of a message, and how a
message of a job that is final is taken out. Each is a function over ``call``, the way to one route.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Final

import msgspec

from redrive import seams
from redrive.contract.instants import rfc3339
from redrive.domain import limits
from redrive.domain.errors import Conflict, MessageNotFound, NotFound, QueueNotFound, RedriveError
from redrive.domain.reconcile import Fate, Held
from redrive.transports.port import Call

PAGE_BYTES: Final = 4 * limits.MIB
"""What a page of messages should weigh with their payloads, which cannot be left out."""
_FIRST_PAGE: Final = 16
FREEZE_SECONDS: Final = 30.0
_LOOK_SECONDS: Final = 0.05


class _Message(msgspec.Struct):
    message_id: str
    job_key: str
    queue: str
    state: str = "dead"  # a list of dead letters does not say it


class _Page(msgspec.Struct):
    items: list[_Message]
    next_cursor: str | None = None


class _Step(msgspec.Struct):
    step: str
    reason: str | None = None


class _Lineage(msgspec.Struct):
    message_id: str
    state: str
    queue: str | None = None
    steps: list[_Step] = []


class _JobLineage(msgspec.Struct):
    complete: bool
    items: list[_Lineage]
    next_cursor: str | None = None


def held(call: Call, queue: str) -> Iterator[list[Held]]:
    """Pages of what ``queue`` holds, and of its dead letters, wherever those lie.

    A queue that is not there holds nothing; its dead letters may still be.
    """
    for capability_id in ("queue.messages", "queue.dlq.list"):
        try:
            yield from _pages(call, capability_id, queue)
        except QueueNotFound:
            continue


def _pages(call: Call, capability_id: str, queue: str) -> Iterator[list[Held]]:
    cursor, limit = None, _FIRST_PAGE
    while True:
        raw = call(capability_id, {"queue": queue, "limit": limit, "cursor": cursor})
        page = msgspec.json.decode(raw, type=_Page)
        yield [Held(one.job_key, one.message_id, one.queue, one.state) for one in page.items]
        cursor = page.next_cursor
        if cursor is None:
            return
        fits = (
            limit * PAGE_BYTES // max(1, len(raw))
        )  # payloads of 256 KiB or of nothing: pages of one weight
        limit = max(1, min(limit * 4, fits, limits.LIST_LIMIT_MAX))


def fate(call: Call, queue: str, job_key: str, message_id: str | None) -> Fate:
    """What became of the message, or without its id of the job's messages."""
    try:
        if message_id is None:
            return _fate_of_job(call, job_key)
        lineage = msgspec.json.decode(call("redrive.message", {"message_id": message_id}), type=_Lineage)
    except NotFound:
        # acknowledged at its first delivery, which leaves no trace; or nothing that this key may see
        return Fate(end="acked") if _seen(call, queue) else Fate(sure=False)
    return _fate(lineage, job_key)


def _fate(lineage: _Lineage, job_key: str) -> Fate:
    if lineage.state != "gone":
        return Fate(held=Held(job_key, lineage.message_id, lineage.queue or "", lineage.state))
    removed = [step.reason for step in lineage.steps if step.step == "removed"]
    return Fate(end=removed[-1] if removed else "acked")


def _fate_of_job(call: Call, job_key: str) -> Fate:
    cursor, last, complete = None, Fate(end="acked"), True
    while True:
        raw = call("redrive.job", {"job_key": job_key, "cursor": cursor})
        page = msgspec.json.decode(raw, type=_JobLineage)
        complete = complete and page.complete
        for lineage in page.items:
            last = _fate(lineage, job_key)
            if last.held is not None:
                return last
        cursor = page.next_cursor
        if cursor is None:
            return last if complete else Fate(sure=False)


def _seen(call: Call, queue: str) -> bool:
    try:
        call("queue.get", {"queue": queue})
    except NotFound:
        return False
    return True


def withdraw(
    call: Call, queue: str, items: Sequence[tuple[Held, int | None]], reason: str
) -> list[bool | RedriveError]:
    """Take out messages of jobs that are final: a dead letter of a completed job is resolved by a plan, with
    the completion as evidence; every other message is cancelled (a leased one when its lease ends).
    """
    results: list[bool | RedriveError] = [False] * len(items)
    dead = [place for place, (one, completed_ms) in enumerate(items) if one.state == "dead" and completed_ms]
    for start in range(0, len(dead), limits.BATCH_ENTRIES_MAX):
        places = dead[start : start + limits.BATCH_ENTRIES_MAX]
        members = {items[place][0].message_id: items[place] for place in places}
        outcome = _resolved(call, queue, members, reason)
        for place in places:
            results[place] = outcome[items[place][0].message_id]
    for place in set(range(len(items))) - set(dead):
        results[place] = _cancelled(call, items[place][0])
    return results


def _cancelled(call: Call, one: Held) -> bool | RedriveError:
    try:
        call("queue.cancel", {"queue": one.queue, "message_id": one.message_id})
    except MessageNotFound:
        return False
    except RedriveError as refusal:
        if refusal.retryable:
            raise
        return refusal
    return True


def _resolved(
    call: Call, queue: str, members: Mapping[str, tuple[Held, int | None]], reason: str
) -> dict[str, bool | RedriveError]:
    request = {"queue": queue, "select": {"message_ids": list(members)}, "reason": reason}
    plan_id = msgspec.json.decode(call("redrive.plan.create", request))["plan_id"]
    _frozen(call, plan_id)
    given = [
        {
            "message_id": message_id,
            "evidence": {"job_key": one.job_key, "completed_at": rfc3339(completed_ms or 0)},
        }
        for message_id, (one, completed_ms) in members.items()
    ]
    done = msgspec.json.decode(call("redrive.plan.resolve", {"plan_id": plan_id, "items": given}))
    with suppress(Conflict):  # unless it has ended by itself; nothing of it is to be sent
        call("redrive.plan.abort", {"plan_id": plan_id, "reason": reason})
    left: Mapping[str, str] = done["left"]
    return {each: True if each not in left else _left(each, left[each]) for each in members}


def _left(message_id: str, why: str) -> bool | RedriveError:
    if why in ("gone", "no member", "moved_elsewhere"):
        return False
    return Conflict(f"message {message_id} was not resolved: {why}")


def _frozen(call: Call, plan_id: str) -> None:
    ends_at = seams.monotonic() + FREEZE_SECONDS
    never = threading.Event()
    while msgspec.json.decode(call("redrive.plan.get", {"plan_id": plan_id}))["state"] == "freezing":
        if seams.monotonic() > ends_at:
            raise Conflict(f"plan {plan_id} was not frozen within {FREEZE_SECONDS:g} s")
        seams.wait(never, _LOOK_SECONDS)
