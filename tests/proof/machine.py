"""The machine's own programs, such as only root may use: disks, devices, networks."""

from __future__ import annotations

import os
import shutil
import subprocess

from tests.system.servers import SECONDS


class Unable(Exception):
    """This machine does not let us; says which step, and why."""


def program(name: str) -> str | None:
    """Where it is, also when only root's search path has it."""
    return shutil.which(name, path=os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin", "/sbin"]))


def ran(name: str, *arguments: str, fed: str = "") -> subprocess.CompletedProcess[str]:
    """The ended program, whatever came of it; ``fed`` is its standard input."""
    found = program(name)
    if found is None:
        raise Unable(f"{name} is not installed")
    return subprocess.run(
        [found, *arguments], input=fed, capture_output=True, text=True, timeout=SECONDS, check=False
    )


def do(*command: str, fed: str = "") -> str:
    """What it printed; :class:`Unable` when it failed."""
    ended = ran(*command, fed=fed)
    if ended.returncode != 0:
        raise Unable(f"{' '.join(command)}: {(ended.stderr or ended.stdout).strip()[:300]}")
    return ended.stdout.strip()
