"""The short form: every storm, silences and a partition between network namespaces."""

from __future__ import annotations

import socket
from contextlib import suppress
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.proof.network_packets import PROOFS
from tests.proof.roads import COUNTERS, CUT, PORT, Namespace, Road, Roads, roads_missing
from tests.proof.runs import run


@pytest.mark.timeout(180)
def test_lost_silenced_and_reset_packets_lose_and_double_nothing(tmp_path: Path) -> None:
    """What was acknowledged is one message with one effect; without idempotency keys it is more."""
    if reason := roads_missing():
        pytest.skip(reason)
    [proof] = PROOFS
    result = run(proof, until=1, folder=tmp_path)
    assert result.violations == []
    assert all(result.controls.values()), result.controls
    assert all(result.counts[f"packets: {name}"] for name in COUNTERS), result.counts
    assert result.counts["partitions"] == 1


def test_the_machines_own_network_is_not_touched() -> None:
    """Roads are in their namespaces only, a storm is on its own road only, and the thread comes back."""
    if reason := roads_missing():
        pytest.skip(reason)
    here = Path("/proc/thread-self/ns/net").readlink()
    with Roads(2) as made:
        with made.near.inside():
            assert {name for _, name in socket.if_nameindex()} >= {"lo", "road0", "road1"}
        assert not [name for _, name in socket.if_nameindex() if name.startswith("road")]
        with made.far.inside(), socket.create_server(("0.0.0.0", PORT)):
            assert [connects(made.near, road) for road in made.roads] == [True, True]
            made.roads[0].becomes(CUT)
            assert [connects(made.near, road) for road in made.roads] == [False, True]
        assert made.roads[0].counts["silenced"] > 0
        assert made.roads[1].counts.total() == 0
    assert Path("/proc/thread-self/ns/net").readlink() == here


def connects(near: Namespace, road: Road) -> bool:
    """Whether a connection over this road is made."""
    with near.inside(), suppress(OSError):
        socket.create_connection((urlsplit(road.url).hostname, PORT), timeout=0.5).close()
        return True
    return False
