"""A real process that owns a store and publishes until it is killed: `python writer.py PATH [early]`.

Prints the id of each message after its transaction; with ``early`` before the COMMIT, which is the control.
"""

from __future__ import annotations

import sys
from typing import Any

from redrive.storage.commands import Entry, Publish, Published
from redrive.storage.execute import apply
from redrive.storage.sqlite import SqliteEngine


def main(path: str, *, early: bool) -> None:
    """Publish one message a transaction, for ever; the parent ends this with a signal."""
    engine = SqliteEngine(path)

    def work(tx: Any) -> str:
        [[answer]] = apply(tx, [Publish("jobs", [Entry(b"x" * 3_000)])]).results  # type: ignore[misc]
        assert isinstance(answer, Published)
        if early:
            tell(answer.message_id)
        return answer.message_id

    tell("ready")
    while True:  # left by a signal only
        message_id = engine.run(work)
        if not early:
            tell(message_id)


def tell(word: str) -> None:
    """One line, at once."""
    sys.stdout.write(word + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main(sys.argv[1], early="early" in sys.argv[2:])
