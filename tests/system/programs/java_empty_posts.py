"""OkHttp: verbs that need nothing but their path are POSTs with ``Content-Length: 0``."""

from __future__ import annotations

from typing import Any

from tests.system.programs.manners import OkHttp
from tests.system.programs.wire import Answer, tell

QUEUE = "java-empty"
NEEDS_FIELDS = (
    "create", "update", "publish", "publish_batch", "consume", "ack", "ack_batch", "nack", "extend",
    "release", "dead_letter", "cancel",
)  # fmt: skip


def missing(answer: Answer) -> tuple[Any, ...]:
    """What the server misses in ``{}``."""
    error = answer.json["error"]
    return answer.status, error["code"], error["details"]["field"]


def main() -> dict[str, Any]:
    """Empty POSTs that do something, and the ones that answer what is missing."""
    client = OkHttp()
    consumed = client.call("POST", f"/v1/queue/consume/{QUEUE}")
    paused = client.call("POST", f"/v1/queue/pause/{QUEUE}")
    resumed = client.call("POST", f"/v1/queue/resume/{QUEUE}")
    redriven = client.call("POST", f"/v1/queue/dlq/redrive/{QUEUE}")
    purge = client.call("POST", f"/v1/queue/purge/{QUEUE}")
    return {
        "consumed": consumed.data["messages"],
        "states": [paused.data["state"], resumed.data["state"]],
        "redriven": redriven.data["redriven"],
        "purge": (purge.status, purge.code),
        "missing": {verb: missing(client.call("POST", f"/v1/queue/{verb}")) for verb in NEEDS_FIELDS},
        "in_path": missing(client.call("POST", f"/v1/queue/publish/{QUEUE}")),
        "connections": client.connection.opened,
    }


if __name__ == "__main__":
    tell(main())
