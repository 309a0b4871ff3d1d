"""Queues: made, changed, listed, paused, purged, deleted."""

from __future__ import annotations

import hashlib
import math
import threading
from collections.abc import Callable
from typing import Any

import msgspec

from redrive import seams
from redrive.contract import shapes
from redrive.contract.idempotency import Idempotency
from redrive.contract.instants import plain, rfc3339
from redrive.domain import limits
from redrive.domain.errors import ConfirmationRequired, Conflict, InvalidRequest, Overloaded, RedriveError
from redrive.service.access import Caller
from redrive.service.batching import SLICE
from redrive.service.context import Context, audit, find_queue, idempotent, see
from redrive.service.work import Commit, Read
from redrive.storage import commands as c
from redrive.storage.port import Reader
from redrive.storage.values import Queue

_POLICY = (
    "max_retries", "retention_seconds", "visibility_timeout_default", "enable_priority", "fifo_on_dead",
    "content_deduplication", "max_in_flight", "max_per_second", "max_lease_seconds", "max_redrives",
    "redrive_policy", "require_receipt_handle",
)  # fmt: skip
_UNLIMITED_BY_ZERO = ("max_in_flight", "max_per_second")
_HELD_SECONDS = 0.05  # until another node's transaction may have let go
_TOKEN_SECONDS = 600


def create(_context: Context, caller: Caller, request: shapes.QueueCreate, key: Idempotency | None) -> Commit:
    """A queue with these settings, or the one that has them already."""
    see(caller, request.name)
    if request.dead_letter_queue is not None:
        see(caller, request.dead_letter_queue)
    command = c.CreateQueue(
        request.name,
        request.type,
        request.dead_letter_queue,
        _settings(request),
        idempotent(key),
        audit(caller, "queue.create", request.name),
    )

    def finish(result: Any) -> Any:
        if isinstance(result, RedriveError):
            raise result
        answer = record(result.queue)
        return shapes.Replayed(answer) if result.replayed else answer

    return Commit(command, finish)


def update(context: Context, caller: Caller, request: shapes.QueueUpdate, _key: Idempotency | None) -> Read:
    """Change settings; they hold at once, except that stored messages keep their retention."""

    def run() -> shapes.QueueRecord:
        queue = find_queue(context, caller, request.name)
        if request.dead_letter_queue is not None:
            see(caller, request.dead_letter_queue)
        if request.type is not None and request.type != queue.type:
            raise Conflict(f"the type of queue {queue.name} is {queue.type} and cannot become {request.type}")
        row = audit(caller, "queue.update", request.name)
        settings = _settings(request)
        command = c.UpdateQueue(request.name, settings, request.dead_letter_queue, row)
        return record(_queue(context.committer.call(command)))

    return Read(run)


def listed(context: Context, caller: Caller, request: shapes.QueueList, _key: Idempotency | None) -> Read:
    """A page of the queues that the key may see, by name."""

    def run() -> shapes.QueuePage:
        limit = request.limit or limits.LIST_LIMIT_DEFAULT
        after, items = request.cursor or "", list[shapes.QueueRecord]()
        while len(items) <= limit:
            page = context.engine.read(_page_after(after))
            items += [record(queue) for queue in page if caller.may_see(queue.name)]
            if len(page) < limits.LIST_LIMIT_MAX:
                break
            after = page[-1].name
        more = len(items) > limit
        return shapes.QueuePage(items=items[:limit], next_cursor=items[limit - 1].name if more else None)

    return Read(run)


def _page_after(name: str) -> Callable[[Reader], list[Queue]]:
    return lambda reader: reader.queue_page(name, limits.LIST_LIMIT_MAX)


def get(context: Context, caller: Caller, request: shapes.QueueGet, _key: Idempotency | None) -> Read:
    """One queue."""
    return Read(lambda: record(find_queue(context, caller, request.queue)))


def pause(context: Context, caller: Caller, request: shapes.QueuePause, _key: Idempotency | None) -> Commit:
    """Publishing goes on, delivery stops."""
    return _state(context, caller, request.queue, "paused", request.reason)


def resume(context: Context, caller: Caller, request: shapes.QueueResume, _key: Idempotency | None) -> Commit:
    """Delivery goes on."""
    return _state(context, caller, request.queue, "active", request.reason)


def _state(_context: Context, caller: Caller, name: str, state: Any, reason: str | None) -> Commit:
    see(caller, name)
    action = "queue.pause" if state == "paused" else "queue.resume"
    command = c.SetQueueState(name, state, audit(caller, action, name, reason))
    return Commit(command, lambda result: record(_queue(result)))


def delete(context: Context, caller: Caller, request: shapes.QueueDelete, _key: Idempotency | None) -> Read:
    """The name is free at once; the messages go along, with tombstones."""

    def run() -> shapes.QueueDeleted:
        queue = find_queue(context, caller, request.queue)
        held = context.engine.read(lambda reader: reader.counts(queue))
        row = audit(caller, "queue.delete", request.queue)
        row.detail = msgspec.json.encode(
            {"ready": held.ready, "delayed": held.delayed, "waiting": held.waiting, "leased": held.leased}
        )
        _bequeath_redaction(context, caller, queue)
        try:
            deleted = _queue(context.committer.call(c.SetQueueState(request.queue, "deleting", row)))
        except Conflict:
            if caller.visible is None:
                raise
            # the refusal names the queues, and this key may not see them all
            raise Conflict(f"queue {queue.name} is the dead-letter queue of another queue") from None
        _purge(context, deleted.name, None, deleting=True)
        messages = held.ready + held.delayed + held.waiting + held.leased
        return shapes.QueueDeleted(deleted=True, messages=messages, leased=held.leased)

    return Read(run)


def _bequeath_redaction(context: Context, caller: Caller, queue: Queue) -> None:
    """Its dead letters outlive the queue: what it keeps out of sight stays so by the settings of theirs."""
    if not queue.policy.redact:
        return
    heir = context.engine.read(lambda reader: reader.queue(queue.dead_letter_name))
    if heir is None or set(queue.policy.redact) <= set(heir.policy.redact):
        return
    paths = tuple(dict.fromkeys((*heir.policy.redact, *queue.policy.redact)))
    row = audit(caller, "queue.update", heir.name, f"redacts what {queue.name} did, which is deleted")
    _queue(context.committer.call(c.UpdateQueue(heir.name, {"redact": paths}, audit=row)))


def purge(context: Context, caller: Caller, request: shapes.QueuePurge, _key: Idempotency | None) -> Read:
    """Remove what the queue holds now; needs the token that the same call without it returns."""

    def run() -> shapes.QueuePurged:
        queue = find_queue(context, caller, request.queue)
        now_ms = context.engine.read(lambda reader: reader.now_ms)
        slot = now_ms // (_TOKEN_SECONDS * 1000)
        if request.confirm is None:
            held = context.engine.read(lambda reader: reader.counts(queue))
            counts = {name: getattr(held, name) for name in ("ready", "delayed", "waiting", "leased")}
            raise ConfirmationRequired(
                f"purging {queue.name} removes {sum(counts.values())} messages",
                hint="repeat the call with confirm set to the token",
                details={"confirm": _token(queue, slot), "messages": sum(counts.values()), **counts},
            )
        if request.confirm not in (_token(queue, slot), _token(queue, slot - 1)):
            raise InvalidRequest("confirm is not the current token of this queue", hint="ask for a new one")
        removed = _purge(context, queue.name, now_ms)
        row = audit(caller, "queue.purge", queue.name, request.reason)
        row.detail = msgspec.json.encode({"purged": removed})
        context.committer.call(c.WriteAudit(row))
        return shapes.QueuePurged(purged=removed)

    return Read(run)


def _purge(context: Context, name: str, before_ms: int | None, *, deleting: bool = False) -> int:
    removed, deadline = 0, seams.monotonic() + limits.WAIT_SECONDS_MAX
    progressed_at, pause = seams.monotonic(), threading.Event()
    while True:
        answer = context.committer.call(c.Purge(name, SLICE, before_ms, deleting))
        if isinstance(answer, RedriveError):
            raise answer
        assert isinstance(answer, c.Purged)
        removed += answer.removed
        # a delete goes on by itself (a duty of the service); a purge of millions takes its time
        if not answer.more or (deleting and seams.monotonic() > deadline):
            return removed
        if answer.removed:
            progressed_at = seams.monotonic()
        elif seams.monotonic() - progressed_at > limits.WAIT_SECONDS_MAX:
            raise Overloaded(
                f"{removed} messages are removed; another node holds the rest",
                hint="repeat the request with a fresh token",
                retry_after=1,
            )
        else:
            seams.wait(pause, _HELD_SECONDS)


def _token(queue: Queue, slot: int) -> str:
    subject = f"purge\x00{queue.id}\x00{queue.created_ms}\x00{slot}"
    return hashlib.sha256(subject.encode()).hexdigest()[:16]


def _queue(result: object) -> Queue:
    if isinstance(result, RedriveError):
        raise result
    assert isinstance(result, Queue)
    return result


def _settings(request: shapes.QueueCreate | shapes.QueueUpdate) -> dict[str, object]:
    given: dict[str, object] = {}
    for name in _POLICY:
        value = getattr(request, name)
        if value is not None:
            given[name] = value
    if request.retention_seconds is not None:  # kept at least as long as asked
        given["retention_seconds"] = math.ceil(request.retention_seconds)
    for name in _UNLIMITED_BY_ZERO:
        if given.get(name) == 0:
            given[name] = None
    if request.redact is not None:
        given["redact"] = tuple(request.redact)
    if request.retry_policy is not None:
        parts = msgspec.to_builtins(request.retry_policy)
        given["retry_policy"] = {name: value for name, value in parts.items() if value is not None}
    return given


def record(queue: Queue) -> shapes.QueueRecord:
    """A queue as the contract shows it: every setting with its effective value."""
    policy = queue.policy
    retry = policy.retry_policy
    return shapes.QueueRecord(
        name=queue.title,
        type=queue.type,
        dead_letter_queue=queue.dead_letter_name,
        retry_policy=shapes.RetryPolicyRecord(
            base_seconds=plain(retry.base_seconds),
            factor=plain(retry.factor),
            max_seconds=plain(retry.max_seconds),
            jitter=retry.jitter,
        ),
        message_retention_days=plain(policy.retention_seconds / 86_400),
        redact=list(policy.redact),
        created_at=rfc3339(queue.created_ms),
        implicit=queue.implicit,
        state=queue.state,
        **{name: _plain(getattr(policy, name)) for name in _POLICY},
    )


def _plain(value: Any) -> Any:
    return plain(value) if isinstance(value, float) else value
