"""Somebody else's door: ``python -m tests.proof.door`` says its port, takes in whoever comes, does nothing.

What a crowd costs the others on a machine by coming at all, whoever it calls on.
"""

from __future__ import annotations

import asyncio
import sys

BACKLOG = 2_048


async def main() -> None:
    """Until the end of standard input."""
    loop = asyncio.get_running_loop()
    server = await loop.create_server(asyncio.Protocol, "127.0.0.1", 0, backlog=BACKLOG)
    print(server.sockets[0].getsockname()[1], flush=True)
    await asyncio.to_thread(sys.stdin.read)


if __name__ == "__main__":
    asyncio.run(main())
