"""Compares two files of any size: both are dealt into parts by reference, and one part at a time is compared.

A reference's payments and entries always fall into the same part, so the findings do not depend on the number
of parts; only the memory does.
"""

from __future__ import annotations

import contextlib
import tempfile
import zlib
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import IO, Final, TypeVar

import msgspec

from redrive.arena.files.readers import read_entries, read_payments
from redrive.arena.reconcile.compare import Comparison, compare
from redrive.arena.records import Entry, Payment

BYTES_PER_PART: Final = 4 * 1024 * 1024
PARTS_MAX: Final = 256  # each part has two files open while dealing
SPILL_ROWS: Final = 50


_Row = TypeVar("_Row", Payment, Entry)
_LENGTH_BYTES: Final = 4


def compare_files(ours: Path, theirs: Path, *, parts: int | None = None) -> Iterator[Comparison]:
    """One :class:`Comparison` a part; ``parts`` defaults to what keeps a part near 4 MiB of file.

    Raises :class:`~redrive.arena.files.FileProblem` before the first answer when a file is malformed.
    """
    if parts is None:
        size = sum(path.stat().st_size for path in (ours, theirs) if path.exists())
        parts = min(PARTS_MAX, 1 + size // BYTES_PER_PART)
    with tempfile.TemporaryDirectory(prefix="redrive-compare-") as name:
        folder = Path(name)
        _deal(read_payments(ours), lambda row: row.provider_ref or row.payment_id, folder / "ours", parts)
        _deal(read_entries(theirs), lambda row: row.ref, folder / "theirs", parts)
        for part in range(parts):
            yield compare(_dealt(folder / f"ours.{part}", Payment), _dealt(folder / f"theirs.{part}", Entry))


def _deal(rows: Iterable[_Row], of: Callable[[_Row], str], side: Path, parts: int) -> None:
    hands: list[list[_Row]] = [[] for _ in range(parts)]
    with contextlib.ExitStack() as open_files:
        files = [open_files.enter_context(Path(f"{side}.{part}").open("wb")) for part in range(parts)]
        for row in rows:
            part = zlib.crc32(of(row).encode()) % parts
            hands[part].append(row)
            if len(hands[part]) >= SPILL_ROWS:
                _spill(hands[part], files[part])
                hands[part].clear()
        for part, hand in enumerate(hands):
            _spill(hand, files[part])


def _spill(rows: list[_Row], file: IO[bytes]) -> None:
    body = msgspec.msgpack.encode(rows)
    file.write(len(body).to_bytes(_LENGTH_BYTES, "big") + body)


def _dealt(path: Path, kind: type[_Row]) -> Iterator[_Row]:
    decoder = msgspec.msgpack.Decoder(list[kind])  # type: ignore[valid-type]
    with path.open("rb") as file:
        while length := file.read(_LENGTH_BYTES):
            yield from decoder.decode(file.read(int.from_bytes(length, "big")))
