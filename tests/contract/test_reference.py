"""The reference page in docs/ is the one that the declaration writes."""

from __future__ import annotations

from pathlib import Path

from redrive.contract.reference import main, reference
from redrive.domain.errors import ERRORS

PAGE = Path(__file__).parents[2] / "docs" / "contract.md"


def test_the_page_is_fresh() -> None:
    """Stale means: run python -m redrive.contract.reference."""
    assert PAGE.read_text(encoding="utf-8") == reference()


def test_every_error_code_is_in_it() -> None:
    """The error table is whole."""
    text = reference()
    assert all(f"| `{code}` |" in text for code in ERRORS)


def test_check_sees_a_stale_page(tmp_path: Path) -> None:
    """Writing makes it fresh, an edit makes it stale."""
    path = tmp_path / "contract.md"
    assert main(["--check", str(path)]) == 1
    assert main([str(path)]) == 0
    assert main(["--check", str(path)]) == 0
    path.write_text(path.read_text(encoding="utf-8") + "x", encoding="utf-8")
    assert main(["--check", str(path)]) == 1
