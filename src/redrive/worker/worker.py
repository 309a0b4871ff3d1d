"""The worker that an application writes: a queue, a handler, and perhaps a ledger."""

from __future__ import annotations

import inspect
import logging
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any, Literal, TypeVar

from redrive import seams
from redrive.transports import Transport, open_transport
from redrive.worker import faults
from redrive.worker.execution import CoroutineLoop, Execution, Handler, check_signature
from redrive.worker.outcome import Rules
from redrive.worker.processes import ProcessRunner, mark_importable
from redrive.worker.runners import Runner, ThreadRunner
from redrive.worker.settings import Settings, boot_identity
from redrive.worker.shift import Shift

_LOG = logging.getLogger("redrive.worker")
H = TypeVar("H", bound=Handler)


class Worker:
    """Runs one handler over one queue.

    ``target`` is a URL or a transport; ``ledger`` the application's database (URL, SQLAlchemy engine or
    sessionmaker, :class:`redrive.ledger.Ledger`) or None: then ``handler(job)`` runs at least once.
    ``concurrency`` handlers run at once and ``prefetch`` (default: as many) wait leased. ``executor`` is
    ``"threads"`` or ``"processes"`` (then a handler that kills its process takes no other job with it).
    ``visibility_timeout`` in seconds (default: the queue's). ``permanent`` and ``transient`` are exception
    types. ``key`` takes the job key from the payload. ``payload`` is a type that payloads are converted to.
    ``health_port`` answers ``/readyz``. Above ``memory_cap_bytes``, or after ``recycle_after`` jobs, the
    process (or the child) is replaced: :meth:`run` answers exit code 75.
    """

    def __init__(
        self,
        target: str | Transport,
        *,
        queue: str,
        ledger: Any = None,
        api_key: str | None = None,
        concurrency: int = 8,
        prefetch: int | None = None,
        executor: Literal["threads", "processes"] = "threads",
        visibility_timeout: float | None = None,
        wait_seconds: float = 5.0,
        grace_seconds: float = 25.0,
        permanent: tuple[type[BaseException], ...] = (),
        transient: tuple[type[BaseException], ...] = (),
        key: Callable[[Any], str] | None = None,
        payload: Any = None,
        health_port: int | None = None,
        health_host: str = "0.0.0.0",  # noqa: S104 - a probe comes from outside the container
        not_polling_seconds: float = 60.0,
        memory_cap_bytes: int | None = None,
        recycle_after: int | None = None,
        relay: bool = True,
    ) -> None:
        self.settings = Settings(
            queue=queue,
            concurrency=concurrency,
            prefetch=concurrency if prefetch is None else prefetch,
            executor=executor,
            visibility_timeout=visibility_timeout,
            wait_seconds=wait_seconds,
            grace_seconds=grace_seconds,
            rules=Rules(tuple(permanent), tuple(transient)),
            key=key,
            payload_type=payload,
            health_port=health_port,
            health_host=health_host,
            not_polling_seconds=not_polling_seconds,
            memory_cap_bytes=memory_cap_bytes,
            recycle_after=recycle_after,
            relay=relay,
        )
        self._target = target
        self._api_key = api_key
        self._ledger = ledger
        self._opened_ledger: Any = None
        self._handler: Handler | None = None
        self._shift: Shift | None = None

    def __repr__(self) -> str:
        return f"Worker(queue={self.settings.queue!r})"

    def job(self, handler: H) -> H:
        """Decorator: ``handler(job, db)`` with a ledger, ``handler(job)`` without; sync or async."""
        if self._handler is not None:
            raise TypeError(f"{self!r} has a handler already; use one worker for each queue")
        check_signature(handler, with_ledger=self._ledger is not None)
        if self.settings.executor == "processes":
            mark_importable(handler, self)
        self._handler = handler
        return handler

    @property
    def handler(self) -> Handler:
        """The decorated function; raises TypeError without one."""
        if self._handler is None:
            raise TypeError(f"{self!r} has no handler: decorate one with @worker.job")
        return self._handler

    @property
    def ledger_url(self) -> str | None:
        """The ledger's URL, if it was given as one; it may hold a password."""
        return self._ledger if isinstance(self._ledger, str) else None

    def _ledger_opened(self) -> Any:
        if self._ledger is not None and self._opened_ledger is None:
            if hasattr(self._ledger, "apply_once"):
                self._opened_ledger = self._ledger
            else:
                from redrive.ledger import Ledger  # its drivers are loaded by those who keep a ledger only

                self._opened_ledger = Ledger(self._ledger)
        return self._opened_ledger

    def execution(self, consumer_id: str) -> Execution:
        """How this worker runs one job under the identity ``consumer_id``; child processes ask for it too."""
        faults.arm()
        return Execution(
            handler=self.handler,
            queue=self.settings.queue,
            consumer_id=consumer_id,
            ledger=self._ledger_opened(),
            rules=self.settings.rules,
            key=self.settings.key,
            payload_type=self.settings.payload_type,
        )

    def run(self) -> int:
        """Work until SIGTERM, SIGINT or :meth:`stop`; the exit code: 0 stopped, 75 start again, 70 a bug."""
        with self._shift_running(_signals) as shift:
            return shift.wait()

    def stop(self) -> None:
        """Ask a running :meth:`run` to end: finish what runs within the grace, release the rest."""
        if (shift := self._shift) is not None:
            shift.commands.put("stop")

    def run_until_idle(self, seconds: float = 30.0) -> int:
        """Work until nothing is ready and nothing planned is left; how many deliveries ended.

        For tests and scripts. Messages that wait for a delay or a backoff are not waited for. Raises
        TimeoutError after ``seconds``.
        """
        with self._shift_running(nullcontext) as shift:
            idle = shift.wait_idle(seams.monotonic() + seconds)
        if not idle:
            raise TimeoutError(f"{self!r} was not idle within {seconds} s")
        return shift.finished

    @property
    def health_port(self) -> int | None:
        """The port that answers ``/readyz`` while the worker runs."""
        return self._shift.health_port if self._shift is not None else None

    @contextmanager
    def _shift_running(self, signals: Callable[[Shift], AbstractContextManager[Any]]) -> Iterator[Shift]:
        if self._shift is not None:
            raise RuntimeError(f"{self!r} runs already")
        identity = boot_identity()
        execution = self.execution(identity)
        owned = open_transport(self._target, self._api_key) if isinstance(self._target, str) else None
        transport = owned if owned is not None else self._target
        assert not isinstance(transport, str)
        processes = self.settings.executor == "processes"
        awaits = inspect.iscoroutinefunction(self.handler) and not processes
        coroutines = CoroutineLoop(execution.ledger) if awaits else None

        def make_runner() -> Runner:
            if not processes:
                return ThreadRunner(execution, coroutines)
            return ProcessRunner(
                self.handler,
                identity,
                memory_cap_bytes=self.settings.memory_cap_bytes,
                recycle_after=self.settings.recycle_after,
            )

        if execution.ledger is None:
            _LOG.info("%r has no ledger: a job's effect happens at least once", self)
        _LOG.info("%r starts as %s", self, identity)
        shift = Shift(self.settings, transport, execution.ledger, execution, make_runner, coroutines)
        self._shift = shift
        try:
            shift.ask_ledger()  # raises LedgerNotInstalled before any job is leased
            with signals(shift):  # before the first lease: a signal must never find leases and no handler
                try:
                    shift.start()
                    yield shift
                finally:
                    shift.stop()
        finally:
            self._shift = None
            if owned is not None:
                owned.close()
            if self._opened_ledger is not None and self._opened_ledger is not self._ledger:
                self._opened_ledger.close()
                self._opened_ledger = None


@contextmanager
def _signals(shift: Shift) -> Iterator[None]:
    """SIGTERM and SIGINT stop ``shift``, where signals can be handled at all: in the main thread."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    numbers = (signal.SIGTERM, signal.SIGINT)
    before = [signal.signal(number, lambda *_: shift.commands.put("stop")) for number in numbers]
    try:
        yield
    finally:
        for number, handler in zip(numbers, before, strict=True):
            signal.signal(number, handler)
