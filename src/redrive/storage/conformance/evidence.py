"""Transactions, pruning and reads."""

from __future__ import annotations

import contextlib
from typing import Any, cast

from redrive.domain import limits
from redrive.domain.standing import Shown
from redrive.storage import commands as c
from redrive.storage.conformance.asking import bury, key, redrive
from redrive.storage.conformance.rig import Rig
from redrive.storage.port import Reader
from redrive.storage.values import DeadFilter


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

    def test_reads_by_job_key(self, rig: Rig) -> None:
        """A job's messages are found among those held, slice by slice, and among what died or was removed."""
        held = [rig.publish(job_key=name) for name in ("a", "b", "a")]
        plain = rig.publish()
        rig.publish("other", job_key="a")
        [buried, again] = bury(rig, 2, "graves", job_key="a")
        rig.do(c.Cancel(held[2]))

        def look(reader: Reader) -> None:
            ends, at = [], 0
            while (end := reader.slice_end(at, 2)) is not None:
                ends.append(end)
                at = end
            assert len(ends) == 3
            assert reader.slice_end(at, 2) is None
            assert reader.held_of_job("a", 0, ends[0]) == held[:1]
            assert len(reader.held_of_job("a", 0, at)) == 4
            assert reader.held_of_job(plain, 0, at) == [plain]
            assert reader.held_of_job("a", at, at + 1) == reader.held_of_job("c", 0, at) == []
            assert reader.dead_of_job("a", "", 10) == sorted([held[2], buried, again])
            assert reader.dead_of_job("a", "", 1) == sorted([held[2], buried, again])[:1]
            assert reader.dead_of_job("a", max(buried, again), 10) == []

        rig.engine.read(look)

    def test_the_plan_that_sent_it(self, rig: Rig) -> None:
        """A redriven message names the latest plan that sent it; one that only planned it is not named."""
        [first, second] = bury(rig, 2)
        one = rig.do(redrive(DeadFilter(queue="jobs", message_ids=(first,)), explicit=True)).plan
        rig.do(redrive(DeadFilter(queue="jobs", message_ids=(second,)), explicit=True, start=False))
        assert rig.engine.read(lambda r: r.plan_ids([first, second])) == {first: one.plan_id}
        [message] = rig.lease()
        assert (message.message_id, message.plan_id) == (first, one.plan_id)
        rig.do(c.Reject(message.message_id, message.handle))
        again = rig.do(redrive(DeadFilter(queue="jobs", message_ids=(first,)), explicit=True)).plan
        assert rig.engine.read(lambda r: r.plan_ids([first, second])) == {first: again.plan_id}

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
