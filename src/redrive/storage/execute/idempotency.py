"""Recorded answers: the first answer again for the same key and request, an error for another request.

Records lie in slots of six hours (a fresh clustered slot costs a third of the log of one large index), keyed
by 16 bytes over route, resource and key. A look-up probes five slots, so that a record lives 24 hours and at
most 30. For a minute after a slot begins a record is written into both slots, so that two nodes with
slightly different moments of reading the clock cannot miss each other.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

from redrive.domain.errors import IdempotencyKeyReused
from redrive.storage.commands import Idempotent
from redrive.storage.execute.workspace import Workspace
from redrive.storage.values import Recorded

SLOT_MS = 6 * 3_600_000
SLOTS_PROBED = 5
OVERLAP_MS = 60_000


def slot_floor(now_ms: int) -> int:
    """Records in slots below this one are over."""
    return now_ms // SLOT_MS - SLOTS_PROBED + 1


class Answers:
    """The recorded answers that a batch needs: the store's, and those that it adds itself."""

    def __init__(self, work: Workspace) -> None:
        self._work = work
        self._known: dict[bytes, Recorded] = {}
        self._new: dict[bytes, Recorded] = {}

    def load(self, keys: Iterable[tuple[int, object]]) -> None:
        """Read what is stored for these (resource, key) pairs."""
        hashes = sorted({_hash(resource, key) for resource, key in keys if isinstance(key, Idempotent)})
        if hashes:
            slot = self._work.now_ms // SLOT_MS
            self._known.update(self._work.tx.find_recorded(hashes, range(slot - SLOTS_PROBED + 1, slot + 1)))

    def find(self, resource: int, key: Idempotent) -> bytes | None:
        """The answer recorded for this request; ``IdempotencyKeyReused`` if it was for another one."""
        digest = _hash(resource, key)
        stored = self._new.get(digest) or self._known.get(digest)
        if stored is None:
            return None
        if stored.request_hash != key.request_hash:
            raise IdempotencyKeyReused(
                f"idempotency_key {key.key!r} was used for a different request on {key.route}",
                hint="use a new key for a new request, or send the first request again unchanged",
            )
        return stored.answer

    def add(self, resource: int, key: Idempotent, answer: bytes) -> None:
        """Record an answer; it becomes durable with its effect."""
        self._new[_hash(resource, key)] = Recorded(key.request_hash, answer)

    def forget(self, resource: int, key: Idempotent) -> None:
        """What was recorded no longer stands; the next ``add`` replaces it."""
        self._known.pop(_hash(resource, key), None)

    def flush(self) -> None:
        """Write what was added."""
        if not self._new:
            return
        slot, into = divmod(self._work.now_ms, SLOT_MS)
        slots = (slot - 1, slot) if into < OVERLAP_MS else (slot,)
        self._work.tx.record([(s, digest, row) for s in slots for digest, row in sorted(self._new.items())])


def _hash(resource: int, key: Idempotent) -> bytes:
    subject = f"{key.route}\x00{resource}\x00{key.key}"
    return hashlib.blake2b(subject.encode("utf-8", "surrogatepass"), digest_size=16).digest()
