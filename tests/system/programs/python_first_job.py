"""urllib: a nightly script that publishes text to a queue nobody created, and settles by id alone.

It sets no content type, so that urllib calls its JSON a form; it opens a connection for every request.
"""

from __future__ import annotations

import json
import urllib.request
from typing import Any

from tests.system.programs.wire import API_KEY, BASE_URL, tell

QUEUE = "first-job"


def call(method: str, path: str, value: Any = None) -> Any:
    """The answer's ``data``; urllib raises for everything but a success."""
    raw = None if value is None else json.dumps(value).encode()
    request = urllib.request.Request(BASE_URL + path, raw, method=method)
    request.add_header("Authorization", f"Bearer {API_KEY}")
    with urllib.request.urlopen(request, timeout=20) as answer:
        return json.load(answer)["data"]


def main() -> dict[str, Any]:
    """Publish, look, consume, ack by id, ack again, consume again."""
    sent = [
        call("POST", "/v1/queue/publish", {"queue": QUEUE, "payload": "refund 17"})["message_id"],
        call("POST", "/v1/queue/publish", {"queue": QUEUE, "body": "zurück: 18 €"})["message_id"],
        call("POST", f"/v1/queue/publish/{QUEUE}", {"payload": ""})["message_id"],
    ]
    record = call("GET", f"/v1/queue/get/{QUEUE}")
    taken = call("POST", "/v1/queue/consume", {"queue": QUEUE})["messages"]
    acks = [
        call("POST", "/v1/queue/ack", {"queue": QUEUE, "message_id": message_id})["acknowledged"]
        for message_id in (*sent, sent[0])
    ]
    return {
        "implicit": record["implicit"],
        "same_ids": [message["message_id"] for message in taken] == sent,
        "payloads": [message["payload"] for message in taken],
        "acks": acks,
        "left": call("POST", f"/v1/queue/consume/{QUEUE}")["messages"],
    }


if __name__ == "__main__":
    tell(main())
