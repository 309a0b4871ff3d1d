"""Why the ledger refused; every one of them left no effect and no receipt behind unless it says otherwise."""

from __future__ import annotations

from redrive.domain.errors import RedriveError


class LedgerError(RedriveError):
    """The ledger cannot do this; nothing was changed unless the message says so."""

    code, http_status, retryable = "LEDGER_ERROR", 500, False


class LedgerNotInstalled(LedgerError):
    """The ledger's tables are not in this database, or are older than this code; they are never created by
    the way."""

    code = "LEDGER_NOT_INSTALLED"


class LedgerRetry(LedgerError):
    """The database refused for now (a race, a deadlock, a lock held too long, a lost connection).

    ``__cause__`` is the driver's error. Roll the whole transaction back and run it again from its
    beginning.
    """

    code, retryable = "LEDGER_RETRY", True


class LedgerFile(LedgerError):
    """The SQLite file cannot be opened, or is none; the message names it."""

    code, retryable = "LEDGER_FILE", True


class NotBegun(LedgerRetry):
    """The connection was found dead before the first statement: nothing was tried, another one may do."""


class LeaseLost(LedgerError):
    """The worker could not prove its lease just before COMMIT; effect and receipt were rolled back."""

    code, retryable = "LEASE_LOST", True


class TransactionEnded(LedgerError):
    """The change ended the transaction that held its receipt (a commit, a rollback, or DDL on MySQL).

    What it committed before that stands, and so does the receipt, without a result; what came after is
    undone.
    """

    code = "TRANSACTION_ENDED"


class BatchDiffers(LedgerError):
    """A batch of that key was made with something else; the message names what. Nothing was changed."""

    code, http_status = "BATCH_DIFFERS", 409


class BatchClosed(LedgerError):
    """The batch is complete or cancelled, and takes no members and no cancellation any more."""

    code, http_status = "BATCH_CLOSED", 409


class BatchNotFound(LedgerError):
    """The ledger knows no batch of that key."""

    code, http_status = "BATCH_NOT_FOUND", 404


class WindowBusy(LedgerError):
    """Another live run, or a batch, still has the window at the end of the wait; nothing was changed."""

    code, http_status, retryable = "WINDOW_BUSY", 409, True


class WindowLost(LedgerError):
    """The window is not this run's any more: its hold ended and another run took it, or it is completed.

    Roll the work back: the one who has the window does it.
    """

    code, http_status = "WINDOW_LOST", 409
