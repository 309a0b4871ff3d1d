"""Bodies of dead letters in files, before retention removes them.

JSON lines, one a dead letter, in a file for each round of retention: ``2026-10-23/020000.123Z-<node>.jsonl``.
A file is synced before any of its letters goes. After a crash its last line may be cut, and letters of it may
stand in the next file again: those rows were still there. Fields that a queue redacts are masked.
"""

from __future__ import annotations

import base64
import contextlib
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from redrive.contract.instants import rfc3339
from redrive.domain.errors import InvalidRequest
from redrive.service.showing import Shown
from redrive.storage.values import StoredMessage

Letter = tuple[StoredMessage, tuple[str, ...]]  # with the paths that are redacted


class ArchiveFailed(Exception):
    """The file could not be written: what it was to hold stays in the store."""


class Archive:
    """Files in ``directory``, which is made if need be. Raises ``InvalidRequest`` when it cannot be used."""

    def __init__(self, directory: Path, node: str) -> None:
        self.directory = directory
        self._node = node
        try:
            directory.mkdir(parents=True, exist_ok=True, mode=0o700)
        except OSError as error:
            raise self._unusable(error.strerror) from error
        if not os.access(directory, os.W_OK | os.X_OK):
            raise self._unusable("it cannot be written")

    def _unusable(self, why: str | None) -> InvalidRequest:
        return InvalidRequest(
            f"dead_letter_archive {self.directory}: {why}",
            hint="it must be a directory in which this user may write",
            details={"field": "dead_letter_archive"},
        )

    def name(self, now_ms: int) -> str:
        """A round's file, within the directory."""
        day, _, time = rfc3339(now_ms).partition("T")
        return f"{day}/{time.replace(':', '')}-{self._node}.jsonl"

    def append(self, name: str, letters: Sequence[Letter]) -> None:
        """Write these to the end of the round's file; when this returns they are on the disk. Raises
        :class:`ArchiveFailed`."""
        lines = b"".join(line(stored, paths) for stored, paths in letters)
        path = self.directory / name
        try:
            path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            new = not path.exists()
            _write(path, lines)
            if new:
                _sync(path.parent)
                _sync(self.directory)
        except OSError as error:
            raise ArchiveFailed(f"{path}: {error.strerror or error}") from error


def line(stored: StoredMessage, paths: tuple[str, ...]) -> bytes:
    """One dead letter as a line of JSON. A damaged body is kept as base64, and left out where fields of it
    are redacted: nobody can say where in it they stand."""
    facts, record, masked = stored.facts, stored.record, Shown(stored, paths)
    assert record is not None
    fields: dict[str, Any] = {
        "message_id": facts.message_id,
        "job_key": record.job_key,
        "queue": record.origin,
        "dead_letter_queue": stored.queue,
        "reason": record.reason,
        "error": masked.error(record.error),
        "fingerprint": record.fingerprint,
        "attempts": record.attempts,
        "redrive_count": record.redrive_count,
        "enqueued_at": rfc3339(facts.enqueued_ms),
        "first_failed_at": rfc3339(record.first_failed_ms),
        "dead_at": rfc3339(record.dead_ms),
        "expires_at": rfc3339(record.expires_ms),
        "checksum": facts.body_hash.hex(),
        "redacted": bool(paths),
    }
    if stored.sound:
        fields |= {"headers": masked.headers, "payload": masked.payload}
    else:
        body = None if paths else base64.b64encode(bytes(stored.body)).decode()
        fields |= {"damaged": True, "body_base64": body}
    # a raw line break is never inside a JSON string: a space means the same
    return msgspec.json.encode(fields).replace(b"\n", b" ").replace(b"\r", b" ") + b"\n"


def _write(path: Path, lines: bytes) -> None:
    handle = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        before = os.fstat(handle).st_size
        try:
            left = memoryview(lines)
            while left:
                left = left[os.write(handle, left) :]
            os.fsync(handle)
        except OSError:
            with contextlib.suppress(OSError):  # no half of a line before those of the next try
                os.ftruncate(handle, before)
            raise
    finally:
        os.close(handle)


def _sync(directory: Path) -> None:
    handle = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
