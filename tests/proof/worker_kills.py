"""Workers are killed at seven named points while they work through one night's jobs; others go on.

A round is one night: many jobs, several workers at once, a supervisor that starts the next one for each that
died, until every point has had its kills. A few jobs can never succeed. What the budgets made dead letters is
redriven at the end: after that every possible job has one effect.
"""

from __future__ import annotations

import random
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, field

from redrive.transports import Entry
from redrive.transports.contract_transport import ContractTransport
from redrive.worker import faults
from tests.database import wait_for
from tests.proof.nursery import ForkedServer, ForkedWorker, Nursery
from tests.proof.places import Place, kind_of, served
from tests.proof.runs import Found, Proof
from tests.system.application import QUEUE, dead, left
from tests.system.servers import SECONDS

POINTS = tuple(point for point in faults.POINTS if point != "relay_published")  # which is no worker's
EACH = 25  # kills at each point in a round
CONTROL_EACH = 6
AT_ONCE = 4
RETRIES = (0, 2, 2, 0)  # by the round: with none, each lost delivery makes a dead letter
REDRIVEN_AT_ONCE = 500
AT_FULL_SPEED = {"rate_per_second": 5_000, "max_in_flight": 10_000}
JOBS_PER_KILL = 12
IMPOSSIBLE_EVERY = 100
NIGHT_SECONDS = 4 * SECONDS


@dataclass
class Night:
    """One round: what is done with workers, and what is found."""

    nursery: Nursery
    where: Place
    server: ForkedServer
    client: ContractTransport
    retries: int
    found: Found = field(default_factory=Found)

    def publish(self, count: int) -> tuple[set[str], set[str]]:
        """``count`` jobs; the keys of the possible and of the impossible ones."""
        again = {"base_seconds": 0, "max_seconds": 0}
        policy = {"name": QUEUE, "max_retries": self.retries, "retry_policy": again}
        self.client.call("queue.create", policy)
        keys = [f"job:{number}" for number in range(count)]
        hopeless = set(keys[IMPOSSIBLE_EVERY // 2 :: IMPOSSIBLE_EVERY])
        wish = {True: {"do": "fail"}, False: 1}
        self.client.publish(QUEUE, [Entry(payload=wish[key in hopeless], job_key=key) for key in keys])
        self.found.count("jobs", count)
        return set(keys) - hopeless, hopeless

    def kill(self, points: list[str], chance: random.Random, **variables: str) -> None:
        """Start a worker for each of ``points``, and see it die there, some jobs after its start."""
        orders = [(number, point, chance.randint(1, 6)) for number, point in enumerate(points)]

        def one(order: tuple[int, str, int]) -> None:
            number, point, after = order
            options = {"concurrency": 1 + number % 4, "prefetch": number % 6, "visibility_timeout": 1}
            folder = self.where.folder / f"{number}"
            doomed = ForkedWorker(
                self.nursery,
                self.server,
                self.where.application,
                folder,
                options,
                TEST_DOOM=f"{point}:{after}",
                **variables,
            )
            with doomed as worker:
                killed = worker.killed_itself()
            there = killed and (folder / f"killed-{point}").exists()
            self.found.expect(there, f"worker {number} did not die at {point}")
            self.found.count("kills", int(there))
            self.found.count(f"kills {point}", int(there))

        with ThreadPoolExecutor(AT_ONCE) as pool:
            list(pool.map(one, orders))

    def drain(self, name: str, **variables: str) -> None:
        """Sound workers take what is left, until the queue is empty."""
        options = {"concurrency": 4, "visibility_timeout": 2}
        start = (self.nursery, self.server, self.where.application)
        with (
            ForkedWorker(*start, self.where.folder / f"{name}-one", options, **variables) as one,
            ForkedWorker(*start, self.where.folder / f"{name}-two", options, **variables) as two,
        ):
            wait_for(lambda: left(self.client) == 0, NIGHT_SECONDS, "an empty queue")
            self.found.expect(one.stop() == two.stop() == 0, "a sound worker did not stop with code 0")

    def judge(self, possible: set[str], hopeless: set[str], effects: Counter[str]) -> None:
        """One effect for each possible key, none for the others, and nothing else."""
        for key in sorted(possible):
            self.found.expect(effects[key] == 1, f"{key} has {effects[key]} effects")
        for key in sorted(set(effects) - possible):
            self.found.expect(False, f"{key} has an effect, and cannot")

    def ended(self, possible: set[str], hopeless: set[str], effects: Counter[str]) -> None:
        """Every key is done or a dead letter after at most its budget, the impossible ones dead."""
        letters = dead(self.client)
        for key in sorted(possible | hopeless):
            self.found.expect(key in letters or (effects[key] == 1 and key in possible), f"{key} is nowhere")
        for key, letter in sorted(letters.items()):
            attempts = int(letter["attempt"])
            self.found.at_worst("attempts", attempts)
            self.found.expect(attempts <= self.retries + 1, f"{key} is dead after {attempts} attempts")
        self.found.expect(hopeless <= set(letters), f"impossible, yet not dead: {hopeless - set(letters)}")
        self.found.count("dead letters", len(letters))

    def redrive(self, hopeless: set[str]) -> None:
        """Every dead letter that may still succeed goes back and is done."""
        ids = [letter["message_id"] for key, letter in dead(self.client).items() if key not in hopeless]
        for start in range(0, len(ids), REDRIVEN_AT_ONCE):
            some = ids[start : start + REDRIVEN_AT_ONCE]
            self.plan(some)
        if ids:
            self.drain("redrive")
        self.found.count("redriven", len(ids))

    def plan(self, ids: list[str]) -> None:
        """Send these back as fast as it goes; returns when all of them are sent."""
        asked = {
            "queue": QUEUE,
            "select": {"message_ids": ids},
            "envelope": AT_FULL_SPEED,
            "reason": "morning",
        }
        plan_id = self.client.call("redrive.plan.create", asked)["plan_id"]
        self.client.call("redrive.plan.start", {"plan_id": plan_id})

        def sent() -> bool:
            plan = self.client.call("redrive.plan.get", {"plan_id": plan_id})
            return not plan["counts"].get("pending")

        wait_for(sent, SECONDS, "the members to be sent")


def night(
    seed: int, *, each: int, points: tuple[str, ...] = POINTS, retries: int | None = None, unsafe: str = ""
) -> Found:
    """One round on the store whose turn it is."""
    retries = RETRIES[seed % len(RETRIES)] if retries is None else retries
    variables = {"REDRIVE_UNSAFE": unsafe} if unsafe else {}
    chance = random.Random(seed)
    order = [point for point in points for _ in range(each)]
    chance.shuffle(order)
    with (
        served(kind_of(seed)) as (nursery, where, server),
        closing(server.client()) as client,
    ):
        held = Night(nursery, where, server, client, retries)
        keys = held.publish(len(order) * JOBS_PER_KILL)
        held.kill(order, chance, **variables)
        held.drain("last", **variables)
        held.ended(*keys, where.application.effects())
        if not unsafe:
            held.redrive(keys[1])
        held.judge(*keys, where.application.effects())
        [(refused,)] = where.application.rows(
            "select count(*) from redrive_attempts where outcome = 'duplicate'"
        )
        held.found.count("second deliveries that found the receipt", int(refused))
        return held.found


def without_receipts(seed: int) -> Found:
    """The control: killed between the commit and the ack, jobs are done twice."""
    found = night(seed, each=CONTROL_EACH, points=("before_ack",), retries=2, unsafe="no-receipts")
    return only(found, "has 2 effects")


def acknowledged_first(seed: int) -> Found:
    """The control: killed before the commit, jobs that were acknowledged before are lost."""
    found = night(seed, each=CONTROL_EACH, points=("before_commit",), retries=2, unsafe="ack-first")
    return only(found, "has 0 effects")


def only(found: Found, words: str) -> Found:
    """Of the violations those that a control is there for."""
    found.violations = [what for what in found.violations if words in what]
    return found


PROOFS = (
    Proof(
        "worker-kills",
        "However workers die, every job has one effect or is a dead letter within its budget; none is lost.",
        "kills",
        7_000,
        lambda seed: night(seed, each=EACH),
        {"receipts": without_receipts, "ack after commit": acknowledged_first},
    ),
)
