"""The service: a store, its committer and its duties, behind the capabilities of the contract."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from redrive import seams
from redrive.contract import shapes
from redrive.contract.idempotency import Idempotency
from redrive.domain import limits
from redrive.domain.errors import InvalidRequest, NotFound
from redrive.domain.standing import NoStanding
from redrive.egress.door import Door
from redrive.egress.policy import Policy
from redrive.service import (
    administration,
    auditing,
    consume,
    dead_letters,
    fingerprints,
    lineage,
    looking,
    plans,
    publish,
    queues,
    removing,
    settle,
)
from redrive.service.access import SYSTEM, Access, Caller
from redrive.service.archive import Archive
from redrive.service.committer import Committer
from redrive.service.context import Context
from redrive.service.duties import Duties
from redrive.service.failures import read_refused
from redrive.service.redriving import Redriving
from redrive.service.retention import WARNING_SECONDS, Retention
from redrive.service.statistics import Statistics
from redrive.service.work import Commit, Read, Work
from redrive.storage.execute import Outcome
from redrive.storage.port import Damaged, Engine, Lost

_SWITCH_SECONDS = 0.0005  # beside a busy thread a commit otherwise waits for a slice of 5 ms
UseCase = Callable[[Context, Caller, Any, Idempotency | None], Work]

USE_CASES: dict[str, UseCase] = {
    "queue.create": queues.create,
    "queue.update": queues.update,
    "queue.list": queues.listed,
    "queue.get": queues.get,
    "queue.delete": removing.delete,
    "queue.pause": queues.pause,
    "queue.resume": queues.resume,
    "queue.purge": removing.purge,
    "queue.stats": looking.stats,
    "queue.messages": looking.messages,
    "queue.message": looking.message,
    "queue.publish": publish.publish,
    "queue.publish_batch": publish.publish_batch,
    "queue.consume": consume.consume,
    "queue.ack": settle.ack,
    "queue.ack_batch": settle.ack_batch,
    "queue.nack": settle.nack,
    "queue.extend": settle.extend,
    "queue.release": settle.release,
    "queue.dead_letter": settle.dead_letter,
    "queue.cancel": settle.cancel,
    "queue.dlq.list": dead_letters.listed,
    "queue.dlq.groups": dead_letters.groups,
    "queue.dlq.redrive": dead_letters.redrive,
    "queue.dlq.policies": fingerprints.listed,
    "queue.dlq.policy": fingerprints.set_policy,
    "redrive.plan.create": plans.create,
    "redrive.plan.get": plans.get,
    "redrive.plan.list": plans.listed,
    "redrive.plan.items": plans.items,
    "redrive.plan.start": plans.start,
    "redrive.plan.pause": plans.pause,
    "redrive.plan.resume": plans.resume,
    "redrive.plan.abort": plans.abort,
    "redrive.plan.resolve": plans.resolve,
    "redrive.estimate": plans.estimated,
    "redrive.message": lineage.message,
    "redrive.job": lineage.job,
    "account.keys.create": administration.create_key,
    "account.keys.list": administration.list_keys,
    "account.keys.rotate": administration.rotate_key,
    "account.keys.revoke": administration.revoke_key,
    "audit.list": auditing.listed,
    "audit.verify": auditing.verified,
    "admin.backup": administration.backup,
}


class ServiceSettings(msgspec.Struct, frozen=True):
    """``api_key`` becomes an admin key; ``backup_directory`` is where backups go (None: none);
    ``dead_letter_archive`` where bodies go before retention removes them (None: nowhere), and
    ``dead_letter_warning_seconds`` how long before that it is said. ``allow_targets`` are the hosts and
    networks that may be called although they are not public, ``ca_file`` the authorities trusted there.
    """

    auto_create_queues: bool = True
    backup_directory: Path | None = None
    api_key: str | None = None
    dead_letter_archive: Path | None = None
    dead_letter_warning_seconds: float = WARNING_SECONDS
    allow_targets: tuple[str, ...] = ()
    ca_file: str | None = None


def _named(run: Callable[[], Any]) -> Callable[[], Any]:
    """A read whose failures are refusals."""

    def named() -> Any:
        try:
            return run()
        except (Lost, Damaged) as error:
            raise read_refused(error) from error
        except (msgspec.DecodeError, UnicodeDecodeError, NoStanding) as error:  # of what a row holds
            raise read_refused(Damaged(f"stored rows are damaged: {error}")) from error

    return named


def _door(settings: ServiceSettings) -> Door:
    return Door(Policy.parse(",".join(settings.allow_targets)), ca_file=settings.ca_file)


class Service:
    """Start it, call it, stop it. ``engine`` is closed with it. ``door``: the way out, if not that of the
    settings."""

    def __init__(
        self, engine: Engine, settings: ServiceSettings | None = None, *, door: Door | None = None
    ) -> None:
        self.settings = settings or ServiceSettings()
        self.engine = engine
        self._wakeups = engine.wakeups() if hasattr(engine, "wakeups") else None
        self.statistics = Statistics(f"{seams.random_bits(64):016x}")
        self.access = Access(engine)
        self.committer = Committer(engine, self._committed)
        self._redriving = Redriving(engine, self.committer, self.statistics.node)
        shared = self._wakeups is not None
        kept = self.settings.dead_letter_archive
        archive = None if kept is None else Archive(kept, self.statistics.node)
        self.retention = Retention(engine, archive, self.settings.dead_letter_warning_seconds)
        self._duties = Duties(
            engine, self.committer, self.statistics, self.access, self.retention, shared=shared
        )
        self._context = Context(
            engine,
            self.committer,
            self.access,
            door or _door(self.settings),
            self.settings.auto_create_queues,
            self.settings.backup_directory,
            self._redriving.wake,
        )
        self._stopped = False

    def start(self, *, first_key: bool = False) -> str | None:
        """Begin to work. With ``first_key`` a store without any key is given an admin key: its secret."""
        sys.setswitchinterval(_SWITCH_SECONDS)
        self.committer.start()
        self._duties.tick()
        self.access.reload()
        self._duties.start()
        self._redriving.start()
        if self._wakeups is not None:
            self._wakeups.start(self.committer.wake)
        return self._first_key() if first_key else None

    def _first_key(self) -> str | None:
        given = self.settings.api_key
        if given is not None:
            if len(given) < limits.API_KEY_CHARS_MIN:
                raise InvalidRequest(
                    f"REDRIVE_API_KEY needs at least {limits.API_KEY_CHARS_MIN} characters, has {len(given)}"
                )
            command = self.access.install_root(given)
            if command is not None:
                self.committer.call(command)
                self.access.reload()
            return None
        if self.access.rows():
            return None
        created = self.call("account.keys.create", shapes.KeyCreate(name="first", scopes=["admin"]))
        return str(created.secret)

    def prepare(
        self, capability_id: str, caller: Caller, request: Any, idempotency: Idempotency | None = None
    ) -> Work:
        """What the request amounts to; refusals that need no store are raised here."""
        use_case = USE_CASES.get(capability_id)
        if use_case is None:
            raise NotFound(f"capability {capability_id} is not found")
        work = use_case(self._context, caller, request, idempotency)
        return Read(_named(work.run)) if isinstance(work, Read) else work

    def call(
        self,
        capability_id: str,
        request: Any,
        idempotency: Idempotency | None = None,
        *,
        caller: Caller = SYSTEM,
        actor: str | None = None,
    ) -> Any:
        """Do it and wait for the answer (a struct of the contract); raises ``RedriveError``.

        ``actor`` is who does it with the caller's key, for the audit log.
        """
        work = self.prepare(capability_id, caller.acting_for(actor), request, idempotency)
        if isinstance(work, Read):
            answer = work.run()
        else:
            assert isinstance(work, Commit)
            answer = work.finish(self.committer.call(work.command))
        return answer.answer if isinstance(answer, shapes.Replayed) else answer

    def ready(self) -> str | None:
        """None when it can take work, else why not."""
        if self._stopped:
            return "stopping"
        return self.committer.trouble()

    def full(self) -> str | None:
        """Why new work is refused while acks and reads go on, or None."""
        return None if self._stopped else self.committer.full()

    def close(self) -> None:
        """Finish what was accepted, stop the duties, close the store."""
        if self._stopped:
            return
        self._stopped = True
        self._redriving.stop()
        self._duties.stop()
        if self._wakeups is not None:
            self._wakeups.stop()
        self.committer.stop()
        self.engine.close()

    def _committed(self, outcome: Outcome) -> None:
        if outcome.stats:
            self.statistics.count(outcome.stats, outcome.now_ms)
        if outcome.judged:
            self._redriving.settled()
        if outcome.forgotten:
            self.retention.committed(outcome.forgotten)
        if self._wakeups is not None:
            due = [name for name, due_ms in outcome.due.items() if due_ms <= outcome.now_ms]
            if due:
                self._wakeups.announce(due)
