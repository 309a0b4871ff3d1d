"""fetch with an AbortController: long polls given up; what is published then reaches the next one."""

from __future__ import annotations

from typing import Any

from tests.system.programs.manners import Fetch
from tests.system.programs.wire import tell

QUEUE = "js-abort"


def main() -> dict[str, Any]:
    """Three polls abandoned, one job published, one poll that stays."""
    fetch = Fetch()
    wait = {"queue": QUEUE, "wait_seconds": 20, "max_messages": 1, "visibility_timeout": 600}
    for _ in range(3):
        fetch.abort("POST", "/v1/queue/consume", wait)
    message_id = fetch.call("POST", "/v1/queue/publish", {"queue": QUEUE, "payload": 1}).data["message_id"]
    messages = fetch.call("POST", "/v1/queue/consume", wait).data["messages"]
    acked = fetch.call("POST", "/v1/queue/ack", {"queue": QUEUE, "message_id": message_id}).data
    return {"attempts": [message["attempt"] for message in messages], "acked": acked["acknowledged"]}


if __name__ == "__main__":
    tell(main())
