"""The control of the power cuts: the same server, whose SQLite syncs less than it must.

``python -m tests.proof.careless`` takes the arguments of ``tests.system.serve``; ``TEST_SYNCHRONOUS`` is
SQLite's setting.
"""

from __future__ import annotations

import functools
import os
import sys
from typing import Any

from redrive.storage import sqlite
from tests.proof.nursery import ForkedServer
from tests.system import serve


class CarelessServer(ForkedServer):
    """Such a server from the nursery."""

    def _spawn(self, variables: dict[str, str]) -> Any:
        _, *arguments = self._command()[2:]
        return self._nursery.start(__name__, arguments, variables)


def main() -> int:
    """Serve until SIGTERM."""
    engine: Any = functools.partial(sqlite.SqliteEngine, synchronous=os.environ["TEST_SYNCHRONOUS"])
    sqlite.SqliteEngine = engine  # type: ignore[misc]
    return serve.main(*sys.argv[1:])


if __name__ == "__main__":
    raise SystemExit(main())
