"""How connections are taken in: a few in a turn of the loop, so that a crowd delays nobody who is inside.

The loop's own servers take in all who wait before anything else has its turn, and go on while more come.
"""

from __future__ import annotations

import asyncio
import errno
import socket
from collections.abc import Callable
from typing import Final

import structlog

_TURN: Final = 8  # connections taken in before those inside have their turn
_PAUSE_SECONDS: Final = 0.1  # when the process has no descriptor left: somebody may hang up meanwhile
_NO_DESCRIPTORS = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)
_LOG = structlog.get_logger("redrive.api")


class Acceptor:
    """Takes connections from the listening ``door`` and gives each a protocol.

    ``turned_away`` says of one more, beside so many that are about to have their protocols, whether it is
    refused, and with what: bytes that are sent before it is closed; no protocol is made for it.
    """

    def __init__(
        self,
        door: socket.socket,
        protocol: Callable[[], asyncio.Protocol],
        turned_away: Callable[[int], bytes | None],
    ) -> None:
        self._door = door
        self._protocol = protocol
        self._turned_away = turned_away
        self._loop = asyncio.get_running_loop()
        self._entering: set[asyncio.Task[object]] = set()
        self._pause: asyncio.TimerHandle | None = None
        self._loop.add_reader(door, self._take_some)

    def close(self) -> None:
        """Take in nobody any more."""
        if self._pause is not None:
            self._pause.cancel()
        self._loop.remove_reader(self._door)
        self._door.close()

    async def wait_closed(self) -> None:
        """Until those who were taken in have their protocols."""
        if self._entering:
            await asyncio.wait(self._entering)

    def _take_some(self) -> None:
        for _ in range(_TURN):
            try:
                line, _ = self._door.accept()
            except (BlockingIOError, ConnectionAbortedError, InterruptedError):
                return
            except OSError as error:
                self._cannot(error)
                return
            refusal = self._turned_away(len(self._entering))
            if refusal is not None:
                _turn_away(line, refusal)
                continue
            line.setblocking(False)
            line.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            entering = self._loop.create_task(self._enter(line))
            self._entering.add(entering)
            entering.add_done_callback(self._entering.discard)

    async def _enter(self, line: socket.socket) -> None:
        try:
            await self._loop.connect_accepted_socket(self._protocol, line)
        except OSError:  # it has hung up already
            line.close()

    def _cannot(self, error: OSError) -> None:
        if error.errno not in _NO_DESCRIPTORS:
            raise error
        _LOG.warning("no connection can be taken in for a moment", error=str(error))
        self._loop.remove_reader(self._door)
        self._pause = self._loop.call_later(
            _PAUSE_SECONDS, self._loop.add_reader, self._door, self._take_some
        )


def _turn_away(line: socket.socket, refusal: bytes) -> None:
    line.setblocking(False)
    try:
        line.send(refusal)  # far smaller than an empty buffer
    except OSError:
        pass
    finally:
        line.close()
