"""An engine under an injected clock, with everything repeatable."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

from redrive.domain.errors import RedriveError
from redrive.domain.states import TRANSITIONS, Event, State
from redrive.storage import commands as c
from redrive.storage.execute import Outcome, apply
from redrive.storage.memory import MemoryEngine
from redrive.storage.port import Engine, Transaction
from redrive.storage.values import Claimed, QueueCounts, StoredMessage, Tombstone

Transition = tuple[State, Event, State]
START_MS = 1_800_000_000_000


def table() -> set[Transition]:
    """Every (from, event, to) of the transition table."""
    return {(source, event, to) for (source, event), targets in TRANSITIONS.items() for to in targets}


class Clock:
    """A clock that moves when told."""

    def __init__(self, now_ms: int = START_MS) -> None:
        self.now_ms = self.start_ms = now_ms

    def __call__(self) -> int:
        return self.now_ms

    def pass_seconds(self, seconds: float) -> None:
        """Let time go on."""
        self.now_ms += int(seconds * 1000)


class Repeatable:
    """Ids, handles and jitter from a counter: two engines given the same commands give the same answers."""

    def __init__(self) -> None:
        self._count = 0

    def _next(self) -> int:
        self._count += 1
        return self._count

    def message_ids(self, now_ms: int, count: int, /) -> list[str]:
        """Ids of the right form, ordered by their numbers."""
        head = f"{now_ms >> 16 & 0xFFFFFFFF:08x}-{now_ms & 0xFFFF:04x}-7000-8000"
        return [f"{head}-{self._next():012x}" for _ in range(count)]

    def receipt_handles(self, count: int) -> list[str]:
        """Handles that tell their numbers."""
        return [f"handle-{self._next():09d}" for _ in range(count)]

    def draw(self) -> float:
        """A fixed sequence in [0, 1)."""
        return (self._next() * 0.618034) % 1.0


def damage_memory(engine: MemoryEngine) -> Callable[[str], None]:
    """The way to damage a stored body of the memory engine."""

    def damage(message_id: str) -> None:
        row = engine.tables.messages[engine.tables.numbers[message_id]]
        row.body = row.body[:-1] + bytes([row.body[-1] ^ 1])

    return damage


class Rig:
    """Commands in, answers out. ``seen`` counts every transition that happened; ``observe`` hears them too.

    ``damage`` takes a message id and spoils its stored body: what a disk does.
    """

    def __init__(
        self,
        engine: Engine,
        clock: Clock,
        observe: Callable[[State, Event, State], None] | None = None,
        damage: Callable[[str], object] | None = None,
    ) -> None:
        self.engine = engine
        self.clock = clock
        self.seen: Counter[Transition] = Counter()
        self._heard = observe
        self._damage = damage
        self._source = Repeatable()

    def damage(self, message_id: str) -> None:
        """Spoil the stored body of this message behind the engine's back."""
        assert self._damage is not None, "this rig was made without a way to damage a body"
        self._damage(message_id)

    def _observe(self, source: State, event: Event, target: State) -> None:
        self.seen[source, event, target] += 1
        if self._heard is not None:
            self._heard(source, event, target)

    def batch(self, *commands: c.Command) -> Outcome:
        """Apply commands as one batch."""
        return self.engine.run(lambda tx: apply(tx, commands, self._observe, self._source))

    def do(self, command: c.Command) -> Any:
        """Apply one command; its answer, or its refusal raised."""
        answer = self.batch(command).results[0]
        if isinstance(answer, RedriveError):
            raise answer
        return answer

    def pass_seconds(self, seconds: float) -> None:
        """Let time go on with a living service: a tick every few seconds, so that no outage is seen."""
        left = seconds
        while left > 0:
            step = min(left, 4.0)
            self.clock.pass_seconds(step)
            self.do(c.Tick())
            left -= step

    def jump_seconds(self, seconds: float) -> None:
        """Let the clock move while nobody ticks: an outage, or a step of the clock."""
        self.clock.pass_seconds(seconds)

    def stall(self, seconds: float, command: c.Command) -> None:
        """Apply one command in a batch that takes so long."""

        def work(tx: Transaction) -> None:
            apply(tx, [command], self._observe, self._source)
            self.clock.pass_seconds(seconds)

        self.engine.run(work)

    def publish(self, queue: str = "jobs", body: bytes = b"{}", **fields: Any) -> str:
        """Publish one message; its id."""
        [answer] = self.do(c.Publish(queue, [c.Entry(body, **fields)]))
        if isinstance(answer, RedriveError):
            raise answer
        return str(answer.message_id)

    def lease(self, queue: str = "jobs", count: int = 10, seconds: float | None = 30) -> list[Claimed]:
        """Lease messages."""
        visibility_ms = None if seconds is None else int(seconds * 1000)
        answer: c.Leased = self.do(c.Lease(queue, count, visibility_ms, "consumer"))
        return answer.messages

    def ack(self, message: Claimed) -> bool:
        """Ack one delivery."""
        [answer] = self.do(c.Ack([(message.message_id, message.handle)]))
        if isinstance(answer, RedriveError):
            raise answer
        return bool(answer)

    def nack(self, message: Claimed, **fields: Any) -> c.Settled:
        """Nack one delivery."""
        answer: c.Settled = self.do(c.Nack(message.message_id, message.handle, **fields))
        return answer

    def create(
        self, name: str = "jobs", kind: str | None = None, dlq: str | None = None, **settings: Any
    ) -> None:
        """Make a queue with these settings."""
        self.do(c.CreateQueue(name, kind, dlq, settings))  # type: ignore[arg-type]

    def tombstone(self, message_id: str) -> Tombstone:
        """What is left of a message; it must be there."""
        found = self.engine.read(lambda reader: reader.tombstone(message_id))
        assert found is not None, f"no tombstone of {message_id}"
        return found

    def stored(self, message_id: str) -> StoredMessage:
        """A message as an operator sees it; it must be there."""
        found = self.engine.read(lambda reader: reader.message(message_id))
        assert found is not None, f"message {message_id} is gone"
        return found

    def counts(self, queue: str = "jobs") -> QueueCounts:
        """What the queue holds now; all zero when it does not exist."""

        def look(reader: Any) -> QueueCounts:
            found = reader.queue(queue)
            return QueueCounts() if found is None else reader.counts(found)

        return self.engine.read(look)
