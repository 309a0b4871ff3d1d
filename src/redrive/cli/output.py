"""Where a command's data goes: JSON exactly as the server sent it, or a table for people."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final

import msgspec

from redrive.cli.text import one_line, plain, shown

PIPE_WIDTH: Final = 200
Column = str | tuple[str, Callable[[Any], Any]]
"""A field's name, or a heading with a function of the row."""


def single_line(document: bytes) -> bytes:
    """JSON text on one line; a raw line break is never inside a string, so that a space means the same."""
    return bytes(document).replace(b"\r", b" ").replace(b"\n", b" ").strip()


def note(text: str) -> None:
    """A remark for the person; never data."""
    print(plain(text), file=sys.stderr)


@contextmanager
def progress(what: str, total: int | None) -> Iterator[Callable[[int], None]]:
    """A bar on stderr while long work runs; gives a function that is told how much more is done.

    Where stderr is no terminal nothing is shown. ``total`` None: how much there is is not known.
    """
    if not sys.stderr.isatty():
        yield lambda _: None
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as bars:
        task = bars.add_task(what, total=total)
        yield lambda count: bars.advance(task, count)


@contextmanager
def stages() -> Iterator[Callable[[str, int, int | None], None]]:
    """As :func:`progress` for work of several parts: a bar for each, told (what, how much more, of how much).

    Nothing else may be written to the terminal meanwhile.
    """
    if not sys.stderr.isatty():
        yield lambda *_: None
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as bars:
        tasks: dict[str, Any] = {}

        def told(what: str, more: int, total: int | None) -> None:
            if what not in tasks:
                tasks[what] = bars.add_task(what, total=total)
            bars.advance(tasks[what], more)

        yield told


class Output:
    """Writes data to stdout: ``as_json`` says in which of the two forms."""

    def __init__(self, *, as_json: bool) -> None:
        self.as_json = as_json

    def json(self, document: Any) -> None:
        """One JSON document on one line. Bytes are JSON text already and are kept as they are."""
        text = document if isinstance(document, bytes) else msgspec.json.encode(document)
        sys.stdout.buffer.write(single_line(text) + b"\n")

    def line(self, text: str) -> None:
        """One line of text, made safe."""
        print(plain(text))

    def rich(self, thing: Any) -> None:
        """Something that rich knows how to print."""
        _console().print(thing)

    def flush(self) -> None:
        """Everything so far is with the reader; raises BrokenPipeError when there is none."""
        sys.stdout.flush()
        sys.stdout.buffer.flush()

    def table(self, rows: Iterable[Mapping[str, Any]], columns: Sequence[Column], *, empty: str) -> None:
        """Rows as a table; ``empty`` is said on stderr when there are none."""
        from rich.table import Table
        from rich.text import Text

        found = Table(box=None, pad_edge=False, header_style="bold")
        for column in columns:
            heading = column if isinstance(column, str) else column[0]
            found.add_column(heading.replace("_", " "), overflow="fold")
        for row in rows:
            values = [row.get(column) if isinstance(column, str) else column[1](row) for column in columns]
            found.add_row(*(Text(one_line(shown(value))) for value in values))
        if not found.row_count:
            note(empty)
            return
        _console().print(found)

    def record(self, record: Mapping[str, Any]) -> None:
        """The fields of one thing, one a line."""
        from rich.table import Table
        from rich.text import Text

        found = Table(box=None, pad_edge=False, show_header=False)
        found.add_column(style="bold", no_wrap=True)
        found.add_column(overflow="fold")
        for name, value in record.items():
            found.add_row(Text(name.replace("_", " ")), Text(shown(value)))
        _console().print(found)


def _console() -> Any:
    from rich.console import Console

    terminal = sys.stdout.isatty()
    width = None if terminal or os.environ.get("COLUMNS") else PIPE_WIDTH
    return Console(file=sys.stdout, width=width, highlight=False, emoji=False, markup=False)
