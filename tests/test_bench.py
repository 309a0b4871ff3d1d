"""The benchmark's own machine: it covers the Speed table, keeps what was measured, and makes the page."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from bench import report
from bench.registry import rows
from bench.results import circumstances, load, merge
from bench.rows import Figure, Row, Settings, Unavailable, in_turn

# The table's rows in its order, and the wanted figures: a row that is renamed, lost or softened fails here.
TABLE = {
    "SQLite, publish + lease + ack, batches of 100": {"sqlite-engine": 0.8, "sqlite-service": 0.6},
    "PostgreSQL, batches of 100": {"postgres-lease-ack": 0.8, "postgres-publish": 0.7},
    "worker with an empty handler": {"drain-pgqueuer": 2.0, "drain-graphile-worker": 1.0},
    "64 callers with one message each": {"callers-sqlite": 8, "callers-postgres": 8},
    "over REST, batches of 100": {"rest-cycle": 0.6},
    "single durable publishes from 64 connections": {"rest-single-publish": 0.7},
    "publish to handler start": {"publish-to-start": 3},
    "lease p99 in a full store; FIFO with a blocked group": {
        "lease-full-sqlite": 1.5,
        "lease-full-postgres": 1.5,
        "lease-blocked-sqlite": 1.5,
        "lease-blocked-postgres": 1.5,
    },
    "the same under an old snapshot": {"lease-old-snapshot-postgres": 3},
    "every job nacked": {"nacks-sqlite": 0.5, "nacks-postgres": 0.5},
    "keyed publishes": {"keyed-full-sqlite": 0.8, "keyed-full-postgres": 0.8},
    "purge; expiry": {"purge-sqlite": 2, "purge-postgres": 2, "expiry-sqlite": 2, "expiry-postgres": 2},
    "others while all jobs fail": {"failing-sqlite": 2, "failing-postgres": 2},
    "others while dead letters are looked at; while a plan drains them": {
        "dead-looks-sqlite": 2,
        "dead-looks-postgres": 2,
        "dead-drain-sqlite": 1.2,
        "dead-drain-postgres": 1.2,
    },
    "two nodes against one": {"nodes-two-against-one": 1},
    "worker with the ledger on": {"ledger-sqlite": 0.7, "ledger-postgres": 0.7},
    "1,000 idle long polls: CPU; queries": {
        "idle-polls-sqlite": 3,
        "idle-polls-postgres": 3,
        "idle-polls-queries-postgres": 2,
    },
    "server memory; start": {"memory-sqlite": 200, "memory-postgres": 200, "recovery-sqlite": 3},
}
LOWER_IS_BETTER = (
    "publish-to-start",
    "lease-",
    "purge-",
    "expiry-",
    "failing-",
    "dead-",
    "idle-",
    "memory-",
    "recovery-",
)


def a_row(better: str = "at least", wanted: float = 0.8) -> Row:
    """A row that cannot be measured."""

    def measure(settings: Settings) -> Figure:
        settings.need_postgres()
        raise AssertionError("nothing to measure with")

    return Row("example", "this against that", wanted, better, measure)


def test_every_row_of_the_table_is_there_with_its_wanted_figure() -> None:
    """None missing, none extra, none softened."""
    wanted = {name: figure for part in TABLE.values() for name, figure in part.items()}
    assert {name: row.wanted for name, row in rows().items()} == wanted
    for name, row in rows().items():
        assert row.better == ("at most" if name.startswith(LOWER_IS_BETTER) else "at least"), name


def test_the_median_of_the_pairs_is_held_against_what_is_wanted() -> None:
    """One good pair among bad ones reaches nothing, in either direction."""
    figure = Figure.of("/s", [(9, 10), (7, 10), (6, 10)])
    assert (figure.median, figure.min, figure.max) == (0.7, 0.6, 0.9)
    assert not a_row(wanted=0.8).reached(figure)
    assert a_row(wanted=0.7).reached(figure)
    assert not a_row("at most", 0.6).reached(figure)
    assert a_row("at most", 0.7).reached(figure)
    assert Figure.alone("s", [2.0, 4.0, 3.0]).median == 3.0


def test_sides_take_turns_at_being_first() -> None:
    """And each figure stays on its own side."""
    order: list[str] = []

    def side(name: str, figure: float) -> float:
        order.append(name)
        return figure

    pairs = in_turn(3, lambda: side("ours", 1.0), lambda: side("theirs", 2.0))
    assert pairs == [(1.0, 2.0)] * 3
    assert order == ["ours", "theirs", "theirs", "ours", "ours", "theirs"]


def test_a_row_without_its_database_says_so(tmp_path: Path) -> None:
    """It is left out by name, not failed."""
    with pytest.raises(Unavailable, match="no PostgreSQL"):
        a_row().measure(Settings(tmp_path))


def test_rows_are_merged_by_name(tmp_path: Path) -> None:
    """A row measured again replaces itself only; the order is the table's, the file whole at any time."""
    path = tmp_path / "results" / "latest.json"
    for name, ours in (("two", 1.0), ("one", 2.0), ("two", 3.0), ("gone", 4.0)):
        figure = Figure.of("/s", [(ours, 1.0)])
        merge(path, name, {**a_row().result(figure), **circumstances("make bench")}, ["one", "two"])
    results = load(path)
    assert list(results) == ["one", "two", "gone"]
    assert (results["one"]["ours"], results["two"]["ours"]) == (2.0, 3.0)
    assert {"date", "commit", "machine", "python", "command"} <= results["one"].keys()
    assert [file.name for file in path.parent.iterdir()] == ["latest.json"]


def test_the_page_shows_every_row_and_names_what_is_not_reached() -> None:
    """Ratios, bounds without another side, how to repeat, and the profile as it was written."""
    slow = a_row().result(
        Figure.of("/s", [(1_000.0, 4_000.0), (1_200.0, 4_000.0)] * 3, "100 messages a round")
    )
    few = a_row(wanted=0.1).result(Figure.of("/s", [(1.0, 1.0)] * 4))
    bound = a_row("at most", 200).result(Figure.alone("MiB", [150.0]))
    here = circumstances('make bench ARGS="example"')
    results = {"slow": slow, "bound": bound, "few": few}
    page = report.page({name: {**row, **here} for name, row in results.items()}, "## Where\n\nIn | fsync.\n")
    ratio = "| 1,100 /s | 4,000 /s | 0.28 (0.25 … 0.30) | at least 0.8 | **no** |"
    assert f"| `slow` | this against that {ratio}" in page
    assert "| 150 MiB | – | 150 (150 … 150) | at most 200 | yes |" in page
    assert "Of 3 rows 1 reach what is wanted, 1 do not, 1 are open." in page
    assert "| at least 0.1 | open: 4 of 5 pairs |" in page
    assert "## Where\n\nIn | fsync.\n" in page
    assert '- `make bench ARGS="example"`, 6 values: 100 messages a round.' in page


def test_the_report_needs_nothing_but_the_standard_library() -> None:
    """It runs in the light environment too, where `make docs` and `make check` call it."""
    code = (
        "import sys, bench.report; from pathlib import Path; "
        "print(sorted({m.partition('.')[0] for m in sys.modules} & {'redrive', 'rich', 'psycopg', 'apsw'}))"
    )
    root = Path(report.__file__).parents[1]
    done = subprocess.run(
        [sys.executable, "-S", "-c", code], cwd=root, capture_output=True, text=True, timeout=30, check=True
    )
    assert done.stdout.strip() == "[]"


def test_results_of_another_form_are_no_rows(tmp_path: Path) -> None:
    """A file from before rows had names is measured anew."""
    path = tmp_path / "latest.json"
    path.write_text(json.dumps({"where": {}, "results": []}))
    assert load(path) == {}
