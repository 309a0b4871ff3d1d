"""Where a handler runs when it shares the worker's process: on a slot's thread, or on one event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, Protocol

from redrive import seams
from redrive.worker.execution import CoroutineLoop, Execution
from redrive.worker.holdings import Held
from redrive.worker.outcome import Outcome


class Runner(Protocol):
    """Runs one delivery at a time; each slot has its own."""

    def warm(self) -> None:
        """Be ready for a job, before one is taken; raises when that fails."""

    def run(self, held: Held) -> Outcome:
        """The outcome; stops the handler when the lease is revoked, as far as its kind allows."""

    def close(self) -> None:
        """Give back what it holds."""


class HeldProof:
    """A lease's proof for an execution in this process."""

    def __init__(self, held: Held) -> None:
        self._held = held

    def provable(self) -> bool:
        """Whether the lease is certainly ours now."""
        return self._held.provable(seams.monotonic())


class ThreadRunner:
    """Runs sync handlers on the calling thread, async ones on ``coroutines``.

    A thread cannot be stopped from outside: a handler whose lease is lost runs on, and its commit is refused.
    A coroutine is cancelled.
    """

    def __init__(self, execution: Execution, coroutines: CoroutineLoop | None) -> None:
        self._execution = execution
        self._coroutines = coroutines

    def warm(self) -> None:
        """Always ready."""

    def run(self, held: Held) -> Outcome:
        """The outcome of ``held``."""

        def run_coroutine(coroutine: Coroutine[Any, Any, Any]) -> Any:
            assert self._coroutines is not None
            future = asyncio.run_coroutine_threadsafe(coroutine, self._coroutines.loop)
            held.watch(lambda ends_at: None if ends_at else _cancel(future))
            try:
                return future.result()
            finally:
                held.watch(None)

        return self._execution.run(held.delivery, HeldProof(held), run_coroutine)

    def close(self) -> None:
        """Nothing is held."""


def _cancel(future: Any) -> None:
    future.cancel()
