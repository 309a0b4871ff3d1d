"""Answers leave in one write, in order, and nothing written is lost by a close."""

from __future__ import annotations

import asyncio

from redrive.api.joined import JoinedTransport


class Wire(asyncio.Transport):
    """What reached the socket, write by write."""

    def __init__(self) -> None:
        super().__init__()
        self.written: list[bytes] = []
        self.closed = False

    def write(self, data: bytes) -> None:  # type: ignore[override]
        self.written.append(bytes(data))

    def is_closing(self) -> bool:
        return self.closed

    def close(self) -> None:
        self.closed = True

    def abort(self) -> None:
        self.closed = True


def run(*steps: str | bytes) -> Wire:
    """Carry the steps out on a transport in one turn of a loop; the wire after the next turn."""

    async def turn() -> Wire:
        wire = Wire()
        joined = JoinedTransport(wire, asyncio.get_running_loop())
        for step in steps:
            if isinstance(step, bytes):
                joined.write(step)
            else:
                getattr(joined, step)()
        await asyncio.sleep(0)
        return wire

    return asyncio.run(turn())


def test_head_and_body_are_one_write() -> None:
    """Two parts written in one turn of the loop are one system call."""
    assert run(b"head", b"body").written == [b"headbody"]


def test_a_large_body_keeps_its_place() -> None:
    """A part that is not joined goes behind what was written before it."""
    large = b"x" * 100_000
    assert run(b"head", large, b"tail").written == [b"head", large, b"tail"]


def test_a_close_sends_what_was_written() -> None:
    """A refusal is written and the connection closed in one go: the client still reads it."""
    wire = run(b"refused", "close")
    assert (wire.written, wire.closed) == ([b"refused"], True)


def test_an_abort_sends_nothing_more() -> None:
    """A connection that was cut gets no further write."""
    wire = run(b"answer", "abort")
    assert (wire.written, wire.closed) == ([], True)
