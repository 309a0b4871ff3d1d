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
