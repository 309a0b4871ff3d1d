"""Service times as counts in buckets that grow by a quarter of a power of two (error at most 9 %)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import lru_cache

_STEPS = 4  # buckets to a doubling


@lru_cache(maxsize=4096)
def bucket(ms: int) -> int:
    """The bucket of a duration in milliseconds."""
    return 0 if ms <= 0 else int(math.log2(ms + 1) * _STEPS)


def percentile(counts: Mapping[int, int], share: float) -> float | None:
    """The duration in milliseconds that ``share`` (0 … 1) of the counted ones do not pass; None for none."""
    total = sum(counts.values())
    if not total:
        return None
    seen = 0
    for index in sorted(counts):
        seen += counts[index]
        if seen >= share * total:
            return round(2 ** ((index + 0.5) / _STEPS) - 1, 1)
    raise AssertionError("a share above 1 was asked for")
