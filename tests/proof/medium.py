"""What a disk may hold after a power cut, told from the calls that were made on it.

A file's bytes are durable once a sync returned; its name, once its folder was synced. Everything else may be
there or not, sector by sector, in any of the versions that were written since.
"""

from __future__ import annotations

import dataclasses
import random

from tests.proof.vfs import Call

SECTOR = 512
Image = dict[str, bytes]  # what a folder holds: contents by name


@dataclasses.dataclass
class _Content:
    """One file's bytes: ``durable`` as of the last sync, ``now`` as the running process sees them."""

    durable: bytes = b""
    now: bytearray = dataclasses.field(default_factory=bytearray)
    sizes: list[int] = dataclasses.field(default_factory=list)  # since the last sync, newest last
    sectors: dict[int, list[bytes]] = dataclasses.field(default_factory=dict)  # the same, by sector number

    def write(self, offset: int, data: bytes) -> None:
        end = offset + len(data)
        self.now.extend(bytes(max(0, end - len(self.now))))
        self.now[offset:end] = data
        if len(self.now) != (self.sizes[-1] if self.sizes else len(self.durable)):
            self.sizes.append(len(self.now))
        for number in range(offset // SECTOR, (end - 1) // SECTOR + 1):
            version = bytes(self.now[number * SECTOR : (number + 1) * SECTOR])
            self.sectors.setdefault(number, []).append(version)

    def truncate(self, size: int) -> None:
        del self.now[size:]
        self.now.extend(bytes(size - len(self.now)))
        self.sizes.append(size)

    def sync(self) -> None:
        """Write what was not written yet, and only that: what a failed sync took for written is not again."""
        size = self.sizes[-1] if self.sizes else len(self.durable)
        self._settle(size, [(number, versions[-1]) for number, versions in self.sectors.items()])

    def sync_fails(self, luck: random.Random) -> None:
        self.durable = self.cut(luck)
        self.sizes.clear()
        self.sectors.clear()

    def _settle(self, size: int, sectors: list[tuple[int, bytes]]) -> None:
        left = bytearray(self.durable[:size])
        left.extend(bytes(size - len(left)))
        for number, data in sectors:
            at = number * SECTOR
            left[at : at + SECTOR] = data[: max(0, size - at)]
        self.durable = bytes(left)
        self.sizes.clear()
        self.sectors.clear()

    def cut(self, luck: random.Random) -> bytes:
        """The bytes after a power cut: each unsynced sector, and the size, made it to the disk or not."""
        if not self.sizes and not self.sectors:
            return self.durable
        size = self._size(luck)
        left = bytearray(self.durable[:size])
        if size > len(left):  # blocks that were given to the file and not written hold nothing, or anything
            grown = size - len(left)
            left.extend(luck.randbytes(grown) if luck.random() < 0.25 else bytes(grown))
        share = luck.choice((0.0, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 1.0))
        for number, versions in self.sectors.items():
            if luck.random() < share:
                data = versions[-1] if luck.random() < 0.75 else luck.choice(versions)
                at = number * SECTOR
                left[at : at + SECTOR] = data[: max(0, size - at)]
        del left[size:]
        return bytes(left)

    def _size(self, luck: random.Random) -> int:
        known = [len(self.durable), *self.sizes]
        drawn = luck.random()
        if drawn < 0.5:
            return known[-1]
        if drawn < 0.75:
            return luck.choice(known)
        return min(max(known), -(-luck.randint(min(known), max(known)) // SECTOR) * SECTOR)


class Medium:
    """A folder on a disk. Give every call to :meth:`happen`; :meth:`cut` is what a power cut would leave.

    ``image`` is what it holds, durably, at the beginning.
    """

    def __init__(self, image: Image | None = None) -> None:
        self._names = {name: _Content(data, bytearray(data)) for name, data in (image or {}).items()}
        self._durable_names = dict(self._names)

    def happen(self, call: Call) -> None:
        """Take in a call that was made."""
        if call.kind == "open":
            self._names.setdefault(call.file, _Content())
        elif call.kind == "delete":
            self._names.pop(call.file, None)
        elif call.kind == "write":
            self._names[call.file].write(call.offset, call.data)
        elif call.kind == "truncate":
            self._names[call.file].truncate(call.offset)
        elif call.kind == "sync":
            self._names[call.file].sync()
        if call.names:
            self._durable_names = dict(self._names)

    def sync_fails(self, file: str, luck: random.Random) -> None:
        """A sync that failed: what it could not write is taken for written from then on."""
        self._names[file].sync_fails(luck)

    def seen(self) -> Image:
        """What the next process finds when this one dies, and the power stays on."""
        return {name: bytes(content.now) for name, content in self._names.items()}

    def cut(self, luck: random.Random) -> Image:
        """What a power cut at this instant would leave."""
        left: Image = {}
        for name in {**self._durable_names, **self._names}:
            old, new = self._durable_names.get(name), self._names.get(name)
            content = old if old is new or luck.random() < 0.5 else new
            if content is not None:
                left[name] = content.cut(luck)
        return left
