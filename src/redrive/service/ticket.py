"""One command on its way through the committer."""

from __future__ import annotations

from collections.abc import Callable

from redrive.storage.commands import Command

Reply = Callable[[object], None]


class Ticket:
    """``reply`` gets the result, or the exception that refuses it, once, on the committer's thread."""

    __slots__ = ("answered", "cancelled", "command", "cost", "deadline", "deferred_at", "reply")

    def __init__(self, command: Command, reply: Reply, deadline: float) -> None:
        self.command = command
        self.reply = reply
        self.cost = command.cost
        self.deadline = deadline  # of a lease that may wait; seconds of the monotonic clock
        self.deferred_at: float | None = None  # since when another node holds what it needs
        self.answered = False
        self.cancelled = False

    def cancel(self) -> None:
        """Nobody waits any longer: a parked lease is forgotten, one just served is given back."""
        self.cancelled = True
