"""What the statements' headers say of indexes is what the planner does on a filled store."""

from __future__ import annotations

import psycopg
import pytest

from redrive.storage.postgres import PostgresEngine
from redrive.storage.postgres.session import SQL, settings

FILL = """
INSERT INTO queues
    (name, kind, state, policy, implicit, holds_dead, created_ms, tokens, tokens_at_ms, limited)
SELECT 'q' || n, 'standard', 'active', '{}', false, false, 0, 1, 0, n % 10 = 0 FROM generate_series(1, 400) n;
INSERT INTO groups (queue_id, key, live, head_due_ms, blocked)
SELECT n % 400 + 1, 'g' || n, n % 20, CASE WHEN n % 20 = 0 THEN NULL ELSE n END, (n % 50 = 0)::int
FROM generate_series(1, 8000) n;
INSERT INTO messages (message_id, queue_id, slot, priority, due_ms, expires_ms, enqueued_ms,
    group_id, position, lease_until_ms, body_hash, body)
SELECT gen_random_uuid(), n % 400 + 1, n % 4, n % 10, n, n * 10, n,
    CASE WHEN n % 4 = 2 THEN n % 8000 + 1 END, n, n, 'x', 'x' FROM generate_series(1, 40000) n;
INSERT INTO dead_letters (message_id, redrive_count, delivery, dlq_id, origin, source_position, blocks,
    job_key, reason, fingerprint, attempts, first_failed_ms, dead_ms, expires_ms, closed_ms)
SELECT gen_random_uuid(), 0, 1, n % 400 + 1, 'q' || n % 400 + 1, 0, false, 'k' || n, 'rejected',
    'f' || n % 7, 1, n, n, n, CASE WHEN n % 3 = 0 THEN n END FROM generate_series(1, 12000) n;
INSERT INTO tombstones (message_id, queue, job_key, cause, enqueued_ms, removed_ms, body_hash)
SELECT gen_random_uuid(), 'q', 'k' || n, 'purged', n, n, 'x' FROM generate_series(1, 8000) n;
INSERT INTO attempts (message_id, delivery, attempt, leased_ms, ended_ms, ended)
SELECT gen_random_uuid(), 1, 1, n, n, 'nacked' FROM generate_series(1, 8000) n;
INSERT INTO idempotency (slot, key_hash, request_hash, answer)
SELECT n % 6, sha256(n::text::bytea), 'x', 'x' FROM generate_series(1, 8000) n;
INSERT INTO dedup (queue_id, hash, message_id, until_ms)
SELECT n % 400 + 1, sha256(n::text::bytea), gen_random_uuid(), n FROM generate_series(1, 8000) n;
INSERT INTO plans (plan_id, queue, state, finished_ms, made_with, progress)
SELECT gen_random_uuid(), 'q', 'completed', n, 'x', 'x' FROM generate_series(1, 2000) n;
INSERT INTO plan_items (plan, n, message_id, redrive_count, job_key, outcome, failures, returned)
SELECT n % 2000 + 1, n, gen_random_uuid(), 0, 'k', 'completed', 0, false FROM generate_series(1, 40000) n;
INSERT INTO queue_stats (queue_id, slot, node, counters)
SELECT n % 400 + 1, n, 'n', 'x' FROM generate_series(1, 8000) n;
"""


@pytest.fixture
def filled(postgres_url: str) -> str:
    """A database with rows of every kind, analysed."""
    PostgresEngine(postgres_url).close()
    with psycopg.connect(settings(postgres_url, "redrive", "fill"), autocommit=True) as admin:
        admin.execute(FILL.encode())
        admin.execute("ANALYZE")
    return postgres_url


def explain(connection: psycopg.Connection, statement: str) -> str:
    """The plan that every execution of a statement shares."""
    result = connection.pgconn.exec_(f"EXPLAIN (GENERIC_PLAN) {statement}".encode())
    assert not result.error_message, f"{statement}\n{result.error_message}"
    return "\n".join((result.get_value(row, 0) or b"").decode() for row in range(result.ntuples))


def test_plans_are_what_the_headers_say(filled: str) -> None:
    """Every statement with an `index:` header uses each index that it names, and scans no whole table."""
    with psycopg.connect(settings(filled, "redrive", "writer"), autocommit=True) as admin:
        if admin.info.server_version < 160000:
            pytest.skip("EXPLAIN (GENERIC_PLAN) came with PostgreSQL 16")
        wrong = []
        for statement in SQL.values():
            names = statement.header.get("index", "")
            if names:
                plan = explain(admin, statement.sql)
                missing = [name for name in names.split(", ") if f" {name} " not in plan]
                if missing or "Seq Scan on" in plan:
                    wrong.append(f"{statement.name}: {missing}\n{plan}")
        assert not wrong, "\n\n".join(wrong)
        for name in ("claim", "claim_part", "ack", "lease"):
            assert "Tid Scan on messages" in explain(admin, SQL[name].sql), name
        assert "Tid Scan on groups" in explain(admin, SQL["busy_groups"].sql)


def test_a_missing_index_would_be_noticed(filled: str) -> None:
    """The control: without its index, the claim's plan is another one."""
    with psycopg.connect(settings(filled, "redrive", "writer"), autocommit=True) as admin:
        if admin.info.server_version < 160000:
            pytest.skip("EXPLAIN (GENERIC_PLAN) came with PostgreSQL 16")
        assert " ready " in explain(admin, SQL["claim"].sql)
        admin.execute("DROP INDEX ready")
        assert " ready " not in explain(admin, SQL["claim"].sql)
