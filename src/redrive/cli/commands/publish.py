"""``redrive publish``: one message from the command line, or many from the lines of a file or stdin."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Final

import typer

from redrive.cli.failures import NO, USAGE, Refusal
from redrive.cli.output import note
from redrive.cli.session import Options, Session, command

Queue = Annotated[str, typer.Argument(help="The queue's name.", metavar="QUEUE")]
Payload = Annotated[str | None, typer.Argument(help="JSON text; - reads it from stdin.", metavar="[PAYLOAD]")]
Lines = Annotated[
    Path | None, typer.Option(help="A file (- is stdin) of one payload a line, JSON.", metavar="FILE")
]
Entries = Annotated[
    Path | None,
    typer.Option(help='A file (- is stdin) of one {"payload": …, "job_key": …} a line.', metavar="FILE"),
]
Headers = Annotated[
    list[str] | None, typer.Option("--header", help="NAME=VALUE; repeatable.", metavar="NAME=VALUE")
]
MESSAGE: Final[Options] = {
    "job_key": Annotated[str | None, typer.Option(help="The job's stable business key.", metavar="KEY")],
    "delay_seconds": Annotated[float | None, typer.Option("--delay", help="Seconds before delivery.")],
    "priority": Annotated[int | None, typer.Option(help="0 to 9, higher first.")],
    "message_group_id": Annotated[str | None, typer.Option("--group", help="Its group (FIFO).")],
    "deduplication_id": Annotated[str | None, typer.Option(help="Equal ids are one message (FIFO).")],
    "idempotency_key": Annotated[
        str | None, typer.Option(help="The same key again answers the first message (24 h).", metavar="KEY")
    ],
}


def register(app: typer.Typer) -> None:
    """Add the command to ``app``."""
    command(app, "publish", groups={"fields": MESSAGE})(publish)


def publish(
    session: Session,
    queue: Queue,
    fields: dict[str, Any],
    payload: Payload = None,
    lines: Lines = None,
    entries: Entries = None,
    header: Headers = None,
) -> None:
    """Publish a message and print its id; answered, it is on disk.

    With --lines or --entries every line is a message. A line that is not valid is named on stderr and the
    others are published: exit code 1. With --json every line is answered by one, in order. When the server
    goes away in between, the message names the lines that are published.
    """
    given = [
        name for name, value in (("PAYLOAD", payload), ("--lines", lines), ("--entries", entries)) if value
    ]
    if len(given) != 1:
        raise Refusal(
            USAGE,
            f"one of PAYLOAD, --lines and --entries is needed, got {' and '.join(given) or 'none'}",
            hint="redrive publish settlement '{\"payment\": 7}'",
            code="PAYLOAD",
        )
    if payload is not None:
        _one(session, queue, payload, fields | _headers(header))
        return
    if fields or header:
        names = ", ".join(sorted({*fields, *(["header"] if header else [])}))
        raise Refusal(
            USAGE, f"{names} cannot be given for many messages", hint="Use --entries.", code="PAYLOAD"
        )
    from redrive.cli.lines import publish_lines

    done = publish_lines(session, queue, lines or entries or Path("-"), entries=entries is not None)
    if not session.out.as_json:
        session.out.line(f"{done.published} published to {queue}, {done.refused} refused")
    if done.refused:
        raise typer.Exit(NO)


def _one(session: Session, queue: str, payload: str, fields: dict[str, Any]) -> None:
    from redrive.cli.lines import BadLine, TooLong, exact_payload, stdin_bytes

    try:
        text = stdin_bytes() if payload == "-" else payload.encode("utf-8", "surrogateescape")
        request = {"queue": queue, "payload": exact_payload(text), **fields}
    except TooLong as error:
        hint = "Keep it in a file or an object store, and publish where it is."
        raise Refusal(USAGE, f"the payload is {error}", hint=hint, code="PAYLOAD_TOO_LARGE") from None
    except BadLine as error:
        raise Refusal(
            USAGE,
            f"the payload is no JSON text: {error}",
            hint="Text needs quotes of its own: '\"text\"'.",
            code="PAYLOAD",
        ) from None
    if session.out.as_json:
        session.out.json(session.client.exact("queue.publish", request))
        return
    stored = session.client.call("queue.publish", request)
    if stored.get("duplicate"):
        note("a duplicate: this is the message that was there before")
    session.out.line(stored["message_id"])


def _headers(given: list[str] | None) -> dict[str, Any]:
    headers = {}
    for text in given or []:
        name, sign, value = text.partition("=")
        if not sign or not name:
            raise Refusal(USAGE, f"header must be NAME=VALUE, got {text!r}", code="HEADER")
        headers[name] = value
    return {"headers": headers} if headers else {}
