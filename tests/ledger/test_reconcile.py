"""Reconciliation over a queue that is played here: every transport that can list, or cannot."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest

from redrive.domain.reconcile import Fate, Held
from redrive.ledger import Job, Ledger, Reconciliation, reconcile
from tests.ledger.stores import Delivery, Store

QUEUE = "settlement"


class Listing:
    """A queue that can list what it holds, and nothing more. ``then`` happens after the first listing."""

    def __init__(self) -> None:
        self.messages: dict[str, Held] = {}
        self.then: Callable[[], None] = lambda: None
        self.listings = 0

    def put(self, key: str, state: str = "ready", message_id: str | None = None) -> str:
        """Hold a message; its id."""
        name = message_id or f"m-{key}"
        self.messages[name] = Held(key, name, QUEUE, state)
        return name

    def held(self, queue: str) -> Iterator[Sequence[Held]]:
        """Pages of two."""
        assert queue == QUEUE
        self.listings += 1
        found = list(self.messages.values())
        for start in range(0, len(found), 2):
            yield found[start : start + 2]
        if self.listings == 1:
            self.then()


class Telling(Listing):
    """A queue that tells of single messages too, and lets itself be asked which."""

    def __init__(self) -> None:
        super().__init__()
        self.ends: dict[str, str] = {}
        self.asked: list[str] = []

    def fate(self, queue: str, job_key: str, message_id: str | None) -> Fate:
        """By id, or by key where there is none."""
        self.asked.append(job_key)
        for one in self.messages.values():
            if one.message_id == message_id or (message_id is None and one.job_key == job_key):
                return Fate(held=one)
        return Fate(end=self.ends.get(job_key, "acked"))

    def withdraw(self, queue: str, items: Sequence[tuple[Held, int | None]], reason: str) -> list[bool]:
        """Take messages out."""
        return [self.messages.pop(one.message_id, None) is not None for one, _ in items]


def plan(store: Store, *keys: str) -> None:
    """Plan jobs of QUEUE and commit."""
    db = store.connect()
    Ledger().publish(
        db, QUEUE, [Job(key, {"key": key}, group="g" if key == "fifo" else None) for key in keys]
    )
    db.commit()


def accept(store: Store, ledger: Ledger, queue: Listing, *keys: str) -> None:
    """Plan jobs and play the relay that publishes them."""
    plan(store, *keys)
    relay(ledger, queue)


def relay(ledger: Ledger, queue: Listing) -> list[Any]:
    """Publish what is planned; the rows."""
    import dataclasses

    rows = ledger.outbox.take(1_000)
    ids = [queue.put(row.job_key, message_id=f"m-{row.idempotency_key}") for row in rows]
    ledger.outbox.accepted(
        [dataclasses.replace(row, message_id=name) for row, name in zip(rows, ids, strict=True)]
    )
    return rows


def complete(ledger: Ledger, key: str) -> None:
    """The job's effect happens."""
    ledger.execute(Delivery(key), lambda db: None)


def found(result: Reconciliation) -> dict[str, set[str]]:
    """Job keys by cause."""
    with result:
        named: dict[str, set[str]] = {}
        for finding in result.findings():
            named.setdefault(finding.cause.value, set()).add(finding.job_key)
        assert {cause: len(keys) for cause, keys in named.items()} == result.summary.causes
        return named


def test_all_is_explained_where_both_sides_agree(store: Store, ledger: Ledger) -> None:
    """Planned, held, leased, dead and isolated, completed and gone, cancelled and gone: no finding."""
    queue = Telling()
    accept(store, ledger, queue, "ready", "leased", "dead", "done", "gone", "new")
    queue.put("leased", "leased", "m-leased#0")
    queue.put("dead", "dead", "m-dead#0")
    ledger.failed(Delivery("dead"), "reject", None, isolated=True)
    complete(ledger, "done")
    ledger.cancel(["gone"])
    del queue.messages["m-done#0"], queue.messages["m-gone#0"]
    plan(store, "planned")
    result = ledger.reconcile(QUEUE, queue)
    assert result.explained
    assert result.summary.jobs == {
        "planned": 1, "accepted": 3, "completed": 1, "isolated": 1, "cancelled": 1,
    }  # fmt: skip
    assert result.summary.waiting_for_relay == 1
    assert result.summary.held == {"ready": 2, "leased": 1, "dead": 1}
    assert found(result) == {}
    assert queue.asked == []


@pytest.mark.parametrize("kind", [Telling, Listing])
def test_each_fault_is_found_with_its_cause(store: Store, ledger: Ledger, kind: type[Listing]) -> None:
    """A queue that does not tell of single messages is listed twice, and its ends cannot be told apart."""
    queue = kind()
    keys = ("acked", "expired", "purged", "queued", "dead-queued", "stale", "fine")
    accept(store, ledger, queue, *keys)
    for key in ("acked", "expired", "purged"):
        del queue.messages[f"m-{key}#0"]
    for key in ("queued", "dead-queued"):
        complete(ledger, key)
    queue.put("dead-queued", "dead", "m-dead-queued#0")
    queue.put("stale", "dead", "m-stale#0")
    queue.put("stranger")
    if isinstance(queue, Telling):
        queue.ends = {"expired": "expired", "purged": "purged"}
    result = ledger.reconcile(QUEUE, queue, settle_seconds=0)
    assert not result.explained
    assert result.summary.unexplained == 6
    telling = kind is Telling
    assert bool(result.summary.limits) is not telling
    lost = {"early_ack": {"acked"}, "expired": {"expired"}, "purged": {"purged"}}
    assert found(result) == {
        **(lost if telling else {"unknown_end": {"acked", "expired", "purged"}}),
        "unknown_producer": {"stranger"},
        "still_queued": {"queued", "dead-queued"},
        "stale": {"stale"},
    }
    assert queue.listings == (1 if telling else 2)


def test_a_queue_that_cannot_list_is_told_plainly(store: Store, ledger: Ledger) -> None:
    """Accepted jobs cannot be accounted for, the answer is no, and the words say why; none is called lost."""
    accept(store, ledger, Telling(), "a", "b", "c")
    complete(ledger, "c")
    plan(store, "d")
    result = ledger.reconcile(QUEUE, object())
    assert (result.explained, result.summary.cannot_be_known, result.summary.unexplained) == (False, 2, 0)
    assert "cannot list" in result.summary.limits[0]
    assert found(result) == {}


@pytest.mark.parametrize("kind", [Telling, Listing])
def test_what_moves_under_the_look_is_not_reported(store: Store, ledger: Ledger, kind: type[Listing]) -> None:
    """Completed, published, redriven or dead-lettered between the listing and the ledger's reading."""
    queue = kind()
    accept(store, ledger, queue, "done", "died", "back")
    queue.put("back", "dead", "m-back#0")
    ledger.failed(Delivery("back"), "reject", None, isolated=True)
    queue.messages = {name: queue.messages[name] for name in ("m-done#0", "m-back#0")}  # one is not seen

    def traffic() -> None:
        complete(ledger, "done")
        del queue.messages["m-done#0"]
        queue.put("died", message_id="m-died#0")
        queue.put("back", "ready", "m-back#0")
        ledger.redriven(["back"])
        accept(store, ledger, queue, "fresh")
        queue.put("direct")  # published after the listing, by somebody else

    queue.then = traffic
    assert found(ledger.reconcile(QUEUE, queue)) == {}


def test_without_the_second_look_what_moves_would_be_reported(
    store: Store, ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The control: the first look's suspects, taken at their word."""
    queue = Telling()
    accept(store, ledger, queue, "done", "unseen")
    name = queue.messages.pop("m-unseen#0").message_id

    def traffic() -> None:
        complete(ledger, "done")
        queue.messages.clear()
        queue.put("unseen", message_id=name)

    def at_its_word(self: Any) -> None:
        for page in self._spool.suspects(100):
            for key, _, _ in page:
                self._report(None, key, reconcile.Verdict(reconcile.Cause.UNKNOWN_END))

    queue.then = traffic
    monkeypatch.setattr(reconcile._Run, "_ask", at_its_word)
    assert found(ledger.reconcile(QUEUE, queue)) == {"unknown_end": {"done", "unseen"}}


def test_a_leased_message_of_a_completed_job_has_a_moment(ledger: Ledger) -> None:
    """Its ack is on its way; C5's three weeks are no moment."""
    queue = Telling()
    complete(ledger, "done")
    queue.put("done", "leased")
    assert found(ledger.reconcile(QUEUE, queue)) == {}
    assert found(ledger.reconcile(QUEUE, queue, settle_seconds=0)) == {"still_queued": {"done"}}


def test_jobs_of_other_queues_and_keys_no_ledger_keeps(store: Store, ledger: Ledger) -> None:
    """A row counts for its key, whatever queue it names; a key that is no ledger's has no row."""
    db = store.connect()
    ledger.apply_once(db, "by hand", store.effect("by hand"))
    db.commit()
    queue = Telling()
    queue.put("by hand")
    queue.put("k" * 300)
    queue.put("nul\x00")
    assert found(ledger.reconcile(QUEUE, queue)) == {
        "still_queued": {"by hand"}, "unknown_producer": {"k" * 300, "nul\x00"},
    }  # fmt: skip


def test_direct_producers_can_be_in_order(ledger: Ledger) -> None:
    """Where applications publish without an outbox, a message without a row is only counted."""
    queue = Telling()
    queue.put("direct")
    result = ledger.reconcile(QUEUE, queue, unplanned=True)
    assert (result.explained, result.summary.unplanned) == (True, 1)
    assert found(result) == {}


def test_keys_meet_in_the_order_of_their_bytes(
    store: Store, ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Case, accents, astral characters and pages of two: database, spool and merge sort alike."""
    monkeypatch.setattr(reconcile, "PAGE", 2)
    keys = [
        "a",
        "B",
        "b",
        "Z",
        "z",
        "é",
        "e\u0301",
        "\ufb01",
        "\U0001f600",
        "\U00010000",
        "a b",
        "a-b",
        "a_b",
    ]
    queue = Telling()
    accept(store, ledger, queue, *keys)
    assert found(ledger.reconcile(QUEUE, queue)) == {}
    queue.messages.clear()
    assert found(ledger.reconcile(QUEUE, queue)) == {"early_ack": set(keys)}


def test_a_requeue_publishes_under_the_next_generation(store: Store, ledger: Ledger) -> None:
    """A new idempotency key, so that the queue takes it within 24 h too; no FIFO window swallows it."""
    queue = Telling()
    accept(store, ledger, queue, "lost", "fifo", "kept")
    del queue.messages["m-lost#0"], queue.messages["m-fifo#0"]
    with ledger.reconcile(QUEUE, queue) as result:
        steps = list(ledger.plan_repair(result, "requeue", queue))
        assert {(step.finding.job_key, step.action, step.obstacle) for step in steps} == {
            ("lost", "publish under generation 1", None), ("fifo", "publish under generation 1", None),
        }  # fmt: skip
        assert ledger.status().waiting_for_relay == 0  # a plan changes nothing
        assert ledger.repair(result, "requeue", queue).done == 2
        assert ledger.repair(result, "requeue", queue).changed == 2  # repeated, it does no more
    assert found(ledger.reconcile(QUEUE, queue)) == {}  # it waits for a relay, and is explained
    rows = {row.job_key: row for row in relay(ledger, queue)}
    assert {row.idempotency_key for row in rows.values()} == {"lost#1", "fifo#1"}
    assert (rows["lost"].deduplication_id, rows["fifo"].deduplication_id) == (None, "fifo#1")
    assert found(ledger.reconcile(QUEUE, queue)) == {}


def test_a_requeue_leaves_alone_what_moved_since(store: Store, ledger: Ledger) -> None:
    """Completed or repaired by somebody else meanwhile: the repair is fenced by what was judged."""
    queue = Telling()
    accept(store, ledger, queue, "late", "twice")
    queue.messages.clear()
    with ledger.reconcile(QUEUE, queue) as result:
        complete(ledger, "late")
        ledger.republish(["twice"])
        relay(ledger, queue)
        done = ledger.repair(result, "requeue", queue)
    assert (done.done, done.changed) == (0, 2)
    assert ledger.status().waiting_for_relay == 0


def test_a_job_without_a_payload_cannot_be_requeued(ledger: Ledger) -> None:
    """A direct producer's: the plan says so, and the repair does nothing."""
    queue = Telling()
    ledger.failed(Delivery("direct"), "retry", None)
    with ledger.reconcile(QUEUE, queue) as result:
        (step,) = ledger.plan_repair(result, "requeue", queue)
        assert "no payload" in (step.obstacle or "")
        assert ledger.repair(result, "requeue", queue).impossible == 1


def test_ack_adopt_and_sync(store: Store, ledger: Ledger) -> None:
    """Each repairs its own cause, and the next reconciliation has nothing to say."""
    queue = Telling()
    accept(store, ledger, queue, "done", "died", "back")
    complete(ledger, "done")
    queue.put("died", "dead", "m-died#0")
    ledger.failed(Delivery("back"), "reject", None, isolated=True)
    queue.put("stranger")
    for repair, count in (("ack", 1), ("adopt", 1), ("sync", 2)):
        with ledger.reconcile(QUEUE, queue, settle_seconds=0) as result:
            done = ledger.repair(result, repair, queue)  # type: ignore[arg-type]
            assert (done.done, done.changed, done.impossible) == (count, 0, 0), repair
    assert found(ledger.reconcile(QUEUE, queue)) == {}
    states = {key: ledger.job(key).state for key in ("died", "back", "stranger")}  # type: ignore[union-attr]
    assert states == {"died": "isolated", "back": "accepted", "stranger": "accepted"}


def test_a_queue_that_takes_nothing_out_says_so(ledger: Ledger) -> None:
    """The plan of an ack names the obstacle."""
    queue = Listing()
    complete(ledger, "done")
    queue.put("done")
    with ledger.reconcile(QUEUE, queue) as result:
        (step,) = ledger.plan_repair(result, "ack", queue)
        assert "cannot take a single message out" in (step.obstacle or "")


def test_progress_is_told(store: Store, ledger: Ledger) -> None:
    """What is done, how much more of it, of how much."""
    queue = Telling()
    accept(store, ledger, queue, "a", "b", "c")
    del queue.messages["m-a#0"]
    told: dict[str, int] = {}

    def progress(what: str, more: int, total: int | None) -> None:
        told[what] = told.get(what, 0) + more

    ledger.reconcile(QUEUE, queue, progress=progress).close()
    assert told == {f"listing {QUEUE}": 2, "comparing": 3, "looking again": 1}
