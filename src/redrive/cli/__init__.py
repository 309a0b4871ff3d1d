"""The command line: ``redrive``. Data goes to stdout, everything else to stderr.

Exit codes: 0 done · 1 the answer is no · 2 wrong usage · 3 cannot reach or not allowed · 70 a bug; 130 when
interrupted, 141 when the reader of stdout went away.
"""

from __future__ import annotations

import sys

TYPE_CHECKING = False  # as in the package above: nothing is imported unguarded
if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["main"]


INTERRUPTED = 130


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command (default: the process's own arguments); the exit code.

    A Ctrl-C while the packages are still being imported ends as quietly as a later one: this module imports
    nothing that takes time.
    """
    try:
        return _run(arguments)
    except KeyboardInterrupt:
        return INTERRUPTED


def _run(arguments: Sequence[str] | None) -> int:
    import importlib.util

    missing = [name for name in ("typer", "rich") if importlib.util.find_spec(name) is None]
    if missing:
        print(f"redrive: the command line needs {' and '.join(missing)}", file=sys.stderr)
        print('  hint: pip install "redrive[cli]" (with the server: "redrive[server,cli]")', file=sys.stderr)
        return 2
    from redrive.cli.app import run

    return run(arguments)
