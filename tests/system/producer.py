"""A producer that dies: ``python -m tests.system.producer LEDGER_URL JOB_KEY before|after``.

Its order and the job that it plans are one transaction; it kills itself before or after the COMMIT. Nothing
is published by it: that is the relay's.
"""

from __future__ import annotations

import os
import signal
import sys

from redrive.ledger import Job, Ledger
from tests.system.application import QUEUE, connect, insert


def main(url: str, job_key: str, moment: str) -> None:
    """Ends by SIGKILL."""
    connection = connect(url)
    insert(connection, "orders", job_key)
    Ledger().publish(connection, QUEUE, [Job(job_key, 1)])
    if moment == "after":
        connection.commit()
    os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    main(*sys.argv[1:])
