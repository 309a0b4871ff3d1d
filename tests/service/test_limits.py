"""The limits and defaults of the contract that no field declares: just below, at, and just above each."""

from __future__ import annotations

import re

import msgspec
import pytest

from redrive.contract import shapes
from redrive.domain import limits
from redrive.domain.errors import IdempotencyKeyReused, InvalidRequest
from redrive.domain.fingerprint import clean_text, error_info
from redrive.service import Service, ServiceSettings
from redrive.storage import commands as c
from redrive.storage.conformance import Clock, Rig
from redrive.storage.memory import MemoryEngine

KIB256 = limits.BODY_BYTES_MAX


@pytest.fixture
def rig() -> Rig:
    """A store in memory under a clock that moves when told."""
    clock = Clock()
    return Rig(MemoryEngine(clock), clock)


def _fill(service: Service, queue: str, sizes: list[int]) -> None:
    for size in sizes:
        payload = msgspec.Raw(b'"' + b"x" * (size - 2) + b'"')
        service.call("queue.publish", shapes.Publish(queue=queue, payload=payload))


@pytest.mark.parametrize(("more", "left_behind"), [(-1, 0), (0, 0), (1, 1)])
def test_bytes_of_a_consume_answer(service: Service, more: int, left_behind: int) -> None:
    """What would be beyond CONSUME_BYTES_MAX stays for the next call."""
    full = limits.CONSUME_BYTES_MAX // KIB256 - 1
    sizes = [KIB256] * full + [KIB256 - 2, 2 + more] if more >= 0 else [KIB256] * full + [KIB256 - 1]
    _fill(service, "big", sizes)
    answer = service.call("queue.consume", shapes.Consume(queue="big", max_messages=100))
    assert len(answer.messages) == len(sizes) - left_behind


def test_counts_that_are_absent(service: Service) -> None:
    """CONSUME_MESSAGES_DEFAULT, LIST_LIMIT_DEFAULT, REDRIVE_MESSAGES_DEFAULT."""
    assert limits.CONSUME_MESSAGES_DEFAULT < limits.LIST_LIMIT_DEFAULT
    _fill(service, "many", [2] * (max(limits.LIST_LIMIT_DEFAULT, limits.REDRIVE_MESSAGES_DEFAULT) + 1))
    page = service.call("queue.messages", shapes.MessageList(queue="many"))
    assert (len(page.items), page.next_cursor is None) == (limits.LIST_LIMIT_DEFAULT, False)
    few = service.call("queue.consume", shapes.Consume(queue="many"))
    assert len(few.messages) == limits.CONSUME_MESSAGES_DEFAULT
    rest = service.call("queue.consume", shapes.Consume(queue="many", max_messages=1000))
    for message in [*few.messages, *rest.messages]:
        nack = shapes.Nack(message_id=message.message_id, permanent=True)
        service.call("queue.nack", nack)
    done = service.call("queue.dlq.redrive", shapes.DeadLetterRedrive(queue="many"))
    assert done.redriven == limits.REDRIVE_MESSAGES_DEFAULT


def test_a_queues_defaults(service: Service) -> None:
    """Every setting that a create leaves out."""
    record = service.call("queue.create", shapes.QueueCreate(name="plain"))
    assert (
        record.max_retries, record.retention_seconds, record.visibility_timeout_default,
        record.max_lease_seconds, record.max_redrives, record.retry_policy.base_seconds,
        record.retry_policy.factor, record.retry_policy.max_seconds,
    ) == (
        limits.MAX_RETRIES_DEFAULT, limits.RETENTION_SECONDS_DEFAULT, limits.VISIBILITY_SECONDS_DEFAULT,
        limits.LEASE_SECONDS_MAX_DEFAULT, limits.MAX_REDRIVES_DEFAULT, limits.RETRY_BASE_SECONDS_DEFAULT,
        limits.RETRY_FACTOR_DEFAULT, limits.RETRY_MAX_SECONDS_DEFAULT,
    )  # fmt: skip
    _fill(service, "plain", [2])
    [message] = service.call("queue.consume", shapes.Consume(queue="plain")).messages
    assert message.priority == limits.PRIORITY_DEFAULT


@pytest.mark.parametrize("length", [-1, 0, 1])
def test_the_length_of_a_given_key(length: int) -> None:
    """Below API_KEY_CHARS_MIN the service does not start."""
    secret = "k" * (limits.API_KEY_CHARS_MIN + length)
    service = Service(MemoryEngine(), ServiceSettings(api_key=secret))
    try:
        if length < 0:
            with pytest.raises(InvalidRequest, match=str(limits.API_KEY_CHARS_MIN)):
                service.start(first_key=True)
        else:
            assert service.start(first_key=True) is None
            assert service.access.authenticate(secret).scopes == ("admin",)
    finally:
        service.close()


@pytest.mark.parametrize("letter", ["x", "é"])
def test_an_errors_text_is_cut(letter: str) -> None:
    """Up to ERROR_BYTES_MAX it is kept; beyond, the whole with its marker is not longer."""
    count = limits.ERROR_BYTES_MAX // len(letter.encode())
    for size in (count - 1, count):
        assert clean_text(letter * size) == letter * size
    cut = clean_text(letter * (count + 1))
    assert cut.endswith("[cut]")
    assert len(cut.encode()) <= limits.ERROR_BYTES_MAX
    info = error_info({"type": letter * 99_999, "message": letter * 99_999, "stack": letter * 99_999})
    assert info is not None
    assert len((info.type + info.message + info.stack).encode()) <= limits.ERROR_BYTES_MAX


def _keyed(rig: Rig, request: bytes) -> object:
    key = c.Idempotent("queue.publish", "k", request)
    [answer] = rig.do(c.Publish("jobs", [c.Entry(b"1")], idempotent=key))
    return answer


@pytest.mark.parametrize(("seconds", "kept"), [(-1, True), (0, True), (6 * 3_600, False)])
def test_how_long_an_idempotency_key_is_kept(rig: Rig, seconds: int, kept: bool) -> None:
    """Another request is refused for IDEMPOTENCY_SECONDS at least; a slot of six hours later it is not."""
    _keyed(rig, b"a" * 8)
    rig.jump_seconds(limits.IDEMPOTENCY_SECONDS + seconds)
    rig.do(c.Tick())
    if kept:
        with pytest.raises(IdempotencyKeyReused):
            _keyed(rig, b"b" * 8)
    else:
        assert isinstance(_keyed(rig, b"b" * 8), c.Published)


@pytest.mark.parametrize(("seconds", "duplicate"), [(-1, True), (1, False)])
def test_how_long_a_deduplication_id_is_kept(rig: Rig, seconds: int, duplicate: bool) -> None:
    """Within DEDUPLICATION_SECONDS the first id comes back, after that it is another message."""
    rig.create("fifo", kind="fifo")
    first = rig.publish("fifo", group="g", deduplication_id="d")
    rig.pass_seconds(limits.DEDUPLICATION_SECONDS + seconds)
    assert (rig.publish("fifo", group="g", deduplication_id="d") == first) is duplicate


@pytest.mark.parametrize(("seconds", "there"), [(-1, True), (1, False)])
def test_how_long_a_dead_letter_is_kept(rig: Rig, seconds: int, there: bool) -> None:
    """DEAD_RETENTION_SECONDS from its death, whatever its source's retention was."""
    rig.create(retention_seconds=60)
    rig.publish()
    [message] = rig.lease()
    rig.do(c.Reject(message.message_id, message.handle))
    rig.jump_seconds(limits.DEAD_RETENTION_SECONDS + seconds)
    rig.do(c.Tick())
    rig.do(c.Age(10))
    assert (rig.counts("jobs.dlq").dead == 1) is there


@pytest.mark.parametrize(("more_ms", "outage"), [(-1, False), (0, False), (1, True)])
def test_what_gap_between_ticks_is_an_outage(rig: Rig, more_ms: int, outage: bool) -> None:
    """Up to OUTAGE_GAP_MS it is time that passed; beyond, it is taken out."""
    rig.do(c.Tick())
    rig.clock.now_ms += limits.OUTAGE_GAP_MS + more_ms
    assert bool(rig.batch(c.Expire()).outage_ms) is outage


def test_how_often_one_budget_may_be_released(rig: Rig) -> None:
    """RELEASES_MAX times it costs nothing; once more, and the budget is spent."""
    rig.create(max_retries=0)
    rig.publish()
    for _ in range(limits.RELEASES_MAX):
        [message] = rig.lease()
        assert rig.do(c.Release(message.message_id, message.handle)).state == "ready"
    [message] = rig.lease()
    assert rig.do(c.Release(message.message_id, message.handle)).state == "dead"


def test_a_fraction_of_a_second_is_kept(service: Service) -> None:
    """A default of 1.9 s is not one of 1 s; a retention is rounded up, never down."""
    asked = shapes.QueueCreate(
        name="short", visibility_timeout_default=1.9, max_lease_seconds=2.5, retention_seconds=60.2
    )
    made = service.call("queue.create", asked)
    assert (made.visibility_timeout_default, made.max_lease_seconds, made.retention_seconds) == (1.9, 2.5, 61)
    service.call("queue.publish", shapes.Publish(queue="short", payload=msgspec.Raw(b"1")))
    leased = service.call("queue.consume", shapes.Consume(queue="short"))
    assert leased.lease_seconds == 1.9


def test_whole_seconds_are_whole_on_the_wire(service: Service) -> None:
    """`30`, not `30.0`: a client may read a duration into an integer, also after the store kept it."""
    asked = shapes.QueueCreate(name="whole", visibility_timeout_default=30.0)
    made, again = (msgspec.json.encode(service.call("queue.create", asked)) for _ in range(2))
    service.call("queue.publish", shapes.Publish(queue="whole", payload=msgspec.Raw(b"1")))
    leased = msgspec.json.encode(service.call("queue.consume", shapes.Consume(queue="whole")))
    assert re.search(rb"\d\.0[,}\]]", made) is None
    assert made == again
    assert b'"lease_seconds":30}' in leased
