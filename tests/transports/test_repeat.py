"""When a request may be sent again."""

from __future__ import annotations

import pytest

from redrive.domain.errors import Internal, InvalidRequest, Overloaded, RateLimited, RedriveError
from redrive.transports import Unreachable
from redrive.transports.rest.repeat import Misdirected, delay_seconds, harmless
from redrive.transports.routing import contract_routes


@pytest.mark.parametrize(
    ("capability", "keyed", "expected"),
    [
        ("queue.publish", True, True),
        ("queue.publish", False, False),
        ("queue.consume", False, True),
        ("queue.ack", False, True),
        ("queue.extend", False, True),
        ("queue.stats", False, True),
        ("queue.pause", False, True),
        ("account.keys.create", True, False),
    ],
)
def test_what_may_be_repeated(capability: str, keyed: bool, expected: bool) -> None:
    """Reads, handles and recorded keys make a repetition harmless; a secret's creation has none of them."""
    assert harmless(contract_routes()[capability], keyed=keyed) is expected


@pytest.mark.parametrize(
    ("failure", "twice", "repeated"),
    [
        (Unreachable("x", sent=False), False, True),
        (Unreachable("x", sent=True), False, False),
        (Unreachable("x", sent=True), True, True),
        (Misdirected("x"), True, False),
        (Overloaded("x"), False, True),
        (RateLimited("x"), False, True),
        (Internal("x"), False, False),
        (Internal("x"), True, True),
        (InvalidRequest("x"), True, False),
    ],
)
def test_what_is_repeated_after_which_failure(
    failure: RedriveError | Unreachable, twice: bool, repeated: bool
) -> None:
    """A failure after which the effect is unknown is repeated only where that is harmless."""
    assert (delay_seconds(failure, attempt=1, twice=twice, draw=0.5) is not None) is repeated


def test_the_wait_grows_with_full_jitter_above_retry_after() -> None:
    """From nothing to the exponential ceiling, on top of what the server asked for."""
    failure = Overloaded("x", retry_after=3)
    waits = [delay_seconds(failure, attempt=n, twice=True, draw=0.999) or 0 for n in (1, 2, 3, 20)]
    assert waits == pytest.approx([3.1, 3.2, 3.4, 8], abs=0.02)
    assert delay_seconds(failure, attempt=5, twice=True, draw=0.0) == 3
