"""Two and three nodes over one PostgreSQL, under every kind of work at once: their transactions cross, and no
caller hears of it.

Beside producers and workers on each node somebody changes limits under traffic, works on FIFO groups, buries
and redrives, purges and cancels, each through a node of its own.
"""

from __future__ import annotations

import itertools
import random
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack, closing
from typing import Any

from redrive.domain.errors import ConfirmationRequired, RedriveError
from redrive.storage.postgres import PostgresEngine
from redrive.transports.contract_transport import ContractTransport
from tests.database import postgres_missing, wait_for
from tests.proof.database_sessions import execute
from tests.proof.nursery import ForkedServer, ForkedWorker, Nursery
from tests.proof.places import place
from tests.proof.runs import Found, Proof
from tests.proof.server_kills import judge
from tests.system.alongside import Alongside
from tests.system.application import QUEUE, dead
from tests.system.load import Load
from tests.system.servers import SECONDS, ServerProcess

OPERATIONS = 150  # of each node's meddler, in a round
WORKERS = 2  # at each node
PACE_SECONDS = 0.1
LINES, NARROW, SCRATCH = "lines", "narrow", "scratch"
EXPECTED = {
    "OVERLOADED",
    "STALE_RECEIPT",
    "MESSAGE_NOT_FOUND",
    "CONFLICT",
}  # of an operation that came too late
DEADLOCKS = "select deadlocks from pg_stat_database where datname = current_database()"


class Meddler(Alongside):
    """One thread that does to a node what operators and other applications do, until it has done enough."""

    def __init__(self, server: ServerProcess, seed: int, name: str) -> None:
        super().__init__(f"meddler-{name}")
        self.done: Counter[str] = Counter()
        self.surprises: list[str] = []
        self._luck = random.Random(f"{seed} {name}")
        self._client = server.client()
        self._held: list[dict[str, Any]] = []

    @property
    def operations(self) -> int:
        """How many were done, or refused for a good reason."""
        return self.done.total()

    def work(self) -> None:
        """Until ``stopped``, one thing after the other."""
        kinds: list[Callable[[], object]] = [
            self._lines, self._settle, self._settle, self._limits, self._narrow, self._redrive, self._purge,
        ]  # fmt: skip
        with closing(self._client):
            while not self.stopped.is_set():
                act = self._luck.choice(kinds)
                try:
                    act()
                except RedriveError as error:
                    if error.code not in EXPECTED or "deadlock" in str(error):
                        self.surprises.append(f"{act.__name__}: {error.code} {error}")
                self.done[act.__name__.strip("_")] += 1

    def _lines(self) -> None:
        entries = [{"payload": n, "message_group_id": self._luck.choice("abc")} for n in range(4)]
        self._client.call("queue.publish_batch", {"queue": LINES, "messages": entries})

    def _settle(self) -> None:
        if not self._held:
            asked = {"queue": self._luck.choice([LINES, NARROW]), "max_messages": 4, "visibility_timeout": 5}
            found = self._client.call("queue.consume", asked)
            self._held = [{"queue": asked["queue"], **_named(message)} for message in found["messages"]]
            return
        lease = self._held.pop()
        verb: str = self._luck.choice(["ack", "ack", "nack", "release", "dead_letter", "extend", "cancel"])
        more = {
            "dead_letter": {"reason": "meddled"},
            "extend": {"visibility_timeout": 9},
            "nack": {"delay_seconds": 0},
        }
        if verb == "cancel":
            lease = {name: lease[name] for name in ("queue", "message_id")}
        self._client.call(f"queue.{verb}", lease | more.get(verb, {}))

    def _limits(self) -> None:
        queue = self._luck.choice([NARROW, QUEUE])
        limits = {
            "max_in_flight": self._luck.choice([0, 50]),
            "max_per_second": self._luck.choice([0, 2_000]),
        }
        self._client.call("queue.update", {"name": queue, **limits})

    def _narrow(self) -> None:
        self._client.call("queue.publish_batch", {"queue": NARROW, "messages": [1, 2, 3]})
        self._client.call("queue.publish", {"queue": SCRATCH, "payload": 1})

    def _redrive(self) -> None:
        self._client.call("queue.dlq.redrive", {"queue": LINES, "max_messages": 5})

    def _purge(self) -> None:
        try:
            self._client.call("queue.purge", {"queue": SCRATCH})
        except ConfirmationRequired as required:
            confirm = (required.details or {})["confirm"]
            self._client.call("queue.purge", {"queue": SCRATCH, "confirm": confirm})


def _named(message: dict[str, Any]) -> dict[str, Any]:
    return {name: message[name] for name in ("message_id", "receipt_handle")}


def nodes(
    seed: int, *, number: int | None = None, shared: bool = True, operations: int = OPERATIONS
) -> Found:
    """One round of two nodes or three; without ``shared`` each has a store of its own, the control."""
    found = Found()
    with place("postgres") as where, Nursery() as nursery, ExitStack() as stack:
        assert where.database is not None
        storages = [where.storage]
        for _ in range((number or 2 + seed % 2) - 1):
            own = None if shared else stack.enter_context(where.database.fresh_database())
            storages.append(own or where.storage)
        servers = [stack.enter_context(ForkedServer(nursery, storage)) for storage in storages]
        for server in servers if not shared else servers[:1]:
            _prepare(server)
        client = stack.enter_context(closing(servers[0].client()))
        loads = [
            stack.enter_context(Load(server.url, patient=3, hasty=1, pace=PACE_SECONDS, name=f"{n}-"))
            for n, server in enumerate(servers)
        ]
        for n, server in enumerate(servers[: None if shared else 1]):
            for each in range(WORKERS):
                folder = where.folder / f"{n}-{each}"
                stack.enter_context(ForkedWorker(nursery, server, where.application, folder))
        with ExitStack() as meddling:
            meddlers = [
                meddling.enter_context(Meddler(server, seed, f"{n}")) for n, server in enumerate(servers)
            ]
            for meddler in meddlers if shared else ():
                wait_for(lambda m=meddler: m.operations >= operations, 4 * SECONDS, "the meddlers")  # type: ignore[misc]
        for load in loads:
            load.stop()
        client.call("queue.update", {"name": QUEUE, "max_in_flight": 0, "max_per_second": 0})
        if shared:
            for load in loads:
                load.finish(client, where.application)
        else:  # what went to the other nodes' stores has no worker: nothing to wait for but our own
            wait_for(
                lambda: loads[0].acknowledged <= set(where.application.effects()), SECONDS, "our effects"
            )
        _conclude(found, where.storage, client, meddlers, loads, where.application.effects())
        found.count("nodes", len(servers))
        found.count("deadlocks that the nodes resolved among themselves", execute(where, DEADLOCKS))
    return found


def _prepare(server: ServerProcess) -> None:
    with closing(server.client()) as client:
        client.call("queue.create", {"name": LINES, "type": "fifo", "max_retries": 1})
        client.call("queue.create", {"name": NARROW, "max_in_flight": 50})
        for name in (SCRATCH, QUEUE):
            client.call("queue.create", {"name": name})


def _conclude(
    found: Found,
    storage: str,
    client: ContractTransport,
    meddlers: list[Meddler],
    loads: list[Load],
    effects: Any,
) -> None:
    for meddler in meddlers:
        found.count("operations", meddler.operations)
        for surprise in itertools.islice(meddler.surprises, 5):
            found.expect(False, surprise)
    found.expect(dead(client) == {}, "the others' work spent a job's budget")
    for load in loads[1:]:
        loads[0].acknowledged |= load.acknowledged
        loads[0].unknown |= load.unknown
        loads[0].refused |= load.refused
    judge(found, loads[0], effects)
    with closing(PostgresEngine(storage)) as engine:
        for finding in engine.check()[:5]:
            found.expect(False, finding)


PROOFS: tuple[Proof, ...] = (
    ()
    if postgres_missing()
    else (
        Proof(
            "nodes",
            "Nodes that share a PostgreSQL cross each other all the time, and no caller hears of it.",
            "operations",
            50_000,
            nodes,
            {"a store for all of them": lambda seed: nodes(seed, number=2, shared=False)},
        ),
    )
)
