"""The port that every driver fills, and the two loops that run a program on one."""

from __future__ import annotations

import asyncio
import threading
from enum import Enum
from typing import Any, Protocol

from redrive import seams
from redrive.ledger.steps import Pause, Performed, Program


class Mode(Enum):
    """Whose transaction it is: decided once, from the connection, before the first statement."""

    OWN = "own"  # an autocommit connection outside a transaction: ours to begin, commit and roll back
    JOINED = "joined"  # the caller's: never committed
    BEGUN = "begun"  # the caller's too, but the driver would not begin it before a SAVEPOINT, so that we do


class Driver(Protocol):
    """A blocking driver. ``dialect`` is sqlite, postgres or mysql; ``handle`` is what a change gets."""

    dialect: str
    handle: Any

    def mode(self) -> Mode:
        """Whose transaction a program on this connection runs in."""

    def is_open(self) -> bool:
        """Whether a transaction is open on this connection."""

    def perform(self, step: Performed) -> Any:
        """Do one step; :class:`Rows` for a statement, what the function returned for a call."""


class AsyncDriver(Protocol):
    """A driver for an event loop; as :class:`Driver`, with a step that is awaited."""

    dialect: str
    handle: Any

    def mode(self) -> Mode:
        """Whose transaction a program on this connection runs in."""

    def is_open(self) -> bool:
        """Whether a transaction is open on this connection."""

    async def perform(self, step: Performed) -> Any:
        """Do one step; the function of a call may return an awaitable."""


def run(driver: Driver, program: Program) -> Any:
    """Run ``program`` to its end and return its value; the database's errors go into the program first."""
    try:
        step = next(program)
        while True:
            try:
                answer = None
                if isinstance(step, Pause):
                    seams.wait(threading.Event(), step.seconds)
                else:
                    answer = driver.perform(step)
            except BaseException as error:  # noqa: BLE001 - the program decides, and raises it again
                step = program.throw(error)
            else:
                step = program.send(answer)
    except StopIteration as end:
        return end.value


async def arun(driver: AsyncDriver, program: Program) -> Any:
    """:func:`run` on an event loop."""
    try:
        step = next(program)
        while True:
            try:
                answer = None
                if isinstance(step, Pause):
                    await asyncio.sleep(step.seconds / seams.TIME_FACTOR)
                else:
                    answer = await driver.perform(step)
            except BaseException as error:  # noqa: BLE001 - the program decides, and raises it again
                step = program.throw(error)
            else:
                step = program.send(answer)
    except StopIteration as end:
        return end.value
