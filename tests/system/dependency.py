"""A dependency that takes its time, and counts how many call it at once."""

from __future__ import annotations

import socketserver
import threading
from collections import Counter
from typing import Self


class Dependency:
    """Does what ``call KEY`` asks within ``seconds`` and ``note KEY`` at once; nothing while ``away``.

    ``done``: how often each key was done. ``most``: calls at the same moment.
    """

    def __init__(self, seconds: float) -> None:
        self.done: Counter[str] = Counter()
        self.most = 0
        self.away = False
        self._seconds = seconds
        self._now = 0
        self._lock = threading.Lock()
        self._pause = threading.Event()  # never set: how long a call takes
        outer = self

        class Call(socketserver.StreamRequestHandler):
            def handle(self) -> None:
                what, key = self.rfile.readline().decode().split()
                self.wfile.write(outer._answer(what, key))

        class Server(socketserver.ThreadingTCPServer):
            daemon_threads, request_queue_size = True, 128

        self._server = Server(("127.0.0.1", 0), Call)
        self.port = int(self._server.server_address[1])
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), name="dependency")

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def _answer(self, what: str, key: str) -> bytes:
        if self.away and what == "call":
            return b"away"
        if what == "call":
            with self._lock:
                self._now += 1
                self.most = max(self.most, self._now)
            self._pause.wait(self._seconds)
            with self._lock:
                self._now -= 1
        with self._lock:
            self.done[key] += 1
        return b"done"
