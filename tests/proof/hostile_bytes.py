"""What no client library sends, byte by byte, over sockets to a server process.

Each case of ``hostile_cases`` is sent whole and in pieces cut by the seed, some at a time. Its answer is a
4xx in the envelope, the answer that the case allows, or a cut, and it comes before the server's deadlines are
over; whatever happened, a fresh connection is served then. A request hidden in another is not carried out.
"""

from __future__ import annotations

import contextlib
import json
import random
import socket
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

from tests.api.wire import Caller
from tests.proof.hostile_cases import ALL, PLAINLY_TWO, Case
from tests.proof.runs import Found, Proof
from tests.proof.unbounded import UnboundedServer
from tests.system.servers import KEY, ServerProcess

DEADLINES = {"header_seconds": 1.0, "body_seconds": 1.0, "request_bytes_max": 2**20}
PATIENCE_SECONDS = 6.0  # the server's second, and what a loaded machine may add
PIECES_MAX = 6
AT_A_TIME = 8

QUICK = tuple(case for case in ALL if case.name in ("half a head", "NUL in a header", "half a body"))


def exchange(seed: int, *, cases: tuple[Case, ...] = ALL, kind: type[ServerProcess] = ServerProcess) -> Found:
    """One round: every case whole and in pieces, in the seed's order."""
    found, luck = Found(), random.Random(seed)
    with (
        tempfile.TemporaryDirectory(prefix="redrive-proof-") as folder,
        kind(f"sqlite:///{Path(folder) / 'queue.db'}", settings=DEADLINES) as server,
    ):
        call = Caller(server.url, KEY)
        tries = [(case, pieces) for case in cases for pieces in (1, luck.randint(2, PIECES_MAX))]
        luck.shuffle(tries)
        with ThreadPoolExecutor(AT_A_TIME) as pool:
            sent = [(case, list(_cut(case.sent, pieces, luck))) for case, pieces in tries]
            for one in pool.map(lambda each: _try(call, *each), sent):
                found.add(one)
        names = [queue["name"] for queue in call.get("/v1/queue/list?limit=1000").data["items"]]
        found.expect("hidden" not in names, "a request hidden in another one was carried out")
    return found


def _try(call: Caller, case: Case, pieces: list[bytes]) -> Found:
    found = Found()
    what = f"{case.name} in {len(pieces)} pieces"
    began = time.monotonic()
    answer = _answer(call, case, pieces)
    found.count("exchanges")
    found.at_worst("seconds to an answer", time.monotonic() - began)
    if answer is None:
        found.expect(False, f"{what}: neither answered nor cut within {PATIENCE_SECONDS:g} s")
        return found
    for status, complaint in _complaints(answer, case):
        found.count(f"answered {status}")
        found.expect(not complaint, f"{what}: {status} {complaint}")
    if not answer:
        found.count("cut")
    try:
        after = call.get("/v1/queue/list").status
        found.expect(after == 200, f"{what}: the next request was answered {after}")
    except OSError as error:
        found.expect(False, f"{what}: the next request failed: {error}")
    return found


def _cut(sent: bytes, pieces: int, luck: random.Random) -> Iterator[bytes]:
    places = sorted(luck.randint(0, len(sent)) for _ in range(pieces - 1))
    for start, end in zip([0, *places], [*places, len(sent)], strict=True):
        yield sent[start:end]


def _answer(call: Caller, case: Case, pieces: list[bytes]) -> bytes | None:
    """Everything that comes back until the server closes; None when it does not in time."""
    ends = time.monotonic() + PATIENCE_SECONDS
    with call.connect() as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connection.settimeout(0.01)
        parts: list[bytes] = []
        left = list(reversed([piece for piece in pieces if piece]))
        while time.monotonic() < ends:
            try:
                if left:
                    sent = connection.send(left[-1])
                    rest = left.pop()[sent:]
                    left += [rest] if rest else []
                elif case.endless:
                    connection.send(case.endless)
            except TimeoutError:
                pass
            except OSError:  # closed for sending: what was answered may still be read
                left, case = [], Case(case.name, b"")
            try:
                part = connection.recv(65_536)
            except TimeoutError:
                continue
            except OSError:
                return b"".join(parts)
            if not part:
                return b"".join(parts)
            parts.append(part)
        return None


def _complaints(answer: bytes, case: Case) -> Iterator[tuple[int, str]]:
    """Each answer's status and what is wrong with it, if anything."""
    while answer:
        head, _, rest = answer.partition(b"\r\n\r\n")
        with contextlib.suppress(ValueError, IndexError):
            status = int(head.split(b" ", 2)[1])
            length = int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0])
            answer = rest[length:]
            yield status, _wrong(status, rest[:length], case)
            continue
        yield 0, f"is no answer: {answer[:200]!r}"
        return


def _wrong(status: int, body: bytes, case: Case) -> str:
    if not 400 <= status < 500 and status not in case.also:
        return f"is none that may come: {body[:200]!r}"
    try:
        document = json.loads(body)
    except ValueError:
        return f"is not JSON: {body[:200]!r}"
    if not isinstance(document, dict) or document.get("ok") is not (status == 200):
        return f"is not the envelope: {body[:200]!r}"
    return "" if status == 200 or document["error"]["http_status"] == status else "differs from its envelope"


PROOFS = (
    Proof(
        "hostile-bytes",
        "Bytes that no client sends get a clear 4xx or are cut by their deadline; never a 5xx, never a hang.",
        "exchanges",
        20_000,
        exchange,
        {
            "deadlines and envelopes of the protocol": partial(exchange, cases=QUICK, kind=UnboundedServer),
            "the hiding of the hidden request": partial(exchange, cases=(PLAINLY_TWO,)),
        },
    ),
)
