"""Recovery beside live traffic: dead letters that operators look at, and a plan that drains them."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator

from bench.rows import Figure
from bench.steady_cycles import p99
from bench.steady_served import OTHERS, publish_p99, serving
from bench.steady_stores import QUEUE, Kind, Stores, crowd
from redrive.contract import shapes
from redrive.service import Service
from redrive.storage import commands as c

_PAGES = 10  # of a list, a hundred letters each
_CONSUMERS, _JOB_SECONDS = 8, 0.025
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
    """Jobs of another queue with consumers of its own, in an open loop; each takes 25 ms."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._due: list[float] = []
        self._took: list[float] = []

    def done(self, payload: bytes) -> None:
        """A consumer has acknowledged a job."""
        self._took.append(time.perf_counter() - self._due[int(payload)])

    def p99(self, seconds: float) -> float:
        """In milliseconds from when a publish was due to the acknowledgement of its job."""
        before, began = len(self._due), time.perf_counter()
        for count in range(int(seconds * _ARRIVALS)):
            due = began + count / _ARRIVALS
            time.sleep(max(0.0, due - time.perf_counter()))
            number = len(self._due)
            self._due.append(due)
            entry = c.Entry(str(number).encode())
            self._service.committer.submit(c.Publish(OTHERS, [entry]), lambda _: None)
        ends = time.monotonic() + _ENDS_SECONDS
        while len(self._took) < len(self._due):
            assert time.monotonic() < ends, "jobs were not done"
            time.sleep(0.001)
        return p99(self._took[before:]) * 1000


def drain(stores: Stores, kind: Kind, dead: int, pairs: int, seconds: float, note: str) -> Figure:
    """p99 of another queue's jobs, from publish to ack, while a plan moves dead letters, against the same
    while it is paused."""
    stores.fill(kind, "drained", crowd(0, 0, dead))
    with serving(stores, kind, "drained") as service:
        live = Live(service)
        redriven, others = _consumer(service, QUEUE), _consumer(service, OTHERS, live.done)
        with _beside(*[redriven] * _CONSUMERS, *[others] * _CONSUMERS):
            found, rate = _pairs(service, live, pairs, seconds)
    told = f"{note}{_ARRIVALS} jobs a second of 25 ms, an open loop; beside them a plan over {dead:,}"
    return Figure.of("ms", found, f"{told} dead letters, {_CONSUMERS} in flight, sent {rate:,.0f}/s")


def _pairs(
    service: Service, live: Live, pairs: int, seconds: float
) -> tuple[list[tuple[float, float]], float]:
    envelope = shapes.EnvelopeFields(rate_per_second=_RATE, max_in_flight=_CONSUMERS)
    asked = shapes.PlanCreate(queue=QUEUE, select=shapes.Selection(), reason="back", envelope=envelope)
    plan_id = service.call("redrive.plan.create", asked).plan_id
    _wait(service, plan_id, "draft")
    change = shapes.PlanChange(plan_id=plan_id)
    service.call("redrive.plan.start", change)
    rates: list[float] = []

    def turn(busy: bool) -> float:
        if not busy:
            return live.p99(seconds)
        service.call("redrive.plan.resume", change)
        before, began = _sent(service, plan_id), time.perf_counter()
        took = live.p99(seconds)
        rates.append((_sent(service, plan_id) - before) / (time.perf_counter() - began))
        service.call("redrive.plan.pause", change)
        return took

    turn(True), turn(False)
    return [(turn(True), turn(False)) for _ in range(pairs)], sum(rates) / len(rates)


def _consumer(
    service: Service, queue: str, done: Callable[[bytes], None] = lambda _: None
) -> Callable[[threading.Event], None]:
    def work(stop: threading.Event) -> None:
        asked = shapes.Consume(queue=queue, max_messages=1, wait_seconds=0.5, consumer_id="bench")
        while not stop.is_set():
            for message in service.call("queue.consume", asked).messages:
                time.sleep(_JOB_SECONDS)
                held = (message.message_id, message.receipt_handle)
                service.call("queue.ack", shapes.Ack(queue=queue, message_id=held[0], receipt_handle=held[1]))
                done(bytes(message.payload))

    return work


def _sent(service: Service, plan_id: str) -> int:
    counts = service.call("redrive.plan.get", shapes.PlanGet(plan_id=plan_id)).counts
    return sum(count for outcome, count in counts.items() if outcome != "pending")


def _wait(service: Service, plan_id: str, state: str) -> None:
    ends = time.monotonic() + _ENDS_SECONDS
    while service.call("redrive.plan.get", shapes.PlanGet(plan_id=plan_id)).state != state:
        assert time.monotonic() < ends, f"the plan is not {state}"
        time.sleep(0.05)
