"""The tree of commands, and what happens when one fails."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Annotated

import typer

from redrive.cli import failures
from redrive.cli.commands import (
    audit,
    configuration,
    consume,
    database,
    dead_letters,
    demo,
    jobs,
    keys,
    ledger,
    messages,
    plans,
    publish,
    queues,
    reconcile,
    serve,
    version,
    workers,
)
from redrive.cli.session import Session

app = typer.Typer(
    name="redrive",
    no_args_is_help=True,
    epilog=failures.EXIT_CODES,
    rich_markup_mode=None,  # its panels cost twice the time of everything else together
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
)
for _room in (serve, demo, publish, consume, reconcile, version):
    _room.register(app)
for _name, _group in (
    ("queue", queues.app),
    ("message", messages.app),
    ("job", jobs.app),
    ("dlq", dead_letters.app),
    ("plan", plans.app),
    ("worker", workers.app),
    ("key", keys.app),
    ("audit", audit.app),
    ("db", database.app),
    ("config", configuration.app),
    ("ledger", ledger.app),
):
    app.add_typer(_group, name=_name)


def _version(asked: bool) -> None:
    if asked:
        version.version(Session({}, as_json=False, config=None))
        raise typer.Exit


@app.callback()
def _main(
    _: Annotated[
        bool, typer.Option("--version", help="Print the version.", callback=_version, is_eager=True)
    ] = False,
) -> None:
    """Redrive: a durable job queue, worker and ledger. Failed jobs finish once, and an operator can prove it.

    Every setting comes from its flag, from REDRIVE_<NAME> or from redrive.toml, in this order.
    """


def run(arguments: Sequence[str] | None = None) -> int:
    """Run one command; the exit code. Failures are said on stderr, without a traceback unless asked for.

    A KeyboardInterrupt passes through.
    """
    given = sys.argv[1:] if arguments is None else list(arguments)
    try:
        app(args=given, prog_name="redrive")
    except SystemExit as ended:
        return _ended(ended)
    except Exception as error:  # noqa: BLE001 - the last one to see it
        if Session.debug:
            failures.say_traceback(error)
        failure = failures.failure_of(error)
        failures.say(failure, as_json=Session.failing_as_json)
        return failure.exit_code
    return failures.DONE


def _ended(ended: SystemExit) -> int:
    if isinstance(ended.code, int):
        return ended.code
    return failures.DONE if ended.code is None else failures.NO
