"""What one caller can try against the others: a far alarm, gone pollers, a bug in the loop, a narrow key."""

from __future__ import annotations

import json
from collections.abc import Iterator

import msgspec
import pytest

from redrive.contract import shapes
from redrive.domain.errors import Conflict, Forbidden, NotFound, OutcomeUnknown, Overloaded, QueueNotFound
from redrive.service import Caller, Service, committer
from redrive.service.committer import Committer
from redrive.service.parking import Parking
from redrive.service.ticket import Ticket
from redrive.storage import commands as c
from redrive.storage.memory import MemoryEngine
from tests.service.conftest import GatedEngine, Replies, publish

NARROW = Caller("narrow", "key_n", ("admin",), ("game-*",))


@pytest.fixture
def service() -> Iterator[Service]:
    """A running service in memory with a queue inside of the narrow key's pattern, and one outside."""
    made = Service(MemoryEngine())
    made.start()
    for name in ("game-a", "bank"):
        made.call("queue.create", shapes.QueueCreate(name=name))
    yield made
    made.close()


def _poll(queue: str = "jobs", seconds: float = 20.0) -> c.Lease:
    return c.Lease(queue, 1, None, None, True, seconds)


def test_an_alarm_in_the_far_future_does_not_end_the_loop(running: Committer, replies: Replies) -> None:
    """A rate of one message in ten million years was longer than a condition can wait for."""
    settings: dict[str, object] = {"max_per_second": 5e-324}
    running.call(c.CreateQueue("slow", None, None, settings))
    running.call(publish("slow", 2))
    running.call(c.Lease("slow", 1))
    running.submit(_poll("slow"), replies.to("poll"))
    assert running.call(publish("other"))
    assert running.trouble() is None


@pytest.fixture
def running(engine: GatedEngine) -> Iterator[Committer]:
    """A committer that a test may break."""
    made = Committer(engine)
    made.start()
    yield made
    made.stop()


def test_a_bug_in_the_loop_refuses_instead_of_hanging(
    running: Committer, replies: Replies, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who waits is answered, readiness says so, new work is refused at once."""
    running.submit(_poll(), replies.to("parked"))
    assert running.call(publish("other"))

    def broken(_self: Parking, _now: float) -> object:
        raise ZeroDivisionError

    monkeypatch.setattr(Parking, "ring", broken)
    running.submit(publish("other"), replies.to("waiting"))
    parked, waiting = replies.wait("parked", "waiting")
    assert isinstance(parked, Overloaded)
    assert isinstance(waiting, (Overloaded, list))  # it may have been in the batch before the bug
    running._thread.join(10)
    assert running.trouble() == "the committer has stopped"
    with pytest.raises(Overloaded):
        running.submit(publish(), replies.to("late"))


def test_a_bug_after_the_commit_is_an_unknown_outcome(
    running: Committer, replies: Replies, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who was in the batch is not left waiting, and is not told that nothing was done."""

    def broken(*_: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(Committer, "_is_due", broken)
    running.submit(publish("other"), replies.to("committed"))
    assert isinstance(replies.wait("committed")[0], OutcomeUnknown)
    monkeypatch.undo()


def test_pollers_that_went_away_leave_room_for_others(
    running: Committer, replies: Replies, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Clients that poll and leave again and again must not use the waiting room up."""
    monkeypatch.setattr(committer, "WAITERS_MAX", 3)
    gone = [running.submit(_poll(), replies.to(f"gone{number}")) for number in range(3)]
    running.call(publish("other"))
    assert running.waiting_for() == ["jobs"]  # they were parked before they left
    for ticket in gone:
        ticket.cancel()
    running.submit(_poll(), replies.to("here"))
    running.call(publish("other"))  # by now it has found the queue empty, and waits
    running.call(publish("jobs"))
    assert isinstance(replies.wait("here")[0], c.Leased)
    for number in range(3):  # the control: who is still there keeps its place
        running.submit(_poll("full"), replies.to(f"there{number}"))
    running.submit(_poll("full"), replies.to("too many"))
    assert isinstance(replies.wait("too many")[0], Overloaded)


def test_a_sweep_takes_the_gone_only() -> None:
    """By the tickets' own mark, over every queue."""
    parking = Parking()
    tickets = [Ticket(_poll(name), lambda _: None, 100.0) for name in ("a", "a", "b")]
    for ticket in tickets:
        parking.park(ticket, ticket.command.queue, 0.0)  # type: ignore[union-attr]
    tickets[0].cancel()
    tickets[2].cancel()
    assert parking.sweep() == 2
    assert (parking.count, parking.names(), parking.sweep()) == (1, ["a"], 0)
    assert parking.wake("a") == [tickets[1]]


def test_a_narrow_admin_makes_no_wider_key(service: Service) -> None:
    """Not by naming more queues, not by naming none, not by rotating a wider key."""
    for queues in (["*"], ["bank"], ["game-a", "*a"], ["gam*"]):
        with pytest.raises(Forbidden, match=r"limited to queues game-\*"):
            service.call("account.keys.create", shapes.KeyCreate(name="w", queues=queues), caller=NARROW)
    made = service.call("account.keys.create", shapes.KeyCreate(name="n", scopes=["admin"]), caller=NARROW)
    assert made.queues == ["game-*"]
    fine = shapes.KeyCreate(name="f", queues=["game-a", "game-*-x"])
    assert service.call("account.keys.create", fine, caller=NARROW).queues == ["game-a", "game-*-x"]
    wide = service.call("account.keys.create", shapes.KeyCreate(name="wide", scopes=["admin"]))
    for call, request in (
        ("account.keys.rotate", shapes.KeyRotate(id=wide.id)),
        ("account.keys.revoke", shapes.KeyRevoke(id=wide.id)),
    ):
        with pytest.raises(NotFound, match="not found"):
            service.call(call, request, caller=NARROW)
    listed = service.call("account.keys.list", shapes.KeyList(), caller=NARROW)
    assert {key.name for key in listed.items} == {"n", "f"}
    assert service.access.authenticate(wide.secret).patterns == ("*",)


def test_a_narrow_admin_does_not_learn_of_other_queues(service: Service) -> None:
    """Not as a dead-letter queue, not from a refused delete, not from the audit log."""
    service.call("queue.create", shapes.QueueCreate(name="bank-b", dead_letter_queue="game-a"))
    update = shapes.QueueUpdate(name="game-a", dead_letter_queue="bank")
    with pytest.raises(QueueNotFound):
        service.call("queue.update", update, caller=NARROW)
    with pytest.raises(Conflict) as refused:
        service.call("queue.delete", shapes.QueueDelete(queue="game-a"), caller=NARROW)
    assert "bank" not in refused.value.message
    with pytest.raises(Conflict, match="bank-b"):
        service.call("queue.delete", shapes.QueueDelete(queue="game-a"))
    service.call("account.keys.create", shapes.KeyCreate(name="k"))
    rows = service.call("audit.list", shapes.AuditList(), caller=NARROW).items
    assert {row.queue for row in rows} == {"game-a"}
    assert len(service.call("audit.list", shapes.AuditList()).items) > len(rows)


@pytest.mark.parametrize(
    "payload", [b'{"a":1e999,"pan":"4"}', b'{"a":12345678901234567890123.50,"pan":[1,{"pan":2}]}', b"1e999"]
)
def test_any_payload_can_be_looked_at_with_fields_masked(service: Service, payload: bytes) -> None:
    """A number beyond a double must not close the operator's page; numbers keep their text."""
    service.call("queue.update", shapes.QueueUpdate(name="game-a", redact=["pan"]))
    service.call("queue.publish", shapes.Publish(queue="game-a", payload=msgspec.Raw(payload)))
    [item] = service.call("queue.messages", shapes.MessageList(queue="game-a")).items
    shown = bytes(item.payload)
    assert b'"4"' not in shown
    if payload != b"1e999":
        number = payload[5 : payload.index(b",")]
        assert shown == b'{"a":' + number + b',"pan":"***"}'
        assert json.loads(shown)["pan"] == "***"


def test_an_ack_batch_of_refused_items_alone_is_answered(service: Service) -> None:
    """Nothing is left for the store to do; every item has its error."""
    request = shapes.AckBatch(items=[], refused={0: Conflict("a"), 1: Conflict("b")})
    answer = service.call("queue.ack_batch", request)
    assert [item.error.message for item in answer.items] == ["a", "b"]
    assert service.call("queue.ack_batch", shapes.AckBatch(items=[])).items == []
