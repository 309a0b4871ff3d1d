"""The SQL files: headers, transitions and placeholders."""

from __future__ import annotations

import re
import sqlite3
from pathlib import Path

import pytest

import redrive.ledger
from redrive.ledger import catalog
from redrive.ledger.states import FINAL, TRANSITIONS, State
from redrive.ledger.steps import Control

STATEMENTS = Path(redrive.ledger.__file__).parent / "statements"
FILES = sorted(STATEMENTS.glob("*/*.sql"))
EVENTS = {"receipt": "complete", "outbox_accepted": "accept", "redrive": "redrive", "republish": "republish",
          "cancel": "cancel", "requeue": "requeue", "note_isolated": "note_isolated"}  # fmt: skip


@pytest.mark.parametrize("file", FILES, ids=lambda file: f"{file.parent.name}/{file.stem}")
def test_every_statement_says_what_it_is_for(file: Path) -> None:
    """A purpose line, and for those that touch jobs the index."""
    text = file.read_text()
    assert re.search(r"^-- purpose: \S", text)
    if "job_key = " in text:
        assert "-- index: " in text


@pytest.mark.parametrize("name", EVENTS)
def test_the_transitions_in_the_headers_are_those_of_the_table(name: str) -> None:
    """From and to, as redrive.ledger.states has them."""
    allowed = TRANSITIONS[EVENTS[name]]
    for file in STATEMENTS.glob(f"*/{name}.sql"):
        header = re.search(r"^-- transition: (.+) -> (\w+)", file.read_text(), re.MULTILINE)
        assert header is not None
        starts = {
            State[word.strip().upper()]
            for word in re.split(r",| or ", header[1])
            if word.strip() != "unknown"
        }
        assert {(start, State[header[2].upper()]) for start in starts} == set(allowed)


def test_nothing_leaves_a_final_state() -> None:
    """The table has no way out of completed and cancelled."""
    assert not [pair for pairs in TRANSITIONS.values() for pair in pairs if pair[0] in FINAL]


@pytest.mark.parametrize("dialect", catalog.DIALECTS)
def test_every_control_has_its_statements_everywhere(dialect: str) -> None:
    """Each reads, and has no parameters."""
    for control in Control:
        assert all(part.names == () for part in catalog.parts(dialect, control.value, "pyformat"))


def test_placeholders_of_both_styles() -> None:
    """Named parameters once each; a percent sign survives."""
    part = catalog._part("SELECT :a, '%', :b_2x, :a::text", "pyformat")
    assert part.names == ("a", "b_2x")
    assert part.text == "SELECT %(a)s, '%%', %(b_2x)s, %(a)s::text"


@pytest.mark.parametrize(
    "name", ["receipt_held", "result", "job", "cancel", "outbox_due", "outbox_claim", "attempts", "completed"]
)
def test_sqlite_uses_an_index(name: str, tmp_path: Path) -> None:
    """No statement on the way of a job reads a whole table."""
    db = sqlite3.connect(tmp_path / "plan.db")
    for _, statements in catalog.migrations("sqlite"):
        for sql in statements:
            db.execute(sql)
    for part in catalog.parts("sqlite", name, "named"):
        plan = db.execute(f"EXPLAIN QUERY PLAN {part.text}", dict.fromkeys(part.names, 1)).fetchall()
        assert not [row for row in plan if re.match(r"SCAN (redrive_|job|payload)", row[3])], plan
    db.close()
