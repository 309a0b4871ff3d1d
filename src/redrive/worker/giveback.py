"""Giving untouched leases back, so that others run them now and no attempt is spent."""

from __future__ import annotations

import logging
from collections.abc import Iterable

from redrive.transports import Transport
from redrive.worker.holdings import Held, Holdings
from redrive.worker.pace import Failure

_LOG = logging.getLogger("redrive.worker")


def give_back(transport: Transport, queue: str, holdings: Holdings, leases: Iterable[Held]) -> None:
    """Release ``leases``; what cannot be released runs out by itself, and is then delivered again."""
    unreachable = False
    for held in leases:
        held.revoke()
        try:
            if not unreachable:  # one dead connection is enough to know; each would take its whole deadline
                transport.release(queue, *held.item)
        except Failure as error:
            unreachable = isinstance(error, ConnectionError)
            _LOG.info("could not give %s back: %s: %s", held.item[0], type(error).__name__, error)
        finally:
            holdings.drop(held)
