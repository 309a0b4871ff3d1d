"""What a proof is: rounds, each repeatable by its seed, whose counts add up to a result that can be resumed.

A round places faults and looks at what is left. It answers :class:`Found`: counts (how many cases, by name),
worst figures, and violations of the claim, each with enough words to repeat it. A control is a round with the
safety off, which must find violations: a proof whose control finds none proves nothing.
"""

from __future__ import annotations

import dataclasses
import json
import os
import platform
import subprocess
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).parents[2] / "proof" / "results"
VIOLATIONS_KEPT = 50


@dataclasses.dataclass
class Found:
    """What rounds found: ``counts`` add up, of ``worst`` the largest stays, ``violations`` are listed."""

    counts: dict[str, int] = dataclasses.field(default_factory=dict)
    worst: dict[str, float] = dataclasses.field(default_factory=dict)
    violations: list[str] = dataclasses.field(default_factory=list)

    def count(self, name: str, by: int = 1) -> None:
        """Add to a count."""
        self.counts[name] = self.counts.get(name, 0) + by

    def at_worst(self, name: str, value: float) -> None:
        """Keep the largest value seen; ``name`` says the unit."""
        self.worst[name] = max(self.worst.get(name, value), round(value, 3))

    def expect(self, holds: bool, what: str) -> None:
        """Note a violation unless it ``holds``."""
        if not holds:
            self.violations.append(what)

    def add(self, other: Found) -> None:
        """Take in what another round found."""
        for name, by in other.counts.items():
            self.count(name, by)
        for name, value in other.worst.items():
            self.at_worst(name, value)
        self.violations += other.violations


Round = Callable[[int], Found]


@dataclasses.dataclass(frozen=True)
class Proof:
    """A claim, and how it is tried.

    ``name``: words with dashes; ``unit``: the count that says how far a proof got, such as ``images``;
    ``long``: how many of them the long form wants; ``round``: one round by its seed; ``controls``: rounds
    with a safety off, by what is off, which must find violations; ``missing``: why it cannot be tried
    here, or nothing.
    """

    name: str
    claim: str
    unit: str
    long: int
    round: Round
    controls: Mapping[str, Round] = dataclasses.field(default_factory=dict)
    missing: Callable[[], str] = lambda: ""


@dataclasses.dataclass
class Result:
    """How far a proof got, over all its runs; kept as ``proof/results/<name>.json``."""

    name: str
    claim: str
    unit: str
    wanted: int
    rounds: int = 0
    seconds: float = 0.0
    counts: dict[str, int] = dataclasses.field(default_factory=dict)
    worst: dict[str, float] = dataclasses.field(default_factory=dict)
    violations: list[str] = dataclasses.field(default_factory=list)
    controls: dict[str, int] = dataclasses.field(default_factory=dict)
    commits: list[str] = dataclasses.field(default_factory=list)
    machine: str = ""
    command: str = ""

    @property
    def reached(self) -> int:
        """How many of the unit were tried."""
        return self.counts.get(self.unit, 0)

    @property
    def holds(self) -> bool:
        """Whether nothing was violated and every control was."""
        return not self.violations and all(self.controls.values())


def load(proof: Proof, folder: Path = RESULTS) -> Result:
    """What earlier runs of this proof found; a new result when there were none or the claim is another."""
    fresh = Result(
        proof.name, proof.claim, proof.unit, proof.long, command=f"make proof-foundation ARGS={proof.name}"
    )
    path = folder / f"{proof.name}.json"
    if not path.exists():
        return fresh
    found = Result(**json.loads(path.read_text()))
    return dataclasses.replace(found, wanted=proof.long) if found.claim == proof.claim else fresh


def save(result: Result, folder: Path = RESULTS) -> None:
    """Write the result so that a kill leaves the old file or the new one."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{result.name}.json"
    fresh = path.with_suffix(".new")
    fresh.write_text(json.dumps(dataclasses.asdict(result), indent=1, sort_keys=True) + "\n")
    fresh.replace(path)


def run(
    proof: Proof,
    *,
    until: int,
    ends_at: float | None = None,
    folder: Path = RESULTS,
    told: Callable[[Result], None] = lambda _: None,
) -> Result:
    """Go on with a proof until it has ``until`` of its unit, or until ``ends_at`` (``time.monotonic()``).

    The seed of a round is its number, so a resumed proof goes on where it stopped. ``told`` hears of each
    round.
    """
    result = load(proof, folder)
    here = _commit()
    if here not in result.commits:
        result.commits.append(here)
    result.machine = f"{os.cpu_count()} cores, {platform.system()}, Python {platform.python_version()}"
    for name, control in proof.controls.items():
        if not result.controls.get(name):
            result.controls[name] = len(control(0).violations)
    while result.reached < until and (ends_at is None or time.monotonic() < ends_at):
        before, started_at = result.reached, time.monotonic()
        found = proof.round(result.rounds)
        sofar = Found(result.counts, result.worst, [])
        sofar.add(found)
        result.violations += [f"round {result.rounds}: {what}" for what in found.violations]
        del result.violations[VIOLATIONS_KEPT:]
        result.rounds += 1
        result.seconds = round(result.seconds + time.monotonic() - started_at, 1)
        save(result, folder)
        told(result)
        if result.reached == before:
            raise RuntimeError(f"a round of {proof.name} tried no {proof.unit}")
    return result


def _commit() -> str:
    command = ["git", "rev-parse", "--short", "HEAD"]
    ran: Any = subprocess.run(command, cwd=RESULTS.parents[1], capture_output=True, text=True, check=False)
    return ran.stdout.strip() or "unknown"
