"""A file belongs to one service process; a second one is refused and told who owns it."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

from redrive.domain.errors import Conflict


class Ownership:
    """An exclusive lock beside the database file; the kernel gives it back when the process dies."""

    def __init__(self, database: Path) -> None:
        self._path = database.with_name(database.name + ".owner")
        self._open()
        while not self._lock(database):  # the file that we locked was withdrawn by its owner as we came
            os.close(self._file)
            self._open()
        os.ftruncate(self._file, 0)
        os.pwrite(self._file, f"process {os.getpid()}".encode(), 0)

    def _open(self) -> None:
        flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC
        try:
            self._file, self._made = os.open(self._path, flags | os.O_EXCL, 0o600), True
        except FileExistsError:
            self._file, self._made = os.open(self._path, flags, 0o600), False

    def _lock(self, database: Path) -> bool:
        """Take the lock; whether it is the one that the next process will meet. Raises Conflict."""
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            owner = os.pread(self._file, 200, 0).decode("utf-8", "replace").strip()
            os.close(self._file)
            raise Conflict(
                f"{database} is in use by {owner or 'another process'}",
                hint="a SQLite file belongs to one service process; connect to that one over REST "
                "(redrive.connect('http://…')), or stop it first",
            ) from None
        try:
            return os.path.samestat(os.fstat(self._file), self._path.stat())
        except FileNotFoundError:
            return False

    def withdraw(self) -> None:
        """Give the database back as it was found: without our file, if it was not there before."""
        if self._made:
            self._path.unlink(missing_ok=True)
        self.release()

    def release(self) -> None:
        """Let another process have the file; nothing when that has been done."""
        held, self._file = self._file, -1
        if held != -1:
            os.close(held)
