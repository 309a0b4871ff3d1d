"""A redrive plan drains the dead letters of a dependency that was away, beside live traffic.

The dependency takes 25 ms and bears eight at once; the workers could call it with sixteen. The plan's
envelope keeps the limit, as the dependency itself counts, and the plan ends when its estimate said.
"""

from __future__ import annotations

import threading
import time
from contextlib import ExitStack, closing
from typing import Any

from redrive.transports import Entry
from redrive.transports.contract_transport import ContractTransport
from tests.database import wait_for
from tests.proof.nursery import ForkedServer, ForkedWorker, Nursery
from tests.proof.places import kind_of, place
from tests.proof.runs import Found, Proof
from tests.system.alongside import Alongside
from tests.system.application import QUEUE, dead, left
from tests.system.dependency import Dependency
from tests.system.servers import SECONDS, ServerProcess

MEMBERS = 12_000
CALL_SECONDS, LIMIT = 0.025, 8
WORKERS, CONCURRENCY = 2, 8
LIVE_SECONDS = 0.05  # between two live jobs
PRIMED = 5  # rounds of calls by which the service time is known
ESTIMATED_WITHIN = 0.10
DRAIN_SECONDS = 600.0
AT_ONCE = 500


class Live(Alongside):
    """Jobs that do not need the dependency, published at a steady pace; ``keys`` are those acknowledged."""

    def __init__(self, server: ServerProcess) -> None:
        super().__init__("live")
        self.keys: set[str] = set()
        self._client = server.client()
        self._pause = threading.Event()

    def work(self) -> None:
        """Until ``stopped``."""
        with closing(self._client) as client:
            while not self.stopped.wait(LIVE_SECONDS):
                key = f"live:{len(self.keys)}"
                client.publish(QUEUE, [Entry(payload={"do": "note"}, job_key=key)])
                self.keys.add(key)


class Caller(ForkedWorker):
    """The worker that calls the dependency; no transaction is held while it does."""

    command = ("tests.system.caller",)


def drains(seed: int, *, members: int = MEMBERS, in_flight: int = LIMIT, timed: bool = True) -> Found:
    """One round, on SQLite or on PostgreSQL with two nodes. ``in_flight``: the envelope's; the control allows
    more than the dependency bears. ``timed``: whether the estimate is judged, too."""
    found, kind = Found(), kind_of(seed)
    with (
        place(kind) as where,
        Dependency(CALL_SECONDS) as dependency,
        Nursery() as nursery,
        ExitStack() as stack,
    ):
        servers = [
            stack.enter_context(ForkedServer(nursery, where.storage))
            for _ in range(1 if kind == "sqlite" else 2)
        ]
        client = stack.enter_context(closing(servers[0].client()))
        client.call("queue.create", {"name": QUEUE, "max_retries": 0})
        for each in range(WORKERS):
            reached = servers[each % len(servers)]
            options = {"concurrency": CONCURRENCY, "visibility_timeout": 30}
            folder = where.folder / f"{each}"
            told = {"TEST_DEPENDENCY": str(dependency.port)}
            stack.enter_context(Caller(nursery, reached, where.application, folder, options, **told))
        _bury(client, dependency, members)
        _prime(client)
        with Live(servers[-1]) as live:
            dependency.most = 0
            plan, seconds = _drain(client, in_flight)
        wait_for(lambda: left(client) == 0, SECONDS, "the live jobs to be done")
        found.expect(plan["state"] == "completed", f"the plan is {plan['state']}: {plan['paused_by']}")
        found.expect(plan["counts"] == {"completed": members}, f"{plan['counts']} of {members} members")
        if timed:
            _judge_time(found, plan["estimate"], seconds)
        found.count("drains")
        found.count(f"drains {kind}")
        found.at_worst("most calls at once", dependency.most)
        found.expect(dependency.most <= LIMIT, f"{dependency.most} called the dependency at once")
        doubled = [key for key, times in dependency.done.items() if times > 1]
        found.expect(not doubled, f"{len(doubled)} jobs were done twice, such as {doubled[:3]}")
        lost = live.keys - set(dependency.done)
        found.expect(not lost, f"{len(lost)} live jobs were lost")
        found.count("live jobs", len(live.keys))
    return found


def _bury(client: ContractTransport, dependency: Dependency, members: int) -> None:
    """Jobs that call the dependency while it is away, and die of it."""
    dependency.away = True
    for start in range(0, members, AT_ONCE):
        entries = [
            Entry(payload={"do": "call"}, job_key=f"call:{n}")
            for n in range(start, min(start + AT_ONCE, members))
        ]
        client.publish(QUEUE, entries)
    wait_for(lambda: left(client) == 0, DRAIN_SECONDS, "the jobs to die")
    assert len(dead(client)) == members
    dependency.away = False


def _prime(client: ContractTransport) -> None:
    """A few calls that succeed, so that their service time is known."""
    for turn in range(PRIMED):
        client.publish(QUEUE, [Entry(payload={"do": "call"}, job_key=f"prime:{turn}:{n}") for n in range(4)])
        wait_for(lambda: left(client) == 0, SECONDS, "calls that succeed")
    asked = {"queue": QUEUE, "select": {}}

    def known() -> bool:
        return client.call("redrive.estimate", asked)["serial_seconds"] is not None

    wait_for(known, SECONDS, "the service time")


def _drain(client: ContractTransport, in_flight: int) -> tuple[dict[str, Any], float]:
    """A plan over all dead letters, from its start to its end; it as it is then, and the seconds."""
    asked: dict[str, Any] = {"queue": QUEUE, "select": {}, "envelope": {"max_in_flight": in_flight}}
    asked["envelope"]["rate_per_second"] = client.call("redrive.estimate", asked)["suggested_rate"]
    plan = client.call("redrive.plan.create", asked | {"reason": "it is back"})
    one = {"plan_id": plan["plan_id"]}

    def now() -> dict[str, Any]:
        return client.call("redrive.plan.get", one)

    wait_for(lambda: now()["state"] == "draft", SECONDS, "the members to be frozen")
    estimate = now()["estimate"]
    began = time.monotonic()
    client.call("redrive.plan.start", one)
    wait_for(lambda: now()["state"] != "running", DRAIN_SECONDS, "the plan's end")
    return now() | {"estimate": estimate}, time.monotonic() - began


def _judge_time(found: Found, estimate: dict[str, Any], seconds: float) -> None:
    told = estimate["seconds_at_envelope"]
    away = abs(seconds / told - 1)
    found.at_worst("seconds of a drain", seconds)
    found.at_worst("away from the estimate", away)
    found.expect(
        away <= ESTIMATED_WITHIN, f"it took {seconds:.1f} s, the estimate said {told:.1f}: {estimate}"
    )


PROOFS = (
    Proof(
        "plan-drains",
        "A plan drains its dead letters within its envelope and when its estimate says, beside live traffic.",
        "drains",
        4,
        drains,
        {"the cap on members in flight": lambda seed: drains(seed, members=600, in_flight=100, timed=False)},
    ),
)
