"""``python -m tests.proof [NAME…] [--minutes M]``: the long forms; each goes on where it stopped."""

from __future__ import annotations

import argparse
import importlib
import pkgutil
import sys
import time

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

import tests.proof
from tests.proof.runs import Proof, Result, load, run


def proofs() -> dict[str, Proof]:
    """All proofs, by name: every module of this package that has ``PROOFS``."""
    found: dict[str, Proof] = {}
    for module in sorted(one.name for one in pkgutil.iter_modules(tests.proof.__path__)):
        if not module.startswith(("test_", "__", "runs", "report")):
            made = getattr(importlib.import_module(f"tests.proof.{module}"), "PROOFS", ())
            found |= {proof.name: proof for proof in made}
    return found


def main(arguments: list[str]) -> int:
    """Run the proofs that are named, or all; 1 when one does not hold or did not get as far as it should."""
    known = proofs()
    parser = argparse.ArgumentParser(prog="make proof-foundation ARGS=…", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(known))
    parser.add_argument("--minutes", type=float, default=600.0, help="stop each proof after this time (600)")
    options = parser.parse_args(arguments)
    unknown = [name for name in options.names if name not in known]
    if unknown:
        parser.error(f"unknown proof {unknown[0]!r}; known: {', '.join(known)}")
    console, failed = Console(stderr=True), 0
    for name in options.names or known:
        if missing := known[name].missing():
            console.print(f"{name}: SKIPPED: {missing}", markup=False)
            failed = 1
            continue
        result = _shown(known[name], options.minutes, console)
        state = "holds" if result.holds else "DOES NOT HOLD"
        far = f"{result.reached:,} of {result.wanted:,} {result.unit}"
        console.print(f"{name}: {state}, {far}; controls violated: {result.controls}; worst: {result.worst}")
        for violation in result.violations[:10]:
            console.print(f"  {violation}", markup=False)
        failed |= not result.holds or result.reached < result.wanted
    return int(failed)


def _shown(proof: Proof, minutes: float, console: Console) -> Result:
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task(proof.name, total=proof.long, completed=load(proof).reached)
        ends_at = time.monotonic() + minutes * 60

        def told(result: Result) -> None:
            progress.update(task, completed=result.reached)

        return run(proof, until=proof.long, ends_at=ends_at, told=told)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
