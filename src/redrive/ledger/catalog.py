"""The SQL files, read once: by dialect, with the shared ones beneath, split into parts, in the driver's
style."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

DIALECTS = ("sqlite", "postgres", "mysql")

_COMMENT = re.compile(r"^\s*--.*$", re.MULTILINE)
_NAME = re.compile(r"(?<![:\w]):([a-z][a-z0-9_]*)\b")


@dataclass(frozen=True, slots=True)
class Part:
    """One SQL statement: ``text`` in the wanted placeholder style, and the names of its parameters."""

    text: str
    names: tuple[str, ...]


@cache
def parts(dialect: str, name: str, style: str) -> tuple[Part, ...]:
    """The statements of operation ``name``; ``style`` is ``named`` (``:key``) or ``pyformat``
    (``%(key)s``)."""
    folder = files("redrive.ledger") / "statements"
    file = folder / dialect / f"{name}.sql"
    if not file.is_file():
        file = folder / "shared" / f"{name}.sql"
    return tuple(_part(text, style) for text in split(file.read_text("utf-8")))


@cache
def migrations(dialect: str) -> tuple[tuple[int, tuple[str, ...]], ...]:
    """(version, its statements) of every migration of ``dialect``, in order."""
    folder = files("redrive.ledger") / "migrations" / dialect
    found = sorted(file.name for file in folder.iterdir() if file.name.endswith(".sql"))
    return tuple((int(name.split("_")[0]), split((folder / name).read_text("utf-8"))) for name in found)


def split(text: str) -> tuple[str, ...]:
    """The statements of a file, without comment lines; a semicolon at a line's end closes one."""
    bare = _COMMENT.sub("", text)
    return tuple(part.strip() for part in re.split(r";[ \t]*(?:\n|$)", bare) if part.strip())


def _part(text: str, style: str) -> Part:
    names = tuple(dict.fromkeys(_NAME.findall(text)))
    if style == "pyformat" and names:
        text = _NAME.sub(r"%(\1)s", text.replace("%", "%%"))
    return Part(text, names)
