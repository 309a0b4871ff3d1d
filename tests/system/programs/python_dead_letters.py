"""requests: an operator's script that lists dead letters, sends them back and works them off."""

from __future__ import annotations

from typing import Any

from tests.system.programs.manners import Requests
from tests.system.programs.wire import tell

QUEUE = "dead-letters"


class Operator:
    """The script's few words."""

    def __init__(self) -> None:
        self.session = Requests()

    def post(self, verb: str, **fields: Any) -> Any:
        """The ``data`` of a POST about the queue."""
        return self.session.call("POST", f"/v1/queue/{verb}", {"queue": QUEUE, **fields}).data

    def take(self) -> dict[str, Any]:
        """The next message; waits for a backoff and for a redrive's pace."""
        message: dict[str, Any] = self.post("consume", max_messages=1, wait_seconds=20)["messages"][0]
        return message

    def fail(self, **fields: Any) -> Any:
        """Take one and nack it."""
        message = self.take()
        return self.post("nack", **named(message), **fields)

    def dead(self, query: str = "") -> list[dict[str, Any]]:
        """The dead letters."""
        items: list[dict[str, Any]] = self.session.call("GET", f"/v1/queue/dlq/list/{QUEUE}{query}").data[
            "items"
        ]
        return items


def named(message: dict[str, Any]) -> dict[str, Any]:
    """What settles a delivery."""
    return {"message_id": message["message_id"], "receipt_handle": message["receipt_handle"]}


def main() -> dict[str, Any]:
    """One budget spent and one permanent failure; both listed, both redriven, both acknowledged."""
    operator = Operator()
    operator.post("create", max_retries=1, retry_policy={"base_seconds": 0})
    spent_id = operator.post("publish", payload={"payment": 1})["message_id"]
    nacks = [operator.fail(error="provider timeout", delay_seconds=0) for _ in range(2)]
    rejected_id = operator.post("publish", payload={"payment": 2})["message_id"]
    error = {"type": "NoSuchPayment", "message": "2 is not known", "stack": None}
    nacks.append(operator.fail(error=error, permanent=True))
    letters = operator.dead()
    filtered = operator.dead("?reason=rejected&error_type=NoSuchPayment&limit=10")
    by_own_name = operator.session.call("GET", f"/v1/queue/dlq/list/{QUEUE}.dlq").data["items"]
    one = operator.session.call("POST", f"/v1/queue/dlq/redrive/{QUEUE}", {"message_ids": [spent_id]}).data
    first = operator.take()
    first_ack = operator.post("ack", **named(first))
    rest = operator.session.call("POST", f"/v1/queue/dlq/redrive/{QUEUE}").data
    second = operator.take()
    second_ack = operator.post("ack", **named(second))
    return {
        "nacks": [(nack["state"], nack["attempts_left"]) for nack in nacks],
        "reasons": [(item["message_id"] == spent_id, item["reason"], item["origin"]) for item in letters],
        "error": letters[1]["error"]["type"],
        "filtered": [item["message_id"] == rejected_id for item in filtered],
        "by_own_name": len(by_own_name),
        "redriven": [one["redriven"], rest["redriven"]],
        "plan_ids": [one["plan_id"], rest["plan_id"]],
        "delivered_by": [first["redrive"]["plan_id"], second["redrive"]["plan_id"]],
        "plan": operator.session.call("GET", f"/v1/redrive/plan/{one['plan_id']}").status,
        "same_ids": [first["message_id"] == spent_id, second["message_id"] == rejected_id],
        "budgets": [(m["attempt"], m["delivery"], m["redrive"]["count"]) for m in (first, second)],
        "acked": [first_ack["acknowledged"], second_ack["acknowledged"]],
        "left": operator.dead(),
    }


if __name__ == "__main__":
    tell(main())
