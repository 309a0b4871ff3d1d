"""The running server: sockets, uvicorn, graceful stop."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import signal
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

import structlog
import uvicorn

from redrive.api.accepting import Acceptor
from redrive.api.endpoint import Endpoint
from redrive.api.envelope import http_response
from redrive.api.pages import pages
from redrive.api.protocol import BoundedProtocol
from redrive.api.request import Receive, Scope, Send
from redrive.api.settings import ApiSettings, is_loopback
from redrive.domain.errors import Overloaded
from redrive.service import Service

_LOG = structlog.get_logger("redrive.api")
_BACKLOG = 2_048
_SIGNALS = (signal.SIGTERM, signal.SIGINT)


class Application:
    """The ASGI application: ``/v1`` straight to the endpoint, everything else to the pages."""

    def __init__(self, service: Service, settings: ApiSettings, *, metrics_public: bool) -> None:
        self.endpoint = Endpoint(service, settings)
        self.pages = pages(service, self.endpoint, metrics_public=metrics_public)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request."""
        if scope["type"] == "http" and scope["path"].startswith("/v1/"):
            await self.endpoint(scope, receive, send)
        else:
            await self.pages(scope, receive, send)


class _Uvicorn(uvicorn.Server):
    def __init__(
        self,
        config: uvicorn.Config,
        door: socket.socket,
        settings: ApiSettings,
        endpoint: Endpoint,
        ready: Callable[[], None],
    ) -> None:
        super().__init__(config)
        self._door = door
        self._settings = settings
        self._endpoint = endpoint
        self._ready = ready

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """As uvicorn's, but the signal is not raised again at the end: the caller closes the store then."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        kept = {number: signal.signal(number, self.handle_exit) for number in _SIGNALS}
        try:
            yield
        finally:
            for number, handler in kept.items():
                signal.signal(number, handler)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.servers.append(Acceptor(self._door, self._protocol, self._turned_away))  # type: ignore[arg-type]
        self._ready()

    def _protocol(self) -> asyncio.Protocol:
        protocol: asyncio.Protocol = self.config.http_protocol_class(  # type: ignore[call-arg]
            config=self.config, server_state=self.server_state, app_state=self.lifespan.state, _loop=None
        )
        return protocol

    def _turned_away(self, entering: int) -> bytes | None:
        most = self._settings.connections_max
        if len(self.server_state.connections) + entering < most:
            return None
        error = Overloaded(f"the server holds at most {most} connections", hint="Reuse connections.")
        return http_response(error, "Service Unavailable")

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        # before the sockets close: what arrives from now on is refused, parked polls are answered
        self._endpoint.stop()
        await super().shutdown(sockets)


class Server:
    """A server over ``service`` (which stays the caller's to close). ``port`` 0 takes a free one.

    ``run`` blocks until SIGTERM, SIGINT or :meth:`stop` from any thread.
    """

    def __init__(
        self, service: Service, host: str = "127.0.0.1", port: int = 7077, settings: ApiSettings | None = None
    ) -> None:
        self.settings = settings or ApiSettings()
        self._socket = _bound(host, port)
        self.host = host
        self.port: int = self._socket.getsockname()[1]
        self.application = Application(service, self.settings, metrics_public=is_loopback(host))
        self._uvicorn: _Uvicorn | None = None
        self._stop_asked = False

    @property
    def url(self) -> str:
        """Where clients reach it."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"http://{host}:{self.port}"

    @property
    def connections(self) -> int:
        """How many connections are open."""
        return len(self._uvicorn.server_state.connections) if self._uvicorn is not None else 0

    def run(self, ready: Callable[[], None] = lambda: None) -> None:
        """Serve; ``ready`` is called once connections are accepted."""
        # a commit must not wait 5 ms for a busy thread to give the interpreter up
        sys.setswitchinterval(0.0005)
        self._uvicorn = _Uvicorn(
            self._config(), self._socket, self.settings, self.application.endpoint, ready
        )
        self._uvicorn.should_exit = self._stop_asked
        try:
            self._uvicorn.run(sockets=[])  # the door has a way of its own
        finally:
            self.application.endpoint.close()
            self._socket.close()
            _LOG.info("stopped", url=self.url)

    def stop(self) -> None:
        """Ask a running server to stop gracefully. Any thread."""
        self._stop_asked = True
        if self._uvicorn is not None:
            self._uvicorn.should_exit = True

    def _config(self) -> uvicorn.Config:
        protocol: Any = functools.partial(BoundedProtocol, settings=self.settings)
        return uvicorn.Config(
            self.application,
            http=protocol,
            ws="none",
            loop="auto",
            lifespan="off",
            log_config=None,
            access_log=False,
            log_level="error",  # what is wrong with a request is told to its sender
            server_header=False,
            proxy_headers=False,
            timeout_keep_alive=int(self.settings.keep_alive_seconds),
            timeout_graceful_shutdown=int(self.settings.stop_seconds),
        )


def run(
    service: Service,
    host: str = "127.0.0.1",
    port: int = 7077,
    settings: ApiSettings | None = None,
    *,
    ready: Callable[[str], None] | None = None,
) -> None:
    """Serve ``service`` until SIGTERM or SIGINT; ``ready`` gets the URL once it accepts connections.

    SIGTERM: ``/readyz`` answers 503, what is committed is answered, the rest is refused with 503, connections
    close. Raises OSError when the address is taken.
    """
    server = Server(service, host, port, settings)
    server.run((lambda: ready(server.url)) if ready else lambda: None)


def _bound(host: str, port: int) -> socket.socket:
    family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    listening = socket.socket(family, socket.SOCK_STREAM)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind(address)
    except OSError:
        listening.close()
        raise
    listening.listen(_BACKLOG)
    listening.setblocking(False)
    return listening
