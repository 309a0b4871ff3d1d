"""Before something is destroyed: a person is asked, a script must say --yes."""

from __future__ import annotations

import sys

from redrive.cli.failures import NO, USAGE, Refusal
from redrive.cli.text import plain


def may_ask(what: str, *, yes: bool) -> None:
    """Raise Refusal (exit 2), before anything is sent, where nobody could be asked."""
    if not yes and not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise Refusal(
            USAGE,
            f"{what} must be confirmed, and there is no terminal to ask at",
            hint="Add --yes.",
            code="CONFIRM",
        )


def confirm(question: str, *, yes: bool) -> None:
    """Ask; raises Refusal (exit 1) unless the answer is yes. ``yes`` answers for the person."""
    if yes:
        return
    may_ask(question, yes=yes)
    print(f"{plain(question)} [y/N] ", end="", file=sys.stderr, flush=True)
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        raise Refusal(NO, "nothing was done")
