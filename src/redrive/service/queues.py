"""Queues: made, changed, listed, paused."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import msgspec

from redrive.contract import shapes
from redrive.contract.idempotency import Idempotency
from redrive.contract.instants import plain, rfc3339
from redrive.domain import limits
from redrive.domain.errors import Conflict, RedriveError
from redrive.service.access import Caller
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
        return record(stored(context.committer.call(command)))

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
    return Commit(command, lambda result: record(stored(result)))


def stored(result: object) -> Queue:
    """The queue that the store answered with; a refusal is raised."""
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
