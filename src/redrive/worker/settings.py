"""What a worker can be told, checked where it is written."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from redrive import seams
from redrive.domain import limits
from redrive.worker.outcome import DEFAULT_RULES, Rules

EXIT_STOPPED = 0
EXIT_RECYCLE = 75  # start me again: nothing is wrong
EXIT_BUG = 70


@dataclass(frozen=True, slots=True)
class Settings:
    """Lengths in seconds. See :class:`redrive.worker.Worker` for each."""

    queue: str
    concurrency: int = 8
    prefetch: int = 8
    executor: Literal["threads", "processes"] = "threads"
    visibility_timeout: float | None = None
    wait_seconds: float = 5.0
    grace_seconds: float = 25.0
    rules: Rules = DEFAULT_RULES
    key: Callable[[Any], str] | None = None
    payload_type: Any = None
    health_port: int | None = None
    health_host: str = "0.0.0.0"  # noqa: S104 - a probe comes from outside the container
    not_polling_seconds: float = 60.0
    memory_cap_bytes: int | None = None
    recycle_after: int | None = None
    relay: bool = True

    def __post_init__(self) -> None:
        _at_least("concurrency", self.concurrency, 1)
        _at_least("prefetch", self.prefetch, 0)
        _at_least("grace_seconds", self.grace_seconds, 0)
        if self.executor not in ("threads", "processes"):
            raise ValueError(f'executor must be "threads" or "processes", got {self.executor!r}')
        if not 0 <= self.wait_seconds <= limits.WAIT_SECONDS_MAX:
            raise ValueError(f"wait_seconds must be 0 to {limits.WAIT_SECONDS_MAX}, got {self.wait_seconds}")
        low, high = limits.VISIBILITY_SECONDS_MIN, limits.VISIBILITY_SECONDS_MAX
        if self.visibility_timeout is not None and not low <= self.visibility_timeout <= high:
            raise ValueError(f"visibility_timeout must be {low} to {high}, got {self.visibility_timeout}")


def _at_least(name: str, value: float, low: float) -> None:
    if value < low:
        raise ValueError(f"{name} must be at least {low}, got {value}")


def boot_identity() -> str:
    """A consumer id that no other boot has, on this machine or another: a reused host name hides orphans."""
    host = socket.gethostname().encode("ascii", "replace").decode()[:60]
    return f"{host}:{os.getpid()}:{seams.uuid7_text(seams.wall_ms())}"
