"""HTTP as tests see it: one call and its whole answer, and raw sockets for what no client library sends."""

from __future__ import annotations

import http.client
import json
import socket
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

DEADLINE_SECONDS = 10.0


@dataclass
class Reply:
    """An answer: status, headers in lower case, the body's text."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        """The parsed body."""
        return json.loads(self.body)

    @property
    def data(self) -> Any:
        """The envelope's ``data``; the answer must be a success."""
        assert self.status == 200, self.body
        return self.json["data"]

    @property
    def error(self) -> Any:
        """The envelope's ``error``; the answer must be a failure."""
        assert self.status != 200, self.body
        return self.json["error"]


@dataclass
class Caller:
    """Calls a server under one key; ``body`` is bytes, or a value to send as JSON."""

    url: str
    key: str | None
    service: Any = None  # behind it, where the test runs it itself

    def __call__(
        self, method: str, path: str, body: Any = None, headers: dict[str, str] | None = None
    ) -> Reply:
        parts = urlsplit(self.url)
        assert parts.hostname is not None
        connection = http.client.HTTPConnection(parts.hostname, parts.port, timeout=DEADLINE_SECONDS)
        sent = {"Authorization": f"Bearer {self.key}"} if self.key else {}
        raw = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
        try:
            connection.request(method, path, raw, {**sent, **(headers or {})})
            answer = connection.getresponse()
            found = {name.lower(): value for name, value in answer.getheaders()}
            return Reply(answer.status, found, answer.read())
        finally:
            connection.close()

    def post(self, path: str, body: Any = None, headers: dict[str, str] | None = None) -> Reply:
        """A POST."""
        return self("POST", path, body, headers)

    def get(self, path: str, body: Any = None) -> Reply:
        """A GET."""
        return self("GET", path, body)

    def connect(self) -> socket.socket:
        """A raw connection."""
        parts = urlsplit(self.url)
        return socket.create_connection((parts.hostname or "", parts.port or 0), timeout=DEADLINE_SECONDS)


def read_all(connection: socket.socket) -> bytes:
    """Everything until the server closes."""
    parts = []
    while part := connection.recv(65_536):
        parts.append(part)
    return b"".join(parts)


def read_answer(connection: socket.socket) -> bytes:
    """One whole answer of a connection that stays open: the head, and as much as it announces."""
    with connection.makefile("rb") as lines:
        head = b"".join(iter(lines.readline, b"\r\n"))
        length = int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0])
        return head + b"\r\n" + lines.read(length)
