"""Two server processes over one PostgreSQL, against one of them: the same callers, the same queue.

Few callers with large batches, so that the callers and the database leave the cores to the servers as far as
they can; both servers run at both sides.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from bench import postgres
from bench.rows import Figure, Row, Settings, rates
from bench.served import KEY
from bench.steady_served import server
from redrive.transports import Entry
from redrive.transports.contract_transport import ContractTransport
from redrive.transports.rest import open_rest

CALLERS = 2
BATCH = 100
QUEUE = "nodes"
_NOTE = "x" * 150


def _cycle(client: ContractTransport, rounds: int) -> None:
    """Publish a batch, lease as many, acknowledge them."""
    entries = [Entry(payload={"shard": "eu-west", "note": _NOTE})] * BATCH
    for _ in range(rounds):
        client.publish(QUEUE, entries)
        held = 0
        while held < BATCH:  # another caller's lease may hold some of them for a moment
            lease = client.consume(
                QUEUE, max_messages=BATCH - held, visibility_timeout=600, wait_seconds=5, consumer_id="bench"
            )
            assert lease.messages, "messages are missing"
            done = client.ack(QUEUE, [(one.message_id, one.receipt_handle) for one in lease.messages])
            assert all(one is True for one in done), done
            held += len(lease.messages)


def _both(settings: Settings) -> Figure:
    with (
        postgres.fresh(settings.need_postgres()) as url,
        server(str(url)) as (_, first, _),
        server(str(url)) as (_, second, _),
        contextlib.ExitStack() as stack,
        ThreadPoolExecutor(CALLERS) as pool,
    ):

        def callers(*urls: str) -> list[ContractTransport]:
            made = [open_rest(urls[number % len(urls)], KEY) for number in range(CALLERS)]
            for client in made:
                stack.callback(client.close)
            return made

        one, two = callers(first), callers(first, second)

        def side(clients: Sequence[ContractTransport], rounds: int) -> None:
            for done in [pool.submit(_cycle, client, rounds) for client in clients]:
                done.result(300)

        notes = (
            f"{CALLERS} callers over REST; messages published, leased and acknowledged in batches of {BATCH}"
        )
        return rates(
            lambda rounds: side(two, rounds),
            lambda rounds: side(one, rounds),
            settings,
            CALLERS * BATCH,
            notes,
        )


ROWS = [
    Row("nodes-two-against-one", "PostgreSQL: two nodes against one", 1.0, "at least", _both),
]
