"""fetch: a queue that wants the receipt handle, and a program that sends the id alone."""

from __future__ import annotations

from typing import Any

from tests.system.programs.manners import Fetch
from tests.system.programs.wire import tell

QUEUE = "js-fenced"


def main() -> dict[str, Any]:
    """An id-only ack and nack are refused and change nothing; with the handle it is done."""
    fetch = Fetch()

    def post(verb: str, **fields: Any) -> Any:
        return fetch.call("POST", f"/v1/queue/{verb}", {"queue": QUEUE, **fields})

    post("create", require_receipt_handle=True).data  # noqa: B018 - raises unless it was done
    message_id = post("publish", payload=1).data["message_id"]
    (message,) = post("consume").data["messages"]
    bare = [post("ack", message_id=message_id), post("nack", message_id=message_id)]
    batch = post("ack_batch", items=[{"message_id": message_id}]).data["items"]
    state = fetch.call("GET", f"/v1/queue/message/{message_id}").data["state"]
    fenced = post("ack", message_id=message_id, receipt_handle=message["receipt_handle"])
    return {
        "bare": [answer.status for answer in bare],
        "batch_refused": ["error" in item for item in batch],
        "state": state,
        "fenced": fenced.data["acknowledged"],
    }


if __name__ == "__main__":
    tell(main())
