"""What a batch has read and is about to write: decisions change it here, ``flush`` writes it in sets."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Protocol, TypeVar

from redrive import seams
from redrive.domain import histogram, limits
from redrive.domain.facts import Change, Facts
from redrive.domain.policy import QueuePolicy
from redrive.domain.states import Event, State
from redrive.storage.plans import Verdict, judge
from redrive.storage.port import Hold, Transaction
from redrive.storage.values import (
    Attempt,
    Claimed,
    DeadLetter,
    Group,
    Kind,
    NewMessage,
    Queue,
    StatsDelta,
    Tombstone,
)  # fmt: skip

T = TypeVar("T")
_POSITIONS_A_MS = 1024
_KINDS: dict[bool | None, Kind] = {True: "fifo", False: "standard", None: "unset"}
Observer = Callable[[State, Event, State], None]


class Source(Protocol):
    """Where ids, handles and jitter come from; a proof puts a repeatable one in."""

    def message_ids(self, now_ms: int, count: int, /) -> list[str]:
        """Fresh message ids, UUIDs of version 7."""
        ...

    def receipt_handles(self, count: int) -> list[str]:
        """Fresh receipt handles."""
        ...

    def draw(self) -> float:
        """A uniform draw from [0, 1)."""
        ...


class Workspace:
    """One batch over one transaction. ``observe`` hears every (from, event, to) that happens; ``quick_acks``
    are the acks that can go first, in one statement."""

    def __init__(
        self,
        tx: Transaction,
        observe: Observer | None = None,
        source: Source = seams,
        quick_acks: Sequence[tuple[str, str]] = (),
    ) -> None:
        self.quick_acks = quick_acks
        self.tx = tx
        self.source = source
        self.now_ms = tx.now_ms
        self.observe = observe
        self.by_name: dict[str, Queue] = {}
        self.by_id: dict[int, Queue] = {}
        self.facts: dict[str, Facts | None] = {}
        self.busy: set[str] = set()
        self.stats: defaultdict[int, StatsDelta] = defaultdict(StatsDelta)
        self.due: dict[int, int] = {}  # queue id → the earliest due time of what this batch put there
        self.open_records: dict[str, DeadLetter] = {}
        self.inserts: list[NewMessage] = []
        self.removed: list[Facts] = []
        self.buried: list[DeadLetter] = []
        self.closed: list[DeadLetter] = []
        self.attempts: list[Attempt] = []
        self.tombstones: list[Tombstone] = []
        self.judged = False  # whether a member of a plan was among them
        self.verdicts: list[Verdict] = []  # on messages that were redriven: a plan may wait for them
        self._changed: dict[str, tuple[Change, Facts]] = {}
        self._groups: dict[int, Group] = {}
        self._stale: set[int] = set()  # groups whose head must be looked up before they are written
        self._dirty: set[int] = set()  # groups that must be written
        self._heads: dict[int, int | None] = {}  # of groups as they are written: the first at rest

    # -- reading
    def load_queues(self, names: Iterable[str], hold: Hold = "shared") -> None:
        """Read and lock the queues of these names, once."""
        missing = sorted(set(names) - self.by_name.keys())
        if missing:
            for queue in self.tx.queues(missing, hold).values():
                self.keep_queue(queue)

    def queue_of(self, facts: Facts) -> Queue:
        """The queue that the message stands in."""
        queue = self.by_id.get(facts.queue_id)
        if queue is None:
            queue = self.tx.queues_by_id([facts.queue_id])[facts.queue_id]
            self.keep_queue(queue)
        return queue

    def keep_queue(self, queue: Queue) -> Queue:
        """Remember a queue that was read or made."""
        self.by_name[queue.name] = queue
        self.by_id[queue.id] = queue
        return queue

    def create_queue(self, name: str, *, fifo: bool | None, holds_dead: bool, policy: QueuePolicy) -> Queue:
        """Make an implicit queue; ``fifo`` None: of a kind that its first message decides."""
        queue = Queue(
            id=0, name=name, kind=_KINDS[fifo], state="active", policy=policy,
            dead_letter_queue=None, implicit=True, holds_dead=holds_dead, created_ms=self.now_ms,
        )  # fmt: skip
        return self.keep_queue(self.tx.insert_queue(queue))

    def set_kind(self, queue: Queue, *, fifo: bool) -> None:
        """Decide the kind of a queue that a consume has made, before the first message goes into it."""
        if queue.kind == "unset":
            queue.kind = _KINDS[fifo]
            self.tx.update_queue(queue)

    def dead_letter_queue(self, source: Queue) -> Queue:
        """Where the dead letters of ``source`` go, made on first use."""
        name = source.dead_letter_name
        self.load_queues([name])
        queue = self.by_name.get(name)
        if queue is None:
            policy = QueuePolicy(retention_seconds=limits.DEAD_RETENTION_SECONDS)
            return self.create_queue(name, fifo=source.grouped, holds_dead=True, policy=policy)
        self.set_kind(queue, fifo=source.grouped)
        if not queue.holds_dead:  # somebody published there before the first dead letter came
            queue.holds_dead = True
            if queue.implicit:
                retention = max(queue.policy.retention_seconds, limits.DEAD_RETENTION_SECONDS)
                queue.policy = replace(queue.policy, retention_seconds=retention)
            self.tx.update_queue(queue)
        return queue

    def load_facts(self, message_ids: Iterable[str], beside: Iterable[tuple[int, str]] = ()) -> None:
        """Lock and read these messages, once; their groups are locked together with those ``beside``."""
        missing = sorted(set(message_ids) - self.facts.keys())
        if not missing:
            return
        locked = self.tx.lock(missing, sorted(set(beside)))
        self.busy |= locked.busy
        for message_id in missing:
            if message_id not in locked.busy:
                self.facts[message_id] = locked.facts.get(message_id)
        self._after_facts(locked.facts.values())

    def take_facts(self, rows: Iterable[Facts]) -> list[Facts]:
        """Take in rows that a selection has locked."""
        taken = list(rows)
        for facts in taken:
            self.facts[facts.message_id] = facts
        self._after_facts(taken)
        return taken

    def _after_facts(self, rows: Iterable[Facts]) -> None:
        rows = list(rows)
        groups = sorted({f.group_id for f in rows if f.group_id is not None} - self._groups.keys())
        if groups:
            self._groups.update(self.tx.groups_by_id(groups))
        queues = sorted({f.queue_id for f in rows} - self.by_id.keys())
        if queues:
            for queue in self.tx.queues_by_id(queues).values():
                self.keep_queue(queue)
        dead = [f.message_id for f in rows if f.dead]
        if dead:
            self.open_records.update(self.tx.open_records(dead))

    def group(self, group_id: int) -> Group:
        """A group that was read with its messages."""
        return self._groups[group_id]

    def heads_taken(self, rows: Iterable[Claimed]) -> None:
        """The store has marked these rows' groups as busy; groups read before follow."""
        for row in rows:
            group = self._groups.get(row.group_id or 0)
            if group is not None:
                group.busy, group.head_due_ms = row.id, None

    def load_groups(self, keys: Iterable[tuple[int, str]]) -> dict[tuple[int, str], Group]:
        """The groups of these keys, made if need be; in the order that locks without deadlocks."""
        found = self.tx.groups(sorted(set(keys)))
        groups = {key: self._groups.setdefault(group.id, group) for key, group in found.items()}
        for group in groups.values():
            if (
                group.next_position == 1
            ):  # new, or made anew after it was pruned while a dead letter was away:
                group.next_position = self.now_ms * _POSITIONS_A_MS  # places never come twice
        return groups

    # -- changing
    def mark(self, facts: Facts, change: Change) -> None:
        """The row of these facts must be written; of several changes the greatest counts."""
        known = self._changed.get(facts.message_id)
        if known is None or known[0] < change:
            self._changed[facts.message_id] = (change, facts)

    def mark_group(self, group: Group, *, stale: bool = True) -> None:
        """The group must be written; ``stale``: its head must be looked up first."""
        self._dirty.add(group.id)
        if stale:
            self._stale.add(group.id)

    def unblock(self, origin: str) -> None:
        """No open dead letter of this source holds its group; a later close must not free another's."""
        self.tx.unblock(origin)
        for record in self.open_records.values():
            if record.origin == origin:
                record.blocks = False

    def wake(self, queue_id: int, due_ms: int) -> None:
        """Something in this queue is due then; waiting consumers want to know."""
        known = self.due.get(queue_id)
        if known is None or due_ms < known:
            self.due[queue_id] = due_ms

    def count_ack(self, queue_id: int, attempt: int, leased_ms: int, count: int = 1) -> None:
        """Statistics of finished messages."""
        delta = self.stats[queue_id]
        delta.acked += count
        delta.service_total_ms += max(0, self.now_ms - leased_ms) * count
        delta.attempts_settled[attempt] = delta.attempts_settled.get(attempt, 0) + count
        index = histogram.bucket(self.now_ms - leased_ms)
        delta.service_ms[index] = delta.service_ms.get(index, 0) + count

    # -- writing
    def flush(self) -> None:
        """Write everything that was changed, in sets, and look up the heads of the groups touched."""
        tx = self.tx
        _write(self.inserts, tx.insert)
        _write(self.attempts, tx.insert_attempts)
        _write(self.closed, tx.close_records)
        _write(self.buried, tx.insert_dead)
        _write(self.tombstones, tx.insert_tombstones)
        _write(self.removed, tx.remove)
        if self._changed:
            for kind, move in (
                (Change.TOUCH, tx.touch),
                (Change.RESCHEDULE, tx.reschedule),
                (Change.TRANSFER, tx.transfer),
            ):
                rows = [facts for change, facts in self._changed.values() if change is kind]
                if rows:
                    move(rows)
            self._changed.clear()
        if self._dirty:
            self._write_groups()
        if self.verdicts:
            self._write_verdicts()

    def _write_verdicts(self) -> None:
        items = self.tx.open_items(sorted({verdict.message_id for verdict in self.verdicts}))
        for verdict in self.verdicts:
            if verdict.message_id in items:
                judge(items[verdict.message_id], verdict, self.now_ms)
        self.tx.write_items(list(items.values()))
        self.judged = self.judged or bool(items)
        self.verdicts.clear()

    def at_head(self, facts: Facts) -> bool:
        """Whether it has no group, or was the first in a free one at the last ``flush``."""
        number = facts.group_id
        if number is None:
            return True
        if number not in self._heads:
            head = None if self._groups[number].head_due_ms is None else self.tx.head(number)
            self._heads[number] = None if head is None else head[0]
        return self._heads[number] == facts.id

    def _write_groups(self) -> None:
        self._heads.clear()
        for group_id in sorted(self._stale):
            group = self._groups[group_id]
            held = group.blocked or group.busy is not None or not group.live
            head = None if held else self.tx.head(group_id)
            self._heads[group_id] = None if head is None else head[0]
            group.head_due_ms = None if head is None else head[1]
            if group.head_due_ms is not None:
                self.wake(group.queue_id, group.head_due_ms)
        self.tx.write_groups([self._groups[group_id] for group_id in sorted(self._dirty)])
        self._stale.clear()
        self._dirty.clear()


def _write(pending: list[T], write: Callable[[Sequence[T]], None]) -> None:
    if pending:
        write(tuple(pending))
        pending.clear()
