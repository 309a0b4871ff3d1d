"""One run of a worker, from its first lease to its last settlement: the threads and how they end."""

from __future__ import annotations

import logging
import queue
import threading
from collections.abc import Callable, Iterable
from typing import Any, Literal

from redrive import seams
from redrive.domain.errors import RedriveError
from redrive.transports import Transport
from redrive.worker import faults, memory
from redrive.worker.execution import CoroutineLoop, Execution
from redrive.worker.giveback import give_back
from redrive.worker.health import HealthServer
from redrive.worker.heartbeat import Heartbeat
from redrive.worker.holdings import Held, Holdings
from redrive.worker.leasing import Leasing
from redrive.worker.pace import Pace
from redrive.worker.relay import Relay
from redrive.worker.runners import Runner
from redrive.worker.settings import EXIT_BUG, EXIT_RECYCLE, EXIT_STOPPED, Settings
from redrive.worker.settle import Settler

_LOG = logging.getLogger("redrive.worker")
_LOOK_SECONDS = 0.05
_REVOKED_SECONDS = 2.0  # what a handler gets to notice that its lease is gone
_SETTLE_SECONDS = 5.0
_JOIN_SECONDS = 3.0
_SLOTS_SECONDS = 0.5  # a handler that still runs now will not end for waiting

PROBE_KEY = "redrive-start"  # of no job: whether the ledger answers is all that is asked

Command = Literal["stop", "recycle"]


class Untouched(Exception):
    """The ledger did not let the handler begin: the lease goes back, and none is taken until it answers."""


class Shift:
    """The parts of one run and their order. ``commands`` may be fed by a signal handler: put is reentrant."""

    def __init__(
        self,
        settings: Settings,
        transport: Transport,
        ledger: Any,
        execution: Execution,
        make_runner: Callable[[], Runner],
        coroutines: CoroutineLoop | None,
    ) -> None:
        self.commands: queue.SimpleQueue[Command] = queue.SimpleQueue()
        self.finished = 0
        self._settings = settings
        self._transport = transport
        self._ledger = ledger
        self._execution = execution
        self._make_runner = make_runner
        self._coroutines = coroutines
        self._stopping = threading.Event()
        self._ended = threading.Event()
        self._able = threading.Event()  # a slot can run jobs
        self._ledger_down = threading.Event()
        self._count = threading.Lock()
        self._threads: dict[str, threading.Thread] = {}
        self._slots: list[threading.Thread] = []
        self._health: HealthServer | None = None
        self.holdings = Holdings(settings.concurrency, settings.prefetch)
        self._settler = Settler(transport, settings.queue, self.holdings, ledger, self._ended)
        self._heartbeat = Heartbeat(transport, settings.queue, self.holdings)
        self._leasing = Leasing(
            transport,
            settings.queue,
            self.holdings,
            visibility_timeout=settings.visibility_timeout,
            wait_seconds=settings.wait_seconds,
            consumer_id=execution.consumer_id,
            concurrency=settings.concurrency,
            able=self._able,
            stopping=self._stopping,
        )
        relayed = ledger is not None and settings.relay
        idle_seconds = min(1.0, settings.wait_seconds)
        self._relay = Relay(ledger, transport, idle_seconds=idle_seconds) if relayed else None

    def ask_ledger(self) -> None:
        """Raise LedgerNotInstalled where its tables are missing; a database that is down is waited for."""
        if self._ledger is None:
            return
        try:
            self._ledger.job(PROBE_KEY)
        except RedriveError as error:
            if error.code != "LEDGER_RETRY":
                raise
            _LOG.warning("no job is taken until the ledger's database answers: %s", error)
            self._ledger_down.set()

    def start(self) -> None:
        """Start every duty in a thread of its own."""
        if self._settings.health_port is not None:
            self._health = HealthServer(self._settings.health_host, self._settings.health_port, self.ready)
        if self._coroutines is not None:
            self._thread("coroutines", self._coroutines.run)
        self._thread("settle", self._settler.loop)
        for number in range(1 if self._settings.concurrency <= 4 else 4):
            self._thread(f"heartbeat-{number}", lambda: self._heartbeat.loop(self._ended))
        self._slots = [self._thread(f"slot-{n}", self._slot) for n in range(self._settings.concurrency)]
        if (relay := self._relay) is not None:
            self._thread("relay", lambda: relay.loop(self._stopping))
        self._thread("lease", self._leasing.loop)

    def _thread(self, name: str, duty: Callable[[], None]) -> threading.Thread:
        thread = threading.Thread(target=duty, name=f"redrive-{name}", daemon=True)
        thread.start()
        self._threads[name] = thread
        return thread

    def ready(self) -> tuple[bool, str]:
        """Whether this worker polls, and a few words for the probe."""
        if self._stopping.is_set():
            return False, "stopping"
        silent = seams.monotonic() - self._leasing.pulse_at
        if silent > self._settings.not_polling_seconds:
            return False, f"has not polled for {silent:.0f} s"
        return True, "polling"

    @property
    def health_port(self) -> int | None:
        """The port that the health server got."""
        return self._health.port if self._health is not None else None

    def _slot(self) -> None:
        runner = self._make_runner()
        pace = Pace(_LOG, "running jobs", self._stopping)
        try:
            while True:
                held: Held | None = None
                try:
                    self._prepare(runner)
                    if (held := self.holdings.take()) is None:
                        return
                    self._one(held, runner)
                    pace.succeeded()
                except Exception as error:  # noqa: BLE001 - not the job's fault: it goes back untouched
                    back = [held] if held is not None and not held.settled else []
                    self._give_back(back)
                    if pace.failed(error):
                        return
        finally:
            runner.close()

    def _prepare(self, runner: Runner) -> None:
        """Let the lease loop go on when a handler could run; raises when none can."""
        runner.warm()
        if self._ledger_down.is_set():
            self._ledger.job(PROBE_KEY)
            self._ledger_down.clear()
        self._able.set()

    def _one(self, held: Held, runner: Runner) -> None:
        acked_first = faults.unsafe("ack-first")
        if acked_first:
            self._transport.ack(self._settings.queue, [held.item])
        outcome = runner.run(held)
        if outcome.kind == "untouched":
            self._ledger_down.set()
            self._able.clear()
            raise Untouched(outcome.info.message)
        if acked_first or outcome.kind == "lost":
            if outcome.kind == "lost":
                _LOG.warning("job %s was stopped: its lease is not ours", held.delivery.job_key)
            self.holdings.drop(held)
        elif outcome.kind == "done":
            self._settler.done(held)
        else:
            job = self._execution.bare_job(held.delivery)
            job.log.warning("job %s: %s: %s", job.key, outcome.kind, outcome.info.message)
            self._settler.failed(held, job, outcome)
        self._finished_one()

    def _finished_one(self) -> None:
        with self._count:
            self.finished += 1
            worn = self._settings.recycle_after is not None and self.finished >= self._settings.recycle_after
        if self._settings.executor == "processes":
            return  # each child is recycled by itself
        cap = self._settings.memory_cap_bytes
        if worn or (cap is not None and memory.rss_bytes() > cap):
            self.commands.put("recycle")

    def wait(self) -> int:
        """Work until a command comes; the exit code. Then :meth:`stop` it."""
        while True:
            try:
                command = self.commands.get(timeout=1.0)
            except queue.Empty:
                dead = [name for name, thread in self._threads.items() if not thread.is_alive()]
                if not dead:
                    continue
                _LOG.critical("threads died, which is a bug: %s", ", ".join(dead))
                return EXIT_BUG
            return EXIT_RECYCLE if command == "recycle" else EXIT_STOPPED

    def wait_idle(self, ends_at: float) -> bool:
        """Work until an empty poll that began after the last change; False when ``ends_at`` comes first."""
        while seams.monotonic() < ends_at:
            if self.holdings.wait_empty(_LOOK_SECONDS) and self._quiet():
                return True
            seams.wait(self._stopping, _LOOK_SECONDS)
        return False

    def _quiet(self) -> bool:
        changed = self.holdings.changed_at
        if self._relay is not None:
            if self._relay.empty_at is None or self._relay.empty_at <= changed:
                return False
            changed = max(changed, self._relay.moved_at)
        return self._leasing.empty_poll_at is not None and self._leasing.empty_poll_at > changed

    def stop(self) -> None:
        """Lease nothing more, give back what waits, finish or release what runs, settle, end the threads.

        Beyond the grace it takes :data:`_SETTLE_SECONDS` and a poll's time, also when the queue is out of
        reach: what is then left runs out by itself.
        """
        self._stopping.set()
        waiting = self.holdings.close()
        back = self._give_back_beside(waiting)
        self._finish_running()
        ends_at = seams.monotonic() + self._settings.wait_seconds + _SETTLE_SECONDS
        _join(filter(None, [back, self._threads.get("lease")]), ends_at)
        if not self._settler.wait_empty(ends_at - seams.monotonic()):
            _LOG.warning("stopped with settlements unanswered; those jobs come again")
        self._ended.set()
        self._settler.wake()
        if self._coroutines is not None:
            self._coroutines.stop()
        duties = [thread for thread in self._threads.values() if thread not in self._slots]
        _join(duties, seams.monotonic() + _JOIN_SECONDS)
        _join(self._slots, seams.monotonic() + _SLOTS_SECONDS)
        if self._health is not None:
            self._health.close()

    def _give_back_beside(self, leases: Iterable[Held]) -> threading.Thread | None:
        try:
            return self._thread("give-back", lambda: self._give_back(leases))
        except RuntimeError:  # no memory for a thread: a handler may have taken it all
            self._give_back(leases)
            return None

    def _give_back(self, leases: Iterable[Held]) -> None:
        give_back(self._transport, self._settings.queue, self.holdings, leases)

    def _finish_running(self) -> None:
        """A grace for the handlers, or until a second command; interrupted is not failed: release them."""
        ends_at = seams.monotonic() + self._settings.grace_seconds
        while seams.monotonic() < ends_at:
            if self.holdings.wait_empty(_LOOK_SECONDS, running_only=True):
                return
            if not self.commands.empty() and self.commands.get() == "stop":
                _LOG.warning("second signal: stopping now")
                break
        interrupted = self.holdings.running()
        for held in interrupted:
            held.revoke()
        # a lease must not go to others while its handler still runs, as far as that can be stopped at all
        self.holdings.wait_empty(_REVOKED_SECONDS if interrupted else 0.0, running_only=True)
        rest = [held for held in interrupted if not held.committed]
        self._give_back(rest)


def _join(threads: Iterable[threading.Thread], ends_at: float) -> None:
    """Wait for all of ``threads`` until ``ends_at``; they are daemons, and die with the process."""
    for thread in threads:
        thread.join(max(0.0, ends_at - seams.monotonic()) / seams.TIME_FACTOR)
