"""``redrive demo`` as a program: its answer as data, what it refuses, and that it leaves nothing behind."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from tests.cli.program import SECONDS, Program


@pytest.fixture
def demo(alone: Program, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Program:
    """The program with a folder for temporary files of its own."""
    (tmp_path / "temporary").mkdir()
    monkeypatch.setenv("TMPDIR", str(tmp_path / "temporary"))
    return alone


def _left(program: Program) -> list[Path]:
    return list((program.folder / "temporary").iterdir())


@pytest.mark.slow  # tests/arena plays one in every run
def test_a_night_holds_and_leaves_nothing(demo: Program) -> None:
    """Exit code 0, every claim on stdout as one JSON document, no folder left."""
    done = demo("demo", "--count", "400", "--seed", "5", "--json")
    assert done.code == 0, done.err
    assert (done.json["holds"], done.json["waited_in_vain"]) == (True, [])
    assert len(done.json["claims"]) > 10
    assert all(claim["holds"] for claim in done.json["claims"])
    assert _left(demo) == []


@pytest.mark.slow
def test_without_receipts_it_says_so_with_its_exit_code(demo: Program) -> None:
    """The control: exit code 1, and which claims fail."""
    done = demo("demo", "--count", "400", "--seed", "5", "--unsafe", "no-receipts", "--json")
    failed = {claim["claim"] for claim in done.json["claims"] if not claim["holds"]}
    assert (done.code, done.json["holds"]) == (1, False)
    assert "effects per job key" in failed


@pytest.mark.slow
def test_what_a_kept_night_prints_can_be_copied(demo: Program) -> None:
    """The server answers, the ledger is read; stopped and removed as it says, nothing is left."""
    done = demo("demo", "--count", "400", "--seed", "5", "--keep")
    assert done.code == 0, done.err
    lines = done.out[done.out.index("The server still runs") :].splitlines()
    stop = next(line for line in lines if line.startswith("To stop it: kill "))
    server = psutil.Process(int(stop.rpartition(" ")[2]))
    try:
        looking = [line for line in lines if line.startswith("  ")]
        assert len(looking) == 3
        seen = _in_a_shell(demo, *looking)
        assert "settlement.dlq" in seen
        assert "completed" in seen
        _in_a_shell(demo, stop.partition(": ")[2])
        server.wait(SECONDS)
    finally:
        if server.is_running():
            server.kill()
    _in_a_shell(demo, next(line for line in lines if line.startswith("To remove")).partition(": ")[2])
    assert _left(demo) == []


def _in_a_shell(program: Program, *lines: str) -> str:
    script = "\n".join([f'set -e; redrive() {{ {sys.executable} -m redrive "$@"; }}', *lines])
    done = subprocess.run(
        ["bash", "-c", script],
        env=program.environment(),
        cwd=program.folder,
        capture_output=True,
        text=True,
        timeout=4 * SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_terminated_in_the_middle_it_stops_what_it_started(demo: Program) -> None:
    """SIGTERM: exit code 130, none of its processes lives, no folder is left."""
    with demo.start("demo", "--count", "400", "--json") as night:
        night.until("stderr", "is published twice")
        family = psutil.Process(night.process.pid).children(recursive=True)
        children = [child for child in family if child.cmdline()[0] == sys.executable]
        assert len(children) >= 4
        done = night.stop(signal.SIGTERM)
    assert done.code == 130, done.err
    assert not [child for child in children if child.is_running() and child.status() != psutil.STATUS_ZOMBIE]
    assert _left(demo) == []


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["--count", "5"], 2, "payments must be 100 to 1000000, got 5"),
        (["--storage", "mysql://x"], 2, "SQLite or on postgresql"),
        (["--payments", "ours.csv"], 2, "--payments and --provider go together"),
        (["--payments", "ours.csv", "--provider", "theirs.csv"], 2, "No such file"),
        (["--unsafe", "everything"], 2, "no-receipts"),
    ],
)
def test_what_no_night_can_be_made_of(demo: Program, words: list[str], code: int, said: str) -> None:
    """The exit code, one sentence, no traceback, nothing left."""
    done = demo.inside("demo", *words)
    assert done.code == code, done.err
    assert said in done.err
    assert (done.out, "Traceback" in done.err) == ("", False)
    assert _left(demo) == []


def test_a_database_that_is_not_there(demo: Program) -> None:
    """Exit code 3, and the URL without its password."""
    done = demo("demo", "--storage", "postgresql://u:hidden-word@127.0.0.1:1/x", "--json")
    assert (done.code, done.error["code"]) == (3, "STORAGE")
    assert "postgresql://u:***@127.0.0.1:1/x" in done.err
    assert "hidden-word" not in done.err
