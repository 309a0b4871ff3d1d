"""One SQLite file belongs to one server: a second one is refused, and starts once the first is gone."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

import pytest

from tests.api.wire import Caller
from tests.cli.program import Program
from tests.system.servers import KEY

OUT_OF_REACH = 3


@pytest.fixture
def program(tmp_path: Path) -> Program:
    """The program with an admin key, in a fresh folder."""
    return Program(tmp_path, {"api_key": KEY})


def serve(path: Path | str) -> list[str]:
    """The command for the file at ``path``, on a free port."""
    return ["serve", "--storage", f"sqlite:///{path}", "--port", "0", "--json"]


def refusal(program: Program, path: Path) -> tuple[int, str]:
    """The exit code and words of a server that must not come to serve."""
    with program.start(*serve(path)) as second:
        assert second.process.stdout is not None
        assert second.process.stderr is not None
        assert second.process.stdout.readline() == b"", "two servers serve one file"
        return second.process.wait(30), second.process.stderr.read().decode()


@pytest.mark.parametrize("how", ["by its name", "by another path", "through a link"])
def test_a_second_server_is_refused_until_the_first_is_gone(program: Program, how: str) -> None:
    """Exit code 3, file and owner named; the first works on; after its kill -9 the next one starts."""
    path = program.folder / "queue.db"
    (program.folder / "elsewhere").mkdir()
    link = program.folder / "elsewhere" / "linked.db"
    link.symlink_to(path)
    names = {
        "by its name": path,
        "by another path": program.folder / "elsewhere" / ".." / "queue.db",
        "through a link": link,
    }
    with program.start(*serve(path)) as first:
        caller = Caller(json.loads(first.until("stdout", '"ready"'))["url"], KEY)
        assert caller.post("/v1/queue/publish", {"queue": "q", "payload": 1}).status == 200
        code, said = refusal(program, names[how])
        assert code == OUT_OF_REACH
        assert "queue.db" in said
        assert str(first.process.pid) in said
        assert "Traceback" not in said
        assert caller.post("/v1/queue/publish", {"queue": "q", "payload": 2}).status == 200
        os.kill(first.process.pid, signal.SIGKILL)
        first.process.wait(30)
    with program.start(*serve(names[how])) as second:
        caller = Caller(json.loads(second.until("stdout", '"ready"'))["url"], KEY)
        assert caller.get("/v1/queue/stats/q").data["ready"] == 2
        assert second.stop().code == 0


def test_control_a_file_of_its_own_is_served_beside(program: Program) -> None:
    """The control: what is refused is the file, not a second server."""
    with program.start(*serve(program.folder / "one.db")) as first:
        first.until("stdout", '"ready"')
        with program.start(*serve(program.folder / "two.db")) as second:
            second.until("stdout", '"ready"')
            assert second.stop().code == 0
        assert first.stop().code == 0
