"""The reference page in docs/ is the one that the declaration writes."""

from __future__ import annotations

from pathlib import Path

from redrive.contract.reference import reference
from redrive.domain.errors import ERRORS

PAGE = Path(__file__).parents[2] / "docs" / "contract.md"


def test_the_page_is_fresh() -> None:
    """Stale means: run `make docs`."""
    assert PAGE.read_text(encoding="utf-8") == reference()


def test_every_error_code_is_in_it() -> None:
    """The error table is whole."""
    text = reference()
    assert all(f"| `{code}` |" in text for code in ERRORS)
