"""HTTP/1.1 as bytes: one connection that sends exactly what a program's language would, and reads answers.

It knows nothing of Redrive. BASE_URL and API_KEY of the environment are all that a program is told.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, BinaryIO
from urllib.parse import urlsplit

BASE_URL = os.environ.get("BASE_URL", "")
API_KEY = os.environ.get("API_KEY", "")
DEADLINE_SECONDS = 25.0


@dataclass
class Answer:
    """A final answer. ``interim`` are the statuses (100) that came before it; header names in lower case.

    Status 0 is no answer: the connection ended first.
    """

    status: int
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b""
    interim: list[int] = field(default_factory=list)

    @property
    def json(self) -> Any:
        """The parsed body."""
        return json.loads(self.body)

    @property
    def data(self) -> Any:
        """The envelope's ``data``, as strict programs take it: an object, under a success without ``error``.

        RuntimeError with the whole answer when it is anything else.
        """
        whole = self.json if self.status == 200 else {}
        strict = self.body.startswith(b'{"ok":true,"data":{') and "error" not in whole
        if not strict or whole["metadata"]["request_id"] != self.headers["x-request-id"]:
            raise RuntimeError(f"{self.status} {self.body!r}")
        return whole["data"]

    @property
    def code(self) -> str | None:
        """The envelope's ``error.code``, None on success or without an answer."""
        return self.json["error"]["code"] if self.status not in (0, 200) else None

    @property
    def cache_hit(self) -> bool:
        """The envelope's ``metadata.cache_hit``."""
        return bool(self.json["metadata"]["cache_hit"])


class Connection:
    """One keep-alive connection; ``opened`` counts how often one had to be made."""

    def __init__(self) -> None:
        parts = urlsplit(BASE_URL)
        self.host = parts.netloc
        self._address = (parts.hostname or "", parts.port or 80)
        self._socket: socket.socket | None = None
        self._lines: BinaryIO | None = None
        self.opened = 0

    def exchange(self, head: Iterable[str], body: Iterable[bytes] = (), *, expects: bool = False) -> Answer:
        """Send ``head`` (lines) and the parts of ``body``, each in a write of its own; one answer.

        With ``expects`` the body waits for a 100 and is not sent when a final answer comes instead.
        """
        connection, lines = self._open()
        interim: list[int] = []
        try:
            connection.sendall("\r\n".join([*head, "", ""]).encode("latin-1"))
            if expects:
                early = _answer(lines)
                if early.status != 100:
                    self.close()  # what the peer makes of a body that never comes is its affair
                    return early
                interim.append(100)
            for part in body:
                connection.sendall(part)
            answer = _answer(lines)
            while answer.status == 100:
                interim.append(100)
                answer = _answer(lines)
        except (ConnectionError, EOFError):
            self.close()
            return Answer(0, interim=interim)
        answer.interim = interim
        if answer.headers.get("connection", "").lower() == "close":
            self.close()
        return answer

    def abandon(self, head: Iterable[str], body: bytes) -> None:
        """Send a request and hang up before its answer."""
        connection, _ = self._open()
        connection.sendall("\r\n".join([*head, "", ""]).encode("latin-1") + body)
        self.close()

    def close(self) -> None:
        """Drop the connection; the next exchange opens another."""
        for end in (self._lines, self._socket):
            if end is not None:
                with contextlib.suppress(OSError):
                    end.close()
        self._socket = self._lines = None

    def _open(self) -> tuple[socket.socket, BinaryIO]:
        if self._socket is None or self._lines is None:
            self._socket = socket.create_connection(self._address, timeout=DEADLINE_SECONDS)
            self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._lines = self._socket.makefile("rb")
            self.opened += 1
        return self._socket, self._lines


def chunks(parts: Iterable[bytes]) -> Iterable[bytes]:
    """The parts as a chunked body, as of a stream whose length is not known."""
    for part in parts:
        yield b"%x\r\n%s\r\n" % (len(part), part)
    yield b"0\r\n\r\n"


def tell(result: dict[str, Any]) -> None:
    """Print what the program found, as one line of JSON."""
    print(json.dumps(result, ensure_ascii=False))


def _answer(lines: BinaryIO) -> Answer:
    first = lines.readline()
    if not first:
        raise EOFError
    status = int(first.split(b" ", 2)[1])
    headers: dict[str, str] = {}
    while (line := lines.readline()) not in (b"\r\n", b""):
        name, _, value = line.decode("latin-1").partition(":")
        headers[name.strip().lower()] = value.strip()
    if status == 100:
        return Answer(status, headers)
    return Answer(status, headers, _body(lines, headers))


def _body(lines: BinaryIO, headers: dict[str, str]) -> bytes:
    if headers.get("transfer-encoding") != "chunked":
        return lines.read(int(headers.get("content-length", "0")))
    parts: list[bytes] = []
    while size := int(lines.readline().split(b";")[0], 16):
        parts.append(lines.read(size))
        lines.readline()
    lines.readline()
    return b"".join(parts)
