"""The program as a whole: light, helpful, and honest with its exit codes."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
import typer.main

from redrive import cli
from redrive.cli import failures
from redrive.cli.app import app, run
from redrive.cli.origins import gather
from redrive.cli.session import FLAGS
from redrive.cli.settings import variables
from redrive.cli.text import one_line, plain
from tests.cli.program import SECONDS, Program, Running
from tests.database import free_port

HEAVY = (
    "apsw",
    "uvicorn",
    "starlette",
    "psycopg",
    "pymysql",
    "sqlalchemy",
    "urllib3",
    "rich.table",
    "jinja2",
)
HEAVY_ROOMS = (
    "redrive.service",
    "redrive.api",
    "redrive.worker",
    "redrive.ledger",
    "redrive.storage",
    "redrive.arena",
)


def _commands(command: Any, words: tuple[str, ...] = ()) -> dict[tuple[str, ...], Any]:
    if not hasattr(command, "commands"):
        return {words: command}
    found = {}
    for name, one in command.commands.items():
        found |= _commands(one, (*words, name))
    return found


COMMANDS = _commands(typer.main.get_command(app))
NO_SETTINGS = {(("demo",), "storage")}  # a night's own, never the one that is configured


def test_help_loads_nothing_heavy() -> None:
    """No driver, no server and no room but the command line's own is imported before it is needed."""
    code = "import sys, redrive.cli.app; print(' '.join(sys.modules))"
    loaded = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=30
    )
    assert set(loaded.stdout.split()) & {*HEAVY, *HEAVY_ROOMS} == set()


@pytest.mark.parametrize("words", sorted(COMMANDS), ids=" ".join)
def test_every_command_explains_itself(words: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    """What it does, each option with its meaning, and the exit codes."""
    assert run([*words, "--help"]) == 0
    assert "Exit codes: 0 done; 1 the answer is no; 2 wrong usage" in capsys.readouterr().out.replace(
        "\n  ", " "
    )
    for parameter in COMMANDS[words].params:
        assert parameter.help, f"{words}: {parameter.name} has no help"


@pytest.mark.parametrize("words", sorted(COMMANDS), ids=" ".join)
def test_every_option_of_a_setting_names_its_variable(words: tuple[str, ...]) -> None:
    """In its line of the help; the ``_FILE`` form where there is one. What is no setting names none."""
    for parameter in COMMANDS[words].params:
        wanted = set(variables(parameter.name)) if parameter.name in FLAGS else set()
        if (words, parameter.name) in NO_SETTINGS:
            wanted = set()
        if parameter.name == "api_key_file":
            wanted = {"REDRIVE_API_KEY", "REDRIVE_API_KEY_FILE"}
        if parameter.name == "config":
            wanted = {"REDRIVE_CONFIG"}
        assert set(re.findall(r"REDRIVE_[A-Z_]+", parameter.help)) == wanted, parameter.name


def test_each_variable_that_the_help_names_is_read() -> None:
    """The control of the names: set to nonsense or to no file, each is found wrong, or where its value is."""
    for name in FLAGS:
        for variable in variables(name):
            found = gather({}, {variable: "no-such-thing"})
            assert found.origins[name] == f"environment {variable}" or [
                problem for problem in found.problems if variable in problem.where
            ], variable


def test_the_promised_commands_are_there() -> None:
    """The names that the documents use."""
    promised = """serve, demo, publish, consume, queue create, queue list, queue stats, queue pause,
        queue resume, queue purge, queue delete, dlq list, dlq show, dlq groups, dlq redrive, worker run,
        plan create, plan show, plan list, plan items, plan start, plan pause, plan resume, plan abort,
        plan resolve, plan watch, plan estimate, message show, job show,
        key create, key list, key revoke, key rotate, db migrate, db check, db backup, config show,
        config check, ledger install, ledger status, ledger relay"""
    assert {tuple(words.split()) for words in promised.split(",")} <= set(COMMANDS)


def test_completion_knows_the_commands(alone: Program) -> None:
    """As a shell asks for it; and the script for the shell is printed."""
    asked = {"_REDRIVE_COMPLETE": "complete_bash", "COMP_WORDS": "redrive queue p", "COMP_CWORD": "2"}
    assert sorted(_completed(alone, asked).split()) == ["pause", "purge"]
    assert "_redrive_completion" in _completed(alone, {"_REDRIVE_COMPLETE": "source_bash"})


def _completed(program: Program, environment: dict[str, str]) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "redrive"],
        env=program.environment(environment),
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    return done.stdout


def test_a_misspelt_word_is_guessed(alone: Program) -> None:
    """Exit code 2."""
    done = alone("queue", "lst")
    assert (done.code, "list" in done.err) == (2, True)


def test_no_server_is_exit_code_3(alone: Program) -> None:
    """The address and what to do, as text and as JSON."""
    url = f"http://127.0.0.1:{free_port()}"
    done = alone("queue", "list", "--json", url=url)
    assert (done.code, done.out, done.error["code"]) == (3, "", "UNREACHABLE")
    assert (done.error["exit_code"], url in done.error["message"]) == (3, True)
    assert "redrive serve" in alone("queue", "list", url=url).err


class _Stranger(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_error(404)

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


def test_another_server_is_told_from_redrive(alone: Program) -> None:
    """Exit code 3, not a bug of ours."""
    with HTTPServer(("127.0.0.1", 0), _Stranger) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        done = alone("queue", "list", "--timeout", "0.5", url=f"http://127.0.0.1:{server.server_port}")
        server.shutdown()
        thread.join(10)
    assert (done.code, "Something else than Redrive" in done.err) == (3, True)


def test_https_to_a_plain_server_is_exit_code_3(redrive: Program, url: str) -> None:
    """What is wrong with the address is said; trying again is not."""
    done = redrive("queue", "list", url=url.replace("http://", "https://"))
    assert (done.code, "trying again" in done.err) == (3, False)
    assert "is it http:// instead of https://?" in done.err


def test_a_wrong_key_is_exit_code_3_and_not_repeated(redrive: Program) -> None:
    """What the person can do is said, the key is not."""
    done = redrive("queue", "list", api_key="hidden-word-hidden-word")
    assert (done.code, "REDRIVE_API_KEY" in done.err, "hidden-word" in done.err) == (3, True, False)


def test_interrupted_while_it_waits(redrive: Program) -> None:
    """Ctrl-C is exit code 130 and no traceback. The other side takes the request and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        silent.settimeout(SECONDS)
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        with redrive.start("consume", "waiting", "--wait", "20", "--debug", url=url) as waiting:
            silent.accept()[0].close()  # whether somebody listens
            connection, _ = silent.accept()
            with connection:
                connection.settimeout(SECONDS)
                assert b"/v1/queue/" in connection.recv(65_536)
                done = waiting.stop(signal.SIGINT)
    assert (done.code, done.err) == (130, "")


_SCRIPT = "import sys; from redrive.cli import main; sys.exit(main())"  # as the installed one
_UNGUARDED = "import sys; from redrive.cli.app import run; sys.exit(run())"
_SLOW_IMPORT = """
import select, sys
print("typer is being imported", flush=True)
select.select([], [], [], 30)
"""


@pytest.mark.parametrize(
    ("python", "ended"),
    [
        (("-m", "redrive"), (130, "")),
        (("-c", _SCRIPT), (130, "")),
        (("-c", _UNGUARDED), (-signal.SIGINT, "Traceback")),
    ],
    ids=["module", "script", "control"],
)
def test_interrupted_while_it_starts(
    alone: Program, python: tuple[str, str], ended: tuple[int, str], tmp_path: Path
) -> None:
    """Ctrl-C in the middle of an import is exit code 130 and no traceback either."""
    stubs = tmp_path / "stubs"
    stubs.mkdir()
    (stubs / "typer.py").write_text(_SLOW_IMPORT)
    path = os.pathsep.join(filter(None, [str(stubs), os.environ.get("PYTHONPATH")]))
    environment = alone.environment({"PYTHONPATH": path})
    with Running(["version"], tmp_path, environment, python) as starting:
        starting.until("stdout", "typer is being imported")
        done = starting.stop(signal.SIGINT)
    assert (done.code, done.err[: len("Traceback")]) == ended, done.err


def test_nothing_that_takes_time_is_imported_unguarded() -> None:
    """What the installed script imports before ``main`` can hear an interrupt: the package, and no more."""
    code = "import sys; had = set(sys.modules); import redrive.cli; print(*sorted(set(sys.modules) - had))"
    loaded = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=30
    )
    assert loaded.stdout.split() == ["__future__", "redrive", "redrive.cli"]


def test_a_reader_that_goes_away_is_no_error(redrive: Program) -> None:
    """As with `| head -1`: exit code 141, nothing on stderr."""
    redrive("publish", "pipe", "--lines", "-", stdin='"' + "x" * 5_000 + '"\n' + "1\n" * 50)
    command = f"{sys.executable} -m redrive message list pipe --json | true; echo ${{PIPESTATUS[0]}}"
    done = subprocess.run(
        ["bash", "-c", command],
        env=redrive.environment(),
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    assert (done.stdout.strip(), done.stderr) == ("141", "")


def test_a_bug_is_exit_code_70(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """One sentence that says so, and the traceback with --debug only."""

    def broken(*_: Any, **__: Any) -> None:
        raise ZeroDivisionError("oops")

    monkeypatch.setattr("redrive.cli.session.Session.client", property(broken))
    assert run(["queue", "list"]) == failures.BUG
    said = capsys.readouterr().err
    assert ("ZeroDivisionError: oops" in said, "a bug in Redrive" in said, "Traceback" in said) == (
        True,
        True,
        False,
    )
    assert run(["queue", "list", "--debug"]) == failures.BUG
    assert "Traceback" in capsys.readouterr().err


def test_without_its_packages_it_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The light SDK has the program but not its packages."""
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert cli.main(["--help"]) == 2
    assert 'pip install "redrive[cli]"' in capsys.readouterr().err


def test_text_from_elsewhere_cannot_move_the_cursor(redrive: Program) -> None:
    """Escapes, and characters that reorder text, are written out."""
    assert plain("a\x1b[2Jb\u202ec\x9b\n") == "a\\x1b[2Jb\\u{202e}c\\x9b\n"
    assert one_line("x" * 100, 10) == "x" * 9 + "…"
    redrive("publish", "escape", "1", "--job-key", "red\x1b[31m")
    shown = redrive("message", "list", "escape").out
    assert ("\x1b" in shown, "red\\x1b[31m" in shown) == (False, True)


def test_the_version(alone: Program, tmp_path: Path) -> None:
    """As a command, as a flag, as JSON."""
    assert alone("--version").out == alone("version").out
    assert alone("version", "--json").json["redrive"] in alone("version").out
