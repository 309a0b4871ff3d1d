"""How connections are taken in: those inside have a turn between a few who come, however many wait."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import sys
from unittest import mock

import pytest

from redrive.api import accepting

WAITING = 100


async def _taken_in_before_a_turn() -> int:
    """How many of a hundred who wait at the door are taken in before somebody inside has a turn."""
    loop = asyncio.get_running_loop()
    taken: list[socket.socket] = []
    with contextlib.ExitStack() as stack:
        door = stack.enter_context(socket.create_server(("127.0.0.1", 0), backlog=WAITING))
        door.setblocking(False)
        for _ in range(WAITING):
            stack.enter_context(socket.create_connection(door.getsockname(), 5))
        turned_away = mock.Mock(side_effect=lambda entering: taken.append(door) or b"no")  # type: ignore[func-returns-value]
        acceptor = accepting.Acceptor(door, asyncio.Protocol, turned_away)
        turn: asyncio.Future[int] = loop.create_future()

        def look() -> None:
            if taken:
                turn.set_result(len(taken))
            else:
                loop.call_soon(look)

        loop.call_soon(look)
        try:
            return await asyncio.wait_for(turn, 10)
        finally:
            acceptor.close()
            await acceptor.wait_closed()


def test_a_crowd_is_taken_in_a_few_at_a_time() -> None:
    """Whoever is inside waits for eight of them at most."""
    assert asyncio.run(_taken_in_before_a_turn()) <= 8


def test_control_without_turns_all_are_taken_in_first(monkeypatch: pytest.MonkeyPatch) -> None:
    """As event loops do by themselves."""
    monkeypatch.setattr(accepting, "_TURN", sys.maxsize)
    assert asyncio.run(_taken_in_before_a_turn()) == WAITING
