"""Random work on a store beside the memory engine, which knows what the store must show after each step."""

from __future__ import annotations

import copy
import dataclasses
import random
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from redrive.domain.errors import RedriveError
from redrive.domain.fingerprint import error_info
from redrive.storage import commands as c
from redrive.storage.conformance import Clock
from redrive.storage.conformance.asking import redrive
from redrive.storage.conformance.picture import picture, plain
from redrive.storage.conformance.rig import Repeatable
from redrive.storage.execute import apply
from redrive.storage.memory import MemoryEngine
from redrive.storage.port import Engine
from redrive.storage.values import Claimed, DeadFilter

QUEUES = ("plain", "fifo", "levels")
_ERROR = error_info({"type": "Boom", "message": "payment 7 failed", "stack": "line 1"})
_QUICK = {"base_seconds": 2.0, "max_seconds": 20.0}
_DAY_MS = 86_400_000


@dataclasses.dataclass
class Act:
    """Commands of one batch, its ``name``, and the time at which it happens."""

    name: str
    now_ms: int
    commands: list[c.Command]


class Oracle:
    """The memory engine after these acts, and the ids and handles that it gave."""

    def __init__(self, history: Sequence[Act] = ()) -> None:
        self.clock = Clock()
        self.engine = MemoryEngine(self.clock)
        self.source = Repeatable()
        self.ids: list[str] = []
        self.leased: list[Claimed] = []
        for act in history:
            self.do(act)

    def do(self, act: Act) -> list[object]:
        """Apply; the answers."""
        self.clock.now_ms = act.now_ms
        commands = copy.deepcopy(act.commands)
        results = self.engine.run(lambda tx: apply(tx, commands, None, self.source)).results
        for result in results:
            if isinstance(result, c.Leased):
                self.leased = (self.leased + result.messages)[-8:]
            elif isinstance(result, list):
                published = [one.message_id for one in result if isinstance(one, c.Published)]
                self.ids += [message_id for message_id in published if message_id not in self.ids]
        return results

    def shown(self, now_ms: int) -> list[Any]:
        """What a store must show at this time."""
        self.clock.now_ms = now_ms
        return shown(self.engine, self.ids)


def shown(engine: Engine, ids: list[str]) -> list[Any]:
    """Everything that an engine shows to readers, of these messages also when they are gone."""
    return engine.read(lambda reader: picture(reader, ids))


def carry_out(engine: Engine, act: Act, source: Repeatable) -> list[object]:
    """Apply to a real engine."""
    commands = copy.deepcopy(act.commands)
    return engine.run(lambda tx: apply(tx, commands, None, source)).results


class Workload:
    """Acts, drawn one after the other from ``luck`` and what the oracle has answered so far."""

    def __init__(self, oracle: Oracle, luck: random.Random) -> None:
        self._oracle, self._luck = oracle, luck
        self._makers: list[tuple[int, Callable[[], tuple[str, list[c.Command]]]]] = [
            (8, self._publish), (6, self._lease), (5, self._ack), (3, self._nack), (3, self._reject),
            (2, self._give_back), (1, self._cancel), (3, self._redrive), (2, self._expire), (1, self._retire),
            (1, self._prune), (1, self._settings), (1, self._purge), (1, self._late), (3, self._mixed),
        ]  # fmt: skip

    def first(self) -> Act:
        """Make the queues."""
        commands: list[c.Command] = [
            c.CreateQueue("plain", None, None, {"max_retries": 1, "retry_policy": _QUICK}),
            c.CreateQueue("fifo", "fifo", None, {"max_retries": 0, "retry_policy": _QUICK}),
            c.CreateQueue("levels", None, None, {"enable_priority": True, "retention_seconds": 3600}),
        ]
        return self._at("create", commands)

    def act(self, name: str) -> Act:
        """One act of this name."""
        for _ in range(100_000):
            [(_, make)] = self._luck.choices(self._makers)
            drawn, commands = make()
            if drawn == name:
                return self._at(name, commands)
        raise ValueError(f"no act is named {name!r}")

    def acts(self, count: int) -> Iterator[Act]:
        """So many acts; each is drawn when the one before has been done."""
        for _ in range(count):
            weights = [weight for weight, _ in self._makers]
            [(_, make)] = self._luck.choices(self._makers, weights)
            name, commands = make()
            yield self._at(name, commands)

    def _at(self, name: str, commands: list[c.Command], later_ms: int | None = None) -> Act:
        pause_ms = self._luck.randint(0, 4_000) if later_ms is None else later_ms
        return Act(name, self._oracle.clock.now_ms + pause_ms, commands)

    def _entry(self, queue: str) -> c.Entry | RedriveError:
        luck = self._luck
        size = luck.choice((20, 100, 300, 1_500, 6_000))
        fifo = queue == "fifo"
        return c.Entry(
            b'{"data":"%s"}' % luck.randbytes(size // 2).hex().encode(),
            headers=luck.choice((None, b'{"trace":"abc"}')),
            job_key=luck.choice((None, f"job:{luck.randint(1, 999)}")),
            delay_ms=luck.choice((0, 0, 0, 5_000)),
            group=luck.choice("ab") if fifo else None,
            deduplication_id=luck.choice((None, f"d{luck.randint(1, 99)}")) if fifo else None,
            priority=luck.randint(0, 3) if queue == "levels" else None,
        )

    def _publish(self) -> tuple[str, list[c.Command]]:
        queue, luck = self._luck.choice(QUEUES), self._luck
        key = f"key-{luck.randint(1, 10**9)}"
        idempotent = c.Idempotent("queue.publish", key, luck.randbytes(8)) if luck.random() < 0.5 else None
        entries = [self._entry(queue) for _ in range(luck.randint(1, 4))]
        return "publish", [c.Publish(queue, entries, idempotent=idempotent)]

    def _lease(self) -> tuple[str, list[c.Command]]:
        queue = self._luck.choice((*QUEUES, *QUEUES, "plain.dlq", "fifo.dlq"))
        seconds = self._luck.choice((3, 30, 30))
        return "lease", [c.Lease(queue, self._luck.randint(1, 4), seconds * 1000, "worker")]

    def _delivery(self) -> tuple[str, str]:
        if not self._oracle.leased:
            return "00000000-0000-7000-8000-000000000000", "nobody"
        chosen = self._luck.choice(self._oracle.leased)
        return chosen.message_id, chosen.handle

    def _ack(self) -> tuple[str, list[c.Command]]:
        return "ack", [c.Ack([self._delivery() for _ in range(self._luck.randint(1, 3))])]

    def _nack(self) -> tuple[str, list[c.Command]]:
        return "nack", [c.Nack(*self._delivery(), error=_ERROR)]

    def _reject(self) -> tuple[str, list[c.Command]]:
        return "dead-letter", [c.Reject(*self._delivery(), error=_ERROR) for _ in range(2)]

    def _give_back(self) -> tuple[str, list[c.Command]]:
        if self._luck.random() < 0.5:
            return "release", [c.Release(*self._delivery())]
        return "extend", [c.Extend(*self._delivery(), visibility_ms=self._luck.choice((0, 9_000)))]

    def _cancel(self) -> tuple[str, list[c.Command]]:
        return "cancel", [c.Cancel(self._delivery()[0])]

    def _redrive(self) -> tuple[str, list[c.Command]]:
        queue = self._luck.choice(("plain", "fifo"))
        return "redrive", [redrive(DeadFilter(queue=queue), self._luck.randint(1, 3), explicit=False)]

    def _expire(self) -> tuple[str, list[c.Command]]:
        self._oracle.clock.now_ms += 4_000
        return "expire", [c.Tick(), c.Expire()]

    def _retire(self) -> tuple[str, list[c.Command]]:
        self._oracle.clock.now_ms += self._luck.choice((1, 31)) * _DAY_MS
        return "retention", [c.Age(), c.Expire()]

    def _prune(self) -> tuple[str, list[c.Command]]:
        self._oracle.clock.now_ms += 2 * _DAY_MS
        return "prune", [c.Tick(), c.Prune()]

    def _settings(self) -> tuple[str, list[c.Command]]:
        policy = self._luck.choice(("block", "continue"))
        return "settings", [c.UpdateQueue("fifo", {"fifo_on_dead": policy})]

    def _purge(self) -> tuple[str, list[c.Command]]:
        return "purge", [c.Purge(self._luck.choice(("levels", "plain.dlq")))]

    def _late(self) -> tuple[str, list[c.Command]]:
        self._oracle.clock.now_ms += 3_600_000
        return "outage", [c.Expire(), c.Ack([self._delivery()])]

    def _mixed(self) -> tuple[str, list[c.Command]]:
        made = (self._ack, self._nack, self._publish, self._lease)
        return "batch", [command for make in made for command in make()[1]]


def agree(found: list[object], wanted: list[object]) -> None:
    """The engine and the oracle answered the same: else it is the workload that is wrong, not the disk."""
    assert plain(found) == plain(wanted), f"{plain(found)}\n!=\n{plain(wanted)}"


def difference(found: list[Any], wanted: list[Any]) -> str:
    """The first thing in which two stores differ, in a few words."""
    for ours, theirs in zip(found, wanted, strict=False):
        if ours != theirs:
            return f"found {str(ours)[:300]}, wanted {str(theirs)[:300]}"
    return f"found {len(found)} things, wanted {len(wanted)}"


def write(image: dict[str, bytes], folder: Path) -> None:
    """Make the folder and put the files into it."""
    folder.mkdir()
    for name, data in image.items():
        (folder / name).write_bytes(data)
