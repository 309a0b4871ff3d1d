"""Runs ``redrive`` as a program: what it answers, and what a person at a terminal would see."""

from __future__ import annotations

import contextlib
import io
import json
import os
import pty
import select
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, Self
from unittest import mock

from redrive.cli import main

SECONDS = 30.0
KEY = "command-line-key-0123456789"
# the program is stopped when the test process ends in whatever way: its guard's input ends then
_LIFELINE = """
exec 3<&0; program=$$
(cat <&3; kill -QUIT $program) >/dev/null 2>&1 &
exec "$@" </dev/null 3<&-
"""


@dataclass(frozen=True)
class Done:
    """How a run ended."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """The one JSON document on stdout."""
        return json.loads(self.out)

    @property
    def lines(self) -> list[Any]:
        """The JSON lines on stdout."""
        return [json.loads(line) for line in self.out.splitlines()]

    @property
    def error(self) -> dict[str, Any]:
        """What ``--json`` says on stderr about a failure."""
        found: dict[str, Any] = json.loads(self.err)["error"]
        return found


@dataclass
class Program:
    """``redrive`` in ``folder`` with ``settings`` (as REDRIVE_<NAME>) and no other ones."""

    folder: Path
    settings: dict[str, str] = field(default_factory=dict)

    def environment(self, more: Mapping[str, str] | None = None) -> dict[str, str]:
        """This process's environment without its own settings of Redrive."""
        kept = {name: value for name, value in os.environ.items() if not name.startswith("REDRIVE_")}
        wanted = {f"REDRIVE_{name.upper()}": value for name, value in self.settings.items()}
        return {**kept, "PYTHONUNBUFFERED": "1", "COLUMNS": "200", **wanted, **(more or {})}

    def __call__(self, *words: str, stdin: str | bytes = b"", **settings: str) -> Done:
        """Run a command to its end."""
        more = {f"REDRIVE_{name.upper()}": value for name, value in settings.items()}
        given = stdin.encode() if isinstance(stdin, str) else stdin
        done = subprocess.run(
            [sys.executable, "-m", "redrive", *words],
            input=given,
            capture_output=True,
            timeout=SECONDS,
            check=False,
            cwd=self.folder,
            env=self.environment(more),
        )
        return Done(done.returncode, done.stdout.decode(), done.stderr.decode())

    def inside(self, *words: str, stdin: bytes = b"", **settings: str) -> Done:
        """The same within this process, for commands that are many and soon refused: a start costs most."""
        more = {f"REDRIVE_{name.upper()}": value for name, value in settings.items()}
        given, out, err = (io.TextIOWrapper(io.BytesIO(text), encoding="utf-8") for text in (stdin, b"", b""))
        with (
            mock.patch.dict(os.environ, self.environment(more), clear=True),
            mock.patch.multiple(sys, stdin=given, stdout=out, stderr=err),
            contextlib.chdir(self.folder),
        ):
            code = main(words)
            out.flush()
            err.flush()
        return Done(code, *(stream.buffer.getvalue().decode() for stream in (out, err)))  # type: ignore[attr-defined]

    def start(self, *words: str, **settings: str) -> Running:
        """Start a command that stays."""
        return Running(
            words, self.folder, self.environment({f"REDRIVE_{k.upper()}": v for k, v in settings.items()})
        )

    def at_terminal(self, words: Sequence[str], answer: str) -> Done:
        """Run a command at a terminal and type ``answer`` once it asks; ``out`` is all that is seen."""
        ours, theirs = pty.openpty()
        with subprocess.Popen(
            [sys.executable, "-m", "redrive", *words],
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            cwd=self.folder,
            env=self.environment(),
        ) as process:
            os.close(theirs)
            seen = _typed(ours, answer)
            code = process.wait(SECONDS)
        os.close(ours)
        return Done(code, seen.decode(errors="replace"), "")


def _hear_interrupts() -> None:
    """As at a terminal: a test run in the background ignores them, and so would what it starts."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


class Running:
    """A command that runs until it is told to end. A context manager: it never outlives the block."""

    def __init__(
        self,
        words: Sequence[str],
        folder: Path,
        environment: Mapping[str, str],
        python: Sequence[str] = ("-m", "redrive"),
    ) -> None:
        # exec: the shell becomes the program, so that signals reach it
        self.process = subprocess.Popen(
            ["/bin/sh", "-c", _LIFELINE, "sh", sys.executable, *python, *words],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=folder,
            env=dict(environment),
            bufsize=0,  # what `until` has not read must still be seen by select
            preexec_fn=_hear_interrupts,  # noqa: PLW1509 - one call that takes no lock
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait(SECONDS)
        for pipe in (self.process.stdin, self.process.stdout, self.process.stderr):
            assert pipe is not None
            pipe.close()

    def until(self, stream: str, word: str) -> str:
        """The next line of ``stdout`` or ``stderr`` that holds ``word``; waits for it."""
        pipe: IO[bytes] = getattr(self.process, stream)
        ends = time.monotonic() + SECONDS
        while time.monotonic() < ends:
            readable, _, _ = select.select([pipe], [], [], 1.0)
            if readable:
                line = pipe.readline().decode()
                assert line, f"the program ended before it said {word!r}"
                if word in line:
                    return line
        raise AssertionError(f"waited {SECONDS} s in vain for {word!r}")

    def stop(self, number: signal.Signals = signal.SIGTERM) -> Done:
        """Send a signal, and wait for the end."""
        self.process.send_signal(number)
        code = self.process.wait(SECONDS)
        assert self.process.stdout is not None
        assert self.process.stderr is not None
        return Done(code, self.process.stdout.read().decode(), self.process.stderr.read().decode())


def _typed(terminal: int, answer: str) -> bytes:
    seen, typed = b"", False
    ends = time.monotonic() + SECONDS
    while time.monotonic() < ends:
        readable, _, _ = select.select([terminal], [], [], 1.0)
        if not readable:
            continue
        try:
            some = os.read(terminal, 4096)
        except OSError:  # the other side is closed: the program has ended
            return seen
        if not some:
            return seen
        seen += some
        if not typed and b"[y/N]" in seen:
            os.write(terminal, f"{answer}\n".encode())
            typed = True
    raise AssertionError(f"waited {SECONDS} s in vain for the end; seen: {seen!r}")
