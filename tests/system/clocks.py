"""The wall clock of a process under test: wrong from the start, or stepped while it runs.

``TEST_CLOCK_AHEAD_MS`` says by how much it is ahead; ``TEST_CLOCK_FILE`` names a file that may say more, at
any time. To be installed before engines are imported, for they take the clock as they are loaded.
"""

from __future__ import annotations

import os
from pathlib import Path

from redrive import seams


def install() -> None:
    """Let :func:`redrive.seams.wall_ms` follow the environment."""
    real = seams.wall_ms
    ahead_ms = int(os.environ.get("TEST_CLOCK_AHEAD_MS", "0"))
    named = os.environ.get("TEST_CLOCK_FILE")
    path = Path(named) if named else None

    def wall_ms() -> int:
        return real() + ahead_ms + (_said(path) if path is not None else 0)

    seams.wall_ms = wall_ms


def _said(path: Path) -> int:
    try:
        return int(path.read_text())
    except FileNotFoundError:
        return 0


def step(path: Path, ahead_ms: int) -> None:
    """From now on the processes that look there are ahead by so much, all at once."""
    fresh = path.with_suffix(".new")
    fresh.write_text(str(ahead_ms))
    fresh.replace(path)
