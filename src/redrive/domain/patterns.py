"""Which queues a key may see: names with `*` for any characters."""

from __future__ import annotations

import fnmatch
from collections.abc import Sequence

EVERY_QUEUE = ("*",)


def may_see(patterns: Sequence[str], queue: str) -> bool:
    """Whether the patterns hold this queue; a dead-letter queue goes with its source."""
    if tuple(patterns) == EVERY_QUEUE:
        return True
    names = (queue, queue.removesuffix(".dlq"))
    return any(fnmatch.fnmatchcase(name, pattern) for name in names for pattern in patterns)
