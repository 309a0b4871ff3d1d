"""The Ledger: one effect a job, and the evidence for it, in the application's database."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Iterator, Sequence
from typing import Any, TypeVar, overload

from redrive.domain.fingerprint import ErrorInfo
from redrive.domain.reconcile import SETTLE_SECONDS, Repair
from redrive.ledger import effect, install, outbox, outcomes, reads, repairs
from redrive.ledger.batch_calls import BatchCalls
from redrive.ledger.drivers import Mode, arun
from redrive.ledger.driving import AsyncConnectionLike
from redrive.ledger.errors import NotBegun
from redrive.ledger.reconcile import Progress, Reconciliation
from redrive.ledger.reconcile import reconcile as run_reconciliation
from redrive.ledger.records import Applied, AttemptRecord, Completion, Delivered, Job, JobRecord, LedgerStatus
from redrive.ledger.window_calls import WindowCalls

R = TypeVar("R")
C = TypeVar("C")


class Ledger(BatchCalls, WindowCalls):
    """Jobs, receipts and attempts in the application's own database (SQLite, PostgreSQL, MySQL or MariaDB).

    ``database``: a URL, a SQLAlchemy Engine or sessionmaker (or their async forms), or None for a ledger
    that only joins connections it is given. What takes a connection joins its transaction and never commits
    it, unless the connection is in autocommit and outside a transaction: then the call is a transaction of
    its own. Calls with an async connection return an awaitable. Errors:
    :class:`~redrive.ledger.errors.LedgerError` and its kinds.
    """

    def __init__(self, database: Any = None, *, producer: str | None = None) -> None:
        super().__init__(database, producer or f"pid-{os.getpid()}")
        self.outbox = outbox.Outbox(self._program)

    def install(self, connection: Any = None) -> Any:
        """Create or upgrade the tables; the list of versions applied now. The connection must be idle."""
        return self._drive(connection, lambda driver, _: install.install(driver.dialect, driver.is_open()))

    @overload
    def apply_once(  # type: ignore[overload-overlap]  # a blocking change on an async connection is no use
        self, connection: AsyncConnectionLike, job_key: str, change: Callable[[Any], Awaitable[R]]
    ) -> Coroutine[Any, Any, Applied[R]]: ...

    @overload
    def apply_once(self, connection: C, job_key: str, change: Callable[[C], R]) -> Applied[R]: ...

    def apply_once(self, connection: Any, job_key: str, change: Callable[[Any], Any]) -> Any:
        """Run ``change(connection)`` unless the job's effect happened before; receipt and change stand or
        fall together.

        ``job_key``: the stable business key, 1 to 200 bytes. Returns :class:`Applied`, which counts once
        the transaction is committed. If ``change`` raises, its error is raised and both are undone, even if
        the caller catches it and commits. It must not end the transaction. Raises LedgerRetry when the
        caller must run its whole transaction again (on MySQL it is rolled back by then),
        LedgerNotInstalled.
        """
        return self._drive(
            connection, lambda driver, mode: effect.apply_once(driver.dialect, mode, job_key, change)
        )

    @overload
    def publish(
        self, connection: AsyncConnectionLike, queue: str, jobs: Iterable[Job]
    ) -> Coroutine[Any, Any, int]: ...

    @overload
    def publish(self, connection: Any, queue: str, jobs: Iterable[Job]) -> int: ...

    def publish(self, connection: Any, queue: str, jobs: Iterable[Job]) -> Any:
        """Plan ``jobs`` in the caller's transaction; how many were new. A relay publishes them after its
        commit."""
        planned: Sequence[Job] = tuple(jobs)
        return self._drive(
            connection,
            lambda driver, mode: outbox.publish(driver.dialect, mode, queue, planned, self._producer),
        )

    def execute(
        self, delivery: Delivered, change: Callable[[Any], R], *, may_commit: Callable[[], bool] | None = None
    ) -> Applied[R]:
        """A worker's effect, in a transaction of its own: receipt, ``change(db)``, attempt row, COMMIT.

        ``may_commit`` is asked just before COMMIT; False rolls everything back and raises LeaseLost. An
        error of the change is raised as it was, with nothing kept; the worker then calls :meth:`failed`.
        """
        applied: Applied[R] = self._own(
            lambda driver, mode: effect.execute(driver.dialect, mode, delivery, change, may_commit)
        )
        return applied

    async def aexecute(
        self,
        delivery: Delivered,
        change: Callable[[Any], Awaitable[R]],
        *,
        may_commit: Callable[[], bool] | None = None,
    ) -> Applied[R]:
        """:meth:`execute` for an async change, which gets the async connection or session."""

        async def once() -> Applied[R]:
            async with self._needed().alend() as driver:
                program = effect.execute(driver.dialect, Mode.OWN, delivery, change, may_commit)
                applied: Applied[R] = await arun(driver, program)
                return applied

        try:
            return await once()
        except NotBegun:  # an idle connection had died; once more, on a new one
            return await once()

    def failed(
        self, delivery: Delivered, outcome: str, error: ErrorInfo | None, *, isolated: bool = False
    ) -> None:
        """Record that a delivery ended without its effect (``outcome``: retry, reject, …); it cannot fail
        to store.

        ``isolated``: the message is a dead letter now. A job that is completed or cancelled stays so, and
        an older delivery's word does not replace a newer one's.
        """
        self._own(
            lambda driver, mode: outcomes.failed(driver.dialect, mode, delivery, outcome, error, isolated)
        )

    def job(self, job_key: str, *, connection: Any = None) -> JobRecord | None:
        """The job, or None when the ledger does not know it."""
        found: JobRecord | None = self._drive(
            connection, lambda driver, mode: reads.job(driver.dialect, mode, job_key)
        )
        return found

    def completed(self, job_keys: Iterable[str], *, connection: Any = None) -> dict[str, Completion]:
        """Which of these jobs are completed, by key, with when and the hash of the result; the others, known
        or not, are absent. Asks for 1,000 at a time."""
        keys = tuple(job_keys)
        found: dict[str, Completion] = self._drive(
            connection, lambda driver, mode: reads.completed(driver.dialect, mode, keys)
        )
        return found

    def attempts(self, job_key: str, *, connection: Any = None) -> list[AttemptRecord]:
        """How the job's deliveries ended, in order."""
        found: list[AttemptRecord] = self._drive(
            connection, lambda driver, mode: reads.attempts(driver.dialect, mode, job_key)
        )
        return found

    def status(self, *, connection: Any = None) -> LedgerStatus:
        """Jobs by state and the oldest planned one; reads the whole table of jobs."""
        found: LedgerStatus = self._drive(connection, lambda driver, mode: reads.status(driver.dialect, mode))
        return found

    def cancel(self, job_keys: Iterable[str], *, connection: Any = None) -> int:
        """Cancel jobs that are not completed; how many. A delivery that comes later is refused as a
        duplicate."""
        return self._move("cancel", job_keys, connection)

    def redriven(self, job_keys: Iterable[str], *, connection: Any = None) -> int:
        """Note that the queue redrives isolated jobs: they are accepted again; how many."""
        return self._move("redrive", job_keys, connection)

    def republish(self, job_keys: Iterable[str], *, connection: Any = None) -> int:
        """A repair: publish jobs again that the queue lost, under a new generation; how many."""
        return self._move("republish", job_keys, connection)

    def reconcile(
        self,
        queue: str,
        transport: Any,
        *,
        settle_seconds: float = SETTLE_SECONDS,
        unplanned: bool = False,
        progress: Progress | None = None,
    ) -> Reconciliation:
        """Hold what ``transport`` has of ``queue`` against this ledger, key by key; changes nothing.

        A job that is accepted and neither completed, isolated, cancelled nor held by the queue is
        unexplained; so is a message that nobody planned, and one whose job is final. It works over any
        transport that can list what it holds (``held``) and better over one that tells what became of a
        message (``fate``); what cannot be known is said in the summary. ``settle_seconds``: how long a
        completed job may still be leased. ``unplanned``: messages without a row in the ledger are in
        order, producers publish directly here. Memory stays bounded however many jobs there are; the
        answer is closed by the caller. Live traffic may go on.
        """
        return run_reconciliation(
            self._program,
            queue,
            transport,
            settle_seconds=settle_seconds,
            unplanned=unplanned,
            progress=progress,
        )

    def plan_repair(self, found: Reconciliation, repair: Repair, transport: Any) -> Iterator[repairs.Planned]:
        """What :meth:`repair` would do to each finding, or why it cannot; changes nothing."""
        return repairs.plan(found, repair, transport)

    def repair(
        self,
        found: Reconciliation,
        repair: Repair,
        transport: Any,
        *,
        reason: str = "reconciliation",
        progress: Progress | None = None,
    ) -> repairs.Repaired:
        """Repair what was found: ``requeue`` lost jobs under their next generation (a relay publishes them),
        ``ack`` messages of final jobs, ``adopt`` unplanned ones, ``sync`` stale states. A job that changed
        since it was judged is left alone."""
        return repairs.carry_out(
            self._program,
            found,
            repair,
            transport,
            reason=reason,
            producer=self._producer,
            progress=progress,
        )

    def close(self) -> None:
        """Close idle connections of the ledger's own."""
        if self._database is not None:
            self._database.close()

    async def aclose(self) -> None:
        """Close idle connections, the running loop's too."""
        if self._database is not None:
            self._database.close()
            await self._database.aclose()

    def _move(self, event: str, job_keys: Iterable[str], connection: Any) -> int:
        keys = tuple(job_keys)
        count: int = self._drive(
            connection, lambda driver, mode: reads.move(driver.dialect, mode, event, keys)
        )
        return count
