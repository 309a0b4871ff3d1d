"""The server and the operator's command are killed while plans run, again and again: each member goes once.

Each operator's command asks for the same dead letters, so that every kill leaves plans that overlap.
"""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from contextlib import closing
from typing import Any

from redrive.transports import Entry
from redrive.transports.contract_transport import ContractTransport
from tests.database import wait_for
from tests.proof.nursery import ForkedServer, ForkedWorker, Nursery
from tests.proof.places import Place, kind_of, place, served
from tests.proof.runs import Found, Proof
from tests.system.application import QUEUE, dead, left
from tests.system.servers import KEY, SECONDS

KILLS = 10  # in a round: half of servers, half of operators
MEMBERS = 120
RATE = 60
FINAL_PLANS = 2  # after the last kill: no lease of before it is left at the second
OPERATOR_SECONDS = 1.5  # within which an operator's command is killed, at a random moment


def kills(seed: int, *, number: int = KILLS) -> Found:
    """One round on the store whose turn it is."""
    found, chance = Found(), random.Random(seed)
    with served(kind_of(seed)) as (nursery, where, server), closing(server.client()) as client:
        client.call("queue.create", {"name": QUEUE, "max_retries": 0})
        with _worker(nursery, where, server) as worker:
            _bury(client, MEMBERS)
            (worker.folder / "mended").touch()
            _started(client)
            for kill in range(number):
                done = where.application.count()
                if kill % 2:
                    _operate(nursery, server, chance)
                    found.count("kills of operators")
                else:
                    wanted = min(MEMBERS, done + chance.randint(1, 10))
                    wait_for(lambda n=wanted: where.application.count() >= n, SECONDS, "redriven jobs")  # type: ignore[misc]
                    server.kill()
                    server.start()
                    found.count("kills of servers")
                found.count("kills")
            _finish(client)
        _judge(found, client, where.application.effects())
    return found


def _worker(nursery: Nursery, where: Place, server: ForkedServer) -> ForkedWorker:
    return ForkedWorker(nursery, server, where.application, where.folder / "worker")


def _bury(client: ContractTransport, members: int) -> None:
    entries = [Entry(payload={"do": "fail"}, job_key=f"job:{n}") for n in range(members)]
    client.publish(QUEUE, entries)
    wait_for(lambda: left(client) == 0, SECONDS, "the jobs to die")
    assert len(dead(client)) == members


def _started(client: ContractTransport) -> str:
    """A plan over all that is dead, running; its id."""
    asked = {"queue": QUEUE, "select": {}, "reason": "again", "envelope": {"rate_per_second": RATE}}
    plan_id: str = client.call("redrive.plan.create", asked)["plan_id"]
    client.call("redrive.plan.start", {"plan_id": plan_id})
    return plan_id


def _operate(nursery: Nursery, server: ForkedServer, chance: random.Random) -> None:
    """An operator's command, killed at some moment; it may have ended before."""
    told = {"REDRIVE_URL": server.url, "REDRIVE_API_KEY": KEY}
    arguments = ["dlq", "redrive", QUEUE, "--all", "--reason", "again", "--json"]
    operator = nursery.start("redrive", arguments, told)
    operator.ended.wait(chance.random() * OPERATOR_SECONDS)
    operator.kill()
    operator.wait(SECONDS)


def _plans(client: ContractTransport) -> list[dict[str, Any]]:
    return list(client.call("redrive.plan.list", {"limit": 1_000})["items"])


def _finish(client: ContractTransport) -> None:
    """Ask once more for what was lost with its operator, and for what died again: a lease that nobody heard
    of ends, dead, when the plans of its time may be over."""
    open_states = ("freezing", "running")
    for _ in range(FINAL_PLANS):
        _started(client)
        wait_for(
            lambda: all(plan["state"] not in open_states for plan in _plans(client)),
            4 * SECONDS,
            "the plans' ends",
        )
        wait_for(lambda: left(client) == 0, SECONDS, "an empty queue")
        if not dead(client):
            return


def _judge(found: Found, client: ContractTransport, effects: Counter[str]) -> None:
    """Over all plans each dead letter was sent once for each of its deaths, and completed; its job has one
    effect. A job whose lease nobody heard of is dead once more: it has one attempt only."""
    outcomes: dict[str, Counter[str]] = defaultdict(Counter)
    plans = _plans(client)
    for plan in plans:
        asked = {"plan_id": plan["plan_id"], "limit": 1_000}
        for item in client.call("redrive.plan.items", asked)["items"]:
            outcomes[item["job_key"]][item["outcome"]] += 1
    found.count("plans", len(plans))
    found.count("members sent", sum(each["completed"] + each["dead_again"] for each in outcomes.values()))
    found.count("members dead again", sum(each["dead_again"] for each in outcomes.values()))
    for key in (f"job:{n}" for n in range(MEMBERS)):
        found.expect(outcomes[key]["completed"] == 1, f"{key}: {dict(outcomes[key])}")
        found.expect(effects[key] == 1, f"{key} has {effects[key]} effects")
    found.expect(dead(client) == {}, "dead letters were forgotten")


def forgetful(seed: int) -> Found:
    """The control: over a store in memory a kill forgets the plan and its members."""
    found = Found()
    with (
        place("sqlite") as where,
        Nursery() as nursery,
        ForkedServer(nursery, "memory:") as server,
        closing(server.client()) as client,
        _worker(nursery, where, server) as worker,
    ):
        client.call("queue.create", {"name": QUEUE, "max_retries": 0})
        _bury(client, MEMBERS)
        (worker.folder / "mended").touch()
        _started(client)
        wait_for(where.application.count, SECONDS, "redriven jobs")
        server.kill()
        server.start()
        client.call("queue.create", {"name": QUEUE})
        _judge(found, client, where.application.effects())
    return found


PROOFS = (
    Proof(
        "plan-kills",
        "A plan survives the kill of any server and of its operator's command: each member goes once.",
        "kills",
        1_000,
        kills,
        {"a store on disk": forgetful},
    ),
)
