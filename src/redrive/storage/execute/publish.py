"""Publishing: idempotency, deduplication, groups; one insert for the whole batch."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import msgspec

from redrive.domain import limits
from redrive.domain.errors import InvalidRequest, LimitExceeded, QueueNotFound, RedriveError, error_from
from redrive.domain.facts import Slot
from redrive.domain.policy import QueuePolicy
from redrive.storage.commands import Command, Entry, Publish, Published
from redrive.storage.execute.idempotency import Answers
from redrive.storage.execute.moves import publish as insert
from redrive.storage.execute.moves import publish_in_group as insert_in_group
from redrive.storage.execute.workspace import Workspace
from redrive.storage.values import NewMessage, Queue, body_hash

Results = list[Published | RedriveError]


class Window:
    """Deduplication in the batch: what the store knows, and what this batch has added."""

    def __init__(self, work: Workspace, keys: set[tuple[int, bytes]]) -> None:
        self._known = work.tx.find_duplicates(sorted(keys)) if keys else {}
        self._new: dict[tuple[int, bytes], str] = {}

    def first(self, key: tuple[int, bytes]) -> str | None:
        """The message id that this key was first seen with."""
        return self._known.get(key) or self._new.get(key)

    def add(self, key: tuple[int, bytes], message_id: str) -> None:
        """This batch publishes under the key."""
        self._new[key] = message_id

    def flush(self, work: Workspace) -> None:
        """Store what was added."""
        until = work.now_ms + limits.DEDUPLICATION_SECONDS * 1000
        rows = [(queue_id, key, mid, until) for (queue_id, key), mid in sorted(self._new.items())]
        if rows:
            work.tx.insert_duplicates(rows)


def publish(work: Workspace, commands: Sequence[Command]) -> dict[int, object]:
    """Results by position in ``commands``; other commands are left out."""
    wanted = [(n, c) for n, c in enumerate(commands) if isinstance(c, Publish)]
    if not wanted:
        return {}
    results: dict[int, object] = {}
    ready: list[tuple[int, Publish, Queue]] = []
    for position, command in wanted:
        try:
            found = _queue_for(work, command)
        except RedriveError as refusal:
            results[position] = refusal
            continue
        if isinstance(found, Queue):
            ready.append((position, command, found))
        else:
            results[position] = found
    batch = _Batch(work, ready)
    for position, command, queue in ready:
        try:
            results[position] = batch.publish(command, queue)
        except RedriveError as refusal:
            results[position] = refusal
    batch.flush()
    return results


def published_groups(work: Workspace, commands: Sequence[Command]) -> list[tuple[int, str]]:
    """The FIFO groups that the batch publishes into, of queues that are there already."""
    publishes = ((work.by_name.get(c.queue), c) for c in commands if isinstance(c, Publish))
    return [
        (queue.id, entry.group or "")
        for queue, command in publishes
        if queue is not None and queue.grouped
        for entry in command.entries
        if isinstance(entry, Entry)
    ]


def _queue_for(work: Workspace, command: Publish) -> Queue | list[RedriveError]:
    """The queue, made by the first entry that it takes; the refusals when there is none and it takes none."""
    queue = work.by_name.get(command.queue)
    if queue is not None and queue.kind != "unset":
        return queue
    if queue is None and not command.auto_create:
        raise QueueNotFound(f"queue {command.queue} is not found")
    fifo = any(isinstance(e, Entry) and e.group is not None for e in command.entries)
    policy = QueuePolicy() if queue is None else queue.policy
    refusals = [_refusal(entry, command.queue, fifo, policy) for entry in command.entries]
    if None not in refusals:
        return [refusal for refusal in refusals if refusal is not None]
    if queue is None:
        return work.create_queue(command.queue, fifo=fifo, holds_dead=False, policy=policy)
    work.set_kind(queue, fifo=fifo)
    return queue


def _keys(ready: Sequence[tuple[int, Publish, Queue]]) -> list[tuple[int, object]]:
    keys: list[tuple[int, object]] = []
    for _, command, queue in ready:
        if command.idempotent is not None:
            keys.append((queue.id, command.idempotent))
        keys.extend(
            (queue.id, entry.idempotent)
            for entry in command.entries
            if isinstance(entry, Entry) and entry.idempotent is not None
        )
    return keys


class _Batch:
    """What the publishes of one batch share: earlier answers, the deduplication window, groups, fresh ids."""

    def __init__(self, work: Workspace, ready: Sequence[tuple[int, Publish, Queue]]) -> None:
        self._work = work
        self._answers = Answers(work)
        self._answers.load(_keys(ready))
        keys = {key for _, c, q in ready if q.grouped for e in c.entries if (key := _dedup_key(q, e))}
        self._window = Window(work, keys)
        self._groups = work.load_groups(
            (q.id, e.group or "") for _, c, q in ready if q.grouped for e in c.entries if isinstance(e, Entry)
        )
        count = sum(len(command.entries) for _, command, _ in ready)
        self._fresh_id = iter(work.source.message_ids(work.now_ms, count)).__next__

    def publish(self, command: Publish, queue: Queue) -> Results:
        """The outcome of each entry; raises what refuses the request as a whole."""
        if command.idempotent is not None:
            stored = self._answers.find(queue.id, command.idempotent)
            if stored is not None:
                return _replayed(stored)
        results = self._grouped(command, queue) if queue.grouped else self._plain(command, queue)
        if command.idempotent is not None and any(isinstance(r, Published) for r in results):
            self._answers.add(queue.id, command.idempotent, _stored(results))
        return results

    def flush(self) -> None:
        """Store what later requests are to find."""
        self._window.flush(self._work)
        self._answers.flush()

    def _grouped(self, command: Publish, queue: Queue) -> Results:
        return [self._result(entry, queue) for entry in command.entries]

    def _plain(self, command: Publish, queue: Queue) -> Results:
        """As above, of a standard queue: entries that ask for nothing else share what is the same for all."""
        work, fresh_id, now_ms, queue_id = self._work, self._fresh_id, self._work.now_ms, queue.id
        retention_ms = queue.policy.retention_seconds * 1000
        expires_ms, with_priority = now_ms + retention_ms, queue.policy.enable_priority
        first_due_ms = expires_ms
        rows: list[NewMessage] = []
        results: Results = []
        for entry in command.entries:
            if (
                type(entry) is not Entry
                or entry.idempotent is not None
                or entry.group is not None
                or entry.deduplication_id is not None
                or entry.delay_ms > retention_ms
            ):
                insert(work, queue_id, rows, first_due_ms)  # those before it stay before it
                rows = []
                results.append(self._result(entry, queue))
                continue
            message_id, job_key, headers, body = fresh_id(), entry.job_key, entry.headers, entry.body
            due_ms = now_ms + entry.delay_ms
            first_due_ms = min(first_due_ms, due_ms)
            priority = (entry.priority or 0) if with_priority else 0
            checksum = body_hash(message_id, job_key, headers, body)
            rows.append(
                NewMessage(
                    message_id, queue_id, Slot.READY, priority, due_ms, expires_ms,
                    None, 0, job_key, now_ms, headers, body, checksum,
                )
            )  # fmt: skip
            results.append(Published(message_id))
        insert(work, queue_id, rows, first_due_ms)
        return results

    def _result(self, entry: Entry | RedriveError, queue: Queue) -> Published | RedriveError:
        refusal = _refusal(entry, queue.name, queue.grouped, queue.policy)
        if refusal is not None:
            return refusal
        assert isinstance(entry, Entry)
        try:
            return self._entry(entry, queue)
        except RedriveError as reused:
            return reused

    def _entry(self, entry: Entry, queue: Queue) -> Published:
        if entry.idempotent is not None:
            stored = self._answers.find(queue.id, entry.idempotent)
            if stored is not None:
                first = _replayed(stored)[0]
                assert isinstance(first, Published)
                return first
        key = _dedup_key(queue, entry)
        first_id = self._window.first(key) if key else None
        if first_id is not None:
            result = Published(first_id, duplicate=True)
        else:
            result = Published(self._insert(entry, queue))
            if key:
                self._window.add(key, result.message_id)
        if entry.idempotent is not None:
            self._answers.add(queue.id, entry.idempotent, _stored([result]))
        return result

    def _insert(self, entry: Entry, queue: Queue) -> str:
        now_ms = self._work.now_ms
        message_id = self._fresh_id()
        group = self._groups[queue.id, entry.group or ""] if queue.grouped else None
        position = 0
        if group is not None:
            position = group.next_position
            group.next_position += 1
        row = NewMessage(
            message_id,
            queue.id,
            Slot.READY if group is None else Slot.IN_GROUP,
            (entry.priority or 0) if queue.policy.enable_priority else 0,
            now_ms + entry.delay_ms,
            now_ms + queue.policy.retention_seconds * 1000,
            None if group is None else group.id,
            position,
            entry.job_key,
            now_ms,
            entry.headers,
            entry.body,
            body_hash(message_id, entry.job_key, entry.headers, entry.body),
        )
        if group is None:
            insert(self._work, queue.id, [row], row.due_ms)
        else:
            insert_in_group(self._work, row, group)
        return message_id


def _refusal(
    entry: Entry | RedriveError, queue: str, grouped: bool, policy: QueuePolicy
) -> RedriveError | None:
    """Why a queue of this kind does not take the entry; None when it does."""
    if isinstance(entry, RedriveError):
        return entry
    if grouped:
        if entry.priority:
            return InvalidRequest(f"priority is not possible on the FIFO queue {queue}; order is by group")
    elif entry.group is not None:
        return InvalidRequest(f"message_group_id needs a FIFO queue; {queue} is a standard queue")
    elif entry.deduplication_id is not None:
        return InvalidRequest(f"deduplication_id needs a FIFO queue; {queue} is a standard queue")
    retention = policy.retention_seconds
    if entry.delay_ms > retention * 1000:
        return LimitExceeded(
            f"delay_seconds must be at most the queue's retention of {retention}, "
            f"got {entry.delay_ms / 1000:g}"
        )
    return None


def _dedup_key(queue: Queue, entry: Entry | RedriveError) -> tuple[int, bytes] | None:
    if not queue.grouped or isinstance(entry, RedriveError):
        return None
    if entry.deduplication_id is not None:
        subject = b"id\x00" + entry.deduplication_id.encode()
    elif queue.policy.content_deduplication:
        subject = b"body\x00" + entry.body
    else:
        return None
    return queue.id, hashlib.sha256(subject).digest()[:16]


def _stored(results: Results) -> bytes:
    """The smallest answer: per entry the message id, or the refusal's code and message."""
    return msgspec.json.encode(
        [
            [r.message_id, r.duplicate]
            if isinstance(r, Published)
            else {"code": r.code, "message": r.message}
            for r in results
        ]
    )


def _replayed(stored: bytes) -> Results:
    return [
        error_from(r["code"], r["message"]) if isinstance(r, dict) else Published(r[0], r[1], replayed=True)
        for r in msgspec.json.decode(stored)
    ]
