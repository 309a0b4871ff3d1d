"""Answers ``/readyz`` and ``/healthz`` for a worker: alive but not polling is not ready."""

from __future__ import annotations

import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

REQUEST_SECONDS_MAX = 5.0


class CannotListen(OSError):
    """The health port is taken, or may not be used; the message names the address."""


class HealthServer:
    """A small HTTP server on ``host:port`` (port 0: any). ``ready`` says whether, and in a few words why.

    Raises :class:`CannotListen`.
    """

    def __init__(self, host: str, port: int, ready: Callable[[], tuple[bool, str]]) -> None:
        class Handler(BaseHTTPRequestHandler):
            timeout = REQUEST_SECONDS_MAX

            def do_GET(self) -> None:
                if self.path == "/healthz":
                    self._answer(200, "alive")
                elif self.path == "/readyz":
                    is_ready, why = ready()
                    self._answer(200 if is_ready else 503, why)
                else:
                    self._answer(404, "not found")

            def _answer(self, status: int, text: str) -> None:
                body = (text + "\n").encode()
                self.send_response(status)
                self.send_header("Content-Type", "text/plain; charset=utf-8")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class's name
                """Probes come every few seconds; they are not news."""

        try:
            self._server = ThreadingHTTPServer((host, port), Handler)
        except OSError as error:
            raise CannotListen(f"cannot listen on {host}:{port}: {error.strerror or error}") from error
        self._server.daemon_threads = True
        self.port = int(self._server.server_address[1])
        self._thread = threading.Thread(
            target=lambda: self._server.serve_forever(poll_interval=0.2), name="redrive-health", daemon=True
        )
        self._thread.start()

    def close(self) -> None:
        """Stop answering."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(REQUEST_SECONDS_MAX)
