"""What a ledger program yields, and what it receives: the whole language between programs and drivers.

A program is a generator. It yields a :data:`Step`, a driver performs it and sends a :class:`Rows` (or what
the called function returned) back, or throws the database's error in. So one program serves every driver,
blocking or not.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any, NamedTuple, TypeAlias


class Control(Enum):
    """A step that moves the transaction rather than rows; the value names its statement file."""

    READ_COMMITTED = "read_committed"  # for the next transaction, where the default would lock gaps
    BEGIN = "begin"
    SAVEPOINT = "savepoint"
    BOUND = "bound"  # lock waits end after 5 s
    RESTORE = "restore"  # lock waits are the caller's own again
    RELEASE = "release"
    UNDO = "undo"  # back to the savepoint, which is gone afterwards
    COMMIT = "commit"
    ROLLBACK = "rollback"


@dataclass(frozen=True, slots=True)
class Statement:
    """One operation of the catalog by ``name``, with its named ``values``."""

    name: str
    values: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Call:
    """Call ``function`` with what the caller knows as its connection; an async driver awaits the answer."""

    function: Callable[[Any], Any]


@dataclass(frozen=True, slots=True)
class Migration:
    """The statements of one migration, as they are."""

    statements: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Pause:
    """Wait ``seconds`` outside any transaction; an async loop goes on meanwhile."""

    seconds: float


class Rows(NamedTuple):
    """The answer to a statement: its rows, and how many rows it touched (of its last part)."""

    rows: list[tuple[Any, ...]]
    touched: int


Performed: TypeAlias = Statement | Migration | Call | tuple[Control, ...]
"""A step that a driver does; the loops that run a program wait by themselves."""
Step: TypeAlias = Performed | Pause
Program: TypeAlias = Generator[Step, Any, Any]
