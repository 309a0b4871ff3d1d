"""Acks, nacks, rejects, extends, releases and cancels, in the order in which they came."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence

import msgspec

from redrive.domain.decide import Case, admit, decide, repeats
from redrive.domain.errors import MessageNotFound, RedriveError
from redrive.domain.facts import Facts, Slot
from redrive.domain.fingerprint import ErrorInfo
from redrive.domain.standing import shown
from redrive.domain.states import Event, State
from redrive.storage.commands import (
    Ack,
    Age,
    Cancel,
    Command,
    CreateQueue,
    Expire,
    Extend,
    Nack,
    Purge,
    Reject,
    Release,
    SetFingerprintPolicy,
    SetQueueState,
    Settle,
    Settled,
    UpdateQueue,
    Visible,
)
from redrive.storage.execute.fingerprints import policy_of_failure
from redrive.storage.execute.moves import carry_out
from redrive.storage.execute.publish import published_groups
from redrive.storage.execute.workspace import Workspace

_BEFORE_PUBLISH = Expire | Age | Purge | CreateQueue | UpdateQueue | SetQueueState | SetFingerprintPolicy


class Deferred(msgspec.Struct, frozen=True):
    """The result of a command that must wait for another transaction: it belongs to the next batch.

    ``acknowledged``: the items of an ack that this batch has already removed.
    """

    acknowledged: frozenset[str] = frozenset()


def settle(work: Workspace, commands: Sequence[Command]) -> dict[int, object]:
    """Results by position in ``commands``; other commands are left out.

    The first phase of a batch: the groups that it publishes into are locked here too, with those of the
    messages, in one order over all. Acks that nothing else in the batch touches go in one statement; what it
    does not match is read under lock and decided one by one, like every other settle.
    """
    into = published_groups(work, commands)
    quick = _ack_quickly(work)
    work.load_facts(dict.fromkeys(each for each in _wanted(commands) if each not in quick), into)
    if any(isinstance(command, _BEFORE_PUBLISH) for command in commands):
        # before those look at groups or make queues: from then on nobody is waited for
        work.load_groups(into)
    results: dict[int, object] = {}
    for position, command in enumerate(commands):
        if isinstance(command, Ack):
            results[position] = _ack_items(work, command, quick)
        elif isinstance(command, Settle | Cancel):
            try:
                results[position] = _one(work, command)
            except RedriveError as refusal:
                results[position] = refusal
    work.flush()
    for position, command in enumerate(commands):
        _find_place(work, command, results.get(position))
    return results


def _find_place(work: Workspace, command: Command, answer: object) -> None:
    """Correct the state of what went back into a group: only now it is known who is first there."""
    if not isinstance(command, Settle) or not isinstance(answer, Settled):
        return
    facts = work.facts.get(command.message_id)
    if facts is not None and facts.slot == Slot.IN_GROUP and answer.state != "leased":
        answer.state = shown(facts, work.now_ms, at_head=work.at_head(facts))


def _wanted(commands: Sequence[Command]) -> list[str]:
    """The messages that the batch settles, as often as it does."""
    wanted: list[str] = []
    for command in commands:
        if isinstance(command, Ack):
            wanted += [message_id for message_id, _ in command.items]
        elif isinstance(command, Settle | Cancel):
            wanted.append(command.message_id)
    return wanted


def quick_acks(commands: Sequence[Command]) -> list[tuple[str, str]]:
    """The acks of a batch that nothing else in it touches, of callers who may see every queue."""
    acks = [c for c in commands if isinstance(c, Ack) and c.visible is None]
    if not acks:
        return []
    wanted = _wanted(commands)
    again: Collection[str] = ()
    if len(set(wanted)) < len(wanted):
        again = {message_id for message_id, times in Counter(wanted).items() if times > 1}
    return [
        (message_id, handle)
        for command in acks
        for message_id, handle in command.items
        if handle is not None and message_id not in again
    ]


def _ack_quickly(work: Workspace) -> set[str]:
    if not work.quick_acks:
        return set()
    acked = work.tx.ack(work.quick_acks)
    same = Counter((row.queue_id, row.attempt, row.leased_ms) for row in acked)
    for (queue_id, attempt, leased_ms), count in same.items():
        work.count_ack(queue_id, attempt, leased_ms, count)
    if work.observe:
        for _ in acked:
            work.observe(State.LEASED, Event.ACK, State.GONE)
    return {row.message_id for row in acked}


def _ack_items(work: Workspace, command: Ack, quick: set[str]) -> object:
    ids = [message_id for message_id, _ in command.items]
    if quick.issuperset(ids):
        return [True] * len(ids)
    done = command.acknowledged | quick.intersection(ids)
    if any(message_id in work.busy for message_id, _ in command.items):
        return Deferred(done)
    answers: list[bool | RedriveError] = []
    for message_id, handle in command.items:
        if message_id in done:
            answers.append(True)
            continue
        try:
            answers.append(_ack(work, message_id, handle, command.visible))
        except RedriveError as refusal:
            answers.append(refusal)
    return answers


def _ack(work: Workspace, message_id: str, handle: str | None, visible: Visible | None) -> bool:
    facts = work.facts.get(message_id)
    if facts is None or not _may_see(work, facts, visible):
        return False
    if facts.delivery == 0:
        return False
    policy = work.queue_of(facts).policy
    event = admit(Event.ACK, facts, handle, policy)
    if handle is None:
        work.stats[facts.queue_id].unfenced += 1
    carry_out(work, event, facts, decide(Case(event, facts, policy, work.now_ms)))
    return True


def _one(work: Workspace, command: Settle | Cancel) -> object:
    if command.message_id in work.busy:
        return Deferred()
    facts = work.facts.get(command.message_id)
    if facts is None or not _may_see(work, facts, command.visible):
        raise MessageNotFound(f"message {command.message_id} is not found: it is gone or never existed")
    if isinstance(command, Cancel):
        return _cancel(work, command, facts)
    event, case_fields, error = _event(command)
    policy = work.queue_of(facts).policy
    event = admit(event, facts, command.handle, policy)
    if command.handle is None:
        work.stats[facts.queue_id].unfenced += 1
    if not repeats(event, facts):
        says = policy_of_failure(work, event, facts, error)
        case = Case(
            event,
            facts,
            policy,
            work.now_ms,
            work.source.draw(),
            cause_policy=says,
            **case_fields,  # type: ignore[arg-type]
        )
        carry_out(work, event, facts, decide(case), error)
    return _answer(work, facts)


def _event(command: Settle) -> tuple[Event, dict[str, object], ErrorInfo | None]:
    if isinstance(command, Nack):
        return Event.NACK, {"delay_ms": command.delay_ms}, command.error
    if isinstance(command, Reject):
        reason = "undecodable" if command.undecodable else "rejected"
        return Event.REJECT, {"reason": reason}, command.error
    if isinstance(command, Extend):
        if command.visibility_ms == 0:  # given back at once, the attempt stays spent
            return Event.NACK, {"delay_ms": 0}, None
        return Event.EXTEND, {"visibility_ms": command.visibility_ms}, None
    assert isinstance(command, Release)
    return Event.RELEASE, {}, None


def _cancel(work: Workspace, command: Cancel, facts: Facts) -> bool:
    decision = decide(Case(Event.CANCEL, facts, work.queue_of(facts).policy, work.now_ms))
    carry_out(work, Event.CANCEL, facts, decision)
    work.audit(command.audit)
    return work.facts.get(command.message_id) is None


def _may_see(work: Workspace, facts: Facts, visible: Visible | None) -> bool:
    if visible is None or visible(work.queue_of(facts).title):
        return True
    record = work.open_records.get(facts.message_id) if facts.dead else None
    return record is not None and record.origin is not None and visible(record.origin)


def _answer(work: Workspace, facts: Facts) -> Settled:
    gone = work.facts.get(facts.message_id) is None
    left = 0 if gone or facts.dead else work.queue_of(facts).policy.attempts_left(facts.attempt)
    until = facts.lease_until_ms if facts.slot == Slot.LEASED else 0
    state = "gone" if gone else shown(facts, work.now_ms, at_head=True)
    return Settled(state, facts.due_ms, left, work.now_ms, until)
