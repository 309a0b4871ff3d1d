"""A real HTTP server on loopback that answers what a test tells it, and keeps what it was sent."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass
class Answer:
    """``drop``: close the connection without a word. ``hang``: an event to wait for before answering."""

    status: int = 200
    data: Any = field(default_factory=dict)
    error: dict[str, Any] | None = None
    headers: dict[str, str] = field(default_factory=dict)
    raw: bytes | None = None
    drop: bool = False
    hang: threading.Event | None = None

    def body(self) -> bytes:
        """The bytes on the wire."""
        if self.raw is not None:
            return self.raw
        if self.error is not None:
            return json.dumps({"ok": False, "data": None, "error": self.error, "metadata": {}}).encode()
        return json.dumps({"ok": True, "data": self.data, "metadata": {}}).encode()


@dataclass
class Seen:
    """One request as it arrived."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes
    connection: int


class Script:
    """The answers to come, the last one for ever; and the requests so far."""

    def __init__(self, *answers: Answer) -> None:
        self.answers = list(answers) or [Answer()]
        self.seen: list[Seen] = []
        self.url = ""

    def next(self) -> Answer:
        """The next answer."""
        return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]


@contextmanager
def serving(*answers: Answer) -> Iterator[Script]:
    """Serve ``answers`` on a free port."""
    script = Script(*answers)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        timeout = 20

        def answer(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            headers = {name.lower(): value for name, value in self.headers.items()}
            script.seen.append(Seen(self.command, self.path, headers, body, self.client_address[1]))
            answer = script.next()
            if answer.hang is not None:
                answer.hang.wait(20)
            if answer.drop:
                self.close_connection = True
                return
            payload = answer.body()
            self.send_response(answer.status)
            for name, value in answer.headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(payload)))
            self.end_headers()
            self.wfile.write(payload)

        do_GET = do_POST = do_DELETE = answer  # noqa: N815 - the base class's names

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002
            """Quiet."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    script.url = f"http://127.0.0.1:{server.server_address[1]}"
    try:
        yield script
    finally:
        for answer in script.answers:
            if answer.hang is not None:
                answer.hang.set()
        server.shutdown()
        thread.join(10)
        server.server_close()
