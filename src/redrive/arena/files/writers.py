"""Writes pairs of files of any size with known differences, and the answer key beside them."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from random import Random

from redrive.arena.calendar import instant_text
from redrive.arena.files.readers import OUR_COLUMNS, THEIR_COLUMNS
from redrive.arena.game.generator import cases
from redrive.arena.money import to_major
from redrive.arena.records import Entry, Payment


def write_pair(folder: Path, rng: Random, payments: int, *, day: str, now_ms: int) -> tuple[Path, Path, Path]:
    """Write ``ours.csv``, ``provider.csv`` and ``answers.jsonl`` into ``folder``; their paths.

    Exactly ``payments`` lines of ours; the answer key holds one line for each difference, as in
    ``Case.answers``. Rows are written as they are drawn: memory does not grow with the size.
    """
    ours, theirs, key = (folder / name for name in ("ours.csv", "provider.csv", "answers.jsonl"))
    with (
        ours.open("w", encoding="utf-8", newline="") as our_lines,
        theirs.open("w", encoding="utf-8", newline="") as their_lines,
        key.open("w", encoding="utf-8") as key_lines,
    ):
        our_rows, their_rows = csv.writer(our_lines), csv.writer(their_lines)
        our_rows.writerow(OUR_COLUMNS)
        their_rows.writerow(THEIR_COLUMNS)
        for case in cases(rng, payments, day=day, now_ms=now_ms):
            our_rows.writerows(_payment(payment) for payment in case.payments)
            their_rows.writerows(_entry(entry) for entry in case.entries)
            key_lines.writelines(json.dumps(answer) + "\n" for answer in case.answers)
    return ours, theirs, key


def _payment(payment: Payment) -> tuple[str | int, ...]:
    return (
        payment.payment_id, payment.shard, payment.game_id, payment.provider_ref, payment.amount,
        payment.currency, payment.state, payment.version, instant_text(payment.updated_at_ms // 1000),
    )  # fmt: skip


def _entry(entry: Entry) -> tuple[str, ...]:
    gross, fee, net = (to_major(amount, entry.currency) for amount in (entry.amount, entry.fee, entry.net))
    return (
        entry.txn_id, instant_text(entry.created_s), entry.currency, gross, fee, net, entry.category,
        entry.source_id, entry.charge_id, entry.payment_intent_id, entry.description,
    )  # fmt: skip
