"""A real node that works until it is killed: `python node.py URL [early]`.

One batch a transaction: publishes five messages, leases two, and prints the ids of the five after the COMMIT;
with ``early`` before it, which is the control.
"""

from __future__ import annotations

import sys
from typing import Any

from redrive.storage import commands as c
from redrive.storage.execute import apply
from redrive.storage.postgres import PostgresEngine


def main(url: str, *, early: bool) -> None:
    """Batch after batch, for ever; the parent ends this with a signal."""
    engine = PostgresEngine(url)

    def work(tx: Any) -> str:
        publish = c.Publish("jobs", [c.Entry(b"x" * 500)] * 5)
        published: Any = apply(tx, [publish, c.Lease("jobs", 2, 60_000)]).results[0]
        line = " ".join(answer.message_id for answer in published)
        if early:
            tell(line)
        return line

    tell("ready")
    while True:  # left by a signal only
        line = engine.run(work)
        if not early:
            tell(line)


def tell(line: str) -> None:
    """One line, at once."""
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main(sys.argv[1], early="early" in sys.argv[2:])
