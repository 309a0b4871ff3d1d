"""The Ledger's calls for batches."""

from __future__ import annotations

from collections.abc import Coroutine, Iterable
from datetime import datetime
from typing import Any, overload

from redrive.domain.errors import InvalidRequest
from redrive.ledger import batch_ends, batch_reads, batches
from redrive.ledger.batch_records import Batched, BatchMember, BatchRecord, BatchStatus
from redrive.ledger.driving import AsyncConnectionLike, Drives
from redrive.ledger.instants import micros
from redrive.ledger.records import Job
from redrive.ledger.states import BatchState, State
from redrive.ledger.values import page_size
from redrive.ledger.window_calls import Window

SWEEPS_MAX = 100
"""How many batches one sweep looks at."""


class BatchCalls(Drives):
    """Batches: a set of jobs with one follow-up."""

    @overload
    def batch(
        self,
        connection: AsyncConnectionLike,
        key: str,
        jobs: Iterable[Job],
        *,
        queue: str,
        then: Job | None = None,
        then_queue: str | None = None,
        window: Window | None = None,
        deadline: datetime | None = None,
        on_deadline: Job | None = None,
    ) -> Coroutine[Any, Any, Batched]: ...

    @overload
    def batch(
        self,
        connection: Any,
        key: str,
        jobs: Iterable[Job],
        *,
        queue: str,
        then: Job | None = None,
        then_queue: str | None = None,
        window: Window | None = None,
        deadline: datetime | None = None,
        on_deadline: Job | None = None,
    ) -> Batched: ...

    def batch(
        self,
        connection: Any,
        key: str,
        jobs: Iterable[Job],
        *,
        queue: str,
        then: Job | None = None,
        then_queue: str | None = None,
        window: Window | None = None,
        deadline: datetime | None = None,
        on_deadline: Job | None = None,
    ) -> Any:
        """Plan ``jobs`` for ``queue`` as the members of batch ``key``, and ``then`` for when all are
        completed, in the caller's transaction; :class:`Batched`.

        A relay publishes the members after the commit. The transaction that completes the last member plans
        ``then`` (for ``then_queue``, by default ``queue``) and completes ``window``, once. Isolated and
        cancelled members hold it open (:meth:`batch_status` says which and why). ``jobs`` is read in slices
        and may be a generator; a job that is known already becomes a member unless it is one of another
        batch; without jobs the batch is complete at once. ``deadline``, a timezone-aware datetime: past it an
        open batch is ``overdue``, ``then`` still waits, and ``on_deadline`` is published once. The same call
        again is harmless and falsy; with other jobs, another queue or follow-up: BatchDiffers. Raises
        WindowLost, LedgerRetry, LedgerNotInstalled.
        """
        plan = batches.Plan(
            key=key,
            queue=queue,
            then=then,
            then_queue=queue if then_queue is None else then_queue,
            deadline_ms=None if deadline is None else micros(deadline, "deadline") // 1000,
            on_deadline=on_deadline,
            window=_bounds(window),
            producer=self._producer,
        )
        return self._drive(connection, lambda driver, mode: batches.create(driver.dialect, mode, plan, jobs))

    @overload
    def add_to_batch(
        self, connection: AsyncConnectionLike, key: str, jobs: Iterable[Job], *, queue: str | None = None
    ) -> Coroutine[Any, Any, int]: ...

    @overload
    def add_to_batch(
        self, connection: Any, key: str, jobs: Iterable[Job], *, queue: str | None = None
    ) -> int: ...

    def add_to_batch(
        self, connection: Any, key: str, jobs: Iterable[Job], *, queue: str | None = None
    ) -> Any:
        """Add late members, for ``queue`` (by default the batch's), as long as the batch is open; how many
        were none before. BatchClosed once it is complete or cancelled, BatchNotFound."""
        return self._drive(
            connection,
            lambda driver, mode: batches.add(driver.dialect, mode, key, jobs, queue, self._producer),
        )

    def cancel_batch(self, key: str, *, connection: Any = None) -> int:
        """Cancel a batch and its members; how many members. Its follow-up is never published, its window
        stays open for the next run.

        Members that are being completed at this moment are let finish; should one fail and come again, a
        sweeper has cancelled it by then. BatchClosed when it is complete, BatchNotFound.
        """
        count: int = self._drive(
            connection, lambda driver, mode: batch_ends.cancel(driver.dialect, mode, key)
        )
        return count

    def batch_status(self, key: str, *, connection: Any = None) -> BatchStatus:
        """The batch, its members counted by state, and which of them hold it open and why; reads all members.
        BatchNotFound."""
        found: BatchStatus = self._drive(
            connection, lambda driver, mode: batch_reads.status(driver.dialect, mode, key)
        )
        return found

    def batch_members(
        self,
        key: str,
        *,
        state: str | None = None,
        after: str = "",
        limit: int = 100,
        connection: Any = None,
    ) -> list[BatchMember]:
        """A page of a batch's members by key, at most 1,000, with how their last delivery ended; ``state``:
        only planned, accepted, completed, isolated or cancelled ones."""
        first, last = _states(State, state)
        page_size(limit)
        found: list[BatchMember] = self._drive(
            connection,
            lambda driver, mode: batch_reads.members(driver.dialect, mode, key, first, last, after, limit),
        )
        return found

    def batches(
        self, *, state: str | None = None, after: str = "", limit: int = 100, connection: Any = None
    ) -> list[BatchRecord]:
        """A page of the batches by key, at most 1,000; ``state``: only open (overdue ones too), complete or
        cancelled ones."""
        first, last = _states(BatchState, state)
        page_size(limit)
        found: list[BatchRecord] = self._drive(
            connection,
            lambda driver, mode: batch_reads.listing(driver.dialect, mode, first, last, after, limit),
        )
        return found

    def sweep(self, *, pause_seconds: float = batch_ends.SWEEP_SECONDS) -> list[str]:
        """Look at the batches that are due for it, each again after ``pause_seconds``; their keys.

        Derives from the members' rows what their completions count: completes a batch whose members all are,
        plans the job for a missed deadline, cancels what was under way when its batch was cancelled. Relays
        call it; any number may.
        """
        keys: list[str] = []
        while len(keys) < SWEEPS_MAX:
            key: str | None = self._program(
                lambda dialect, mode: batch_ends.sweep(dialect, mode, pause_seconds)
            )
            if key is None or key in keys:
                break
            keys.append(key)
        return keys


def _bounds(window: Window | None) -> Any:
    if window is None:
        return None
    if not window:
        raise InvalidRequest(f"window {window.name!r} is not this run's to do: {window.why}")
    return window.bounds


def _states(kind: Any, name: str | None) -> tuple[Any, Any]:
    """The first and the last state of a range: all, or the one of that name."""
    if name is None:
        return min(kind), max(kind)
    known = {state.name.lower(): state for state in kind}
    if name not in known:
        raise InvalidRequest(f"state must be one of {', '.join(known)}, got {name!r}")
    return known[name], known[name]
