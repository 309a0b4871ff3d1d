"""The options that plan commands share, and the request that they make."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from redrive.cli.commands.dead_letters import DIED, SELECT
from redrive.cli.failures import USAGE, Refusal
from redrive.cli.session import Options

ENVELOPE: Final[Options] = {
    "rate": Annotated[float | None, typer.Option(help="Members a second; default 10.")],
    "max_in_flight": Annotated[
        int | None, typer.Option("--in-flight", help="Sent and not finished; default 100.")
    ],
    "ramp_seconds": Annotated[
        float | None, typer.Option("--ramp", help="Seconds in which the rate grows to its height.")
    ],
}
ABORT: Final[Options] = {
    "same_fingerprint": Annotated[
        bool | None,
        typer.Option(
            "--abort-same-fingerprint/--no-abort-same-fingerprint",
            help="Stop when a member is rejected with the error that it died of (default).",
        ),
    ],
    "failure_ratio": Annotated[
        float | None, typer.Option("--abort-failure-ratio", help="Stop at this share of failures, 0.5.")
    ],
    "window_seconds": Annotated[
        int | None, typer.Option("--abort-window", help="Over so many seconds; default 60.")
    ],
    "oldest_ready_age_seconds": Annotated[
        float | None, typer.Option("--abort-ready-age", help="Stop when the oldest ready is older, in s.")
    ],
    "service_time_p95_ms": Annotated[
        float | None, typer.Option("--abort-p95-ms", help="Stop when jobs take longer, p95 in ms.")
    ],
    "dead_growth_per_minute": Annotated[
        float | None, typer.Option("--abort-dead-growth", help="Stop when more die a minute.")
    ],
}
GROUPS: Final = {"select": SELECT, "envelope": ENVELOPE, "abort": ABORT}
Plan = Annotated[str, typer.Argument(help="As plan create printed it.", metavar="PLAN_ID")]
Reason = Annotated[str | None, typer.Option(help="Why; kept in the audit log.")]
Actor = Annotated[str | None, typer.Option(help="Who you are, beside the key's name.", metavar="WHO")]
Ids = Annotated[
    list[str] | None, typer.Option("--id", help="Only this message; repeatable.", metavar="MESSAGE_ID")
]
All = Annotated[bool, typer.Option("--all", help="Without any filter: every dead letter, or --max of them.")]
Max = Annotated[int | None, typer.Option("--max", min=1, help="At most so many, the oldest.")]
Died = Annotated[str | None, DIED]


def selection(
    select: Mapping[str, Any], ids: list[str] | None, died: str | None, everything: bool, most: int | None
) -> dict[str, Any]:
    """The contract's ``select``; raises Refusal (exit 2) when nothing was named."""
    if not everything and not ids and died is None and not select:
        raise Refusal(
            USAGE, "what to redrive is not named", hint="Give --id, a filter or --all.", code="SELECTION"
        )
    named = {**select, "message_ids": ids or None, "reason": died, "max_messages": most}
    return {name: value for name, value in named.items() if value is not None}


def enveloped(given: Mapping[str, Any]) -> dict[str, Any] | None:
    """The contract's ``envelope``; ``rate_per_second`` is the name of a setting of servers already."""
    named = {"rate_per_second" if name == "rate" else name: value for name, value in given.items()}
    return named or None


def merge_patch(text: str | None) -> Any:
    """The JSON of ``--edit`` to the byte, from a file after ``@``; raises Refusal (exit 2) for another."""
    if text is None:
        return None
    from redrive.cli.lines import BadLine, exact_payload

    try:
        given = Path(text[1:]).read_bytes() if text.startswith("@") else text.encode()
        return exact_payload(given)
    except OSError as error:
        raise Refusal(USAGE, f"{text[1:]}: {error.strerror}", code="FILE") from None
    except (BadLine, UnicodeEncodeError) as error:
        raise Refusal(
            USAGE, f"--edit is not JSON: {error}", hint='It is a merge patch, as {"amount":12}.', code="EDIT"
        ) from None
