"""Random commands on an engine and on the memory model side by side: every answer and every row agree."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable
from typing import Any

from hypothesis import currently_in_test_context, note
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from redrive.domain.errors import RedriveError
from redrive.domain.fingerprint import error_info
from redrive.domain.states import TRANSITIONS, Event, State
from redrive.storage import commands as c
from redrive.storage.conformance.picture import picture, plain
from redrive.storage.conformance.rig import Clock, Rig, Transition, damage_memory
from redrive.storage.execute import Outcome
from redrive.storage.memory import MemoryEngine
from redrive.storage.port import Engine
from redrive.storage.values import DeadFilter, QueueState

QUEUES = ("plain", "fifo", "levels", "tight")
DEAD_LETTER_QUEUES = tuple(f"{name}.dlq" for name in QUEUES)
NAMES = st.sampled_from([*QUEUES, *DEAD_LETTER_QUEUES])
GROUPS = st.sampled_from(["a", "b"])
VERBS = ("ack", "nack", "now", "reject", "extend", "drop", "release", "cancel")
_ERROR = error_info({"type": "Boom", "message": "payment 7 failed", "stack": ""})
_LOG = logging.getLogger("redrive.storage")


class EngineMachine(RuleBasedStateMachine):
    """Subclass with ``make_engine``; ``seen`` collects the transitions of the engine over a whole run.

    A transition that the table does not hold fails the run where it happens. Give a subclass a ``seen`` of
    its own.
    """

    seen: Counter[Transition] = Counter()

    def make_engine(self, clock: Clock) -> tuple[Engine, Callable[[str], object]]:
        """A fresh engine under this clock, and the way to damage a stored body in it."""
        raise NotImplementedError

    def __init__(self) -> None:
        super().__init__()
        self._level = _LOG.level
        _LOG.setLevel(logging.ERROR)  # the clock steps here on purpose; its warnings would drown the note
        self.clock = Clock()
        oracle = MemoryEngine(self.clock)
        self.model = Rig(oracle, self.clock, self._only_the_table, damage_memory(oracle))
        self.engine, damage = self.make_engine(self.clock)
        self.real = Rig(self.engine, self.clock, self._see, damage)
        self.handles: list[tuple[str, str]] = []
        self.ids: list[str] = []

    @staticmethod
    def _only_the_table(source: State, event: Event, target: State) -> None:
        assert target in TRANSITIONS.get((source, event), ()), f"{source} --{event}--> {target}"

    def _see(self, source: State, event: Event, target: State) -> None:
        self._only_the_table(source, event, target)
        self.seen[source, event, target] += 1

    def both(self, *commands: c.Command) -> Outcome:
        """Apply to both; the answers must be equal."""
        expected = self.model.batch(*commands)
        actual = self.real.batch(*commands)
        if currently_in_test_context():
            note(f"{commands} -> {plain(actual.results)}")
        assert plain(actual.results) == plain(expected.results)
        assert actual.due == expected.due
        assert actual.outage_ms == expected.outage_ms
        leased = (m for answer in actual.results if isinstance(answer, c.Leased) for m in answer.messages)
        self.handles.extend((m.message_id, m.handle) for m in leased)
        return actual

    @initialize()
    def make_queues(self) -> None:
        """Four queues: plain, FIFO, with priorities, and one with a tight budget and limits."""
        quick = {"base_seconds": 2.0, "max_seconds": 20.0}
        self.both(
            c.CreateQueue("plain", None, None, {"max_retries": 1, "retry_policy": quick}),
            c.CreateQueue("fifo", "fifo", None, {"max_retries": 1, "retry_policy": quick}),
            c.CreateQueue("levels", None, None, {"enable_priority": True, "retention_seconds": 120}),
            c.CreateQueue("tight", None, None, {"max_retries": 0, "max_in_flight": 2, "max_per_second": 3.0}),
        )

    @rule(
        queue=NAMES,
        group=GROUPS,
        delay=st.sampled_from([0, 0, 3_000]),
        key=st.sampled_from([None, "k1", "k2"]),
        dedup=st.sampled_from([None, None, "d1"]),
        priority=st.sampled_from([None, 0, 5]),
        count=st.integers(1, 3),
    )
    def publish(
        self,
        queue: str,
        group: str,
        delay: int,
        key: str | None,
        dedup: str | None,
        priority: int | None,
        count: int,
    ) -> None:
        """Publish some entries."""
        fifo = queue.startswith("fifo")
        entries: list[c.Entry | RedriveError] = [
            c.Entry(
                b'{"n":%d}' % n,
                delay_ms=delay,
                group=group if fifo else None,
                deduplication_id=dedup if fifo and n == 0 else None,
                priority=None if fifo else priority,
            )
            for n in range(count)
        ]
        idempotent = None if key is None else c.Idempotent("queue.publish", key, b"%08d" % count)
        outcome = self.both(c.Publish(queue, entries, idempotent=idempotent))
        if isinstance(outcome.results[0], list):
            self.ids.extend(r.message_id for r in outcome.results[0] if isinstance(r, c.Published))

    @rule(queue=st.sampled_from(QUEUES), count=st.integers(1, 4), seconds=st.sampled_from([1, 5, 60]))
    def lease(self, queue: str, count: int, seconds: int) -> None:
        """Lease, and remember the handles."""
        self.both(c.Lease(queue, count, seconds * 1000, f"c{count}"))

    @rule(queue=st.sampled_from(DEAD_LETTER_QUEUES), count=st.integers(1, 3), verb=st.sampled_from(VERBS))
    def consume_dead_letters(self, queue: str, count: int, verb: str) -> None:
        """Lease from a dead-letter queue, and settle the first one."""
        [answer] = self.both(c.Lease(queue, count, 5_000, "operator")).results
        if isinstance(answer, c.Leased) and answer.messages:
            first = answer.messages[0]
            self.both(self._settle(verb, first.message_id, first.handle))

    @rule(data=st.data(), verb=st.sampled_from(VERBS), fenced=st.sampled_from([True, True, True, False]))
    def settle(self, data: st.DataObject, verb: str, fenced: bool) -> None:
        """Settle one of the recent deliveries, with or without its handle."""
        if not self.handles:
            return
        message_id, handle = data.draw(st.sampled_from(self.handles[-6:]))
        self.both(self._settle(verb, message_id, handle if fenced else None))

    @rule(data=st.data(), verbs=st.lists(st.sampled_from(VERBS), min_size=2, max_size=4))
    def settle_many(self, data: st.DataObject, verbs: list[str]) -> None:
        """Several settles in one batch, possibly of one delivery, beside a publish and a lease."""
        if not self.handles:
            return
        chosen = [data.draw(st.sampled_from(self.handles[-6:])) for _ in verbs]
        settles = [self._settle(verb, *which) for verb, which in zip(verbs, chosen, strict=True)]
        self.both(*settles, c.Publish("plain", [c.Entry(b"{}")]), c.Expire(), c.Lease("fifo", 1, 5_000))

    @staticmethod
    def _settle(verb: str, message_id: str, handle: str | None) -> c.Command:
        make: dict[str, Callable[[], c.Command]] = {
            "ack": lambda: c.Ack([(message_id, handle)]),
            "cancel": lambda: c.Cancel(message_id),
            "nack": lambda: c.Nack(message_id, handle, error=_ERROR),
            "now": lambda: c.Nack(message_id, handle, delay_ms=0),
            "reject": lambda: c.Reject(message_id, handle, error=_ERROR),
            "extend": lambda: c.Extend(message_id, handle, visibility_ms=9_000),
            "drop": lambda: c.Extend(message_id, handle, visibility_ms=0),
            "release": lambda: c.Release(message_id, handle),
        }
        return make[verb]()

    @rule(queue=NAMES, verb=st.sampled_from(["ack", "nack", "release"]))
    def settle_late(self, queue: str, verb: str) -> None:
        """A worker that comes back after its lease has ended."""
        [answer] = self.both(c.Lease(queue, 2, 1_000, "slow")).results
        self.clock.pass_seconds(2)
        self.both(c.Tick(), c.Expire())
        if isinstance(answer, c.Leased) and answer.messages:
            late = answer.messages[0]
            self.both(self._settle(verb, late.message_id, late.handle))

    @rule(queue=NAMES)
    def damage(self, queue: str) -> None:
        """A body is damaged on disk, and its turn comes."""
        [answer] = self.both(c.Lease(queue, 1, 5_000, "unlucky")).results
        if not isinstance(answer, c.Leased) or not answer.messages:
            return
        message = answer.messages[0]
        for rig in (self.model, self.real):
            rig.damage(message.message_id)
        self.both(c.Release(message.message_id, message.handle), c.Lease(queue, 4, 5_000, "next"))

    @rule(seconds=st.sampled_from([0.5, 2, 4, 20, 70]))
    def time_passes(self, seconds: float) -> None:
        """A living service: ticks and reaps on the way."""
        left = seconds
        while left > 0:
            self.clock.pass_seconds(min(left, 4))
            left -= 4
            self.both(c.Tick(), c.Expire())
        self.both(c.Age())

    @rule(seconds=st.sampled_from([-3_600, 3_600, 10]))
    def clock_steps(self, seconds: int) -> None:
        """An outage, or a step of the clock."""
        self.clock.pass_seconds(seconds)
        self.both(c.Expire())

    @rule()
    def old_dead_letters_go(self) -> None:
        """A month passes."""
        self.clock.pass_seconds(31 * 86_400)
        self.both(c.Age(), c.Expire(), c.Prune())

    @rule(queue=st.sampled_from([*QUEUES, "fifo"]), count=st.integers(1, 3))
    def redrive(self, queue: str, count: int) -> None:
        """Send the oldest dead letters back."""
        self.both(c.Redrive(DeadFilter(queue=queue), count, explicit=False))

    @rule(queue=NAMES, limit=st.integers(1, 3))
    def purge(self, queue: str, limit: int) -> None:
        """Purge to the end, in slices."""
        while any(getattr(r, "more", False) for r in self.both(c.Purge(queue, limit)).results):
            pass

    @rule(queue=NAMES)
    def delete(self, queue: str) -> None:
        """Delete a queue while somebody publishes to its name; the rest goes in slices."""
        outcome = self.both(c.SetQueueState(queue, "deleting"), c.Publish(queue, [c.Entry(b"{}")]))
        going = outcome.results[0]
        name = getattr(going, "name", None)
        while name and any(getattr(r, "more", False) for r in self.both(c.Purge(name, 2, deleting=True)).results):
            pass

    @rule(queue=st.sampled_from(QUEUES), state=st.sampled_from(["paused", "active", "active"]))
    def pause(self, queue: str, state: QueueState) -> None:
        """Pause or resume."""
        self.both(c.SetQueueState(queue, state))

    @rule(policy=st.sampled_from(["block", "continue"]))
    def change_policy(self, policy: str) -> None:
        """Change what a dead letter does to its group."""
        self.both(c.UpdateQueue("fifo", {"fifo_on_dead": policy}))

    @invariant()
    def rows_agree(self) -> None:
        """Every message, record, attempt and count is the same in both."""
        ids = self.ids[-12:]
        actual = self.engine.read(lambda reader: picture(reader, ids))
        expected = self.model.engine.read(lambda reader: picture(reader, ids))
        for ours, wanted in zip(actual, expected, strict=True):
            assert ours == wanted, f"{ours}\n!=\n{wanted}"

    def teardown(self) -> None:
        """The store is sound at the end."""
        try:
            assert self.engine.check() == []
        finally:
            self.engine.close()
            _LOG.setLevel(self._level)
