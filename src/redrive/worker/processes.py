"""Handlers in child processes: a child that dies takes its own job with it, and nothing else.

Each slot owns one child. The handler and the ledger's transaction run inside it; leasing, heartbeat and
settlement stay outside, so a child that exhausts memory or calls ``os._exit`` cannot burn its neighbours.
"""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import logging
import multiprocessing
import signal
from collections.abc import Coroutine
from multiprocessing.connection import Connection, wait
from typing import Any

import msgspec

from redrive import seams
from redrive.transports import Delivery
from redrive.worker import memory
from redrive.worker.execution import Execution, Handler
from redrive.worker.holdings import Held
from redrive.worker.outcome import Outcome

_LOG = logging.getLogger("redrive.worker")
_SPAWN = multiprocessing.get_context("spawn")  # a fork would copy locks that other threads hold
START_SECONDS_MAX = 60.0
_LOOK_SECONDS = 1.0
_READY = b"ready"
WORKER_ATTRIBUTE = "__redrive_worker__"


class ChildFailed(RuntimeError):
    """The child process could not start; the job was not touched."""


class ProcessRunner:
    """One child process; replaced when it died, grew above the cap, or ran ``recycle_after`` jobs."""

    def __init__(
        self, handler: Handler, consumer_id: str, *, memory_cap_bytes: int | None, recycle_after: int | None
    ) -> None:
        self._handler = handler
        self._consumer_id = consumer_id
        self._memory_cap_bytes = memory_cap_bytes
        self._recycle_after = recycle_after
        self._ends_at: Any = _SPAWN.Value("d", 0.0, lock=False)
        self._process: Any = None
        self._pipe: Connection | None = None
        self._jobs = 0

    def _started(self) -> Connection:
        if self._pipe is not None and self._process.is_alive():
            return self._pipe
        self.close()
        ours, theirs = _SPAWN.Pipe()
        self._process = _SPAWN.Process(
            target=_child, args=(self._handler, self._consumer_id, theirs, self._ends_at), daemon=True
        )
        self._process.start()
        theirs.close()
        self._pipe, self._jobs = ours, 0
        if not ours.poll(START_SECONDS_MAX) or _received(ours) != _READY:
            self.close()
            raise ChildFailed("a handler's process did not start; its own error is on stderr")
        return ours

    def warm(self) -> None:
        """Have a living child; raises ChildFailed."""
        self._started()

    def run(self, held: Held) -> Outcome:
        """The outcome of ``held``: ``died`` when the child did, ``lost`` when its lease went first."""
        pipe = self._started()
        child = self._process

        def follow(ends_at: float) -> None:
            self._ends_at.value = ends_at
            if not ends_at:
                child.kill()

        held.watch(follow)
        try:
            with contextlib.suppress(OSError):  # it died just now; the wait below finds out
                pipe.send_bytes(msgspec.json.encode(held.delivery))
            while not wait([pipe, child.sentinel], _LOOK_SECONDS):
                if held.revoked:
                    child.kill()
            answer = _received(pipe) if pipe.poll() else None
        finally:
            held.watch(None)
        if answer is None:
            return self._dead(held)
        self._jobs += 1
        outcome = msgspec.json.decode(answer, type=Outcome)
        self._recycle(outcome.rss_bytes)
        return outcome

    def _dead(self, held: Held) -> Outcome:
        self._process.join(5.0)
        code = self._process.exitcode
        self.close()
        if held.revoked:
            return Outcome("lost")
        how = f"signal {-code}" if code is not None and code < 0 else f"exit code {code}"
        message = f"the handler's process died: {how}"
        return Outcome("died", {"type": "ProcessDied", "message": message, "stack": ""})

    def _recycle(self, rss_bytes: int) -> None:
        worn = self._recycle_after is not None and self._jobs >= self._recycle_after
        if worn or (self._memory_cap_bytes is not None and rss_bytes > self._memory_cap_bytes):
            self.close()

    def close(self) -> None:
        """End the child: at once, since nothing of value runs in it."""
        if self._pipe is not None:
            self._pipe.close()
            self._pipe = None
        if self._process is not None:
            self._process.kill()
            self._process.join(5.0)
            self._process.close()
            self._process = None


def mark_importable(handler: Handler, worker: object) -> None:
    """Let a child process find ``worker`` through ``handler``; raises TypeError if it cannot be imported."""
    name = getattr(handler, "__qualname__", "<nameless>")
    if "<" in name or not inspect.isfunction(handler):
        raise TypeError(f'{name} must be a function of a module: executor="processes" imports it by name')
    setattr(handler, WORKER_ATTRIBUTE, worker)


def _received(pipe: Connection) -> bytes | None:
    try:
        return pipe.recv_bytes()
    except (EOFError, OSError):
        return None


class _SharedProof:
    """The lease's end as the parent's heartbeat writes it; both processes read one monotonic clock."""

    def __init__(self, ends_at: Any) -> None:
        self._ends_at = ends_at

    def provable(self) -> bool:
        return bool(seams.monotonic() < self._ends_at.value)


def _child(handler: Handler, consumer_id: str, pipe: Connection, ends_at: Any) -> None:
    """Run deliveries from ``pipe`` until it is closed, which also happens when the parent dies."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a terminal's Ctrl-C reaches the whole group;
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # the parent decides when a child ends
    execution: Execution = getattr(handler, WORKER_ATTRIBUTE).execution(consumer_id)
    proof = _SharedProof(ends_at)
    with asyncio.Runner() as loop:

        def run_coroutine(coroutine: Coroutine[Any, Any, Any]) -> Any:
            return loop.run(coroutine)

        with contextlib.suppress(OSError):  # the parent died meanwhile: the loop ends at once
            pipe.send_bytes(_READY)
        while (message := _received(pipe)) is not None:
            delivery = msgspec.json.decode(message, type=Delivery)
            outcome = execution.run(delivery, proof, run_coroutine)
            answer = msgspec.structs.replace(outcome, rss_bytes=memory.rss_bytes())
            with contextlib.suppress(OSError):
                pipe.send_bytes(msgspec.json.encode(answer))
