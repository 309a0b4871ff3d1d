"""The control of the hostile proofs: the same server under uvicorn's own protocol, without our deadlines and
bounds. ``python -m tests.proof.unbounded`` takes the arguments of ``tests.system.serve``.
"""

from __future__ import annotations

import sys
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from redrive.api import server
from tests.system import serve
from tests.system.servers import ServerProcess


class UnboundedServer(ServerProcess):
    """Such a server as a process."""

    def _command(self) -> list[str]:
        command = super()._command()
        command[command.index(serve.__name__)] = __name__
        return command


def _protocol(*arguments: Any, settings: Any, **named: Any) -> HttpToolsProtocol:
    del settings
    return HttpToolsProtocol(*arguments, **named)


def main() -> int:
    """Serve until SIGTERM."""
    server.BoundedProtocol = _protocol  # type: ignore[assignment,misc]
    return serve.main(*sys.argv[1:])


if __name__ == "__main__":
    raise SystemExit(main())
