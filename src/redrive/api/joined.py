"""One write an answer: uvicorn hands an answer's head and body to the transport apart, a system call each."""

from __future__ import annotations

import asyncio
from typing import Any

_JOINED_BYTES_MAX = 64 * 1024  # a larger part is not worth a copy


class JoinedTransport:
    """A transport that holds what is written until the loop has run what is ready, then writes it as one."""

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        self._transport = transport
        self._loop = loop
        self._held: list[bytes] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    def write(self, data: bytes) -> None:
        """Send ``data``, in order, soon."""
        if len(data) > _JOINED_BYTES_MAX:
            self._flush()
            self._transport.write(data)
            return
        if not self._held:
            self._loop.call_soon(self._flush)
        self._held.append(data)

    def close(self) -> None:
        """Close when everything written is sent."""
        self._flush()
        self._transport.close()

    def _flush(self) -> None:
        if self._held and not self._transport.is_closing():
            self._transport.write(b"".join(self._held))
        self._held.clear()
