"""Prints docs/reliability.md from the results of the long forms; reads nothing but ``proof/results``."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).parents[2] / "proof" / "results"
HEAD = Path(__file__).with_name("reliability.md")


def page(results: list[dict[str, Any]]) -> str:
    """The page, for results in the form of :class:`tests.proof.runs.Result`."""
    lines = [
        HEAD.read_text(),
        "| Claim | Tried | Violations | Controls that found violations | Worst seen |",
        "|---|---|---|---|---|",
    ]
    for result in results:
        reached = result["counts"].get(result["unit"], 0)
        tried = f"{reached:,} of {result['wanted']:,} {result['unit']}"
        controls = "; ".join(
            f"{name}: {'yes' if hit else 'NO'}" for name, hit in sorted(result["controls"].items())
        )
        worst = "; ".join(f"{name} {value:g}" for name, value in sorted(result["worst"].items()))
        claim = f"**{result['name']}**: {result['claim']}"
        lines.append(
            f"| {claim} | {tried} | {len(result['violations'])} | {controls or '–'} | {worst or '–'} |"
        )
    for result in results:
        lines += ["", *_details(result)]
    return "\n".join(lines) + "\n"


def _details(result: dict[str, Any]) -> list[str]:
    counts = ", ".join(f"{name} {count:,}" for name, count in sorted(result["counts"].items()))
    commits = ", ".join(result["commits"])
    rounds = f"{result['rounds']:,} rounds in {result['seconds'] / 3600:.2f} h"
    lines = [
        f"## {result['name']}",
        "",
        f"{rounds} ({result['machine']}; commits {commits}): {counts}.",
        f"Repeat: `{result['command']}`.",
    ]
    if result["violations"]:
        lines += ["", "Violations:", "", *[f"- {what}" for what in result["violations"]]]
    return lines


def main() -> int:
    """Print the page."""
    results = [json.loads(path.read_text()) for path in sorted(RESULTS.glob("*.json"))]
    sys.stdout.write(page(results))
    return 0


if __name__ == "__main__":
    sys.exit(main())
