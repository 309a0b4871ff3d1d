"""``redrive consume``: look at what a consumer would get."""

from __future__ import annotations

from typing import Annotated, Any, Final

import typer

from redrive.cli.failures import USAGE, Refusal
from redrive.cli.output import Column, note
from redrive.cli.session import Session, command

Queue = Annotated[str, typer.Argument(help="The queue's name.", metavar="QUEUE")]
Max = Annotated[int, typer.Option("--max", help="At most so many.")]
Wait = Annotated[float, typer.Option("--wait", help="Seconds to wait for a first message.")]
Visibility = Annotated[
    float | None, typer.Option("--visibility-timeout", help="Seconds of the lease (default: the queue's).")
]
Ack = Annotated[bool, typer.Option("--ack", help="Acknowledge after printing: they are deleted.")]
Lease = Annotated[bool, typer.Option("--lease", help="Keep the leases; the receipt handles are printed.")]
COLUMNS: Final[tuple[Column, ...]] = ("message_id", "job_key", "attempt", "delivery", "payload")


def register(app: typer.Typer) -> None:
    """Add the command to ``app``."""
    command(app, "consume")(consume)


def consume(
    session: Session,
    queue: Queue,
    most: Max = 10,
    wait: Wait = 0.0,
    visibility_timeout: Visibility = None,
    ack: Ack = False,
    lease: Lease = False,
) -> None:
    """Lease messages, print them, and give them back: no attempt is spent.

    Exit code 1 when there is no such queue.
    With --ack they are acknowledged once they are printed, with --lease nothing follows.
    Fields that the queue redacts are masked; --json with --ack or --lease prints them, as any consumer gets
    them.
    """
    import msgspec

    if ack and lease:
        raise Refusal(USAGE, "--ack and --lease exclude each other", code="USAGE")
    request = {
        "queue": queue,
        "max_messages": most,
        "wait_seconds": wait,
        "visibility_timeout": visibility_timeout,
        "consumer_id": "redrive consume",
        "view": "messages",
    }
    record = session.client.call("queue.get", {"queue": queue})  # a consume would make a misspelt queue
    exact = session.client.exact("queue.consume", request)
    messages: list[dict[str, Any]] = msgspec.json.decode(exact)["messages"]
    settled = False
    try:
        _print(session, exact if ack or lease else _masked(exact), lease=lease)
        if not messages and not session.out.as_json:
            note(_why_nothing(session, queue, record))
        if ack:
            _acknowledge(session, queue, messages)
        settled = ack or lease
    finally:
        if not settled:
            for message in reversed(messages):  # so that the first one is the first again
                session.client.transport.release(queue, message["message_id"], message["receipt_handle"])


def _why_nothing(session: Session, queue: str, record: dict[str, Any]) -> str:
    if record["state"] != "paused":
        return f"nothing to deliver in {queue}"
    held = session.client.call("queue.stats", {"queue": queue})
    return f"{queue} is paused ({held['ready']} ready); redrive queue resume {queue}"


def _masked(answer: bytes) -> bytes:
    """The answer as it may be shown; where its queue redacts nothing, the same bytes."""
    import msgspec

    from redrive.domain.redaction import exactly, redact

    if not (paths := msgspec.json.decode(answer).get("redact")):
        return answer
    shown = exactly(answer)
    for message in shown["messages"]:
        masked = redact(paths, message["payload"], message["headers"])
        message |= {"payload": masked.payload, "headers": masked.headers}
    return msgspec.json.encode(shown)


def _print(session: Session, answer: bytes, *, lease: bool) -> None:
    import msgspec

    if session.out.as_json:
        session.out.json(answer)
    elif messages := msgspec.json.decode(_masked(answer))["messages"]:
        columns = (*COLUMNS, "receipt_handle") if lease else COLUMNS
        session.out.table(messages, columns, empty="")
    session.out.flush()


def _acknowledge(session: Session, queue: str, messages: list[dict[str, Any]]) -> None:
    from redrive.domain.errors import RedriveError

    pairs = [(message["message_id"], message["receipt_handle"]) for message in messages]
    results = session.client.transport.ack(queue, pairs) if pairs else []
    refused = [result for result in results if isinstance(result, RedriveError)]
    if refused:
        raise refused[0]
    if messages and not session.out.as_json:
        note(f"{len(messages)} acknowledged")
