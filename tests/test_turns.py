"""Turns between processes: shared ones beside each other, one alone beside nobody, all in time."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable
from multiprocessing.synchronize import Event
from pathlib import Path

from tests.database import wait_for
from tests.turns import Turns

SPAWN = multiprocessing.get_context("spawn")


def _take(folder: Path, alone: bool, asks: Event, has: Event, ends: Event) -> None:
    asks.set()
    with Turns(folder).turn(alone=alone):
        has.set()
        assert ends.wait(30)


class Other:
    """A process that takes a turn and keeps it until it is told to end."""

    def __init__(self, folder: Path, *, alone: bool) -> None:
        self.asks, self.has, self.ends = SPAWN.Event(), SPAWN.Event(), SPAWN.Event()
        self.process = SPAWN.Process(
            target=_take, args=(folder, alone, self.asks, self.has, self.ends), daemon=True
        )
        self.process.start()
        wait_for(self.asks, 20, "the other process to ask for its turn")

    def end(self) -> None:
        self.ends.set()
        self.process.join(20)
        assert self.process.exitcode == 0


def _waits(other: Other) -> Callable[[], bool]:
    """Whether the operating system shows the process waiting for a lock."""

    def answer() -> bool:
        lines = Path("/proc/locks").read_text().splitlines()
        return any("->" in line and f" {other.process.pid} " in line for line in lines)

    return answer


def test_turns_are_shared_and_one_alone_waits_for_them(tmp_path: Path) -> None:
    """And who comes after it waits behind it."""
    one, two = Other(tmp_path, alone=False), Other(tmp_path, alone=False)
    wait_for(one.has, 20, "the first turn")
    wait_for(two.has, 20, "the second turn beside it")
    alone = Other(tmp_path, alone=True)
    wait_for(_waits(alone), 20, "the one alone to wait")
    late = Other(tmp_path, alone=False)
    wait_for(_waits(late), 20, "the late one to wait behind it")
    one.end()
    two.end()
    wait_for(alone.has, 20, "the turn alone")
    assert not late.has.is_set()
    alone.end()
    wait_for(late.has, 20, "the late turn")
    late.end()


def test_a_killed_process_leaves_its_turn(tmp_path: Path) -> None:
    """The operating system gives it back."""
    killed = Other(tmp_path, alone=True)
    wait_for(killed.has, 20, "the turn that is killed")
    killed.process.kill()
    after = Other(tmp_path, alone=True)
    wait_for(after.has, 20, "the turn after it")
    after.end()


def test_without_a_folder_nobody_waits() -> None:
    """One process alone has every turn."""
    with Turns(None).turn(alone=True), Turns(None).turn(alone=True):
        pass
