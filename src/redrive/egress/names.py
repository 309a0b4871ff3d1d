"""Names to addresses, by the system's resolver and within a deadline, which that resolver does not have."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Sequence
from ipaddress import ip_address
from typing import Final, TypeAlias

from redrive.egress.addresses import Address

LOOKUPS_MAX: Final = 32  # at once; a resolver that hangs holds a thread each
ADDRESSES_MAX: Final = 16  # of one name

Resolver: TypeAlias = Callable[[str, float], Sequence[Address]]
"""``(host, seconds)`` to its addresses, in the order in which they are to be tried; empty when it has none.
Raises TimeoutError when it took longer than the seconds, OSError when it cannot be asked.
"""

_turns = threading.BoundedSemaphore(LOOKUPS_MAX)


def resolve(host: str, seconds: float) -> list[Address]:
    """The :data:`Resolver` of the system."""
    if not _turns.acquire(timeout=seconds):
        raise TimeoutError(f"{LOOKUPS_MAX} look-ups of names are under way")
    answers: list[list[Address]] = []
    failures: list[OSError] = []
    done = threading.Event()

    def ask() -> None:
        try:
            answers.append(_ask(host))
        except OSError as error:
            failures.append(error)
        finally:
            _turns.release()
            done.set()

    threading.Thread(target=ask, name="redrive-names", daemon=True).start()
    if not done.wait(seconds):
        raise TimeoutError(f"the name was not found out within {seconds:g} s")
    if failures:
        raise failures[0]
    return answers[0]


def _ask(host: str) -> list[Address]:
    try:
        found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except socket.gaierror as error:
        if error.errno in (socket.EAI_NONAME, getattr(socket, "EAI_NODATA", socket.EAI_NONAME)):
            return []
        raise
    except UnicodeError:  # a label that its codec does not take
        return []
    return [ip_address(entry[4][0]) for entry in found][:ADDRESSES_MAX]
