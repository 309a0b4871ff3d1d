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
        self._file = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
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
        os.ftruncate(self._file, 0)
        os.pwrite(self._file, f"process {os.getpid()}".encode(), 0)

    def release(self) -> None:
        """Let another process have the file; nothing when that has been done."""
        held, self._file = self._file, -1
        if held != -1:
            os.close(held)
