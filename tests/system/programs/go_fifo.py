"""net/http: ordered work per account on a queue that the first ordered publish makes."""

from __future__ import annotations

from typing import Any

from tests.system.programs.manners import Go
from tests.system.programs.wire import tell

QUEUE = "go-fifo"


def main() -> dict[str, Any]:
    """Two accounts, one step at a time; a step sent twice; fields that the other kind of queue refuses."""
    go = Go()

    def post(verb: str, **fields: Any) -> Any:
        return go.call("POST", f"/v1/queue/{verb}", {"queue": QUEUE, **fields})

    def step(account: str, number: int) -> Any:
        ids = {"message_group_id": account, "deduplication_id": f"{account}:{number}"}
        return post("publish", payload=[account, number], **ids).data

    sent = [step("a", 1), step("a", 2), step("b", 1), step("a", 2)]
    rounds: list[list[Any]] = []
    while messages := post("consume", max_messages=10).data["messages"]:
        rounds.append([message["payload"] for message in messages])
        items = [{name: m[name] for name in ("message_id", "receipt_handle")} for m in messages]
        post("ack_batch", items=items).data  # noqa: B018 - raises unless it was done
    go.call("POST", "/v1/queue/create", {"name": "go-standard"}).data  # noqa: B018
    grouped = go.call(
        "POST", "/v1/queue/publish", {"queue": "go-standard", "payload": 1, "message_group_id": "a"}
    )
    return {
        "type": go.call("GET", f"/v1/queue/get/{QUEUE}").data["type"],
        "duplicates": [answer["duplicate"] for answer in sent],
        "first_id_again": sent[3]["message_id"] == sent[1]["message_id"],
        "rounds": rounds,
        "priority": post("publish", payload=1, priority=3).status,
        "grouped": grouped.status,
    }


if __name__ == "__main__":
    tell(main())
