"""Many connections of one kind: ``python -m tests.proof.crowd PORT KIND COUNT KEY``.

``heads`` and ``bodies`` send one byte now and then and never end; ``left`` send nothing. Says ``{"open": n}``
on standard output when all are connected, and how each of them ended when the server has closed the last one,
or at the end of standard input.
"""

from __future__ import annotations

import contextlib
import json
import selectors
import socket
import sys
import time
from collections import Counter

DRIP_SECONDS = 0.5
BEGINNINGS = {
    "heads": b"POST /v1/queue/publish HTTP/1.1\r\nhost: x\r\nx-slow: ",
    "bodies": b"POST /v1/queue/publish HTTP/1.1\r\nhost: x\r\nauthorization: Bearer %s\r\n"
    b"content-length: 100000\r\n\r\n{",
    "left": b"",
}


class Crowd:
    """The connections, in one thread."""

    def __init__(self, port: int, kind: str, count: int, key: bytes) -> None:
        self._selector = selectors.DefaultSelector()
        self._selector.register(sys.stdin.fileno(), selectors.EVENT_READ)
        self._open: set[socket.socket] = set()
        self._drips = kind != "left"
        self.ended: Counter[str] = Counter()
        beginning = BEGINNINGS[kind].replace(b"%s", key)
        for _ in range(count):
            connection = socket.create_connection(("127.0.0.1", port), timeout=30)
            connection.setblocking(False)
            with contextlib.suppress(OSError):
                connection.send(beginning)
            self._selector.register(connection, selectors.EVENT_READ)
            self._open.add(connection)

    def last(self) -> None:
        """Drip until nobody is left or standard input ends."""
        next_drip = time.monotonic()
        while self._open:
            for key, _ in self._selector.select(0.05):
                if key.fileobj == sys.stdin.fileno():
                    self.ended["held"] += len(self._open)
                    return
                self._read(key.fileobj)  # type: ignore[arg-type]
            if self._drips and time.monotonic() >= next_drip:
                next_drip = time.monotonic() + DRIP_SECONDS
                for connection in self._open:
                    with contextlib.suppress(OSError):
                        connection.send(b"a")

    def _read(self, connection: socket.socket) -> None:
        try:
            answer = connection.recv(4_096)
        except BlockingIOError:
            return
        except OSError:
            answer = b""
        kind = "cut" if not answer else answer[9:12].decode("ascii", "replace")
        self.ended[kind] += 1
        self._selector.unregister(connection)
        self._open.remove(connection)
        connection.close()


def main(port: str, kind: str, count: str, key: str) -> None:
    """Connect all, tell, drip, tell."""
    crowd = Crowd(int(port), kind, int(count), key.encode())
    print(json.dumps({"open": int(count)}), flush=True)
    crowd.last()
    print(json.dumps(crowd.ended), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
