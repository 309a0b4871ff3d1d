"""How fast one key may ask: a token bucket a key, refilled by the monotonic clock."""

from __future__ import annotations

import math
from collections import OrderedDict

from redrive.domain.errors import RateLimited
from redrive.seams import monotonic

_BUCKETS_MAX = 10_000


class Rates:
    """Buckets of ``burst`` tokens that refill at ``per_second``; the longest unused one is dropped first."""

    def __init__(self, per_second: float, burst: int) -> None:
        self._per_second = per_second
        self._burst = float(burst)
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()  # key: (tokens, at)

    def take(self, key: str) -> None:
        """Take one token of ``key``; raises RateLimited with the whole seconds to wait."""
        now = monotonic()
        tokens, at = self._buckets.pop(key, (self._burst, now))
        tokens = min(self._burst, tokens + (now - at) * self._per_second)
        allowed = tokens >= 1
        self._buckets[key] = (tokens - 1 if allowed else tokens, now)
        if len(self._buckets) > _BUCKETS_MAX:
            self._buckets.popitem(last=False)
        if not allowed:
            wait = max(1, math.ceil((1 - tokens) / self._per_second))
            raise RateLimited(
                f"this key may send {self._per_second:g} requests a second, in bursts of {self._burst:g}",
                hint=f"Wait {wait} s, or batch: publish_batch and ack_batch count as one request.",
                retry_after=wait,
            )

    def headers(self, key: str) -> list[tuple[bytes, bytes]]:
        """``RateLimit`` and ``RateLimit-Policy`` for ``key``."""
        tokens, _ = self._buckets.get(key, (self._burst, 0.0))
        window = max(1, math.ceil(self._burst / self._per_second))
        missing = max(0.0, self._burst - tokens)
        reset = max(1, math.ceil(missing / self._per_second))
        return [
            (b"ratelimit-policy", b'"key";q=%d;w=%d' % (int(self._burst), window)),
            (b"ratelimit", b'"key";r=%d;t=%d' % (int(max(0.0, tokens)), reset)),
        ]
