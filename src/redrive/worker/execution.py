"""Runs one delivery to its outcome: decode, call the handler in the receipt's transaction, classify."""

from __future__ import annotations

import asyncio
import inspect
import threading
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import msgspec

from redrive import seams
from redrive.domain.errors import RedriveError
from redrive.domain.redaction import redact
from redrive.transports import Delivery
from redrive.worker import faults
from redrive.worker.job import Job, generation_of
from redrive.worker.outcome import DEFAULT_RULES, Outcome, Rules, classify, describe

Handler = Callable[..., Any]
RACES_MAX = 4
LOOP_START_SECONDS = 10.0
LOOP_END_SECONDS = 2.0
RACE_SECONDS = 0.1
_LEDGER_DOWN = frozenset({"LEDGER_RETRY", "LEDGER_NOT_INSTALLED", "LEDGER_FILE"})
RunCoroutine = Callable[[Coroutine[Any, Any, Any]], Any]


class LeaseProof(Protocol):
    """What an execution asks about its lease."""

    def provable(self) -> bool:
        """Whether the lease is certainly ours now."""


class Undecodable(Exception):
    """The payload is not JSON, or the key cannot be read from it."""


class LedgerDown(Exception):
    """The ledger's database refused before the handler was called; ``__cause__`` says why."""


@dataclass(frozen=True, slots=True)
class Execution:
    """How this worker runs a job; the same in its threads and in its child processes."""

    handler: Handler
    queue: str
    consumer_id: str
    ledger: Any = None
    rules: Rules = DEFAULT_RULES
    key: Callable[[Any], str] | None = None
    payload_type: Any = None
    awaited: bool = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "awaited", inspect.iscoroutinefunction(self.handler))

    def job(self, delivery: Delivery, proof: Callable[[], bool] = lambda: True) -> Job:
        """The job of ``delivery``, its payload still as plain JSON values; raises Undecodable."""
        try:
            payload = delivery.json()
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise Undecodable(f"payload is not JSON: {error}") from error
        return Job(
            key=delivery.job_key,
            payload=payload,
            message_id=delivery.message_id,
            attempt=delivery.attempt,
            delivery=delivery.delivery,
            queue=self.queue,
            headers=dict(delivery.headers or {}),
            enqueued_at=delivery.enqueued_at,
            lease_expires_at=delivery.lease_expires_at,
            previous=delivery.previous,
            generation=generation_of(delivery.headers),
            consumer_id=self.consumer_id,
            message_group_id=delivery.message_group_id,
            plan_id=None if delivery.redrive is None else delivery.redrive.plan_id,
            proof=proof,
        )

    def bare_job(self, delivery: Delivery) -> Job:
        """As :meth:`job`, for settling: never raises, the payload may be None."""
        try:
            return self._keyed(self.job(delivery))
        except Exception:  # noqa: BLE001 - the user's key= may raise anything; settling goes on
            emptied = msgspec.structs.replace(delivery, payload=msgspec.Raw(b"null"))
            return self.job(emptied)

    def _keyed(self, job: Job) -> Job:
        return job if self.key is None else replace(job, key=str(self.key(job.payload)))

    def run(self, delivery: Delivery, lease: LeaseProof, run_coroutine: RunCoroutine) -> Outcome:
        """The outcome of ``delivery``, without what its queue redacts; never raises."""
        outcome = self._ended(delivery, lease, run_coroutine)
        if outcome.error is None or not delivery.redact:
            return outcome
        return msgspec.structs.replace(outcome, error=_masked(outcome.error, delivery))

    def _ended(self, delivery: Delivery, lease: LeaseProof, run_coroutine: RunCoroutine) -> Outcome:
        refused = False

        def may_commit() -> bool:
            nonlocal refused
            faults.point("before_commit", delivery.job_key)
            refused = not lease.provable()
            return not refused

        faults.point("before_handler", delivery.job_key)
        try:
            try:
                job = self.job(delivery, lease.provable)
            except Undecodable as error:
                return Outcome("undecodable", describe(error))
            job = self._typed(self._keyed(job))
            ran = self._invoke(job, may_commit, run_coroutine)
        except BaseException as error:  # noqa: BLE001 - a handler's SystemExit ends its job, not the worker
            if refused or not lease.provable():
                return Outcome("lost", describe(error))
            if isinstance(error, LedgerDown):
                return Outcome("untouched", describe(error.__cause__ or error))
            return classify(error, self.rules)
        faults.point("before_ack", delivery.job_key)
        if not ran:
            job.log.info("job %s was done before: its receipt is there", job.key)
        return Outcome("done", duplicate=not ran)

    def _typed(self, job: Job) -> Job:
        if self.payload_type is None:
            return job
        if hasattr(self.payload_type, "model_validate"):
            return replace(job, payload=self.payload_type.model_validate(job.payload))
        return replace(job, payload=msgspec.convert(job.payload, self.payload_type))

    def _invoke(self, job: Job, may_commit: Callable[[], bool], run_coroutine: RunCoroutine) -> bool:
        """Call the handler; False when the ledger knew the job as done."""
        if self.ledger is None:
            faults.point("in_handler", job.key)
            answer = self.handler(job)
            if self.awaited:
                run_coroutine(answer)
            return True

        begun = False

        def change(db: Any) -> Any:
            nonlocal begun
            begun = True
            faults.point("in_handler", job.key)
            return self.handler(job, db)

        known = job
        if faults.unsafe("no-receipts"):
            known = replace(job, key=f"{job.key}#{job.message_id}#{job.delivery}"[:200])
        for race in range(RACES_MAX):
            try:
                if self.awaited:
                    return bool(run_coroutine(self.ledger.aexecute(known, change, may_commit=may_commit)))
                return bool(self.ledger.execute(known, change, may_commit=may_commit))
            except RedriveError as error:
                # lost races are the database's everyday life; only one that goes on is the job's failure,
                # and a database that lets no job begin is nobody's: no budget may burn for it
                again = error.code == "LEDGER_RETRY" and race < RACES_MAX - 1
                if not again and not begun and error.code in _LEDGER_DOWN:
                    raise LedgerDown from error
                if not again:
                    raise
                seams.wait(threading.Event(), RACE_SECONDS * seams.draw())
        raise AssertionError("the last race returns or raises")


def _masked(error: dict[str, str], delivery: Delivery) -> dict[str, str]:
    """From here on the error gets into logs, the ledger and the server's records."""
    try:
        payload = delivery.json()
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):  # nothing in it could be quoted by name
        payload = None
    return redact(delivery.redact, payload, delivery.headers).error(error)


def check_signature(handler: Handler, *, with_ledger: bool) -> None:
    """Raise TypeError unless ``handler`` takes what it will get: (job, db) with a ledger, else (job)."""
    name = getattr(handler, "__name__", repr(handler))
    wanted = ("job", "db") if with_ledger else ("job",)
    try:
        inspect.signature(handler).bind(*wanted)
    except TypeError:
        why = "this worker has a ledger" if with_ledger else "this worker has no ledger"
        raise TypeError(
            f"{name}{inspect.signature(handler)} must take ({', '.join(wanted)}): {why}"
        ) from None


class CoroutineLoop:
    """An event loop in a thread of its own, for async handlers; ``ledger``'s connections live on it."""

    def __init__(self, ledger: Any = None) -> None:
        self._ledger = ledger
        self._started = threading.Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._ended: asyncio.Event | None = None

    def run(self) -> None:
        """Run until :meth:`stop`; then cancel what is unfinished and close the ledger's connections."""
        asyncio.run(self._serve())

    async def _serve(self) -> None:
        self._loop, self._ended = asyncio.get_running_loop(), asyncio.Event()
        self._started.set()
        await self._ended.wait()
        unfinished = asyncio.all_tasks() - {asyncio.current_task()}
        for task in unfinished:
            task.cancel()
        if unfinished:  # they give their connections back, which are closed only then
            await asyncio.wait(unfinished, timeout=LOOP_END_SECONDS)
        if self._ledger is not None:
            await self._ledger.aclose()  # nobody can close them when their loop is gone

    @property
    def loop(self) -> asyncio.AbstractEventLoop:
        """The running loop."""
        self._started.wait(LOOP_START_SECONDS)
        assert self._loop is not None
        return self._loop

    def stop(self) -> None:
        """End :meth:`run`."""
        ended = self._ended
        if ended is not None:
            self.loop.call_soon_threadsafe(ended.set)
