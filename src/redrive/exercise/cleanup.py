"""Removes what an exercise made, whatever happened to it, and says what could not be removed."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from redrive.domain.errors import NotFound
from redrive.exercise.options import JOBS, Names, Options
from redrive.exercise.tables import Tables


def clean(client: Any, tables: Tables, names: Names, options: Options) -> list[str]:
    """What is left behind, with why; every step is tried, also after another failed.

    The server keeps its audit rows and the record of the plan: they are evidence, and never erased.
    """
    keys = [names.key(name) for name in JOBS] + names.surge_keys(options.surge)
    steps: tuple[tuple[str, Callable[[], None]], ...] = (
        (f"queue {names.queue}", lambda: _delete(client, names.queue)),
        (f"queue {names.dead_letters}", lambda: _delete(client, names.dead_letters)),
        (
            f"tables {names.source}, {names.effects} and ledger rows {names.key('…')}",
            lambda: tables.remove(keys),
        ),
    )
    left = []
    for what, step in steps:
        try:
            step()
        except Exception as error:  # noqa: BLE001 - the others are still to be removed
            left.append(f"{what}: {type(error).__name__}: {str(error).strip()[:200]}")
    return left


def _delete(client: Any, queue: str) -> None:
    if not _exists(client, queue):
        return
    client.call("queue.delete", {"queue": queue})
    if _exists(client, queue):
        raise RuntimeError("it is still there after it was deleted")


def _exists(client: Any, queue: str) -> bool:
    try:
        client.call("queue.get", {"queue": queue})
    except NotFound:
        return False
    return True


@contextmanager
def undisturbed() -> Iterator[None]:
    """Ctrl-C and SIGTERM are ignored meanwhile, where signals can be handled at all: in the main thread."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    numbers = (signal.SIGINT, signal.SIGTERM)
    before = [signal.signal(number, signal.SIG_IGN) for number in numbers]
    try:
        yield
    finally:
        for number, handler in zip(numbers, before, strict=True):
            signal.signal(number, handler)
