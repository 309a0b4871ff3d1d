"""Prints docs/performance.md from ``results/latest.json`` and ``profile.md`` beside it, and nothing else."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).with_name("results") / "latest.json"
PAIRS_MIN = 5
PROFILE = Path(__file__).with_name("profile.md")

_HEAD = """# Performance

Ratios count, not rates: both sides run in turn in one run on one machine, and the medians of the pairs are
given. Every commit waits for its fsync. Where there is no other side, the figure itself is held against a
bound.

`make bench` measures every row, saves each in `bench/results/latest.json` as soon as it is done, and prints
the table; `make bench ARGS="ROW --pairs 7"` measures one; `make bench ARGS=--list` names them. This page is
generated from that file by `make docs`.

| Row | What | Ours | Theirs | Ratio (min … max) | Wanted | Reached |
|---|---|---|---|---|---|---|"""


def page(results: dict[str, dict[str, Any]], profile: str) -> str:
    """The page, for rows in the form of :meth:`bench.rows.Row.result` with their circumstances."""
    lines = [_HEAD]
    for name, row in results.items():
        ratio = f"{number(row['median'])} ({number(row['min'])} … {number(row['max'])})"
        theirs = "–" if row["theirs"] is None else f"{number(row['theirs'])} {row['unit']}"
        lines.append(
            f"| `{name}` | {row['what']} | {number(row['ours'])} {row['unit']} | {theirs} | {ratio} "
            f"| {row['better']} {row['wanted']:g} | {_verdict(row)} |"
        )
    verdicts = [_verdict(row) for row in results.values()]
    reached, missed = verdicts.count("yes"), verdicts.count("**no**")
    opened = len(verdicts) - reached - missed
    lines += [
        "",
        f"Of {len(results)} rows {reached} reach what is wanted, {missed} do not, {opened} are open.",
        "",
        profile.strip(),
        "",
    ]
    lines += ["## How each was measured", ""]
    for circumstances, names in _alike(results).items():
        lines += [f"On {circumstances}:", ""]
        for name in names:
            row = results[name]
            notes = f": {row['notes'].rstrip('.')}" if row["notes"] else ""
            lines.append(f"- `{row['command']}`, {len(row['ratio'])} values{notes}.")
        lines.append("")
    return "\n".join(lines).rstrip() + "\n"


def _verdict(row: dict[str, Any]) -> str:
    """Whether it is reached; a ratio of fewer pairs than the table asks for reaches nothing."""
    if row["theirs"] is not None and len(row["ratio"]) < PAIRS_MIN:
        return f"open: {len(row['ratio'])} of {PAIRS_MIN} pairs"
    return "yes" if row["reached"] else "**no**"


def _alike(results: dict[str, dict[str, Any]]) -> dict[str, list[str]]:
    """The rows by when and where they were measured."""
    groups: dict[str, list[str]] = {}
    for name, row in results.items():
        where = f"{row['date']}, commit {row['commit']} ({row['machine']}, Python {row['python']})"
        groups.setdefault(where, []).append(name)
    return groups


def number(value: float) -> str:
    """With as many digits as say something."""
    if value >= 100:
        return f"{value:,.0f}"
    return f"{value:.2f}" if value >= 0.095 else f"{value:.2g}"


def main() -> int:
    """Print the page; 1 when there are no results yet."""
    if not RESULTS.exists():
        sys.stderr.write(f"{RESULTS} is not there yet: make bench\n")
        return 1
    sys.stdout.write(page(json.loads(RESULTS.read_text())["rows"], PROFILE.read_text()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
