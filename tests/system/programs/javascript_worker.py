"""fetch: a worker that fails, asks for more time, gives back and succeeds; undefined members dropped."""

from __future__ import annotations

from typing import Any

from tests.system.programs.manners import UNDEFINED, Fetch
from tests.system.programs.wire import tell

QUEUE = "js-worker"


def main() -> dict[str, Any]:
    """Consume, nack with a delay, consume, extend, release, consume, ack; then what is stale."""
    fetch = Fetch()

    def post(verb: str, **fields: Any) -> Any:
        return fetch.call("POST", f"/v1/queue/{verb}", {"queue": QUEUE, "traceId": UNDEFINED, **fields})

    def take() -> dict[str, Any]:
        answer = post("consume", max_messages=1, wait_seconds=20, visibility_timeout=30.5)
        message: dict[str, Any] = answer.data["messages"][0]
        return message

    def named(message: dict[str, Any]) -> dict[str, Any]:
        return {name: message[name] for name in ("message_id", "receipt_handle")}

    post("publish", payload={"emoji": "🎲", "none": None, "gone": UNDEFINED}, priority=UNDEFINED).data  # noqa: B018
    first = take()
    nacked = post("nack", **named(first), delay_seconds=0.2, error="ECONNRESET").data
    hidden = post("consume", max_messages=1).data["messages"]
    second = take()
    stale = post("ack", **named(first))
    extended = post("extend", **named(second), visibility_timeout=60.0).data
    released = post("release", **named(second)).data
    third = take()
    other_verb = post("nack", **named(second))
    acked = post("ack", message_id=third["message_id"], receipt=third["receipt_handle"]).data
    gone = post("nack", **named(third))
    return {
        "payload": first["payload"],
        "nacked": (nacked["state"], nacked["attempts_left"]),
        "hidden": hidden,
        "deliveries": [(m["attempt"], m["delivery"], m["previous"]) for m in (first, second, third)],
        "stale": (stale.status, stale.code),
        "extended": extended["lease_seconds"],
        "released": released["state"],
        "other_verb": (other_verb.status, other_verb.code),
        "acked": acked,
        "gone": (gone.status, gone.code, "not found" in gone.json["error"]["message"]),
        "connections": fetch.connection.opened,
    }


if __name__ == "__main__":
    tell(main())
