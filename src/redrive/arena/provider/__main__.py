"""``python -m redrive.arena.provider``: the provider as a process of its own.

Prints one line ``ready http://127.0.0.1:<port>`` when it serves; SIGTERM and SIGINT stop it. Its books are
drawn from the seed as the game's are (``--payments``, ``--date``), or read from ``--data``, JSON lines of
``{"account", …fields of an entry}``.
"""

from __future__ import annotations

import argparse
import json
import signal
import sys
import threading
from pathlib import Path

from redrive.arena.game.seed import Night
from redrive.arena.provider.book import Books
from redrive.arena.provider.faults import FaultPlan, Faults
from redrive.arena.provider.server import ProviderServer
from redrive.arena.records import Entry


def main(arguments: list[str] | None = None) -> int:
    """Run the provider until a signal; the exit code."""
    options = _options().parse_args(arguments)
    try:
        plan = FaultPlan.from_wire(json.loads(options.faults))
        entries = read_entries(options.data) if options.data else _drawn(options)
    except (ValueError, KeyError, TypeError, OSError) as problem:
        print(f"provider: {problem}", file=sys.stderr)
        return 2
    server = ProviderServer(Books(entries), Faults(options.seed, plan), options.port)
    stopped = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stopped.set())
    threading.Thread(target=server.serve_forever, name="provider", daemon=True).start()
    print(f"ready {server.address}", flush=True)
    stopped.wait()
    server.stop()
    return 0


def read_entries(path: Path) -> dict[str, list[Entry]]:
    """The entries by account of a JSON-lines file; ``ValueError`` names the line that is not one."""
    found: dict[str, list[Entry]] = {}
    with path.open(encoding="utf-8") as lines:
        for number, line in enumerate(lines, 1):
            try:
                row = json.loads(line)
                account = str(row.pop("account"))
                found.setdefault(account, []).append(Entry(**row))
            except (ValueError, KeyError, TypeError, AttributeError) as problem:
                raise ValueError(f"{path.name} line {number}: {problem}") from None
    return found


def _drawn(options: argparse.Namespace) -> dict[str, list[Entry]]:
    return Night.drawn(
        options.seed, payments=options.payments, matches_count=0, day=options.date, now_ms=0
    ).entries


def _options() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m redrive.arena.provider", description=__doc__)
    parser.add_argument("--port", type=int, default=0, help="0 takes a free one")
    parser.add_argument("--seed", type=int, default=1, help="of the books and of the faults")
    parser.add_argument("--payments", type=int, default=12_000, help="how many payments of ours to draw")
    parser.add_argument("--date", default="2026-10-23", help="the UTC day of the night")
    parser.add_argument("--data", type=Path, help="entries as JSON lines instead of drawn ones")
    parser.add_argument("--faults", default="{}", help="a fault plan as JSON")
    return parser


if __name__ == "__main__":
    sys.exit(main())
