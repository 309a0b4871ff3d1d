"""Sets of values as the statements take them: one array a column."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from redrive.domain.facts import Facts
from redrive.storage.postgres import binary as b


def key_columns(keys: Sequence[tuple[int, str]]) -> tuple[bytes, bytes]:
    """Queue ids and group keys."""
    return b.int8s([queue_id for queue_id, _ in keys]), b.texts([key for _, key in keys])


def place_in_queue(row: tuple[Any, ...]) -> tuple[int, int, int]:
    """Where a claimed row stood: highest priority first, then by due time and number."""
    return -row[3], row[-1], row[0]


def ack_values(items: Sequence[tuple[str, str]]) -> tuple[bytes, bytes]:
    """Message ids and handles; what is no id at all cannot be there."""
    if not b.are_message_ids([message_id for message_id, _ in items]):
        items = [item for item in items if b.is_message_id(item[0])]
    return b.uuids([message_id for message_id, _ in items]), b.texts([handle for _, handle in items])


def fence(rows: Sequence[Facts]) -> tuple[bytes, bytes]:
    """Numbers and deliveries: a row that went on since is not touched."""
    return b.int8s([f.id for f in rows]), b.int8s([f.delivery for f in rows])
