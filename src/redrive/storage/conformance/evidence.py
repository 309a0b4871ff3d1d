"""Transactions, pruning and reads."""

from __future__ import annotations

import contextlib
from typing import Any, cast

from redrive.domain import limits
from redrive.domain.standing import Shown
from redrive.storage import commands as c
from redrive.storage.audit_chain import Walk
from redrive.storage.conformance.asking import key
from redrive.storage.conformance.rig import Rig
from redrive.storage.values import AuditRow


class EvidenceScenarios:
    """Transactions, pruning and reads."""

    def test_a_failed_batch_leaves_nothing(self, rig: Rig) -> None:
        """An error inside the transaction undoes all of it."""

        def half(tx: Any) -> None:
            queue = tx.queues(["jobs"])["jobs"]
            tx.write_groups(list(tx.groups([(queue.id, "g")]).values()))
            tx.remove_queue(queue.id)
            raise ZeroDivisionError

        rig.create()
        with contextlib.suppress(ZeroDivisionError):
            rig.engine.run(half)
        rig.publish()
        assert rig.counts().ready == 1

    def test_prune(self, rig: Rig) -> None:
        """Bookkeeping that is over goes; what is held stays."""
        rig.create("fifo", kind="fifo")
        rig.publish("fifo", group="a", deduplication_id="x", idempotent=key("k"))
        [message] = rig.lease("fifo")
        rig.ack(message)
        assert rig.do(c.Prune()) == 1
        rig.pass_seconds(limits.DEDUPLICATION_SECONDS)
        assert rig.do(c.Prune()) == 1
        rig.jump_seconds(31 * 3_600)
        assert rig.do(c.Prune()) == 1
        assert rig.do(c.Prune()) == 0

    def test_the_audit_log_is_a_chain(self, rig: Rig) -> None:
        """Rows follow each other without a gap, each with its time; a failed batch leaves neither."""

        def failing(tx: Any) -> None:
            tx.insert_audit([row])
            raise ZeroDivisionError

        row = AuditRow(0, "ops", "queue.pause", "jobs", "why", None, "done", b'{"n":1}', on_behalf_of="Åsa")
        rig.create()
        rig.batch(c.WriteAudit(row), c.SetQueueState("jobs", "paused", row))
        with contextlib.suppress(ZeroDivisionError):
            rig.engine.run(failing)
        rig.clock.pass_seconds(1)
        rig.batch(c.SetQueueState("jobs", "active", row))
        rows, head = rig.engine.read(lambda reader: (reader.audit_chain(0, 10), reader.audit_head()))
        assert [found.id for found in rows] == [1, 2, 3]
        assert [found.at_ms for found in rows] == [rig.clock() - 1000] * 2 + [rig.clock()]
        assert [found.detail for found in rows] == [b'{"n":1}'] * 3
        walk = Walk()
        walk.follow(rows, head, last=True)
        assert (walk.broken, walk.number) == (None, 3)
        newest = rig.engine.read(lambda reader: reader.audit_page(0, 2))
        assert newest == [rows[2], rows[1]]
        assert rig.engine.read(lambda reader: reader.audit_chain(2, 10)) == rows[2:]

    def test_reads(self, rig: Rig) -> None:
        """Lists page by number and by state; one message shows all of it."""
        ids = [rig.publish(body=b"%d" % n) for n in range(3)]
        delayed = rig.publish(delay_ms=9_000)
        [message] = rig.lease(count=1)

        def page(state: Shown | None, after: int = 0, limit: int = 10) -> list[Any]:
            return rig.engine.read(
                lambda r: r.messages(cast("Any", r.queue("jobs")), state, None, after, limit)
            )

        assert [m.facts.message_id for m in page(None)] == [*ids, delayed]
        assert [m.facts.message_id for m in page(None, page(None)[1].facts.id)] == [ids[2], delayed]
        assert [m.facts.message_id for m in page("ready")] == ids[1:]
        assert [m.facts.message_id for m in page("delayed")] == [delayed]
        assert [m.facts.message_id for m in page("leased")] == [message.message_id]
        one = rig.stored(ids[0])
        assert (one.body, one.queue, one.facts.handle) == (b"0", "jobs", message.handle)
        counts = rig.counts()
        assert (counts.ready, counts.delayed, counts.leased) == (2, 1, 1)
        assert counts.attempts == {0: 3, 1: 1}
