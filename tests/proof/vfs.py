"""A SQLite VFS that tells of every call that changes the disk, and can make any of them fail.

It stands before the system's own VFS: locks, shared memory and the files are real.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable
from pathlib import PurePath
from types import TracebackType
from typing import Any, Literal

import apsw

Kind = Literal["open", "delete", "read", "write", "truncate", "sync", "size"]
_NUMBERS = itertools.count()
_JOURNALS = apsw.SQLITE_OPEN_WAL | apsw.SQLITE_OPEN_MAIN_JOURNAL


@dataclasses.dataclass(frozen=True, slots=True)
class Call:
    """One call of SQLite: ``file`` is the name without its folder, ``offset`` and ``data`` of a write.

    ``offset`` of a truncate is the new size. ``names`` says that the call makes the names of the folder
    durable too: SQLite syncs the folder with the first sync of a new journal, and with a delete.
    """

    kind: Kind
    file: str
    offset: int = 0
    data: bytes = b""
    names: bool = False


@dataclasses.dataclass(frozen=True, slots=True)
class Fault:
    """How a call fails: with the SQLite result ``code``; of a write, ``kept`` bytes are written before."""

    code: int
    kept: int = 0

    def error(self) -> apsw.Error:
        """The exception that makes SQLite see the code."""
        made = apsw.exception_for(self.code)
        assert isinstance(made, apsw.Error)
        return made


Fails = Callable[[Call], Fault | None]
Heard = Callable[[Call], object]


def _never(_call: Call) -> None:
    """No call fails."""


class _Quiet:
    """A fault that SQLite cannot hand on is not a fault of the test."""

    def excepthook(
        self,
        etype: type[BaseException] | None,
        evalue: BaseException | None,
        etraceback: TracebackType | None,
    ) -> bool:
        """Hear of it, and say nothing."""
        return True


class _File(_Quiet, apsw.VFSFile):
    """One open file."""

    def __init__(self, disk: Disk, path: str | apsw.URIFilename | None, flags: list[int]) -> None:
        full = path.filename() if isinstance(path, apsw.URIFilename) else path or ""
        self._file, self._disk = PurePath(full).name, disk
        self._folder_is_due = bool(flags[0] & _JOURNALS) and bool(flags[0] & apsw.SQLITE_OPEN_CREATE)
        super().__init__("unix", path, flags)

    def xRead(self, amount: int, offset: int) -> bytes:  # noqa: N802 - apsw's name
        self._disk.may(Call("read", self._file, offset))
        return super().xRead(amount, offset)

    def xFileSize(self) -> int:  # noqa: N802
        self._disk.may(Call("size", self._file))
        return super().xFileSize()

    def xWrite(self, data: Any, offset: int) -> None:  # noqa: N802
        call = Call("write", self._file, offset, bytes(data))
        fault = self._disk.fails(call)
        if fault is None:
            super().xWrite(data, offset)
            self._disk.heard(call)
            return
        if fault.kept:
            super().xWrite(call.data[: fault.kept], offset)
            self._disk.heard(dataclasses.replace(call, data=call.data[: fault.kept]))
        raise fault.error()

    def xTruncate(self, newsize: int) -> None:  # noqa: N802
        call = self._disk.may(Call("truncate", self._file, newsize))
        super().xTruncate(newsize)
        self._disk.heard(call)

    def xSync(self, flags: int) -> None:  # noqa: N802
        call = self._disk.may(Call("sync", self._file, names=self._folder_is_due))
        super().xSync(flags)
        self._folder_is_due = False
        self._disk.heard(call)


class Disk(_Quiet, apsw.VFS):
    """The VFS; give its ``name`` to an engine. ``fails`` may refuse a call, ``heard`` hears of it when done.

    Calls may come from any thread that uses the store.
    """

    def __init__(self, *, fails: Fails = _never, heard: Heard = _never) -> None:
        self.name = f"proof-{next(_NUMBERS)}"
        self.fails, self.heard = fails, heard
        super().__init__(self.name, "unix")

    def may(self, call: Call) -> Call:
        """The call, unless it fails."""
        fault = self.fails(call)
        if fault is not None:
            raise fault.error()
        return call

    def xOpen(self, name: str | apsw.URIFilename | None, flags: list[int]) -> apsw.VFSFile:  # noqa: N802
        full = name.filename() if isinstance(name, apsw.URIFilename) else name or ""
        call = self.may(Call("open", PurePath(full).name))
        opened = _File(self, name, flags)
        self.heard(call)
        return opened

    def xDelete(self, filename: str, syncdir: bool) -> None:  # noqa: N802
        call = self.may(Call("delete", PurePath(filename).name, names=syncdir))
        super().xDelete(filename, syncdir)
        self.heard(call)
