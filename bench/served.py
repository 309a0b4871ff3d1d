"""Real server processes for the measurements: Redrive's own, and a bare one that answers at once."""

from __future__ import annotations

import contextlib
import multiprocessing
import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from redrive import seams

KEY = "bench-key-of-some-length"
_ANSWER = b'{"ok":true,"data":{"message_id":"00000000-0000-7000-8000-000000000000","duplicate":false}}'


def free_port() -> int:
    """A port nobody listens on at this moment."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


async def _bare_application(_scope: Any, receive: Any, send: Any) -> None:
    while (await receive()).get("more_body"):
        pass
    await send(
        {"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"%d" % len(_ANSWER))]}
    )
    await send({"type": "http.response.body", "body": _ANSWER})


def _bare(port: int) -> None:
    import uvicorn

    uvicorn.run(
        _bare_application, host="127.0.0.1", port=port, log_level="error", access_log=False, lifespan="off",
        timeout_keep_alive=600,  # a connection idles while the other side is measured
    )  # fmt: skip


def _redrive(port: int, path: Path) -> None:
    from redrive.api.server import run
    from redrive.api.settings import ApiSettings
    from redrive.service import Service, ServiceSettings
    from redrive.storage.sqlite import SqliteEngine

    service = Service(SqliteEngine(path), ServiceSettings(api_key=KEY))
    service.start(first_key=True)
    run(service, "127.0.0.1", port, ApiSettings(rate_per_second=1e9, rate_burst=10**9))


@contextlib.contextmanager
def served(target: Callable[..., None], *arguments: object) -> Iterator[str]:
    """The URL of ``target(port, …)`` in a process of its own; ended afterwards."""
    port = free_port()
    process = multiprocessing.get_context("spawn").Process(
        target=target, args=(port, *arguments), daemon=True
    )
    process.start()
    url = f"http://127.0.0.1:{port}"
    deadline = seams.monotonic() + 20
    while True:
        try:
            with socket.create_connection(("127.0.0.1", port), timeout=1):
                break
        except OSError:
            if seams.monotonic() > deadline:
                raise
    try:
        yield url
    finally:
        process.terminate()
        process.join(10)


def redrive_server(path: Path) -> contextlib.AbstractContextManager[str]:
    """A Redrive server over a fresh SQLite file."""
    return served(_redrive, path)


def bare_server() -> contextlib.AbstractContextManager[str]:
    """A server that reads the request and answers, from the same stack."""
    return served(_bare)
