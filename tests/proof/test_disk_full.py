"""The short form of the full disk: on a real small one where that may be made, and on a pretended one."""

from __future__ import annotations

import random

import pytest

from tests.proof.disk_full import RESERVE_BYTES, pass_night, small_disk
from tests.proof.runs import Found


def night(kind: str, seed: int, reserve_bytes: int) -> Found:
    """One night on such a disk."""
    found = Found()
    with small_disk(kind) as disk:
        if disk is None:
            pytest.skip("only root may mount a file system")
        pass_night(disk, random.Random(seed), found, reserve_bytes)
    return found


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("kind", ["real", "pretended"])
def test_a_full_disk_refuses_new_work_only(kind: str, seed: int) -> None:
    """507 for publishes; settling, leasing, reading go on; publishing works again when there is room."""
    found = night(kind, seed, RESERVE_BYTES)
    assert found.violations == []
    assert found.counts["refused with 507"] > 1
    assert found.counts["went on"] > 100


@pytest.mark.parametrize("kind", ["real", "pretended"])
def test_without_a_reserve_nothing_goes_on(kind: str) -> None:
    """The control: acks are refused like everything else, although nothing is lost."""
    violations = night(kind, 0, 0).violations
    assert [what for what in violations if "/ack on a full disk: 507" in what]
    assert not [what for what in violations if what.startswith(("damaged", "lost", "there"))]
