"""n-1, n and n+1 of every limit, generated from the annotations of every capability."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_type_hints

import pytest

from redrive.contract import CAPABILITIES, Capability, capability_by_id, decode
from redrive.contract.capability import parameter_of
from redrive.contract.limits_table import limits_of
from redrive.contract.schemas import wire_of
from redrive.domain import limits
from redrive.domain.errors import LimitExceeded, PayloadTooLarge, RedriveError
from tests.api.matrix import Field, fields_of, placed
from tests.contract.reading import read

_ITEMS: dict[str, Any] = {
    "messages": {"payload": 1}, "items": {"message_id": "m"}, "message_ids": "m", "scopes": "consume",
    "queues": "q*", "redact": "a.b",
}  # fmt: skip


def _of_length(capability_id: str, field: str, length: int) -> Any:
    hint = str(get_type_hints(wire_of(capability_by_id(capability_id)))[field])
    if field in _ITEMS:
        example = capability_by_id(capability_id).example.get(field)
        return [example[0] if capability_id == "redrive.plan.resolve" and example else _ITEMS[field]] * length
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


def _inner() -> Iterator[Any]:
    """The fields inside of objects and entries: one value at each bound, and one beyond."""
    for capability in CAPABILITIES:
        for about in fields_of(capability):
            name = f"{capability.id}-{about.name}"
            inside = len(about.path) > 1
            if inside and about.minimum is not None:
                yield pytest.param(capability, about, about.minimum, about.minimum - 1, id=f"{name}-min")
            if inside and about.maximum is not None:
                yield pytest.param(capability, about, about.maximum, about.maximum + 1, id=f"{name}-max")
            if inside and about.max_length is not None and about.kind == "str":
                sizes = ["x" * about.max_length, "x" * (about.max_length + 1)]
                yield pytest.param(capability, about, *sizes, id=f"{name}-long")
            if about.kind == "name" and capability.method == "POST":
                longest = 80 if capability.id == "queue.create" and about.name == "name" else 84
                tail = "" if longest == 80 else ".dlq"
                sizes = [f"{'q' * (longest - len(tail) + more)}{tail}" for more in (0, 1)]
                yield pytest.param(capability, about, *sizes, id=f"{name}-long")


def _refused(capability: Capability, about: Field, value: Any) -> RedriveError | None:
    named = parameter_of(capability.path)
    in_path = named == about.name
    target, body = placed(capability, () if in_path else about.path, None if in_path else json.dumps(value))
    params = {}
    if named is not None:
        sent = target.split("/")[capability.path.split("/").index(f"{{{named}}}")]
        params = {named: value if in_path else sent}
    try:
        request = decode(capability, params, {}, body or b"").request
    except RedriveError as error:
        return error
    found: RedriveError | None = getattr(request, "refused", {}).get(0)
    return found


@pytest.mark.parametrize(("capability", "about", "good", "bad"), list(_inner()))
def test_bounds_of_names_and_inside_of_objects_and_entries(
    capability: Capability, about: Field, good: Any, bad: Any
) -> None:
    """As the fields at the top: the limit is read, one beyond is refused by the field's whole name."""
    assert _refused(capability, about, good) is None
    refused = _refused(capability, about, bad)
    assert refused is not None
    if f"{{{about.name}}}" in capability.path:  # a name in the path that no queue can have
        assert refused.http_status == 404
    else:
        assert (refused.code, (refused.details or {})["field"]) == ("LIMIT_EXCEEDED", about.name)


def test_a_number_is_refused_just_beyond_its_limit() -> None:
    """Fractions count: the limit is not rounded."""
    for capability in CAPABILITIES:
        for about in fields_of(capability):
            if about.kind == "float" and about.maximum is not None and capability.method == "POST":
                refused = _refused(capability, about, math.nextafter(about.maximum, math.inf))
                assert refused is not None, about.name
                assert refused.code == "LIMIT_EXCEEDED"


# what tries each number of domain/limits.py: a field's generated cases, a special case above, or another test
_BY_FIELD = {
    "DELAY_SECONDS_MAX": ("queue.publish", "delay_seconds"),
    "RETENTION_SECONDS_MIN": ("queue.create", "retention_seconds"),
    "RETENTION_SECONDS_MAX": ("queue.create", "retention_seconds"),
    "VISIBILITY_SECONDS_MIN": ("queue.consume", "visibility_timeout"),
    "VISIBILITY_SECONDS_MAX": ("queue.extend", "visibility_timeout"),
    "CONSUME_MESSAGES_MIN": ("queue.consume", "max_messages"),
    "CONSUME_MESSAGES_MAX": ("queue.consume", "max_messages"),
    "BATCH_ENTRIES_MAX": ("queue.publish_batch", "messages"),
    "KEY_BYTES_MAX": ("queue.consume", "consumer_id"),
    "REASON_CHARS_MAX": ("queue.dead_letter", "reason"),
    "FINGERPRINT_CHARS": ("queue.dlq.policy", "fingerprint"),
    "WAIT_SECONDS_MAX": ("queue.consume", "wait_seconds"),
    "CONCURRENCY_MAX": ("queue.consume", "concurrency"),
    "HEADERS_COUNT_MAX": ("queue.publish", "headers"),
    "PRIORITY_MIN": ("queue.publish", "priority"),
    "PRIORITY_MAX": ("queue.publish", "priority"),
    "MAX_RETRIES_MIN": ("queue.create", "max_retries"),
    "MAX_RETRIES_MAX": ("queue.create", "max_retries"),
    "LIST_LIMIT_MAX": ("queue.list", "limit"),
    "PLAN_MEMBERS_MAX": ("redrive.plan.create", "select.max_messages"),
    "PLAN_RATE_MIN": ("redrive.plan.create", "envelope.rate_per_second"),
    "PLAN_RATE_MAX": ("redrive.plan.create", "envelope.rate_per_second"),
    "PLAN_IN_FLIGHT_MAX": ("redrive.plan.create", "envelope.max_in_flight"),
    "PLAN_RAMP_SECONDS_MAX": ("redrive.plan.create", "envelope.ramp_seconds"),
    "PLAN_WINDOW_SECONDS_MAX": ("redrive.plan.create", "abort.window_seconds"),
}
_SPECIAL = {
    "BODY_BYTES_MAX", "JSON_DEPTH_MAX", "BATCH_BYTES_MAX", "HEADERS_BYTES_MAX", "QUEUE_NAME_CHARS_MAX",
    "DERIVED_QUEUE_NAME_CHARS_MAX", "REQUEST_BYTES_MAX",
}  # fmt: skip
_BY_PATTERN = {"QUEUE_NAME_PATTERN", "DERIVED_QUEUE_NAME_PATTERN"}
_UNITS = {"KIB", "MIB"}
_ELSEWHERE = {
    "tests/service/test_limits.py": {
        "CONSUME_BYTES_MAX", "CONSUME_MESSAGES_DEFAULT", "LIST_LIMIT_DEFAULT", "REDRIVE_MESSAGES_DEFAULT",
        "IDEMPOTENCY_SECONDS", "DEDUPLICATION_SECONDS", "ERROR_BYTES_MAX", "API_KEY_CHARS_MIN",
        "RETENTION_SECONDS_DEFAULT", "VISIBILITY_SECONDS_DEFAULT", "LEASE_SECONDS_MAX_DEFAULT",
        "MAX_RETRIES_DEFAULT", "MAX_REDRIVES_DEFAULT", "RETRY_BASE_SECONDS_DEFAULT", "RETRY_FACTOR_DEFAULT",
        "RETRY_MAX_SECONDS_DEFAULT", "PRIORITY_DEFAULT", "DEAD_RETENTION_SECONDS", "OUTAGE_GAP_MS",
        "RELEASES_MAX",
    },
    "tests/api/test_audit.py": {"ACTOR_CHARS_MAX"},
    "tests/service/test_redrive.py": {"REDRIVE_SKIPPED_MAX"},
    "tests/api/test_fingerprints.py": {"FINGERPRINT_POLICIES_MAX"},
    "tests/domain/test_causes.py": {"FINGERPRINTED_CHARS_MAX"},
    "tests/domain/cron/test_refusals.py": {"CRON_EXPRESSION_CHARS_MAX"},
    "tests/domain/test_schedules.py": {"RUNS_OPEN_MAX", "CATCH_UP_LIMIT_DEFAULT"},
    "tests/service/test_plans.py": {
        "PLAN_RATE_DEFAULT", "PLAN_IN_FLIGHT_DEFAULT", "PLAN_FAILURE_RATIO_DEFAULT",
        "PLAN_WINDOW_SECONDS_DEFAULT",
    },
}  # fmt: skip


def test_every_limit_is_tried() -> None:
    """A number that is added to domain/limits.py has its case, or this fails."""
    numbers = {name for name in vars(limits) if name.isupper()}
    named = [
        *_BY_FIELD,
        *_SPECIAL,
        *_BY_PATTERN,
        *_UNITS,
        *(n for found in _ELSEWHERE.values() for n in found),
    ]
    assert set(named) == numbers
    assert len(named) == len(set(named))
    tried = {(case.values[0], case.values[1], case.values[2]) for case in _cases()}
    tried |= {(case.values[0].id, case.values[1].name, case.values[2]) for case in _inner()}
    for name, (capability_id, field) in _BY_FIELD.items():
        assert (capability_id, field, getattr(limits, name)) in tried, name
    root = Path(__file__).parents[2]
    for path, found in _ELSEWHERE.items():
        text = (root / path).read_text(encoding="utf-8")
        assert [name for name in found if f"limits.{name}" not in text] == []


def test_every_number_has_two_bounds() -> None:
    """A number without an end reaches a store that has one: a column, a timer, a division."""
    for capability in CAPABILITIES:
        for about in fields_of(capability):
            if about.kind in ("int", "float"):
                assert None not in (about.minimum, about.maximum), f"{capability.id} {about.name}"


def test_every_bound_of_a_field_is_tried() -> None:
    """The generated cases and the declarations agree, field by field."""
    tried = {case.id for case in [*_cases(), *_inner()]}
    for capability in CAPABILITIES:
        for about in fields_of(capability):
            name = f"{capability.id}-{about.name}"
            if about.minimum is not None:
                assert f"{name}-min" in tried
            if about.maximum is not None:
                assert f"{name}-max" in tried
            if about.max_length is not None:
                inside = len(about.path) > 1 and about.kind != "str"
                assert inside or f"{name}-long" in tried


def test_statuses_of_sizes() -> None:
    """Sizes of bodies are 413."""
    for send, limit in ((_payload_of, limits.BODY_BYTES_MAX), (_batch_bytes, limits.BATCH_BYTES_MAX)):
        with pytest.raises(PayloadTooLarge):
            send(limit + 1)


def test_a_whole_request_has_its_limit() -> None:
    """n-1, n and n+1 bytes, with spaces: the entries' own limits do not meddle."""
    body = json.dumps({"queue": "q", "payload": 1}).encode()
    for more in (-1, 0):
        read("queue.publish", body + b" " * (limits.REQUEST_BYTES_MAX - len(body) + more))
    with pytest.raises(PayloadTooLarge) as refused:
        read("queue.publish", body + b" " * (limits.REQUEST_BYTES_MAX - len(body) + 1))
    assert (refused.value.details or {})["actual"] == limits.REQUEST_BYTES_MAX + 1


def test_entries_have_their_own_limit_of_headers() -> None:
    """The count of headers inside of an entry: n is read, n+1 is that entry's error."""
    for count, refused in ((limits.HEADERS_COUNT_MAX, []), (limits.HEADERS_COUNT_MAX + 1, [0])):
        entry = {"payload": 1, "headers": {f"h{n}": "v" for n in range(count)}}
        assert (
            list(read("queue.publish_batch", {"queue": "q", "messages": [entry]}).request.refused) == refused
        )
