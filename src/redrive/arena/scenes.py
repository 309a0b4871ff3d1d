"""The scenes of a night, in order: each breaks one thing, looks as an operator would, and waits."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import urllib3

from redrive import seams
from redrive.arena.evidence import Evidence
from redrive.arena.game.database import Game
from redrive.arena.jobs import CLEANUP_QUEUE, SETTLEMENT_QUEUE
from redrive.arena.records import Match, cleanup_key, settlement_key
from redrive.arena.stage import Stage, until
from redrive.ledger import Job
from redrive.transports import Entry

DELAY_SECONDS: Final = 8.0
SCENE_SECONDS: Final = 12.0
LOST_SECONDS: Final = 4.0  # acknowledged first, what has not happened by then never will
VIEW_SECONDS: Final = 8.0  # the queue's numbers are at most 5 s old
OVERSIZED_BYTES: Final = 300_000
PLAYED_ON: Final = 10
WORKERS: Final = {
    "worker-1": "redrive.arena.jobs:worker",
    "worker-2": "redrive.arena.jobs:worker",
    "worker-3": "redrive.arena.jobs:cleaner",
}
QUEUES: Final[tuple[dict[str, Any], ...]] = (
    {
        "name": SETTLEMENT_QUEUE,
        "type": "standard",
        "max_retries": 20,
        "visibility_timeout_default": 4,
        "retry_policy": {"base_seconds": 0.5, "factor": 2, "max_seconds": 2, "jitter": True},
    },
    {"name": CLEANUP_QUEUE, "type": "fifo", "max_retries": 20, "visibility_timeout_default": 10},
)


@dataclass(slots=True)
class Scenes:
    """Plays a night on a stage; what is seen goes into ``evidence``."""

    stage: Stage
    evidence: Evidence
    client: Any
    game: Game
    ledger: Any
    unsafe: str | None
    tell: Callable[[str], None]
    workers: list[str] = field(default_factory=list)

    def play(self) -> None:
        """All scenes; workers still run when it returns."""
        self.settle_keys()
        self.open()
        self.first_wave()
        self.kill_a_worker()
        self.provider_outage()
        self.stop_consumers()
        self.redrive_the_invalid()
        self.tell("waiting until nothing is left")
        dead = [name for name in self.workers if not self.stage.alive(name)]
        self.evidence.late.extend(f"{name}, which ended by itself" for name in dead)
        self.wait(
            "both queues empty", lambda: not self.live(SETTLEMENT_QUEUE) and not self.live(CLEANUP_QUEUE)
        )

    def settle_keys(self) -> None:
        """Name the jobs, and break the source record of one."""
        evidence = self.evidence
        day, shards = evidence.night.day, evidence.roles.shards
        evidence.settlements = {shard: settlement_key(day, shard) for shard in shards}
        self._set_currency("US$")

    def open(self) -> None:
        """Create the queues and start the workers; whoever gets the marked job stops at the barrier."""
        for queue in QUEUES:
            self.client.call("queue.create", queue)
        signals = self.stage.folder / "signals"
        signals.mkdir()
        point = "before_commit" if self._loses else "before_ack"
        self.stage.extra = {
            "REDRIVE_TESTING": "1",
            "REDRIVE_SIGNAL_DIR": str(signals),
            "REDRIVE_PAUSE_AT": f"{point}:{self._key(self.evidence.roles.killed)}",
            **({"REDRIVE_UNSAFE": self.unsafe} if self.unsafe else {}),
        }
        self._start(*WORKERS)

    def first_wave(self) -> None:
        """Plan the first shards' jobs in the game's transaction; one late, one twice; one body too large."""
        roles, evidence = self.evidence.roles, self.evidence
        self.tell(f"{len(roles.first_wave)} shards are published through the outbox, one of them delayed")
        self._plan(shard for shard in roles.first_wave if shard != roles.delayed)
        if roles.delayed:
            evidence.moments["delayed_due"] = seams.wall_ms() + int(DELAY_SECONDS * 1000)
            self._plan([roles.delayed], DELAY_SECONDS)
        if roles.doubled:
            self.tell("one message is published twice, and a body above the limit is tried")
            key = self._key(roles.doubled)
            self.wait("the relay publishing", lambda: self.ledger.job(key).state != "planned")
            self._publish([roles.doubled])
        (answer,) = self.client.publish(SETTLEMENT_QUEUE, [Entry(payload="x" * OVERSIZED_BYTES)])
        evidence.oversized_code = getattr(answer, "code", "")

    def kill_a_worker(self) -> None:
        """SIGKILL the worker at the barrier: after its commit, before its ack (``ack-first``: reversed)."""
        signals = self.stage.folder / "signals"
        if self.wait("a worker at the barrier", lambda: any(signals.glob("before_*-*"))):
            if not self._loses:  # so that the kill meets this one job, in every run of a seed
                self._first_wave_done()
            pid = int(next(signals.glob("before_*-*")).name.rpartition("-")[2])
            name = self.stage.name_of(pid)
            self.evidence.committed_before_kill = self._effects([self._key(self.evidence.roles.killed)])
            where = "after its ack, before its commit" if self._loses else "after its commit, before its ack"
            self.tell(f"{name} is killed with SIGKILL {where}")
            self.stage.kill(name)
            self.evidence.moments["killed"] = seams.wall_ms()
            self.workers.remove(name)
            self._go(signals)
            self._start(name)
        self._go(signals)

    def provider_outage(self) -> None:
        """The provider is down while more shards fall due; it comes back after they have failed."""
        roles, evidence = self.evidence.roles, self.evidence
        self._first_wave_done()
        if not roles.outage:
            return
        self.tell("the provider goes down")
        self.provider("POST", "outage", {"on": True})
        self._plan(roles.outage)
        wanted = len(roles.outage)
        # Each of its shards fails about three times: long enough that backoff is seen at work.
        self.wait("calls into the outage", lambda: self._met("outage") >= wanted * (1 if self._loses else 3))
        self._see("outage", lambda seen: seen["delayed"] + seen["leased"] + seen["ready"] >= wanted)
        self.provider("POST", "outage", {"on": False})
        evidence.moments["outage_off"] = seams.wall_ms()
        self.tell("the provider is back")
        keys = [self._key(shard) for shard in roles.outage]
        self.wait("the shards of the outage", lambda: self._effects(keys) >= len(keys))

    def stop_consumers(self) -> None:
        """No consumer runs; work piles up, and some of it is overtaken by play. Then they come back."""
        roles, evidence = self.evidence.roles, self.evidence
        self.tell("all consumers stop; shards and match cleanups pile up")
        self.stage.stop(*self.workers)
        self.workers.clear()
        evidence.moments["stopped"] = seams.wall_ms()
        self._publish(roles.stopped)
        self._publish_cleanups()
        wanted = len(roles.stopped)
        self._see("stopped", lambda seen: seen["ready"] >= wanted and seen["oldest_ready_age_seconds"] >= 1)
        evidence.moments["started"] = seams.wall_ms()
        self.tell("consumers come back")
        self._start(*WORKERS)
        keys = [*(self._key(shard) for shard in roles.stopped), *evidence.cleanups]
        self.wait("the backlog", lambda: self._effects(keys) >= len(keys), 2 * SCENE_SECONDS)
        if roles.delayed:
            key = self._key(roles.delayed)
            self.wait("the delayed partition", lambda: self._effects([key]) > 0)

    def redrive_the_invalid(self) -> None:
        """Look at the dead letters, correct the source record, send back only that job."""
        evidence = self.evidence
        if not evidence.roles.invalid:
            return
        listed = self.client.call("queue.dlq.list", {"queue": SETTLEMENT_QUEUE})["items"]
        evidence.isolated = [{"job_key": item["job_key"], "reason": item["reason"]} for item in listed]
        key = self._key(evidence.roles.invalid)
        ours = [item for item in listed if item["job_key"] == key]
        if not ours:
            evidence.late.append("the invalid job among the dead letters")
            return
        error = ours[0].get("error") or {}
        message = error.get("message", "") if isinstance(error, dict) else str(error)
        evidence.views["isolated"] = {"reason": ours[0]["reason"], "error": message[:120]}
        self.tell("the source record is corrected, and only that job is redriven")
        self._set_currency(self._suspect().currency)
        request = {
            "queue": SETTLEMENT_QUEUE,
            "message_ids": [ours[0]["message_id"]],
            "reason": "currency corrected",
        }
        answer = self.client.call("queue.dlq.redrive", request)
        evidence.redriven = [key] * int(answer["redriven"])
        self.wait("the redriven job", lambda: self._effects([key]) > 0)

    def wait(self, what: str, happened: Callable[[], bool], seconds: float = SCENE_SECONDS) -> bool:
        """Wait for ``happened``; what did not is kept as evidence, and the night goes on."""
        if until(happened, LOST_SECONDS if self._loses else seconds):
            return True
        self.evidence.late.append(what)
        return False

    def live(self, queue: str) -> bool:
        """Whether the queue still holds a message that is not dead."""
        items = self.client.call("queue.messages", {"queue": queue, "limit": 20})["items"]
        return any(item["state"] != "dead" for item in items)

    def provider(self, method: str, route: str, order: dict[str, Any] | None = None) -> dict[str, Any]:
        """Call a control route of the provider."""
        body = json.dumps(order) if order is not None else None
        with urllib3.PoolManager(timeout=5.0, retries=False) as pool:
            answer = pool.request(method, f"{self.stage.provider_url}/_control/{route}", body=body)
        return dict(json.loads(answer.data))

    @property
    def _loses(self) -> bool:
        return self.unsafe == "ack-first"

    def _key(self, shard: str) -> str:
        return self.evidence.settlements.get(shard, "")

    def _payload(self, shard: str) -> dict[str, str]:
        game_id = next(each.game_id for each in self.evidence.night.shards if each.shard == shard)
        return {"date": self.evidence.night.day, "shard": shard, "game_id": game_id}

    def _plan(self, shards: Iterable[str], delay_seconds: float | None = None) -> None:
        jobs = [Job(self._key(shard), self._payload(shard), delay_seconds=delay_seconds) for shard in shards]
        self.ledger.publish(self.game.connection, SETTLEMENT_QUEUE, jobs)
        self.game.connection.commit()

    def _publish(self, shards: Iterable[str]) -> None:
        for shard in shards:
            entry = {"queue": SETTLEMENT_QUEUE, "job_key": self._key(shard), "payload": self._payload(shard)}
            self.client.call("queue.publish", entry)

    def _publish_cleanups(self) -> None:
        now_ms = seams.wall_ms()
        due = [m for m in self.evidence.night.matches if m.state == "open" and m.expires_at_ms <= now_ms]
        due.sort(key=lambda match: match.position)
        self.evidence.cleanups = [cleanup_key(match.match_id, match.version) for match in due]
        for start in range(0, len(due), 500):
            entries = [_cleanup_entry(match) for match in due[start : start + 500]]
            self.client.call("queue.publish_batch", {"queue": CLEANUP_QUEUE, "messages": entries})
        for match in due[:: max(1, len(due) // PLAYED_ON)][:PLAYED_ON]:
            self.evidence.outdated += self.game.write("match_finish", match_id=match.match_id)
        self.game.connection.commit()

    def _see(self, moment: str, shown: Callable[[dict[str, Any]], bool]) -> None:
        fields = ("ready", "delayed", "leased", "dead", "oldest_ready_age_seconds")

        def look() -> bool:
            stats = self.client.call("queue.stats", {"queue": SETTLEMENT_QUEUE})
            seen = {name: stats[name] for name in fields}
            if shown(seen):
                self.evidence.views[moment] = seen
            return moment in self.evidence.views

        self.wait(f"the operator's view: {moment}", look, VIEW_SECONDS)

    def _first_wave_done(self) -> None:
        roles = self.evidence.roles
        held = {roles.killed, roles.invalid, roles.delayed}
        others = [self._key(shard) for shard in roles.first_wave if shard not in held]
        self.wait("the first wave", lambda: self._effects(others) >= len(others))
        if roles.invalid and not self._loses:
            key = self._key(roles.invalid)
            self.wait("the invalid job's isolation", lambda: self.ledger.job(key).state == "isolated")

    def _met(self, fault: str) -> int:
        return int(self.provider("GET", "counts")["faults"].get(fault, 0))

    def _effects(self, keys: Iterable[str]) -> int:
        wanted = set(keys)
        rows = self.game.rows("effects_by_key")
        self.game.connection.rollback()
        return sum(1 for row in rows if row["job_key"] in wanted)

    def _suspect(self) -> Any:
        shard, day = self.evidence.roles.invalid, self.evidence.night.day
        return next(row for row in self.evidence.night.payments if row.shard == shard and row.day == day)

    def _set_currency(self, currency: str) -> None:
        if self.evidence.roles.invalid:
            payment_id = self._suspect().payment_id
            self.game.write("payment_set_currency", payment_id=payment_id, currency=currency)
            self.game.connection.commit()

    def _start(self, *names: str) -> None:
        for name in names:
            self.stage.start_worker(name, WORKERS[name])
            self.workers.append(name)

    def _go(self, signals: Path) -> None:
        (signals / "go").touch()


def _cleanup_entry(match: Match) -> dict[str, Any]:
    return {
        "job_key": cleanup_key(match.match_id, match.version),
        "payload": {"match_id": match.match_id, "expected_version": match.version},
        "message_group_id": match.shard,
    }
