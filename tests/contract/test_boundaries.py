"""n-1, n and n+1 of every limit, generated from the annotations of every capability."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, get_type_hints

import pytest

from redrive.contract import CAPABILITIES, capability_by_id
from redrive.contract.limits_table import limits_of
from redrive.contract.schemas import wire_of
from redrive.domain import limits
from redrive.domain.errors import LimitExceeded, PayloadTooLarge, RedriveError
from tests.contract.reading import read

_ITEMS: dict[str, Any] = {
    "messages": {"payload": 1}, "items": {"message_id": "m"}, "message_ids": "m", "scopes": "consume",
    "queues": "q*", "redact": "a.b",
}  # fmt: skip


def _of_length(capability_id: str, field: str, length: int) -> Any:
    hint = str(get_type_hints(wire_of(capability_by_id(capability_id)))[field])
    if field in _ITEMS:
        return [_ITEMS[field]] * length
    return {f"h{n}": "v" for n in range(length)} if "dict" in hint and "str, str" in hint else "x" * length


def _cases() -> Iterator[Any]:
    for capability in CAPABILITIES:
        for field, row in limits_of(capability).items():
            low, high = row.get("minimum"), row.get("maximum")
            if low is not None:
                yield pytest.param(
                    capability.id, field, low, [low, low + 1], low - 1, id=f"{capability.id}-{field}-min"
                )
            if high is not None:
                yield pytest.param(
                    capability.id, field, high, [high - 1, high], high + 1, id=f"{capability.id}-{field}-max"
                )
            if (longest := row.get("max_length")) is not None:
                sizes = [_of_length(capability.id, field, n) for n in (longest - 1, longest, longest + 1)]
                yield pytest.param(
                    capability.id, field, longest, sizes[:2], sizes[2], id=f"{capability.id}-{field}-long"
                )


def _fields(capability_id: str, field: str, value: Any) -> dict[str, Any]:
    example = dict(capability_by_id(capability_id).example)
    if field == "message_retention_days":
        example.pop("retention_seconds", None)
    return {**example, field: value}


@pytest.mark.parametrize(("capability_id", "field", "limit", "good", "bad"), list(_cases()))
def test_bounds(capability_id: str, field: str, limit: float, good: list[Any], bad: Any) -> None:
    """Up to the limit it is read; one beyond is refused with 422 naming field and limit."""
    for value in good:
        if field == "message_retention_days" and value > 30:
            continue
        read(capability_id, _fields(capability_id, field, value))
    with pytest.raises(LimitExceeded) as refused:
        read(capability_id, _fields(capability_id, field, bad))
    details = refused.value.details or {}
    assert details["field"] == field
    assert details["limit"] == limit
    assert field in refused.value.message


def _publish(**fields: Any) -> None:
    read("queue.publish", {"queue": "q", "payload": 1, **fields})


def _payload_of(size: int) -> None:
    read("queue.publish", b'{"queue":"q","payload":"' + b"x" * (size - 2) + b'"}')


def _nested(depth: int) -> None:
    read("queue.publish", b'{"queue":"q","payload":' + b"[" * (depth - 1) + b"]" * (depth - 1) + b"}")


def _batch_bytes(size: int) -> None:
    share = size // 40
    sizes = [share] * 39 + [size - 39 * share]
    entries = b",".join(b'{"payload":"' + b"x" * (n - 2) + b'"}' for n in sizes)
    decoded = read("queue.publish_batch", b'{"queue":"q","messages":[' + entries + b"]}")
    assert not decoded.request.refused


def _header_bytes(size: int) -> None:
    _publish(headers={"h": "x" * (size - 1)})


def _queue_chars(size: int) -> None:
    _publish(queue="q" * size)


def _derived_chars(size: int) -> None:
    _publish(queue="q" * (size - 4) + ".dlq")


def _created_chars(size: int) -> None:
    read("queue.create", {"name": "q" * size})


def _key_bytes(field: str) -> Any:
    return lambda size: _publish(**{field: "é" * (size // 2) + "x" * (size % 2)})


@pytest.mark.parametrize(
    ("send", "limit"),
    [
        (_payload_of, limits.BODY_BYTES_MAX),
        (_nested, limits.JSON_DEPTH_MAX),
        (_batch_bytes, limits.BATCH_BYTES_MAX),
        (_header_bytes, limits.HEADERS_BYTES_MAX),
        (_queue_chars, limits.QUEUE_NAME_CHARS_MAX),
        (_derived_chars, limits.DERIVED_QUEUE_NAME_CHARS_MAX),
        (_created_chars, limits.QUEUE_NAME_CHARS_MAX),
        (_key_bytes("job_key"), limits.KEY_BYTES_MAX),
        (_key_bytes("message_group_id"), limits.KEY_BYTES_MAX),
        (_key_bytes("deduplication_id"), limits.KEY_BYTES_MAX),
        (_key_bytes("idempotency_key"), limits.KEY_BYTES_MAX),
    ],
)
def test_bounds_that_annotations_cannot_say(send: Any, limit: int) -> None:
    """Bytes, depth and names: the limit passes, one more does not, and the refusal names the limit."""
    send(limit - 1)
    send(limit)
    with pytest.raises(RedriveError) as refused:
        send(limit + 1)
    assert str(limit) in refused.value.message


def test_statuses_of_sizes() -> None:
    """Sizes of bodies are 413."""
    for send, limit in ((_payload_of, limits.BODY_BYTES_MAX), (_batch_bytes, limits.BATCH_BYTES_MAX)):
        with pytest.raises(PayloadTooLarge):
            send(limit + 1)
    with pytest.raises(PayloadTooLarge):
        read("queue.publish", json.dumps({"queue": "q"}).encode() + b" " * limits.REQUEST_BYTES_MAX)
