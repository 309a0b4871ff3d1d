"""Reconciliation, the run: what a queue holds against what the ledger waits for, key by key, bounded.

The queue is listed, then the ledger's open jobs are read in the order of their keys, and both are merged.
Whatever disagrees is looked at again: first the queue is asked what became of the message, then the ledger is
read once more. As a worker commits before it acknowledges, a job that was only under way agrees by then. That
a message is held although its job is final shows only when the job was final before the queue was asked.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Final, Protocol, Self

import msgspec

from redrive import seams
from redrive.domain.errors import RedriveError
from redrive.domain.reconcile import FINAL, UNEXPLAINED, Cause, Fate, Held, Known, Verdict, judge
from redrive.ledger.drivers.port import Mode
from redrive.ledger.reads import reconcile_counts, reconcile_known, reconcile_open
from redrive.ledger.spool import Finding, Spool, Suspect
from redrive.ledger.states import State
from redrive.ledger.steps import Program
from redrive.ledger.values import checked_key

PAGE: Final = 1_000
LOOKS_MAX: Final = 3
"""How often one job is looked at again while it moves on under the look."""

CANNOT_LIST: Final = (
    "this queue cannot list what it holds: whether accepted jobs are there or lost cannot be known, nor "
    "whether messages are there that nobody planned, or whose job is done"
)
CANNOT_TELL: Final = (
    "this queue does not tell what became of a message: acknowledged early, expired and purged look alike"
)

Own = Callable[[Callable[[str, Mode], Program]], Any]
Progress = Callable[[str, int, int | None], None]
"""Told (what is being done, how much more of it is done, how much there is or None)."""


class Lists(Protocol):
    """A transport that can list what it holds; changes nothing."""

    def held(self, queue: str) -> Iterable[Sequence[Held]]:
        """Pages of the messages of ``queue``, its dead letters too."""


class Tells(Protocol):
    """A transport that can tell what became of a message; changes nothing."""

    def fate(self, queue: str, job_key: str, message_id: str | None) -> Fate:
        """The fate of the message, or without its id of all messages of the job."""


class Summary(msgspec.Struct, kw_only=True):
    """What a reconciliation found. ``jobs``: the ledger's jobs of the queue by state, when it began;
    ``held``: messages by state. ``causes``: findings by cause. ``unexplained`` findings, and jobs that
    ``cannot_be_known``, make the answer no. ``limits``: what this queue could not tell, in words.
    ``unplanned``: messages without a row in the ledger that were allowed."""

    queue: str
    jobs: dict[str, int]
    waiting_for_relay: int
    held: dict[str, int] = {}
    causes: dict[str, int] = {}
    unexplained: int = 0
    cannot_be_known: int = 0
    unplanned: int = 0
    limits: list[str] = []
    began_at_ms: int = 0
    ended_at_ms: int = 0


class Reconciliation:
    """A finished reconciliation; close it (or use ``with``) when its findings are not needed any more."""

    def __init__(self, summary: Summary, spool: Spool) -> None:
        self.summary = summary
        self._spool = spool

    @property
    def explained(self) -> bool:
        """Whether every job and every message is accounted for."""
        return not (self.summary.unexplained or self.summary.cannot_be_known)

    def findings(self, causes: Iterable[Cause] | None = None) -> Iterator[Finding]:
        """Findings of ``causes`` (default: all), one after the other; they may be many."""
        return self._spool.findings(causes)

    def close(self) -> None:
        """Let the findings go."""
        self._spool.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def reconcile(
    own: Own,
    queue: str,
    transport: Any,
    *,
    settle_seconds: float,
    unplanned: bool,
    progress: Progress | None,
) -> Reconciliation:
    """The :class:`Reconciliation` of ``queue``; ``own`` runs programs on the ledger's database."""
    spool = Spool()
    try:
        run = _Run(own, queue, transport, spool, int(settle_seconds * 1000), unplanned, progress)
        return Reconciliation(run.whole(), spool)
    except BaseException:
        spool.close()
        raise


class _Run:
    """One reconciliation under way."""

    def __init__(
        self,
        own: Own,
        queue: str,
        transport: Any,
        spool: Spool,
        settle_ms: int,
        unplanned: bool,
        progress: Progress | None,
    ) -> None:
        self._own, self._queue, self._transport, self._spool = own, queue, transport, spool
        self._settle_ms, self._unplanned = settle_ms, unplanned
        self._progress = progress or (lambda *_: None)
        self._allowed = 0

    def whole(self) -> Summary:
        """List, compare, look again."""
        counts, waiting, lost_sight = self._counted()
        summary = Summary(
            queue=self._queue, jobs=counts, waiting_for_relay=waiting, began_at_ms=seams.wall_ms()
        )
        if not hasattr(self._transport, "held"):
            summary.limits = [CANNOT_LIST]
            summary.cannot_be_known = lost_sight
            summary.ended_at_ms = seams.wall_ms()
            return summary
        self._list(lambda page: page)
        summary.held = self._spool.held_states()
        self._compare(sum(counts[state] for state in ("planned", "accepted", "isolated")))
        if hasattr(self._transport, "fate"):
            self._ask()
        else:
            summary.limits = [CANNOT_TELL]
            self._list_again()
        found = self._spool.finding_counts()
        summary.causes = {cause.value: found[cause] for cause in Cause if cause in found}
        summary.unexplained = sum(count for cause, count in found.items() if cause in UNEXPLAINED)
        summary.cannot_be_known = found.get(Cause.NOT_KNOWN, 0)
        summary.unplanned = self._allowed
        summary.ended_at_ms = seams.wall_ms()
        return summary

    def _counted(self) -> tuple[dict[str, int], int, int]:
        """Jobs by state, those that wait for a relay, and the accepted ones that do not."""
        rows = self._own(lambda dialect, mode: reconcile_counts(dialect, mode, self._queue))
        counts = {state.name.lower(): rows.get(state, (0, 0))[0] for state in State}
        accepted, relayed = rows.get(State.ACCEPTED, (0, 0))
        return counts, sum(waits for _, waits in rows.values()), accepted - relayed

    def _list(self, chosen: Callable[[Sequence[Held]], Iterable[Held]]) -> None:
        for page in self._transport.held(self._queue):
            self._spool.hold(chosen(page))
            self._progress(f"listing {self._queue}", len(page), None)

    def _compare(self, total: int) -> None:
        """Merge both sides; what disagrees becomes a suspect. Messages without an open job are looked up."""
        strangers: list[tuple[str, list[Held]]] = []
        for known, key, held in merged(self._open_jobs(total), self._spool.held()):
            if known is not None:
                self._first_look(known, key, held)
                continue
            strangers.append((key, held))
            if len(strangers) == PAGE:
                self._look_up(strangers)
                strangers = []
        self._look_up(strangers)

    def _open_jobs(self, total: int) -> Iterator[Known]:
        after = ""
        while True:
            page = self._open_page(after)
            yield from page
            self._progress("comparing", len(page), total)
            if len(page) < PAGE:
                return
            after = page[-1].job_key

    def _open_page(self, after: str) -> list[Known]:
        page: list[Known] = self._own(
            lambda dialect, mode: reconcile_open(dialect, mode, self._queue, after, PAGE)
        )
        return page

    def _look_up(self, strangers: list[tuple[str, list[Held]]]) -> None:
        rows = self._known(key for key, _ in strangers)
        for key, held in strangers:
            self._first_look(rows.get(key), key, held)

    def _first_look(self, known: Known | None, key: str, held: list[Held]) -> None:
        for verdict in judge(known, held, seams.wall_ms(), self._settle_ms):
            if verdict.cause is not Cause.UNKNOWN_PRODUCER:
                own_id = known.message_id if known else None
                ids = {one.message_id: None for one in held} | ({own_id: None} if own_id else {})
                final = verdict.cause is Cause.STILL_QUEUED
                self._spool.suspect(Suspect(key, final, list(ids)))
                return
            # the message was held before the ledger was read, and rows never vanish: that much is sure
            if self._unplanned:
                self._allowed += len(held)
            else:
                self._report(known, key, verdict)

    def _known(self, keys: Iterable[str]) -> dict[str, Known]:
        """The ledger's rows of ``keys``; what can be no key of its own is not asked for."""
        wanted = [key for key in keys if _possible(key)]
        if not wanted:
            return {}
        rows: list[Known] = self._own(lambda dialect, mode: reconcile_known(dialect, mode, wanted))
        return {row.job_key: row for row in rows}

    def _ask(self) -> None:
        """The second look at suspects: the queue's word on each message, then the ledger's row anew."""
        total = self._spool.suspect_count()
        for page in self._spool.suspects(PAGE):
            fates = {one.job_key: self._fates(one.job_key, one.message_ids) for one in page}
            rows = self._known(fates)
            for key, told in fates.items():
                self._second_look(key, told, rows.get(key))
            self._progress("looking again", len(page), total)

    def _fates(self, key: str, message_ids: Sequence[str | None]) -> dict[str | None, Fate]:
        return {each: self._transport.fate(self._queue, key, each) for each in message_ids or [None]}

    def _second_look(self, key: str, told: dict[str | None, Fate], known: Known | None) -> None:
        for _ in range(LOOKS_MAX):
            own_id = known.message_id if known else None
            if own_id in told or (own_id is None and any(fate.held for fate in told.values())):
                break
            told |= self._fates(key, [own_id])  # published anew meanwhile, or its id was never noted
            known = self._known([key]).get(key)
        else:
            return  # it moves on all the time: nobody has lost it
        if known is not None and known.state in FINAL:  # it stays so: what is held from now on should not be
            told = self._fates(key, [each for each, fate in told.items() if fate.held] or list(told))
        held = [fate.held for fate in told.values() if fate.held is not None]
        for verdict in judge(known, held, seams.wall_ms(), self._settle_ms, told.get(own_id)):
            self._report(known, key, verdict)

    def _list_again(self) -> None:
        """The second look where nobody tells of single messages: another listing, then the rows anew."""
        self._spool.forget_held()
        self._list(lambda page: _of(page, self._spool.suspected(one.job_key for one in page)))
        again = self._spool.held()
        here = next(again, None)
        total = self._spool.suspect_count()
        for page in self._spool.suspects(PAGE):
            rows = self._known(one.job_key for one in page)
            for key, final, _ in page:
                held: list[Held] = []
                if here is not None and here[0] == key:
                    held, here = here[1], next(again, None)
                for verdict in judge(rows.get(key), held, seams.wall_ms(), self._settle_ms):
                    # held before it was known to be final proves nothing; the next run will tell
                    if final or verdict.cause is not Cause.STILL_QUEUED:
                        self._report(rows.get(key), key, verdict)
            self._progress("looking again", len(page), total)

    def _report(self, known: Known | None, key: str, verdict: Verdict) -> None:
        held = verdict.held
        message_id = held.message_id if held else known.message_id if known else None
        self._spool.find(
            Finding(
                cause=verdict.cause,
                job_key=key,
                message_id=message_id,
                held_in=held.queue if held else None,
                held_state=held.state if held else None,
                ledger_state=known.state if known else None,
                generation=known.generation if known else 0,
                payload=known is not None and known.payload,
                completed_at_ms=known.completed_ms if known else None,
            )
        )


def merged(
    jobs: Iterator[Known], groups: Iterator[tuple[str, list[Held]]]
) -> Iterator[tuple[Known | None, str, list[Held]]]:
    """Both sides, sorted by key, as one: (job or None, key, messages held)."""
    job, group = next(jobs, None), next(groups, None)
    while job is not None or group is not None:
        if group is None or (job is not None and job.job_key < group[0]):
            assert job is not None
            yield job, job.job_key, []
            job = next(jobs, None)
        elif job is None or group[0] < job.job_key:
            yield None, *group
            group = next(groups, None)
        else:
            yield job, *group
            job, group = next(jobs, None), next(groups, None)


def _of(page: Sequence[Held], keys: set[str]) -> list[Held]:
    return [one for one in page if one.job_key in keys]


def _possible(key: str) -> bool:
    try:
        checked_key("", key)
    except RedriveError:
        return False
    return True
