"""Random commands on an engine and on the memory model side by side: every answer and every row agree."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable
from typing import ClassVar

from hypothesis import currently_in_test_context, note
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from redrive.domain.errors import RedriveError
from redrive.domain.fingerprint import error_info, fingerprint
from redrive.domain.policy import FingerprintPolicy
from redrive.domain.states import TRANSITIONS, Event, State
from redrive.storage import commands as c
from redrive.storage.conformance.asking import redrive, set_policy, states
from redrive.storage.conformance.picture import picture, plain
from redrive.storage.conformance.rig import Clock, Rig, Transition, damage_memory
from redrive.storage.execute import Outcome
from redrive.storage.memory import MemoryEngine
from redrive.storage.port import Engine
from redrive.storage.values import Claimed, DeadFilter, Queue, QueueState

QUEUES = ("plain", "fifo", "levels", "tight")
DEAD_LETTER_QUEUES = tuple(f"{name}.dlq" for name in QUEUES)
NAMES = st.sampled_from([*QUEUES, *DEAD_LETTER_QUEUES])
GROUPS = st.sampled_from(["a", "b"])
VERBS = ("ack", "nack", "now", "reject", "extend", "drop", "release", "cancel")
_ERROR = error_info({"type": "Boom", "message": "payment 7 failed", "stack": ""})
_CAUSE = fingerprint("Boom", "payment 7 failed")
_LOG = logging.getLogger("redrive.storage")


class EngineMachine(RuleBasedStateMachine):
    """Subclass with ``make_engine``; ``seen`` collects the transitions of the engine over a whole run.

    A transition that the table does not hold fails the run where it happens. Give a subclass a ``seen`` of
    its own.
    """

    seen: ClassVar[Counter[Transition]] = Counter()

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
        assert plain(sorted(actual.due.items())) == plain(sorted(expected.due.items()))
        assert actual.outage_ms == expected.outage_ms
        leased = (m for answer in actual.results if isinstance(answer, c.Leased) for m in answer.messages)
        self.handles.extend((m.message_id, m.handle) for m in leased)
        return actual

    @initialize()
    def make_queues(self) -> None:
        """Four queues: plain, FIFO, with priorities, and one with a tight budget and limits."""
        self.both(*_made())

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

    @rule(
        queue=NAMES,
        verbs=st.lists(st.sampled_from([*VERBS, "late", "lost", "purge", "hot"]), min_size=1, max_size=4),
        cancelled=st.sampled_from([False, False, True]),
    )
    def deliveries(self, queue: str, verbs: list[str], cancelled: bool) -> None:
        """Deliveries from lease to end, one after the other, each cancelled on the way or not."""
        source = queue.removesuffix(".dlq")
        for verb in verbs:
            self.both(c.Publish(source, [c.Entry(b"{}")]))
            if source != queue:  # the dead side needs a dead letter
                self._with_one(source, lambda m: c.Reject(m.message_id, m.handle, error=_ERROR))
            self._with_one(queue, lambda m: self._ends(queue, verb, m, cancelled))  # noqa: B023 - called here

    def _with_one(self, queue: str, use: Callable[[Claimed], c.Command | None]) -> None:
        [answer] = self.both(c.Lease(queue, 1, 5_000, "worker")).results
        if isinstance(answer, c.Leased) and answer.messages:
            command = use(answer.messages[0])
            if command is not None:
                self.both(command)

    def _ends(self, queue: str, verb: str, message: Claimed, cancelled: bool) -> c.Command | None:
        if cancelled:
            self.both(c.Cancel(message.message_id))
        if verb == "purge":
            self.purge(queue, 2)
            return None
        if verb == "hot":  # a loop of releases, up to its limit where that is low
            for _ in range(2):
                self.both(c.Release(message.message_id, message.handle))
                [answer] = self.both(c.Lease(queue, 1, 5_000, "worker")).results
                if not isinstance(answer, c.Leased) or not answer.messages:
                    return None
                message = answer.messages[0]
            verb = "release"
        if verb in ("late", "lost"):
            self._time_passes(6)
            if verb == "lost":
                return None
            verb = "ack"
        return self._settle(verb, message.message_id, message.handle)

    @rule(queue=st.sampled_from(["fifo", "plain"]), limit=st.integers(1, 2))
    def dead_again(self, queue: str, limit: int) -> None:
        """A dead letter, redriven while another one is held by an operator."""
        for _ in range(2):
            [answer] = self.both(c.Publish(queue, [c.Entry(b"{}")]), c.Lease(queue, 1, 5_000)).results[1:]
            if isinstance(answer, c.Leased):
                self.both(*(c.Reject(m.message_id, m.handle) for m in answer.messages))
        self.both(c.Lease(f"{queue}.dlq", 1, 5_000), redrive(DeadFilter(queue=queue), limit, explicit=False))

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
        self._time_passes(seconds)
        self.both(c.Age())

    def _time_passes(self, seconds: float) -> None:
        left = seconds
        while left > 0:
            self.clock.pass_seconds(min(left, 4))
            left -= 4
            self.both(c.Tick(), c.Expire())

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
    def send_back(self, queue: str, count: int) -> None:
        """Send the oldest dead letters back."""
        self.both(redrive(DeadFilter(queue=queue), count, explicit=False))

    @rule(queue=NAMES, limit=st.integers(1, 3))
    def purge(self, queue: str, limit: int) -> None:
        """Purge to the end, in slices; which messages make a slice is each engine's own."""
        assert self._drained(self.real, queue, limit) == self._drained(self.model, queue, limit)

    @rule(queue=st.sampled_from(["fifo", "tight", "fifo.dlq", "tight.dlq"]))
    def delete(self, queue: str) -> None:
        """Delete a queue and make it anew in the batch that publishes to it; the rest goes later."""
        group = "a" if queue.startswith("fifo") else None
        again = [made for made in _made() if made.name == queue]
        publish = c.Publish(queue, [c.Entry(b"{}", group=group)])
        outcome = self.both(c.SetQueueState(queue, "deleting"), *again, publish)
        if isinstance(outcome.results[0], Queue):
            assert self._deleted(self.real) == self._deleted(self.model)

    def _deleted(self, rig: Rig) -> int:
        """Remove what deleted queues held; their new names hold a number of the engine's own."""
        [name] = rig.engine.read(lambda reader: reader.deleting(10))
        return self._drained(rig, name, 2, deleting=True)

    @staticmethod
    def _drained(rig: Rig, name: str, limit: int, *, deleting: bool = False) -> int:
        removed, more = 0, True
        while more:
            answer: c.Purged = rig.do(c.Purge(name, limit, deleting=deleting))
            removed, more = removed + answer.removed, answer.more
        return removed

    @rule(queue=st.sampled_from(QUEUES), state=st.sampled_from(["paused", "active", "active"]))
    def pause(self, queue: str, state: QueueState) -> None:
        """Pause or resume."""
        self.both(c.SetQueueState(queue, state))

    @rule(
        queue=st.sampled_from([*QUEUES, "plain", "plain.dlq"]),
        cause=st.sampled_from(
            [_CAUSE, _CAUSE, fingerprint("max_attempts", ""), fingerprint("lease_expired", "")]
        ),
        policy=st.sampled_from(["reject", "hold", "hold", "retry"]),
    )
    def judge_a_cause(self, queue: str, cause: str, policy: FingerprintPolicy) -> None:
        """Set what becomes of failures of one fingerprint."""
        self.both(set_policy(queue, cause, policy))

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

    @invariant()
    def states_agree(self) -> None:
        """Pages by state and counts tell what one message tells."""
        states(self.real, "fifo")

    def teardown(self) -> None:
        """The store is sound at the end."""
        try:
            assert self.engine.check() == []
        finally:
            self.engine.close()
            _LOG.setLevel(self._level)


def _made() -> list[c.CreateQueue]:
    quick = {"base_seconds": 2.0, "max_seconds": 20.0}
    return [
        c.CreateQueue("plain", None, None, {"max_retries": 1, "retry_policy": quick}),
        c.CreateQueue("fifo", "fifo", None, {"max_retries": 1, "retry_policy": quick}),
        c.CreateQueue("levels", None, None, {"enable_priority": True, "retention_seconds": 120}),
        c.CreateQueue("tight", None, None, {"max_retries": 0, "max_in_flight": 2, "max_per_second": 3.0}),
    ]
