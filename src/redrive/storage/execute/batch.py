"""The fixed order in which a batch is applied."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from redrive import seams
from redrive.domain.errors import RedriveError
from redrive.storage.commands import (
    Age,
    Command,
    CreateQueue,
    Expire,
    Lease,
    Prune,
    Publish,
    Purge,
    PutKey,
    SetQueueState,
    Tick,
    UpdateQueue,
    WriteAudit,
)  # fmt: skip
from redrive.storage.execute import plans, queues, upkeep
from redrive.storage.execute.lease import lease
from redrive.storage.execute.publish import publish
from redrive.storage.execute.settle import Deferred, quick_acks, settle
from redrive.storage.execute.workspace import Observer, Source, Workspace
from redrive.storage.plan_commands import AdvancePlan, ChangePlan, MakePlan, ResolvePlan, SealPlan
from redrive.storage.port import Hold, Transaction
from redrive.storage.values import StatsDelta


class Outcome(msgspec.Struct):
    """What a batch did. ``results`` in the order of the commands; each an answer, a ``RedriveError``, or
    ``Deferred``. ``due``: by queue name, the earliest due time of what was put there; ``stats`` by queue id;
    ``outage_ms`` what was taken out of the clock; ``now_ms`` the engine's time; ``judged`` whether a member
    of a redrive plan was settled.
    """

    results: list[object]
    due: dict[str, int]
    stats: dict[int, StatsDelta]
    outage_ms: int = 0
    now_ms: int = 0
    judged: bool = False


def _write_audit(work: Workspace, command: WriteAudit) -> None:
    work.tx.insert_audit([msgspec.structs.replace(command.row, at_ms=work.now_ms)])


def _put_key(work: Workspace, command: PutKey) -> None:
    work.tx.put_key(command.row)
    if command.audit is not None:
        work.tx.insert_audit([msgspec.structs.replace(command.audit, at_ms=work.now_ms)])


_UPKEEP: dict[type[Command], Callable[[Workspace, Any], object]] = {
    Expire: upkeep.expire,
    Age: upkeep.age,
    Purge: queues.purge,
}
# last of all: it holds any idle group, and from then on nobody may be waited for
_PRUNE: dict[type[Command], Callable[[Workspace, Any], object]] = {Prune: upkeep.prune}
# after everything that takes time: while a batch holds the tick, no other node can write its own
_TICK: dict[type[Command], Callable[[Workspace, Any], object]] = {Tick: upkeep.tick}
_QUEUES: dict[type[Command], Callable[[Workspace, Any], object]] = {
    CreateQueue: queues.create,
    UpdateQueue: queues.update,
    SetQueueState: queues.set_state,
    PutKey: _put_key,
    WriteAudit: _write_audit,
}
_CHANGES, _NAMING = UpdateQueue | SetQueueState | CreateQueue, UpdateQueue | CreateQueue
_REDRIVE: dict[type[Command], Callable[[Workspace, Any], object]] = {
    MakePlan: plans.make,
    SealPlan: plans.seal,
    ChangePlan: plans.change,
    ResolvePlan: plans.resolve_members,
    AdvancePlan: plans.advance,
}


def _first_queues(commands: Sequence[Command]) -> tuple[list[str], Hold]:
    """The first locks of a batch. Who changes a queue waits for all batches that decide by its old settings,
    and holds up those to come: what was decided by them is there to be seen, and nothing is added to it.
    All that the batch names is locked here, because nobody waits for a queue once groups are held.
    """
    names = [c.queue for c in commands if isinstance(c, Publish | Lease)]
    names += [c.name for c in commands if isinstance(c, Purge)]
    changed = [c.name for c in commands if isinstance(c, _CHANGES)]
    changed += [c.dead_letter_queue for c in commands if isinstance(c, _NAMING) and c.dead_letter_queue]
    return sorted({*names, *changed}), "alone" if changed else "leasing"


def apply(
    tx: Transaction, commands: Sequence[Command], observe: Observer | None = None, source: Source = seams
) -> Outcome:
    """Apply a batch inside one transaction."""
    names, hold = _first_queues(commands)
    acks = quick_acks(commands)
    tx.expect(names, hold, acks)
    outage_ms = upkeep.catch_up(tx)
    work = Workspace(tx, observe, source, acks)
    work.load_queues(names, hold)
    results: dict[int, object] = {}
    for phase in (settle, _UPKEEP, _QUEUES, publish, _REDRIVE, lease, _PRUNE, _TICK):
        if isinstance(phase, dict):
            results.update(_each(work, commands, phase))
        else:
            results.update(phase(work, commands))
        work.flush()
    due = {
        work.by_id[queue_id].name: due_ms for queue_id, due_ms in work.due.items() if queue_id in work.by_id
    }
    answers = [results[n] for n in range(len(commands))]
    return Outcome(answers, due, dict(work.stats), outage_ms, tx.now_ms, work.judged)


def _each(
    work: Workspace,
    commands: Sequence[Command],
    table: dict[type[Command], Callable[[Workspace, Any], object]],
) -> dict[int, object]:
    results: dict[int, object] = {}
    for position, command in enumerate(commands):
        use = table.get(type(command))
        if use is None:
            continue
        try:
            results[position] = use(work, command)
        except RedriveError as refusal:
            results[position] = refusal
        work.flush()
    return results


__all__ = ["Deferred", "Outcome", "apply"]
