"""A real disk whose power is cut by a copy: an ext4 image on a reflinking XFS image, both on loop devices.

The ext4's device writes to its image without a cache in between, so an image holds exactly what reached the
device. A reflink copy of it is taken between two writes, and is what a cut at that moment leaves: all that
was flushed, and nothing that the file system had in memory only. It is kinder than a device that loses what
was written and not flushed: :mod:`tests.proof.power_cut` has that one.

A disk holds a lock on its folder. What a killed run left mounted has none, and is cleared away by the next.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Self

from tests.database import wait_for
from tests.proof.machine import Unable, do, program, ran
from tests.system.servers import SECONDS

PREFIX = "redrive-cut-"
XFS_BYTES, EXT4_BYTES = 2 << 30, 512 << 20  # sparse; copies share what they do not write
MEMORY = "/dev/shm"
_FICLONE = 0x40049409


class CutDisk:
    """The disk: ``folder`` is on it. Copies are made while it is in use, and looked into afterwards."""

    def __enter__(self) -> Self:
        clear_away()
        self._place, self._claim = _claimed()
        self._copies = 0
        try:
            self._make()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        try:
            _remove(self._place)
        finally:
            os.close(self._claim)

    def _make(self) -> None:
        xfs, self._images = self._place / "xfs.img", self._place / "images"
        with xfs.open("wb") as image:
            image.truncate(XFS_BYTES)
        do("mkfs.xfs", "-q", "-m", "reflink=1", str(xfs))
        _mount(xfs, self._images, "xfs")
        self._image = self._images / "disk.img"
        with self._image.open("wb") as image:
            image.truncate(EXT4_BYTES)
        do("mkfs.ext4", "-q", "-F", str(self._image))
        self.folder = self._place / "disk"
        _mount(self._image, self.folder, "ext4")

    def flush(self) -> None:
        """All that was written until now survives every cut."""
        do("sync", "-f", str(self.folder))

    def cut(self) -> Path:
        """The image as a cut at this moment leaves it."""
        self._copies += 1
        copy = self._images / f"cut-{self._copies}.img"
        with self._image.open("rb") as source, copy.open("wb") as target:
            fcntl.ioctl(target, _FICLONE, source.fileno())
        return copy

    @contextlib.contextmanager
    def after(self, copy: Path) -> Iterator[Path]:
        """The folder as it is found after that cut: mounting replays the file system's journal."""
        there = self._place / copy.stem
        _mount(copy, there, "ext4")
        try:
            yield there
        finally:
            _unmount(there)
            copy.unlink()


@cache
def cut_disk_missing() -> str:
    """Why no such disk can be made here; empty when one can."""
    if os.geteuid() != 0:
        return "a disk to be cut: only root may mount a file system"
    if program("mkfs.xfs") is None:
        return "a disk to be cut: mkfs.xfs is not installed (Debian: apt-get install xfsprogs)"
    try:
        with CutDisk() as disk:
            disk.cut()
    except (Unable, OSError) as error:
        return f"a disk to be cut: {error}"
    return ""


def clear_away() -> None:
    """Unmount and remove what a killed run left."""
    for place in _places():
        with contextlib.suppress(OSError):
            claim = os.open(place, os.O_RDONLY)
            try:
                fcntl.flock(claim, fcntl.LOCK_EX | fcntl.LOCK_NB)  # refused while its run lives
                _remove(place)
            finally:
                os.close(claim)


def _places() -> list[Path]:
    return [place for above in {MEMORY, tempfile.gettempdir()} for place in Path(above).glob(f"{PREFIX}*")]


def _claimed() -> tuple[Path, int]:
    """A new folder, and the lock on it, which ends with this process."""
    while True:
        place = Path(tempfile.mkdtemp(prefix=PREFIX, dir=MEMORY if os.access(MEMORY, os.W_OK) else None))
        claim = os.open(place, os.O_RDONLY)
        fcntl.flock(claim, fcntl.LOCK_EX)
        if place.exists():  # else another run took it for a leftover meanwhile
            place.chmod(0o755)  # a database server is another user
            return place, claim
        os.close(claim)


def _remove(place: Path) -> None:
    for there in sorted(_mounts(place), key=lambda there: len(there.parts), reverse=True):
        if there.name != "images":
            _unmount(there)
    for image in place.glob("images/*.img"):
        _detach(image)
    if place / "images" in _mounts(place):
        _unmount(place / "images")
    _detach(place / "xfs.img")
    shutil.rmtree(place)


def _mounts(place: Path) -> list[Path]:
    lines = Path("/proc/self/mounts").read_text().splitlines()
    return [there for line in lines if (there := Path(line.split()[1])).is_relative_to(place)]


def _mount(image: Path, there: Path, kind: str) -> None:
    """Direct I/O where the folder below has it; the device goes with its mount."""
    there.mkdir()
    device = do("losetup", "--find", "--show", "--direct-io=on", str(image))
    try:
        do("mount", "-t", kind, device, str(there))
    finally:
        do("losetup", "--detach", device)  # the kernel does it once nobody uses it


def _unmount(there: Path) -> None:
    wait_for(lambda: ran("umount", str(there)).returncode == 0, SECONDS, f"{there} to be unused")
    there.rmdir()


def _detach(image: Path) -> None:
    for line in ran("losetup", "--associated", str(image)).stdout.splitlines():
        ran("losetup", "--detach", line.partition(":")[0])
