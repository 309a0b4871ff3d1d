"""A connection under one deadline and one bound of bytes, however slow or endless the other side is."""

from __future__ import annotations

import io
import socket
from typing import Final

from redrive import seams

_PIECE: Final = 64 * 1024


class TooMuch(Exception):
    """The other side has sent more bytes than are read."""


def left(ends: float) -> float:
    """Seconds of a socket's own clock until ``ends``; TimeoutError when it is over."""
    seconds = (ends - seams.monotonic()) / seams.TIME_FACTOR
    if seconds <= 0:
        raise TimeoutError
    return seconds


class Line:
    """What :mod:`http.client` needs of a socket: ``sendall``, ``makefile`` and ``close``.

    ``ends`` is a time of `seams.monotonic`; after it every wait raises TimeoutError. ``bytes_max`` bounds
    what is read in all, the answer's head included.
    """

    def __init__(self, line: socket.socket, ends: float, bytes_max: int) -> None:
        self._line = line
        self._ends = ends
        self._left = bytes_max

    def sendall(self, data: bytes) -> None:
        """Send all of it."""
        view = memoryview(data)
        while view:
            self._wait_at_most()
            view = view[self._line.send(view[:_PIECE]) :]

    def makefile(self, mode: str) -> io.BufferedReader:
        """A reader of bytes; closing it leaves the connection open."""
        assert mode == "rb"
        return io.BufferedReader(_Reader(self))

    def close(self) -> None:
        """Close the connection."""
        self._line.close()

    def read_into(self, buffer: memoryview) -> int:
        """Read what has come, at least a byte unless the other side has ended."""
        if self._left <= 0:
            raise TooMuch
        self._wait_at_most()
        count = self._line.recv_into(buffer[: self._left])
        self._left -= count
        return count

    def _wait_at_most(self) -> None:
        self._line.settimeout(left(self._ends))


class _Reader(io.RawIOBase):
    def __init__(self, line: Line) -> None:
        self._line = line

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: object) -> int:
        return self._line.read_into(memoryview(buffer).cast("B"))  # type: ignore[arg-type]
