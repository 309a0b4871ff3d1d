"""Stored messages as pages show them: exact, or without the fields that their queues redact."""

from __future__ import annotations

from functools import cached_property
from typing import Final

import msgspec
from msgspec import Raw

from redrive.contract import shapes
from redrive.domain.redaction import MASK, Redacted, exactly, redact
from redrive.storage.port import Reader
from redrive.storage.values import StoredMessage

_NO_HEADERS: Final = Raw(b"{}")


class Paths:
    """The paths that hold for a message, within one read: of its queue and, for a dead letter, of its source.

    Each queue is looked up once.
    """

    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self._known: dict[str, tuple[str, ...]] = {}

    def of(self, stored: StoredMessage) -> tuple[str, ...]:
        """The paths for ``stored``, each once."""
        origin = stored.record.origin if stored.record else None
        own = self.named(stored.queue)
        if origin is None or origin == stored.queue:
            return own
        return tuple(dict.fromkeys((*own, *self.named(origin))))

    def named(self, queue: str) -> tuple[str, ...]:
        """The paths of the queue of this name; none where there is no such queue."""
        if queue not in self._known:
            found = self._reader.queue(queue)
            self._known[queue] = found.policy.redact if found else ()
        return self._known[queue]


class Shown:
    """What may be shown of ``stored`` where ``paths`` are redacted; without any, all of it to the byte."""

    def __init__(self, stored: StoredMessage, paths: tuple[str, ...]) -> None:
        self._stored, self._paths = stored, paths

    @property
    def payload(self) -> Raw:
        """The payload, masked."""
        if not self._paths:
            return Raw(self._stored.body)
        return Raw(msgspec.json.encode(self._redacted.payload))

    @property
    def headers(self) -> Raw:
        """The headers, masked."""
        if not self._stored.headers:
            return _NO_HEADERS
        return Raw(msgspec.json.encode(self._redacted.headers) if self._paths else self._stored.headers)

    def error(self, raw: bytes | None) -> shapes.ErrorRecord | None:
        """A stored error of this message, masked; all of its text where what it may quote is damaged."""
        if raw is None:
            return None
        error = msgspec.json.decode(raw, type=shapes.ErrorRecord)
        if not self._paths:
            return error
        if not self._stored.sound:
            return shapes.ErrorRecord(type=error.type, message=MASK)
        return shapes.ErrorRecord(**self._redacted.error(msgspec.structs.asdict(error)))

    @cached_property
    def _redacted(self) -> Redacted:
        headers = msgspec.json.decode(self._stored.headers or b"{}", type=dict[str, str])
        return redact(self._paths, exactly(self._stored.body), headers)
