"""Room on the disk that is kept for finishing work when there is no other."""

from __future__ import annotations

import contextlib
import logging
import os
import threading
from pathlib import Path

from redrive import seams

RESERVE_BYTES = 32 * 1024 * 1024
_LOOK_SECONDS = 1.0
_CHUNK_BYTES = 1024 * 1024
_LOG = logging.getLogger("redrive.storage")


def _allocate(handle: int, size: int) -> None:
    """Give the file so many bytes of the disk, or raise ``OSError``."""
    if hasattr(os, "posix_fallocate"):
        os.posix_fallocate(handle, 0, size)
        return
    while (held := os.fstat(handle).st_size) < size:  # a system without it: by writing
        os.pwrite(handle, bytes(min(_CHUNK_BYTES, size - held)), held)


class Reserve:
    """A file of ``size`` bytes beside the database, given up when a write finds no room (0: no such file).

    It is taken again when the disk has twice its size free, so that new work does not meet the full disk
    again at once.
    """

    def __init__(self, database: Path, size: int) -> None:
        self._path = database.with_name(database.name + ".reserve")
        self._size = size
        self._look_at = 0.0
        self._lock = threading.Lock()
        self.held = size == 0 or self._take()

    def _take(self) -> bool:
        try:
            handle = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            try:
                _allocate(handle, self._size)
            finally:
                os.close(handle)
        except OSError as error:
            self._remove()
            _LOG.error("no reserve of %d bytes: %s", self._size, error)
            return False
        return True

    def _remove(self) -> None:
        with contextlib.suppress(OSError):
            self._path.unlink()

    def give_up(self) -> None:
        """Let the database have the room."""
        with self._lock:
            if self._size and self.held:
                self.held = False
                self._look_at = seams.monotonic() + _LOOK_SECONDS
                self._remove()
                _LOG.error("the disk is full: the reserve is given up, new work is refused")

    def missing(self) -> bool:
        """Whether new work must be refused; looks for room again, at most once a second."""
        return not self.held and not self._found_room()

    def _found_room(self) -> bool:
        with self._lock:
            now = seams.monotonic()
            if now >= self._look_at:
                self._look_at = now + _LOOK_SECONDS
                if self._free() >= 2 * self._size and self._take():
                    self.held = True
                    _LOG.warning("there is room on the disk again: new work is accepted")
            return self.held

    def _free(self) -> int:
        try:
            disk = os.statvfs(self._path.parent)
        except OSError:
            return 0
        return disk.f_bavail * disk.f_frsize
