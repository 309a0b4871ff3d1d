"""What every transport must do, as an importable suite.

Subclass :class:`TransportConformance` in a test module and give it the pytest fixtures ``transport`` (a
:class:`~redrive.transports.port.Transport`), ``queue`` and ``fifo_queue`` (names of fresh queues with one
retry of 0 seconds, so ``max_retries=1``). Name in ``lacks`` what the broker cannot do. Nothing here sleeps:
long polls wait for what must come, and each has a deadline.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, cast
from unittest import SkipTest

import msgspec

from redrive import seams
from redrive.domain.errors import NotFound, RedriveError, StaleReceipt
from redrive.domain.reconcile import Held
from redrive.transports.port import Delivery, Entry, Lease, Lists, Published, Tells, Transport, Withdraws

DEADLINE_SECONDS = 10.0


def published(results: Sequence[Published | RedriveError]) -> list[Published]:
    """``results``, which must all be stored messages."""
    stored = [result for result in results if isinstance(result, Published)]
    assert len(stored) == len(results), results
    return stored


def put(transport: Transport, queue: str, *payloads: object, **fields: object) -> list[Published]:
    """Publish ``payloads``, each with ``fields`` of :class:`Entry`."""
    entries = [msgspec.convert({"payload": payload, **fields}, Entry) for payload in payloads]
    return published(transport.publish(queue, entries))


def lease(
    transport: Transport, queue: str, *, count: int = 10, timeout: float | None = 30, wait: float = 0
) -> Lease:
    """Consume as the consumer ``conformance``."""
    return transport.consume(
        queue, max_messages=count, visibility_timeout=timeout, wait_seconds=wait, consumer_id="conformance"
    )


def one(transport: Transport, queue: str, *, timeout: float | None = 30) -> Delivery:
    """The next message, waited for up to :data:`DEADLINE_SECONDS`."""
    ends_at = seams.monotonic() + DEADLINE_SECONDS
    while seams.monotonic() < ends_at:
        found = lease(transport, queue, count=1, timeout=timeout, wait=1).messages
        if found:
            return found[0]
    raise AssertionError(f"nothing came from {queue} within {DEADLINE_SECONDS} s")


def item(delivery: Delivery) -> tuple[str, str]:
    """Message id and receipt handle."""
    return delivery.message_id, delivery.receipt_handle


def holds(transport: Transport, queue: str) -> dict[str, Held]:
    """Everything that the queue holds, by message id; each is listed once while nothing moves."""
    found = [one for page in cast("Lists", transport).held(queue) for one in page]
    by_id = {one.message_id: one for one in found}
    assert len(by_id) == len(found)
    return by_id


class TransportConformance:
    """The suite; see the module. ``lacks``: idempotency, fifo, deduplication, priority, suspect, late_ack,
    listing, fates, withdrawal."""

    lacks: ClassVar[frozenset[str]] = frozenset()

    def needs(self, feature: str) -> None:
        """Skip a test of a feature that this transport lacks."""
        if feature in self.lacks:
            raise SkipTest(f"this transport has no {feature}")

    def test_a_published_message_is_delivered_as_it_was(self, transport: Transport, queue: str) -> None:
        """Payload text, job key, headers and counts come back as they were given."""
        text = b'{"b":12345678901234567890,"a":[1.50,"\\u0000"]}'
        entry = Entry(payload=msgspec.Raw(text), job_key="settle:1", headers={"x": "é"})
        (stored,) = published(transport.publish(queue, [entry]))
        got = one(transport, queue)
        assert bytes(got.payload) == text
        assert (got.message_id, got.job_key, got.headers) == (stored.message_id, "settle:1", {"x": "é"})
        assert (got.attempt, got.delivery, got.previous) == (1, 1, None)

    def test_without_a_job_key_the_message_id_is_it(self, transport: Transport, queue: str) -> None:
        """The job key defaults to the message id."""
        (stored,) = put(transport, queue, 1)
        assert one(transport, queue).job_key == stored.message_id

    def test_an_ack_deletes(self, transport: Transport, queue: str) -> None:
        """After an ack the message is gone, and a second ack says so without an error."""
        put(transport, queue, 1)
        got = one(transport, queue)
        assert transport.ack(queue, [item(got)]) == [True]
        assert transport.ack(queue, [item(got)]) == [False]
        assert not lease(transport, queue).messages

    def test_acks_of_a_batch_are_answered_in_order(self, transport: Transport, queue: str) -> None:
        """Each item of a batch has its own answer at its own place."""
        put(transport, queue, 1, 2)
        first, second = lease(transport, queue).messages
        transport.ack(queue, [item(first)])
        wrong = (second.message_id, first.receipt_handle)
        answers = transport.ack(queue, [item(first), wrong, item(second)])
        assert isinstance(answers[1], StaleReceipt)
        assert (answers[0], answers[2]) == (False, True)

    def test_bad_entries_do_not_stop_good_ones(self, transport: Transport, queue: str) -> None:
        """An entry above the limits is refused at its place; its neighbours are stored."""
        entries = [Entry(payload=1), Entry(payload=float("nan")), Entry(payload=2, job_key="k" * 201)]
        good, nan, long = transport.publish(queue, [*entries, Entry(payload=3)])[:3]
        assert isinstance(good, Published)
        assert isinstance(nan, RedriveError)
        assert isinstance(long, RedriveError)
        assert [found.json() for found in lease(transport, queue).messages] == [1, 3]

    def test_a_nacked_message_comes_again(self, transport: Transport, queue: str) -> None:
        """A nack spends an attempt; the next delivery says how the last one ended."""
        put(transport, queue, 1)
        nacked = transport.nack(queue, *item(one(transport, queue)), delay_seconds=0)
        assert nacked.state != "dead"
        again = one(transport, queue)
        assert (again.attempt, again.delivery, again.previous) == (2, 2, "nack")

    def test_a_spent_budget_is_a_dead_letter(self, transport: Transport, queue: str) -> None:
        """The nack that spends the last attempt answers ``dead``, and nothing is delivered any more."""
        put(transport, queue, 1)
        error = {"type": "Timeout", "message": "no answer", "stack": ""}
        transport.nack(queue, *item(one(transport, queue)), delay_seconds=0, error=error)
        last = transport.nack(queue, *item(one(transport, queue)), delay_seconds=0, error=error)
        assert last.state == "dead"
        assert not lease(transport, queue).messages

    def test_a_permanent_nack_is_a_dead_letter_at_once(self, transport: Transport, queue: str) -> None:
        """``permanent`` does not ask for the budget."""
        put(transport, queue, 1)
        assert transport.nack(queue, *item(one(transport, queue)), permanent=True).state == "dead"

    def test_dead_letter_takes_the_message_away(self, transport: Transport, queue: str) -> None:
        """A message that was dead-lettered is not delivered, and its handle is over."""
        put(transport, queue, 1)
        got = one(transport, queue)
        transport.dead_letter(queue, *item(got), reason="undecodable")
        assert not lease(transport, queue).messages

    def test_release_gives_the_attempt_back(self, transport: Transport, queue: str) -> None:
        """A released message is ready at once, with the same attempt and the next delivery."""
        put(transport, queue, 1)
        transport.release(queue, *item(one(transport, queue)))
        again = one(transport, queue)
        assert (again.attempt, again.delivery, again.previous) == (1, 2, "released")

    def test_extend_keeps_the_lease(self, transport: Transport, queue: str) -> None:
        """An extended lease outlives its first end; the answer is its new length."""
        put(transport, queue, 1)
        got = one(transport, queue, timeout=1)
        assert transport.extend(queue, *item(got), 30) == 30
        assert not lease(transport, queue, wait=1.5).messages
        assert transport.ack(queue, [item(got)]) == [True]

    def test_an_expired_lease_is_delivered_again(self, transport: Transport, queue: str) -> None:
        """A lost lease spends its attempt and is marked ``lost``; its handle is stale from then on."""
        put(transport, queue, 1)
        first = one(transport, queue, timeout=1)
        again = one(transport, queue)
        assert (again.attempt, again.delivery, again.previous) == (2, 2, "lost")
        (late,) = transport.ack(queue, [item(first)])
        assert isinstance(late, StaleReceipt)
        assert transport.ack(queue, [item(again)]) == [True]

    def test_a_stale_handle_changes_nothing(self, transport: Transport, queue: str) -> None:
        """No verb works with the handle of an older delivery."""
        put(transport, queue, 1)
        old = one(transport, queue)
        transport.release(queue, *item(old))
        new = one(transport, queue)
        for verb in (
            lambda: transport.nack(queue, *item(old)),
            lambda: transport.extend(queue, *item(old), 30),
            lambda: transport.release(queue, *item(old)),
            lambda: transport.dead_letter(queue, *item(old), reason="no"),
        ):
            try:
                verb()
            except StaleReceipt:
                continue
            raise AssertionError("a stale handle was taken")
        assert transport.ack(queue, [item(new)]) == [True]

    def test_settling_a_gone_message_is_not_found(self, transport: Transport, queue: str) -> None:
        """nack, extend and release of an acknowledged message say that it is not found."""
        put(transport, queue, 1)
        got = one(transport, queue)
        transport.ack(queue, [item(got)])
        for verb in (
            lambda: transport.nack(queue, *item(got)),
            lambda: transport.extend(queue, *item(got), 30),
            lambda: transport.release(queue, *item(got)),
        ):
            try:
                verb()
            except NotFound:
                continue
            raise AssertionError("a gone message was settled")

    def test_a_late_ack_counts(self, transport: Transport, queue: str) -> None:
        """A lease that ran out but was not delivered again may still be acknowledged."""
        self.needs("late_ack")
        put(transport, queue, 1)
        got = one(transport, queue, timeout=1)
        empty = f"{queue}-empty"
        lease(transport, empty, wait=1.5)  # a wait that leases nothing from our queue
        assert transport.ack(queue, [item(got)]) == [True]
        assert not lease(transport, queue).messages

    def test_order_of_publishing_is_order_of_delivery(self, transport: Transport, queue: str) -> None:
        """Messages that are due come out in the order in which they were published."""
        put(transport, queue, *range(20))
        assert [found.json() for found in lease(transport, queue, count=20).messages] == list(range(20))

    def test_a_delay_is_waited_for(self, transport: Transport, queue: str) -> None:
        """A delayed message is not delivered before it is due."""
        put(transport, queue, "later", delay_seconds=1)
        put(transport, queue, "now")
        assert [found.json() for found in lease(transport, queue).messages] == ["now"]
        assert one(transport, queue).json() == "later"

    def test_one_idempotency_key_is_one_message(self, transport: Transport, queue: str) -> None:
        """Publishing again under the same key answers the first message and stores nothing."""
        self.needs("idempotency")
        (first,) = put(transport, queue, 1, idempotency_key="job#0")
        again, other = published(
            transport.publish(
                queue,
                [Entry(payload=1, idempotency_key="job#0"), Entry(payload=1, idempotency_key="job#1")],
            )
        )
        assert again.message_id == first.message_id != other.message_id
        assert len(lease(transport, queue).messages) == 2

    def test_fifo_keeps_order_within_a_group(self, transport: Transport, fifo_queue: str) -> None:
        """The next of a group waits for its head; another group does not."""
        self.needs("fifo")
        put(transport, fifo_queue, "a1", "a2", message_group_id="a")
        put(transport, fifo_queue, "b1", message_group_id="b")
        heads = lease(transport, fifo_queue).messages
        assert sorted(found.json() for found in heads) == ["a1", "b1"]
        assert not lease(transport, fifo_queue).messages
        transport.ack(fifo_queue, [item(found) for found in heads])
        assert one(transport, fifo_queue).json() == "a2"

    def test_a_deduplication_id_is_one_message(self, transport: Transport, fifo_queue: str) -> None:
        """A deduplication id that was seen answers the first message as a duplicate."""
        self.needs("deduplication")
        (first,) = put(transport, fifo_queue, 1, deduplication_id="d")
        (again,) = put(transport, fifo_queue, 2, deduplication_id="d")
        assert (again.message_id, first.duplicate, again.duplicate) == (first.message_id, False, True)

    def test_a_suspect_travels_alone(self, transport: Transport, queue: str) -> None:
        """A message whose last delivery was lost is the only one of its answer."""
        self.needs("suspect")
        put(transport, queue, "killer")
        one(transport, queue, timeout=1)
        put(transport, queue, "neighbour")
        neighbour = one(transport, queue, timeout=1)
        assert neighbour.json() == "neighbour"
        ends_at = seams.monotonic() + DEADLINE_SECONDS
        seen: list[list[Delivery]] = []
        while sum(map(len, seen)) < 2 and seams.monotonic() < ends_at:
            seen.append(lease(transport, queue, wait=1).messages)
        answers = [answer for answer in seen if answer]
        assert [len(answer) for answer in answers] == [1, 1]
        assert all(answer[0].previous == "lost" for answer in answers)

    def test_a_long_poll_ends_with_the_message(self, transport: Transport, queue: str) -> None:
        """A poll that waits gets what becomes due while it waits, well before its own end."""
        put(transport, queue, 1, delay_seconds=1)
        started = seams.monotonic()
        assert len(lease(transport, queue, wait=8).messages) == 1
        assert seams.monotonic() - started < 6

    def test_all_that_is_held_is_listed(self, transport: Transport, queue: str) -> None:
        """Ready, leased, delayed and dead messages, over several pages; listing changes nothing."""
        self.needs("listing")
        doomed, leased = put(transport, queue, 1, 2)
        for delivery in lease(transport, queue).messages:
            if delivery.message_id == doomed.message_id:
                transport.nack(queue, *item(delivery), permanent=True)
        (delayed,) = put(transport, queue, 3, delay_seconds=600)
        ready = put(transport, queue, *(f"{n}" * 9_000 for n in range(99)), job_key="many")
        found = holds(transport, queue)
        states = {
            each: found[each].state for each in (doomed.message_id, leased.message_id, delayed.message_id)
        }
        assert list(states.values()) == ["dead", "leased", "delayed"]
        assert {found.pop(each).job_key for each in states} == set(states)
        assert set(found) == {one.message_id for one in ready}
        assert {(one.job_key, one.state, one.queue) for one in found.values()} == {("many", "ready", queue)}
        assert set(holds(transport, queue)) == set(found) | set(states)
        assert len(lease(transport, queue, count=200).messages) == len(ready)

    def test_what_became_of_a_message_is_told(self, transport: Transport, queue: str) -> None:
        """Held where it lies, acknowledged, or removed; by its id and by its job key."""
        self.needs("fates")
        tells = cast("Tells", transport)
        (first,) = put(transport, queue, 1, job_key="job")
        for message_id in (first.message_id, None):
            fate = tells.fate(queue, "job", message_id)
            assert fate.sure
            assert fate.held == Held("job", first.message_id, queue, "ready")
        transport.ack(queue, [item(one(transport, queue))])
        for message_id in (first.message_id, None):
            fate = tells.fate(queue, "job", message_id)
            assert (fate.held, fate.end, fate.sure) == (None, "acked", True)

    def test_messages_of_final_jobs_are_taken_out(self, transport: Transport, queue: str) -> None:
        """Live and dead ones, each once; others stay."""
        self.needs("withdrawal")
        dead, live, kept = put(transport, queue, 1, 2, 3)
        for delivery in lease(transport, queue).messages:
            if delivery.message_id == dead.message_id:
                transport.nack(queue, *item(delivery), permanent=True)
            else:
                transport.release(queue, *item(delivery))
        found = holds(transport, queue)
        given = [(found[dead.message_id], 1_000), (found[live.message_id], 1_000)]
        withdraws = cast("Withdraws", transport)
        assert withdraws.withdraw(queue, given, "done") == [True, True]
        assert withdraws.withdraw(queue, given, "done") == [False, False]
        assert set(holds(transport, queue)) == {kept.message_id}
