"""The results on disk: one entry a row, each with the circumstances it was measured in."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).parent / "results" / "latest.json"


def circumstances(command: str) -> dict[str, Any]:
    """When, on what, of which commit, and by which command."""
    return {
        "date": time.strftime("%Y-%m-%d", time.gmtime()),
        "commit": _commit(),
        "machine": f"{os.cpu_count()} cores, {platform.machine()}, {platform.system()}",
        "python": platform.python_version(),
        "command": command,
    }


def merge(path: Path, name: str, result: dict[str, Any], order: Sequence[str]) -> None:
    """Put ``result`` under ``name``; the other rows stay as they were, and all stand in ``order``.

    A reader never sees half a file.
    """
    found = {**load(path), name: result}
    known = {each: found[each] for each in (*order, *found) if each in found}
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_suffix(".part")
    beside.write_text(json.dumps({"rows": known}, indent=2) + "\n")
    beside.replace(path)


def load(path: Path) -> dict[str, dict[str, Any]]:
    """The rows by name; none when there is no file yet."""
    if not path.exists():
        return {}
    rows: dict[str, dict[str, Any]] = json.loads(path.read_text()).get("rows", {})
    return rows


def _commit() -> str:
    """Short, with a mark where files under version control differ from it; "unknown" outside a repository."""
    try:
        done = subprocess.run(
            ["git", "describe", "--always", "--dirty=+", "--exclude=*"],
            cwd=Path(__file__).parent, capture_output=True, text=True, timeout=10, check=True,
        )  # fmt: skip
    except (OSError, subprocess.SubprocessError):
        return "unknown"
    return done.stdout.strip()
