"""Small fast clients, so that the measurement is of the server."""

from __future__ import annotations

import asyncio
import http.client
import json
from typing import Any
from urllib.parse import urlsplit


class Batches:
    """One keep-alive connection that publishes, leases and acks in batches."""

    def __init__(self, url: str, key: str) -> None:
        parts = urlsplit(url)
        self._connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=30)
        self._headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}

    def _post(self, path: str, body: bytes) -> Any:
        self._connection.request("POST", path, body, self._headers)
        answer = json.loads(self._connection.getresponse().read())
        assert answer["ok"], answer
        return answer["data"]

    def cycle(self, body: bytes, count: int) -> None:
        """``count`` messages: three requests."""
        entry = b'{"payload":%b}' % body
        messages = b",".join([entry] * count)
        self._post("/v1/queue/publish_batch", b'{"queue":"bench","messages":[%b]}' % messages)
        request = b'{"queue":"bench","max_messages":%d,"view":"messages"}' % count
        leased = self._post("/v1/queue/consume", request)["messages"]
        assert len(leased) == count
        items = [{"message_id": m["message_id"], "receipt_handle": m["receipt_handle"]} for m in leased]
        self._post("/v1/queue/ack_batch", json.dumps({"queue": "bench", "items": items}).encode())

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()


class _Hammer(asyncio.Protocol):
    """Sends the same request again as soon as the answer to the last one is whole."""

    def __init__(self, request: bytes, times: int, done: asyncio.Future[None]) -> None:
        self._request, self._left, self._done = request, times, done
        self._buffer = b""
        self._transport: Any = None

    def connection_made(self, transport: Any) -> None:
        self._transport = transport
        transport.write(self._request)

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        head, separator, rest = self._buffer.partition(b"\r\n\r\n")
        if not separator:
            return
        length = int(head.lower().partition(b"content-length:")[2].split(b"\r\n", 1)[0])
        if len(rest) < length:
            return
        assert head.startswith(b"HTTP/1.1 200"), self._buffer
        self._buffer = rest[length:]
        self._left -= 1
        if self._left:
            self._transport.write(self._request)
        else:
            self._transport.close()
            self._done.set_result(None)


def hammer(url: str, key: str, body: bytes, connections: int, times: int) -> None:
    """``connections`` at once, each publishing one message ``times`` times."""
    parts = urlsplit(url)
    content = b'{"queue":"single","payload":%b}' % body
    request = (
        f"POST /v1/queue/publish HTTP/1.1\r\nHost: bench\r\nAuthorization: Bearer {key}\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(content)}\r\n\r\n"
    ).encode() + content

    async def run() -> None:
        loop = asyncio.get_running_loop()
        finished = []
        for _ in range(connections):
            done: asyncio.Future[None] = loop.create_future()
            finished.append(done)
            await loop.create_connection(
                lambda done=done: _Hammer(request, times, done), parts.hostname, parts.port
            )
        await asyncio.wait_for(asyncio.gather(*finished), 120)

    asyncio.run(run())
