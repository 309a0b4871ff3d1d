"""Crowds of connections that never finish what they began, beside somebody who works.

A server process with deadlines of some seconds, a crowd in a process of its own (``tests.proof.crowd``), and
a program here that publishes over a kept connection all the while. The crowd must be cut by the deadline, the
program served as before, and memory and sockets of the server be what they were. While thousands come,
two processes more work on the same cores: the program is then held against what it meets while the same crowd
calls on somebody else (``tests.proof.door``).
"""

from __future__ import annotations

import contextlib
import dataclasses
import http.client
import json
import resource
import select
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Self

import psutil

from tests.database import wait_for
from tests.proof.runs import Found, Proof
from tests.proof.unbounded import UnboundedServer
from tests.system.servers import KEY, ROOT, SECONDS, ServerProcess, environment

MIB = 2**20
DESCRIPTORS = 16_384  # of a process, where it may have so many
SPARE_DESCRIPTORS = 400  # of this process and its crowd beside the connections
HELD_BY_DEFAULT = 4_096  # ApiSettings.connections_max
BODY = json.dumps({"queue": "normal", "payload": "x" * 200})
SAMPLES_BEFORE = 600
OPENING_SECONDS = 5.0  # allowed for, until the crowd says that it is there
SAMPLES_MIN = 100
NORMAL_RATIO = 2.0


@dataclass(frozen=True)
class Gathering:
    """A kind of crowd, its size, the server's bound on connections and its deadlines in seconds, and the
    ``slack`` that a loaded machine is given until everybody is gone."""

    kind: str
    count: int
    connections_max: int = HELD_BY_DEFAULT
    deadline: float = 6.0
    growth_mib: float = 96.0
    slack: float = 15.0

    @property
    def name(self) -> str:
        """For counts and complaints."""
        return f"{self.count} {self.kind}, {self.connections_max} held"


GATHERINGS = (
    Gathering("heads", 1_000),
    Gathering("bodies", 1_000),
    Gathering("left", 10_000),
    Gathering("left", 10_000, connections_max=12_000, deadline=10.0, growth_mib=256.0),
)
SHORT = tuple(dataclasses.replace(gathering, deadline=2.0) for gathering in GATHERINGS[:3])


def gather(
    seed: int,
    *,
    gatherings: tuple[Gathering, ...] = GATHERINGS,
    kind: type[ServerProcess] = ServerProcess,
    ratio: float = NORMAL_RATIO,
) -> Found:
    """One round: each crowd in its turn. ``ratio``: what the p99 beside it may be of that before it."""
    del seed  # nothing here is drawn
    found = Found()
    for gathering in gatherings:
        allowed = _allowed_connections()
        count = min(gathering.count, allowed)
        found.count("connections", count)
        if count < gathering.count:
            found.count(
                f"connections that this machine does not allow ({gathering.name})", gathering.count - count
            )
        _meet(found, gathering, count, kind, ratio)
    return found


def _allowed_connections() -> int:
    """As many as a process may have, here and in the server, which inherits the limit."""
    now, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = DESCRIPTORS if most == resource.RLIM_INFINITY else min(most, DESCRIPTORS)
    if now < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, most))
    return max(now, wanted) - SPARE_DESCRIPTORS


def _meet(found: Found, gathering: Gathering, count: int, kind: type[ServerProcess], ratio: float) -> None:
    settings = {
        "header_seconds": gathering.deadline,
        "body_seconds": gathering.deadline,
        "connections_max": gathering.connections_max,
    }
    with (
        tempfile.TemporaryDirectory(prefix="redrive-proof-") as folder,
        kind(f"sqlite:///{Path(folder) / 'queue.db'}", settings=settings) as server,
        contextlib.closing(Program(server.port)) as program,
    ):
        process = psutil.Process(server._process.pid)
        before = {"stay": [program.publish() for _ in range(SAMPLES_BEFORE)]}
        before["come"] = _elsewhere(gathering, count, program)
        sockets, memory = len(process.net_connections()), process.memory_info().rss
        beside: dict[str, list[float]] = {"come": [], "stay": []}
        most = memory
        with Crowd(server.port, gathering, count) as people:
            while not people.ended and not people.late():
                beside["stay" if people.all_there else "come"] += [program.publish() for _ in range(20)]
                most = max(most, process.memory_info().rss)
                people.listen()
            _judge_crowd(found, gathering, people)
        after = [program.publish() for _ in range(SAMPLES_BEFORE)]
        before["stay"] = max(before["stay"], after, key=p99)  # the machine has its own moods
        for when, seconds in beside.items():
            if min(len(seconds), len(before[when])) >= SAMPLES_MIN:
                _judge_program(found, f"while {gathering.name} {when}", before[when], seconds, ratio)
            else:  # a thousand are there at once
                found.count(f"not judged, too quick: {gathering.name} {when}")
        growth = (most - memory) / MIB
        found.at_worst(f"MiB of growth, {gathering.name}", growth)
        found.expect(growth <= gathering.growth_mib, f"{gathering.name}: the server grew by {growth:.0f} MiB")
        with contextlib.suppress(AssertionError):
            wait_for(lambda: len(process.net_connections()) <= sockets, SECONDS, "sockets to be given back")
        left = len(process.net_connections()) - sockets  # files may be more: the store's readers open late
        found.expect(left <= 0, f"{gathering.name}: {left} sockets more than before")
        found.expect(server.ready(), f"{gathering.name}: the server is not ready afterwards")


def _elsewhere(gathering: Gathering, count: int, program: Program) -> list[float]:
    """The publishes of a program while the same crowd comes to a door that is not the server's."""
    command = [sys.executable, "-m", "tests.proof.door"]
    seconds: list[float] = []
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=ROOT, env=environment(), text=True
    ) as door:
        assert door.stdout is not None
        assert door.stdin is not None
        with Crowd(int(door.stdout.readline()), gathering, count) as people:
            while not people.all_there and not people.late():
                seconds += [program.publish() for _ in range(20)]
                people.listen()
        door.stdin.close()
        door.wait(SECONDS)
    return seconds


def _judge_crowd(found: Found, gathering: Gathering, people: Crowd) -> None:
    for how, many in people.ended.items():
        found.count(f"ended {how}", many)
    found.at_worst(f"seconds until the last was gone, {gathering.name}", people.seconds())
    others = set(people.ended) - {"cut", "408", "503"}
    found.expect(bool(people.ended), f"{gathering.name}: some are still connected")
    found.expect(not others, f"{gathering.name}: ended in other ways: {people.ended}")


def _judge_program(found: Found, when: str, before: list[float], during: list[float], ratio: float) -> None:
    alone, beside = p99(before), p99(during)
    found.count("publishes beside", len(during))
    found.at_worst(f"p99 in ms {when}", beside * 1_000)
    found.at_worst(f"p99 as a multiple of that without them {when}", beside / alone)
    what = f"p99 {beside * 1_000:.1f} ms {when}, {alone * 1_000:.1f} ms without them"
    found.expect(beside <= ratio * alone, what)


def p99(seconds: list[float]) -> float:
    """The 99th percentile."""
    return statistics.quantiles(seconds, n=100, method="inclusive")[-1]


class Program:
    """Somebody who works: one kept connection."""

    def __init__(self, port: int) -> None:
        self._line = http.client.HTTPConnection("127.0.0.1", port, timeout=SECONDS)

    def publish(self) -> float:
        """One publish; the seconds until its answer."""
        began = time.perf_counter()
        self._line.request("POST", "/v1/queue/publish", BODY, {"Authorization": f"Bearer {KEY}"})
        answer = self._line.getresponse()
        text = answer.read()
        assert answer.status == 200, text
        return time.perf_counter() - began

    def close(self) -> None:
        """Close the connection."""
        self._line.close()


class Crowd:
    """The process of a crowd. ``ended``: how many ended how, empty while some are connected; ``all_there``
    once all have connected."""

    def __init__(self, port: int, gathering: Gathering, count: int) -> None:
        command = [sys.executable, "-m", "tests.proof.crowd", str(port), gathering.kind, str(count), KEY]
        self._patience = gathering.deadline + gathering.slack
        self._opened = time.monotonic() + OPENING_SECONDS
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=ROOT, env=environment(), bufsize=0
        )
        self.ended: dict[str, int] = {}
        self.all_there = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        try:
            self._process.wait(SECONDS)
        finally:
            self._process.kill()
            self._process.wait()
            self._process.stdout.close()

    def listen(self) -> None:
        """Hear what it has said meanwhile."""
        assert self._process.stdout is not None
        while not self.ended and select.select([self._process.stdout], [], [], 0)[0]:
            line = self._process.stdout.readline()
            assert line, "the crowd ended without a word"
            news = json.loads(line)
            if "open" in news:
                self._opened, self.all_there = time.monotonic(), True
            else:
                self.ended = news
                self._gone = time.monotonic()

    def seconds(self) -> float:
        """From the last connection to the last one's end, or until now."""
        return (self._gone if self.ended else time.monotonic()) - self._opened

    def late(self) -> bool:
        """Whether it has had its time, and what a loaded machine may add."""
        return time.monotonic() > self._opened + self._patience


PROOFS = (
    Proof(
        "hostile-crowds",
        "Crowds that never finish a request are cut by their deadline, and who works beside them is served.",
        "connections",
        220_000,
        gather,
        {
            "deadlines of the protocol": partial(
                gather, gatherings=(Gathering("heads", 20, deadline=1.0, slack=2.0),), kind=UnboundedServer
            )
        },
    ),
)
