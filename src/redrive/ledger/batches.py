"""Batches: a set of jobs with one follow-up, which is published once all of them are completed."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Generator, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from redrive import seams
from redrive.domain.errors import InvalidRequest
from redrive.ledger.batch_records import Batched
from redrive.ledger.countdown import ALARM, THEN, ended
from redrive.ledger.drivers.port import Mode
from redrive.ledger.errors import BatchClosed, BatchDiffers, BatchNotFound, LedgerRetry
from redrive.ledger.outbox import checked_queue, planned_row, slices
from redrive.ledger.records import Job
from redrive.ledger.states import BatchState, State
from redrive.ledger.steps import Program, Rows, Statement, Step
from redrive.ledger.transaction import framed
from redrive.ledger.values import checked_key, listed, text
from redrive.ledger.windows import Bounds, lost

NAMED_MAX: Final = 3
"""How many job keys an error names."""
_PAGE: Final = 1_000
_WRAP: Final = 2**256


@dataclass(frozen=True, slots=True)
class Plan:
    """A batch as its producer wants it. ``then`` and ``on_deadline`` go to ``then_queue``."""

    key: str
    queue: str
    then: Job | None
    then_queue: str
    deadline_ms: int | None
    on_deadline: Job | None
    window: Bounds | None
    producer: str

    def follow_ups(self) -> list[tuple[int, Job]]:
        """The jobs that the batch publishes by itself, by kind."""
        given = ((THEN, self.then), (ALARM, self.on_deadline))
        return [(kind, job) for kind, job in given if job is not None]


@dataclass(slots=True)
class _Members:
    """What adding members came to: the sum of their keys' hashes, how many are new, how many of them open."""

    sum: int = 0
    added: int = 0
    opened: int = 0
    keys: list[str] = field(default_factory=list)

    def seen(self, key: str) -> None:
        """One more key; its order does not matter to the sum."""
        self.sum = (self.sum + int.from_bytes(hashlib.sha256(key.encode()).digest())) % _WRAP


def create(dialect: str, mode: Mode, plan: Plan, jobs: Iterable[Job]) -> Program:
    """Make the batch of ``plan`` with ``jobs`` as members; answers :class:`Batched`. Jobs are read slice by
    slice."""
    checked_queue(plan.queue)
    checked_queue(plan.then_queue)
    checked_key(dialect, plan.key, "batch key")
    if plan.on_deadline is not None and plan.deadline_ms is None:
        raise InvalidRequest("on_deadline needs deadline=")
    if len({job.key for _, job in plan.follow_ups()}) < len(plan.follow_ups()):
        raise InvalidRequest("then and on_deadline must have job keys of their own")
    return framed(dialect, mode, _create(dialect, plan, iter(jobs)), read_committed=True)


def add(dialect: str, mode: Mode, key: str, jobs: Iterable[Job], queue: str | None, producer: str) -> Program:
    """Add ``jobs`` to the open batch ``key``; answers how many were no members yet."""
    checked_key(dialect, key, "batch key")
    if queue is not None:
        checked_queue(queue)
    return framed(dialect, mode, _add(dialect, key, iter(jobs), queue, producer), read_committed=True)


def _create(dialect: str, plan: Plan, jobs: Iterator[Job]) -> Generator[Step, Any, Batched]:
    batch = checked_key(dialect, plan.key)
    known: Rows = yield Statement("batch_get", {"batch": batch})
    if known.rows:
        return (yield from _again(dialect, plan, jobs, known.rows[0]))
    made: Rows = yield Statement("batch_add", _row(dialect, plan))
    if made.touched != 1:  # another producer made it meanwhile, and has committed
        known = yield Statement("batch_get", {"batch": batch})
        if not known.rows:
            raise LedgerRetry("another producer made the batch", hint="run the whole transaction again")
        return (yield from _again(dialect, plan, jobs, known.rows[0]))
    yield from _keep_follow_ups(dialect, plan)
    if plan.window is not None:
        attached: Rows = yield Statement("window_attach", {**plan.window.values(dialect), "batch": batch})
        if attached.touched != 1:
            raise lost(plan.window)
    found = yield from _members(dialect, plan.key, plan.queue, plan.producer, jobs)
    yield Statement("batch_grow", {**_grown(batch, found), "members_sum": f"{found.sum:x}"})
    state = BatchState.OPEN
    if found.opened == 0:  # nothing to wait for
        yield from ended(batch, *_window_of(dialect, plan))
        state = BatchState.COMPLETE
    return Batched(plan.key, True, state.name.lower(), found.added, found.opened)


def _row(dialect: str, plan: Plan) -> dict[str, Any]:
    window, start_us, end_us = _window_of(dialect, plan)
    return {
        "batch": checked_key(dialect, plan.key),
        "members_sum": "",
        "queue": plan.queue,
        "producer": plan.producer,
        "window": window,
        "start_us": start_us,
        "end_us": end_us,
        "deadline_ms": plan.deadline_ms,
        "alarm_ms": None if plan.on_deadline is None else plan.deadline_ms,
        "now_ms": seams.wall_ms(),
    }


def _window_of(dialect: str, plan: Plan) -> tuple[Any, int | None, int | None]:
    if plan.window is None:
        return None, None, None
    return checked_key(dialect, plan.window.name), plan.window.start_us, plan.window.end_us


def _grown(batch: str | bytes, found: _Members) -> dict[str, Any]:
    return {"batch": batch, "added": found.added, "opened": found.opened, "now_ms": seams.wall_ms()}


def _keep_follow_ups(dialect: str, plan: Plan) -> Generator[Step, Any, None]:
    wanted = [(kind, planned_row(job, 0)) for kind, job in plan.follow_ups()]
    if not wanted:
        return
    taken: Rows = yield Statement("members_known", {"keys": listed([row["key"] for _, row in wanted])})
    for known in taken.rows:
        raise InvalidRequest(
            f"batch {plan.key!r}: a follow-up needs a job key of its own, {text(known[0])!r} is a job already"
        )
    for kind, row in wanted:
        values = {"batch": checked_key(dialect, plan.key), "kind": kind, "queue": plan.then_queue}
        key = checked_key(dialect, row["key"])
        kept = {"job_key": key, "payload": row["payload"], "options": row["options"]}
        yield Statement("follow_up_add", {**values, **kept})


def _members(
    dialect: str, key: str, queue: str, producer: str, jobs: Iterator[Job]
) -> Generator[Step, Any, _Members]:
    """Plan what is new, attach what was known before; refuses members of other batches."""
    found = _Members()
    planned = (planned_row(job, place) for place, job in enumerate(jobs))
    now_ms = seams.wall_ms()
    for some in slices(planned):
        rows = {row["key"]: row for row in sorted(some, key=lambda row: row["key"].encode())}
        for name in rows:
            found.seen(name)
        before = yield from _known(key, list(rows))
        fresh = [row for name, row in rows.items() if name not in before]
        if fresh:
            values = {"queue": queue, "producer": producer, "now_ms": now_ms}
            batch = {"batch": checked_key(dialect, key)}
            answer: Rows = yield Statement("publish", {"jobs": listed(fresh), **values, **batch})
            if answer.touched != len(fresh):
                raise LedgerRetry(
                    f"batch {key!r}: another producer planned some of its jobs at the same time",
                    hint="run the whole transaction again",
                )
        loose = [name for name, (_, batch_of) in before.items() if batch_of is None]
        opened = yield from _attach(dialect, key, loose)
        found.added += len(fresh) + len(loose)
        found.opened += len(fresh) + opened
    return found


def _known(batch: str, names: list[str]) -> Generator[Step, Any, dict[str, tuple[int, str | None]]]:
    """{job key: (state, its batch)} of those that the ledger knows."""
    answer: Rows = yield Statement("members_known", {"keys": listed(names)})
    known = {text(row[0]): (int(row[1]), text(row[2])) for row in answer.rows}
    for name, (_, other) in known.items():
        if other not in (None, batch):
            raise BatchDiffers(
                f"job {name!r} cannot be a member of batch {batch!r}: it belongs to batch {other!r}"
            )
    return known


def _attach(dialect: str, key: str, loose: list[str]) -> Generator[Step, Any, int]:
    """Make jobs that were there before members; how many of them are not completed, now that they are
    locked."""
    if not loose:
        return 0
    answer: Rows = yield Statement(
        "members_attach", {"keys": listed(sorted(loose)), "batch": checked_key(dialect, key)}
    )
    if answer.touched != len(loose):
        raise LedgerRetry(
            f"batch {key!r}: some of its jobs became members of a batch at the same time",
            hint="run the whole transaction again",
        )
    states = yield from _known(key, loose)
    return sum(state != State.COMPLETED for state, _ in states.values())


def _add(
    dialect: str, key: str, jobs: Iterator[Job], queue: str | None, producer: str
) -> Generator[Step, Any, int]:
    batch = checked_key(dialect, key)
    known: Rows = yield Statement("batch_get", {"batch": batch})
    if not known.rows:
        raise unknown(key)
    if int(known.rows[0][1]) != BatchState.OPEN:
        raise closed(key, int(known.rows[0][1]), "takes no more members")
    found = yield from _members(dialect, key, queue or text(known.rows[0][5]), producer, jobs)
    if found.added:
        grown: Rows = yield Statement("batch_grow", {**_grown(batch, found), "members_sum": None})
        if grown.touched != 1:  # it ended while these were planned
            known = yield Statement("batch_get", {"batch": batch})
            state = int(known.rows[0][1]) if known.rows else BatchState.COMPLETE
            raise closed(key, state, "takes no more members")
    return found.added


def _again(
    dialect: str, plan: Plan, jobs: Iterator[Job], row: tuple[Any, ...]
) -> Generator[Step, Any, Batched]:
    """The batch is there: harmless when it was made from the same, else an error that names the
    difference."""
    _, state, members, open_members, members_sum, queue = row[:6]
    if text(queue) != plan.queue:
        raise _differs(plan.key, f"for queue {text(queue)!r}, not {plan.queue!r}")
    kept: Rows = yield Statement("follow_ups", {"batch": checked_key(dialect, plan.key)})
    then = {int(row[0]): text(row[1]) for row in kept.rows}
    for kind, given, name in ((THEN, plan.then, "then"), (ALARM, plan.on_deadline, "on_deadline")):
        wanted = None if given is None else given.key
        if then.get(kind) != wanted:
            raise _differs(plan.key, f"with {name}={then.get(kind)!r}, not {wanted!r}")
    given_members = _Members()
    for job in jobs:
        checked_key(dialect, job.key)
        given_members.seen(job.key)
        given_members.keys.append(job.key)
    if f"{given_members.sum:x}" != text(members_sum):
        yield from _compare(dialect, plan.key, set(given_members.keys))
    return Batched(plan.key, False, BatchState(int(state)).name.lower(), int(members), int(open_members))


def _compare(dialect: str, key: str, missing: set[str]) -> Generator[Step, Any, None]:
    """Raise BatchDiffers unless ``missing`` (given keys; emptied here) are the members as they are now."""
    extra: list[str] = []
    after = ""
    while True:
        page: Rows = yield members_page(dialect, key, after, State.PLANNED, State.CANCELLED, _PAGE)
        names = [text(row[0]) for row in page.rows]
        extra += [name for name in names if name not in missing]
        missing.difference_update(names)
        if len(names) < _PAGE:
            break
        after = names[-1]
    if missing or extra:
        sides = (("not among its members:", missing), ("members that are not given:", extra))
        parts = [f"{what} {len(some)} ({_first(some)})" for what, some in sides if some]
        raise _differs(key, f"with other jobs; {'; '.join(parts)}")


def _first(keys: Collection[str]) -> str:
    return ", ".join([*sorted(keys)[:NAMED_MAX], *(["…"] if len(keys) > NAMED_MAX else [])])


def members_page(dialect: str, key: str, after: str, first: State, last: State, limit: int) -> Statement:
    """The statement for a page of the members in the states from ``first`` to ``last``."""
    values = {"batch": checked_key(dialect, key), "after": after.encode() if dialect == "mysql" else after}
    return Statement(
        "batch_members", {**values, "first_state": int(first), "last_state": int(last), "limit": limit}
    )


def unknown(key: str) -> BatchNotFound:
    """The error for a key without a batch."""
    return BatchNotFound(f"there is no batch {key!r}", hint="`redrive ledger batches` lists them")


def closed(key: str, state: int, what: str) -> BatchClosed:
    """The error for a batch that has ended."""
    return BatchClosed(f"batch {key!r} is {BatchState(state).name.lower()}: it {what}")


def _differs(key: str, what: str) -> BatchDiffers:
    return BatchDiffers(
        f"batch {key!r} was made {what}",
        hint="late members are added with add_to_batch(); another set of jobs needs another batch key",
    )
