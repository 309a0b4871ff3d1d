"""Many messages from JSON lines: read in batches, each answered by its line number."""

from __future__ import annotations

import contextlib
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, Final

import msgspec

from redrive.cli.failures import USAGE, Refusal, failure_of
from redrive.cli.output import note, progress
from redrive.cli.session import Session
from redrive.contract.exact import check_text
from redrive.domain import limits
from redrive.domain.errors import InvalidRequest, RedriveError
from redrive.transports.port import Entry, Published

_LINE_BYTES_MAX: Final = limits.BODY_BYTES_MAX + 64 * 1024
_TOO_LONG: Final = f"longer than {_LINE_BYTES_MAX} bytes; a payload has at most {limits.BODY_BYTES_MAX}"
_NAMED_MAX: Final = 20
_PLACE: Final = re.compile(r"^messages\[\d+\]\.")


class BadLine(ValueError):
    """A line that is no message; the text says why."""


class TooLong(BadLine):
    """A line or a payload beyond every limit."""


class _Fields(msgspec.Struct, forbid_unknown_fields=True):
    payload: msgspec.Raw
    job_key: str | None = None
    idempotency_key: str | None = None
    headers: dict[str, str] | None = None
    delay_seconds: float | None = None
    priority: int | None = None
    message_group_id: str | None = None
    deduplication_id: str | None = None


_ANY = msgspec.json.Decoder(msgspec.Raw)  # the syntax only: a number may have any size
_FIELDS = msgspec.json.Decoder(_Fields)


@dataclass(slots=True)
class Done:
    """How many lines were published, how many refused; ``line`` is the last one that was answered."""

    published: int = 0
    refused: int = 0
    line: int = 0
    _named: int = field(default=0, repr=False)

    def refuse(self, session: Session, line: int, code: str, why: str) -> None:
        """Name a line that was not published."""
        self.refused += 1
        if session.out.as_json:
            session.out.json({"line": line, "error": {"code": code, "message": why}})
        elif self._named < _NAMED_MAX:
            note(f"redrive: line {line}: {code}: {why}")
        elif self._named == _NAMED_MAX:
            note("redrive: more lines were refused; --json names them all")
        self._named += 1


def publish_lines(session: Session, queue: str, path: Path, *, entries: bool) -> Done:
    """Publish every line of ``path`` (``-``: stdin); empty lines are none. Nothing is read twice.

    Raises Refusal (exit 3) when the server goes away, naming what is published.
    """
    done = Done()
    with _opened(path) as source, progress("publishing", _bytes_of(path)) as advance:
        for batch in _batches(source):
            _publish(session, queue, batch, done, entries=entries)
            advance(sum(len(text) for _, text in batch))
    return done


def exact_payload(text: bytes) -> msgspec.Raw:
    """``text`` as a payload, to the byte; raises BadLine unless it is one JSON value."""
    try:
        check_text(text)
        _ANY.decode(text)
    except (msgspec.DecodeError, InvalidRequest, RecursionError) as error:
        raise BadLine(str(error)) from None
    return msgspec.Raw(text.strip())


def stdin_bytes() -> bytes:
    """All of stdin; raises TooLong when that is more than any payload has."""
    text = sys.stdin.buffer.read(_LINE_BYTES_MAX)
    if len(text) == _LINE_BYTES_MAX:
        raise TooLong(_TOO_LONG)
    return text


def _publish(
    session: Session, queue: str, batch: list[tuple[int, bytes]], done: Done, *, entries: bool
) -> None:
    """One batch: lines that are no message are kept out, the others are stored."""
    answers: dict[int, Published | RedriveError | BadLine] = {}
    ready: list[tuple[int, Entry]] = []
    for line, text in batch:
        try:
            ready.append((line, _entry(text, entries=entries)))
        except BadLine as error:
            answers[line] = error
    try:
        results = session.client.transport.publish(queue, [entry for _, entry in ready]) if ready else []
    except (RedriveError, ConnectionError) as failure:
        raise _stopped(failure, done, batch) from failure
    answers |= {line: result for (line, _), result in zip(ready, results, strict=True)}
    for line, _ in batch:
        answer = answers[line]
        if isinstance(answer, Published):
            done.published += 1
            if session.out.as_json:
                session.out.json({"line": line, **msgspec.to_builtins(answer)})
        elif isinstance(answer, RedriveError):
            done.refuse(session, line, answer.code, _PLACE.sub("", answer.message))
        else:
            done.refuse(session, line, "INVALID_LINE", str(answer))
    done.line = batch[-1][0]


def _stopped(failure: Exception, done: Done, batch: list[tuple[int, bytes]]) -> Refusal:
    """Why it ends here, and which lines are published."""
    shown = failure_of(failure)
    first, last = batch[0][0], batch[-1][0]
    before = f"lines up to {done.line} are answered, " if done.line else ""
    if isinstance(failure, RedriveError) and not failure.retryable:
        told, hint = f"lines from {first} on are not published", shown.hint
    else:
        told = f"whether lines {first} to {last} are published is not known, later ones are not"
        hint = "An idempotency_key in each entry makes it harmless to send them again."
    return Refusal(shown.exit_code, f"{before}{told}: {shown.message}", hint=hint, code=shown.code)


def _entry(text: bytes, *, entries: bool) -> Entry:
    if len(text) >= _LINE_BYTES_MAX:
        raise BadLine(_TOO_LONG)
    payload = exact_payload(text)
    if not entries:
        return Entry(payload=payload)
    try:
        found = _FIELDS.decode(text)
    except msgspec.DecodeError as error:
        raise BadLine(str(error)) from None
    given: dict[str, Any] = {name: getattr(found, name) for name in _Fields.__struct_fields__}
    return Entry(**given)


def _batches(source: IO[bytes]) -> Iterator[list[tuple[int, bytes]]]:
    """What one call takes, with line numbers: bounded in lines and in bytes."""
    batch: list[tuple[int, bytes]] = []
    room = limits.BATCH_BYTES_MAX
    for line, text in _numbered(source):
        if batch and (len(batch) == limits.BATCH_ENTRIES_MAX or len(text) + 1024 > room):
            yield batch
            batch, room = [], limits.BATCH_BYTES_MAX
        batch.append((line, text))
        room -= len(text) + 1024
    if batch:
        yield batch


def _numbered(source: IO[bytes]) -> Iterator[tuple[int, bytes]]:
    line = 0
    while text := source.readline(_LINE_BYTES_MAX):
        line += 1
        rest = text
        while len(rest) >= _LINE_BYTES_MAX and not rest.endswith(b"\n"):  # skip what is too long anyway
            rest = source.readline(_LINE_BYTES_MAX)
        if text.strip():
            yield line, text


@contextlib.contextmanager
def _opened(path: Path) -> Iterator[IO[bytes]]:
    if str(path) == "-":
        yield sys.stdin.buffer
        return
    try:
        source = path.open("rb")
    except OSError as error:
        raise Refusal(USAGE, f"{path}: {error.strerror}", code="FILE") from None
    with source:
        yield source


def _bytes_of(path: Path) -> int | None:
    with contextlib.suppress(OSError):
        if str(path) != "-":
            return path.stat().st_size
    return None
