"""Leasing: what is due goes to whoever asks, within the queue's limits; a wrong checksum is never served."""

from __future__ import annotations

from collections.abc import Sequence

from redrive.domain import limits
from redrive.domain.decide import Case, decide
from redrive.domain.errors import QueueNotFound, RedriveError
from redrive.domain.facts import Ended
from redrive.domain.policy import Allowance, QueuePolicy
from redrive.domain.states import Event, State
from redrive.storage.commands import Command, Lease, Leased
from redrive.storage.execute.moves import carry_out
from redrive.storage.execute.workspace import Workspace
from redrive.storage.port import LeaseTerms
from redrive.storage.values import Claimed, Queue, is_sound

_IN_FLIGHT_RETRY_MS = 1_000  # a queue at its limit is looked at again then, if no settle came before


def lease(work: Workspace, commands: Sequence[Command]) -> dict[int, object]:
    """Results by position in ``commands``; other commands are left out."""
    results: dict[int, object] = {}
    for position, command in enumerate(commands):
        if isinstance(command, Lease):
            try:
                results[position] = _lease(work, command)
            except RedriveError as refusal:
                results[position] = refusal
    return results


def _lease(work: Workspace, command: Lease) -> Leased:
    queue = work.by_name.get(command.queue)
    if queue is None:
        if not command.auto_create:
            raise QueueNotFound(f"queue {command.queue} is not found")
        queue = work.create_queue(command.queue, fifo=None, holds_dead=False, policy=QueuePolicy())
    if command.consumer_id is not None:
        work.stats[queue.id].see({command.consumer_id: command.concurrency})
    if command.company:
        work.stats[queue.id].see(command.company)
    visibility_ms = command.visibility_ms or int(queue.policy.visibility_timeout_default * 1000)
    answer = Leased([], work.now_ms, visibility_ms)
    if queue.state != "active":
        return answer
    room, retry_ms = _room(work, queue, command.max_messages)
    if room <= 0:
        answer.next_due_ms = work.now_ms + retry_ms
        return answer
    visibility_ms = min(visibility_ms, int(queue.policy.max_lease_seconds * 1000))
    terms = LeaseTerms(
        work.now_ms,
        work.now_ms + visibility_ms,
        command.consumer_id,
        iter(work.source.receipt_handles(room)).__next__,
        limits.CONSUME_BYTES_MAX,
    )
    answer.visibility_ms = visibility_ms
    answer.messages = _sound(work, _claim(work, queue, room, terms))
    redriven = [row.message_id for row in answer.messages if row.redriven and not row.dead]
    if redriven:
        plans = work.tx.plan_ids(redriven)
        for row in answer.messages:
            row.plan_id = plans.get(row.message_id)
    if answer.messages:
        _spend(work, queue, len(answer.messages))
    else:
        answer.next_due_ms = work.tx.next_due(queue.id, queue.levels, queue.grouped)
    return answer


def _claim(work: Workspace, queue: Queue, room: int, terms: LeaseTerms) -> list[Claimed]:
    if queue.grouped:
        rows = work.tx.claim_groups(queue.id, room, terms)
        work.heads_taken(rows)
    else:
        rows = work.tx.claim(queue.id, queue.levels, room, terms)
    if work.observe:
        for row in rows:
            if row.dead:
                work.observe(State.DEAD, Event.LEASE, State.DEAD_LEASED)
            else:
                rest = State.AVAILABLE if row.group_id is None else State.WAITING
                work.observe(rest, Event.LEASE, State.LEASED)
    return rows


def _sound(work: Workspace, rows: list[Claimed]) -> list[Claimed]:
    """The rows whose checksum is right; the others go to the dead letters."""
    sound = [r for r in rows if is_sound(r.message_id, r.job_key, r.headers, r.body, r.body_hash)]
    if len(sound) == len(rows):
        return rows
    served = {row.message_id for row in sound}
    corrupt = [row.message_id for row in rows if row.message_id not in served]
    for message_id in corrupt:
        work.facts.pop(message_id, None)
    work.load_facts(corrupt)
    for message_id in corrupt:
        facts = work.facts.get(message_id)
        if facts is not None:
            facts.ended = Ended.NEVER
            policy = work.queue_of(facts).policy
            decision = decide(Case(Event.CORRUPT, facts, policy, work.now_ms))
            carry_out(work, Event.CORRUPT, facts, decision)
    work.flush()
    return sound


def _room(work: Workspace, queue: Queue, wanted: int) -> tuple[int, int]:
    """How many messages the queue's own limits let go now, and when to look again if none."""
    policy, room, retry_ms = queue.policy, wanted, _IN_FLIGHT_RETRY_MS
    if policy.max_in_flight is not None:
        room = min(room, policy.max_in_flight - work.tx.leased_count(queue.id, policy.max_in_flight))
    if policy.max_per_second is not None:
        held = Allowance(queue.tokens, queue.tokens_at_ms).refill(work.now_ms, policy.max_per_second)
        if held.tokens < 1:
            retry_ms = held.wait_ms(policy.max_per_second)
        room = min(room, int(held.tokens))
    return room, retry_ms


def _spend(work: Workspace, queue: Queue, count: int) -> None:
    rate = queue.policy.max_per_second
    if rate is not None:
        held = Allowance(queue.tokens, queue.tokens_at_ms).refill(work.now_ms, rate)
        queue.tokens, queue.tokens_at_ms = held.tokens - count, work.now_ms
        work.tx.update_queue(queue)
