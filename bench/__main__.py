"""``make bench``: the figures of the README, each as a ratio of two sides measured in turn in this run."""

from __future__ import annotations

import argparse
import json
import platform
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import track
from rich.table import Table

from bench.bare import BareSqlite
from bench.clients import Batches, hammer
from bench.postgres import BarePostgres, OurPostgres, database
from bench.served import KEY, bare_server, redrive_server
from redrive.service import Service
from redrive.storage import commands as c
from redrive.storage.execute import apply
from redrive.storage.sqlite import SqliteEngine

BODY = b'{"date":"2026-10-23","shard":"eu-west","note":"' + b"x" * 150 + b'"}'
BATCH = 100
Side = Callable[[int], None]
_ERR = Console(stderr=True)


def engine_cycle(engine: SqliteEngine, rounds: int) -> None:
    """Publish, lease and ack ``rounds`` batches by engine calls."""

    def do(command: c.Command) -> Any:
        return engine.run(lambda tx: apply(tx, [command])).results[0]

    for _ in range(rounds):
        do(c.Publish("bench", [c.Entry(BODY) for _ in range(BATCH)]))
        leased = do(c.Lease("bench", BATCH, 30_000, "bench"))
        do(c.Ack([(m.message_id, m.handle) for m in leased.messages]))


def service_cycle(service: Service, rounds: int) -> None:
    """The same through the committer."""
    call = service.committer.call
    for _ in range(rounds):
        call(c.Publish("bench", [c.Entry(BODY) for _ in range(BATCH)]))
        leased = call(c.Lease("bench", BATCH, 30_000, "bench"))
        assert isinstance(leased, c.Leased)
        call(c.Ack([(m.message_id, m.handle) for m in leased.messages]))


def compare(name: str, ours: Side, theirs: Side, work: int, unit: int, pairs: int) -> dict[str, Any]:
    """Both sides in turn, ``pairs`` times after one warm-up; rates a second and their ratio by pair."""
    ours(max(1, work // 10)), theirs(max(1, work // 10))
    rates = [
        (work * unit / timed(ours, work), work * unit / timed(theirs, work))
        for _ in track(range(pairs), description=name, console=_ERR, transient=True)
    ]
    ratios = [ours_rate / theirs_rate for ours_rate, theirs_rate in rates]
    return {
        "name": name,
        "ours_per_second": round(statistics.median(rate for rate, _ in rates)),
        "theirs_per_second": round(statistics.median(rate for _, rate in rates)),
        "ratio": round(statistics.median(ratios), 2),
        "ratio_min": round(min(ratios), 2),
        "ratio_max": round(max(ratios), 2),
        "pairs": pairs,
    }


def timed(side: Side, work: int) -> float:
    """Seconds of one run."""
    start = time.perf_counter()
    side(work)
    return time.perf_counter() - start


def in_process(folder: Path, pairs: int, work: int) -> list[dict[str, Any]]:
    """Engine and service against a bare script on the same rows."""
    bare = BareSqlite(folder / "bare.db")
    engine = SqliteEngine(folder / "engine.db")
    service = Service(SqliteEngine(folder / "service.db"))
    service.start()

    def by_hand(rounds: int) -> None:
        for _ in range(rounds):
            bare.cycle(BODY, BATCH)

    results = [
        compare(
            "SQLite cycle, batches of 100: engine calls / bare script",
            lambda n: engine_cycle(engine, n), by_hand, work, BATCH, pairs,
        ),
        compare(
            "SQLite cycle, batches of 100: service / bare script",
            lambda n: service_cycle(service, n), by_hand, work, BATCH, pairs,
        ),
    ]  # fmt: skip
    engine.close(), service.close(), bare.close()
    return results


def over_rest(folder: Path, pairs: int, work: int) -> list[dict[str, Any]]:
    """REST against in process, and single publishes against a server that only answers."""
    service = Service(SqliteEngine(folder / "local.db"))
    service.start()
    with redrive_server(folder / "rest.db") as url, bare_server() as bare_url:
        client = Batches(url, KEY)

        def rest(rounds: int) -> None:
            for _ in range(rounds):
                client.cycle(BODY, BATCH)

        results = [
            compare(
                "cycle over REST, batches of 100 / in process",
                rest, lambda n: service_cycle(service, n), work, BATCH, pairs,
            ),
            compare(
                "single durable publishes, 64 connections / bare HTTP server",
                lambda n: hammer(url, KEY, BODY, 64, n), lambda n: hammer(bare_url, KEY, BODY, 64, n),
                work, 64, pairs,
            ),
        ]  # fmt: skip
        client.close()
    service.close()
    return results


def on_postgres(url: str | None, pairs: int, work: int) -> list[dict[str, Any]]:
    """The PostgreSQL engine against a bare script; nothing where no server can be had."""
    with database(url) as found:
        if found is None:
            _ERR.print("PostgreSQL is left out: give --postgres URL, or install the extra `test`")
            return []
        ours, theirs = OurPostgres(found), BarePostgres(found)

        def many(one: Side) -> Side:
            return lambda rounds: [one(BATCH) for _ in range(rounds)] and None

        results = [
            compare(
                "PostgreSQL publish, batches of 100: engine calls / bare script",
                many(lambda n: ours.publish(BODY, n)), many(lambda n: theirs.publish(BODY, n)),
                work, BATCH, pairs,
            ),
            compare(
                "PostgreSQL lease and ack, batches of 100: engine calls / bare script",
                many(ours.lease_and_ack), many(theirs.lease_and_ack), work, BATCH, pairs,
            ),
        ]  # fmt: skip
        ours.close(), theirs.close()
    return results


def main() -> int:
    """Measure, print the table, write the JSON."""
    parser = argparse.ArgumentParser(prog="make bench", description=__doc__)
    parser.add_argument("--pairs", type=int, default=5, help="measured pairs of each ratio")
    parser.add_argument("--work", type=int, default=60, help="rounds of each run")
    parser.add_argument(
        "--json", type=Path, default=Path("bench/results/latest.json"), help="where the JSON goes"
    )
    parser.add_argument("--postgres", metavar="URL", help="a database to measure on (default: a private one)")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="redrive-bench-") as name:
        results = in_process(Path(name), options.pairs, options.work)
        results += over_rest(Path(name), options.pairs, options.work)
    results += on_postgres(options.postgres, options.pairs, options.work)
    table = Table("what", "ours/s", "theirs/s", "ratio", "min … max")
    for row in results:
        table.add_row(
            row["name"],
            f"{row['ours_per_second']:,}",
            f"{row['theirs_per_second']:,}",
            f"{row['ratio']:.2f}",
            f"{row['ratio_min']:.2f} … {row['ratio_max']:.2f}",
        )
    Console().print(table)
    options.json.parent.mkdir(parents=True, exist_ok=True)
    where = {"python": platform.python_version(), "machine": platform.machine(), "system": platform.system()}
    options.json.write_text(json.dumps({"where": where, "results": results}, indent=2) + "\n")
    _ERR.print(f"written to {options.json}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
