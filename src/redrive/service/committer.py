"""The group committer: everything that waits becomes one transaction, and is answered when it is on disk.

One thread owns the engine's writes. Durability and speed come from the same place: the more requests wait,
the more of them share one commit. The rules are those of docs/decisions/0004-committer.md.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from typing import Final

from redrive import seams
from redrive.domain.errors import Internal, OutcomeUnknown, Overloaded
from redrive.service.batching import PENDING_COST_MAX, Lanes
from redrive.service.failures import commit_refused
from redrive.service.parking import WAITERS_MAX, Parking
from redrive.service.room import divided
from redrive.service.ticket import Reply, Ticket
from redrive.storage import commands as c
from redrive.storage.execute import Deferred, Outcome, apply
from redrive.storage.port import Damaged, DiskFull, Engine, Lost

DEFERRAL_SECONDS_MAX: Final = 3.0  # longer than a database takes to resolve a deadlock
_HELD_SECONDS: Final = 0.005  # until another node's transaction may have let go
_GIVE_WAY_SECONDS: Final = 0.005  # so that a read comes to its end however busy the store is
CALL_SECONDS_MAX: Final = 60.0
_TELL_SECONDS: Final = 10.0
_SLEEP_SECONDS_MAX: Final = 60.0  # a far alarm is more than a condition can wait for
_LOG = logging.getLogger("redrive.committer")


class Committer:
    """Takes commands from any thread, commits them in batches, replies on its own thread.

    ``after`` hears of every committed outcome (statistics, wake-ups of other nodes).
    """

    def __init__(self, engine: Engine, after: Callable[[Outcome], None] | None = None) -> None:
        self._engine = engine
        self._after = after
        self._lanes = Lanes()
        self._parking = Parking()
        self._changed = threading.Condition()
        self._stopping = False
        self._thread = threading.Thread(target=self._live, name="redrive-committer", daemon=True)
        self._committing: list[Ticket] = []
        self._at_rest = threading.Event()  # no commit is under way
        self._at_rest.set()
        self._failed: str | None = None  # why the last commit failed, until one succeeds
        self._untold, self._told_at = 0, float("-inf")  # commands lost since the log last told of some
        self._no_room: Callable[[], str | None] = getattr(engine, "full", lambda: None)

    def start(self) -> None:
        """Begin to commit."""
        self._thread.start()

    def submit(self, command: c.Command, reply: Reply) -> Ticket:
        """Let ``command`` join a batch; ``reply`` gets its result or its refusal.

        Raises ``Overloaded`` when too much waits already, or when the service is stopping.
        """
        ticket = _ticket(command, reply)
        with self._changed:
            if self._admit(ticket):
                self._changed.notify()
        return ticket

    def submit_all(self, asked: Sequence[tuple[c.Command, Reply]]) -> None:
        """As :meth:`submit` for each, in order, with one wake-up for all: they can share a commit.

        A refusal goes to its ``reply``, on this thread, and leaves the others alone.
        """
        tickets = [_ticket(command, reply) for command, reply in asked]
        refused: list[tuple[Ticket, Overloaded]] = []
        with self._changed:
            wake = False
            for ticket in tickets:
                try:
                    wake |= self._admit(ticket)
                except Overloaded as error:
                    refused.append((ticket, error))
            if wake:
                self._changed.notify()
        for ticket, refusal in refused:
            self._answer(ticket, refusal)

    def _admit(self, ticket: Ticket) -> bool:
        """Let it wait for its batch; whether the thread has to hear of it. Raises ``Overloaded``."""
        if self._stopping:
            raise Overloaded("the service is stopping", hint="repeat the request", retry_after=1)
        if not self._lanes.has_room(ticket):
            raise Overloaded(
                f"{self._lanes.cost:.0f} rows of work are waiting (at most {PENDING_COST_MAX:.0f})",
                hint="repeat the request after the time of Retry-After",
                retry_after=1,
            )
        alarm = self._parking.next_alarm()
        if not self._joins(ticket):
            self._lanes.add(ticket)
            return True
        return self._parking.next_alarm() != alarm  # else the thread may sleep on

    def _joins(self, ticket: Ticket) -> bool:
        """Whether it waits from now on with others, who will be woken by what it would find."""
        command = ticket.command
        if not isinstance(command, c.Lease) or self._parking.count >= WAITERS_MAX:
            return False
        return self._parking.join(ticket, command, seams.monotonic())

    def call(self, command: c.Command, seconds: float = CALL_SECONDS_MAX) -> object:
        """Commit ``command`` and wait for its result; refusals are raised."""
        done = threading.Event()
        results: list[object] = []

        def reply(result: object) -> None:
            results.append(result)
            done.set()

        wait_seconds = command.wait_seconds if isinstance(command, c.Lease) else 0.0
        ticket = self.submit(command, reply)
        if not seams.wait(done, seconds + wait_seconds):
            ticket.cancel()
            raise OutcomeUnknown(f"no answer within {seconds:.0f} s; what became of the request is unknown")
        if isinstance(results[0], BaseException):
            raise results[0]
        return results[0]

    def give_way(self) -> None:
        """Between two pages of a long read: let a commit that is under way be done first.

        Both need the interpreter, and a commit lets go of it at every statement: beside a read that does not
        give way it waits for each of them anew.
        """
        self._at_rest.wait(_GIVE_WAY_SECONDS)

    def wake(self, names: Sequence[str]) -> None:
        """Another node made something due in these queues."""
        with self._changed:
            for name in names:
                self._wake(name)
            self._changed.notify()

    def waiting_for(self) -> list[str]:
        """The queues that a long poll waits for."""
        with self._changed:
            return self._parking.names()

    def trouble(self) -> str | None:
        """Why nothing can be committed at the moment, or None."""
        if self._thread.ident is not None and not self._thread.is_alive():
            return "the committer has stopped"
        return self._failed

    def full(self) -> str | None:
        """Why new work is refused while the rest goes on, or None."""
        return self._no_room()

    def stop(self, seconds: float = 10.0) -> None:
        """Finish what was accepted, answer who waits with nothing, take nothing new."""
        with self._changed:
            self._stopping = True
            parked = self._parking.empty()
            self._changed.notify()
        for ticket in parked:
            self._answer(ticket, _nothing(ticket))
        if self._thread.is_alive():
            self._thread.join(seconds)

    # -- the committer's own thread
    def _live(self) -> None:
        try:
            self._loop()
        except Exception:  # noqa: BLE001 - a bug: refuse, rather than let everybody wait for nothing
            _LOG.exception("the committer has stopped")
            with self._changed:
                self._stopping = True
                waiting = [*self._parking.empty(), *self._lanes.empty()]
            for ticket in waiting:
                self._answer(ticket, Overloaded("the committer has stopped; nothing was done"))
            for ticket in self._committing:
                if not ticket.answered:
                    self._answer(ticket, OutcomeUnknown("the committer has stopped; repeat the request"))

    def _loop(self) -> None:
        while True:
            with self._changed:
                over, batch = self._next()
                if batch is None:
                    return
            for ticket in over:
                self._answer(ticket, _nothing(ticket))
            if batch:
                self._committing = batch
                self._at_rest.clear()
                self._commit(batch)
                self._at_rest.set()
                self._committing = []

    def _next(self) -> tuple[list[Ticket], list[Ticket] | None]:
        """Wait for work; who waited in vain, and the batch. None: stopped and nothing is left."""
        while True:
            now = seams.monotonic()
            over, woken = self._parking.ring(now)
            for ticket in woken:
                self._lanes.add(ticket)
            if self._lanes:
                batch = self._lanes.fill()
                return over, self._with_waiters(batch)
            if over:
                return over, []
            if self._stopping:
                return [], None
            alarm = self._parking.next_alarm()
            sleep = _SLEEP_SECONDS_MAX if alarm is None else min(_SLEEP_SECONDS_MAX, max(0.0, alarm - now))
            self._changed.wait(sleep / seams.TIME_FACTOR)

    def _with_waiters(self, batch: list[Ticket]) -> list[Ticket]:
        """A publish brings the waiters along that it can feed: one transaction stores and leases."""
        for ticket in list(batch):
            command = ticket.command
            if isinstance(command, c.Publish) and self._parking.has(command.queue):
                batch.extend(self._parking.wake(command.queue, len(command.entries)))
        return batch

    def _commit(self, batch: list[Ticket]) -> None:
        full = self.full()
        if full is not None:
            new, batch = divided(batch)
            self._refuse(new, DiskFull(full))
        if batch:
            self._run(batch)

    def _run(self, batch: list[Ticket], *, again: bool = False) -> None:
        commands = [ticket.command for ticket in batch]
        try:
            outcome = self._engine.run(lambda tx: apply(tx, commands))
        except DiskFull as error:
            lost, others = (batch, []) if again else divided(batch)
            if self.full() is None:
                self._lost(lost, error)
            else:  # what is not new work goes on: the store is not in trouble
                self._refuse(lost, error)
            if others:  # once more, with the reserve that the engine may have given up for them
                self._run(others, again=True)
        except Lost as error:
            self._lost(batch, error)
        except Exception as error:  # noqa: BLE001 - whatever it is, the loop and its other callers go on
            if len(batch) == 1:
                _LOG.exception("a command failed: %s", type(commands[0]).__name__)
                unknown = Internal("the command failed; nothing of it was done")
                self._answer(batch[0], commit_refused(error) if isinstance(error, Damaged) else unknown)
                return
            middle = len(batch) // 2
            self._run(batch[:middle])
            self._run(batch[middle:])
        else:
            self._failed = None
            self._committed(batch, outcome)
            if all(isinstance(result, Deferred) for result in outcome.results):
                with self._changed:  # nothing else to do meanwhile, unless something comes in
                    self._changed.wait(_HELD_SECONDS / seams.TIME_FACTOR)

    def _lost(self, batch: list[Ticket], error: Lost) -> None:
        if not batch:
            return
        self._failed = str(error)
        self._untold += len(batch)
        now = seams.monotonic()
        if now - self._told_at >= _TELL_SECONDS:  # an outage must not fill the log
            _LOG.error("%d commands were not committed: %s", self._untold, error)
            self._untold, self._told_at = 0, now
        self._refuse(batch, error)

    def _refuse(self, batch: list[Ticket], error: Lost) -> None:
        for ticket in batch:
            self._answer(ticket, commit_refused(error))

    def _committed(self, batch: list[Ticket], outcome: Outcome) -> None:
        answers: list[tuple[Ticket, object]] = []
        with self._changed:
            for ticket, result in zip(batch, outcome.results, strict=True):
                if isinstance(result, Deferred):
                    answers.extend(self._defer(ticket, result))
                elif isinstance(result, c.Leased):
                    answers.extend(self._leased(ticket, result))
                else:
                    answers.append((ticket, result))
                    self._look_again(ticket.command)
            now_ms = outcome.now_ms
            for name, due_ms in outcome.due.items():
                self._is_due(name, due_ms, now_ms)
            if outcome.outage_ms:  # the clock has moved: what was far off may be due, whatever the alarms say
                for name in self._parking.names():
                    self._wake(name)
        self._tell(outcome)
        for ticket, result in answers:
            self._answer(ticket, result)

    def _tell(self, outcome: Outcome) -> None:
        if self._after is None:
            return
        try:
            self._after(outcome)
        except Exception:  # noqa: BLE001 - counting and waking must not cost the callers their answers
            _LOG.exception("what follows a commit failed")

    def _defer(self, ticket: Ticket, result: Deferred) -> list[tuple[Ticket, object]]:
        now = seams.monotonic()
        if ticket.deferred_at is None:
            ticket.deferred_at = now
        elif now - ticket.deferred_at > DEFERRAL_SECONDS_MAX:
            refusal = Overloaded("another transaction holds the message", hint="repeat it", retry_after=1)
            return [(ticket, refusal)]
        if isinstance(ticket.command, c.Ack):
            ticket.command.acknowledged = result.acknowledged
        self._lanes.add(ticket)
        return []

    def _leased(self, ticket: Ticket, result: c.Leased) -> list[tuple[Ticket, object]]:
        """A lease that found something wakes the next waiter; one that found nothing may wait."""
        assert isinstance(ticket.command, c.Lease)
        name = ticket.command.queue
        if result.messages:
            self._wake(name)
            if ticket.cancelled:
                for message in result.messages:
                    back = c.Release(message.message_id, message.handle)
                    self._lanes.add(Ticket(back, _nobody, 0.0))
            return [(ticket, result)]
        now = seams.monotonic()
        if ticket.deadline <= now or ticket.cancelled or self._stopping:
            return [(ticket, result)]
        if self._parking.count >= WAITERS_MAX and not self._parking.sweep():
            text = f"{WAITERS_MAX} long polls are waiting already"
            return [(ticket, Overloaded(text, retry_after=1))]
        self._parking.park(ticket, name, now)
        if result.next_due_ms is not None:
            self._is_due(name, result.next_due_ms, result.leased_ms)
        return []

    def _look_again(self, command: c.Command) -> None:
        """A refused lease, and a queue that was changed: who waits there may be refused too, one by one."""
        if isinstance(command, c.Lease):
            self._wake(command.queue)
        elif isinstance(command, c.SetQueueState | c.UpdateQueue):
            self._wake(command.name)

    def _wake(self, name: str) -> None:
        """Let the one who has waited longest for the queue look again; who finds something wakes the next."""
        for waiter in self._parking.wake(name):
            self._lanes.add(waiter)

    def _is_due(self, name: str, due_ms: int, now_ms: int) -> None:
        if not self._parking.has(name):
            return
        if due_ms <= now_ms:
            self._wake(name)
        else:
            self._parking.set_alarm(name, seams.monotonic() + (due_ms - now_ms) / 1000)

    def _answer(self, ticket: Ticket, result: object) -> None:
        ticket.answered = True
        try:
            ticket.reply(result)
        except Exception:  # noqa: BLE001 - whatever it is, the loop and its other callers go on
            _LOG.exception("a reply failed; its request was committed")


def _ticket(command: c.Command, reply: Reply) -> Ticket:
    wait_seconds = command.wait_seconds if isinstance(command, c.Lease) else 0.0
    return Ticket(command, reply, seams.monotonic() + wait_seconds)


def _nobody(_result: object) -> None:
    """The reply of a command that nobody waits for."""


def _nothing(ticket: Ticket) -> object:
    """The empty answer of a lease that waited in vain."""
    command = ticket.command
    visibility_ms = command.visibility_ms if isinstance(command, c.Lease) else None
    return c.Leased([], 0, visibility_ms or 0)
