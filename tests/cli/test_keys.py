"""``redrive key``: a secret is seen once, and ends when it is revoked."""

from __future__ import annotations

import pytest

from tests.cli.program import Program


def test_a_keys_life(redrive: Program) -> None:
    """Create (the secret alone on stdout), use within its scopes and queues, rotate, revoke; never listed."""
    made = redrive("key", "create", "night", "--scope", "publish", "--queue", "night*")
    secret = made.out.strip()
    assert (made.code, secret[:4], secret in made.err) == (0, "rdk_", False)
    assert redrive("publish", "night-1", "1", api_key=secret).code == 0
    assert redrive("publish", "other", "1", api_key=secret).code == 1
    assert redrive("key", "list", api_key=secret).code == 3
    (key,) = [item for item in redrive("key", "list", "--json").json["items"] if item["name"] == "night"]
    assert (key["scopes"], key["queues"]) == (["publish"], ["night*"])
    rotated = redrive("key", "rotate", key["id"], "--json").json
    assert rotated["id"] != key["id"]
    assert redrive("publish", "night-1", "1", api_key=secret).code == 0
    assert secret not in redrive("key", "list").out
    assert redrive("key", "revoke", key["id"], "--reason", "left").code == 0
    assert redrive("publish", "night-1", "1", api_key=rotated["secret"]).code == 0
    refused = redrive("publish", "night-1", "1", "--json", api_key=secret)
    assert (refused.code, refused.error["code"]) == (3, "UNAUTHENTICATED")


def test_a_key_from_a_file(redrive: Program, alone: Program) -> None:
    """--api-key-file, and REDRIVE_API_KEY_FILE; a missing file is named, exit code 2."""
    (alone.folder / "key").write_text(redrive("key", "create", "file").out)
    url = redrive.settings["url"]
    assert alone("publish", "file", "1", "--api-key-file", "key", url=url).code == 0
    assert alone("publish", "file", "1", url=url, api_key_file="key").code == 0
    missing = alone("publish", "file", "1", "--api-key-file", "nokey", url=url)
    assert (missing.code, "nokey: No such file" in missing.err) == (2, True)


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["create", "x", "--scope", "root"], 2, "scopes[0] must be one of 'publish', 'consume'"),
        (["create", "x", "--expires-at", "soon"], 2, "expires_at must be an RFC 3339 time, got 'soon'"),
        (["revoke", "key_nope"], 1, "key key_nope is not found"),
        (["rotate", "key_nope"], 1, "key key_nope is not found"),
    ],
)
def test_wrong_words(redrive: Program, words: list[str], code: int, said: str) -> None:
    """The exit code and the reason."""
    done = redrive.inside("key", *words)
    assert done.code == code, done.err
    assert said in done.err
