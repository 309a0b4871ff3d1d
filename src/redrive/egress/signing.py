"""Signatures of what leaves, so that a target can tell us from anybody else.

Standard Webhooks (``webhook-id``, ``webhook-timestamp``, ``webhook-signature``), and one header for receivers
that know only the hash of the body. A secret that begins with ``whsec_`` is base64 of the key; any other is
the key itself.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
from collections.abc import Sequence
from typing import Final

from redrive import seams
from redrive.domain.errors import InvalidRequest

PREFIX: Final = "whsec_"
_KEY_BYTES: Final = 32


def new_secret() -> str:
    """A secret of 256 random bits, ``whsec_…``."""
    return PREFIX + base64.b64encode(seams.random_bits(8 * _KEY_BYTES).to_bytes(_KEY_BYTES, "big")).decode()


def check_secret(secret: str, field: str = "secret") -> None:
    """Raise InvalidRequest (it names ``field``, never the secret) for a ``whsec_`` that is no base64."""
    try:
        _key(secret)
    except (binascii.Error, ValueError):
        raise InvalidRequest(f"{field} begins with {PREFIX} but is no base64 behind it") from None


def sign(secrets: Sequence[str], message_id: str, timestamp: int, body: bytes) -> dict[str, str]:
    """The headers that sign ``body``. ``secrets``: the one in use first, then those that it replaces, which
    sign beside it for receivers that do not know it yet. ``timestamp``: seconds since 1970.
    """
    signed = f"{message_id}.{timestamp}.".encode() + body
    signatures = [
        "v1," + base64.b64encode(hmac.digest(_key(secret), signed, hashlib.sha256)).decode()
        for secret in secrets
    ]
    return {
        "webhook-id": message_id,
        "webhook-timestamp": str(timestamp),
        "webhook-signature": " ".join(signatures),
        "X-Infrai-Signature": f"sha256={hmac.new(secrets[0].encode(), body, hashlib.sha256).hexdigest()}",
    }


def _key(secret: str) -> bytes:
    if secret.startswith(PREFIX):
        key = base64.b64decode(secret.removeprefix(PREFIX), validate=True)
        if not key:
            raise ValueError
        return key
    return secret.encode()
