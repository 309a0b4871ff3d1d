"""Reads our payments and the provider's itemized balance-change report, line by line.

Columns that are not needed are ignored, missing ones are named. Malformed lines are collected, at most
20, and named together with their numbers, because who mends a file wants to see them all.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final, TypeVar

from redrive.arena.calendar import instant_of
from redrive.arena.money import AMOUNT_MAX, is_currency, to_minor
from redrive.arena.records import PAYMENT_STATES, Entry, Payment

PROBLEMS_MAX: Final = 20
ID_CHARS_MAX: Final = 60
REF_CHARS_MAX: Final = 80
OUR_COLUMNS: Final = (
    "payment_id", "shard", "game_id", "provider_ref", "amount", "currency", "state", "version", "updated_at",
)  # fmt: skip
THEIR_COLUMNS: Final = (
    "balance_transaction_id", "created_utc", "currency", "gross", "fee", "net", "reporting_category",
    "source_id", "charge_id", "payment_intent_id", "description",
)  # fmt: skip

_NAME: Final = re.compile(r"[A-Za-z0-9._-]{1,40}")
_T = TypeVar("_T")


class FileProblem(ValueError):
    """A file cannot be used; the message names the file, the lines and what is wrong with each."""


def read_payments(path: Path) -> Iterator[Payment]:
    """Our payments, amounts in the smallest unit. Raises :class:`FileProblem`, at the latest at the end."""
    return _read(path, OUR_COLUMNS, _payment)


def read_entries(path: Path) -> Iterator[Entry]:
    """The provider's entries; its decimals in major units become the smallest unit of their currency.

    Raises :class:`FileProblem`, at the end at the latest.
    """
    return _read(path, THEIR_COLUMNS, _entry)


def _read(path: Path, columns: tuple[str, ...], build: Callable[[list[str]], _T]) -> Iterator[_T]:
    problems: list[str] = []
    line = 1
    try:
        with path.open(encoding="utf-8-sig", newline="") as lines:
            reader = csv.reader(lines)
            places = _places(path, columns, next(reader, None))
            width = max(places) + 1
            for row in reader:
                line = reader.line_num
                if not row:
                    continue
                if len(row) < width:
                    problems.append(f"line {line}: {len(row)} fields, at least {width} needed")
                else:
                    try:
                        yield build([row[place] for place in places])
                    except ValueError as problem:
                        problems.append(f"line {line}: {problem}")
                if len(problems) >= PROBLEMS_MAX:
                    problems.append(f"and maybe more: reading stopped at {PROBLEMS_MAX} problems")
                    break
    except (UnicodeDecodeError, csv.Error) as problem:
        problems.append(f"near line {line}: the file cannot be read: {problem}")
    except OSError as problem:
        raise FileProblem(f"{path.name}: {problem.strerror}") from None
    if problems:
        raise FileProblem(f"{path.name}: " + "; ".join(problems))


def _places(path: Path, columns: tuple[str, ...], header: list[str] | None) -> list[int]:
    found = [name.strip() for name in header or []]
    missing = [name for name in columns if name not in found]
    if missing:
        raise FileProblem(
            f"{path.name}: line 1: missing columns: {', '.join(missing)}; "
            f"found: {', '.join(found)[:300] or 'none'}"
        )
    return [found.index(name) for name in columns]


def _payment(row: list[str]) -> Payment:
    payment_id, shard, game_id, ref, amount, currency, state, version, updated_at = row
    if not 0 < len(payment_id) <= ID_CHARS_MAX or len(ref) > REF_CHARS_MAX:
        raise ValueError(
            f"payment_id has 1 to {ID_CHARS_MAX} characters, provider_ref at most {REF_CHARS_MAX}"
        )
    if not _NAME.fullmatch(shard) or not _NAME.fullmatch(game_id):
        raise ValueError(
            f"shard {shard[:40]!r} and game_id {game_id[:40]!r} must be 1 to 40 of A-Z a-z 0-9 . _ -"
        )
    if not is_currency(currency):
        raise ValueError(f"currency {currency[:20]!r} is not a three-letter code")
    if state not in PAYMENT_STATES:
        raise ValueError(f"state {state[:40]!r} is unknown; known are {', '.join(PAYMENT_STATES)}")
    return Payment(
        payment_id, shard, game_id, ref, _whole("amount", amount, AMOUNT_MAX), currency.lower(), state,
        _whole("version", version, 2**31 - 1), instant_of(updated_at) * 1000,
    )  # fmt: skip


def _entry(row: list[str]) -> Entry:
    txn_id, created, currency, gross, fee, net, category, source, charge, intent, description = row
    if not txn_id or not category:
        raise ValueError("balance_transaction_id and reporting_category must not be empty")
    if not is_currency(currency):
        raise ValueError(f"currency {currency[:20]!r} is not a three-letter code")
    entry = Entry(
        txn_id, instant_of(created), _money("gross", gross, currency), _money("fee", fee, currency),
        currency.lower(), category, source, charge, description, intent,
    )  # fmt: skip
    if _money("net", net, currency) != entry.net:
        raise ValueError(f"net {net} is not gross {gross} less fee {fee}")
    return entry


def _money(name: str, text: str, currency: str) -> int:
    try:
        return to_minor(text, currency)
    except ValueError as problem:
        raise ValueError(f"{name}: {problem}") from None


def _whole(name: str, text: str, most: int) -> int:
    if not text.isascii() or not text.isdigit() or len(text) > 18 or int(text) > most:
        raise ValueError(f"{name} {text[:40]!r} is not a whole number from 0 to {most}")
    return int(text)
