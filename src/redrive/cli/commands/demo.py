"""``redrive demo``: one night of a game's payment reconciliation, broken on purpose and judged."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from redrive.cli.failures import NO, OUT_OF_REACH, USAGE, Refusal
from redrive.cli.interrupts import terminable
from redrive.cli.output import note
from redrive.cli.session import Session, command

if TYPE_CHECKING:
    from redrive.arena.night import Options


class Safety(StrEnum):
    """What the demo can leave out, to show the damage."""

    NO_RECEIPTS = "no-receipts"
    ACK_FIRST = "ack-first"


Seed = Annotated[int, typer.Option(help="The same seed draws the same night and the same faults.")]
Storage = Annotated[
    str | None,
    typer.Option(help="sqlite: (default), or postgresql://… of a database for fresh schemas.", metavar="URL"),
]
Count = Annotated[int | None, typer.Option(help="How many payments are drawn (default 12000).")]
Payments = Annotated[
    Path | None, typer.Option(help="Our payments, CSV, instead of drawn ones.", metavar="FILE")
]
Provider = Annotated[Path | None, typer.Option(help="The provider's report, CSV.", metavar="FILE")]
Unsafe = Annotated[Safety | None, typer.Option(help="Leave one safety out, to see the damage.")]
Keep = Annotated[bool, typer.Option("--keep", help="Leave the server running afterwards, to look around.")]


def register(app: typer.Typer) -> None:
    """Add the command to ``app``."""
    command(app, "demo", flags=())(demo)


def demo(
    session: Session,
    seed: Seed = 1,
    storage: Storage = None,
    count: Count = None,
    payments: Payments = None,
    provider: Provider = None,
    unsafe: Unsafe = None,
    keep: Keep = False,
) -> None:
    """Run one night of a game's payment reconciliation, break things on purpose, and judge it by its tables.

    It starts a server, a payment provider and three workers of its own, in a folder of its own, and takes
    less than a minute. Exit code 1: a claim does not hold (with --unsafe that is the point).
    """
    from redrive.arena.night import Options

    given: dict[str, Any] = {} if count is None else {"payments": count}
    options = Options(
        seed=seed,
        storage=storage,
        ours=payments,
        theirs=provider,
        unsafe=unsafe.value if unsafe is not None else None,
        keep=keep,
        **given,
    )
    with terminable(), _explained(storage):
        holds = _run(session, options)
    if not holds:
        raise typer.Exit(NO)


def _run(session: Session, options: Options) -> bool:
    from redrive.arena import report
    from redrive.arena.night import run

    if not session.out.as_json:
        return report.show(options) == 0
    outcome = run(options, note)
    session.out.json(report.as_json(outcome, options))
    return outcome.holds


@contextmanager
def _explained(storage: str | None) -> Iterator[None]:
    """What a night refuses, with its exit code."""
    from redrive.arena.files import FileProblem
    from redrive.arena.stage import StageProblem

    try:
        yield
    except (FileProblem, ValueError) as error:
        raise Refusal(USAGE, str(error), code="DEMO") from error
    except StageProblem as error:
        raise Refusal(OUT_OF_REACH, str(error), code="DEMO") from error
    except ImportError as error:
        if error.name != "psycopg":
            raise
        raise Refusal(
            USAGE,
            f"{error.name} is not installed",
            hint='pip install "redrive[server,cli,postgres]"',
            code="DEMO",
        ) from error
    except Exception as error:
        if not type(error).__module__.startswith("psycopg"):
            raise
        from redrive.cli.settings import without_password

        reason = str(error).strip().partition("\n")[0]
        raise Refusal(OUT_OF_REACH, f"{without_password(storage or '')}: {reason}", code="STORAGE") from error
