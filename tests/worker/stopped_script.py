"""A worker as a program, started by test_signals: it runs, is signalled, and prints what its queue saw."""

from __future__ import annotations

import json
import sys
import threading

from tests.worker.memory_queue import MemoryQueue

from redrive.transports import Entry
from redrive.worker import Job, Worker

queue = MemoryQueue()
worker = Worker(queue, queue="work", concurrency=1, prefetch=2, wait_seconds=0.2, grace_seconds=20)
free = threading.Event()


@worker.job
def handle(job: Job) -> None:
    """Tells that it runs, then works until the queue sees a release (the stop began) or for ever."""
    print("running", flush=True)
    if sys.argv[1] == "finish":
        queue.wait_for("release", 2, seconds=20)
    else:
        free.wait(20)


if __name__ == "__main__":
    queue.publish("work", [Entry(payload=n) for n in range(3)])
    code = worker.run()
    left = [message.attempt for message in queue.queue("work").messages.values()]
    seen = {verb: len(queue.saw(verb)) for verb in ("ack", "nack", "release")}
    print(json.dumps({"code": code, "left": left, **seen}), flush=True)
    free.set()
