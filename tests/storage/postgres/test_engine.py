"""What is PostgreSQL's own: nodes side by side, broken connections, plans."""

from __future__ import annotations

import contextlib
import random
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import psycopg
import pytest
from tests.database import PostgresServer, wait_for

from redrive.domain.errors import Conflict
from redrive.storage import commands as c
from redrive.storage.conformance.asking import redrive
from redrive.storage.execute import Deferred, apply
from redrive.storage.port import Lost, UnknownOutcome
from redrive.storage.postgres import PostgresEngine
from redrive.storage.postgres import engine as engine_module
from redrive.storage.postgres.failures import Dropped
from redrive.storage.values import Claimed, DeadFilter

SECONDS = 20.0


def batch(engine: PostgresEngine, *commands: c.Command) -> list[Any]:
    """Apply commands as one batch; their results."""
    return engine.run(lambda tx: apply(tx, commands)).results


def publish(engine: PostgresEngine, count: int, queue: str = "jobs", **fields: Any) -> list[str]:
    """Publish messages; their ids."""
    entries: list[Any] = [c.Entry(b'{"n":%d}' % n, **fields) for n in range(count)]
    return [answer.message_id for answer in batch(engine, c.Publish(queue, entries))[0]]


def lease(engine: PostgresEngine, count: int, queue: str = "jobs") -> list[Claimed]:
    """Lease messages for a minute."""
    messages: list[Claimed] = batch(engine, c.Lease(queue, count, 60_000, "consumer"))[0].messages
    return messages


def answers_of(engines: Sequence[PostgresEngine], commands: Sequence[c.Command]) -> list[Any]:
    """Give each engine its command at the same moment; the answers, in the order in which they came."""
    answers: list[Any] = []
    together(
        *(
            lambda engine=engine, command=command: answers.extend(batch(engine, command))
            for engine, command in zip(engines, commands, strict=True)
        )
    )
    return answers


def together(*works: Callable[[], object]) -> None:
    """Run these side by side to the end; the first exception comes out."""
    failures: list[BaseException] = []
    barrier = threading.Barrier(len(works))

    def guarded(work: Callable[[], object]) -> None:
        try:
            barrier.wait(SECONDS)
            work()
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=guarded, args=(work,)) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(SECONDS)
        assert not thread.is_alive()
    if failures:
        raise failures[0]


@contextlib.contextmanager
def restarted(server: PostgresServer) -> Iterator[None]:
    """Kill the server; whatever happens meanwhile, it is started again."""
    server.kill()
    try:
        yield
    finally:
        server.start()


@contextlib.contextmanager
def commits_wait(url: str) -> Iterator[Callable[[], list[Any]]]:
    """Every COMMIT is stored, and not answered: it waits for a standby that never comes.

    Gives a function that lists the sessions which wait.
    """
    with psycopg.connect(url, autocommit=True) as admin:
        admin.execute("SET synchronous_commit = local")
        admin.execute("ALTER SYSTEM SET synchronous_standby_names = 'nobody'")
        admin.execute("SELECT pg_reload_conf()")
        try:
            wait_for(
                lambda: admin.execute("SHOW synchronous_standby_names").fetchall() == [("nobody",)],
                SECONDS,
                "the server to wait for a standby",
            )
            yield lambda: admin.execute(
                "SELECT pid FROM pg_stat_activity WHERE wait_event = 'SyncRep'"
            ).fetchall()
        finally:
            with psycopg.connect(url, autocommit=True) as last:  # the server may be another one by now
                last.execute("SET synchronous_commit = local")
                last.execute("ALTER SYSTEM RESET synchronous_standby_names")
                last.execute("SELECT pg_reload_conf()")


def deadlocks(nodes: Sequence[PostgresEngine], url: str) -> int:
    """How many deadlocks the server has seen in this database; closes the nodes, so that all are told."""
    for engine in nodes:
        engine.close()
    with psycopg.connect(url, autocommit=True) as admin:
        alone = (
            "SELECT count(*) = 0 FROM pg_stat_activity WHERE datname = current_database() "
            "AND pid <> pg_backend_pid() AND backend_type = 'client backend'"
        )
        wait_for(lambda: admin.execute(alone.encode()).fetchone() == (True,), SECONDS, "the sessions to end")
        rows = admin.execute("SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()")
        return int(rows.fetchall()[0][0])


@pytest.fixture
def nodes(postgres_url: str) -> Iterator[tuple[PostgresEngine, PostgresEngine]]:
    """Two engines over one database."""
    pair = PostgresEngine(postgres_url), PostgresEngine(postgres_url)
    yield pair
    for engine in pair:
        engine.close()


@pytest.fixture
def node(nodes: tuple[PostgresEngine, PostgresEngine]) -> PostgresEngine:
    """One engine."""
    return nodes[0]


def test_two_nodes_never_lease_the_same_message(nodes: tuple[PostgresEngine, PostgresEngine]) -> None:
    """Claims of two nodes are disjoint, and together they are everything."""
    ids = publish(nodes[0], 600)
    got: list[list[str]] = [[], []]

    def drain(number: int) -> None:
        while messages := lease(nodes[number], 7):
            got[number].extend(message.message_id for message in messages)

    together(lambda: drain(0), lambda: drain(1))
    assert sorted(got[0] + got[1]) == sorted(ids)


def test_a_node_skips_what_another_holds(nodes: tuple[PostgresEngine, PostgresEngine]) -> None:
    """While one node's claim is not committed, another node gets the next messages without waiting."""
    publish(nodes[0], 4)
    inside: list[str] = []

    def work(tx: Any) -> list[str]:
        mine = apply(tx, [c.Lease("jobs", 2, 60_000)]).results[0].messages  # type: ignore[attr-defined]
        inside.extend(message.message_id for message in lease(nodes[1], 2))
        return [message.message_id for message in mine]

    outside = nodes[0].run(work)
    assert len(inside) == 2
    assert not set(inside) & set(outside)


def test_a_settle_of_a_held_message_is_deferred(nodes: tuple[PostgresEngine, PostgresEngine]) -> None:
    """A message that another node's transaction holds makes the command wait for the next batch."""
    publish(nodes[0], 1)
    [message] = lease(nodes[0], 1)
    answers: list[Any] = []

    def work(tx: Any) -> None:
        tx.lock([message.message_id])
        answers.extend(batch(nodes[1], c.Nack(message.message_id, message.handle)))
        answers.extend(batch(nodes[1], c.Ack([(message.message_id, message.handle)])))

    nodes[0].run(work)
    assert [type(answer) for answer in answers] == [Deferred, Deferred]
    assert batch(nodes[1], c.Ack([(message.message_id, message.handle)])) == [[True]]


def test_a_held_message_is_not_forgotten(nodes: tuple[PostgresEngine, PostgresEngine]) -> None:
    """A purge goes round what another node holds, and says that there is more: a deleted queue's row waits
    for its last message."""
    batch(nodes[0], c.CreateQueue("jobs", None, None, {"enable_priority": True}))
    publish(nodes[0], 3, priority=7)
    [message] = lease(nodes[0], 1)
    answers: list[Any] = []
    [deleted] = batch(nodes[1], c.SetQueueState("jobs", "deleting"))

    def work(tx: Any) -> None:
        tx.lock([message.message_id])
        answers.extend(batch(nodes[1], c.Purge(deleted.name, deleting=True)))
        answers.extend(batch(nodes[1], c.Purge(deleted.name, deleting=True)))

    nodes[0].run(work)
    assert [(answer.removed, answer.more) for answer in answers] == [(2, True), (0, True)]
    assert batch(nodes[0], c.Nack(message.message_id, message.handle, delay_ms=0))[0].state == "ready"
    [last] = batch(nodes[1], c.Purge(deleted.name, deleting=True))
    assert (last.removed, last.more) == (1, False)
    assert nodes[0].check() == []


def test_levels_are_not_turned_off_over_a_held_message(nodes: tuple[PostgresEngine, PostgresEngine]) -> None:
    """A queue whose only message another node holds is not empty."""
    batch(nodes[0], c.CreateQueue("jobs", None, None, {"enable_priority": True}))
    [message_id] = publish(nodes[0], 1, priority=7)
    answers: list[Any] = []

    def work(tx: Any) -> None:
        tx.lock([message_id])
        answers.extend(batch(nodes[1], c.UpdateQueue("jobs", {"enable_priority": False})))

    nodes[0].run(work)
    assert [type(answer) for answer in answers] == [Conflict]


def test_an_expiry_goes_round_a_held_group(nodes: tuple[PostgresEngine, PostgresEngine]) -> None:
    """A lease whose group another node holds ends in a later batch; nobody waits, nothing is lost."""
    batch(nodes[0], c.CreateQueue("fifo", "fifo", None, {}))
    publish(nodes[0], 1, "fifo", group="a")
    batch(nodes[0], c.Lease("fifo", 1, 1, "consumer"), c.Tick())
    [queue] = nodes[0].read(lambda reader: reader.queue_page("", 1))
    publish(nodes[1], 1, "fifo", group="b")
    rounds: list[Any] = []

    def work(tx: Any) -> None:
        tx.groups([(queue.id, "a")])
        expire = [c.Publish("fifo", [c.Entry(b"{}", group="b")]), c.Expire()]
        rounds.append(wait_for(lambda: batch(nodes[1], *expire), SECONDS, "a batch")[1])

    nodes[0].run(work)
    assert rounds == [0]
    wait_for(lambda: batch(nodes[1], c.Expire()) == [1], SECONDS, "the lease to end")
    assert nodes[0].check() == []


def test_one_idempotency_key_on_two_nodes(nodes: tuple[PostgresEngine, PostgresEngine]) -> None:
    """The same request through two nodes at once is carried out once, and both get its answer."""
    batch(nodes[0], c.CreateQueue("jobs", None, None, {}))
    for number in range(20):
        key = c.Idempotent("queue.publish", f"key-{number}", b"12345678")
        answers = answers_of(nodes, [c.Publish("jobs", [c.Entry(b"{}")], idempotent=key)] * 2)
        assert answers[0][0].message_id == answers[1][0].message_id
    assert len(lease(nodes[0], 100)) == 20


def test_one_deduplication_id_on_two_nodes(nodes: tuple[PostgresEngine, PostgresEngine]) -> None:
    """A deduplication id is first seen by one of two nodes, whatever the groups."""
    batch(nodes[0], c.CreateQueue("fifo", "fifo", None, {}))
    for number in range(20):
        commands = [
            c.Publish("fifo", [c.Entry(b"{}", group=group, deduplication_id=f"d{number}")]) for group in "ab"
        ]
        answers = answers_of(nodes, commands)
        assert sorted(answer[0].duplicate for answer in answers) == [False, True]


def test_one_queue_made_by_two_nodes(nodes: tuple[PostgresEngine, PostgresEngine]) -> None:
    """A queue that two nodes make at once is one queue; other settings are refused to the second."""
    for number in range(10):
        commands = [c.CreateQueue(f"q{number}", None, None, {"max_retries": tries}) for tries in (1, 2)]
        answers = answers_of(nodes, commands)
        assert sorted(type(answer).__name__ for answer in answers) == ["Created", "QueueExists"]


def test_an_outage_is_taken_out_by_one_node(nodes: tuple[PostgresEngine, PostgresEngine]) -> None:
    """Two nodes that see the same gap shift the leases once."""
    batch(nodes[0], c.Tick())
    publish(nodes[0], 1)
    [message] = lease(nodes[0], 1)

    def until() -> int:
        return nodes[0].read(lambda reader: reader.message(message.message_id)).facts.lease_until_ms  # type: ignore[union-attr]

    before = until()
    now_ms = nodes[0].run(lambda tx: tx.now_ms)
    for engine in nodes:
        engine.clock = lambda: now_ms + 3_600_000
    together(*(lambda engine=engine: batch(engine, c.Tick()) for engine in nodes))
    assert 3_590_000 < until() - before < 3_610_000


def test_mixed_batches_of_two_nodes(nodes: tuple[PostgresEngine, PostgresEngine], postgres_url: str) -> None:
    """Random batches on plain and FIFO queues from two nodes: none fails, none was ever in a deadlock (which
    the engine would have hidden by trying again), and the rows stay sound."""
    quick = {"max_retries": 1, "retry_policy": {"base_seconds": 0.001, "max_seconds": 0.001}}
    batch(
        nodes[0],
        *(c.CreateQueue(name, kind, None, quick) for name, kind in (("jobs", None), ("fifo", "fifo"))),  # type: ignore[arg-type]
    )

    def live(engine: PostgresEngine, seed: int) -> None:
        chance = random.Random(seed)
        held: list[Claimed] = []
        for _ in range(150):
            queue = chance.choice(["jobs", "fifo", "fifo.dlq"])
            commands: list[c.Command] = []
            for message in held[: chance.randint(0, 6)]:
                held.remove(message)
                make = chance.choice([c.Nack, c.Reject, c.Release, None])
                if make is None:
                    commands.append(c.Ack([(message.message_id, message.handle)]))
                else:
                    commands.append(make(message.message_id, message.handle))
            groups = ["a", "b", "c", "d"] if queue.startswith("fifo") else [None]
            entries: list[Any] = [c.Entry(b"{}", group=chance.choice(groups)) for _ in range(3)]
            commands += [c.Publish(queue, entries), c.Lease("jobs", 5, 60_000), c.Lease("fifo", 3, 60_000)]
            dead = [c.Lease("fifo.dlq", 2, 60_000), redrive(DeadFilter(queue="fifo"), 2, explicit=False)]
            commands += chance.choice([[], [c.Tick(), c.Expire()], dead])
            for answer in batch(engine, *commands):
                if isinstance(answer, c.Leased):
                    held.extend(answer.messages)

    for name in ("fifo", "fifo.dlq"):  # of groups made at the same moment each node waits for the other's
        batch(nodes[0], c.Publish(name, [c.Entry(b"{}", group=key) for key in "abcd"]))
    together(lambda: live(nodes[0], 1), lambda: live(nodes[1], 2))
    assert nodes[0].check() == []
    assert deadlocks(nodes, postgres_url) == 0


def test_a_page_of_dead_letters_goes_on_past_those_that_leave(
    nodes: tuple[PostgresEngine, PostgresEngine],
) -> None:
    """One that another node redrives while the page is read is left out, and the page is full anyway."""
    batch(nodes[0], c.Publish("jobs", [c.Entry(b"{}") for _ in range(5)]))
    [leased] = batch(nodes[0], c.Lease("jobs", 5, 60_000))
    batch(nodes[0], *(c.Reject(message.message_id, message.handle) for message in leased.messages))
    select = DeadFilter(queue="jobs")

    def first_leaves(tx: Any) -> list[str]:
        whole = [record.message_id for record in tx.select_dead(select, (0, ""), 5)]
        leaving, read = [whole[0]], tx.open_records

        def open_records(ids: list[str]) -> Any:
            if leaving:
                gone = DeadFilter(queue="jobs", message_ids=(leaving.pop(),))
                batch(nodes[1], redrive(gone, 1, explicit=True))
            return read(ids)

        tx.open_records = open_records
        assert [record.message_id for record in tx.select_dead(select, (0, ""), 3)] == whole[1:4]
        return whole

    assert len(nodes[0].run(first_leaves)) == 5


def test_migrations_of_two_nodes(postgres_url: str) -> None:
    """Two nodes that start on an empty database migrate it once; a later one finds nothing to do."""
    engines: list[PostgresEngine] = []
    together(*[lambda: engines.append(PostgresEngine(postgres_url))] * 2)
    assert engines[0].migrate() == []
    for engine in engines:
        publish(engine, 1)
        engine.close()


def test_a_session_ended_within_commit_before_it_counts(node: PostgresEngine, postgres_url: str) -> None:
    """The server ends the session inside COMMIT, before the commit: the batch runs again, once stored."""
    with psycopg.connect(postgres_url, autocommit=True) as admin:
        admin.execute("SET search_path = redrive")
        admin.execute("CREATE SEQUENCE once")
        admin.execute(
            "CREATE FUNCTION end_me() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
            "IF nextval('redrive.once') = 1 THEN PERFORM pg_terminate_backend(pg_backend_pid()); "
            "PERFORM pg_sleep(5); END IF; RETURN NULL; END $$"
        )
        admin.execute(
            "CREATE CONSTRAINT TRIGGER t AFTER INSERT ON messages DEFERRABLE INITIALLY DEFERRED "
            "FOR EACH ROW EXECUTE FUNCTION end_me()"
        )
        ids = publish(node, 1)
        [(rounds,)] = admin.execute("SELECT nextval('once')").fetchall()
    assert rounds > 2, "the session was ended once, and the second round went through"
    assert [message.message_id for message in lease(node, 10)] == ids


def test_a_session_ended_within_commit_after_it_counts(node: PostgresEngine, postgres_url: str) -> None:
    """The server ends the session when the commit is stored and not yet answered: it is not done again."""
    rounds: list[int] = []

    def work(tx: Any) -> Any:
        rounds.append(1)
        return apply(tx, [c.Publish("jobs", [c.Entry(b"{}")])]).results

    with commits_wait(postgres_url) as waiting, psycopg.connect(postgres_url, autocommit=True) as admin:

        def end() -> None:
            [(pid,)] = wait_for(waiting, SECONDS, "the commit to wait")
            admin.execute("SELECT pg_terminate_backend(%s)", (pid,))

        together(lambda: node.run(work), end)
    assert rounds == [1], "the work ran once"
    assert len(lease(node, 10)) == 1


def test_an_unknown_commit_is_named(
    postgres_server: PostgresServer, postgres_url: str, node: PostgresEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server dies inside COMMIT and stays away: the outcome is named unknown, and is not tried again."""
    monkeypatch.setattr(engine_module, "_RESOLVE_SECONDS", 0.3)
    rounds: list[int] = []
    told: list[Exception] = []

    def work(tx: Any) -> None:
        rounds.append(1)
        apply(tx, [c.Publish("jobs", [c.Entry(b"{}")])])

    def ask() -> None:
        try:
            node.run(work)
        except Exception as error:
            told.append(error)

    with commits_wait(postgres_url) as waiting:
        thread = threading.Thread(target=ask)
        thread.start()
        wait_for(waiting, SECONDS, "the commit to wait")
        with restarted(postgres_server):
            thread.join(SECONDS)
    assert [type(error) for error in told] == [UnknownOutcome]
    assert "broke in COMMIT" in str(told[0])
    assert rounds == [1]
    wait_for(lambda: _published(node), SECONDS, "the engine to go on")
    assert len(lease(node, 10)) == 2, "it had been stored all the same"


def test_a_number_given_away_again_is_not_taken_for_ours(
    postgres_server: PostgresServer, postgres_url: str, node: PostgresEngine
) -> None:
    """A crash forgets transactions, and others get their numbers: "committed" is then believed only of a
    history without a crash, "in the future" and "aborted" always."""
    publish(node, 1)
    history, broken = node._history, Dropped("the connection broke")

    def number() -> int:
        with psycopg.connect(postgres_url) as other:
            return int(other.execute("SELECT pg_current_xact_id()::text").fetchall()[0][0])

    lost = number() + 100
    assert node._committed(str(lost), history, broken) is False, "nobody has had this number yet"
    assert node._committed(str(number()), history, broken) is True
    with restarted(postgres_server):
        pass
    wait_for(lambda: _published(node), SECONDS, "the engine to go on")
    while number() < lost:  # others commit, up to the number that the crash forgot
        pass
    with pytest.raises(UnknownOutcome, match="by us or by another"):
        node._committed(str(lost), history, broken)
    assert node._committed(str(lost), node._history, broken) is True, "the control: without the crash"


def test_a_killed_server_loses_nothing_acknowledged(
    postgres_server: PostgresServer, node: PostgresEngine
) -> None:
    """kill -9 of the server under load: what was answered is there, and the engine goes on by itself."""
    acknowledged: list[str] = []
    stop, many, killed, again = (threading.Event() for _ in range(4))

    def load() -> None:
        while not stop.is_set():
            late = killed.is_set()
            try:
                acknowledged.extend(publish(node, 3))
            except Lost:
                stop.wait(0.02)
            else:
                if len(acknowledged) > 60:
                    many.set()
                if late:
                    again.set()

    thread = threading.Thread(target=load)
    thread.start()
    try:
        wait_for(many, SECONDS, "some publishes")
        with restarted(postgres_server):
            # it has noticed when it looked for the server in vain: to go on, or to ask about a COMMIT
            wait_for(lambda: node._failures, SECONDS, "the engine to notice")
            killed.set()
        wait_for(again, SECONDS, "the engine to go on by itself")
    finally:
        stop.set()
        thread.join(SECONDS)
    kept: set[str] = set()
    while messages := lease(node, 1000):
        kept.update(message.message_id for message in messages)
    assert set(acknowledged) <= kept
    assert node.check() == []


def test_a_read_only_database_is_named(node: PostgresEngine, postgres_url: str) -> None:
    """A standby, or a database set read-only, is told from one that cannot be reached."""
    with psycopg.connect(postgres_url, autocommit=True) as admin:
        name = postgres_url.rsplit("/", 1)[1]
        admin.execute(f"ALTER DATABASE {name} SET default_transaction_read_only = on".encode())
        admin.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            "WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )
        with pytest.raises(Lost, match="read-only"):
            publish(node, 1)
        admin.execute(f"ALTER DATABASE {name} SET default_transaction_read_only = off".encode())
    wait_for(lambda: _published(node), SECONDS, "the engine to go on")


def _published(engine: PostgresEngine) -> bool:
    try:
        publish(engine, 1)
    except Lost:
        return False
    return True


@pytest.mark.parametrize(
    ("damage", "finding"),
    [
        ("UPDATE groups SET live = live + 1", "counts 2 messages and holds 1"),
        ("UPDATE groups SET busy = NULL", "is not busy with it"),
        ("UPDATE messages SET slot = 2", "is not leased in it"),
        ("UPDATE messages SET slot = 2; UPDATE groups SET busy = NULL", "is stranded"),
        ("UPDATE messages SET dead = true", "has no open dead-letter record"),
        ("UPDATE messages SET queue_id = 99", "does not exist"),
    ],
)
def test_check_finds_contradictions(
    node: PostgresEngine, postgres_url: str, damage: str, finding: str
) -> None:
    """A sound store has no findings; each kind of contradiction is found and named."""
    batch(node, c.CreateQueue("fifo", "fifo", None, {}))
    publish(node, 1, "fifo", group="a")
    lease(node, 1, "fifo")
    assert node.check() == []
    with psycopg.connect(postgres_url, autocommit=True) as admin:
        admin.execute("SET search_path = redrive")
        admin.execute(damage.encode())
    assert any(finding in problem for problem in node.check()), node.check()
