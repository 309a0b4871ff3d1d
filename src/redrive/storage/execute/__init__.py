"""A batch of commands over any engine: one fixed order, one decision at a time, one write a kind.

The order is settle, expire, (queues), publish, redrive, lease: what a batch settles or publishes can be
leased by the same transaction. Refusals are values, one per command.
"""

from redrive.storage.execute.batch import Deferred, Outcome, apply

__all__ = ["Deferred", "Outcome", "apply"]
