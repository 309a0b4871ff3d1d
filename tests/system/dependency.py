"""A dependency that takes its time, and counts how many call it at once."""

from __future__ import annotations

import socketserver
import threading
from typing import Self


class Dependency:
    """Answers ``done`` after ``seconds``, or at once ``away``. ``most`` called at the same moment, ``calls``
    in all while it was there."""

    def __init__(self, seconds: float) -> None:
        self.most = self.calls = 0
        self.away = False
        self._seconds = seconds
        self._now = 0
        self._lock = threading.Lock()
        self._pause = threading.Event()  # never set: how long a call takes
        outer = self

        class Call(socketserver.BaseRequestHandler):
            def handle(self) -> None:
                self.request.sendall(outer._answer())

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

    def _answer(self) -> bytes:
        if self.away:
            return b"away"
        with self._lock:
            self._now += 1
            self.calls += 1
            self.most = max(self.most, self._now)
        self._pause.wait(self._seconds)
        with self._lock:
            self._now -= 1
        return b"done"
