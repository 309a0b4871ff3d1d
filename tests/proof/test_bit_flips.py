"""The short form of flipped bits: 200 in the main file, 100 in the log, and the control."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.proof.bit_flips import LOG, PROOFS, bit_flips, log_flips, look, prepared, sealed
from tests.proof.power_cut import workshop
from tests.proof.runs import Found, Proof


@pytest.mark.parametrize("seed", range(4))
def test_a_flipped_bit_serves_nothing_wrong(seed: int) -> None:
    """50 flips of one store: right, dead-lettered as checksum, refused by name, or found by the check."""
    found = bit_flips(seed)
    assert found.violations == []
    assert found.counts["flips"] == 50
    assert found.counts["dead-lettered as checksum"] > 0


@pytest.mark.parametrize("seed", range(2))
def test_a_flipped_bit_in_the_log_serves_nothing_wrong(seed: int) -> None:
    """What stood behind the damaged frame is gone; nothing that is served is wrong."""
    assert log_flips(seed).violations == []


@pytest.mark.parametrize("proof", PROOFS, ids=lambda proof: proof.name)
def test_without_checksums_a_wrong_body_is_served(proof: Proof) -> None:
    """The controls."""
    [control] = proof.controls.values()
    assert [what for what in control(0).violations if "lease: served" in what]


def test_a_log_is_sealed_as_sqlite_seals_it() -> None:
    """The control of the log changes nothing but checksums that are wrong."""
    with workshop() as folder:
        log = prepared(folder / "store", 1).logged[LOG]
    assert sealed(log) == log
    damaged = bytearray(log)
    damaged[5_000] ^= 1
    again = sealed(bytes(damaged))
    assert again != bytes(damaged)
    assert again[5_000] == damaged[5_000]


def test_the_reader_sees_the_whole_store() -> None:
    """Nothing is missing, and nothing found, where nothing was flipped."""
    with workshop() as folder:
        store = prepared(folder / "store", 1)
        for image in (store.closed, store.logged):
            found = Found()
            look(folder / "same", image, store, "nowhere", found)
            assert (found.counts, found.violations) == ({"unaffected": 1}, [])
    assert len(store.there) > 10
    assert not Path(folder).exists()
