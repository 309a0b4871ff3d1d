"""Shows a night: what happens while it runs, and at the end a table of claims. Needs rich."""

from __future__ import annotations

from shlex import quote
from typing import Any, Final

from redrive.arena.night import Options, Outcome, run
from redrive.arena.verdicts import claims_json, claims_table

STEPS_ABOUT: Final = 13


def show(options: Options, console: Any = None) -> int:
    """Run a night and show it on ``console`` (a rich Console); the exit code: 0 every claim holds, 1 not."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    console = console or Console()
    columns = (SpinnerColumn(), BarColumn(20), TimeElapsedColumn(), TextColumn("{task.description}"))
    # where nobody sees the bar it would only leave an empty line
    with Progress(*columns, console=console, transient=True, disable=not console.is_interactive) as progress:
        bar = progress.add_task("the night begins", total=STEPS_ABOUT)

        def tell(words: str) -> None:
            progress.console.print(f"[dim]{progress.tasks[0].elapsed or 0:5.1f} s[/dim]  {words}")
            progress.update(bar, advance=1, description=words)

        outcome = run(options, tell)
    console.print(table(outcome, options))
    for line in _after(outcome, options):
        console.print(line, highlight=False, soft_wrap=True)
    return 0 if outcome.holds else 1


def table(outcome: Outcome, options: Options) -> Any:
    """The claims of ``outcome`` as a rich Table."""
    without = f", without: {options.unsafe}" if options.unsafe else ""
    title = f"The night of {outcome.evidence.night.day} (seed {options.seed}{without})"
    return claims_table(title, outcome.claims)


def as_json(outcome: Outcome, options: Options) -> dict[str, Any]:
    """The same as data, for ``--json``."""
    return {
        "seed": options.seed,
        "unsafe": options.unsafe,
        "seconds": round(outcome.seconds, 1),
        "holds": outcome.holds,
        "claims": claims_json(outcome.claims),
        "waited_in_vain": outcome.evidence.late,
        "kept": outcome.kept,
    }


def _after(outcome: Outcome, options: Options) -> list[str]:
    failed = sum(not claim.holds for claim in outcome.claims)
    lines = [
        f"{len(outcome.claims) - failed} of {len(outcome.claims)} claims hold, in {outcome.seconds:.0f} s."
    ]
    if outcome.evidence.late:
        lines.append(f"Waited in vain for: {', '.join(outcome.evidence.late)}.")
    if options.unsafe:
        lines.append(
            "This is the damage without that safety; leave out --unsafe to see the same night with it."
        )
    if outcome.logs:
        lines.append(f"The logs of the processes are in {outcome.logs}.")
    if outcome.kept:
        lines += _hints(outcome.kept)
    return lines


def _hints(kept: dict[str, str]) -> list[str]:
    folder = quote(kept["folder"])
    also = f"; and drop the schemas {kept['schemas']}" if kept["schemas"] else ""
    return [
        f"The server still runs at {kept['url']}, with its files in {folder}. To look around:",
        f"  export REDRIVE_URL={kept['url']} REDRIVE_API_KEY={kept['api_key']}",
        f"  export REDRIVE_LEDGER={quote(kept['game_url'])}",
        "  redrive queue list; redrive dlq list settlement; redrive ledger status",
        f"To stop it: kill {kept['pid']}",
        f"To remove what it kept, then: rm -r {folder}{also}",
    ]
