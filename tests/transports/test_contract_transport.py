"""Batches are cut so that each is legal, and answers stay in order."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec
import pytest

from redrive.compose import connect
from redrive.domain import limits
from redrive.domain.errors import InvalidRequest, NotFound, RedriveError
from redrive.transports import Entry
from redrive.transports.contract_transport import ContractTransport


class Echo:
    """A carrier that stores nothing and answers each entry with its own payload as the message id."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, dict[str, Any]]] = []

    def call(
        self, capability_id: str, request: Mapping[str, Any], *, deadline_seconds: float | None = None
    ) -> bytes:
        """Answer."""
        body = json.loads(msgspec.json.encode(request))
        self.calls.append((capability_id, body))
        if capability_id == "queue.publish":
            return msgspec.json.encode({"message_id": str(body["payload"])})
        if capability_id == "queue.ack_batch":
            return msgspec.json.encode({"items": [{"acknowledged": True} for _ in body["items"]]})
        return msgspec.json.encode(
            {"items": [{"message_id": str(m["payload"])[:6]} for m in body["messages"]]}
        )

    def close(self) -> None:
        """Nothing."""


class Empty(Echo):
    """A carrier of an empty queue, which keeps the deadlines too."""

    def __init__(self) -> None:
        super().__init__()
        self.deadlines: list[float | None] = []

    def call(
        self, capability_id: str, request: Mapping[str, Any], *, deadline_seconds: float | None = None
    ) -> bytes:
        """No message."""
        self.calls.append((capability_id, dict(request)))
        self.deadlines.append(deadline_seconds)
        return b'{"messages":[],"lease_seconds":30}'


def test_a_long_list_is_cut_by_count() -> None:
    """2,001 entries are three calls, the last one single; the answers are in order."""
    echo = Echo()
    entries = [Entry(payload=n) for n in range(2 * limits.BATCH_ENTRIES_MAX + 1)]
    answers = ContractTransport(echo).publish("work", entries)
    assert [answer.message_id for answer in answers] == [str(n) for n in range(len(entries))]  # type: ignore[union-attr]
    assert [capability for capability, _ in echo.calls] == [
        "queue.publish_batch",
        "queue.publish_batch",
        "queue.publish",
    ]


def test_large_entries_are_cut_by_bytes() -> None:
    """No call is above the contract's bytes for a batch."""
    echo = Echo()
    entries = [Entry(payload="x" * 250_000) for _ in range(70)]
    assert len(ContractTransport(echo).publish("work", entries)) == 70
    sizes = [len(json.dumps(body)) for _, body in echo.calls]
    assert len(sizes) > 1
    assert max(sizes) <= limits.BATCH_BYTES_MAX


def test_acks_are_cut_by_count() -> None:
    """1,001 acknowledgements are two calls."""
    echo = Echo()
    items = [(f"m{n}", "h") for n in range(limits.BATCH_ENTRIES_MAX + 1)]
    assert ContractTransport(echo).ack("work", items) == [True] * len(items)
    assert len(echo.calls) == 2


def test_a_wait_is_cut_at_the_contracts_limit() -> None:
    """A longer wait than the contract allows is not sent."""
    carrier = Empty()
    ContractTransport(carrier).consume(
        "work", max_messages=1, visibility_timeout=None, wait_seconds=300, consumer_id="me"
    )
    assert carrier.calls[0][1]["wait_seconds"] == limits.WAIT_SECONDS_MAX


@pytest.mark.parametrize(
    ("visibility_timeout", "deadline"), [(None, None), (1.0, 5.0), (12.0, 12.0), (43_200.0, 30.0)]
)
def test_leases_are_not_waited_for_beyond_their_end(
    visibility_timeout: float | None, deadline: float | None
) -> None:
    """A worker whose connection fell silent opens another one when the lease would be over anyway."""
    carrier = Empty()
    ContractTransport(carrier).consume(
        "work", max_messages=1, visibility_timeout=visibility_timeout, wait_seconds=1, consumer_id="me"
    )
    assert carrier.deadlines == [deadline]


@pytest.mark.parametrize(
    ("capability_id", "request_", "kind", "said"),
    [
        ("queue.nope", {}, NotFound, "queue.nope is not found"),
        ("queue.get", {}, InvalidRequest, "queue is missing"),
        ("queue.publish", {"queue": "q", "payload": object()}, InvalidRequest, "payload cannot be written"),
    ],
)
def test_what_cannot_be_asked_is_a_refusal_that_names_it(
    capability_id: str, request_: dict[str, Any], kind: type[RedriveError], said: str
) -> None:
    """A misspelt capability, a missing path parameter, a value that is no JSON."""
    with closing(connect("memory:")) as client, pytest.raises(kind, match=said):
        client.call(capability_id, request_)


def test_a_store_in_a_folder_that_is_not_there(tmp_path: Path) -> None:
    """It is told as a refusal, with the file that failed."""
    with pytest.raises(InvalidRequest, match="nodir"):
        connect(f"sqlite:///{tmp_path}/nodir/x.db")
