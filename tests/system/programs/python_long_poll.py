"""http.client: one thread waits for a job in a long poll while another publishes it."""

from __future__ import annotations

import http.client
import json
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from urllib.parse import urlsplit

from tests.system.programs.wire import API_KEY, BASE_URL, tell

QUEUE = "long-poll"


def call(path: str, value: Any) -> Any:
    """A POST on a connection of its own; the answer's ``data``."""
    parts = urlsplit(BASE_URL)
    connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=25)
    try:
        headers = {"Authorization": f"Bearer {API_KEY}", "Content-Type": "application/json"}
        connection.request("POST", path, json.dumps(value), headers)
        return json.loads(connection.getresponse().read())["data"]
    finally:
        connection.close()


def main() -> dict[str, Any]:
    """An empty short poll, then a long one that a publish ends, then one whose job is still delayed."""
    empty = call("/v1/queue/consume", {"queue": QUEUE, "wait_seconds": 0.1})
    started = threading.Event()

    def poll() -> Any:
        started.set()
        return call("/v1/queue/consume", {"queue": QUEUE, "wait_seconds": 20, "max_messages": 1})

    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(poll)
        started.wait(20)
        call("/v1/queue/publish", {"queue": QUEUE, "payload": {"n": 1}})
        woken = waiting.result(25)
    call("/v1/queue/publish", {"queue": QUEUE, "payload": {"n": 2}, "delay_seconds": 0.3})
    at_once = call("/v1/queue/consume", {"queue": QUEUE})
    delayed = call("/v1/queue/consume", {"queue": QUEUE, "wait_seconds": 20})
    for message in woken["messages"] + delayed["messages"]:
        call(f"/v1/queue/ack/{QUEUE}", {"message_id": message["message_id"]})
    return {
        "empty": [empty["messages"], empty["items"]],
        "woken": [message["payload"] for message in woken["messages"]],
        "at_once": at_once["messages"],
        "delayed": [message["payload"] for message in delayed["messages"]],
        "lease_seconds": woken["lease_seconds"],
    }


if __name__ == "__main__":
    tell(main())
