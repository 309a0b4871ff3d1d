"""A receiver with either secret verifies while one is replaced by the other; after a day only the new one."""

from __future__ import annotations

import time

import pytest
from standardwebhooks.webhooks import Webhook, WebhookVerificationError

from redrive.domain.rotation import ROTATION_MS, SigningSecrets
from redrive.egress.signing import sign

OLD, NEW = "whsec_b2xkLXNlY3JldA==", "whsec_bmV3LXNlY3JldA=="


def verified(secret: str, signing: tuple[str, ...]) -> bool:
    headers = sign(signing, "m1", int(time.time()), b"{}")
    try:
        Webhook(secret).verify("{}", headers)
    except WebhookVerificationError:
        return False
    return True


@pytest.mark.parametrize(
    ("elapsed_ms", "old"), [(0, True), (ROTATION_MS - 1, True), (ROTATION_MS, False)], ids=str
)
def test_both_sign_for_a_day(elapsed_ms: int, old: bool) -> None:
    """Judged by the library that receivers use."""
    before = SigningSecrets(OLD)
    assert (verified(OLD, before.signing(5)), verified(NEW, before.signing(5))) == (True, False)
    signing = before.rotated(NEW, 1_000).signing(1_000 + elapsed_ms)
    assert (verified(OLD, signing), verified(NEW, signing)) == (old, True)


def test_the_same_secret_again_changes_nothing() -> None:
    """A repeated rotation neither ends nor prolongs the old one's day."""
    rotated = SigningSecrets(OLD).rotated(NEW, 1_000)
    assert rotated.rotated(NEW, 2_000) is rotated


def test_secrets_are_not_shown() -> None:
    """Not in a log, an error or a debugger's line."""
    shown = repr(SigningSecrets(OLD).rotated(NEW, 1_000))
    assert [secret for secret in (OLD, NEW) if secret in shown] == []
