"""The kernel between producers, workers and the server loses, silences, resets and slows packets.

As :mod:`tests.proof.network`, but below TCP: lost packets are sent again and come late, a silent network
leaves connections half open on both sides, an answer is lost although its request was acknowledged. Server
and clients are in network namespaces of their own (:mod:`tests.proof.roads`).
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from dataclasses import dataclass
from pathlib import Path

from redrive.transports.contract_transport import ContractTransport
from tests.database import wait_for
from tests.proof.network import (
    LEASE_SECONDS,
    ROOMY,
    TICK_SECONDS,
    half_open,
    one_message_each,
    persist,
    within,
)
from tests.proof.nursery import ForkedServer, ForkedWorker, Nursery
from tests.proof.roads import CALM, CUT, PORT, Namespace, Road, Roads, Storm, netem, roads_missing
from tests.proof.runs import Found, Proof
from tests.proof.server_kills import judge
from tests.system.application import QUEUE, Application, left
from tests.system.load import Load
from tests.system.servers import SECONDS

# and how many packets it must have met on each road before it ends
STORMS = (
    (Storm(lost=30), 50),
    (Storm(resets=5), 6),
    (Storm(slow=True), 0),
    (Storm(lost=10, resets=2, slow=True), 12),
)
PUBLISHES, EFFECTS = 40, 15  # through each storm
ONE_WAY = ((Storm(deaf=True), 15), (Storm(mute=True), 15))
WORKERS = 3
PATIENT, HASTY, PACE_SECONDS = 4, 2, 0.03
STUBBORN, STUBBORN_AT_ONCE, STUBBORN_SECONDS = 30, 10, 1.0
UNANSWERED = Storm(lost=5, unanswered=40)


class FarServer(ForkedServer):
    """A server in the far namespace, reached by every road; its own client takes a calm one."""

    def __init__(self, far: Namespace, nursery: Nursery, storage: str, calm: Road) -> None:
        super().__init__(nursery, storage)
        self._far = far
        self.port, self.url = PORT, calm.url

    def _command(self) -> list[str]:
        return [*super()._command(), "0.0.0.0"]

    def probe(self) -> int | None:
        """Asked where it is."""
        with self._far.inside():
            return super().probe()


@dataclass
class Round:
    """What a round has, and what a part of it finds. Runs in threads that are near."""

    nursery: Nursery
    server: FarServer
    folder: Path
    found: Found

    def storms(self, producing: Road, working: Road) -> None:
        """Load through every storm, one-way silences and a partition; then all is finished."""
        application, roads = Application(f"sqlite:///{self.folder / 'application.db'}"), [producing, working]
        with closing(self.server.client()) as direct, ExitStack() as workers:
            direct.call("queue.create", {"name": QUEUE, **ROOMY})
            with Load(producing.url, patient=PATIENT, hasty=HASTY, pace=PACE_SECONDS) as load:
                for number in range(WORKERS):
                    folder = self.folder / f"{number}"
                    options = {"visibility_timeout": LEASE_SECONDS}
                    workers.enter_context(ForkedWorker(self.nursery, working, application, folder, options))
                for storm, packets in STORMS:
                    felt = became(storm, packets, *roads)
                    load.goes_on(application, f"in {storm}", publishes=PUBLISHES, effects=EFFECTS)
                    wait_for(felt, SECONDS, f"packets that {storm} met")
                for storm, packets in ONE_WAY:
                    wait_for(became(storm, packets, *roads), SECONDS, f"packets that {storm} met")
                    self.heals(load, application, roads, f"after {storm}")
                self.partition(direct, roads)
                self.heals(load, application, roads, "after a partition")
                load.finish(direct, application)
            judge(self.found, load, application.effects())
            one_message_each(self.found, application)
        self.counted(producing, working)

    def partition(self, direct: ContractTransport, roads: list[Road]) -> None:
        """Nothing passes, until every lease of the workers has ended: within a lease and a tick."""
        became(CUT, 0, *roads)
        cut_at = time.monotonic()

        def leased() -> int:
            return int(direct.call("queue.stats", {"queue": QUEUE})["leased"])

        wait_for(lambda: leased() == 0, SECONDS, "the leases of cut-off workers to end")
        within(self.found, "leases of cut-off workers ended", cut_at, LEASE_SECONDS + TICK_SECONDS)
        self.found.count("partitions")

    def heals(self, load: Load, application: Application, roads: list[Road], when: str) -> None:
        """All is calm: work goes on within a lease and a tick."""
        done = application.count()
        became(CALM, 0, *roads)
        healed_at = time.monotonic()
        wait_for(lambda: application.count() > done, SECONDS, f"an effect {when}")
        within(self.found, "work goes on after healing", healed_at, LEASE_SECONDS + TICK_SECONDS)
        load.goes_on(application, when, publishes=PUBLISHES, effects=EFFECTS)

    def half_open(self, road: Road) -> None:
        """A worker on a road that falls silent."""
        half_open(self.nursery, self.server, road, self.folder / "half-open", self.found)
        self.counted(road)

    def stubborn(self, road: Road, *, keyed: bool) -> None:
        """Producers repeat each request on a new connection until it is answered."""
        road.becomes(UNANSWERED)

        def publish(number: int) -> None:
            body: dict[str, object] = {"queue": "stubborn", "payload": 1, "job_key": f"job:{number}"}
            persist(road.url, body, keyed=keyed, seconds=STUBBORN_SECONDS)

        with ThreadPoolExecutor(STUBBORN_AT_ONCE) as pool:
            list(pool.map(publish, range(STUBBORN)))
        with closing(self.server.client()) as direct:
            stored = left(direct, "stubborn")
        self.found.expect(stored == STUBBORN, f"{STUBBORN} publishes stored {stored} messages")
        self.counted(road)

    def counted(self, *roads: Road) -> None:
        """What packets met on these roads."""
        for road in roads:
            for name, number in road.counts.items():
                self.found.count(f"packets: {name}", number)
                self.found.count("packets lost or reset", number)


def became(storm: Storm, packets: int, *roads: Road) -> Callable[[], bool]:
    """The storm is on these roads; what is returned tells whether it met so many packets on each."""
    enough = [road.counts.total() + packets for road in roads]
    for road in roads:
        road.becomes(storm)
    return lambda: all(road.counts.total() >= most for road, most in zip(roads, enough, strict=True))


def near(seed: int, *parts: Callable[[Round, list[Road]], None]) -> Found:
    """A round of these parts at once, each with roads of its own, in a thread that is near."""
    found = Found()
    with (
        tempfile.TemporaryDirectory(prefix="redrive-proof-") as name,
        Roads(5, seed) as made,
        ExitStack() as stack,
    ):
        with made.far.inside():
            far_nursery = stack.enter_context(Nursery())
        with made.near.inside():
            nursery = stack.enter_context(Nursery())
        storage = f"sqlite:///{Path(name) / 'queue.db'}"
        server = stack.enter_context(FarServer(made.far, far_nursery, storage, made.roads[0]))
        rounds = [Round(nursery, server, Path(name), Found()) for _ in parts]
        with ThreadPoolExecutor(len(parts), initializer=made.near.enter) as pool:
            for ended in [
                pool.submit(part, one, made.roads) for part, one in zip(parts, rounds, strict=True)
            ]:
                ended.result()
        for one in rounds:
            found.add(one.found)
    found.count("rounds with delayed and reordered packets" if netem() else "rounds without netem")
    return found


def packets(seed: int) -> Found:
    """One round."""
    return near(
        seed,
        lambda one, roads: one.storms(roads[1], roads[2]),
        lambda one, roads: one.half_open(roads[3]),
        lambda one, roads: one.stubborn(roads[4], keyed=True),
    )


def without_keys(seed: int) -> Found:
    """The control: repeated without an idempotency key, requests whose answer was lost store twice."""
    return near(seed, lambda one, roads: one.stubborn(roads[4], keyed=False))


PROOFS = (
    Proof(
        "network-packets",
        "However the network treats packets, what was acknowledged is one message with one effect, and work "
        "goes on within a lease and a tick of its healing.",
        "packets lost or reset",
        50_000,
        packets,
        {"idempotency keys": without_keys},
        missing=roads_missing,
    ),
)
