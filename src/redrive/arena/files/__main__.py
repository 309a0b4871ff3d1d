"""``python -m redrive.arena.files``: write a pair of files with known differences, or compare two files.

``write FOLDER --payments N --seed S`` writes ``ours.csv``, ``provider.csv`` and ``answers.jsonl``.
``compare OURS THEIRS`` prints each difference as a JSON line and the counts on stderr; with ``--answers KEY``
the exit code is 1 unless exactly those were found. Exit code 2: a file cannot be used.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from random import Random

from redrive import seams
from redrive.arena.files.check import compare_files
from redrive.arena.files.import_night import answers_of
from redrive.arena.files.readers import FileProblem
from redrive.arena.files.writers import write_pair

Difference = tuple[str, str, str]


def main(arguments: list[str] | None = None) -> int:
    """Run one command; the exit code."""
    options = _options().parse_args(arguments)
    try:
        return _write(options) if options.command == "write" else _compare(options)
    except (FileProblem, OSError) as problem:
        print(f"redrive.arena.files: {problem}", file=sys.stderr)
        return 2


def _write(options: argparse.Namespace) -> int:
    options.folder.mkdir(parents=True, exist_ok=True)
    rng = Random(options.seed)
    for path in write_pair(options.folder, rng, options.payments, day=options.date, now_ms=seams.wall_ms()):
        print(path)
    return 0


def _compare(options: argparse.Namespace) -> int:
    found: Counter[Difference] = Counter()
    kinds: Counter[str] = Counter()
    for comparison in compare_files(options.ours, options.theirs):
        kinds["matched"] += comparison.matched
        for answer in answers_of(comparison):
            print(json.dumps(answer))
            kinds[answer["find"]] += 1
            if options.answers is not None:
                found[answer["find"], answer["subject"], answer["to_state"]] += 1
    print(", ".join(f"{kind} {count}" for kind, count in sorted(kinds.items())), file=sys.stderr)
    if options.answers is None:
        return 0
    known = Counter(_key(options.answers))
    missed, extra = sum((known - found).values()), sum((found - known).values())
    print(f"{sum(known.values())} known, {missed} missed, {extra} too many", file=sys.stderr)
    return 1 if missed or extra else 0


def _key(path: Path) -> Iterator[Difference]:
    with path.open(encoding="utf-8") as lines:
        for number, line in enumerate(lines, 1):
            try:
                answer = json.loads(line)
                yield answer["find"], answer["subject"], answer["to_state"]
            except (ValueError, KeyError, TypeError) as problem:
                raise FileProblem(f"{path.name}: line {number}: {problem}") from None


def _options() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m redrive.arena.files", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    write = commands.add_parser("write", help="write a pair of files with known differences")
    write.add_argument("folder", type=Path)
    write.add_argument("--payments", type=int, default=12_000, help="how many payments of ours")
    write.add_argument("--seed", type=int, default=1)
    write.add_argument("--date", default="2026-10-23", help="the UTC day of the night")
    compare = commands.add_parser("compare", help="compare our payments with the provider's report")
    compare.add_argument("ours", type=Path)
    compare.add_argument("theirs", type=Path)
    compare.add_argument("--answers", type=Path, help="an answer key to be found exactly")
    return parser


if __name__ == "__main__":
    sys.exit(main())
