"""How tests run beside each other in several processes, and how one that must be alone has the machine.

Each process of a run takes its turn before a test and ends it after: shared for most, exclusive for a test
marked ``alone`` (it judges latencies, or changes what the whole machine shares). Waiting happens outside of
the test's own time limit, and who waits to be alone holds the door, so that nobody overtakes it for ever.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Iterator
from pathlib import Path


class Turns:
    """Turns of the processes that share ``folder``; without a folder there is only this one, always alone."""

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder

    @contextlib.contextmanager
    def turn(self, *, alone: bool) -> Iterator[None]:
        """A turn beside others that are not alone, or beside nobody; it ends also when its process is killed.

        It waits as long as tests last; the run's own limit (`session_timeout`) ends a wait that never would.
        """
        if self._folder is None:
            yield
            return
        with _held(self._folder / "room") as room:
            with _held(self._folder / "door") as door:
                fcntl.flock(door, fcntl.LOCK_EX)
                fcntl.flock(room, fcntl.LOCK_EX if alone else fcntl.LOCK_SH)
            yield


@contextlib.contextmanager
def _held(path: Path) -> Iterator[int]:
    """The file, open; closing it gives every lock on it back. No child process inherits it."""
    handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC)
    try:
        yield handle
    finally:
        os.close(handle)
