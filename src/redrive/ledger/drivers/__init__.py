"""The drivers: some 20 lines each, which perform a program's steps on what the application already uses."""

from __future__ import annotations

from redrive.ledger.drivers.choose import driver_for
from redrive.ledger.drivers.port import AsyncDriver, Driver, Mode, arun, run

__all__ = ["AsyncDriver", "Driver", "Mode", "arun", "driver_for", "run"]
