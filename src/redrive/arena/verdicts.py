"""Claims as a person and as a program read them. The table needs rich."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from redrive.arena.claims import Claim


def claims_table(title: str, claims: Sequence[Claim]) -> Any:
    """A rich Table: claim, what was expected, what is shown, and whether it holds."""
    from rich.table import Table
    from rich.text import Text

    found = Table(title=title, show_lines=True)
    for name in ("claim", "expected", "the tables show"):
        found.add_column(name, overflow="fold")
    found.add_column("")
    for claim in claims:
        verdict = Text("holds", "green") if claim.holds else Text("FAILS", "bold red")
        found.add_row(Text(claim.name), Text(claim.expected), Text(claim.shown), verdict)
    return found


def claims_json(claims: Sequence[Claim]) -> list[dict[str, Any]]:
    """The same as data."""
    return [{"claim": c.name, "expected": c.expected, "shown": c.shown, "holds": c.holds} for c in claims]
