"""``make bench``: the rows of the Speed table, each measured side by side in turn; saved after each row."""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from rich.box import SIMPLE
from rich.console import Console
from rich.table import Table

from bench.postgres import fresh, server
from bench.registry import rows
from bench.report import number
from bench.results import RESULTS, circumstances, load, merge
from bench.rows import Figure, Row, Settings, Unavailable

_ERR = Console(stderr=True)


def options() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(prog="make bench", description=__doc__)
    parser.add_argument(
        "rows", metavar="ROW", nargs="*", help="rows by name (default: all; --list shows them)"
    )
    parser.add_argument("--pairs", type=int, default=5, help="measured pairs of each row")
    parser.add_argument("--work", type=int, default=60, help="rounds of each side in a pair")
    parser.add_argument("--postgres", metavar="URL", help="a server to measure on (default: a private one)")
    parser.add_argument("--json", type=Path, default=RESULTS, help="where the results are kept")
    parser.add_argument(
        "--list", action="store_true", help="name the rows and what is wanted, measure nothing"
    )
    given = parser.parse_args()
    if unknown := set(given.rows) - rows().keys():
        parser.error(f"no row {', '.join(sorted(unknown))}; --list names them")
    if given.pairs < 1 or given.work < 1:
        parser.error("--pairs and --work must be at least 1")
    return given


def measure(row: Row, given: argparse.Namespace, postgres: str | None) -> Figure:
    """One row, in a folder and a database of its own. Raises ``Unavailable``."""
    with tempfile.TemporaryDirectory(prefix="redrive-bench-") as folder, fresh(postgres) as url:
        return row.measure(Settings(Path(folder), given.pairs, given.work, url))


def main() -> int:
    """Measure, save after each row, print the table; 1 when a row failed."""
    given = options()
    chosen = [row for name, row in rows().items() if not given.rows or name in given.rows]
    if given.list:
        for row in chosen:
            Console().print(f"{row.name:<28} {row.better} {row.wanted:g}: {row.what}", soft_wrap=True)
        return 0
    left: dict[str, str] = {}
    with server(given.postgres) as postgres:
        for row in chosen:
            _ERR.print(f"{row.name} …")
            try:
                figure = measure(row, given, postgres)
            except Unavailable as missing:
                left[row.name] = f"left out: {missing}"
            except Exception as error:  # noqa: BLE001 - a long run goes on to the rows that work
                _ERR.print_exception()
                left[row.name] = f"failed: {error!r}"
            else:
                command = f'make bench ARGS="{row.name} --pairs {given.pairs} --work {given.work}"'
                merge(given.json, row.name, {**row.result(figure), **circumstances(command)}, list(rows()))
    show(chosen, left, given.json)
    return int(any(why.startswith("failed") for why in left.values()))


def show(chosen: list[Row], left: dict[str, str], path: Path) -> None:
    """The table of what was measured now, and what was not."""
    table = Table(box=SIMPLE, padding=(0, 1, 0, 0))
    for column in ("row", "ours", "theirs", "ratio", "min … max", "wanted", "reached"):
        table.add_column(column, overflow="fold")
    results = load(path)
    for row in chosen:
        if row.name in left:
            continue
        result = results[row.name]
        theirs = result["theirs"]
        table.add_row(
            row.name,
            f"{number(result['ours'])} {result['unit']}",
            "" if theirs is None else number(theirs),
            number(result["median"]),
            f"{number(result['min'])} … {number(result['max'])}",
            f"{row.better} {row.wanted:g}",
            "yes" if result["reached"] else "NO",
        )
    Console().print(table)
    for name, why in left.items():
        _ERR.print(f"{name}: {why}", soft_wrap=True)
    _ERR.print(f"results are in {path}")


if __name__ == "__main__":
    sys.exit(main())
