"""The state of a message as the contract shows it, by one table: for a row in hand and for a page's filter.

It is about what a consumer would get, so the head of a free FIFO group is ``ready`` or ``delayed`` like any
other message, and only what stands behind something is ``waiting``.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from redrive.domain.facts import Facts, Slot

Shown = Literal["delayed", "ready", "leased", "waiting", "dead"]
_REST = (Slot.READY, Slot.IN_GROUP)


class Standing(msgspec.Struct, frozen=True):
    """What must hold of a stored message; None leaves it open.

    ``at_head``: it has no group, or is the first at rest in a group that no lease and no dead letter holds.
    ``due``: by now, or later.
    """

    slots: tuple[Slot, ...] | None = None
    dead: bool | None = None
    at_head: bool | None = None
    due: bool | None = None

    def holds(self, facts: Facts, now_ms: int, *, at_head: bool) -> bool:
        """Whether a message is in this state."""
        return (
            (self.slots is None or facts.slot in self.slots)
            and self.dead in (None, facts.dead)
            and self.at_head in (None, at_head)
            and self.due in (None, facts.due_ms <= now_ms)
        )

    def due_bounds(self, now_ms: int, ever: int) -> tuple[int, int]:
        """The same of the due time: after the first, and not after the second; ``ever`` is no bound."""
        return (now_ms if self.due is False else -1), (now_ms if self.due else ever)


class NoStanding(ValueError):
    """A message is in none of the states: its row is damaged."""


ANY = Standing()
#: Every message is in exactly one of them.
STANDINGS: dict[Shown, Standing] = {
    "leased": Standing((Slot.LEASED,)),
    "dead": Standing((*_REST, Slot.HELD), dead=True),
    "waiting": Standing(_REST, dead=False, at_head=False),
    "delayed": Standing(_REST, dead=False, at_head=True, due=False),
    "ready": Standing(_REST, dead=False, at_head=True, due=True),
}


def shown(facts: Facts, now_ms: int, *, at_head: bool) -> Shown:
    """The contract's state of a message. Raises NoStanding when it has none, as only damage makes it."""
    for name, each in STANDINGS.items():
        if each.holds(facts, now_ms, at_head=at_head):
            return name
    raise NoStanding(f"message {facts.message_id} is in no state that there is (slot {facts.slot})")
