"""HttpURLConnection: ``Expect: 100-continue`` before every body, all fields serialised, nulls included."""

from __future__ import annotations

from typing import Any

from tests.system.programs.manners import JavaUrlConnection
from tests.system.programs.wire import tell

QUEUE = "java-expect"


def main() -> dict[str, Any]:
    """A message's life with every optional field null; then a key that is not known."""
    client = JavaUrlConnection()
    publish: dict[str, Any] = {
        "queue": QUEUE, "payload": None, "body": "Zahlung über 12 €", "delay_seconds": None, "priority": None,
        "message_group_id": None, "deduplication_id": None, "job_key": None, "batch": None, "headers": None,
        "traceparent": None, "idempotency_key": None, "tenantId": None,
    }  # fmt: skip
    consume = {
        "queue": QUEUE, "max_messages": None, "visibility_timeout": None, "wait_seconds": None,
        "consumer_id": None, "view": None,
    }  # fmt: skip
    published = client.call("POST", "/v1/queue/publish", publish)
    null = client.call("POST", "/v1/queue/publish", {**publish, "body": None})
    consumed = client.call("POST", "/v1/queue/consume", consume)
    messages = consumed.data["messages"]
    settle = {"queue": QUEUE, "receipt": None, "receipt_handle": None}
    nacked = client.call(
        "POST",
        "/v1/queue/nack",
        {
            **settle,
            "message_id": messages[0]["message_id"],
            "permanent": None,
            "error": None,
            "delay_seconds": None,
        },
    )
    acked = client.call("POST", "/v1/queue/ack", {**settle, "message_id": messages[1]["message_id"]})
    stranger = JavaUrlConnection("a key that nobody made")
    refused = stranger.call("POST", "/v1/queue/publish", {**publish, "body": "not stored"})
    return {
        "interim": [answer.interim for answer in (published, null, consumed, nacked, acked)],
        "payloads": [message["payload"] for message in messages],
        "ignored": published.json["metadata"].get("ignored_fields"),
        "nacked": nacked.data["attempts_left"],
        "acked": acked.data["acknowledged"],
        "connections": client.connection.opened,
        "refused": (refused.status, refused.code, refused.interim, refused.headers.get("www-authenticate")),
    }


if __name__ == "__main__":
    tell(main())
