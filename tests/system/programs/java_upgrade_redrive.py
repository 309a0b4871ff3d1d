"""java.net.http.HttpClient by default: a redrive of one dead letter, named in the body."""

from __future__ import annotations

from typing import Any

from tests.system.programs.manners import JavaHttpClient, Requests
from tests.system.programs.wire import tell

QUEUE = "java-redrive"


def main() -> dict[str, Any]:
    """Two dead letters by one client, one of them sent back by the other; what is left."""
    session = Requests()
    ids = []
    for number in range(2):
        publish = session.call("POST", "/v1/queue/publish", {"queue": QUEUE, "payload": number})
        ids.append(publish.data["message_id"])
    for message in session.call("POST", "/v1/queue/consume", {"queue": QUEUE}).data["messages"]:
        named = {"message_id": message["message_id"], "receipt_handle": message["receipt_handle"]}
        session.call("POST", "/v1/queue/nack", {"queue": QUEUE, **named, "permanent": True})
    redriven = JavaHttpClient().call("POST", f"/v1/queue/dlq/redrive/{QUEUE}", {"message_ids": ids[:1]})
    left = session.call("GET", f"/v1/queue/dlq/list/{QUEUE}").data["items"]
    return {
        "redriven": redriven.status and redriven.data["redriven"],
        "left": [ids.index(item["message_id"]) for item in left],
    }


if __name__ == "__main__":
    tell(main())
