"""The proofs' fault points: real signals in real processes, and nothing at all outside tests."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from redrive.worker import faults

CODE = "from redrive.worker import faults; faults.arm(); faults.point('before_ack', 'k1'); print('went on')"


def run(directory: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run :data:`CODE` under ``variables``."""
    environment = {**os.environ, "REDRIVE_SIGNAL_DIR": str(directory), **variables}
    return subprocess.run(
        [sys.executable, "-c", CODE], env=environment, capture_output=True, text=True, timeout=30, check=False
    )


def test_a_kill_point_kills_once(tmp_path: Path) -> None:
    """The process gets a real SIGKILL at the point, and only the first time."""
    asked = {"REDRIVE_TESTING": "1", "REDRIVE_KILL_AT": "before_ack:k1"}
    assert run(tmp_path, **asked).returncode == -9
    assert run(tmp_path, **asked).stdout == "went on\n"


@pytest.mark.parametrize("wanted", ["before_ack:k2", "in_nack", "before_ack:"])
def test_only_the_named_point_and_job_are_meant(tmp_path: Path, wanted: str) -> None:
    """Another job or point passes; a point without a job key means every job."""
    found = run(tmp_path, REDRIVE_TESTING="1", REDRIVE_KILL_AT=wanted)
    assert found.returncode == (-9 if wanted == "before_ack:" else 0)


def test_nothing_happens_outside_tests(tmp_path: Path) -> None:
    """Without REDRIVE_TESTING=1 the variables are dead, the unsafe ones too."""
    assert run(tmp_path, REDRIVE_TESTING="", REDRIVE_KILL_AT="before_ack").stdout == "went on\n"
    assert not faults.unsafe("ack-first")


def test_a_pause_waits_for_its_go(tmp_path: Path) -> None:
    """The process says where it stands by a file, and goes on when the other file is there."""
    (tmp_path / "go").touch()
    found = run(tmp_path, REDRIVE_TESTING="1", REDRIVE_PAUSE_AT="before_ack")
    assert found.stdout == "went on\n"
    assert len(list(tmp_path.glob("before_ack-*"))) == 1


def test_a_safety_is_off_only_by_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    """REDRIVE_UNSAFE names one safety."""
    monkeypatch.setenv("REDRIVE_TESTING", "1")
    monkeypatch.setenv("REDRIVE_UNSAFE", "no-receipts")
    faults.arm()
    assert faults.unsafe("no-receipts")
    assert not faults.unsafe("ack-first")
