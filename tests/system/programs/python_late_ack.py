"""requests: a worker that was too slow: its lease ran out and the message went to another delivery."""

from __future__ import annotations

from typing import Any

from tests.system.programs.manners import Requests
from tests.system.programs.wire import tell

QUEUE = "late-ack"
GONE = "019a1f3c-5a10-7000-8000-00000000002a"


def main() -> dict[str, Any]:
    """Leases of a second; the message comes again; the old handle, the new one and two ids in one batch."""
    session = Requests()

    def post(verb: str, **fields: Any) -> Any:
        return session.call("POST", f"/v1/queue/{verb}", {"queue": QUEUE, **fields})

    post("create", retry_policy={"base_seconds": 0}).data  # noqa: B018 - raises unless it was done
    post("publish", payload="slow").data  # noqa: B018
    first = post("consume", visibility_timeout=1).data["items"][0]
    second = post("consume", wait_seconds=20).data["items"][0]
    message_id = first["message_id"]
    single = post("ack", message_id=message_id, receipt_handle=first["receipt_handle"])
    batch = post(
        "ack_batch",
        items=[
            {"message_id": message_id, "receipt_handle": first["receipt_handle"]},
            {"message_id": GONE},
            {"message_id": message_id, "receipt_handle": second["receipt_handle"]},
            {"message_id": message_id, "receipt_handle": second["receipt_handle"]},
        ],
    ).data["items"]
    return {
        "same_message": second["message_id"] == message_id,
        "second": (second["attempt"], second["delivery"], second["previous"]),
        "single": (single.status, single.code),
        "batch": [item.get("acknowledged", item.get("error", {}).get("code")) for item in batch],
    }


if __name__ == "__main__":
    tell(main())
