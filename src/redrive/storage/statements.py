"""SQL lives in files, one operation each; this reads a folder of them once.

A file begins with comment lines: ``-- purpose:`` always, and where they apply ``-- transition:`` (events of
the transition table that it carries out), ``-- fenced by:`` and ``-- index:`` (the index that the query plan
must use). A test reads these headers and proves them.
"""

from __future__ import annotations

from functools import cache
from importlib import resources
from typing import NamedTuple


class Statement(NamedTuple):
    """One SQL file: ``sql`` without its header, ``header`` by key."""

    name: str
    sql: str
    header: dict[str, str]


@cache
def load(package: str) -> dict[str, Statement]:
    """Every ``*.sql`` of a package's ``statements`` folder, by file name without its ending."""
    return _read(package, "statements")


@cache
def migrations(package: str) -> list[Statement]:
    """The ``*.sql`` files of a package's ``migrations`` folder, in the order of their names."""
    return [statement for _, statement in sorted(_read(package, "migrations").items())]


def _read(package: str, folder: str) -> dict[str, Statement]:
    found = {}
    for entry in (resources.files(package) / folder).iterdir():
        if entry.name.endswith(".sql"):
            name = entry.name.removesuffix(".sql")
            found[name] = parse(name, entry.read_text(encoding="utf-8"))
    return found


def parse(name: str, text: str) -> Statement:
    """Split a file into its header and its SQL."""
    header: dict[str, str] = {}
    body: list[str] = []
    for line in text.splitlines():
        if line.startswith("-- ") and ":" in line and not body:
            key, value = line[3:].split(":", 1)
            header[key.strip()] = value.strip()
        elif line.strip():
            body.append(line)
    return Statement(name, "\n".join(body), header)
