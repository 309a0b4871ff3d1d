"""A TCP proxy that behaves as networks do: it loses, delays, resets, falls silent, keeps answers back.

It runs on a loop in a thread of its own. :class:`Weather` may change at any time; chance comes from the seed.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
import socket
import struct
import threading
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Self

from tests.system.servers import SECONDS

_CHUNK_BYTES = 65_536
_RESET_ON_CLOSE = struct.pack("ii", 1, 0)


@dataclass
class Weather:
    """Chances from 0 to 1. ``lost``: a request or an answer is dropped and its connection reset; ``delayed``:
    it is late, by up to ``delay_seconds``; ``cut``: an answer is dropped and its connection reset, where the
    request before it held ``asked``.
    """

    lost: float = 0.0
    delayed: float = 0.0
    delay_seconds: float = 0.05
    cut: float = 0.0
    asked: bytes = b""


class _Connection:
    """Both ends of one connection; ``silent``: nothing passes any more, and nobody is told."""

    def __init__(self, near: asyncio.StreamWriter, far: asyncio.StreamWriter) -> None:
        self.ends = near, far
        self.silent = False
        self.asked = b""

    def reset(self) -> None:
        """Both ends get a reset, not a farewell."""
        for end in self.ends:
            raw = end.get_extra_info("socket")
            with contextlib.suppress(OSError):
                raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET_ON_CLOSE)
            end.transport.abort()


class Proxy:
    """Listens on a free port of 127.0.0.1 before ``port``. ``counts``: what it did, by its names.

    ``on_cut`` is called, off the loop's thread, between a kept-back answer and its reset.
    """

    def __init__(self, port: int, seed: int, on_cut: Callable[[], object] | None = None) -> None:
        self.counts: Counter[str] = Counter()
        self.weather = Weather()
        self._target = port
        self._chance = random.Random(seed)
        self.on_cut = on_cut
        self._frozen = False
        self._open: set[_Connection] = set()
        self._ready = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve()), name="proxy")

    def __enter__(self) -> Self:
        self._thread.start()
        assert self._ready.wait(SECONDS)
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._ended.set)
        self._thread.join(SECONDS)
        assert not self._thread.is_alive(), "the proxy did not end"

    @property
    def url(self) -> str:
        """Where an HTTP server behind it is reached."""
        return f"http://127.0.0.1:{self.port}"

    def reset(self) -> None:
        """Reset every connection that is open now."""
        self._loop.call_soon_threadsafe(self._reset)

    def freeze(self) -> None:
        """From now on nothing passes, and nobody is told: connections are half open."""
        self._loop.call_soon_threadsafe(self._silence)

    def thaw(self) -> None:
        """New connections work; the old ones stay silent, as after a router forgot them."""
        self._frozen = False

    def _reset(self) -> None:
        for connection in list(self._open):
            self.counts["resets"] += 1
            connection.reset()

    def _silence(self) -> None:
        self._frozen = True
        for connection in self._open:
            self.counts["half-open"] += 1
            connection.silent = True

    async def _serve(self) -> None:
        self._loop, self._ended = asyncio.get_running_loop(), asyncio.Event()
        server = await asyncio.start_server(self._connected, "127.0.0.1", 0)
        self.port = server.sockets[0].getsockname()[1]
        self._ready.set()
        await self._ended.wait()
        server.close()
        for connection in list(self._open):
            connection.reset()
        pumps = asyncio.all_tasks() - {asyncio.current_task()}
        if pumps:  # each finds its end closed
            await asyncio.wait(pumps, timeout=SECONDS)

    async def _connected(self, reader: asyncio.StreamReader, near: asyncio.StreamWriter) -> None:
        try:
            far_reader, far = await asyncio.open_connection("127.0.0.1", self._target)
        except OSError:
            near.transport.abort()
            return
        self.counts["connections"] += 1
        connection = _Connection(near, far)
        connection.silent = self._frozen
        self._open.add(connection)
        if self._ended.is_set():
            connection.reset()
        try:
            await asyncio.gather(
                self._pump(connection, reader, far, asks=True),
                self._pump(connection, far_reader, near, asks=False),
            )
        except OSError:
            connection.reset()
        finally:
            self._open.discard(connection)
            near.close()
            far.close()

    async def _pump(
        self,
        connection: _Connection,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        *,
        asks: bool,
    ) -> None:
        while chunk := await reader.read(_CHUNK_BYTES):
            if connection.silent:
                continue
            if self._chance.random() < self.weather.delayed:
                self.counts["delays"] += 1
                await self._pause(self._chance.random() * self.weather.delay_seconds)
            if self._chance.random() < self.weather.lost:
                self.counts["connections lost"] += 1
                connection.reset()
                return
            if asks:
                connection.asked = chunk
            elif self.weather.asked in connection.asked and self._chance.random() < self.weather.cut:
                await self._cut(connection)
                return
            writer.write(chunk)
            await writer.drain()
        if not connection.silent:
            writer.close()

    async def _cut(self, connection: _Connection) -> None:
        self.counts["answers cut"] += 1
        if self.on_cut is not None:
            await asyncio.to_thread(self.on_cut)
        connection.reset()

    async def _pause(self, seconds: float) -> None:
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._ended.wait(), seconds)
