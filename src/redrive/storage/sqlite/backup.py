"""A copy of the file while the service goes on."""

from __future__ import annotations

import contextlib
import os
import threading
from pathlib import Path

import apsw

from redrive import seams
from redrive.storage.port import Lost
from redrive.storage.sqlite.connection import named_failures

_PAGES = 256  # a step, 1 MiB: what a commit may have to wait for
_PAUSE_SECONDS = 0.05


def copy_from(writer: apsw.Connection, lock: threading.RLock, target: Path, seconds: float = 600.0) -> int:
    """Copy the database of ``writer`` to the new file ``target``, synced to disk; its size in bytes.

    The copy is made in steps from the writing connection, under ``lock`` (which every transaction holds):
    SQLite carries what is committed between two steps over into the copy, so that it ends as the store of
    its last step, never begins again, and pins no snapshot that would keep the write-ahead log growing.

    Raises ``FileExistsError`` when ``target`` is there, and :class:`Lost` when the copy cannot be finished
    within ``seconds``; then nothing of it is left.
    """
    with target.open("xb"):  # ours from here on, or FileExistsError
        pass
    try:
        with named_failures():
            _copy(writer, lock, target, seams.monotonic() + seconds)
        _sync_folder(target.parent)
    except BaseException:
        for leftover in (target, target.with_name(target.name + "-journal")):
            with contextlib.suppress(OSError):
                leftover.unlink()
        raise
    return target.stat().st_size


def _copy(writer: apsw.Connection, lock: threading.RLock, target: Path, ends: float) -> None:
    copy = apsw.Connection(str(target))
    never = threading.Event()
    with lock:
        steps = copy.backup("main", writer, "main")
    try:
        while not steps.done:
            if seams.monotonic() > ends:
                raise Lost(f"the backup was not finished in time; {steps.remaining} pages were left")
            try:
                with lock:
                    steps.step(_PAGES)
            except (apsw.BusyError, apsw.LockedError):
                seams.wait(never, _PAUSE_SECONDS)
    finally:
        with lock:
            steps.close(True)
        copy.close()


def _sync_folder(folder: Path) -> None:
    """Make the new file's name durable too."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
