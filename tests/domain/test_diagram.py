"""The page about the state machine."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from redrive.domain import diagram
from redrive.domain.states import TRANSITIONS, Event, State

PAGE = Path(__file__).resolve().parents[2] / "docs" / "state-machine.md"


def test_the_page_is_fresh() -> None:
    """docs/state-machine.md is what the table says today (`make docs` writes it)."""
    assert PAGE.read_text(encoding="utf-8") == diagram.page()


def test_the_module_prints_the_page() -> None:
    """`python -m redrive.domain.diagram` is what tools/pages.sh runs."""
    run = subprocess.run(
        [sys.executable, "-m", "redrive.domain.diagram"],
        capture_output=True,
        text=True,
        timeout=30,
        check=True,
    )
    assert run.stdout == diagram.page()


def test_every_word_is_explained() -> None:
    """Each state, event and transition of the table stands on the page."""
    page = diagram.page()
    assert set(diagram.STATES) == set(State)
    assert set(diagram.EVENTS) == set(Event)
    for (source, event), targets in TRANSITIONS.items():
        for to in targets:
            assert f"| `{source}` | `{event}` | `{to}` |" in page
