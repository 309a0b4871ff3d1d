"""The transition table, row by row: each is driven, and what was seen equals the table."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from redrive.domain import limits
from redrive.domain.states import Event, State
from redrive.storage import commands as c
from redrive.storage.conformance.asking import redrive
from redrive.storage.conformance.rig import Rig, table
from redrive.storage.values import Claimed, DeadFilter

S, E = State, Event
_FIFO = ("waiting", "fifo")
_PLAIN = ("available", "plain")


def _leased(rig: Rig, queue: str) -> Claimed:
    rig.publish(queue)
    [message] = rig.lease(queue, 1, seconds=1)
    return message


def _dead(rig: Rig, queue: str) -> Claimed:
    message = _leased(rig, queue)
    rig.do(c.Reject(message.message_id, message.handle))
    return message


def _dead_leased(rig: Rig, queue: str) -> Claimed:
    _dead(rig, queue)
    [message] = rig.lease(f"{queue}.dlq", 1, seconds=1)
    return message


_PLACES: dict[State, Callable[[Rig, str], Claimed]] = {
    S.LEASED: _leased,
    S.DEAD: _dead,
    S.DEAD_LEASED: _dead_leased,
}


def _expire(rig: Rig, _: Claimed) -> None:
    rig.pass_seconds(2)
    assert rig.do(c.Expire()) >= 1


_ENDS: dict[Event, Callable[[Rig, Claimed], object]] = {
    E.ACK: lambda rig, m: rig.ack(m),
    E.NACK: lambda rig, m: rig.nack(m),
    E.REJECT: lambda rig, m: rig.do(c.Reject(m.message_id, m.handle)),
    E.EXPIRE: _expire,
    E.RELEASE: lambda rig, m: rig.do(c.Release(m.message_id, m.handle)),
    E.EXTEND: lambda rig, m: rig.do(c.Extend(m.message_id, m.handle, visibility_ms=2_000)),
}


class TransitionScenarios:
    """Nothing of the table is missing in an engine, and nothing happens that is not in it."""

    #: Queues of one scenario: retries left, none left, and FIFO.
    queues: ClassVar[dict[str, dict[str, int]]] = {
        "plain": {"max_retries": 3},
        "spent": {"max_retries": 0},
    }

    def test_every_transition(self, rig: Rig) -> None:
        """Every (from, event, to) of the table is reached; what was observed equals it exactly."""
        for name, settings in self.queues.items():
            rig.create(name, None, None, **settings)
        rig.create("fifo", kind="fifo", max_retries=3, fifo_on_dead="continue")
        for drive in (
            self._ends,
            self._cancels,
            self._late,
            self._ages,
            self._redrives,
            self._corrupts,
            self._purges,
        ):
            drive(rig)
            for queue in (*self.queues, "fifo"):
                for name in (queue, f"{queue}.dlq"):
                    rig.do(c.Purge(name))
        self._releases_spent(rig)
        seen = set(rig.seen)
        missing = sorted(" ".join(row) for row in table() - seen)
        extra = sorted(" ".join(row) for row in seen - table())
        assert (missing, extra) == ([], [])

    def _ends(self, rig: Rig) -> None:
        for event, end in _ENDS.items():
            for queue in ("plain", "spent", "fifo"):
                end(rig, _leased(rig, queue))
                rig.do(c.Purge(queue))
            end(rig, _dead_leased(rig, "plain"))
            rig.do(c.Purge("plain.dlq"))
            assert event in {seen for _, seen, _ in rig.seen}

    def _cancels(self, rig: Rig) -> None:
        for queue in ("plain", "fifo"):
            assert rig.do(c.Cancel(rig.publish(queue))) is True
        assert rig.do(c.Cancel(_dead(rig, "plain").message_id)) is True
        for place in (_leased, _dead_leased):
            for event in (E.NACK, E.REJECT, E.EXPIRE, E.RELEASE):
                message = place(rig, "plain")
                assert rig.do(c.Cancel(message.message_id)) is False
                _ENDS[event](rig, message)
                assert rig.tombstone(message.message_id).cause == "cancelled"

    def _late(self, rig: Rig) -> None:
        for queue in ("plain", "spent", "fifo"):
            message = _leased(rig, queue)
            _expire(rig, message)
            assert rig.ack(message) is True

    def _ages(self, rig: Rig) -> None:
        rig.publish("plain"), rig.publish("fifo")
        rig.jump_seconds(limits.RETENTION_SECONDS_DEFAULT + 1)
        assert rig.do(c.Age()) == 2
        rig.jump_seconds(limits.DEAD_RETENTION_SECONDS + 1)
        assert rig.do(c.Age()) == 2

    def _redrives(self, rig: Rig) -> None:
        for queue in ("plain", "fifo"):
            _dead(rig, queue)
            assert rig.do(redrive(DeadFilter(queue=queue), 1, explicit=False)).accepted == 1

    def _corrupts(self, rig: Rig) -> None:
        message_id = rig.publish("plain")
        rig.damage(message_id)
        assert rig.lease("plain") == []
        message = _dead(rig, "plain")
        rig.damage(message.message_id)
        assert rig.lease("plain.dlq") == []

    def _purges(self, rig: Rig) -> None:
        for queue in ("plain", "fifo"):
            rig.publish(queue)
            assert rig.do(c.Purge(queue)).removed == 1
        for place in _PLACES.values():
            place(rig, "plain")
            assert rig.do(c.Purge("plain")).removed + rig.do(c.Purge("plain.dlq")).removed == 1

    def _releases_spent(self, rig: Rig) -> None:
        rig.publish("plain"), rig.publish("spent"), rig.publish("fifo")
        for queue, state in (("plain", "ready"), ("spent", "dead"), ("fifo", "ready")):
            for _ in range(limits.RELEASES_MAX + 1):
                [message] = rig.lease(queue, 1)
                answer = rig.do(c.Release(message.message_id, message.handle))
            assert answer.state == state
