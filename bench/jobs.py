"""A worker process whose jobs take 25 ms each; one that carries a number is told on standard output.

``python -m bench.jobs URL QUEUE CONCURRENCY`` writes ``number seconds`` for each, by the clock of
``time.perf_counter``, which all processes of a machine share.
"""

from __future__ import annotations

import contextlib
import subprocess
import sys
import threading
import time
from collections.abc import Iterator

from bench.served import KEY
from bench.steady_served import end
from redrive import Worker
from redrive.worker import Job

JOB_SECONDS = 0.025


class Jobs:
    """What a worker process has told: when the job of each number was done."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.done: dict[int, float] = {}
        self._process = process
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            number, at = line.split()
            self.done[int(number)] = float(at)

    def check(self) -> None:
        """That the process is still there."""
        assert self._process.poll() is None, f"the worker ended with {self._process.returncode}"


@contextlib.contextmanager
def working(url: str, queue: str, concurrency: int) -> Iterator[Jobs]:
    """A worker process on ``queue`` of the server at ``url``; ended afterwards."""
    command = [sys.executable, "-m", "bench.jobs", url, queue, str(concurrency)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        try:
            yield Jobs(process)
        finally:
            end(process)


def main(url: str, queue: str, concurrency: str) -> int:
    """Work until told to end."""
    worker = Worker(url, queue=queue, api_key=KEY, concurrency=int(concurrency), prefetch=0)

    @worker.job
    def work(job: Job) -> None:
        time.sleep(JOB_SECONDS)
        number = job.payload.get("number")
        if number is not None:
            sys.stdout.write(f"{number} {time.perf_counter()}\n")
            sys.stdout.flush()

    return worker.run()


if __name__ == "__main__":
    raise SystemExit(main(*sys.argv[1:]))
