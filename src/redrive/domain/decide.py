"""The one place that knows what an event does to a message.

``decide`` takes an event, the facts of one message and its queue's policy, and returns a
:class:`~redrive.domain.facts.Decision`, or raises the refusal. It writes nothing: engines apply decisions.
"""

from __future__ import annotations

import msgspec

from redrive.domain import limits
from redrive.domain.errors import Conflict, InvalidRequest, StaleReceipt
from redrive.domain.facts import AttemptEnd, Change, Decision, Ended, Facts, Reason, Slot
from redrive.domain.fingerprint import ErrorInfo, fingerprint
from redrive.domain.policy import FingerprintPolicy, QueuePolicy
from redrive.domain.states import Event, State, check

#: How a settle that came again is recognised: the verb, and the end that its first coming left behind.
_REPEATS = {
    Event.NACK: (Ended.NACKED,),
    Event.REJECT: (Ended.REJECTED,),
    Event.RELEASE: (Ended.RELEASED,),
}
_NOT_DELIVERED = "message {} has not been delivered; there is no lease to {}"


def admit(event: Event, facts: Facts, handle: str | None, policy: QueuePolicy) -> Event:
    """The event that a settle with this receipt handle amounts to, or a refusal.

    Returns ``event`` for the current lease, ``LATE_ACK`` for an ack after an expiry, and ``event`` also for
    a repeated settle (``repeats`` tells). Without a handle the settle applies to the current lease, else to
    the last delivery.
    """
    if handle is None:
        if policy.require_receipt_handle:
            raise InvalidRequest("receipt_handle is required by this queue (require_receipt_handle)")
    elif handle != facts.handle:
        raise StaleReceipt(
            f"receipt_handle is not that of delivery {facts.delivery} of message {facts.message_id}",
            hint="the lease ended and the message was delivered again; stop working on it",
        )
    if facts.slot == Slot.LEASED:
        return event
    if facts.delivery == 0:
        raise StaleReceipt(_NOT_DELIVERED.format(facts.message_id, event))
    if facts.ended == Ended.LOST and event is Event.ACK:
        return Event.LATE_ACK
    if _same_end(event, facts):
        return event
    raise StaleReceipt(
        f"delivery {facts.delivery} of message {facts.message_id} has already ended "
        f"({Ended(facts.ended).name.lower()})",
        hint="after an expiry only ack works late; after a nack or release nothing else does",
    )


def repeats(event: Event, facts: Facts) -> bool:
    """Whether an admitted settle is the repetition of one that already ended this delivery."""
    return facts.slot != Slot.LEASED and event in _REPEATS


def _same_end(event: Event, facts: Facts) -> bool:
    """Whether this verb is the one that ended the last delivery; a release past its limit ended as a nack."""
    if event is Event.RELEASE and facts.releases >= limits.RELEASES_MAX and facts.ended == Ended.NACKED:
        return True
    return facts.ended in _REPEATS.get(event, ())


class Case(msgspec.Struct, frozen=True, gc=False):
    """One event on one message: everything a rule may look at.

    ``draw`` is uniform in [0, 1); ``delay_ms`` overrides the backoff of a nack; ``visibility_ms`` is
    extend's; ``reason`` is a reject's; ``grouped`` tells whether a redrive leads back into a FIFO group;
    ``cause_policy`` is what the queue does with failures of this fingerprint (see :func:`cause`).
    """

    event: Event
    facts: Facts
    policy: QueuePolicy
    now_ms: int
    draw: float = 0.0
    delay_ms: int | None = None
    visibility_ms: int = 0
    reason: Reason | None = None
    grouped: bool = False
    cause_policy: FingerprintPolicy = "retry"


def cause(event: Event, error: ErrorInfo | None) -> str | None:
    """The fingerprint by which a queue's policies know this failure; None: they have no say in the event.

    A failure without an error has the fingerprint that it would die of: a lost lease, or a spent budget.
    """
    silent = _SILENT.get(event)
    if silent is None:
        return None
    return error.fingerprint if error is not None else fingerprint(silent, "")


def decide(case: Case) -> Decision:
    """What the event does to the message; ``Conflict`` where its state forbids the event."""
    decision = _RULES[case.event](case)
    check(case.facts.state, case.event, decision.to)
    return decision


def _gone(close: str, tombstone: str | None = None, end: AttemptEnd | None = None) -> Decision:
    return Decision(State.GONE, Change.REMOVE, close=close, tombstone=tombstone, attempt_end=end)


def _rest(facts: Facts) -> State:
    if facts.dead:
        return State.DEAD
    return State.AVAILABLE if facts.group_id is None else State.WAITING


def _back(case: Case, due_ms: int, ended: Ended, end: AttemptEnd | None) -> Decision:
    facts = case.facts
    return Decision(
        _rest(facts),
        Change.RESCHEDULE,
        due_ms=due_ms,
        attempt=facts.attempt,
        releases=facts.releases,
        ended=ended,
        attempt_end=end,
    )


def _bury(case: Case, reason: Reason, ended: int, end: AttemptEnd | None) -> Decision:
    facts = case.facts
    return Decision(
        State.DEAD,
        Change.TRANSFER,
        due_ms=case.now_ms,
        attempt=facts.attempt,
        releases=facts.releases,
        ended=ended,
        bury=reason,
        attempt_end=end,
    )


def _ack(case: Case) -> Decision:
    return _gone(close="resolved_late" if case.event is Event.LATE_ACK else "consumed")


def _fail(case: Case) -> Decision:
    """nack, reject and expiry: one budget for every way a delivery can end."""
    facts, policy, now_ms = case.facts, case.policy, case.now_ms
    ended, end = _ENDS[case.event]
    if facts.cancelled:
        return _gone("cancelled", "cancelled", end)
    if facts.dead:  # no budget there: it returns to its place
        return _back(case, now_ms + (case.delay_ms or 0), ended, end)
    if case.event is Event.REJECT:
        return _bury(case, case.reason or "rejected", ended, end)
    at_once = case.cause_policy != "retry"  # as if it had been permanent
    if at_once or policy.budget_spent(facts.attempt):
        reason: Reason = "rejected" if at_once else "max_attempts"
        return _bury(case, "lease_expired" if case.event is Event.EXPIRE else reason, ended, end)
    wait = case.delay_ms
    if wait is None:
        wait = policy.retry_policy.delay_ms(facts.attempt, case.draw)
    if case.event is Event.EXPIRE:  # time under the lease counts as backoff
        return _back(case, max(now_ms, facts.leased_ms + wait), ended, end)
    return _back(case, now_ms + wait, ended, end)


def _release(case: Case) -> Decision:
    facts = case.facts
    if facts.releases >= limits.RELEASES_MAX:  # a hot loop of releases is a failing job in disguise
        return _fail(msgspec.structs.replace(case, event=Event.NACK, delay_ms=0))
    if facts.cancelled:
        return _gone("cancelled", "cancelled", "released")
    return Decision(
        _rest(facts),
        Change.RESCHEDULE,
        due_ms=case.now_ms,
        attempt=max(0, facts.attempt - 1),
        releases=facts.releases + 1,
        ended=Ended.RELEASED,
    )


def _extend(case: Case) -> Decision:
    facts, cap_seconds = case.facts, case.policy.max_lease_seconds
    if facts.cancelled:
        raise Conflict(
            f"message {facts.message_id} was cancelled; its lease cannot be extended",
            hint="finish and ack, or nack it away",
        )
    until_ms = min(case.now_ms + case.visibility_ms, facts.leased_ms + int(cap_seconds * 1000))
    if until_ms <= case.now_ms:
        raise Conflict(
            f"message {facts.message_id} has been leased for its max_lease_seconds of {cap_seconds:g}",
            hint="raise max_lease_seconds of the queue, or split the job",
        )
    return Decision(facts.state, Change.TOUCH, lease_until_ms=until_ms)


def _age(case: Case) -> Decision:
    if case.facts.dead:
        return _gone("expired", "expired")
    return _bury(case, "expired", case.facts.ended, None)


def _redrive(case: Case) -> Decision:
    to = State.WAITING if case.grouped else State.AVAILABLE
    return Decision(to, Change.TRANSFER, due_ms=case.now_ms, ended=case.facts.ended, close="redriven")


def _cancel(case: Case) -> Decision:
    facts = case.facts
    if facts.slot == Slot.LEASED:
        return Decision(facts.state, Change.TOUCH, lease_until_ms=facts.lease_until_ms)
    return _gone("cancelled", "cancelled")


def _corrupt(case: Case) -> Decision:
    return _bury(case, "checksum", case.facts.ended, None)


def _purge(_case: Case) -> Decision:
    return _gone("purged", "purged")


_SILENT: dict[Event, Reason] = {Event.NACK: "max_attempts", Event.EXPIRE: "lease_expired"}
_ENDS: dict[Event, tuple[Ended, AttemptEnd]] = {
    Event.NACK: (Ended.NACKED, "nacked"),
    Event.REJECT: (Ended.REJECTED, "rejected"),
    Event.EXPIRE: (Ended.LOST, "expired"),
}
_RULES = {
    Event.ACK: _ack,
    Event.LATE_ACK: _ack,
    Event.EXTEND: _extend,
    Event.RELEASE: _release,
    Event.NACK: _fail,
    Event.REJECT: _fail,
    Event.EXPIRE: _fail,
    Event.AGE: _age,
    Event.REDRIVE: _redrive,
    Event.CANCEL: _cancel,
    Event.CORRUPT: _corrupt,
    Event.PURGE: _purge,
}
