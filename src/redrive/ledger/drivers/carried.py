"""An async driver made of a blocking one: each step is carried to where it may block."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable
from typing import Any

from redrive.ledger.drivers.port import Driver, Mode
from redrive.ledger.steps import Call, Performed

Carrier = Callable[[Callable[[], Any]], Awaitable[Any]]


async def to_thread(function: Callable[[], Any]) -> Any:
    """Run ``function`` in a thread; a cancellation waits for it, since two threads may not share a
    connection."""
    task = asyncio.ensure_future(asyncio.to_thread(function))
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait([task])
        raise


class Carried:
    """``inner`` with its steps carried by ``carry``; calls run on the loop and get ``handle``."""

    def __init__(self, inner: Driver, handle: Any, carry: Carrier) -> None:
        self.inner, self.handle, self._carry = inner, handle, carry
        self.dialect = inner.dialect

    def mode(self) -> Mode:
        """Whose transaction a program on this connection runs in."""
        return self.inner.mode()

    def is_open(self) -> bool:
        """Whether a transaction is open on this connection."""
        return self.inner.is_open()

    async def perform(self, step: Performed) -> Any:
        """Do one step where it may block."""
        if not isinstance(step, Call):
            return await self._carry(lambda: self.inner.perform(step))
        value = step.function(self.handle)
        if inspect.isawaitable(value):
            value = await value
        flush = getattr(self.inner, "flush", None)
        if flush is not None:
            await self._carry(flush)
        return value
