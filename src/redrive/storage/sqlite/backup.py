"""A copy of the file while the service goes on."""

from __future__ import annotations

import contextlib
import os
import threading
from pathlib import Path

import apsw

from redrive import seams
from redrive.storage.port import Lost
from redrive.storage.sqlite.connection import named_failures, open_reader

_PAGES = 1_024  # a step: small enough that the deadline is looked at often
_PAUSE_SECONDS = 0.05


def copy_to(source: Path, target: Path, seconds: float = 600.0) -> int:
    """Copy the database ``source`` to the new file ``target``, synced to disk; its size in bytes.

    A reading connection holds one snapshot from the first page to the last: the copy is one moment of the
    store, and the writer never waits. (Without it every commit would make the copy begin again; from the
    writer's own connection each step would hold up a batch.) The write-ahead log cannot be folded in
    meanwhile, which is why the copy must end within ``seconds``.

    Raises ``FileExistsError`` when ``target`` is there, and :class:`Lost` when the copy cannot be finished;
    then nothing of it is left.
    """
    with target.open("xb"):  # ours from here on, or FileExistsError
        pass
    try:
        with named_failures():
            _copy(source, target, seams.monotonic() + seconds)
        _sync_folder(target.parent)
    except BaseException:
        for leftover in (target, target.with_name(target.name + "-journal")):
            with contextlib.suppress(OSError):
                leftover.unlink()
        raise
    return target.stat().st_size


def _copy(source: Path, target: Path, ends: float) -> None:
    reader = open_reader(source)
    copy = apsw.Connection(str(target))
    never = threading.Event()
    try:
        reader.execute("BEGIN")
        reader.execute("PRAGMA schema_version").fetchall()  # the snapshot begins with the first read
        with copy.backup("main", reader, "main") as steps:
            while not steps.done:
                if seams.monotonic() > ends:
                    raise Lost(f"the backup was not finished in time; {steps.remaining} pages were left")
                try:
                    steps.step(_PAGES)
                except (apsw.BusyError, apsw.LockedError):
                    seams.wait(never, _PAUSE_SECONDS)
    finally:
        copy.close()
        reader.close()


def _sync_folder(folder: Path) -> None:
    """Make the new file's name durable too."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
