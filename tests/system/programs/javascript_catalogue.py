"""fetch: a client that knows no route; it reads module ``scheduling`` from discovery and fills templates."""

from __future__ import annotations

import re
from typing import Any

from tests.system.programs.manners import Fetch
from tests.system.programs.wire import Answer, tell

QUEUE = "js.catalogue"


class Catalogue:
    """Capabilities by id; every call goes where the document says."""

    def __init__(self) -> None:
        self.fetch = Fetch()
        self.document = self.fetch.call("GET", "/v1/discovery").json
        self.entries = {
            entry["id"]: entry
            for entry in self.document["capabilities"]
            if entry["module"] == "scheduling" and entry["namespace"] == "queue" and entry["available"]
        }

    def call(self, capability: str, **fields: Any) -> Answer:
        """Fields named in the path's template go there, the rest into the body or, without one, the query."""
        entry = self.entries[capability]
        left = dict(fields)
        path = re.sub(r"\{(\w+)\}", lambda found: str(left.pop(found[1])), entry["path"])
        if entry["method"] == "POST":
            return self.fetch.call("POST", path, left or None)
        query = "&".join(f"{name}={value}" for name, value in left.items())
        return self.fetch.call(entry["method"], f"{path}?{query}" if query else path)


def main() -> dict[str, Any]:
    """A message's life by templates alone, and one call of every capability that reads a queue."""
    catalogue = Catalogue()
    call = catalogue.call
    message_id = call("queue.publish", queue=QUEUE, payload={"a": 1}).data["message_id"]
    (message,) = call("queue.consume", queue=QUEUE).data["messages"]
    handle = {"message_id": message_id, "receipt_handle": message["receipt_handle"]}
    steps = {
        "queue.extend": call("queue.extend", queue=QUEUE, **handle, visibility_timeout=40).status,
        "queue.message": call("queue.message", message_id=message_id).status,
        "queue.dead_letter": call("queue.dead_letter", queue=QUEUE, **handle, reason="not ours").status,
        "queue.dlq.list": call("queue.dlq.list", queue=QUEUE, limit=5).status,
        "queue.dlq.groups": call("queue.dlq.groups", queue=QUEUE).status,
        "queue.dlq.redrive": call("queue.dlq.redrive", queue=QUEUE).status,
        "queue.pause": call("queue.pause", queue=QUEUE, reason="deploy").status,
        "queue.resume": call("queue.resume", queue=QUEUE).status,
        "queue.messages": call("queue.messages", queue=QUEUE, state="ready").status,
        "queue.get": call("queue.get", queue=QUEUE).status,
        "queue.stats": call("queue.stats", queue=QUEUE).status,
        "queue.list": call("queue.list", limit=1).status,
    }
    asked = call("queue.purge", queue=QUEUE)
    details = catalogue.fetch.call("GET", "/v1/discovery/queue.purge").json
    steps["queue.delete"] = call("queue.delete", queue=QUEUE).status
    unknown = catalogue.fetch.call("GET", "/v1/discovery/queue.teleport")
    return {
        "version": catalogue.document["version"],
        "enveloped": "ok" in catalogue.document or "ok" in details,
        "ids": sorted(catalogue.entries),
        "entry": catalogue.entries["queue.publish"],
        "steps": steps,
        "purge": (asked.status, asked.code),
        "purge_params": sorted(details["params"]["properties"]),
        "retryable": {error["code"]: error["retryable"] for error in details["errors"]},
        "languages": sorted(details["examples"]),
        "unknown": (unknown.status, "not found" in unknown.json["error"]["message"]),
    }


if __name__ == "__main__":
    tell(main())
