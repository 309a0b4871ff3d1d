"""java.net.http.HttpClient as it is by default: it offers h2c with every request, and takes HTTP/1.1."""

from __future__ import annotations

from typing import Any

from tests.system.programs.manners import JavaHttpClient
from tests.system.programs.wire import tell

QUEUE = "java-upgrade"
JOB = {"queue": QUEUE, "payload": {"order": 1}, "delay_seconds": None, "priority": None, "headers": None}


def main() -> dict[str, Any]:
    """Without a body; then with one; then the same client told to stay with HTTP/1.1."""
    client, plain = JavaHttpClient(), JavaHttpClient(offers_http2=False)
    bodyless = [client.call("GET", "/v1/queue/list").status for _ in range(2)]
    bodyless.append(client.call("POST", f"/v1/queue/consume/{QUEUE}").status)
    before = client.connection.opened
    offered = [client.call("POST", "/v1/queue/publish", JOB) for _ in range(2)]
    connections = client.connection.opened
    got = JavaHttpClient().call("GET", "/v1/queue/list", {"limit": 1})
    stayed = plain.call("POST", "/v1/queue/publish", JOB)
    with_body = plain.call("GET", f"/v1/queue/get/{QUEUE}", {"a": "body"})
    acknowledged = plain.call("POST", "/v1/queue/ack", {"queue": QUEUE, "message_id": "none"})
    return {
        "bodyless": bodyless,
        "bodyless_connections": before,
        "offered": [(answer.status, answer.code) for answer in offered],
        "offered_connections": connections,
        "got": got.status,
        "stayed": (stayed.status, with_body.status, acknowledged.data),
        "stayed_connections": plain.connection.opened,
    }


if __name__ == "__main__":
    tell(main())
