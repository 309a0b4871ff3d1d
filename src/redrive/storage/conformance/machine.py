"""Random commands on an engine and on the memory model side by side: every answer and every row agree."""

from __future__ import annotations

from collections import Counter
from typing import Any

import msgspec
from hypothesis import currently_in_test_context, note
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from redrive.domain.errors import RedriveError
from redrive.domain.fingerprint import error_info
from redrive.domain.states import Event, State
from redrive.storage import commands as c
from redrive.storage.conformance.rig import Clock, Rig
from redrive.storage.execute import Outcome
from redrive.storage.memory import MemoryEngine
from redrive.storage.port import Engine, Reader
from redrive.storage.values import DeadFilter

QUEUES = ("plain", "fifo", "levels", "tight")
NAMES = st.sampled_from([*QUEUES, *(f"{name}.dlq" for name in QUEUES)])
GROUPS = st.sampled_from(["a", "b"])
_ERROR = error_info({"type": "Boom", "message": "payment 7 failed", "stack": ""})


def plain(value: Any) -> Any:
    """A result as data that two engines must agree on: internal numbers are left out."""
    if isinstance(value, RedriveError):
        return value.code
    if isinstance(value, list):
        return [plain(item) for item in value]
    if isinstance(value, msgspec.Struct):
        fields = {name: plain(getattr(value, name)) for name in value.__struct_fields__}
        for internal in ("id", "queue_id", "group_id", "dlq_id", "busy"):
            if internal in fields:
                fields[internal] = fields[internal] is not None
        return fields
    return value


class EngineMachine(RuleBasedStateMachine):
    """Subclass with ``make_engine``; ``seen`` collects the transitions of both over a whole run."""

    seen: Counter[tuple[State, Event, State]] = Counter()
    seen_by_model: Counter[tuple[State, Event, State]] = Counter()

    def make_engine(self, clock: Clock) -> Engine:
        """A fresh engine under this clock."""
        raise NotImplementedError

    def __init__(self) -> None:
        super().__init__()
        self.clock = Clock()
        self.model = Rig(MemoryEngine(self.clock), self.clock, self._see(self.seen_by_model))
        self.engine = self.make_engine(self.clock)
        self.real = Rig(self.engine, self.clock, self._see(self.seen))
        self.handles: list[tuple[str, str]] = []
        self.ids: list[str] = []

    @staticmethod
    def _see(counter: Counter[tuple[State, Event, State]]) -> Any:
        def observe(source: State, event: Event, target: State) -> None:
            counter[source, event, target] += 1

        return observe

    def both(self, *commands: c.Command) -> Outcome:
        """Apply to both; the answers must be equal."""
        expected = self.model.batch(*commands)
        actual = self.real.batch(*commands)
        if currently_in_test_context():
            note(f"{commands} -> {plain(actual.results)}")
        assert plain(actual.results) == plain(expected.results)
        assert actual.due == expected.due
        assert actual.outage_ms == expected.outage_ms
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

    @rule(queue=NAMES, group=GROUPS, delay=st.sampled_from([0, 0, 3_000]), key=st.sampled_from([None, "k1", "k2"]),
          dedup=st.sampled_from([None, None, "d1"]), priority=st.sampled_from([None, 0, 5]), count=st.integers(1, 3))  # fmt: skip
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

    @rule(queue=NAMES, count=st.integers(1, 4), seconds=st.sampled_from([1, 5, 60]))
    def lease(self, queue: str, count: int, seconds: int) -> None:
        """Lease, and remember the handles."""
        outcome = self.both(c.Lease(queue, count, seconds * 1000, f"c{count}"))
        leased = outcome.results[0]
        if isinstance(leased, c.Leased):
            self.handles.extend((m.message_id, m.handle) for m in leased.messages)

    @rule(data=st.data(), verb=st.sampled_from(["ack", "nack", "now", "reject", "extend", "drop", "release", "cancel"]),
          fenced=st.sampled_from([True, True, True, False]))  # fmt: skip
    def settle(self, data: st.DataObject, verb: str, fenced: bool) -> None:
        """Settle one of the recent deliveries, with or without its handle."""
        if not self.handles:
            return
        message_id, handle = data.draw(st.sampled_from(self.handles[-6:]))
        self.both(self._settle(verb, message_id, handle if fenced else None))

    @rule(
        data=st.data(),
        verbs=st.lists(st.sampled_from(["ack", "now", "release", "reject"]), min_size=2, max_size=4),
    )
    def settle_many(self, data: st.DataObject, verbs: list[str]) -> None:
        """Several settles in one batch, possibly of one delivery, beside a publish and a lease."""
        if not self.handles:
            return
        chosen = [data.draw(st.sampled_from(self.handles[-6:])) for _ in verbs]
        settles = [self._settle(verb, *which) for verb, which in zip(verbs, chosen, strict=True)]
        self.both(*settles, c.Publish("plain", [c.Entry(b"{}")]), c.Expire())

    @staticmethod
    def _settle(verb: str, message_id: str, handle: str | None) -> c.Command:
        if verb == "ack":
            return c.Ack([(message_id, handle)])
        if verb == "cancel":
            return c.Cancel(message_id)
        make = {
            "nack": lambda: c.Nack(message_id, handle, error=_ERROR),
            "now": lambda: c.Nack(message_id, handle, delay_ms=0),
            "reject": lambda: c.Reject(message_id, handle, error=_ERROR),
            "extend": lambda: c.Extend(message_id, handle, visibility_ms=9_000),
            "drop": lambda: c.Extend(message_id, handle, visibility_ms=0),
            "release": lambda: c.Release(message_id, handle),
        }
        return make[verb]()

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

    @rule(queue=st.sampled_from(QUEUES), count=st.integers(1, 3))
    def redrive(self, queue: str, count: int) -> None:
        """Send the oldest dead letters back."""
        self.both(c.Redrive(DeadFilter(queue=queue), count, explicit=False))

    @rule(queue=NAMES, limit=st.integers(1, 3))
    def purge(self, queue: str, limit: int) -> None:
        """Purge to the end, in slices."""
        while any(getattr(r, "more", False) for r in self.both(c.Purge(queue, limit)).results):
            pass

    @rule(queue=st.sampled_from(QUEUES), state=st.sampled_from(["paused", "active", "active"]))
    def pause(self, queue: str, state: Any) -> None:
        """Pause or resume."""
        self.both(c.SetQueueState(queue, state))

    @rule(policy=st.sampled_from(["block", "continue"]))
    def change_policy(self, policy: str) -> None:
        """Change what a dead letter does to its group."""
        self.both(c.UpdateQueue("fifo", {"fifo_on_dead": policy}))

    @invariant()
    def rows_agree(self) -> None:
        """Every message, record, attempt and count is the same in both."""
        actual, expected = self.engine.read(self._picture), self.model.engine.read(self._picture)
        for ours, wanted in zip(actual, expected, strict=True):
            assert ours == wanted, f"{ours}\n!=\n{wanted}"

    def _picture(self, reader: Reader) -> Any:
        picture: list[Any] = []
        for queue in reader.queue_page("", 100):
            picture.append(plain(queue))
            picture.append(plain(reader.counts(queue)))
            picture.append(sorted((plain(m) for m in reader.messages(queue, None, None, 0, 1000)), key=_id))
            select = DeadFilter(queue=queue.name)
            picture.append(plain(reader.dead_page(select, (0, ""), 1000)))
            picture.append(plain(reader.dead_groups(select, 1000)))
        for message_id in self.ids[-12:]:
            picture.append(plain(reader.attempts(message_id)))
            picture.append(plain(reader.records(message_id)))
            picture.append(plain(reader.tombstone(message_id)))
        return picture

    def teardown(self) -> None:
        """The store is sound at the end."""
        assert self.engine.check() == []
        self.engine.close()


def _id(picture: Any) -> str:
    return str(picture["facts"]["message_id"])
