"""Running a program as a process that is told a base URL and a key, and nothing else."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any

from tests.system.servers import KEY, ROOT, ServerProcess

PROGRAM_SECONDS = 40.0


def run(name: str, url: str, key: str = KEY, **variables: str) -> subprocess.CompletedProcess[str]:
    """The ended program ``name``; nothing of this process's environment reaches it but PATH."""
    told = {"BASE_URL": url, "API_KEY": key, **variables}
    return subprocess.run(
        [sys.executable, "-m", f"tests.system.programs.{name}"],
        env={"PATH": os.environ.get("PATH", ""), "PYTHONPATH": str(ROOT), "PYTHONUTF8": "1", **told},
        cwd=ROOT,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=PROGRAM_SECONDS,
        check=False,
    )


class Programs:
    """Programs against one server, each run once; calling gives what it printed."""

    def __init__(self, server: ServerProcess) -> None:
        self.server = server
        self._ended: dict[str, subprocess.CompletedProcess[str]] = {}

    def __call__(self, name: str) -> Any:
        """The JSON that the program ``name`` printed; AssertionError unless it ended well."""
        if name not in self._ended:
            self._ended[name] = run(name, self.server.url)
        ended = self._ended[name]
        assert ended.returncode == 0, ended.stderr
        return json.loads(ended.stdout)
