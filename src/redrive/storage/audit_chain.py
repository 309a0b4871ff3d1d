"""The audit log's chain: what a row's hash covers, how rows are appended, and where a chain is broken.

Each row holds the SHA-256 over its number, its content and the hash of the row before; the head holds number
and hash of the last one. A row that was changed, removed, inserted or moved does not fit its neighbours or
the head any more. Whoever may write to the database can make the whole chain anew: that is found by a head
which was noted elsewhere.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import msgspec

from redrive.storage.port import Damaged
from redrive.storage.values import AuditHead, AuditRow

_BEFORE_ALL = -(2**63)


def row_hash(previous: bytes, row: AuditRow) -> bytes:
    """The hash of ``row`` behind a row with the hash ``previous``: 32 bytes.

    Covers a JSON array, in which no two contents look alike.
    """
    content = (
        "redrive audit 1", row.id, row.at_ms, row.actor, row.on_behalf_of, row.action, row.target, row.reason,
        row.selection_hash, row.outcome, row.detail,
    )  # fmt: skip
    return hashlib.sha256(previous + msgspec.json.encode(content)).digest()


def append(found: Sequence[AuditHead], rows: Sequence[AuditRow]) -> tuple[AuditHead, list[AuditRow]]:
    """These rows with their numbers and hashes, behind the head that was ``found``; and the head after them.

    Raises ``Damaged`` when there is none: what is not in the chain is not done either.
    """
    if not found:
        raise Damaged("the row that says where the audit log's chain ends is missing")
    head, chained = found[0], []
    number, last = head.number, head.hash
    for row in rows:
        number += 1
        placed = msgspec.structs.replace(row, id=number)
        last = placed.hash = row_hash(last, placed)
        chained.append(placed)
    return msgspec.structs.replace(head, number=number, hash=last), chained


class Break(msgspec.Struct, frozen=True):
    """The first row that is not as it was written, by its number, and what is wrong with it."""

    number: int
    problem: str


class Walk:
    """Goes along a chain, page by page, and stops where it is broken.

    ``number`` and ``hash`` are those of the last row found good (``number`` is where the next page begins),
    ``unchained`` counts the rows from before the chain; the three are all that a walk needs to go on.
    ``broken`` is the first break. ``noted`` is a row's number and its hash as somebody wrote it down.
    """

    def __init__(
        self,
        number: int = _BEFORE_ALL,
        last: bytes = AuditHead().hash,
        unchained: int = 0,
        noted: tuple[int, bytes] | None = None,
    ) -> None:
        self.number, self.hash, self.unchained = number, last, unchained
        self.broken: Break | None = None
        self._noted = noted

    def follow(self, rows: Sequence[AuditRow], head: AuditHead | None, *, last: bool) -> None:
        """Go over the rows after ``number``, read in one snapshot with ``head``; ``last``: these are all."""
        if head is None:
            self.broken = Break(max(self.number, 0), "the row that says where the chain ends is missing")
            return
        for row in rows:
            self.broken = self._step(row, head)
            if self.broken is not None:
                return
        if last:
            self.broken = self._end(head)

    def _step(self, row: AuditRow, head: AuditHead) -> Break | None:
        if row.id < head.first:
            self.number, self.unchained = row.id, self.unchained + 1
            return None if row.hash is None else Break(row.id, "it stands before the chain with a hash")
        expected = self._next(head)
        if expected == head.first and self.unchained != head.unchained:
            return self._miscounted(head)
        if row.id != expected:
            return Break(expected, f"it is missing; the row after it is {row.id}")
        if row.id > head.number:
            return Break(row.id, f"it was not written by Redrive: the chain ends at row {head.number}")
        if row.hash is None or row.hash != row_hash(self.hash, row):
            return Break(row.id, "its hash is not that of its content behind the row before")
        if self._noted is not None and self._noted[0] == row.id and self._noted[1] != row.hash:
            return Break(row.id, "its hash is not the noted one: the chain was made anew")
        self.number, self.hash = row.id, row.hash
        return None

    def _end(self, head: AuditHead) -> Break | None:
        expected = self._next(head)
        if expected == head.first and self.unchained != head.unchained:
            return self._miscounted(head)
        if expected <= head.number:
            return Break(expected, f"it is missing, with all after it: the chain ended at row {head.number}")
        if self.hash != head.hash:
            return Break(head.number, "its hash is not the one that the end of the chain has")
        if self._noted is not None and self._noted[0] > head.number:
            return Break(self._noted[0], f"it was noted, and is missing: the chain ends at row {head.number}")
        return None

    def _next(self, head: AuditHead) -> int:
        return max(self.number + 1, head.first)

    def _miscounted(self, head: AuditHead) -> Break:
        told = f"{self.unchained} rows stand before it, {head.unchained} did when the chain began"
        return Break(head.first, told)
