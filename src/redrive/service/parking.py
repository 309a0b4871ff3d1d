"""Leases that found nothing and may wait: long polls. A publish, a due time or another node wakes them.

A waiter that is woken asks again. If it gets something, the next waiter of that queue is woken too; so a
burst wakes as many as it feeds, and an empty queue wakes one. The number of waiters is bounded.
"""

from __future__ import annotations

import heapq
import itertools
from collections import OrderedDict
from typing import Final

from redrive.service.ticket import Ticket
from redrive.storage import commands as c

WAITERS_MAX: Final = 20_000


class Parking:
    """Parked tickets by queue name. Not thread-safe: the committer holds its lock."""

    def __init__(self) -> None:
        self._waiting: dict[str, OrderedDict[int, Ticket]] = {}
        self._alarms: list[tuple[float, int, str, int]] = []  # (when, order, queue, ticket number or 0)
        self._due: dict[str, float] = {}  # the alarm that is set for a queue
        self._numbers = itertools.count(1)
        self.count = 0

    def park(self, ticket: Ticket, queue: str) -> None:
        """Let a ticket wait until its deadline."""
        number = next(self._numbers)
        self._waiting.setdefault(queue, OrderedDict())[number] = ticket
        self.count += 1
        heapq.heappush(self._alarms, (ticket.deadline, number, queue, number))

    def set_alarm(self, queue: str, when: float) -> None:
        """Something in this queue is due at ``when``."""
        if queue in self._waiting and when < self._due.get(queue, float("inf")):
            self._due[queue] = when
            heapq.heappush(self._alarms, (when, next(self._numbers), queue, 0))

    def wake(self, queue: str, messages: int = 1) -> list[Ticket]:
        """Take out as many waiters of the queue as ``messages`` can feed, the longest waiting first."""
        woken: list[Ticket] = []
        lane = self._waiting.get(queue)
        while lane and messages > 0:
            _, ticket = lane.popitem(last=False)
            self.count -= 1
            if not ticket.cancelled:
                woken.append(ticket)
                assert isinstance(ticket.command, c.Lease)
                messages -= ticket.command.max_messages
        if lane is not None and not lane:
            del self._waiting[queue]
        return woken

    def names(self) -> list[str]:
        """The queues that somebody waits for."""
        return list(self._waiting)

    def has(self, queue: str) -> bool:
        """Whether somebody waits for this queue."""
        return queue in self._waiting

    def next_alarm(self) -> float | None:
        """When the next alarm rings."""
        return self._alarms[0][0] if self._alarms else None

    def ring(self, now: float) -> tuple[list[Ticket], list[Ticket]]:
        """Alarms up to ``now``: the tickets whose time is over, and those woken by a due time."""
        over: list[Ticket] = []
        woken: list[Ticket] = []
        while self._alarms and self._alarms[0][0] <= now:
            when, _, queue, number = heapq.heappop(self._alarms)
            if number == 0:
                if self._due.get(queue) == when:
                    del self._due[queue]
                    woken.extend(self.wake(queue))
                continue
            lane = self._waiting.get(queue)
            ticket = lane.pop(number, None) if lane else None
            if ticket is not None:
                self.count -= 1
                over.append(ticket)
                if not lane:
                    del self._waiting[queue]
        return over, woken

    def sweep(self) -> int:
        """Forget the waiters whose clients went away; how many."""
        before = self.count
        for queue, lane in list(self._waiting.items()):
            for number in [number for number, ticket in lane.items() if ticket.cancelled]:
                del lane[number]
                self.count -= 1
            if not lane:
                del self._waiting[queue]
        return before - self.count

    def empty(self) -> list[Ticket]:
        """Take everyone out."""
        everyone = [ticket for lane in self._waiting.values() for ticket in lane.values()]
        self._waiting.clear()
        self._alarms.clear()
        self._due.clear()
        self.count = 0
        return everyone
