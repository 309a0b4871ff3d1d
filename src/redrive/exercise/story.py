"""The exercise, step by step: each does one thing to queue or consumers and waits for what follows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from redrive import seams
from redrive.arena.stage import until
from redrive.domain.plans import PlanState
from redrive.exercise.consumers import Consumers
from redrive.exercise.evidence import Evidence, read_ledger
from redrive.exercise.options import INVALID, JOBS, SURGE, TWICE, VALID, Names, Options
from redrive.exercise.tables import Tables
from redrive.transports import Entry

AMOUNT: Final = 1_200
_RETENTION_SECONDS: Final = 3_600  # should the exercise be killed, what it left expires
CONCURRENCY: Final = 4
_ENDED: Final = frozenset({PlanState.COMPLETED, PlanState.ABORTED, PlanState.PAUSED})


class Story:
    """Plays on a server (``client``) and a database (``tables``, ``ledger``); fills ``evidence``."""

    def __init__(
        self,
        options: Options,
        names: Names,
        client: Any,
        tables: Tables,
        ledger: Any,
        consumers: Consumers,
        tell: Callable[[str], None],
    ) -> None:
        self.evidence = Evidence()
        self._options, self._names, self._client = options, names, client
        self._tables, self._ledger, self._consumers, self._tell = tables, ledger, consumers, tell

    def play(self) -> None:
        """All of it; the consumers are stopped when it returns."""
        self.prepare()
        self.publish()
        self.stop_after_the_first_delivery()
        self.restart()
        if self.look_at_the_isolated():
            self.correct_and_redrive()
        self.stop_and_let_grow()
        self.restart_and_recover()
        self.collect()

    def prepare(self) -> None:
        """The queue, the tables and the source records; one record is wrong."""
        self._tell(f"queue {self._names.queue}, and two tables in the database")
        self._client.call(
            "queue.create",
            {
                "name": self._names.queue,
                "max_retries": 20,
                "retention_seconds": _RETENTION_SECONDS,
                "visibility_timeout_default": self._options.lease_seconds,
                "retry_policy": {"base_seconds": 0.5, "factor": 2, "max_seconds": 2, "jitter": True},
            },
        )
        self._tables.install()
        for name in (*JOBS, SURGE):
            self._tables.add(name, None if name == INVALID else AMOUNT)

    def publish(self) -> None:
        """One valid job, one sent twice, one that cannot be valid."""
        self._tell("published: one valid job, one twice, one that cannot be valid")
        for name in (VALID, TWICE, TWICE, INVALID):
            entry = {
                "queue": self._names.queue,
                "job_key": self._names.key(name),
                "payload": {"record": name},
            }
            message_id = self._client.call("queue.publish", entry)["message_id"]
            self.evidence.published.setdefault(name, []).append(message_id)

    def stop_after_the_first_delivery(self) -> None:
        """SIGKILL, at the worst moment: the first job is committed and not acknowledged."""
        self._consumers.start_doomed(self._names.key(VALID))
        self.evidence.killed = self._consumers.killed(self._options.wait_seconds)
        if not self.evidence.killed:
            self.evidence.late.append("the first consumer's kill")
        self._consumers.stop()
        self.evidence.effects_at_stop = sum(self._tables.effects().values())
        self.evidence.held = len(self._live())
        self._tell(f"the consumer is killed after its first commit; the queue holds {self.evidence.held}")

    def restart(self) -> None:
        """Consumers come back; whatever can be done is done, and the rest is isolated."""
        self._tell("consumers restart")
        self._start()
        wanted = {self._names.key(VALID), self._names.key(TWICE)}
        self._wait("the invalid job's isolation", lambda: bool(self._dead()))
        self._wait("the valid jobs' effects", lambda: wanted <= self._tables.effects().keys())
        self._wait("nothing else in the queue", lambda: not self._live())
        if self._options.unsafe is None:
            self._wait("its state in the ledger", lambda: self._state(INVALID) == "isolated")

    def look_at_the_isolated(self) -> bool:
        """What an operator sees of the job that could not be done; whether there is one."""
        evidence = self.evidence
        evidence.isolated = [
            {
                "message_id": item["message_id"],
                "job_key": item["job_key"],
                "reason": item["reason"],
                "error": (item["error"] or {}).get("message", ""),
            }
            for item in self._dead()
        ]
        evidence.isolated_state = self._state(INVALID)
        evidence.effects_when_isolated = self._tables.effects().get(self._names.key(INVALID), 0)
        return bool(evidence.isolated)

    def correct_and_redrive(self) -> None:
        """Its source record gets what was missing; a plan over that one message sends it back."""
        self._tell("the source record is corrected, and only that message is redriven")
        self._tables.correct(INVALID, AMOUNT)
        plan = self._client.call(
            "redrive.plan.create",
            {
                "queue": self._names.queue,
                "select": {"message_ids": self.evidence.published[INVALID]},
                "reason": "exercise: the source record is corrected",
            },
        )
        plan_id = plan["plan_id"]
        self._client.call("redrive.plan.start", {"plan_id": plan_id, "reason": "exercise"})
        key = self._names.key(INVALID)
        self._wait("the plan's end", lambda: self._plan(plan_id)["state"] in _ENDED)
        self._wait("the redriven job's effect", lambda: bool(self._tables.effects().get(key)))
        self._wait("an empty queue", lambda: not self._live())
        self.evidence.plan = self._plan(plan_id)
        self.evidence.plan_items = self._client.call("redrive.plan.items", {"plan_id": plan_id})["items"]
        self._wait("the count of redriven messages", lambda: self._stats()["redriven_total"] > 0)

    def stop_and_let_grow(self) -> None:
        """No consumer runs, and a surge comes: the oldest ready message gets older than it may."""
        count, objective = self._options.surge, self._options.objective_seconds
        self._consumers.stop()
        self._tell(f"consumers stop, and {count} jobs come")
        entries = [Entry(payload={"record": SURGE}, job_key=key) for key in self._names.surge_keys(count)]
        refused = [each for each in self._client.publish(self._names.queue, entries) if not _stored(each)]
        if refused:
            raise refused[0]

        def grown() -> bool:
            self.evidence.peak = self._stats()
            return bool(self.evidence.peak["oldest_ready_age_seconds"] > objective)

        self._wait("a backlog that is too old", grown, self._options.wait_seconds + objective)

    def restart_and_recover(self) -> None:
        """Consumers come back; how long it takes until the oldest ready age is as it should be."""
        peak, objective = self.evidence.peak, self._options.objective_seconds
        age = peak["oldest_ready_age_seconds"]
        self._tell(f"{peak['ready']} wait, the oldest for {age:.1f} s; consumers restart")
        began = seams.monotonic()
        self._start()
        if self._wait(
            "the oldest ready age within the objective",
            lambda: self._stats()["oldest_ready_age_seconds"] <= objective,
        ):
            self.evidence.recovered_seconds = seams.monotonic() - began
        wanted = set(self._names.surge_keys(self._options.surge))
        if self._wait("the surge's effects", lambda: wanted <= self._tables.effects().keys()):
            self.evidence.drained_seconds = seams.monotonic() - began
        self._wait("an empty queue at the end", lambda: not self._live())

    def collect(self) -> None:
        """Stop, and read what is judged."""
        if died := self._consumers.died():
            self.evidence.late.append(f"{died} consumers, which ended by themselves")
        self._consumers.stop()
        self.evidence.effects = self._tables.effects()
        self.evidence.jobs = read_ledger(self._ledger, self._names)
        self.evidence.left_in_queue = len(self._live())
        stats = self._stats()
        self.evidence.age_after = stats["oldest_ready_age_seconds"]
        self.evidence.redriven_total = stats["redriven_total"]

    def _start(self) -> None:
        self._consumers.start(self._options.consumers)

    def _wait(self, what: str, happened: Callable[[], bool], seconds: float | None = None) -> bool:
        """What does not happen in time is evidence, and the exercise goes on."""
        if until(happened, self._options.wait_seconds if seconds is None else seconds):
            return True
        self.evidence.late.append(what)
        return False

    def _stats(self) -> dict[str, Any]:
        return dict(self._client.call("queue.stats", {"queue": self._names.queue}))

    def _live(self) -> list[Any]:
        """The queue's messages that are not dead letters; more than a few need no count."""
        items = self._client.call("queue.messages", {"queue": self._names.queue, "limit": 100})["items"]
        return [item for item in items if item["state"] != "dead"]

    def _dead(self) -> list[Any]:
        return list(self._client.call("queue.dlq.list", {"queue": self._names.queue})["items"])

    def _plan(self, plan_id: str) -> dict[str, Any]:
        return dict(self._client.call("redrive.plan.get", {"plan_id": plan_id}))

    def _state(self, name: str) -> str:
        job = self._ledger.job(self._names.key(name))
        return "unknown" if job is None else str(job.state)


def _stored(result: Any) -> bool:
    return not isinstance(result, Exception)
