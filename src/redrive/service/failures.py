"""What a failure of the store is to the caller."""

from __future__ import annotations

from redrive.domain.errors import Internal, OutcomeUnknown, Overloaded, ReadOnly, RedriveError, StorageFull
from redrive.storage.port import Damaged, DiskFull, Lost, UnknownOutcome, Unwritable


def commit_refused(error: Lost | Damaged) -> RedriveError:
    """Of a commit: nothing was done, or nobody knows."""
    if isinstance(error, DiskFull):
        return StorageFull(str(error), hint="acks and reads go on; free some space", retry_after=5)
    if isinstance(error, UnknownOutcome):
        return OutcomeUnknown(str(error), hint="repeat it with the same idempotency key or handle")
    if isinstance(error, Damaged):
        return ReadOnly(f"nothing was done: {error}", hint="check the store, and restore it from a backup")
    if isinstance(error, Unwritable):
        return ReadOnly(f"nothing was done: {error}", hint="reads go on; let the store be written again")
    return Overloaded(f"nothing was done: {error}", hint="repeat the request", retry_after=1)


def read_refused(error: Lost | Damaged) -> RedriveError:
    """Of a read."""
    if isinstance(error, Damaged):
        return Internal(str(error), hint="check the store, and restore it from a backup")
    return Overloaded(f"the store cannot be read: {error}", hint="repeat the request", retry_after=1)
