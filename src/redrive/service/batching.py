"""Which waiting commands make the next batch: settles first, then the queues in turn, by cost.

Deficit round robin: each queue's lane gains a quantum a turn and spends it by the cost of its commands (rows
plus bytes / 4 KiB), so that one busy queue cannot starve another. A command is never split.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from typing import Final

from redrive.service.ticket import Ticket
from redrive.storage import commands as c

BATCH_COST_MAX: Final = 2_000.0
# Rows of one slice of what the service does beside the callers (expiry, purge, …). Who publishes meanwhile
# shares a batch with one slice and waits for another: 500 rows take 6 to 16 ms on SQLite, 50 take 1 to 3 ms.
SLICE: Final = 50
QUANTUM: Final = 250.0
PENDING_COST_MAX: Final = 40_000.0  # beyond it a command is refused: about a second of work


class Lanes:
    """Everything that waits for a batch. Not thread-safe: the committer holds its lock."""

    def __init__(self) -> None:
        self.cost = 0.0
        self._settles: deque[Ticket] = deque()
        self._duties: deque[Ticket] = deque()
        self._queues: OrderedDict[str, deque[Ticket]] = OrderedDict()
        self._deficit: dict[str, float] = {}

    def __bool__(self) -> bool:
        return bool(self._settles or self._duties or self._queues)

    def has_room(self, ticket: Ticket) -> bool:
        """Whether a ticket may still come in: settles have twice the room, for they make some; the service's
        own duties always have."""
        command = ticket.command
        if isinstance(command, c.Publish | c.Lease):
            limit = PENDING_COST_MAX
        elif isinstance(command, c.Ack | c.Settle):
            limit = 2 * PENDING_COST_MAX
        else:
            return True
        return not self or self.cost + ticket.cost <= limit

    def add(self, ticket: Ticket) -> None:
        """Let a ticket wait for its turn."""
        self.cost += ticket.cost
        command = ticket.command
        if isinstance(command, c.Ack | c.Settle):
            self._settles.append(ticket)
        elif isinstance(command, c.Publish | c.Lease):
            self._queues.setdefault(command.queue, deque()).append(ticket)
        else:
            self._duties.append(ticket)

    def fill(self) -> list[Ticket]:
        """The next batch; empty when nothing waits."""
        batch: list[Ticket] = []
        room = BATCH_COST_MAX
        for lane in (self._settles, self._duties):
            while lane and (room > 0 or not batch):
                room -= self._take(lane, batch)
        while self._queues and (room > 0 or not batch):
            name, lane = next(iter(self._queues.items()))
            allowance = self._deficit.get(name, 0.0) + QUANTUM
            while lane and (lane[0].cost <= allowance or not batch) and (room > 0 or not batch):
                spent = self._take(lane, batch)
                room -= spent
                allowance -= spent
            if lane:
                self._deficit[name] = allowance
                self._queues.move_to_end(name)
            else:
                del self._queues[name]
                self._deficit.pop(name, None)
        return batch

    def empty(self) -> list[Ticket]:
        """Take everyone out."""
        everyone = [*self._settles, *self._duties, *(t for lane in self._queues.values() for t in lane)]
        self._settles.clear()
        self._duties.clear()
        self._queues.clear()
        self._deficit.clear()
        self.cost = 0.0
        return everyone

    def _take(self, lane: deque[Ticket], batch: list[Ticket]) -> float:
        ticket = lane.popleft()
        self.cost = max(0.0, self.cost - ticket.cost)
        if not ticket.cancelled:
            batch.append(ticket)
        return ticket.cost
