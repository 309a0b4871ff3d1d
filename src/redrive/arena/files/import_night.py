"""A night from two files: whose money each entry moves is found by the payments' references."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from msgspec.structs import replace

from redrive.arena.calendar import day_of
from redrive.arena.files.readers import FileProblem, read_entries, read_payments
from redrive.arena.game.seed import Night
from redrive.arena.reconcile.compare import Comparison, compare
from redrive.arena.records import Payment, Shard, account_of


def night_from(ours: Path, theirs: Path) -> Night:
    """The night of both files; raises :class:`FileProblem`.

    Its day is the one with the most charges and payouts; a payment belongs to the day of its charge, or
    without one to the night's. An entry that is not ours is laid into the first shard's account.
    """
    payments = list(read_payments(ours))
    if not payments:
        raise FileProblem(f"{ours.name}: no payments in it")
    twice = [name for name, count in Counter(row.payment_id for row in payments).items() if count > 1]
    if twice:
        raise FileProblem(
            f"{ours.name}: payment_id must be unique, repeated: {', '.join(sorted(twice)[:10])}"
        )
    games = {(row.shard, row.game_id) for row in payments}
    torn = [name for name, count in Counter(shard for shard, _ in games).items() if count > 1]
    if torn:
        raise FileProblem(
            f"{ours.name}: a shard belongs to one game, more than one: {', '.join(sorted(torn)[:10])}"
        )
    entries = list(read_entries(theirs))
    opened = {e.ref: day_of(e.created_s) for e in entries if e.category in ("charge", "payout")}
    days = Counter(opened.values()) or Counter(day_of(row.updated_at_ms // 1000) for row in payments)
    night = Night(days.most_common(1)[0][0])
    for row in payments:
        night.payments.append(replace(row, day=opened.get(row.provider_ref, night.day)))
    owner = {row.provider_ref: row.shard for row in payments if row.provider_ref}
    first = min(row.shard for row in payments)
    for entry in entries:
        account = account_of(owner.get(entry.ref, first))
        night.entries.setdefault(account, []).append(entry)
    night.shards = tuple(Shard(name, game_id, account_of(name)) for name, game_id in sorted(games))
    for shard in night.shards:
        night.entries.setdefault(shard.provider_account, [])
        night.answers[shard.shard] = _answers(night, shard)
    return night


def _answers(night: Night, shard: Shard) -> list[dict[str, str]]:
    """What the settlement must find in this shard: the comparison of exactly what its job will see."""
    mine = [row for row in night.payments if row.shard == shard.shard]
    moved = {e.ref for e in night.entries[shard.provider_account] if day_of(e.created_s) == night.day}
    seen = [row for row in mine if row.day == night.day or row.provider_ref in moved]
    refs = {row.provider_ref for row in seen if row.provider_ref}
    others = [row for row in night.payments if row.shard != shard.shard and row.provider_ref in refs]
    entries = [
        e for e in night.entries[shard.provider_account] if e.ref in refs or day_of(e.created_s) == night.day
    ]
    return answers_of(compare([*_unique(seen), *others], entries))


def answers_of(found: Comparison) -> list[dict[str, str]]:
    """A comparison in the form of an answer key (see ``Case.answers``)."""
    moved = [
        {"find": "correction", "subject": c.payment_id, "to_state": c.to_state} for c in found.corrections
    ]
    told = [
        {"find": f.kind, "subject": f.payment_id or f.provider_ref, "to_state": ""} for f in found.findings
    ]
    return moved + told


def _unique(rows: list[Payment]) -> list[Payment]:
    return list({row.payment_id: row for row in rows}.values())
