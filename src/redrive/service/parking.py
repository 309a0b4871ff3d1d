"""Leases that found nothing and may wait: long polls. A publish, a due time or another node wakes them.

A waiter that is woken asks again. If it gets something, the next waiter of that queue is woken too; so a
burst wakes as many as it feeds, and an empty queue wakes one. The number of waiters is bounded.

Who comes while others wait for the same queue joins them without a look of its own: whatever they wait for
wakes them first. So an idle fleet asks the store a little, however many it is and however often it polls.
"""

from __future__ import annotations

import heapq
import itertools
import math
from collections import OrderedDict
from typing import Final

from redrive.service.ticket import Ticket
from redrive.storage import commands as c
from redrive.storage.values import CONSUMERS_KEPT

WAITERS_MAX: Final = 20_000
_STEPS: Final = 10  # in which a second's waits end: those of one step are answered together
LOOK_SECONDS: Final = 10.0  # at least so often somebody who comes looks, also while others wait


class _Lane(OrderedDict[int, Ticket]):
    """Who waits for one queue, by number; when somebody last looked, and which consumers joined since."""

    def __init__(self) -> None:
        super().__init__()
        self.looked_at = float("-inf")
        self.company: dict[str, int] = {}


class Parking:
    """Parked tickets by queue name. Not thread-safe: the committer holds its lock."""

    def __init__(self) -> None:
        self._waiting: dict[str, _Lane] = {}
        self._alarms: list[tuple[float, int, str, int]] = []  # (when, order, queue, ticket number or 0)
        self._due: dict[str, float] = {}  # the alarm that is set for a queue
        self._numbers = itertools.count(1)
        self.count = 0

    def park(self, ticket: Ticket, queue: str, looked_at: float) -> None:
        """Let a ticket wait until its deadline; it looked then and found nothing."""
        self._waiting.setdefault(queue, _Lane()).looked_at = looked_at
        self._put(ticket, queue)

    def join(self, ticket: Ticket, command: c.Lease, now: float) -> bool:
        """Let a newcomer wait behind those who do; False when it must look for itself."""
        lane = self._waiting.get(command.queue)
        if lane is None or ticket.deadline <= now:
            return False
        if now - lane.looked_at >= LOOK_SECONDS:
            _accompany(command, lane)
            return False
        if command.consumer_id is not None and len(lane.company) < CONSUMERS_KEPT:
            lane.company[command.consumer_id] = command.concurrency
        self._put(ticket, command.queue)
        return True

    def _put(self, ticket: Ticket, queue: str) -> None:
        number = next(self._numbers)
        self._waiting[queue][number] = ticket
        self.count += 1
        ends = math.ceil(ticket.deadline * _STEPS) / _STEPS
        heapq.heappush(self._alarms, (ends, number, queue, number))

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
                _accompany(ticket.command, lane)
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


def _accompany(command: c.Lease, lane: _Lane) -> None:
    """Who looks counts for those who joined meanwhile, too."""
    command.company, lane.company = command.company | lane.company, {}
