"""What an operator may set about the HTTP edge. Seconds are real time, sizes are bytes."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass

from redrive.domain import limits


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiSettings:
    """Bounds of the edge; every wait has a deadline and every queue a bound."""

    header_seconds: float = 10.0
    body_seconds: float = 30.0
    keep_alive_seconds: float = 75.0
    header_bytes_max: int = 32 * limits.KIB
    request_bytes_max: int = limits.REQUEST_BYTES_MAX
    bodies_bytes_max: int = 512 * limits.MIB  # of all requests together
    connections_max: int = 4_096
    rate_per_second: float = 20_000.0
    rate_burst: int = 40_000
    readers: int = 4
    reads_waiting_max: int = 256
    reply_seconds: float = 60.0
    stop_seconds: float = 10.0


def is_loopback(host: str) -> bool:
    """Whether a server bound to ``host`` is reached from this machine only."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
