"""Two network namespaces of our own, and roads between them on which the kernel loses and resets packets.

Servers are ``far``, producers and workers are ``near``. A road is a pair of virtual devices with addresses
that exist nowhere else; its :class:`Storm` are rules of nftables where packets arrive, and a queue where they
leave. A namespace is held by an open file only: it ends, with all that is in it, with this process.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Self

from tests.proof.machine import Unable, do, program, ran

PORT = 7077  # every port is free in there
PROGRAMS = {"ip": "iproute2", "tc": "iproute2", "nft": "nftables"}
COUNTERS = ("lost", "silenced", "unanswered", "resets")
NETEM = ("netem", "delay", "30ms", "25ms", "reorder", "25%")
NARROW = ("tbf", "rate", "400kbit", "burst", "4kb", "latency", "400ms")
_CLONE_NEWNET = 0x40000000
_LIBC = ctypes.CDLL(None, use_errno=True)


class Namespace:
    """A network namespace. Threads are moved into it, one by one; what they start is in it, too."""

    def __init__(self) -> None:
        with _back_afterwards():
            if _LIBC.unshare(_CLONE_NEWNET) != 0:
                raise Unable(f"a network namespace: {os.strerror(ctypes.get_errno())}")
            self._held = os.open("/proc/thread-self/ns/net", os.O_RDONLY)
            do("ip", "link", "set", "lo", "up")

    @property
    def path(self) -> str:
        """Its name for other programs."""
        return f"/proc/{os.getpid()}/fd/{self._held}"

    def enter(self) -> None:
        """Move this thread into it for good."""
        _set(self._held)

    @contextlib.contextmanager
    def inside(self) -> Iterator[None]:
        """Move this thread into it for a while."""
        with _back_afterwards():
            self.enter()
            yield

    def close(self) -> None:
        """It ends once nobody is in it any more."""
        os.close(self._held)


@dataclass(frozen=True)
class Storm:
    """Chances in percent. ``lost``: of each packet, either way. ``deaf``: no request arrives; ``mute``: no
    answer does, and nobody is told. ``unanswered``: of each connection, that its requests arrive and are
    acknowledged, and no answer comes. ``resets``: of each packet to the server, that its sender gets a reset.
    ``slow``: packets are late, and out of order where the kernel has netem.
    """

    lost: int = 0
    deaf: bool = False
    mute: bool = False
    unanswered: int = 0
    resets: int = 0
    slow: bool = False


CALM = Storm()
CUT = Storm(deaf=True, mute=True)


class Road:
    """One way from near to far; what goes over other roads does not feel its storm."""

    def __init__(self, near: Namespace, far: Namespace, number: int, seed: int = 0) -> None:
        self.url = f"http://10.77.{number}.1:{PORT}"
        self._near, self._far, self._seed = near, far, seed
        self._name = f"road{number}"
        with near.inside():
            do("ip", "link", "add", self._name, "type", "veth", "peer", "name", self._name, "netns", far.path)
        for end, address in ((far, f"10.77.{number}.1/24"), (near, f"10.77.{number}.2/24")):
            with end.inside():
                do("ip", "address", "add", address, "dev", self._name)
                do("ip", "link", "set", self._name, "up")
                counters = "".join(f"counter {name} {{}}\n" for name in COUNTERS)
                chain = "chain arriving { type filter hook prerouting priority raw; }"
                do("nft", "-f", "-", fed=f"table ip {self._name} {{\n{counters}{chain}\n}}")

    def becomes(self, storm: Storm) -> None:
        """The storm from now on."""
        self._arriving(self._far, self._at_server(storm))
        self._arriving(self._near, self._at_client(storm))
        for end in (self._far, self._near):
            with end.inside():
                self._queue(storm)

    def freeze(self) -> None:
        """From now on nothing passes, and nobody is told: connections are half open."""
        self.becomes(CUT)

    def thaw(self) -> None:
        """Everything passes again, also what is sent again on the old connections."""
        self.becomes(CALM)

    @property
    def counts(self) -> Counter[str]:
        """How many packets met what, so far."""
        counts: Counter[str] = Counter()
        for end in (self._far, self._near):
            with end.inside():
                told = json.loads(do("nft", "-j", "list", "counters", "table", "ip", self._name))
            for one in told["nftables"]:
                if "counter" in one:
                    counts[one["counter"]["name"]] += one["counter"]["packets"]
        return counts

    def _at_server(self, storm: Storm) -> list[str]:
        rules = [f"numgen random mod 100 < {storm.lost} counter name lost drop"] * bool(storm.lost)
        rules += ["counter name silenced drop"] * storm.deaf
        if storm.resets:
            chance = f"tcp flags & (syn | rst) == 0 numgen random mod 100 < {storm.resets}"
            rules.append(f"{chance} counter name resets reject with tcp reset")
        return rules

    def _at_client(self, storm: Storm) -> list[str]:
        rules = [f"numgen random mod 100 < {storm.lost} counter name lost drop"] * bool(storm.lost)
        rules += ["counter name silenced drop"] * storm.mute
        if storm.unanswered:  # by its client's port: the same for all packets of a connection
            chance = f"jhash tcp dport mod 100 seed {self._seed + 1} < {storm.unanswered}"
            rules.append(f"tcp flags & psh == psh {chance} counter name unanswered drop")
        return rules

    def _arriving(self, end: Namespace, rules: list[str]) -> None:
        lines = [f"flush chain ip {self._name} arriving"]
        lines += [f'add rule ip {self._name} arriving iifname "{self._name}" {rule}' for rule in rules]
        with end.inside():
            do("nft", "-f", "-", fed="\n".join(lines))

    def _queue(self, storm: Storm) -> None:
        ran("tc", "qdisc", "delete", "dev", self._name, "root")  # refused when there is none
        if storm.slow:
            do("tc", "qdisc", "add", "dev", self._name, "root", *(NETEM if netem() else NARROW))


class Roads:
    """The two namespaces and so many roads."""

    def __init__(self, number: int, seed: int = 0) -> None:
        self._number, self._seed = number, seed

    def __enter__(self) -> Self:
        with contextlib.ExitStack() as stack:
            self.near, self.far = Namespace(), Namespace()
            stack.callback(self.near.close)
            stack.callback(self.far.close)
            self.roads = [Road(self.near, self.far, number, self._seed) for number in range(self._number)]
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()


@cache
def roads_missing() -> str:
    """Why there can be no such roads here; empty when they can."""
    if os.geteuid() != 0:
        return "network namespaces: only root may make them"
    for name, package in PROGRAMS.items():
        if program(name) is None:
            return f"network namespaces: {name} is not installed (Debian: apt-get install {package})"
    try:
        with Roads(1) as made:
            made.roads[0].becomes(Storm(30, True, True, 30, 30, True))
    except (Unable, OSError) as error:
        return f"network namespaces: {error}"
    return ""


@cache
def netem() -> bool:
    """Whether the kernel can delay and reorder packets; if not, ``slow`` is a narrow road with a queue."""
    made = Namespace()
    try:
        with made.inside():
            return ran("tc", "qdisc", "add", "dev", "lo", "root", "netem", "delay", "1ms").returncode == 0
    finally:
        made.close()


@contextlib.contextmanager
def _back_afterwards() -> Iterator[None]:
    here = os.open("/proc/thread-self/ns/net", os.O_RDONLY)
    try:
        yield
    finally:
        _set(here)
        os.close(here)


def _set(namespace: int) -> None:
    if _LIBC.setns(namespace, _CLONE_NEWNET) != 0:
        raise Unable(f"entering a network namespace: {os.strerror(ctypes.get_errno())}")
