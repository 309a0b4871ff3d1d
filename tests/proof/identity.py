"""A nearly right key takes no longer to refuse than a wrong one.

Pairs of requests to a running server, interleaved: one key differs from a real one in its last character, the
other in its first. What counts is in how many pairs the nearly right key took longer, and by how much at the
median: noise falls on both alike.
"""

from __future__ import annotations

import contextlib
import http.client
import random
import statistics
import time
from collections.abc import Iterator
from functools import partial
from typing import Any

from redrive.compose import open_service
from redrive.domain.errors import Unauthenticated
from redrive.service import ServiceSettings
from tests.api.conftest import running
from tests.proof.runs import Found, Proof

PAIRS = 2_500
WARM = 200
REAL = "rdk_a-key-of-an-operator-that-is-long"
SHARE_MAX = 0.08  # by which the share of pairs may differ from a half: 8 standard deviations of 2,500
MEDIAN_MAX = 0.05  # of a request's median time, by which the medians may differ


class NaiveAccess:
    """The control: compares from the left and stops at the first difference, as slowly as a program may."""

    def __init__(self, access: Any) -> None:
        self._access = access

    def __getattr__(self, name: str) -> Any:
        return getattr(self._access, name)

    def authenticate(self, secret: str) -> Any:
        """As the real one, after the comparison."""
        for ours, theirs in zip(REAL, secret, strict=False):
            if ours != theirs:
                raise Unauthenticated("the API key is not known")
            sum(range(200))
        return self._access.authenticate(secret)


def pairs(seed: int, *, number: int = PAIRS, naive: bool = False) -> Found:
    """One round of ``number`` pairs."""
    found, luck = Found(), random.Random(seed)
    with _server(naive) as port, contextlib.closing(_Line(port)) as line:
        for _ in range(WARM):
            line.seconds("warm")
        near, far = [], []
        for _ in range(number):
            order = [(near, REAL[:-1] + luck.choice("XYZ")), (far, luck.choice("XYZ") + REAL[1:])]
            luck.shuffle(order)
            for times, secret in order:
                times.append(line.seconds(secret))
    found.count("pairs", number)
    share = sum(one > other for one, other in zip(near, far, strict=True)) / number - 0.5
    typical = statistics.median(far)
    apart = (statistics.median(near) - typical) / typical
    found.at_worst("share of pairs beyond a half", abs(share))
    found.at_worst("medians apart, of a request's time", abs(apart))
    what = f"nearly right keys took longer in {share + 0.5:.0%} of the pairs, by {apart:.1%} at the median"
    found.expect(abs(share) <= SHARE_MAX and abs(apart) <= MEDIAN_MAX, what)
    return found


@contextlib.contextmanager
def _server(naive: bool) -> Iterator[int]:
    service: Any = open_service("memory:", ServiceSettings(api_key=REAL))
    with contextlib.closing(service):
        service.start(first_key=True)
        if naive:
            service.access = NaiveAccess(service.access)
        with running(service) as server:
            yield server.port


class _Line:
    def __init__(self, port: int) -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)

    def seconds(self, secret: str) -> float:
        """From the request to its 401."""
        began = time.perf_counter()
        self._connection.request("GET", "/v1/queue/list", headers={"Authorization": f"Bearer {secret}"})
        answer = self._connection.getresponse()
        answer.read()
        assert answer.status == 401
        return time.perf_counter() - began

    def close(self) -> None:
        self._connection.close()


PROOFS = (
    Proof(
        "identity-timing",
        "The time of a refusal does not tell how much of a key was right.",
        "pairs",
        100_000,
        pairs,
        {"comparison in constant time": partial(pairs, number=500, naive=True)},
    ),
)
