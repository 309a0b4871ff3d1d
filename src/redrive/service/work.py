"""What a use case is before any I/O: a command to commit, or a read to run."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from redrive.storage.commands import Command


class Commit(msgspec.Struct, frozen=True):
    """Hand ``command`` to the committer, then ``finish`` its result: an answer of the contract, or a refusal
    raised. ``wait_seconds`` is how long the committer may hold it (a long poll)."""

    command: Command
    finish: Callable[[Any], Any]
    wait_seconds: float = 0.0


class Read(msgspec.Struct, frozen=True):
    """A blocking function that gives the answer; run it off the event loop."""

    run: Callable[[], Any]


Work = Commit | Read
