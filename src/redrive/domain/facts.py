"""What is known of one message, and what a decision about it changes."""

from __future__ import annotations

from enum import IntEnum
from typing import Literal

import msgspec

from redrive.domain.states import State

Previous = Literal["lost", "nack", "released"]
Reason = Literal["max_attempts", "rejected", "lease_expired", "undecodable", "expired", "checksum"]
Obstacle = Literal["moved_elsewhere", "in_use", "gone", "skipped"]  # why a dead letter was not redriven
AttemptEnd = Literal["acked", "nacked", "rejected", "expired", "released"]


class Slot(IntEnum):
    """How a message is stored: which index holds it."""

    READY = 0
    LEASED = 1
    IN_GROUP = 2
    HELD = 3  # in the dead-letter queue with a wrong checksum: kept as evidence, never served


class Ended(IntEnum):
    """How the last delivery ended."""

    NEVER = 0
    LOST = 1
    NACKED = 2
    RELEASED = 3
    REJECTED = 4


PREVIOUS: dict[int, Previous | None] = {
    Ended.NEVER: None,
    Ended.LOST: "lost",
    Ended.NACKED: "nack",
    Ended.RELEASED: "released",
    Ended.REJECTED: "nack",
}


class Facts(msgspec.Struct, gc=False):
    """One stored message without its body. Times are the engine's milliseconds since the epoch.

    ``id`` is the engine's own number, ``handle`` the receipt handle of the last delivery, ``ended`` how that
    delivery ended (meaningless while leased), ``dead`` whether an open dead-letter record holds it,
    ``group_id``/``position`` its place in a FIFO group, ``cancelled`` a cancel that waits for the lease,
    ``first_failed_ms`` the first failure of this budget (0: none), ``redriven`` how often it was redriven.
    """

    id: int
    message_id: str
    queue_id: int
    slot: int
    priority: int
    due_ms: int
    expires_ms: int
    attempt: int
    releases: int
    delivery: int
    handle: str | None
    leased_ms: int
    lease_until_ms: int
    ended: int
    cancelled: bool
    dead: bool
    group_id: int | None
    position: int
    job_key: str
    enqueued_ms: int
    consumer_id: str | None
    first_failed_ms: int
    redriven: int
    body_hash: bytes

    @property
    def state(self) -> State:
        """The state of the transition table."""
        if self.dead:
            return State.DEAD_LEASED if self.slot == Slot.LEASED else State.DEAD
        if self.slot == Slot.LEASED:
            return State.LEASED
        return State.AVAILABLE if self.slot == Slot.READY else State.WAITING

    @property
    def rest_slot(self) -> Slot:
        """The slot of this message when nobody holds it."""
        return Slot.READY if self.group_id is None else Slot.IN_GROUP


class Change(IntEnum):
    """What a decision does to the stored row; of two in one batch the greater one is written."""

    NOTHING = 0
    TOUCH = 1  # lease end or cancel mark
    RESCHEDULE = 2  # back to rest in its queue
    TRANSFER = 3  # to another queue: a dead letter, or its redrive
    REMOVE = 4


class Decision(msgspec.Struct, frozen=True, gc=False):
    """What an event does to a message: the new values, and the records that go with them.

    ``to`` is the state of the table, ``change`` the kind of write. ``bury`` names the dead-letter reason of a
    transfer to the dead-letter queue; ``close`` how an open dead-letter record is closed; ``tombstone``
    whether a removed message leaves one; ``attempt_end`` the row for the attempt history, if any.
    ``repeated``: the same settle came again, nothing is written.
    """

    to: State
    change: Change
    due_ms: int = 0
    lease_until_ms: int = 0
    attempt: int = 0
    releases: int = 0
    ended: int = Ended.NEVER
    bury: Reason | None = None
    close: str | None = None
    tombstone: str | None = None
    attempt_end: AttemptEnd | None = None
    repeated: bool = False
