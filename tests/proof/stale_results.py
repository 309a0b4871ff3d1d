"""A worker stands still past its lease, another one finishes, and then the first goes on.

Each case is a real worker that is stopped (SIGSTOP) at a named point. Its rival, which gets the next
delivery, is a second worker, or a client that keeps the message so that the stale settlement finds it there.
Beside them every settling call is tried over the wire with the receipt of an older delivery.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from redrive.domain.errors import NotFound, RedriveError, StaleReceipt
from redrive.ledger import Ledger
from redrive.transports import Delivery, Entry
from redrive.transports.contract_transport import ContractTransport
from tests.database import wait_for
from tests.proof.nursery import ForkedServer, ForkedWorker, Nursery
from tests.proof.places import Place, kind_of, kinds, served
from tests.proof.runs import Found, Proof
from tests.system.application import Application, dead, left
from tests.system.servers import SECONDS

WISHES: dict[str, Any] = {
    "before_handler": 1,
    "in_handler": 1,
    "before_commit": 1,
    "before_ack": 1,
    "in_heartbeat": {"do": "hold"},
    "in_nack": {"do": "later"},
}
BLOCKING = frozenset({"in_handler", "before_commit", "in_heartbeat"})  # an open transaction holds the receipt
OPTIONS = {"concurrency": 1, "prefetch": 0, "visibility_timeout": 2}
KEPT_SECONDS = 60.0
VERBS: dict[str, Callable[[ContractTransport, str, str, str], object]] = {
    "ack": lambda client, queue, message_id, handle: raised(client.ack(queue, [(message_id, handle)])[0]),
    "nack": lambda client, queue, message_id, handle: client.nack(queue, message_id, handle),
    "extend": lambda client, queue, message_id, handle: client.extend(queue, message_id, handle, 5),
    "release": lambda client, queue, message_id, handle: client.release(queue, message_id, handle),
    "dead_letter": lambda client, queue, message_id, handle: client.dead_letter(
        queue, message_id, handle, reason="stale"
    ),
}


def raised(result: bool | RedriveError) -> bool:
    """An item's refusal as the exception that it is."""
    if isinstance(result, RedriveError):
        raise result
    return result


def consume(client: ContractTransport, queue: str, seconds: float) -> Delivery:
    """The next message of ``queue``, for so many seconds."""

    def some() -> list[Delivery]:
        return client.consume(
            queue, max_messages=1, visibility_timeout=seconds, wait_seconds=5, consumer_id="rival"
        ).messages

    [delivery] = wait_for(some, SECONDS, f"a message of {queue}")
    return delivery  # type: ignore[no-any-return]


@dataclass
class Case:
    """One stalled worker, stopped at ``point``; it has a queue and a database of its own."""

    nursery: Nursery
    server: ForkedServer
    application: Application
    folder: Path
    point: str
    variables: dict[str, str]

    def run(self, rival: str) -> Found:
        """Play it with a rival that is a ``worker`` or a ``client``."""
        found = Found()
        with closing(self.server.client()) as client:
            again = {"base_seconds": 0, "max_seconds": 0}
            client.call("queue.create", {"name": self.point, "max_retries": 5, "retry_policy": again})
            client.publish(self.point, [Entry(payload=WISHES[self.point], job_key=self.key)])
            with self.worker("stalled", REDRIVE_PAUSE_AT=self.point) as stalled:
                self.stands("stalled", self.point)
                os.kill(stalled.pid, signal.SIGSTOP)
                (self.overtaken_by_worker if rival == "worker" else self.overtaken_by_client)(
                    client, stalled, found
                )
            found.expect(left(client, self.point) == 0, f"{self.key} is still there")
            found.expect(dead(client, self.point) == {}, f"{self.key} is dead")
        found.count("stalls")
        found.count(f"overtaken by a {rival}")
        self.judge(found)
        return found

    @property
    def key(self) -> str:
        """The job's key."""
        return f"job:{self.point}"

    def worker(self, name: str, **variables: str) -> ForkedWorker:
        """A worker on this case's queue, with a folder of its own."""
        options = OPTIONS | {"queue": self.point}
        more = self.variables | variables
        return ForkedWorker(self.nursery, self.server, self.application, self.folder / name, options, **more)

    def effects(self) -> int:
        """How many this case's job has."""
        return self.application.effects()[self.key]

    def stands(self, name: str, point: str) -> None:
        """Wait until that worker stands at ``point``."""
        folder = self.folder / name
        wait_for(lambda: list(folder.glob(f"{point}-*")), SECONDS, f"the {name} worker at {point}")

    def go_on(self, stalled: ForkedWorker, found: Found) -> None:
        """Continue it, and let it end by itself: everything that it had to say is said then."""
        self.free("stalled")
        os.kill(stalled.pid, signal.SIGCONT)
        found.expect(stalled.stop() == 0, f"the worker stalled at {self.point} did not stop with code 0")

    def free(self, name: str) -> None:
        """Nothing holds that worker any more."""
        for file in ("go", "free"):
            (self.folder / name / file).touch()

    def overtaken_by_worker(self, client: ContractTransport, stalled: ForkedWorker, found: Found) -> None:
        """Another worker has the lease; it finishes before the stalled one goes on, where it can."""
        with self.worker("rival", REDRIVE_PAUSE_AT="before_handler") as rival:
            self.stands("rival", "before_handler")
            if self.point in BLOCKING:
                self.go_on(stalled, found)
                found.expect(self.effects() == 0, f"a stale commit at {self.point}")
            self.free("rival")
            wait_for(lambda: left(client, self.point) == 0, SECONDS, "the rival to finish")
            if self.point not in BLOCKING:
                self.go_on(stalled, found)
            found.expect(rival.stop() == 0, "the rival did not stop with code 0")

    def overtaken_by_client(self, client: ContractTransport, stalled: ForkedWorker, found: Found) -> None:
        """A client has the message while the stalled worker goes on: it is not taken from it."""
        held = consume(client, self.point, KEPT_SECONDS)
        self.go_on(stalled, found)
        committed = self.point == "before_ack"
        found.expect(self.effects() == int(committed), f"a stale commit at {self.point}")
        try:
            client.extend(self.point, held.message_id, held.receipt_handle, KEPT_SECONDS)
            client.release(self.point, held.message_id, held.receipt_handle)
        except RedriveError as refusal:
            found.expect(False, f"the stale worker at {self.point} settled: {refusal}")
        with self.worker("last") as last:
            self.free("last")
            wait_for(lambda: left(client, self.point) == 0, SECONDS, "the last worker to finish")
            found.expect(last.stop() == 0, "the last worker did not stop with code 0")

    def judge(self, found: Found) -> None:
        """One effect, a completed job, and one attempt that did it."""
        found.expect(self.effects() == 1, f"{self.key} has {self.effects()} effects")
        with closing(Ledger(self.application.url)) as ledger:
            record, attempts = ledger.job(self.key), ledger.attempts(self.key)
        done = [attempt.delivery for attempt in attempts if attempt.outcome == "done"]
        found.expect(record is not None and record.state == "completed", f"{self.key}: {record}")
        found.expect(len(done) == 1, f"{self.key} was done by deliveries {done}")
        if record is not None and len(done) == 1:
            found.expect(record.delivery == done[0], f"{self.key}: a stale delivery is in the record")


def stale_call(client: ContractTransport, verb: str) -> Found:
    """The settling call with an older receipt: 409 while the message is there, afterwards nothing to do."""
    found, queue, call = Found(), f"wire-{verb}", VERBS[verb]
    client.call("queue.create", {"name": queue, "retry_policy": {"base_seconds": 0, "max_seconds": 0}})
    client.publish(queue, [Entry(payload=1, job_key=verb)])
    old = consume(client, queue, 1)
    new = consume(client, queue, KEPT_SECONDS)
    stale = queue, old.message_id, old.receipt_handle
    found.expect(refused(call, client, *stale) == 409, f"{verb}: stale, not 409")
    ours = raised(client.ack(queue, [(new.message_id, new.receipt_handle)])[0])
    found.expect(ours, f"{verb} by a stale receipt took the message away")
    if verb == "ack":
        late = call(client, *stale)
        found.expect(late is False, "a late ack of what is gone was not acknowledged:false")
    else:
        gone = refused(call, client, *stale)
        found.expect(gone == 404, f"{verb} of what is gone: {gone}, not 404")
    found.count("calls with a stale receipt", 2)
    return found


def refused(call: Callable[..., object], *arguments: object) -> int:
    """The status of the refusal; 200 when there was none."""
    try:
        call(*arguments)
    except (StaleReceipt, NotFound) as refusal:
        return int(refusal.http_status)
    return 200


def cases(
    nursery: Nursery, server: ForkedServer, where: Place, points: list[str], **variables: str
) -> list[Case]:
    """A case for each point. On SQLite each has its own database: an open transaction is its only writer."""
    made = []
    for point in points:
        application = where.application
        if where.kind == "sqlite":
            application = Application(f"sqlite:///{where.folder / f'{point}.db'}")
        folder = where.folder / point
        folder.mkdir()
        made.append(Case(nursery, server, application, folder, point, variables))
    return made


def stalls(seed: int, points: list[str] | None = None, **variables: str) -> Found:
    """One round on the store whose turn it is: every point at once, one kind of rival, the calls beside."""
    found = Found()
    rival = "client" if seed // len(kinds()) % 2 == 0 and not variables else "worker"
    with (
        served(kind_of(seed)) as (nursery, where, server),
        closing(server.client()) as client,
    ):
        made = cases(nursery, server, where, points or list(WISHES), **variables)
        with ThreadPoolExecutor(len(made) + len(VERBS)) as pool:
            playing = [pool.submit(case.run, rival) for case in made]
            if not variables:
                playing += [pool.submit(stale_call, client, verb) for verb in VERBS]
            for case in playing:
                found.add(case.result())
    return found


def without_receipts(seed: int) -> Found:
    """The control: stopped between its commit and its ack, a worker without receipts is not found out."""
    found = stalls(seed, ["before_ack"], REDRIVE_UNSAFE="no-receipts")
    found.violations = [what for what in found.violations if "2 effects" in what]
    return found


def without_handles(seed: int) -> Found:
    """The control: settling by the message's id alone, a stale consumer takes it from the next one."""
    found = Found()
    with (
        served("sqlite") as (_, _, server),
        closing(server.client()) as client,
    ):
        unfenced_ack(client, found)
    return found


def unfenced_ack(client: ContractTransport, found: Found) -> None:
    """An ack by the id alone, while another consumer has the message."""
    client.call("queue.create", {"name": "bare", "retry_policy": {"base_seconds": 0, "max_seconds": 0}})
    client.publish("bare", [Entry(payload=1)])
    old = consume(client, "bare", 1)
    new = consume(client, "bare", KEPT_SECONDS)
    client.call("queue.ack", {"queue": "bare", "message_id": old.message_id})
    ours = raised(client.ack("bare", [(new.message_id, new.receipt_handle)])[0])
    found.expect(ours, "an ack without a receipt took the message away")


PROOFS = (
    Proof(
        "stale-results",
        "A worker that stood still past its lease never overwrites what was done after it.",
        "stalls",
        600,
        stalls,
        {"receipts": without_receipts, "receipt handles": without_handles},
    ),
)
