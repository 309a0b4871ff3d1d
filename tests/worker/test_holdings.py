"""Who may run next, how much may be leased, and when a lease is still ours."""

from __future__ import annotations

import msgspec
import pytest

from redrive.transports import Delivery
from redrive.worker.holdings import SETTLING_MAX, Held, Holdings


def held(
    name: str = "m", *, previous: str | None = None, sent_at: float = 0.0, seconds: float = 30.0
) -> Held:
    """A lease of ``seconds``, asked for at ``sent_at``."""
    delivery = Delivery(name, f"{name}.1", msgspec.Raw(b"1"), name, 1, 1, previous)
    return Held(delivery, sent_at=sent_at, lease_seconds=seconds)


def room(holdings: Holdings) -> int:
    """What may be leased now."""
    return holdings.wait_for_room(0)


def test_prefetch_counts_as_leased() -> None:
    """Room is slots and prefetch, less what runs and what waits, and is asked for in bulk."""
    holdings = Holdings(2, 4)
    assert room(holdings) == 6
    holdings.add([held(str(n)) for n in range(6)])
    assert room(holdings) == 0
    holdings.take()
    holdings.take()
    assert room(holdings) == 0  # four wait: one more would be a lease of its own
    for one in holdings.running():
        holdings.settling(one)
    holdings.take()
    holdings.take()
    assert room(holdings) == 2


def test_a_suspect_waits_for_the_others_and_stops_leasing() -> None:
    """Beside a suspect nothing is leased, what waits goes back, what runs is waited for."""
    holdings = Holdings(2, 4)
    holdings.add([held("a"), held("b"), held("c")])
    running = holdings.take()
    assert running is not None
    suspect = held("s", previous="lost")
    assert [one.item[0] for one in holdings.add([suspect])] == ["b", "c"]
    assert room(holdings) == 0
    assert not holdings._runnable()
    holdings.settling(running)
    assert not holdings._runnable()  # its ack is not answered: it is still leased
    holdings.drop(running)
    assert holdings.take() is suspect
    assert room(holdings) == 0
    holdings.drop(suspect)
    assert room(holdings) == 6


def test_what_was_given_back_is_not_fetched_again_at_once() -> None:
    """After a withdrawal only free slots are filled, until a handler has ended."""
    holdings = Holdings(1, 3)
    holdings.add([held("a"), held("b")])
    running = holdings.take()
    assert running is not None
    (waiting,) = [one for one, ahead in holdings.beating() if ahead]
    assert holdings.withdraw(waiting)
    holdings.drop(waiting)
    assert room(holdings) == 0
    holdings.settling(running)
    assert room(holdings) == 4


def test_what_runs_cannot_be_withdrawn() -> None:
    """A lease that a slot took in the meantime is extended, not given back."""
    holdings = Holdings(1, 1)
    one = held()
    holdings.add([one])
    holdings.take()
    assert not holdings.withdraw(one)


def test_unanswered_settlements_bound_the_leases() -> None:
    """A queue that takes no acks gets no more work out of us than :data:`SETTLING_MAX`."""
    holdings = Holdings(1, 0)
    for n in range(SETTLING_MAX):
        holdings.settling(held(str(n)))
    assert room(holdings) == 0


def test_a_closed_worker_hands_out_nothing() -> None:
    """What waits at the close is answered, what arrives later is refused, slots are sent home."""
    holdings = Holdings(1, 1)
    one, late = held("one"), held("late")
    holdings.add([one])
    assert holdings.close() == [one]
    assert holdings.add([late]) == [late]
    assert holdings.take() is None
    assert room(holdings) == 0


@pytest.mark.parametrize(
    ("now", "seconds", "expected"),
    [(28.9, 30, True), (29.1, 30, False), (0.89, 1, True), (0.91, 1, False)],
)
def test_a_lease_is_proved_only_before_its_end(now: float, seconds: float, expected: bool) -> None:
    """A margin of a tenth, at most a second, is kept free; lengths count from sending the request."""
    assert held(sent_at=0.0, seconds=seconds).provable(now) is expected


def test_an_extension_counts_from_its_own_request() -> None:
    """The new end is the new length after the new request was sent; the next beat a third of it."""
    one = held(sent_at=0.0, seconds=30)
    one.extended(sent_at=10.0, lease_seconds=60)
    assert one.provable(68.9)
    assert not one.provable(69.1)
    assert one.beat_at == 30.0


def test_a_revoked_lease_stays_revoked() -> None:
    """An extension that was under way does not bring a lost lease back; the watcher hears of it once."""
    one = held()
    heard: list[float] = []
    one.watch(heard.append)
    one.revoke()
    one.revoke()
    one.extended(sent_at=1.0, lease_seconds=60)
    assert not one.provable(0.0)
    assert heard == [29.0, 0.0]
