"""Reading requests: tolerant where the contract says so, and precise in what it refuses."""

from __future__ import annotations

import json
from typing import Any

import pytest

from redrive.contract import CAPABILITIES, Capability, capability_by_id, decode
from redrive.domain import limits
from redrive.domain.errors import InvalidRequest, LimitExceeded, PayloadTooLarge, QueueNotFound, RedriveError
from tests.contract.reading import read

PUBLISH = {"queue": "q", "payload": 1}
ACK = {"queue": "q", "message_id": "m"}


@pytest.mark.parametrize("capability", CAPABILITIES, ids=lambda capability: capability.id)
def test_every_example_is_read_without_rest(capability: Capability) -> None:
    """The examples of discovery are valid, also for a strict reader."""
    decoded = read(capability.id, capability.example, strict=True)
    assert isinstance(decoded.request, capability.request)
    assert decoded.ignored_fields == []


@pytest.mark.parametrize(
    "text",
    [
        "12345678901234567890123", "1.10", "1E5", '{"b":1,"a":2,"b":3}', '"\\u0000\\ud83d\\ude00"', "null",
        '{ "a" : [ ] }', '"é"', '"\\\\ud800"', "false", '""',
    ],
)  # fmt: skip
@pytest.mark.parametrize("name", ["payload", "body"])
@pytest.mark.parametrize("more", ["", ',"unknown":1'])
def test_a_payload_keeps_its_text(text: str, name: str, more: str) -> None:
    """By the short way, under its other name, and beside an unknown field."""
    request = read("queue.publish", f'{{"queue":"q","{name}":{text}{more}}}'.encode()).request
    assert bytes(request.payload).decode() == text


@pytest.mark.parametrize(
    ("body", "says"),
    [
        (b'{"queue":"q","payload":NaN}', "not valid JSON"),
        (b'{"queue":"q","payload":[-Infinity]}', "not valid JSON"),
        (b'{"queue":"q","payload":01}', "not valid JSON"),
        (b'{"queue":"q","payload":1}x', "not valid JSON"),
        (b'{"queue":"q","payload":', "not valid JSON"),
        (b'{"queue":"q","payload":"\xff"}', "not valid UTF-8: byte 24 is 0xff"),
        (b'{"queue":"q","payload":"\xed\xa0\x80"}', "not valid UTF-8"),
        (b'{"queue":"q","payload":"\\ud800"}', "lone surrogate"),
        (b'{"queue":"q","payload":"\\udc00 x"}', "lone surrogate"),
        (b'{"queue":"q","payload":"\\uD83D\\n\\uDE00"}', "lone surrogate"),
        (b"[]", "must be a JSON object, got a list"),
        (b"7", "must be a JSON object"),
        (b"{}", "is required"),
        (b"", "is required"),
        (b'{"queue":null,"payload":1}', "queue is required"),
        (b'{"queue":"q"}', "payload is required"),
        (b'{"queue":"q","payload":1,"body":2}', "they differ"),
        (b'{"queue":7,"payload":1}', "queue must be a string, got 7"),
        (b'{"queue":"a b","payload":1}', 'got "a b"'),
        (b'{"queue":"","payload":1}', "queue must be a name"),
        (b'{"queue":"q\\n","payload":1}', "queue must be a name"),
        (b'{"queue":"q","payload":1,"priority":"high"}', 'priority must be an integer, got "high"'),
        (b'{"queue":"q","payload":1,"priority":true}', "priority must be an integer, got true"),
        (b'{"queue":"q","payload":1,"priority":1.5}', "priority must be an integer, got 1.5"),
        (b'{"queue":"q","payload":1,"delay_seconds":[]}', "delay_seconds must be a number, got a list"),
        (b'{"queue":"q","payload":1,"headers":{"a":1}}', "every value of headers must be a string"),
        (b'{"queue":"q","payload":1,"job_key":""}', "job_key must not be empty"),
        (b'{"queue":"q","payload":1,"job_key":"a\\u0000"}', "job_key must not contain U+0000"),
        (b'{"queue":"q","payload":1,"batch":{"key":"k"}}', "batch is not supported"),
    ],
)
def test_wrong_shapes_are_400_and_say_what_came(body: bytes, says: str) -> None:
    """The message names the field and the value."""
    with pytest.raises(InvalidRequest) as refused:
        read("queue.publish", body)
    assert says in refused.value.message


@pytest.mark.parametrize(
    ("capability_id", "fields", "says"),
    [
        ("queue.create", {"name": "q", "type": "lifo"}, "type must be one of 'standard', 'fifo', got"),
        ("queue.create", {"name": "q", "retry_policy": 5}, "retry_policy must be an object, got 5"),
        ("queue.create", {"name": "q", "retry_policy": {"jitter": 1}}, "retry_policy.jitter must be true"),
        ("queue.create", {"name": "q", "redact": ["a", 5]}, "redact[1] must be a string, got 5"),
        ("queue.create", {"name": "q", "retention_seconds": 60, "message_retention_days": 1}, "differ"),
        ("queue.messages", {"queue": "q", "since": "yesterday"}, "since must be an RFC 3339 time, got"),
        ("queue.messages", {"queue": "q", "state": "gone"}, "state must be one of"),
        ("queue.list", {"limit": "many"}, 'limit must be an integer, got "many"'),
        ("queue.nack", {"message_id": "m", "error": 5}, "error must be a string or an object, got 5"),
        ("queue.ack_batch", {"items": {}}, "items must be a list, got an object"),
        ("queue.publish_batch", {"queue": "q", "messages": "x"}, 'messages must be a list, got "x"'),
        ("account.keys.create", {"name": "n", "expires_at": 5}, "expires_at must be an RFC 3339 time"),
        ("account.keys.create", {"name": "n", "scopes": ["root"]}, "scopes[0] must be one of"),
        ("admin.backup", {"name": "../x"}, "name must be text of letters, digits"),
        ("admin.backup", {"name": "x\n"}, "name must"),
    ],
)  # fmt: skip
def test_wrong_shapes_of_other_routes(capability_id: str, fields: dict[str, Any], says: str) -> None:
    """Nested fields and list items are named by their path."""
    with pytest.raises(InvalidRequest) as refused:
        read(capability_id, fields)
    assert says in refused.value.message


def test_limits_name_field_limit_and_value() -> None:
    """For people in the message, for programs in the details."""
    with pytest.raises(LimitExceeded) as refused:
        read("queue.publish", {**PUBLISH, "delay_seconds": 604_801})
    assert refused.value.message == "delay_seconds must be at most 604800, got 604801"
    assert refused.value.details == {"field": "delay_seconds", "limit": 604_800, "actual": 604_801}


def test_unknown_fields_are_dotted_and_nulls_do_not_count() -> None:
    """Listed when tolerated, refused when strict, with a near name as the hint."""
    fields = {"name": "q", "colour": 1, "size": None, "retry_policy": {"factr": 2, "factor": 3}}
    decoded = read("queue.create", fields)
    assert decoded.ignored_fields == ["colour", "retry_policy.factr"]
    assert decoded.request.retry_policy.factor == 3
    with pytest.raises(InvalidRequest) as refused:
        read("queue.create", {"name": "q", "max_retrys": 5}, strict=True)
    assert (refused.value.message, refused.value.hint) == (
        "unknown field max_retrys",
        "Did you mean max_retries?",
    )


def test_other_names_are_read() -> None:
    """queue for name, receipt for receipt_handle, the queue in the path."""
    assert read("queue.create", {"queue": "q"}).request.name == "q"
    assert read("queue.ack", {**ACK, "receipt": "h"}).request.receipt_handle == "h"
    ack = capability_by_id("queue.ack")
    assert decode(ack, {"queue": "q"}, {}, b'{"message_id":"m"}').request.queue == "q"
    publish = capability_by_id("queue.publish")
    assert decode(publish, {"queue": "q"}, {}, b'{"payload":1}').request.queue == "q"
    with pytest.raises(InvalidRequest, match="in the path"):
        decode(publish, {"queue": "q"}, {}, b'{"payload":1,"queue":"other"}')


def test_a_path_name_that_no_queue_can_have_is_not_found() -> None:
    """A probe with an escaped name is answered as any other queue that is not there."""
    for capability_id in ("queue.get", "queue.stats", "queue.delete", "queue.dlq.list", "queue.pause"):
        with pytest.raises(QueueNotFound, match="not found"):
            read(capability_id, {"queue": "a/b c"})


def test_retention_in_days_becomes_seconds() -> None:
    """One canonical field reaches the service."""
    request = read("queue.create", {"name": "q", "message_retention_days": 14}).request
    assert (request.retention_seconds, request.message_retention_days) == (1_209_600, None)


def test_a_redrive_by_a_records_reason_is_a_filter() -> None:
    """A program that means the filter must not get an unfiltered redrive."""
    assert read("queue.dlq.redrive", {"queue": "q", "reason": "rejected"}).request.dead_reason == "rejected"
    assert read("queue.dlq.redrive", {"queue": "q", "reason": "fixed it"}).request.dead_reason is None


def test_an_edit_keeps_its_text() -> None:
    """A merge patch goes into payloads: its numbers, nulls and order are as they were sent; 413 above a
    payload's size."""
    text = b'{"amount":12345678901234567890.50,"note":null,"a":{"b":1}}'
    asked = b'{"queue":"q","reason":"r","select":{"message_ids":["m"]},"edit": %b }'
    assert bytes(read("redrive.plan.create", asked % text).request.edit) == text
    assert read("redrive.plan.create", asked % b"null").request.edit is None
    with pytest.raises(PayloadTooLarge) as refused:
        read("redrive.plan.create", asked % (b'"' + b"x" * limits.BODY_BYTES_MAX + b'"'))
    assert (refused.value.details or {})["field"] == "edit"


def test_traceparent_travels_in_the_headers() -> None:
    """And a header of that name wins."""
    assert read("queue.publish", {**PUBLISH, "traceparent": "00-a"}).request.headers == {
        "traceparent": "00-a"
    }
    both = {**PUBLISH, "traceparent": "00-a", "headers": {"traceparent": "00-b"}}
    assert read("queue.publish", both).request.headers == {"traceparent": "00-b"}


def test_a_batch_keeps_valid_entries_and_names_the_others() -> None:
    """Entries, bare values, other names; refusals by position; hashes for keys of their own."""
    messages = [
        {"payload": 1}, {"shard": 5}, 7, {"payload": 1, "shard": 2}, {"body": 3, "priority": 10}, None,
        {"payload": 4, "delay_seconds": "x"}, {"payload": {"b": 1, "a": 2}, "idempotency_key": "k"},
        {"payload": "x" * limits.BODY_BYTES_MAX}, {"payload": 1, "batch": {}},
    ]  # fmt: skip
    request = read("queue.publish_batch", {"queue": "q", "messages": messages, "n": 1}).request
    texts = [bytes(entry.payload) for entry in request.messages]
    assert texts == [b"1", b'{"shard": 5}', b"7", b"null", b'{"b": 1, "a": 2}']
    assert {n: error.code for n, error in request.refused.items()} == {
        3: "INVALID_REQUEST", 4: "LIMIT_EXCEEDED", 6: "INVALID_REQUEST", 8: "PAYLOAD_TOO_LARGE",
        9: "INVALID_REQUEST",
    }  # fmt: skip
    assert request.refused[4].message == "messages[4].priority must be at most 9, got 10"
    assert list(request.entry_hashes) == [4]


def test_an_ack_batch_keeps_valid_items_and_names_the_others() -> None:
    """As publish_batch."""
    items: list[Any] = [
        {"message_id": "m", "receipt": "h"},
        {"receipt_handle": "h"},
        5,
        {"message_id": "n", "x": 1},
    ]
    decoded = read("queue.ack_batch", {"items": items})
    assert [item.message_id for item in decoded.request.items] == ["m", "n"]
    assert {n: error.code for n, error in decoded.request.refused.items()} == {
        1: "INVALID_REQUEST",
        2: "INVALID_REQUEST",
    }
    assert decoded.ignored_fields == ["items[3].x"]


def _refusal(capability_id: str, fields: dict[str, Any]) -> RedriveError | None:
    try:
        read(capability_id, fields)
    except RedriveError as error:
        return error
    return None


@pytest.mark.parametrize("capability", CAPABILITIES, ids=lambda capability: capability.id)
@pytest.mark.parametrize("value", [[], {}, "", "\u0000", -1, 10**30, True, "é" * 300, None], ids=repr)
def test_bad_values_of_every_field_are_refused_or_read(capability: Capability, value: object) -> None:
    """Whatever a field holds, the reader answers with a refusal of the contract or a request."""
    shape = capability.wire or capability.request
    for field in shape.__struct_fields__:
        refused = _refusal(capability.id, {**capability.example, field: value})
        assert refused is None or (400 <= refused.http_status < 500 and refused.message)


def test_the_short_way_and_the_long_way_agree() -> None:
    """An unknown field changes how a request is read, not what is read."""
    for capability in CAPABILITIES:
        if capability.method != "POST":
            continue
        plain = read(capability.id, capability.example).request
        other = read(capability.id, {**capability.example, "unknown_field": 1}).request
        for field in plain.__struct_fields__:
            one, two = getattr(plain, field), getattr(other, field)
            if field == "payload":
                one, two = json.loads(bytes(one)), json.loads(bytes(two))
            if field != "messages":
                assert one == two
