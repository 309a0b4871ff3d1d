"""The short form of the power cut: more than 5,000 images, and the controls that lose and corrupt."""

from __future__ import annotations

import random
from functools import cache

import pytest

from tests.proof.medium import SECTOR, Medium
from tests.proof.power_cut import power_cut
from tests.proof.runs import Found
from tests.proof.vfs import Call

SEEDS = range(4)
IMAGES_PER_SEED = 1_250
KINDS = (
    "migration", "open", "close", "checkpoint", "create", "publish", "lease", "ack", "nack", "dead-letter",
    "redrive", "expire", "retention", "prune", "purge", "cancel", "batch",
)  # fmt: skip

played = cache(power_cut)


@pytest.mark.timeout(300)
@pytest.mark.parametrize("seed", SEEDS)
def test_a_power_cut_loses_nothing_that_was_answered(seed: int) -> None:
    """Every image opens, is sound, and shows the store before or after the command under way (A5)."""
    found = played(seed)
    assert found.violations == []
    assert found.counts["images"] >= IMAGES_PER_SEED
    assert found.counts["without it"] > 100
    assert found.counts["with the command under way"] > 100


@pytest.mark.timeout(300)
def test_the_cuts_meet_every_kind_of_work() -> None:
    """Cuts fall into every operation, the first migration, recoveries and checkpoints."""
    every = Found()
    for seed in SEEDS:
        every.add(played(seed))
    assert {
        kind: every.counts.get(f"in {kind}", 0) for kind in KINDS if not every.counts.get(f"in {kind}")
    } == {}


@pytest.mark.timeout(300)
def test_without_a_sync_at_commit_answered_messages_are_lost() -> None:
    """The control: ``synchronous=NORMAL`` keeps the file sound and loses what was answered."""
    found = power_cut(0, "NORMAL", lives=1)
    assert found.violations
    assert not [what for what in found.violations if "damaged" in what or "not readable" in what]


@pytest.mark.timeout(300)
def test_without_any_sync_the_file_is_damaged() -> None:
    """The control: ``synchronous=OFF`` leaves files that SQLite's own check, or its reader, refuses."""
    found = power_cut(0, "OFF", lives=1)
    assert [what for what in found.violations if "damaged" in what or "not readable" in what]


def test_a_medium_keeps_what_was_synced_and_some_of_the_rest() -> None:
    """Synced sectors are always there; of two that were not, each is there in some cuts and not in others."""
    medium, left = Medium(), set()
    medium.happen(Call("open", "f"))
    medium.happen(Call("write", "f", 0, b"a" * SECTOR * 3))
    medium.happen(Call("sync", "f", names=True))
    medium.happen(Call("write", "f", SECTOR, b"b" * SECTOR * 2))
    luck = random.Random(1)
    for _ in range(200):
        data = medium.cut(luck)["f"]
        assert (len(data), data[:SECTOR]) == (3 * SECTOR, b"a" * SECTOR)
        left.add((data[SECTOR : SECTOR + 1], data[-1:]))
    assert left == {(b"a", b"a"), (b"a", b"b"), (b"b", b"a"), (b"b", b"b")}


def test_a_failed_sync_is_not_made_up_for_by_the_next_one() -> None:
    """What a failed sync did not write counts as written, and stays away, unless it is written again."""
    luck, missing = random.Random(1), 0
    for _ in range(50):
        medium = Medium({"f": bytes(SECTOR)})
        medium.happen(Call("write", "f", 0, b"b" * SECTOR))
        medium.sync_fails("f", luck)
        medium.happen(Call("sync", "f"))
        missing += medium.cut(luck)["f"] == bytes(SECTOR)
        medium.happen(Call("write", "f", 0, b"b" * SECTOR))
        medium.happen(Call("sync", "f"))
        assert medium.cut(luck)["f"] == b"b" * SECTOR
    assert missing > 5


def test_a_name_is_durable_when_its_folder_was_synced() -> None:
    """A new file may be gone, a deleted one may be back, until then."""
    luck, medium = random.Random(1), Medium()
    medium.happen(Call("open", "f"))
    assert {frozenset(medium.cut(luck)) for _ in range(50)} == {frozenset(), frozenset({"f"})}
    medium.happen(Call("sync", "f", names=True))
    assert {frozenset(medium.cut(luck)) for _ in range(50)} == {frozenset({"f"})}
    medium.happen(Call("delete", "f"))
    assert {frozenset(medium.cut(luck)) for _ in range(50)} == {frozenset(), frozenset({"f"})}
