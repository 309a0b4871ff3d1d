"""The controls of the hostile proofs: the same server under uvicorn's own protocol, without our deadlines and
bounds, or one that takes in all who wait before anybody inside has a turn.

``python -m tests.proof.unbounded SAFETY …`` takes the further arguments of ``tests.system.serve``.
"""

from __future__ import annotations

import sys
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from redrive.api import accepting, server
from tests.system import serve
from tests.system.servers import ServerProcess


class UnboundedServer(ServerProcess):
    """A server without one of its ``safety``: ``protocol`` or ``turns``."""

    safety = "protocol"

    def _command(self) -> list[str]:
        command = super()._command()
        place = command.index(serve.__name__)
        command[place : place + 1] = [__name__, self.safety]
        return command


class GreedyServer(UnboundedServer):
    """Takes in all who wait, as event loops do by themselves."""

    safety = "turns"


def _protocol(*arguments: Any, settings: Any, **named: Any) -> HttpToolsProtocol:
    del settings
    return HttpToolsProtocol(*arguments, **named)


def main(safety: str, *arguments: str) -> int:
    """Serve until SIGTERM."""
    if safety == "protocol":
        server.BoundedProtocol = _protocol  # type: ignore[assignment,misc]
    else:
        accepting._TURN = sys.maxsize  # type: ignore[misc]
    return serve.main(*arguments)


if __name__ == "__main__":
    raise SystemExit(main(*sys.argv[1:]))
