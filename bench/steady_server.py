"""What a server process costs by itself: waiting callers, memory, and a start with a long log to recover."""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from bench.served import KEY
from bench.steady_served import server
from bench.steady_stores import BODY, QUEUE
from redrive.compose import connect

MIB = 1 << 20
_POLLED_QUEUES = 10
_STEP_SECONDS = 0.05  # between two looks at a process
_ALONE_SECONDS = 8.0  # the database counts its transactions some seconds late


async def _poll(
    url: str, queue: str, wait_seconds: float, first: float, ends: float, answers: list[float]
) -> None:
    """One caller that asks for messages and waits, again and again, from ``first`` until ``ends``."""
    await asyncio.sleep(max(0.0, first - time.monotonic()))
    parts = urlsplit(url)
    body = json.dumps({"queue": queue, "max_messages": 1, "wait_seconds": wait_seconds}).encode()
    request = (
        f"POST /v1/queue/consume HTTP/1.1\r\nHost: bench\r\nAuthorization: Bearer {KEY}\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    ).encode() + body
    reader, writer = await asyncio.open_connection(parts.hostname, parts.port)
    try:
        while time.monotonic() < ends:
            writer.write(request)
            head = (await reader.readuntil(b"\r\n\r\n")).lower()
            assert head.startswith(b"http/1.1 200"), head
            await reader.readexactly(int(head.partition(b"content-length:")[2].split(b"\r\n", 1)[0]))
            answers.append(time.monotonic())
    except asyncio.CancelledError:
        pass
    finally:
        writer.close()


Look = tuple[float, float, int]  # when, CPU seconds of the process so far, transactions so far


class Idle(NamedTuple):
    """What a server with idle callers takes, by window: the share of a core, and transactions a second; and
    the same of a server that nobody calls."""

    cpu: list[float]
    transactions: list[float]
    cpu_alone: float
    transactions_alone: float


async def _fleet(
    url: str, polls: int, wait_seconds: float, seconds: float, windows: int, look: Callable[[], Look]
) -> list[Look]:
    """Looks ``seconds`` apart, once all ``polls`` wait, their ends spread evenly over their time."""
    began = time.monotonic()
    answers: list[float] = []
    ends = began + 2 * wait_seconds + windows * seconds + 60
    tasks = [
        asyncio.create_task(
            _poll(
                url,
                f"idle-{n % _POLLED_QUEUES}",
                wait_seconds,
                began + wait_seconds * n / polls,
                ends,
                answers,
            )
        )
        for n in range(polls)
    ]
    await asyncio.sleep(wait_seconds + 1.0)
    looks = [await asyncio.to_thread(look)]
    for _ in range(windows):
        await asyncio.sleep(seconds)
        looks.append(await asyncio.to_thread(look))
    for task in tasks:
        assert not task.done(), task.exception()
        task.cancel()
    await asyncio.gather(*tasks)
    assert answers, "no poll came back"
    return looks


def idle_polls(
    url: str, polls: int, wait_seconds: float, seconds: float, windows: int,
    transactions: Callable[[], int] | None,
) -> Idle:  # fmt: skip
    """``polls`` callers over REST at queues in which nothing is; each that ends after ``wait_seconds`` is
    sent again at once. ``transactions`` counts those of the store so far."""
    with server(url) as (process, address, _):

        def look() -> Look:
            spent = process.cpu_times()
            return time.monotonic(), spent.user + spent.system, transactions() if transactions else 0

        time.sleep(2.0)
        idle = look()
        time.sleep(max(seconds, _ALONE_SECONDS))
        alone = _rates(idle, look())
        looks = asyncio.run(_fleet(address, polls, wait_seconds, seconds, windows, look))
    found = [_rates(before, after) for before, after in itertools.pairwise(looks)]
    return Idle([cpu for cpu, _ in found], [rate for _, rate in found], *alone)


def _rates(before: Look, after: Look) -> tuple[float, float]:
    seconds = after[0] - before[0]
    return (after[1] - before[1]) / seconds, (after[2] - before[2]) / seconds


def memory(url: str, rounds: int) -> tuple[float, float]:
    """The largest resident memory in MiB of a server over a filled store, while it works through ``rounds``
    of batches and is asked for numbers and pages; and right after its start."""
    with server(url) as (process, address, _):
        fresh = process.memory_info().rss
        largest = fresh
        done = threading.Event()

        def watch() -> None:
            nonlocal largest
            while not done.wait(_STEP_SECONDS):
                largest = max(largest, process.memory_info().rss)

        watcher = threading.Thread(target=watch)
        watcher.start()
        client = connect(address, KEY)
        try:
            for number in range(rounds):
                _cycle(client)
                if number % 20 == 0:
                    for page in ("queue.stats", "queue.messages", "queue.dlq.list", "queue.dlq.groups"):
                        client.call(page, {"queue": QUEUE})
        finally:
            done.set()
            watcher.join(10)
            client.close()
    return largest / MIB, fresh / MIB


def _cycle(client: Any) -> None:
    """A batch of 100 published, leased and acknowledged."""
    messages = [{"payload": json.loads(BODY)} for _ in range(100)]
    client.call("queue.publish_batch", {"queue": QUEUE, "messages": messages})
    leased = client.call("queue.consume", {"queue": QUEUE, "max_messages": 100})["messages"]
    items = [{"message_id": m["message_id"], "receipt_handle": m["receipt_handle"]} for m in leased]
    client.call("queue.ack_batch", {"queue": QUEUE, "items": items})


_GROW = """
import os, signal, sys, apsw
from pathlib import Path
from bench.steady_stores import QUEUE, do, entries
from redrive.storage import commands as c
from redrive.storage.sqlite import SqliteEngine
path, wanted = Path(sys.argv[1]), int(sys.argv[2])
engine = SqliteEngine(path, synchronous="NORMAL")
do(engine, c.Publish(QUEUE, entries(1)))
reader = apsw.Connection(str(path))  # its snapshot keeps the log from being folded into the file
reader.execute("BEGIN")
assert reader.execute("SELECT count(*) FROM messages").fetchall() == [(1,)]
log = path.with_name(path.name + "-wal")
while log.stat().st_size < wanted:
    do(engine, c.Publish(QUEUE, entries(1000)), c.Tick())
os.kill(os.getpid(), signal.SIGKILL)
"""


def recovery(folder: Path, wal_bytes: int, times: int) -> list[float]:
    """Seconds from the start of a server process to its readiness, over a store whose last one was killed
    with ``wal_bytes`` of log that no checkpoint has seen."""
    grown = folder / "grown" / "store.db"
    grown.parent.mkdir()
    done = subprocess.run([sys.executable, "-c", _GROW, str(grown), str(wal_bytes)], check=False, timeout=120)
    assert done.returncode == -signal.SIGKILL, done.returncode
    assert grown.with_name("store.db-wal").stat().st_size >= wal_bytes
    found = []
    for number in range(times):
        copy = folder / f"recover-{number}"
        shutil.copytree(grown.parent, copy)
        os.sync()  # the copy's own writes must not slow the start
        with server(f"sqlite:///{copy / 'store.db'}") as (_, _, seconds):
            found.append(seconds)
        shutil.rmtree(copy)
    return found
