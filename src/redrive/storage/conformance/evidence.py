"""Transactions, pruning and reads."""

from __future__ import annotations

import contextlib
from typing import Any, cast

from redrive.domain import limits
from redrive.domain.standing import Shown
from redrive.storage import commands as c
from redrive.storage.conformance.asking import key
from redrive.storage.conformance.rig import Rig


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
