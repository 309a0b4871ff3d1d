"""What time does: leases end, retention runs out, outages are taken out, finished bookkeeping goes."""

from __future__ import annotations

import logging

from redrive.domain import limits
from redrive.domain.decide import Case, decide
from redrive.domain.facts import Facts, Slot
from redrive.domain.states import Event
from redrive.storage.commands import Age, Expire, Forget, Prune, Tick
from redrive.storage.execute.fingerprints import policy_of_failure
from redrive.storage.execute.idempotency import slot_floor
from redrive.storage.execute.moves import carry_out
from redrive.storage.execute.workspace import Workspace
from redrive.storage.port import Transaction

STATS_SLOT_MS = 10_000
STATS_SLOTS_KEPT = 2 * 360  # two hours
_LOG = logging.getLogger("redrive.storage")


def expire(work: Workspace, command: Expire) -> int:
    """End the leases whose time is over; one slice."""
    rows = work.take_facts(work.tx.due_leases(command.limit))
    for facts in rows:
        work.stats[facts.queue_id].expired += 1
        _happen(work, Event.EXPIRE, facts)
    return len(rows)


def age(work: Workspace, command: Age) -> int:
    """Move or remove what has outlived its retention; one slice."""
    rows = work.take_facts(work.tx.aged(command.limit, dead=False))
    if command.dead and len(rows) < command.limit:
        rows += work.take_facts(work.tx.aged(command.limit - len(rows), dead=True))
    for facts in rows:
        _happen(work, Event.AGE, facts)
    return len(rows)


def forget(work: Workspace, command: Forget) -> int:
    """Remove dead letters over age that are archived, as they are."""
    work.load_facts(command.letters)
    removed = 0
    for message_id, checksum in sorted(command.letters.items()):
        facts = None if message_id in work.busy else work.facts.get(message_id)
        if facts is None or not facts.dead or facts.slot == Slot.LEASED:
            continue
        if facts.expires_ms <= work.now_ms and facts.body_hash == checksum:
            work.archives[message_id] = command.archive
            _happen(work, Event.AGE, facts)
            removed += 1
    return removed


def _happen(work: Workspace, event: Event, facts: Facts) -> None:
    case = Case(
        event, facts, work.queue_of(facts).policy, work.now_ms, work.source.draw(),
        cause_policy=policy_of_failure(work, event, facts),
    )  # fmt: skip
    carry_out(work, event, facts, decide(case))


def catch_up(tx: Transaction) -> int:
    """Take an outage out of everything that runs on monotonic time; the gap in ms (0: none).

    An outage is not the worker's fault: if the engine's clock is more than 5 s away from the last liveness
    tick (server down, failover, clock step), what was leased or backing off then is shifted by the gap. The
    new tick is written by the same transaction, so that it happens once. Runs before anything else. A batch
    that takes as long is an outage too where it is the store's only writer: nobody could extend meanwhile.
    """
    last_ms = tx.last_tick_ms()
    if last_ms is None:
        tx.write_tick(tx.now_ms)
        return 0
    gap_ms = tx.now_ms - last_ms
    if abs(gap_ms) <= limits.OUTAGE_GAP_MS:
        return 0
    rows = tx.shift(gap_ms, last_ms)
    if rows is None:
        return 0
    tx.write_tick(tx.now_ms)
    _LOG.warning("clock moved %d ms since the last tick; shifted %d leases and backoffs", gap_ms, rows)
    return gap_ms


def tick(work: Workspace, command: Tick) -> int:
    """The liveness tick, and this node's statistics with it."""
    work.tx.write_tick(work.now_ms)
    if command.stats:
        rows = [(queue_id, slot, raw) for (queue_id, slot), raw in sorted(command.stats.items())]
        work.tx.write_stats(command.node, rows)
    return 0


def prune(work: Workspace, command: Prune) -> int:
    """Remove one slice of bookkeeping that is over."""
    return work.tx.prune(
        command.limit,
        slot_floor(work.now_ms),
        work.now_ms - limits.DEAD_RETENTION_SECONDS * 1000,
        work.now_ms // STATS_SLOT_MS - STATS_SLOTS_KEPT,
    )
