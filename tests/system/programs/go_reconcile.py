"""net/http: a publisher whose idempotency keys are constants of the business, retried at will."""

from __future__ import annotations

from typing import Any

from tests.system.programs.manners import Go
from tests.system.programs.wire import Answer, tell

QUEUE = "reconcile"
KEY = {"Idempotency-Key": "settlement:2026-10-23:eu-west"}
JOB = {"window": "2026-10-23", "amount": 9_007_199_254_740_993, "note": "a<b & c>d"}


def seen(answer: Answer) -> tuple[Any, ...]:
    """What the program's structs keep of an answer."""
    if answer.code:
        return answer.status, answer.code, answer.json["error"]["retryable"]
    return answer.status, answer.data["message_id"], answer.cache_hit


def main() -> dict[str, Any]:
    """The same key with the same body, another body, another queue, in the body, and after a deletion."""
    go = Go()

    def publish(value: dict[str, Any], headers: dict[str, str] = KEY, stream: bool = False) -> Answer:
        return go.call("POST", "/v1/queue/publish", value, headers, stream=stream)

    job = {"queue": QUEUE, "payload": JOB}
    turned = {"payload": dict(reversed(JOB.items())), "queue": QUEUE}
    nils = {**job, "headers": None, "job_key": None, "message_group_id": None, "batch": None}
    in_body = {**job, "idempotency_key": KEY["Idempotency-Key"]}
    first = publish(job)
    again = [publish(job), publish(turned), publish(job, stream=True), publish(in_body, {})]
    traced = publish({**job, "traceparent": f"00-{'a' * 32}-{'b' * 16}-01"})
    header_wins = publish({**job, "idempotency_key": "another"})
    conflict = publish({"queue": QUEUE, "payload": {**JOB, "amount": 1}})
    decimal = go.call("POST", "/v1/queue/consume", {"queue": QUEUE}).data["messages"]
    elsewhere = publish({"queue": "reconcile-2", "payload": JOB})
    unkeyed = publish(nils, {}, stream=True)
    go.call("DELETE", f"/v1/queue/delete/{QUEUE}").data  # noqa: B018 - raises unless it was deleted
    anew = publish(job)
    taken = go.call("POST", "/v1/queue/consume", {"queue": QUEUE}).data["messages"]
    return {
        "first": seen(first),
        "again": [seen(answer) for answer in again],
        "traced": seen(traced),
        "header_wins": seen(header_wins),
        "conflict": seen(conflict),
        "stored_once": len(decimal),
        "payload": decimal[0]["payload"],
        "elsewhere": seen(elsewhere),
        "unkeyed": seen(unkeyed),
        "anew": seen(anew),
        "anew_taken": [message["message_id"] for message in taken],
        "connections": go.connection.opened,
    }


if __name__ == "__main__":
    tell(main())
