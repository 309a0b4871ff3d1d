"""Real signals to a real worker process."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]


@contextmanager
def program(how: str) -> Iterator[subprocess.Popen[str]]:
    """The script, once its first job runs."""
    command = [sys.executable, "-m", "tests.worker.stopped_script", how]
    path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, text=True, cwd=ROOT, env={**os.environ, "PYTHONPATH": path}
    ) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "running\n"
            yield process
        finally:
            process.kill()


def told(process: subprocess.Popen[str]) -> dict[str, Any]:
    """What it printed at its end."""
    out, _ = process.communicate(timeout=20)
    answer: dict[str, Any] = json.loads(out.splitlines()[-1])
    return answer


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_finishes_what_runs_and_releases_the_rest(number: signal.Signals) -> None:
    """The running job is acknowledged, the prefetched ones go back with their attempts unspent."""
    with program("finish") as process:
        process.send_signal(number)
        assert told(process) == {"code": 0, "left": [0, 0], "ack": 1, "nack": 0, "release": 2}
    assert process.returncode == 0


def test_a_second_signal_does_not_wait() -> None:
    """A handler that does not end is interrupted, not failed: all three go back."""
    with program("hang") as process:
        process.send_signal(signal.SIGTERM)
        process.send_signal(signal.SIGINT)
        assert told(process) == {"code": 0, "left": [0, 0, 0], "ack": 0, "nack": 0, "release": 3}
