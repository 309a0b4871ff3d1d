"""``redrive version``."""

from __future__ import annotations

import typer

from redrive.cli.session import Session, command


def register(app: typer.Typer) -> None:
    """Add the command to ``app``."""
    command(app, "version", flags=())(version)


def version(session: Session) -> None:
    """Print the versions of Redrive and of Python."""
    import platform
    from importlib import metadata

    found = {"redrive": metadata.version("redrive"), "python": platform.python_version()}
    if session.out.as_json:
        session.out.json(found)
    else:
        session.out.line(f"redrive {found['redrive']} (Python {found['python']})")
