"""The short form of the power cut of a real disk, and that nothing stays mounted."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.proof.cut_disk import CutDisk, clear_away, cut_disk_missing
from tests.proof.places import kinds
from tests.proof.power_cut_disk import PROOFS, power_cuts
from tests.system.servers import ROOT, SECONDS, environment

CUTS = 4


@pytest.fixture(autouse=True)
def _able() -> None:
    """Skips with the reason where no such disk can be made."""
    if reason := cut_disk_missing():
        pytest.skip(reason)


@pytest.mark.timeout(120)
@pytest.mark.parametrize("kind", kinds())
def test_a_cut_of_a_real_disk_loses_nothing_that_was_answered(kind: str) -> None:
    """The store is intact and holds what was acknowledged, and a server goes on over it."""
    found = power_cuts(0, kind=kind, cuts=CUTS)
    assert found.violations == []
    assert found.counts["cuts"] == CUTS
    assert found.counts["acknowledged publishes looked for"] > CUTS
    assert found.counts["acked messages looked for"] > CUTS


@pytest.mark.timeout(120)
@pytest.mark.parametrize("setting", PROOFS[0].controls)
def test_without_a_flush_before_the_answer_something_is_lost(setting: str) -> None:
    """The control: each setting that answers before the disk has it loses publishes that were answered."""
    violations = PROOFS[0].controls[setting](0).violations
    assert [what for what in violations if "acknowledged publishes" in what]


def test_a_cut_leaves_what_was_flushed_only() -> None:
    """What the file system has in memory is not in the image, what was flushed is, whatever came later."""
    with CutDisk() as disk:
        (disk.folder / "flushed").write_text("before")
        disk.flush()
        with (disk.folder / "flushed").open("a") as flushed:
            flushed.write(" later")
        (disk.folder / "fresh").write_text("in memory")
        image = disk.cut()
        disk.flush()
        with disk.after(image) as folder:
            there = {path.name: path.read_text() for path in folder.glob("f*")}
    assert there == {"flushed": "before"}


def test_what_a_killed_run_left_mounted_is_cleared_away() -> None:
    """The lock of a killed process is gone; a living one's disk is not touched."""
    program = (
        "import sys\nfrom tests.proof.cut_disk import CutDisk\n"
        "with CutDisk() as disk, disk.after(disk.cut()) as there:\n"
        "    print(there, flush=True)\n    sys.stdin.read()\n"
    )
    command = [sys.executable, "-c", program]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, cwd=ROOT, env=environment(), stdin=pipe, stdout=pipe) as other:
        assert other.stdout is not None
        left = Path(other.stdout.readline().decode().strip())
        with CutDisk() as mine:
            assert left.is_mount()
            other.kill()
            other.wait(SECONDS)
            clear_away()
            assert not left.parent.exists()
            assert mine.folder.is_mount()
    assert str(left.parent) not in Path("/proc/mounts").read_text()
