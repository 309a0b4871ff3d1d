"""One pushed delivery: a signed call of the endpoint, and what its answer means. Settling is the caller's."""

from __future__ import annotations

from dataclasses import dataclass, field

import msgspec

from redrive import seams
from redrive.domain.errors import InvalidRequest, TargetRefused
from redrive.domain.push import Verdict, judge, unanswered
from redrive.domain.rotation import SigningSecrets
from redrive.egress.door import Door, TargetTimedOut, TargetUnreachable
from redrive.egress.signing import sign


class PushedMessage(msgspec.Struct, frozen=True):
    """The body that an endpoint is sent; payload and headers are the very JSON that was published."""

    message_id: str
    queue: str
    attempt: int
    payload: msgspec.Raw
    headers: msgspec.Raw


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where a subscription's messages go. ``url`` may hold a token, and is in no ``repr`` either."""

    url: str = field(repr=False)
    secrets: SigningSecrets
    timeout_seconds: float


def push(door: Door, endpoint: Endpoint, message: PushedMessage) -> Verdict:
    """Call ``endpoint`` with ``message``; every way that this can end is a verdict.

    It may be called again with the same message (a lost lease, a late answer): ``webhook-id`` is then the
    same, by which the endpoint can tell.
    """
    body = msgspec.json.encode(message)
    now_ms = seams.wall_ms()
    signed = sign(endpoint.secrets.signing(now_ms), message.message_id, now_ms // 1_000, body)
    headers = {"Content-Type": "application/json", **signed}
    try:
        answer = door.post(
            endpoint.url, body, headers, timeout_seconds=endpoint.timeout_seconds, schemes=("https",)
        )
    except (InvalidRequest, TargetRefused, TargetTimedOut, TargetUnreachable) as error:
        return unanswered(str(error))
    return judge(answer.status, answer.headers.get("retry-after"), now_ms)
