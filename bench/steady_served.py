"""Workloads through the service and the server: publishes while others purge, expire, wait or start."""

from __future__ import annotations

import contextlib
import http.client
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import psutil

from bench.served import KEY, free_port
from bench.steady_cycles import p99
from bench.steady_stores import ERROR, QUEUE, Kind, Stores, entries
from redrive.contract import shapes
from redrive.domain.errors import ConfirmationRequired, Overloaded
from redrive.service import Service
from redrive.service.committer import CALL_SECONDS_MAX, Committer
from redrive.storage import commands as c

OTHERS = "others"  # the queue whose publishers must not notice
_RATE = 200  # publishes a second, in an open loop
_JOBS = 20  # that a worker holds at one time
_FLEET = 1_000  # messages of one publish and of one lease of the filling
_READY_SECONDS = 60.0


class Gate:
    """Lets the slices of purges and expiries through to the committer while it is open, and counts them."""

    def __init__(self, committer: Committer) -> None:
        self._call = committer.call
        self._open = threading.Event()
        self._given_up = False
        self.removed = self.expired = 0
        committer.call = self._through  # type: ignore[method-assign]

    @contextlib.contextmanager
    def opened(self) -> Iterator[None]:
        """Open meanwhile."""
        self._open.set()
        try:
            yield
        finally:
            self._open.clear()

    def give_up(self) -> None:
        """End the purge that waits."""
        self._given_up = True
        self._open.set()

    def _through(self, command: c.Command, seconds: float = CALL_SECONDS_MAX) -> object:
        if isinstance(command, c.Purge):
            self._open.wait()
            if self._given_up:
                raise Overloaded("the measurement is over")
        if isinstance(command, c.Expire) and not self._open.is_set():
            return 0
        result = self._call(command, seconds)
        if isinstance(result, c.Purged):
            self.removed += result.removed
        elif isinstance(command, c.Expire) and isinstance(result, int):
            self.expired += result
        return result


@contextlib.contextmanager
def serving(stores: Stores, kind: Kind, name: str) -> Iterator[Service]:
    """A started service in this process over a filled store."""
    from redrive.compose import open_service

    service: Service = open_service(stores.url(kind, name))
    with contextlib.closing(service):
        service.start()
        yield service


def publish_p99(committer: Committer, seconds: float, until: Callable[[], bool] = lambda: False) -> float:
    """The p99 in milliseconds of single publishes in an open loop, from when each was due to its answer.

    Ends before its time when ``until`` says so.
    """
    took: list[float] = []
    count = 0
    began = time.perf_counter()
    while not count or (count < seconds * _RATE and not until()):
        due = began + count / _RATE
        time.sleep(max(0.0, due - time.perf_counter()))
        count += 1

        def reply(result: object, due: float = due) -> None:
            assert isinstance(result, list), result
            took.append(time.perf_counter() - due)

        committer.submit(c.Publish(OTHERS, entries(1)), reply)
    ends = time.perf_counter() + 30
    while len(took) < count:
        assert time.perf_counter() < ends, "publishes were not answered"
        time.sleep(0.001)
    return p99(took) * 1000


def during_purge(service: Service, pairs: int, seconds: float) -> tuple[list[tuple[float, float]], int]:
    """Publish p99 while ``QUEUE`` is purged and while nothing else happens, by pair; and how many went."""
    gate = Gate(service.committer)
    token = _purge_token(service)

    def purge() -> None:
        with contextlib.suppress(Overloaded):
            service.call("queue.purge", shapes.QueuePurge(queue=QUEUE, confirm=token))

    thread = threading.Thread(target=purge, daemon=True)
    thread.start()
    found: list[tuple[float, float]] = []
    try:
        publish_p99(service.committer, min(1.0, seconds))
        while len(found) < pairs and thread.is_alive():
            quiet = publish_p99(service.committer, seconds)
            with gate.opened():
                busy = publish_p99(service.committer, seconds, lambda: not thread.is_alive())
            found.append((busy, quiet))
    finally:
        gate.give_up()
        thread.join(60)
    return found, gate.removed


def _purge_token(service: Service) -> str:
    try:
        service.call("queue.purge", shapes.QueuePurge(queue=QUEUE))
    except ConfirmationRequired as asked:
        return str((asked.details or {})["confirm"])
    raise AssertionError("a purge without its token")


def during_expiry(
    service: Service, pairs: int, leases: int, seconds: float
) -> tuple[list[tuple[float, float]], float]:
    """Publish p99 while ``leases`` of ``QUEUE`` run out at once and while nothing else happens, by pair; and
    how many were ended a second."""
    gate, found, spent = Gate(service.committer), [], 0.0
    call = service.committer.call
    for _ in range(pairs):
        for _ in range(0, leases, _FLEET):
            call(c.Publish(QUEUE, entries(_FLEET)))
        held = 0
        while held < leases:
            leased = call(c.Lease(QUEUE, _FLEET, 1_000, "fleet"))
            assert isinstance(leased, c.Leased)
            assert leased.messages
            held += len(leased.messages)
        quiet = max(1.0, seconds)
        publish_p99(service.committer, 0.2)
        calm = publish_p99(service.committer, quiet)  # and the leases run out
        before, began = gate.expired, time.perf_counter()
        with gate.opened():
            busy = publish_p99(service.committer, seconds, lambda b=before: gate.expired - b >= leases)  # type: ignore[misc]
            spent += time.perf_counter() - began
            counted = gate.expired - before
            ends = time.monotonic() + 120
            while gate.expired - before < leases:
                assert time.monotonic() < ends, "leases were not ended"
                time.sleep(0.01)
        assert counted, "nothing ran out while it was measured"
        found.append((busy, calm))
    return found, gate.expired / spent


def during_failures(
    service: Service, pairs: int, seconds: float
) -> tuple[list[tuple[float, float]], float, float]:
    """Publish p99 of others while every job of ``QUEUE`` fails and while every one succeeds, at full speed,
    by pair; and how many a second failed, and succeeded."""
    call, ended, spent = service.committer.call, {True: 0, False: 0}, {True: 0.0, False: 0.0}
    call(c.UpdateQueue(QUEUE, {"max_retries": 1_000}))
    call(c.Publish(QUEUE, entries(_FLEET)))

    def work(stop: threading.Event, fails: bool) -> None:
        while not stop.is_set():
            leased = call(c.Lease(QUEUE, _JOBS, 60_000, "fleet"))
            assert isinstance(leased, c.Leased)
            if fails:
                for message in leased.messages:  # as workers do: a failure is told alone
                    service.committer.submit(
                        c.Nack(message.message_id, message.handle, delay_ms=0, error=ERROR), lambda _: None
                    )
            else:
                call(c.Ack([(message.message_id, message.handle) for message in leased.messages]))
                call(c.Publish(QUEUE, entries(len(leased.messages))))
            ended[fails] += len(leased.messages)

    def turn(fails: bool) -> float:
        stop, began = threading.Event(), time.perf_counter()
        thread = threading.Thread(target=work, args=(stop, fails), daemon=True)
        thread.start()
        try:
            return publish_p99(service.committer, seconds)
        finally:
            stop.set()
            thread.join(60)
            spent[fails] += time.perf_counter() - began

    turn(True), turn(False)
    found = [(turn(True), turn(False)) for _ in range(pairs)]
    return found, ended[True] / spent[True], ended[False] / spent[False]


@contextlib.contextmanager
def server(url: str) -> Iterator[tuple[psutil.Process, str, float]]:
    """``redrive serve`` over the store ``url``: its process, its URL, the seconds until it was ready."""
    port = free_port()
    command = [sys.executable, "-m", "redrive", "serve", "--storage", url, "--port", str(port)]
    environment = {**os.environ, "REDRIVE_API_KEY": KEY, "REDRIVE_LOG_LEVEL": "warning"}
    began = time.monotonic()
    with contextlib.ExitStack() as stack:
        out = subprocess.DEVNULL
        process = subprocess.Popen(command, env=environment, stdout=out, stderr=out)
        stack.callback(end, process)
        while not _is_ready(port):
            assert process.poll() is None, f"the server ended with {process.returncode}"
            assert time.monotonic() < began + _READY_SECONDS, "the server was not ready in time"
            time.sleep(0.01)
        yield psutil.Process(process.pid), f"http://127.0.0.1:{port}", time.monotonic() - began


def end(process: subprocess.Popen[Any]) -> None:
    """SIGTERM, then SIGKILL when that is not enough."""
    process.terminate()
    try:
        process.wait(30)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait(30)


def _is_ready(port: int) -> bool:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=2)
    with contextlib.closing(connection):
        try:
            connection.request("GET", "/readyz")
            return connection.getresponse().status == 200
        except (OSError, http.client.HTTPException):
            return False
