"""Every case from the field is a test that is named after it, shown by tests of another name, or waits.

The cases are kinds of faults that users of other job systems reported in public; letters and numbers are
those of the collection that this project keeps beside its design. A new one is added here first.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PLACES = ("tests", "src/redrive/storage/conformance")

NAMED = [
    "A1", "A3", "A5", "A7", "A9", "A11", "B1", "B3", "B5", "B7", "B9", "C1", "C3", "C5", "C7", "C9",
    "D3", "D5", "D9", "D11", "D13", "D15", "D17", "E1", "E3", "E5", "F1", "F3", "H1", "H3", "I1", "I3", "I5",
    "J1", "K1", "K3", "L1", "M1", "M3", "N1", "O1", "O3", "P1", "Q1",
]  # fmt: skip
# shown where they belong, by tests that have other names
SHOWN = {
    "D1": ("dead_letters.py::test_the_dead_letter_queue_is_a_queue", "dead_letters.py::test_redrive"),
    "D7": ("dead_letters.py::test_redrive_limits",),
}
CRON = "needs cron: issue 5"
WAITS = {
    **dict.fromkeys(["G1", "G3", "G5", "G7", "G9", "G11"], CRON),
}
LAST = {"A": 11, "B": 9, "C": 9, "D": 17, "E": 5, "F": 3, "G": 11, "H": 3, "I": 5, "J": 1, "K": 3, "L": 1,
        "M": 3, "N": 1, "O": 3, "P": 1, "Q": 1}  # fmt: skip


def cases() -> list[str]:
    """Every case: only odd numbers were given out."""
    return [f"{letter}{n}" for letter, last in LAST.items() for n in range(1, last + 1, 2)]


@cache
def there() -> frozenset[str]:
    """``file::function`` of every test there is."""
    return frozenset(_found())


def _found() -> Iterator[str]:
    for place in PLACES:
        for path in (ROOT / place).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
                    yield f"{path.name}::{node.name}"


def named_after(name: str) -> set[str]:
    """The cases in a test's name: A7 and B3 of ``test_a7_b3_what_is_right``."""
    return {part.upper() for part in re.findall(r"(?<=_)[a-q]\d{1,2}(?=_)", name)}


def test_every_case_is_tested_or_waits_for_a_reason() -> None:
    """No case is forgotten, and none that is tested is still said to wait."""
    assert set(NAMED) | SHOWN.keys() | WAITS.keys() == set(cases())
    assert WAITS.keys().isdisjoint({*NAMED, *SHOWN})
    assert all(re.fullmatch(r"needs .+: issue \d", reason) for reason in WAITS.values())


@pytest.mark.parametrize("case", NAMED)
def test_a_case_has_a_test_of_its_name(case: str) -> None:
    """By the start of its name, wherever it stands."""
    found = [name for name in there() if case in named_after(name.partition("::")[2])]
    assert found, case


@pytest.mark.parametrize("case", SHOWN)
def test_the_tests_that_show_a_case_are_there(case: str) -> None:
    """None of them was renamed or taken out."""
    assert set(SHOWN[case]) <= there(), case


def test_no_test_is_named_after_an_unknown_case() -> None:
    """A misspelt name would count for nothing."""
    used = set().union(*(named_after(name.partition("::")[2]) for name in there()))
    assert used == set(NAMED)


def test_the_names_are_read() -> None:
    """The control: what the names hold, and a name that holds none."""
    assert named_after("test_b1_b3_a_job_longer_than_its_lease_runs_once") == {"B1", "B3"}
    assert named_after("test_a_case") == set()
    assert "test_nowhere.py::test_nothing" not in there()
