"""The one place in a process that reads a clock, draws a random number or waits.

Everything else takes these as arguments or imports them from here, so that a test can put its own clock in
and `REDRIVE_TESTING=1` with `REDRIVE_TIME_FACTOR` can run a real process at a multiple of real time.
"""

from __future__ import annotations

import base64
import os
import random
import secrets
import threading
import time

_RANDOM = random.SystemRandom()
_JITTER = random.Random()  # seeded from the system; jitter needs spread, not secrecy


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


def receipt_handle() -> str:
    """An opaque receipt handle: 12 random bytes as 16 characters."""
    return base64.urlsafe_b64encode(os.urandom(12)).decode()


def random_bits(count: int) -> int:
    """An unsigned integer of ``count`` random bits."""
    return _RANDOM.getrandbits(count)


def uuid7(now_ms: int) -> bytes:
    """The 16 bytes of a UUID version 7: 48 bits of ``now_ms``, then random bits."""
    raw = (now_ms << 80) | (0x7 << 76) | _uuid_random()
    return raw.to_bytes(16, "big")


def _uuid_random() -> int:
    bits = int.from_bytes(os.urandom(10), "big")
    low = (bits & ((1 << 62) - 1)) | (1 << 63)  # the RFC 9562 variant
    return ((bits >> 62) & 0xFFF) << 64 | low


def uuid7_text(now_ms: int) -> str:
    """A UUID version 7 in its usual form of 36 characters."""
    raw = uuid7(now_ms).hex()
    return f"{raw[:8]}-{raw[8:12]}-{raw[12:16]}-{raw[16:20]}-{raw[20:]}"
