"""The one place in a process that reads a clock, draws a random number or waits.

Everything else takes these as arguments or imports them from here, so that a test can put its own clock in
and `REDRIVE_TESTING=1` with `REDRIVE_TIME_FACTOR` can run a real process at a multiple of real time.
"""

from __future__ import annotations

import os
import random
import secrets
import threading
import time

_RANDOM = random.SystemRandom()
_JITTER = random.Random()  # seeded from the system; jitter needs spread, not secrecy
_UNIQUE = random.Random()
_VARIANT = {digit: "89ab"[int(digit, 16) & 3] for digit in "0123456789abcdef"}


def _seed_again() -> None:
    _JITTER.seed()
    _UNIQUE.seed()


os.register_at_fork(after_in_child=_seed_again)  # a child must not repeat its parent


def _time_factor() -> float:
    if os.environ.get("REDRIVE_TESTING") != "1":
        return 1.0
    return float(os.environ.get("REDRIVE_TIME_FACTOR", "1"))


TIME_FACTOR = _time_factor()
_STARTED = time.time()


def wall_ms() -> int:
    """Milliseconds since the epoch by this machine's wall clock."""
    now = time.time()
    if TIME_FACTOR != 1.0:
        now = _STARTED + (now - _STARTED) * TIME_FACTOR
    return int(now * 1000)


def monotonic() -> float:
    """Seconds of a clock that never goes back, at the speed of :func:`wall_ms`."""
    return time.monotonic() * TIME_FACTOR


def wait(event: threading.Event, seconds: float) -> bool:
    """Wait until ``event`` is set or ``seconds`` (of :func:`monotonic`) have passed; whether it was set."""
    return event.wait(max(0.0, seconds) / TIME_FACTOR)


def draw() -> float:
    """A uniform draw from [0, 1), for jitter."""
    return _JITTER.random()


def token(count: int) -> str:
    """A secret of ``count`` random bytes as URL-safe text."""
    return secrets.token_urlsafe(count)


def receipt_handles(count: int) -> list[str]:
    """Opaque receipt handles: 12 random bytes each, as 24 characters."""
    text = os.urandom(12 * count).hex()
    return [text[at : at + 24] for at in range(0, 24 * count, 24)]


def random_bits(count: int) -> int:
    """An unsigned integer of ``count`` random bits."""
    return _RANDOM.getrandbits(count)


def message_ids(now_ms: int, count: int) -> list[str]:
    """UUIDs of version 7 (RFC 9562) as 36 characters: 48 bits of ``now_ms``, then 74 random bits.

    Unique, not secret: the bits come from a generator that is seeded by the system.
    """
    at = f"{now_ms & (1 << 48) - 1:012x}"
    head = f"{at[:8]}-{at[8:]}-7"
    x = _UNIQUE.randbytes(10 * count).hex()
    return [
        f"{head}{x[n : n + 3]}-{_VARIANT[x[n + 3]]}{x[n + 4 : n + 7]}-{x[n + 7 : n + 19]}"
        for n in range(0, 20 * count, 20)
    ]


def uuid7_text(now_ms: int) -> str:
    """One of :func:`message_ids`."""
    return message_ids(now_ms, 1)[0]
