"""The worst steady states of the Speed table: full stores, old snapshots, failures, storms, idle callers.

At ``work`` of 60 and more a row has the table's size; below, its stores are smaller in proportion, and its
notes say so.
"""

from __future__ import annotations

import contextlib
import functools
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Literal

from bench import recovering
from bench import steady_cycles as cycles
from bench import steady_served as served
from bench import steady_server as process
from bench.rows import Figure, Row, Settings
from bench.steady_stores import Fill, Kind, Stores, blocked, crowd, empty, recorded

MILLION = 1_000_000
FULL_WORK = 60  # rounds from which on a row has the table's size
_SMALL = 1_000  # messages of the store that a full one is held against
_CHURNED = 25  # messages of a lease under the old snapshot: enough for the churn that is asked for
_SAMPLES = 500  # leases of one side in a pair
_LIMIT_SECONDS = 600
Measure = Callable[["Scale", Stores, Kind], Figure]


class Scale:
    """The sizes of a run."""

    def __init__(self, settings: Settings) -> None:
        self.pairs, self.rounds = settings.pairs, settings.work
        self._share = min(1.0, settings.work / FULL_WORK)

    def of(self, full: int, least: int = 200) -> int:
        """A number of rows."""
        return max(min(full, least), int(full * self._share))

    def seconds(self, full: float, least: float = 0.25) -> float:
        """A length of time."""
        return max(least, full * self._share)

    @property
    def note(self) -> str:
        """What a reader of the figure must know."""
        return "" if self._share == 1 else f"sizes are {self._share:.1%} of the table's; "


@contextlib.contextmanager
def _limited() -> Iterator[None]:
    """A row ends in time, whatever it waits for."""

    def over(*_: object) -> None:
        raise TimeoutError(f"the row took longer than {_LIMIT_SECONDS} s")

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGALRM, over)
    signal.alarm(_LIMIT_SECONDS)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def _row(
    name: str,
    what: str,
    wanted: float,
    better: Literal["at least", "at most"],
    measure: Measure,
    *kinds: Kind,
) -> list[Row]:
    """One row for each engine."""

    def bound(kind: Kind) -> Callable[[Settings], Figure]:
        def run(settings: Settings) -> Figure:
            url = settings.need_postgres() if kind == "postgres" else None
            with _limited(), Stores(settings.folder, url) as stores:
                return measure(Scale(settings), stores, kind)

        return run

    title = {"sqlite": "SQLite", "postgres": "PostgreSQL"}
    return [Row(f"{name}-{kind}", f"{title[kind]}: {what}", wanted, better, bound(kind)) for kind in kinds]


def _lease(full: Callable[[Scale], Fill], small: Fill, scale: Scale, stores: Stores, kind: Kind) -> Figure:
    with stores.open(kind, "full", full(scale)) as ours, stores.open(kind, "small", small) as theirs:
        pairs = cycles.side_by_side(
            cycles.Cycle(ours), cycles.Cycle(theirs), scale.pairs, scale.of(_SAMPLES, 50)
        )
    return Figure.of("ms", pairs, f"{scale.note}p99 of leases of {cycles.BATCH}, each a commit")


def _crowd(scale: Scale) -> Fill:
    return crowd(scale.of(MILLION), scale.of(MILLION), scale.of(MILLION // 5))


def _blocked(scale: Scale) -> Fill:
    return blocked(scale.of(MILLION), _SMALL)


def _old_snapshot(scale: Scale, stores: Stores, kind: Kind) -> Figure:
    with (
        stores.open(kind, "full", _crowd(scale)) as ours,
        stores.open(kind, "small", crowd(_SMALL, 0, 0)) as theirs,
        stores.snapshot("full"),
    ):
        aged = scale.of(1_200_000, 20_000)
        before = cycles.churn(ours, aged, tick_every=2_000)
        cycle = cycles.Cycle(ours, _CHURNED)
        pairs = cycles.side_by_side(
            cycle, cycles.Cycle(theirs, _CHURNED), scale.pairs, scale.of(_SAMPLES, 50)
        )
    return Figure.of(
        "ms",
        pairs,
        f"{scale.note}the snapshot is older than {aged:,} churned messages and {aged // 2_000} ticks (at "
        f"2,000/s 1,200,000 and 600 are 10 minutes; these came at {before:,.0f}/s), and {cycle.churn:,.0f}/s "
        f"go on in its turns; leases of {_CHURNED}; the other side has 1,000 messages and no snapshot",
    )


def _nacks(scale: Scale, stores: Stores, kind: Kind) -> Figure:
    with stores.open(kind, "settle", crowd(_SMALL, 0, 0)) as engine:
        pairs = cycles.settle_rates(engine, scale.pairs, scale.rounds)
    return Figure.of("/s", pairs, "leases and settles of 100; each nack with an error, and its backoff")


def _keyed(scale: Scale, stores: Stores, kind: Kind) -> Figure:
    many = scale.of(10 * MILLION, 50_000)
    with (
        stores.open(kind, "full", empty, *recorded(kind, many)) as ours,
        stores.open(kind, "small", empty, *recorded(kind, 10_000)) as theirs,
    ):
        pairs = cycles.keyed_rates(ours, theirs, scale.pairs, scale.rounds)
    return Figure.of("/s", pairs, f"{scale.note}{many:,} records; batches of 100, each message with its key")


def _purge(scale: Scale, stores: Stores, kind: Kind) -> Figure:
    stores.fill(kind, "purge", crowd(scale.of(MILLION, 20_000), 0, 0))
    with served.serving(stores, kind, "purge") as service:
        seconds = scale.seconds(4.0)
        pairs, removed = served.during_purge(service, scale.pairs, seconds)
    return Figure.of(
        "ms",
        pairs,
        f"{scale.note}p99 of single publishes in an open loop; {removed:,} were purged in {len(pairs)} turns "
        f"of {seconds:g} s",
    )


def _expiry(scale: Scale, stores: Stores, kind: Kind) -> Figure:
    leases = scale.of(MILLION // 10, 2_000)
    stores.fill(kind, "expiry", empty)
    with served.serving(stores, kind, "expiry") as service:
        pairs, rate = served.during_expiry(service, scale.pairs, leases, scale.seconds(4.0, 1.0))
    return Figure.of(
        "ms",
        pairs,
        f"{scale.note}p99 of single publishes in an open loop; {leases:,} leases run out at once before each "
        f"turn, {rate:,.0f} were ended a second",
    )


def _failing(scale: Scale, stores: Stores, kind: Kind) -> Figure:
    stores.fill(kind, "failing", empty)
    with served.serving(stores, kind, "failing") as service:
        pairs, failed, done = served.during_failures(service, scale.pairs, scale.seconds(4.0, 1.0))
    return Figure.of(
        "ms",
        pairs,
        f"p99 of single publishes in an open loop; one worker beside them at full speed, {failed:,.0f}/s "
        f"fail, {done:,.0f}/s succeed",
    )


def _recovering(measure: Callable[..., Figure], scale: Scale, stores: Stores, kind: Kind) -> Figure:
    dead = scale.of(100_000, 2_000)
    return measure(stores, kind, dead, scale.pairs, scale.seconds(8.0, 1.0), scale.note)


def _idle(what: Literal["cpu", "queries"], scale: Scale, stores: Stores, kind: Kind) -> Figure:
    url = stores.fill(kind, "idle", empty)
    count = functools.partial(stores.transactions, "idle") if kind == "postgres" else None
    polls, waits = scale.of(1_000, 50), scale.seconds(20.0, 2.0)
    found = process.idle_polls(url, polls, waits, scale.seconds(8.0, 4.0), scale.pairs, count)
    sent = f"{scale.note}{polls} polls of {waits:g} s at 10 queues, each sent again when it ends"
    if what == "cpu":
        percent = [100 * share for share in found.cpu]
        return Figure.alone("% of a core", percent, f"{sent}; without them {100 * found.cpu_alone:.1f} %")
    notes = f"{sent}; transactions beyond the {found.transactions_alone:.1f}/s of a server alone"
    return Figure.alone("/s", [rate - found.transactions_alone for rate in found.transactions], notes)


def _memory(scale: Scale, stores: Stores, kind: Kind) -> Figure:
    url = stores.fill(kind, "full", _crowd(scale))
    largest, fresh = process.memory(url, max(5, scale.rounds))
    notes = f"{scale.note}largest resident size during batches, pages and numbers; {fresh:.0f} MiB when ready"
    return Figure.alone("MiB", [largest], notes)


def _recovery(scale: Scale, stores: Stores, _kind: Kind) -> Figure:
    size = scale.of(256 * process.MIB, 8 * process.MIB)
    found = process.recovery(stores.folder, size, scale.pairs)
    return Figure.alone("s", found, f"{size // process.MIB} MiB of log; from exec to /readyz, after kill -9")


_FULL = "1,000,000 waiting + 1,000,000 delayed at a higher priority + 200,000 dead"
_lease_crowd = functools.partial(_lease, _crowd, crowd(_SMALL, 0, 0))
_lease_blocked = functools.partial(_lease, _blocked, blocked(0, _SMALL))
BOTH: Sequence[Kind] = ("sqlite", "postgres")
ROWS: list[Row] = [
    *_row("lease-full", f"lease p99 with {_FULL}, against 1,000", 1.5, "at most", _lease_crowd, *BOTH),
    *_row(
        "lease-blocked", "FIFO lease p99 with one blocked group of 1,000,000, against none",
        1.5, "at most", _lease_blocked, *BOTH,
    ),
    *_row(
        "lease-old-snapshot",
        f"lease p99 with {_FULL} under a 10-minute-old snapshot and churn, against 1,000",
        3.0, "at most", _old_snapshot, "postgres",
    ),
    *_row("nacks", "every job nacked, against every job acked", 0.5, "at least", _nacks, *BOTH),
    *_row(
        "keyed-full", "keyed publishes with 10,000,000 idempotency records, against 10,000",
        0.8, "at least", _keyed, *BOTH,
    ),
    *_row("purge", "publish p99 during a purge of 1,000,000, against quiet", 2.0, "at most", _purge, *BOTH),
    *_row(
        "expiry", "publish p99 while 100,000 leases run out, against quiet", 2.0, "at most", _expiry, *BOTH
    ),
    *_row(
        "failing", "others' publish p99 while every job of a queue fails, against every one succeeding",
        2.0, "at most", _failing, *BOTH,
    ),
    *_row(
        "dead-looks", "others' publish p99 while 100,000 dead letters are listed, grouped and tried",
        2.0, "at most", functools.partial(_recovering, recovering.looks), *BOTH,
    ),
    *_row(
        "dead-drain", "p99 of others' jobs while a plan drains dead letters, against the plan paused",
        1.2, "at most", functools.partial(_recovering, recovering.drain), *BOTH,
    ),
    *_row(
        "idle-polls", "1,000 idle long polls, CPU of the server",
        3.0, "at most", functools.partial(_idle, "cpu"), *BOTH,
    ),
    *_row(
        "idle-polls-queries", "1,000 idle long polls, transactions",
        2.0, "at most", functools.partial(_idle, "queries"), "postgres",
    ),
    *_row("memory", "server memory at 2,200,000 stored messages", 200.0, "at most", _memory, *BOTH),
    *_row("recovery", "start with a 256 MiB WAL to recover", 3.0, "at most", _recovery, "sqlite"),
]  # fmt: skip
