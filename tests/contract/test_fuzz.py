"""Whatever bytes come, the reader answers with a request or a refusal of the contract."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from redrive.contract import CAPABILITIES, Capability, capability_by_id, decode, request_hash
from redrive.domain.errors import RedriveError
from tests.contract.reading import place

TEXT = st.text(
    alphabet=st.characters(exclude_categories=["Cs"]) | st.sampled_from('\x00\n"\\{}[]é'), max_size=12
)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=True) | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=6,
)
BATCHES = [capability_by_id("queue.publish_batch"), capability_by_id("queue.ack_batch")]


def _refusal(capability: Capability, params: dict[str, str], body: bytes) -> RedriveError | None:
    try:
        decode(capability, params, {}, body)
    except RedriveError as error:
        return error
    return None


@settings(max_examples=400, deadline=None)
@given(st.data())
def test_any_object_is_read_or_refused(data: st.DataObject) -> None:
    """Known and unknown names with any values."""
    capability = data.draw(st.sampled_from([c for c in CAPABILITIES if c.method == "POST"]))
    names = st.sampled_from([*capability.request.__struct_fields__, *capability.field_aliases]) | TEXT
    fields = data.draw(st.dictionaries(names, VALUES, max_size=5))
    params, left = place(capability, {**capability.example, **fields})
    refused = _refusal(capability, params, json.dumps(left).encode())
    assert refused is None or 400 <= refused.http_status < 500


@settings(max_examples=300, deadline=None)
@given(st.sampled_from(BATCHES), st.lists(VALUES, max_size=4))
def test_any_list_of_entries_is_read_or_refused(capability: Capability, entries: list[Any]) -> None:
    """Every entry is either kept or refused, none lost."""
    name = "messages" if capability.id == "queue.publish_batch" else "items"
    body = json.dumps({"queue": "q", name: entries}).encode()
    if _refusal(capability, {}, body) is None:
        request = decode(capability, {}, {}, body).request
        assert len(getattr(request, name)) + len(request.refused) == len(entries)


@settings(max_examples=400, deadline=None)
@given(st.binary(max_size=6), st.integers(0, 200), st.integers(0, 6))
def test_damaged_bytes_are_read_or_refused(splice: bytes, at: int, cut: int) -> None:
    """A valid body with some bytes replaced; what is accepted can be hashed and is valid JSON."""
    capability = capability_by_id("queue.publish")
    whole = json.dumps({**capability.example, "headers": {"a": "é\ud83d\ude00"}}).encode()
    body = whole[:at] + splice + whole[at + cut :]
    if _refusal(capability, {}, body) is None and body.strip():
        request = decode(capability, {}, {}, body).request
        json.loads(bytes(request.payload))
        assert len(request_hash(body)) == 8


@pytest.mark.parametrize("capability", [c for c in CAPABILITIES if c.method != "POST"], ids=lambda c: c.id)
@settings(max_examples=40, deadline=None)
@given(st.data())
def test_any_query_is_read_or_refused(capability: Capability, data: st.DataObject) -> None:
    """Names and values of a query."""
    names = st.sampled_from(capability.request.__struct_fields__) | TEXT
    query = data.draw(st.dictionaries(names, TEXT, max_size=4))
    params, _ = place(capability, capability.example)
    try:
        decode(capability, params, query, b"")
    except RedriveError as error:
        refused: RedriveError | None = error
    else:
        refused = None
    assert refused is None or 400 <= refused.http_status < 500
