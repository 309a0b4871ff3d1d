"""A receiver built on another library verifies what we sign, before, during and after a rotation."""

from __future__ import annotations

import hashlib
import hmac
import json
import time

import pytest
from standardwebhooks.webhooks import Webhook, WebhookVerificationError

from redrive.domain.errors import InvalidRequest
from redrive.egress.signing import check_secret, new_secret, sign

BODY = json.dumps({"payload": "Zoë"}, ensure_ascii=False).encode()


def verified(secret: str | bytes, headers: dict[str, str], body: bytes = BODY) -> bool:
    try:
        Webhook(secret).verify(body.decode(), headers)
    except WebhookVerificationError:
        return False
    return True


@pytest.mark.parametrize("old", [new_secret(), "plain-secret-of-old"], ids=["base64", "plain"])
def test_rotation(old: str) -> None:
    """The old one alone, both, the new one alone."""
    new = new_secret()
    keys = [secret if secret.startswith("whsec_") else secret.encode() for secret in (old, new)]
    now = int(time.time())
    before, during, after = (
        sign([old], "m1", now, BODY),
        sign([new, old], "m1", now, BODY),
        sign([new], "m1", now, BODY),
    )
    assert [verified(key, before) for key in keys] == [True, False]
    assert [verified(key, during) for key in keys] == [True, True]
    assert [verified(key, after) for key in keys] == [False, True]
    assert not verified(keys[1], during, BODY + b" ")
    assert not verified(keys[1], during | {"webhook-id": "m2"})


def test_the_other_header_is_the_hash_of_the_body() -> None:
    """Under the secret's own characters."""
    headers = sign(["whsec_c2VjcmV0"], "m1", 1, BODY)
    expected = hmac.new(b"whsec_c2VjcmV0", BODY, hashlib.sha256).hexdigest()
    assert headers["X-Infrai-Signature"] == f"sha256={expected}"


@pytest.mark.parametrize("secret", ["whsec_", "whsec_!", "whsec_abc"])
def test_a_secret_that_is_no_base64_is_named_and_not_shown(secret: str) -> None:
    """By its field."""
    with pytest.raises(InvalidRequest, match="secret begins with whsec_ but is no base64") as refused:
        check_secret(secret)
    assert secret.removeprefix("whsec_") == "" or secret not in str(refused.value)


def test_new_secrets_differ() -> None:
    """And each can be used."""
    made = {new_secret() for _ in range(10)}
    assert len(made) == 10
    for secret in made:
        check_secret(secret)
