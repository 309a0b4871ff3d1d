"""The server's sessions with PostgreSQL end at the worst moments: above all between a COMMIT and its answer.

The server reaches its database through a proxy that keeps answers to COMMIT back and resets the connection.
What became of such a transaction is asked from the database; where that cannot be trusted, because the
database's history may be another one, the outcome is named as unknown (decision 0013).
"""

from __future__ import annotations

import random
from collections.abc import Callable
from contextlib import ExitStack, closing
from dataclasses import dataclass

from redrive.transports.contract_transport import ContractTransport
from tests.database import postgres_missing, wait_for
from tests.proof.network import ask, persist
from tests.proof.nursery import ForkedServer, ForkedWorker, Nursery
from tests.proof.places import Place, place
from tests.proof.proxy import Proxy, Weather
from tests.proof.runs import Found, Proof
from tests.proof.server_kills import judge
from tests.system.application import connect, dead, left
from tests.system.load import Load
from tests.system.servers import SECONDS

CUTS = 25  # answers to COMMIT kept back under load, in a round
CUT_SHARE = 0.1
TERMINATIONS = 6
WORKERS = 3
PATIENT, HASTY, PACE_SECONDS = 4, 2, 0.03
COMMIT = b"\0commit\0"  # the name of the prepared statement, as a Bind message has it
ANOTHER_HISTORY = "delete from redrive.incarnation"  # as a crash empties it, being unlogged
TERMINATE = (
    "select count(pg_terminate_backend(pid)) from pg_stat_activity "
    "where datname = current_database() and application_name like 'redrive %'"
)
STUBBORN = 20


@dataclass
class Round:
    """A server behind its proxy, and what is found."""

    where: Place
    proxy: Proxy
    server: ForkedServer
    client: ContractTransport
    found: Found

    def under_load(self, nursery: Nursery) -> None:
        """Commits are cut and sessions terminated while all goes on; then everything is finished."""
        application = self.where.application
        with (
            Load(self.server.url, patient=PATIENT, hasty=HASTY, pace=PACE_SECONDS) as load,
            ExitStack() as workers,
        ):
            for number in range(WORKERS):
                worker = ForkedWorker(nursery, self.server, application, self.where.folder / f"{number}")
                workers.enter_context(worker)
            self.proxy.weather = Weather(cut=CUT_SHARE, asked=COMMIT)
            enough = self.proxy.counts["answers cut"] + CUTS
            while self.proxy.counts["answers cut"] < enough:
                load.goes_on(application, "while answers to COMMIT are cut", publishes=20, effects=5)
            self.proxy.weather = Weather()
            for number in range(TERMINATIONS):
                self.found.count("sessions terminated", execute(self.where, TERMINATE))
                load.goes_on(application, f"after termination {number}", publishes=20, effects=5)
            load.finish(self.client, application)
        self.found.expect(self.server.ready(), "the node does not take work")
        self.found.expect(dead(self.client) == {}, "a broken session spent a job's budget")
        judge(self.found, load, application.effects())

    def resolved(self) -> None:
        """The database knows what became of the transaction: the publish succeeds, and is stored once."""
        with self.cutting(lambda: None):
            self.client.call("queue.publish", {"queue": "resolved", "payload": 1})
        self.found.expect(left(self.client, "resolved") == 1, "a resolved publish is not stored once")

    def unknown(self) -> None:
        """Nobody can know: the outcome is named so, and the same key makes it one message."""
        request = {"queue": "unknown", "payload": 1}
        with self.cutting(lambda: execute(self.where, ANOTHER_HISTORY)):
            error = ask(self.server.url, request, "unknown:1").get("error", {})
        named = (
            error.get("code") == "INTERNAL" and "COMMIT" in error["message"] and "repeat it" in error["hint"]
        )
        self.found.expect(named, f"an unknown outcome was told as {error}")
        self.found.count("outcomes named unknown", int(named))
        ask(self.server.url, request, "unknown:1")
        self.found.expect(left(self.client, "unknown") == 1, "a repeated publish is not stored once")

    def stubborn(self, *, keyed: bool) -> None:
        """A producer repeats whatever was not answered, or answered as unknown."""
        self.proxy.on_cut = lambda: execute(self.where, ANOTHER_HISTORY)
        self.proxy.weather = Weather(cut=0.4, asked=COMMIT)
        for number in range(STUBBORN):
            body = {"queue": "stubborn", "payload": 1, "job_key": f"job:{number}"}
            persist(self.server.url, body, keyed=keyed)
        self.proxy.weather = Weather()
        stored = left(self.client, "stubborn")
        self.found.expect(stored == STUBBORN, f"{STUBBORN} publishes stored {stored} messages")

    def cutting(self, then: Callable[[], object]) -> ExitStack:
        """While it is open every answer to COMMIT is cut; then the node must take work again."""
        self.proxy.on_cut = then
        self.proxy.weather = Weather(cut=1.0, asked=COMMIT)

        def calm() -> None:
            self.proxy.weather = Weather()
            wait_for(self.server.ready, SECONDS, "the node to go on by itself")

        stack = ExitStack()
        stack.callback(calm)
        return stack


def execute(where: Place, statement: str) -> int:
    """Run a statement beside the server; how many it counted or changed."""
    with closing(connect(where.storage)) as connection:
        cursor = connection.execute(statement)
        number = cursor.fetchone()[0] if cursor.description else cursor.rowcount
        connection.commit()
        return int(number)


def sessions(seed: int, *, keyed: bool = True) -> Found:
    """One round; without ``keyed`` only the stubborn producer, without its keys."""
    found, chance = Found(), random.Random(seed)
    with place("postgres") as where, Nursery() as nursery:
        assert where.database is not None
        with Proxy(where.database.port, seed) as proxy:
            storage = where.storage.replace(f":{where.database.port}/", f":{proxy.port}/")
            with ForkedServer(nursery, storage) as server, closing(server.client()) as client:
                one = Round(where, proxy, server, client, found)
                one.stubborn(keyed=keyed)
                if keyed:
                    one.resolved()
                    one.unknown()
                    # now and then the history changes too, and the outcome is unknown
                    proxy.on_cut = lambda: chance.random() < 0.3 and execute(where, ANOTHER_HISTORY)
                    one.under_load(nursery)
        found.count("commits cut", proxy.counts["answers cut"])
    return found


PROOFS = (
    Proof(
        "database-sessions",
        "However its sessions with PostgreSQL end, a node loses nothing and names what it cannot know.",
        "commits cut",
        20_000,
        sessions,
        {"idempotency keys": lambda seed: sessions(seed, keyed=False)},
        missing=postgres_missing,
    ),
)
