"""The server is killed under load, again and again, between eight producers and eight workers."""

from __future__ import annotations

import random
from contextlib import ExitStack, closing

from tests.database import wait_for
from tests.proof.nursery import ForkedServer, ForkedWorker, Nursery
from tests.proof.places import kind_of, place, served
from tests.proof.runs import Found, Proof
from tests.system.application import QUEUE, dead
from tests.system.load import Load
from tests.system.servers import SECONDS

KILLS = 25  # in a round
PATIENT, HASTY, WORKERS = 6, 2, 8
PACE_SECONDS = 0.04


def kills(seed: int, *, number: int = KILLS) -> Found:
    """One round on the store whose turn it is: ``number`` kills, then everything is finished and judged."""
    found, chance = Found(), random.Random(seed)
    with (
        served(kind_of(seed)) as (nursery, where, server),
        Load(server.url, patient=PATIENT, hasty=HASTY, pace=PACE_SECONDS) as load,
        ExitStack() as workers,
    ):
        for place_of in range(WORKERS):
            folder = where.folder / f"{place_of}"
            workers.enter_context(ForkedWorker(nursery, server, where.application, folder))
        for kill in range(number):
            some = chance.randint(5, 80)
            load.goes_on(where.application, f"before kill {kill}", publishes=some, effects=some // 4)
            server.kill()
            server.start()
            found.count("kills")
            found.count(f"kills {where.kind}")
        with closing(server.client()) as client:
            load.finish(client, where.application)
            found.expect(dead(client) == {}, "an outage spent a job's budget")
        judge(found, load, where.application.effects())
    return found


def judge(found: Found, load: Load, effects: dict[str, int]) -> None:
    """Nothing acknowledged is lost, nothing unexpected is there, every key has one effect."""
    found.count("publishes acknowledged", len(load.acknowledged))
    found.count("publishes without an answer", len(load.unknown))
    found.count("publishes refused", len(load.refused))
    for kind, keys in load.verdict(effects).items():  # type: ignore[arg-type]
        found.count(kind, len(keys))
        for key in keys[:5]:
            found.expect(False, f"{key} is {kind}")


def forgetful(seed: int) -> Found:
    """The control: over a store in memory the same kill loses what was acknowledged."""
    found = Found()
    with place("sqlite") as where, Nursery() as nursery, ForkedServer(nursery, "memory:") as server:
        with Load(server.url) as load:
            wait_for(lambda: len(load.acknowledged) >= 60, SECONDS, "publishes before the kill")
        server.kill()
        server.start()
        with ForkedWorker(nursery, server, where.application, where.folder / "one"):
            with closing(server.client()) as client:
                client.call("queue.publish", {"queue": QUEUE, "payload": 1, "job_key": "after"})
            wait_for(where.application.count, SECONDS, "the effect of a job published after the kill")
        load.acknowledged.add("after")
        judge(found, load, where.application.effects())
    return found


PROOFS = (
    Proof(
        "server-kills",
        "A server killed under load loses nothing that it acknowledged, and doubles nothing.",
        "kills",
        2_000,
        kills,
        {"a store on disk": forgetful},
    ),
)
