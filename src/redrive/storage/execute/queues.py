"""Queues made, changed, paused, purged and deleted; each with its audit row in the same transaction."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

import msgspec

from redrive.domain import limits
from redrive.domain.decide import Case, decide
from redrive.domain.errors import Conflict, InvalidRequest, QueueExists, QueueNotFound
from redrive.domain.policy import QueuePolicy
from redrive.domain.states import Event
from redrive.storage.commands import Created, CreateQueue, Purge, Purged, SetQueueState, UpdateQueue
from redrive.storage.execute.idempotency import Answers
from redrive.storage.execute.moves import carry_out
from redrive.storage.execute.workspace import Workspace
from redrive.storage.values import Queue

_POLICY_FIELDS = frozenset(f.name for f in fields(QueuePolicy))


def create(work: Workspace, command: CreateQueue) -> Created:
    """Make a queue, or find it as it is: equal settings succeed, others are ``QueueExists``."""
    answers = Answers(work)
    if command.idempotent is not None:
        answers.load([(0, command.idempotent)])
        stored = answers.find(0, command.idempotent)
        if stored is not None:
            known = work.tx.queues_by_id([int(stored)]).get(int(stored))
            if known is not None and known.state != "deleting":
                return Created(known, replayed=True)
            answers.forget(0, command.idempotent)
    target = _dead_letter_queue(work, command.name, command.dead_letter_queue)
    queue = work.by_name.get(command.name)
    if queue is None:
        queue = _insert(work, command)
    elif queue.implicit:
        queue = _adopt(work, command, queue)
    else:
        _must_equal(command, queue)
    work.set_kind(queue, fifo=command.kind == "fifo")
    _will_hold_dead(work, target)
    if command.idempotent is not None:
        answers.add(0, command.idempotent, str(queue.id).encode())
        answers.flush()
    work.audit(command.audit)
    return Created(queue)


def _insert(work: Workspace, command: CreateQueue) -> Queue:
    queue = Queue(
        id=0,
        name=command.name,
        kind=command.kind or "standard",
        state="active",
        policy=merged(QueuePolicy(), command.settings),
        dead_letter_queue=command.dead_letter_queue,
        implicit=False,
        holds_dead=False,
        created_ms=work.now_ms,
    )
    return work.keep_queue(work.tx.insert_queue(queue))


def _adopt(work: Workspace, command: CreateQueue, queue: Queue) -> Queue:
    """Create over an implicit queue: the settings apply, what is in it stays."""
    if command.kind is not None and queue.kind not in (command.kind, "unset"):
        raise QueueExists(
            f"queue {queue.name} exists (made implicitly) with type {queue.kind}, asked for {command.kind}",
            details={"differences": {"type": {"existing": queue.kind, "requested": command.kind}}},
        )
    queue.policy = merged(queue.policy, command.settings)
    queue.dead_letter_queue = command.dead_letter_queue or queue.dead_letter_queue
    queue.implicit = False
    work.tx.update_queue(queue)
    if queue.policy.fifo_on_dead == "continue":
        _unblock(work, queue)
    return queue


def _must_equal(command: CreateQueue, queue: Queue) -> None:
    differences: dict[str, Any] = {}
    if command.kind is not None and queue.kind not in (command.kind, "unset"):
        differences["type"] = {"existing": queue.kind, "requested": command.kind}
    if command.dead_letter_queue is not None and command.dead_letter_queue != queue.dead_letter_name:
        differences["dead_letter_queue"] = {
            "existing": queue.dead_letter_name,
            "requested": command.dead_letter_queue,
        }
    wanted = merged(QueuePolicy(), command.settings)
    for name in command.settings:
        if getattr(wanted, name) != getattr(queue.policy, name):
            differences[name] = {
                "existing": msgspec.to_builtins(getattr(queue.policy, name)),
                "requested": msgspec.to_builtins(getattr(wanted, name)),
            }
    if differences:
        raise QueueExists(
            f"queue {queue.name} exists with other settings: {', '.join(sorted(differences))}",
            hint="use queue/update to change settings",
            details={"differences": differences},
        )


def _dead_letter_queue(work: Workspace, name: str, target: str | None) -> Queue | None:
    if target is None:
        return None
    if target == name:
        raise InvalidRequest(f"dead_letter_queue must be another queue, got {target} itself")
    queue = work.by_name.get(target)
    if queue is None:
        raise QueueNotFound(f"dead_letter_queue {target} is not found", hint="create it first")
    return queue


def _will_hold_dead(work: Workspace, target: Queue | None) -> None:
    if target is not None and not target.holds_dead:
        target.holds_dead = True
        work.tx.update_queue(target)


def merged(policy: QueuePolicy, settings: dict[str, object]) -> QueuePolicy:
    """``policy`` with the given fields; a partial ``retry_policy`` keeps the other parts."""
    given: dict[str, Any] = {name: value for name, value in settings.items() if name in _POLICY_FIELDS}
    retry = given.get("retry_policy")
    if isinstance(retry, dict):
        given["retry_policy"] = replace(policy.retry_policy, **retry)
    return replace(policy, **given)


def update(work: Workspace, command: UpdateQueue) -> Queue:
    """Change settings; they hold at once for everything but the retention of stored messages."""
    queue = _existing(work, command.name)
    if command.dead_letter_queue is not None:
        _will_hold_dead(work, _dead_letter_queue(work, command.name, command.dead_letter_queue))
        queue.dead_letter_queue = command.dead_letter_queue
    policy = merged(queue.policy, command.settings)
    if queue.policy.enable_priority and not policy.enable_priority and work.tx.holds_any(queue.id, None):
        raise Conflict(
            f"enable_priority of queue {queue.name} can be turned off only while it is empty",
            hint="messages at other levels would never be delivered; drain or purge the queue first",
        )
    queue.policy = policy
    queue.implicit = False
    work.tx.update_queue(queue)
    if queue.policy.fifo_on_dead == "continue":
        _unblock(work, queue)
    work.audit(command.audit)
    work.wake(queue.id, work.now_ms)
    return queue


def _unblock(work: Workspace, queue: Queue) -> None:
    """No dead letter holds a group of this queue any longer."""
    work.unblock(queue.name)
    while groups := work.tx.blocked_groups(queue.id, limits.BATCH_ENTRIES_MAX):
        for group in work.load_groups([(group.queue_id, group.key) for group in groups]).values():
            group.blocked = 0
            work.mark_group(group)
        work.flush()


def set_state(work: Workspace, command: SetQueueState) -> Queue:
    """Pause or resume delivery, or begin to delete: the name is free at once, the messages go in slices."""
    queue = _existing(work, command.name)
    if command.state == "deleting":
        users = [name for name in work.tx.queues_naming(queue.name) if "/" not in name]  # not those going too
        if users:
            raise Conflict(
                f"queue {queue.name} is the dead-letter queue of {', '.join(sorted(users)[:5])}",
                hint="give those another dead_letter_queue, or delete them first",
            )
        work.unblock(queue.name)
        del work.by_name[queue.name]
        queue.name = f"deleting/{queue.id}/{queue.name}"
        work.by_name[queue.name] = queue
    queue.state = command.state
    work.tx.update_queue(queue)
    work.audit(command.audit)
    work.wake(queue.id, work.now_ms)
    return queue


def purge(work: Workspace, command: Purge) -> Purged:
    """Remove one slice of a queue's messages, with tombstones; a deleted queue's row goes with the last."""
    queue = work.by_name.get(command.name)
    if queue is None:
        return Purged(0, more=False)
    rows = work.take_facts(work.tx.in_queue(queue.id, command.before_ms, command.limit))
    for facts in rows:
        decision = decide(Case(Event.PURGE, facts, queue.policy, work.now_ms))
        carry_out(work, Event.PURGE, facts, decision)
    work.flush()
    more = len(rows) == command.limit or work.tx.holds_any(queue.id, command.before_ms)
    if command.deleting and not more:
        work.tx.remove_queue(queue.id)
    done = {"outcome": "begun" if more else "done", "detail": msgspec.json.encode({"purged": len(rows)})}
    work.audit(command.audit, **done)
    return Purged(len(rows), more)


def _existing(work: Workspace, name: str) -> Queue:
    queue = work.by_name.get(name)
    if queue is None or queue.state == "deleting":
        raise QueueNotFound(f"queue {name} is not found")
    return queue
