"""From the event loop to the service and back: replies cross threads in batches, reads run off the loop."""

from __future__ import annotations

import asyncio
import concurrent.futures
import functools
import threading
from collections import deque
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from redrive.domain.errors import OutcomeUnknown, Overloaded, RedriveError
from redrive.service import Service


class ClientGone(Exception):
    """The client went away while it waited; there is nobody to answer."""


class Mailbox:
    """Carries results from the committer's thread to the loop, with one wake-up for all that wait."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._lock = threading.Lock()
        self._waiting: deque[tuple[asyncio.Future[Any], Any]] = deque()
        self._woken = False

    def post(self, future: asyncio.Future[Any], result: Any) -> None:
        """Resolve ``future`` with ``result`` on the loop; an exception is set as such. Any thread."""
        with self._lock:
            self._waiting.append((future, result))
            if self._woken:
                return
            self._woken = True
        try:
            self._loop.call_soon_threadsafe(self._deliver)
        except RuntimeError:  # the loop is closed: the server is gone, and with it who waited
            self._waiting.clear()

    def _deliver(self) -> None:
        with self._lock:
            arrived, self._waiting = self._waiting, deque()
            self._woken = False
        for future, result in arrived:
            if future.done():
                continue
            if isinstance(result, BaseException):
                future.set_exception(result)
            else:
                future.set_result(result)


class Edge:
    """Runs the service's work for async callers. One for each loop."""

    def __init__(
        self, service: Service, *, readers: int, reads_waiting_max: int, reply_seconds: float
    ) -> None:
        self._service = service
        self._mailbox = Mailbox(asyncio.get_running_loop())
        self._loop = asyncio.get_running_loop()
        self._readers = ThreadPoolExecutor(readers, thread_name_prefix="redrive-read")
        # apart from the readers: a publish must not wait behind purges and lists
        self._decoders = ThreadPoolExecutor(1, thread_name_prefix="redrive-decode")
        self._running: set[concurrent.futures.Future[Any]] = set()
        self._reads_waiting_max = reads_waiting_max
        self._reply_seconds = reply_seconds
        self._outgoing: list[tuple[Any, Callable[[object], None]]] = []
        # in the order of their deadlines, for all have the same time: one timer does for all
        self._unanswered: dict[asyncio.Future[Any], float] = {}
        self._watch: asyncio.TimerHandle | None = None
        self._parked: set[asyncio.Future[Any]] = set()
        self._stopping = False

    async def commit(
        self,
        command: Any,
        *,
        wait_seconds: float = 0.0,
        gone: Callable[[], Awaitable[None]] | None = None,
        orphan: Callable[[Any], None] | None = None,
    ) -> Any:
        """The committer's result for ``command``. ``gone`` returns when the client went away: then the parked
        ticket is cancelled and ClientGone raised; a result that comes nevertheless goes to ``orphan``. Raises
        what the committer refused with.
        """
        future: asyncio.Future[Any] = self._loop.create_future()
        reply = functools.partial(self._mailbox.post, future)
        if wait_seconds > 0:
            ticket = self._service.committer.submit(command, reply)
            limit = self._reply_seconds + wait_seconds
            deadline = self._loop.call_later(limit, _too_late, future, limit)
            future.add_done_callback(lambda _: deadline.cancel())
            return await (future if gone is None else self._park(future, ticket, gone, orphan))
        # handed over when the loop has run what is ready: requests that came together share a commit, and
        # the committer is not woken for the first of them only to fight the loop for the interpreter
        if not self._outgoing:
            self._loop.call_soon(self._hand_over)
        self._outgoing.append((command, reply))
        self._unanswered[future] = self._loop.time() + self._reply_seconds
        if self._watch is None:
            self._watch = self._loop.call_later(self._reply_seconds, self._end_late)
        try:
            return await future
        finally:
            del self._unanswered[future]

    def _hand_over(self) -> None:
        outgoing, self._outgoing = self._outgoing, []
        self._service.committer.submit_all(outgoing)

    def _end_late(self) -> None:
        now, self._watch = self._loop.time(), None
        late: list[asyncio.Future[Any]] = []
        for future, deadline in self._unanswered.items():
            if deadline > now:
                self._watch = self._loop.call_later(deadline - now, self._end_late)
                break
            late.append(future)
        for future in late:
            _too_late(future, self._reply_seconds)

    async def read(self, run: Callable[[], Any]) -> Any:
        """The result of the blocking ``run``, off the loop; raises Overloaded when too many wait."""
        if len(self._running) >= self._reads_waiting_max:
            raise Overloaded(f"more than {self._reads_waiting_max} reads are waiting")
        running = self._readers.submit(run)
        self._running.add(running)
        running.add_done_callback(self._running.discard)
        return await asyncio.wrap_future(running)

    async def understand(self, run: Callable[[], Any]) -> Any:
        """As :meth:`read`, for what works on a request's bytes alone (which are bounded elsewhere)."""
        return await self._loop.run_in_executor(self._decoders, run)

    def stop(self) -> None:
        """Answer every parked long poll with Overloaded, and who would park from now on."""
        self._stopping = True
        for future in list(self._parked):
            if not future.done():
                future.set_exception(stopping())

    def close(self, seconds: float) -> None:
        """Stop the readers, waiting so long for what they run; a longer purge ends with the committer."""
        self._decoders.shutdown(wait=True, cancel_futures=True)
        self._readers.shutdown(wait=False, cancel_futures=True)
        concurrent.futures.wait(list(self._running), seconds)

    async def _park(
        self,
        future: asyncio.Future[Any],
        ticket: Any,
        gone: Callable[[], Awaitable[None]],
        orphan: Callable[[Any], None] | None,
    ) -> Any:
        # the caller's future may end early (gone, stopping); the reply's own future tells what came of it
        answer: asyncio.Future[Any] = self._loop.create_future()
        future.add_done_callback(lambda done: _pass_on(done, answer, orphan))
        watch = asyncio.ensure_future(gone())
        self._parked.add(answer)
        try:
            if self._stopping:
                raise stopping()
            await asyncio.wait({answer, watch}, return_when=asyncio.FIRST_COMPLETED)
            if not answer.done():
                raise ClientGone
            return answer.result()
        except (ClientGone, RedriveError, asyncio.CancelledError):
            answer.cancel()
            ticket.cancel()
            raise
        finally:
            self._parked.discard(answer)
            watch.cancel()


def _pass_on(
    done: asyncio.Future[Any], answer: asyncio.Future[Any], orphan: Callable[[Any], None] | None
) -> None:
    error = done.exception()
    if answer.done():
        if error is None and orphan is not None:
            orphan(done.result())
    elif error is not None:
        answer.set_exception(error)
    else:
        answer.set_result(done.result())


def stopping() -> Overloaded:
    """The refusal while the server stops."""
    return Overloaded("the server is stopping", hint="Try again; another one answers.", retry_after=1)


def _too_late(future: asyncio.Future[Any], seconds: float) -> None:
    if not future.done():
        future.set_exception(
            OutcomeUnknown(
                f"the store did not answer within {seconds:g} s; whether it was done is not known",
                hint="Repeat it with the same idempotency key or receipt handle.",
            )
        )
