"""What a store shows, as plain data that two engines must agree on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from redrive.domain.errors import RedriveError
from redrive.storage.port import Reader
from redrive.storage.values import DeadFilter

# numbers that each engine gives by itself
_INTERNAL = ("number", "id", "queue_id", "group_id", "dlq_id", "busy")


def plain(value: Any) -> Any:
    """A result as data; of internal numbers only whether they are there."""
    if isinstance(value, RedriveError):
        return value.code
    if isinstance(value, str) and value.startswith("deleting/"):
        return value.split("/", 2)[2]
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, msgspec.Struct):
        fields = {name: plain(getattr(value, name)) for name in value.__struct_fields__}
        return {name: f is not None if name in _INTERNAL else f for name, f in fields.items()}
    return value


def picture(reader: Reader, message_ids: Sequence[str]) -> list[Any]:
    """Every queue with its counts, messages and dead letters; the history of these messages."""
    shown: list[Any] = []
    for queue in reader.queue_page("", 100):
        shown.append(plain(queue))
        shown.append(plain(reader.counts(queue)))
        shown.append(plain(reader.fingerprint_policies(queue.id)))
        messages = [plain(message) for message in reader.messages(queue, None, None, 0, 1000)]
        shown.append(sorted(messages, key=lambda message: str(message["facts"]["message_id"])))
        select = DeadFilter(queue=queue.name)
        shown.append(plain(reader.dead_page(select, (0, ""), 1000)))
        shown.append(plain(reader.dead_groups(select, 1000)))
    for message_id in message_ids:
        shown.append(plain(reader.attempts(message_id)))
        shown.append(plain(reader.records(message_id)))
        shown.append(plain(reader.tombstone(message_id)))
    return shown
