"""Recovery beside live traffic: dead letters that operators look at, and a plan that drains them."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator

from bench.jobs import Jobs, working
from bench.rows import Figure
from bench.served import KEY
from bench.steady_cycles import p99
from bench.steady_served import OTHERS, publish_p99, server, serving
from bench.steady_stores import QUEUE, Kind, Stores, crowd
from redrive.contract import shapes
from redrive.service import Service
from redrive.transports import Entry
from redrive.transports.contract_transport import ContractTransport
from redrive.transports.rest import open_rest

_PAGES = 10  # of a list, a hundred letters each
_CONSUMERS = 8
_ARRIVALS = 50  # live jobs a second
_RATE = 250.0  # members a second: four fifths of what the consumers can do
_ENDS_SECONDS = 60.0


@contextlib.contextmanager
def _beside(*targets: Callable[[threading.Event], None]) -> Iterator[None]:
    """Threads for the length of the block; each ends when its event is set."""
    stop = threading.Event()
    threads = [threading.Thread(target=target, args=(stop,), daemon=True) for target in targets]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        stop.set()
        for thread in threads:
            thread.join(_ENDS_SECONDS)


def looks(stores: Stores, kind: Kind, dead: int, pairs: int, seconds: float, note: str) -> Figure:
    """Publish p99 of others while an operator lists, groups and tries a plan over ``dead`` letters without a
    pause, against nobody looking."""
    stores.fill(kind, "dead", crowd(0, 0, dead))
    seen: list[float] = []

    with serving(stores, kind, "dead") as service:

        def look(stop: threading.Event) -> None:
            while not stop.is_set():
                began = time.perf_counter()
                _look(service)
                seen.append(time.perf_counter() - began)

        def turn(busy: bool) -> float:
            with _beside(look) if busy else contextlib.nullcontext():
                return publish_p99(service.committer, seconds)

        turn(True), turn(False)
        found = [(turn(True), turn(False)) for _ in range(pairs)]
    told = f"{note}p99 of single publishes in an open loop; {dead:,} dead letters listed ({_PAGES} pages),"
    return Figure.of("ms", found, f"{told} grouped and tried in {max(seen):.2f} s at most")


def _look(service: Service) -> None:
    cursor = None
    for _ in range(_PAGES):
        asked = shapes.DeadLetterList(queue=QUEUE, limit=100, cursor=cursor)
        cursor = service.call("queue.dlq.list", asked).next_cursor
    service.call("queue.dlq.groups", shapes.DeadLetterGroups(queue=QUEUE))
    wanted = shapes.PlanCreate(queue=QUEUE, select=shapes.Selection(), reason="look", dry_run=True)
    service.call("redrive.plan.create", wanted)


class Live:
    """Jobs of another queue with a worker of its own, published over REST in an open loop."""

    def __init__(self, client: ContractTransport, jobs: Jobs) -> None:
        self._client, self._jobs = client, jobs
        self._due: list[float] = []

    def p99(self, seconds: float) -> float:
        """In milliseconds from when a publish was due to the end of its job."""
        before, began = len(self._due), time.perf_counter()
        for count in range(int(seconds * _ARRIVALS)):
            due = began + count / _ARRIVALS
            time.sleep(max(0.0, due - time.perf_counter()))
            number = len(self._due)
            self._due.append(due)
            self._client.publish(OTHERS, [Entry(payload={"number": number})])
        ends = time.monotonic() + _ENDS_SECONDS
        while len(self._jobs.done) < len(self._due):
            self._jobs.check()
            assert time.monotonic() < ends, "jobs were not done"
            time.sleep(0.001)
        return p99([self._jobs.done[n] - self._due[n] for n in range(before, len(self._due))]) * 1000


def drain(stores: Stores, kind: Kind, dead: int, pairs: int, seconds: float, note: str) -> Figure:
    """p99 of another queue's jobs, from publish to the end of the handler, while a plan moves dead letters,
    against the same while it is paused. The server and each queue's worker are processes of their own."""
    url = stores.fill(kind, "drained", crowd(0, 0, dead))
    with (
        server(url) as (_, address, _),
        contextlib.closing(open_rest(address, KEY)) as client,
        working(address, QUEUE, _CONSUMERS),
        working(address, OTHERS, _CONSUMERS) as jobs,
    ):
        found, rate = _pairs(client, Live(client, jobs), pairs, seconds)
    told = f"{note}{_ARRIVALS} jobs a second of 25 ms, an open loop; beside them a plan over {dead:,}"
    return Figure.of("ms", found, f"{told} dead letters, {_CONSUMERS} in flight, sent {rate:,.0f}/s")


def _pairs(
    client: ContractTransport, live: Live, pairs: int, seconds: float
) -> tuple[list[tuple[float, float]], float]:
    envelope = {"rate_per_second": _RATE, "max_in_flight": _CONSUMERS}
    asked = {"queue": QUEUE, "select": {}, "reason": "back", "envelope": envelope}
    plan = {"plan_id": client.call("redrive.plan.create", asked)["plan_id"]}
    _wait(client, plan, "draft")
    client.call("redrive.plan.start", plan)
    rates: list[float] = []

    def turn(busy: bool) -> float:
        if not busy:
            return live.p99(seconds)
        client.call("redrive.plan.resume", {**plan, "reason": "its turn"})
        before, began = _sent(client, plan), time.perf_counter()
        took = live.p99(seconds)
        rates.append((_sent(client, plan) - before) / (time.perf_counter() - began))
        client.call("redrive.plan.pause", {**plan, "reason": "the other side's turn"})
        return took

    turn(True), turn(False)
    return [(turn(True), turn(False)) for _ in range(pairs)], sum(rates) / len(rates)


def _sent(client: ContractTransport, plan: dict[str, str]) -> int:
    counts: dict[str, int] = client.call("redrive.plan.get", plan)["counts"]
    return sum(count for outcome, count in counts.items() if outcome != "pending")


def _wait(client: ContractTransport, plan: dict[str, str], state: str) -> None:
    ends = time.monotonic() + _ENDS_SECONDS
    while client.call("redrive.plan.get", plan)["state"] != state:
        assert time.monotonic() < ends, f"the plan is not {state}"
        time.sleep(0.05)
