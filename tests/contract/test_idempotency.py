"""What counts as the same request under an idempotency key."""

from __future__ import annotations

import pytest

from redrive.contract import request_hash

BASE = b'{"queue":"q","payload":{"a":1,"b":[1.0,"x",null]}}'


@pytest.mark.parametrize(
    "same",
    [
        b'{"payload": {"b": [1.0, "x", null], "a": 1}, "queue": "q"}',
        b'{"queue":"q","payload":{"a":1,"b":[1.0,"\\u0078",null]},"idempotency_key":"k","traceparent":"t"}',
    ],
)
def test_the_same(same: bytes) -> None:
    """The order of keys, spaces, escapes and the left-out fields do not matter."""
    assert request_hash(same) == request_hash(BASE)
    assert len(request_hash(same)) == 8


@pytest.mark.parametrize(
    "other",
    [
        b'{"queue":"q","payload":{"a":1,"b":[1.00,"x",null]}}',
        b'{"queue":"q","payload":{"a":1,"b":["x",1.0,null]}}',
        b'{"queue":"q","payload":{"a":1,"b":["1.0","x",null]}}',
        b'{"queue":"q","payload":{"a":"1","b":[1.0,"x",null]}}',
        b'{"queue":"r","payload":{"a":1,"b":[1.0,"x",null]}}',
        b'{"queue":"q","payload":{"a":1,"b":[1.0,"x",null],"traceparent":"t"}}',
        b'{"queue":"q","payload":{"a":1,"a":1,"b":[1.0,"x",null]}}',
        b"",
    ],
)
def test_another(other: bytes) -> None:
    """Values, the text of numbers, the order in lists, duplicate keys, fields inside of the payload do."""
    assert request_hash(other) != request_hash(BASE)


def test_the_path_counts_as_a_field() -> None:
    """The queue may stand in the path or in the body."""
    assert request_hash(b'{"payload":1}', {"queue": "q"}) == request_hash(b'{"payload":1,"queue":"q"}')
    assert request_hash(b'{"payload":1}', {"queue": "q"}) != request_hash(b'{"payload":1}', {"queue": "r"})
