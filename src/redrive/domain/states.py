"""The life of a message as one table. The diagram in docs/state-machine.md is drawn from it.

A dead letter is a place, not a state of its own: the message stands in the dead-letter queue, and an open
record says why. ``DEAD`` and ``DEAD_LEASED`` name the two states there.
"""

from __future__ import annotations

from enum import StrEnum


class State(StrEnum):
    """Where a message can be."""

    NONE = "none"
    AVAILABLE = "available"
    WAITING = "waiting"
    LEASED = "leased"
    DEAD = "dead"
    DEAD_LEASED = "dead_leased"
    GONE = "gone"


class Event(StrEnum):
    """What can happen to a message."""

    PUBLISH = "publish"
    LEASE = "lease"
    ACK = "ack"
    LATE_ACK = "late_ack"
    EXTEND = "extend"
    RELEASE = "release"
    NACK = "nack"
    REJECT = "reject"
    EXPIRE = "expire"
    AGE = "age"
    REDRIVE = "redrive"
    CANCEL = "cancel"
    CORRUPT = "corrupt"
    PURGE = "purge"


S, E = State, Event

#: (from, event) → every state that it may lead to. What is not here changes nothing.
TRANSITIONS: dict[tuple[State, Event], tuple[State, ...]] = {
    (S.NONE, E.PUBLISH): (S.AVAILABLE, S.WAITING),
    (S.AVAILABLE, E.LEASE): (S.LEASED,),
    (S.WAITING, E.LEASE): (S.LEASED,),
    (S.DEAD, E.LEASE): (S.DEAD_LEASED,),
    (S.LEASED, E.ACK): (S.GONE,),
    (S.DEAD_LEASED, E.ACK): (S.GONE,),
    (S.LEASED, E.EXTEND): (S.LEASED,),
    (S.DEAD_LEASED, E.EXTEND): (S.DEAD_LEASED,),
    (S.LEASED, E.RELEASE): (S.AVAILABLE, S.WAITING, S.DEAD, S.GONE),
    (S.DEAD_LEASED, E.RELEASE): (S.DEAD, S.GONE),
    (S.LEASED, E.NACK): (S.AVAILABLE, S.WAITING, S.DEAD, S.GONE),
    (S.DEAD_LEASED, E.NACK): (S.DEAD, S.GONE),
    (S.LEASED, E.REJECT): (S.DEAD, S.GONE),
    (S.DEAD_LEASED, E.REJECT): (S.DEAD, S.GONE),
    (S.LEASED, E.EXPIRE): (S.AVAILABLE, S.WAITING, S.DEAD, S.GONE),
    (S.DEAD_LEASED, E.EXPIRE): (S.DEAD, S.GONE),
    (S.AVAILABLE, E.LATE_ACK): (S.GONE,),
    (S.WAITING, E.LATE_ACK): (S.GONE,),
    (S.DEAD, E.LATE_ACK): (S.GONE,),
    (S.AVAILABLE, E.AGE): (S.DEAD,),
    (S.WAITING, E.AGE): (S.DEAD,),
    (S.DEAD, E.AGE): (S.GONE,),
    (S.DEAD, E.REDRIVE): (S.AVAILABLE, S.WAITING),
    (S.AVAILABLE, E.CANCEL): (S.GONE,),
    (S.WAITING, E.CANCEL): (S.GONE,),
    (S.DEAD, E.CANCEL): (S.GONE,),
    (S.LEASED, E.CANCEL): (S.LEASED,),
    (S.DEAD_LEASED, E.CANCEL): (S.DEAD_LEASED,),
    (S.LEASED, E.CORRUPT): (S.DEAD,),
    (S.DEAD_LEASED, E.CORRUPT): (S.DEAD,),
    (S.AVAILABLE, E.PURGE): (S.GONE,),
    (S.WAITING, E.PURGE): (S.GONE,),
    (S.LEASED, E.PURGE): (S.GONE,),
    (S.DEAD, E.PURGE): (S.GONE,),
    (S.DEAD_LEASED, E.PURGE): (S.GONE,),
}


class IllegalTransition(AssertionError):
    """A bug: a move that the table does not hold was about to be made. Nothing was changed."""


def check(source: State, event: Event, target: State) -> State:
    """``target``, if the table lets ``event`` lead there from ``source``; otherwise a bug is reported."""
    if target not in TRANSITIONS.get((source, event), ()):
        raise IllegalTransition(f"{source} --{event}--> {target} is not in the transition table")
    return target
