"""``redrive worker``: run a worker that an application wrote."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Any, Final

import typer

from redrive.cli.failures import OUT_OF_REACH, USAGE, Refusal
from redrive.cli.session import Session, command
from redrive.cli.settings import without_password

app = typer.Typer(help="Run an application's worker.", no_args_is_help=True)
FLAGS: Final = ("log_level", "log_format")

Reference = Annotated[
    str, typer.Argument(help="module:worker, as in settlement:worker.", metavar="MODULE:WORKER")
]
Concurrency = Annotated[int | None, typer.Option(min=1, help="Handlers at once (default: the worker's own).")]
HealthPort = Annotated[int | None, typer.Option(min=0, max=65_535, help="Answer /readyz on this port.")]


@command(app, "run", flags=FLAGS, json=False)
def run(
    session: Session, reference: Reference, concurrency: Concurrency = None, health_port: HealthPort = None
) -> None:
    """Run a worker until SIGTERM or SIGINT; the module is looked for in the working directory first.

    The queue, the server and the ledger are the ones that the worker was made with. Exit code 75: start it
    again, it reached its memory cap or its number of jobs and nothing is wrong.
    """
    from redrive.cli import logs
    from redrive.domain.errors import Conflict, RedriveError
    from redrive.worker.health import CannotListen

    logs.configure(session.settings)
    worker = _loaded(reference)
    wanted = {"concurrency": concurrency, "health_port": health_port}
    worker.settings = replace(
        worker.settings, **{name: value for name, value in wanted.items() if value is not None}
    )
    try:
        worker.handler  # noqa: B018 - a worker without a handler is refused before it connects
        code = worker.run()
    except (TypeError, ValueError) as error:
        raise Refusal(USAGE, f"{reference}: {error}", code="WORKER") from error
    except CannotListen as error:
        hint = "Choose another --health-port (0: a free one)."
        raise Refusal(OUT_OF_REACH, str(error), hint=hint, code="ADDRESS") from error
    except Conflict as owned:  # a store of the worker's own process that another one has open
        raise Refusal(OUT_OF_REACH, owned.message, hint=owned.hint, code=owned.code) from owned
    except RedriveError as error:
        if worker.ledger_url is not None:  # so that the hint's command can be copied
            error.hint = error.hint.replace("--ledger URL", f"--ledger {without_password(worker.ledger_url)}")
        raise
    if code:
        raise typer.Exit(code)


def _loaded(reference: str) -> Any:
    from redrive.worker import load

    try:
        return load(reference)
    except ValueError as error:
        raise Refusal(USAGE, str(error), code="WORKER") from error
    except Exception as error:
        raise Refusal(
            USAGE,
            f"{reference}: the module raised {type(error).__name__}: {error}",
            hint="--debug shows where.",
            code="WORKER",
        ) from error
