"""The network between producers, workers and the server loses, delays, resets, and falls silent.

A round goes through several weathers under load, and cuts one worker off whose connections stay half open.
Whatever was acknowledged is one message with one effect, however often its request was repeated.
"""

from __future__ import annotations

import http.client
import json
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import urlsplit

from redrive.transports import Entry
from tests.database import wait_for
from tests.proof.nursery import ForkedServer, ForkedWorker, Nursery
from tests.proof.places import Place, kind_of, served
from tests.proof.proxy import Proxy, Weather
from tests.proof.runs import Found, Proof
from tests.proof.server_kills import judge
from tests.system.application import QUEUE, Application, Reached, left
from tests.system.load import Load
from tests.system.servers import KEY, SECONDS

WEATHERS = (
    Weather(delayed=0.3),
    Weather(lost=0.3, delayed=0.3),
    Weather(cut=0.2),
    Weather(lost=0.3, cut=0.1, delayed=0.3),
)
RESETS = 4
WORKERS = 3
PATIENT, HASTY, PACE_SECONDS = 4, 2, 0.03
FAULTS = ("connections lost", "answers cut", "resets", "half-open")
LEASE_SECONDS, TICK_SECONDS = 2.0, 1.0
SLACK_SECONDS = 3.0  # of a machine that is busy with the rest of the round
ROOMY = {"max_retries": 100, "retry_policy": {"base_seconds": 0, "max_seconds": 0}}
STUBBORN = 60
TRIES_MAX = 100


@dataclass
class Round:
    """What a round has, and what it finds."""

    seed: int
    nursery: Nursery
    where: Place
    server: ForkedServer
    found: Found

    def storms(self) -> None:
        """Load through every weather, and resets of everything that is open; then all is finished."""
        application = self.where.application
        with (
            closing(self.server.client()) as direct,
            Proxy(self.server.port, self.seed) as here,
            Proxy(self.server.port, self.seed + 1) as there,
            ExitStack() as workers,
        ):
            direct.call("queue.create", {"name": QUEUE, **ROOMY})
            with Load(here.url, patient=PATIENT, hasty=HASTY, pace=PACE_SECONDS) as load:
                for number in range(WORKERS):
                    folder = self.where.folder / f"{number}"
                    options = {"visibility_timeout": LEASE_SECONDS}
                    worker = ForkedWorker(self.nursery, there, application, folder, options)
                    workers.enter_context(worker)
                for weather in WEATHERS:
                    here.weather = there.weather = weather
                    load.goes_on(application, f"in {weather}", publishes=150, effects=60)
                here.weather = there.weather = Weather()
                for number in range(RESETS):
                    here.reset()
                    there.reset()
                    load.goes_on(application, f"after reset {number}")
                load.finish(direct, application)
            self.judge(load, [here, there])

    def judge(self, load: Load, proxies: list[Proxy]) -> None:
        """One effect and one message a key."""
        judge(self.found, load, self.where.application.effects())
        one_message_each(self.found, self.where.application)
        for proxy in proxies:
            self.counted(proxy)

    def counted(self, proxy: Proxy) -> None:
        """The proxy's faults."""
        for name in FAULTS:
            self.found.count(name, proxy.counts[name])
            self.found.count("faults", proxy.counts[name])

    def half_open(self) -> None:
        """A worker behind a proxy that falls silent."""
        with Proxy(self.server.port, self.seed + 2) as proxy:
            half_open(self.nursery, self.server, proxy, self.where.folder / "half-open", self.found)
            self.counted(proxy)

    def stubborn(self, *, keyed: bool) -> None:
        """A producer without our client repeats each request until it is answered."""
        queue = "stubborn"
        with (
            closing(self.server.client()) as direct,
            Proxy(self.server.port, self.seed + 3) as proxy,
        ):
            proxy.weather = Weather(lost=0.2, cut=0.4)
            for number in range(STUBBORN):
                persist(proxy.url, {"queue": queue, "payload": 1, "job_key": f"job:{number}"}, keyed=keyed)
            stored = left(direct, queue)
            self.found.expect(stored == STUBBORN, f"{STUBBORN} publishes stored {stored} messages")
            self.counted(proxy)


class Line(Reached, Protocol):
    """A way to the server that can fall silent."""

    def freeze(self) -> None:
        """From now on nothing passes, and nobody is told: connections are half open."""

    def thaw(self) -> None:
        """It works again."""


def half_open(nursery: Nursery, server: ForkedServer, line: Line, folder: Path, found: Found) -> None:
    """A worker is cut off in a job: another has it within a lease and a tick; later both work."""
    queue = "half-open"
    folder.mkdir()
    application = Application(f"sqlite:///{folder / 'application.db'}")

    def worker(name: str, reached: Reached) -> ForkedWorker:
        options = {"queue": queue, "visibility_timeout": LEASE_SECONDS, "concurrency": 1}
        pause = {"REDRIVE_PAUSE_AT": "before_handler:held"}
        return ForkedWorker(nursery, reached, application, folder / name, options, **pause)

    def has_it(name: str) -> Callable[[], bool]:
        return lambda: bool(list((folder / name).glob("before_handler-*")))

    with closing(server.client()) as direct:
        direct.call("queue.create", {"name": queue, **ROOMY})
        direct.publish(queue, [Entry(payload=1, job_key="held")])
        with worker("cut-off", line):
            wait_for(has_it("cut-off"), SECONDS, "the worker to have the job")
            with worker("other", server) as other:
                line.freeze()
                frozen_at = time.monotonic()
                wait_for(has_it("other"), SECONDS, "the other worker to have the job")
                within(found, "another has the job", frozen_at, LEASE_SECONDS + TICK_SECONDS)
                for name in ("cut-off", "other"):
                    (folder / name / "go").touch()
                wait_for(lambda: left(direct, queue) == 0, SECONDS, "the other to finish")
                found.expect(other.stop() == 0, "the other worker did not stop with code 0")
            line.thaw()
            thawed_at = time.monotonic()
            direct.publish(queue, [Entry(payload=1, job_key="after")])
            wait_for(lambda: application.effects()["after"], SECONDS, "the cut-off worker to work again")
            wait_for(lambda: left(direct, queue) == 0, SECONDS, "its ack")
            found.at_worst("seconds until a cut-off worker works again", time.monotonic() - thawed_at)
        effects = application.effects()
        found.expect(effects == {"held": 1, "after": 1}, f"half-open: {dict(effects)}")


def within(found: Found, what: str, since: float, seconds: float) -> None:
    """It took at most so long, a busy machine's slack aside."""
    took = time.monotonic() - since
    found.at_worst(f"seconds until {what}", took)
    found.expect(took <= seconds + SLACK_SECONDS, f"{took:.1f} s until {what}, not {seconds}")


def one_message_each(found: Found, application: Application) -> None:
    """No key was worked on as two messages."""
    twice = application.rows(
        "select job_key from redrive_attempts group by job_key having count(distinct message_id) > 1"
    )
    for (key,) in twice:
        found.expect(False, f"{key} was published twice")


def ask(url: str, body: dict[str, object], key: str | None, seconds: float = SECONDS) -> dict[str, Any]:
    """One publish as a plain program does it; the answer, empty when there was none."""
    address = urlsplit(url)
    headers = {"Authorization": f"Bearer {KEY}"} | ({"Idempotency-Key": key} if key else {})
    connection = http.client.HTTPConnection(str(address.hostname), address.port, timeout=seconds)
    with closing(connection), suppress(OSError, http.client.HTTPException, ValueError):
        connection.request("POST", "/v1/queue/publish", json.dumps(body), headers)
        answer: dict[str, Any] = json.loads(connection.getresponse().read())
        return answer
    return {}


def persist(url: str, body: dict[str, object], *, keyed: bool, seconds: float = SECONDS) -> None:
    """Publish until it is answered with success, under an idempotency key or not; wait so long each time."""
    for _ in range(TRIES_MAX):
        answer = ask(url, body, str(body["job_key"]) if keyed else None, seconds)
        if answer.get("ok"):
            return
        assert not answer or answer["error"]["retryable"], answer
    raise AssertionError(f"{body} was never answered")


def weather(seed: int) -> Found:
    """One round on the store whose turn it is."""
    found = Found()
    with (
        served(kind_of(seed)) as (nursery, where, server),
        ThreadPoolExecutor(3) as pool,
    ):
        parts = [Round(seed, nursery, where, server, Found()) for _ in range(3)]
        playing = [
            pool.submit(parts[0].storms),
            pool.submit(parts[1].half_open),
            pool.submit(parts[2].stubborn, keyed=True),
        ]
        for part, played in zip(parts, playing, strict=True):
            played.result()
            found.add(part.found)
    return found


def without_keys(seed: int) -> Found:
    """The control: repeated without an idempotency key, requests whose answer was lost store twice."""
    found = Found()
    with (
        served("sqlite") as (nursery, where, server),
    ):
        Round(seed, nursery, where, server, found).stubborn(keyed=False)
    return found


PROOFS = (
    Proof(
        "network",
        "However the network fails, what was acknowledged is one message with one effect.",
        "faults",
        50_000,
        weather,
        {"idempotency keys": without_keys},
    ),
)
