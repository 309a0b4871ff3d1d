"""A server as a process: ``python -m tests.system.serve STORAGE_URL PORT [JSON of ApiSettings [HOST]]``.

Its key is the environment's ``REDRIVE_API_KEY``. :mod:`tests.system.clocks` says how its wall clock is set.
Exit code 3 and the reason on stderr when the store refuses.
"""

from __future__ import annotations

import json
import os
import sys

from tests.system import clocks
from tests.system.lifeline import hang_on_standard_input


def main(storage: str, port: str, settings: str = "{}", host: str = "127.0.0.1") -> int:
    """Serve until SIGTERM."""
    hang_on_standard_input()
    clocks.install()
    from redrive.api.server import run
    from redrive.api.settings import ApiSettings
    from redrive.compose import open_service
    from redrive.domain.errors import RedriveError
    from redrive.service import ServiceSettings

    try:
        service = open_service(storage, ServiceSettings(api_key=os.environ["REDRIVE_API_KEY"]))
    except RedriveError as error:
        print(f"{error.message} ({error.hint})", file=sys.stderr)
        return 3
    service.start(first_key=True)
    try:
        run(service, host, int(port), ApiSettings(**json.loads(settings)))
    finally:
        service.close()
    return 0


if __name__ == "__main__":
    raise SystemExit(main(*sys.argv[1:]))
