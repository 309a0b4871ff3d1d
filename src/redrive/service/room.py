"""A full disk: new work is refused, what finishes work and makes room goes on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from redrive.service.ticket import Ticket
from redrive.storage import commands as c
from redrive.storage.plan_commands import MakePlan

NEW_WORK: Final = (c.Publish, MakePlan, c.CreateQueue, c.UpdateQueue, c.PutKey)


def divided(batch: Sequence[Ticket]) -> tuple[list[Ticket], list[Ticket]]:
    """Those that bring new work, and the others."""
    new = [ticket for ticket in batch if isinstance(ticket.command, NEW_WORK)]
    return new, [ticket for ticket in batch if not isinstance(ticket.command, NEW_WORK)]
