"""URLs read strictly, addresses judged, allow-lists."""

from __future__ import annotations

from ipaddress import ip_address

import pytest

from redrive.domain.errors import InvalidRequest, TargetRefused
from redrive.egress.addresses import not_public, plain
from redrive.egress.door import Door
from redrive.egress.policy import Policy
from redrive.egress.targets import read_target
from tests.egress.hostile import addresses


@pytest.mark.parametrize(
    ("url", "host", "port", "path", "authority"),
    [
        ("https://Hooks.example", "hooks.example", 443, "/", "hooks.example"),
        ("http://hooks.example:80/a?b=c%20d", "hooks.example", 80, "/a?b=c%20d", "hooks.example"),
        ("https://hooks.example:8443?x", "hooks.example", 8443, "/?x", "hooks.example:8443"),
        ("https://93.184.215.14/x", "93.184.215.14", 443, "/x", "93.184.215.14"),
        ("https://[2606:2800:21f::1]:444/", "2606:2800:21f::1", 444, "/", "[2606:2800:21f::1]:444"),
        (
            "https://xn--bcher-kva.example/~a/(b);c=d,e!*'",
            "xn--bcher-kva.example",
            443,
            "/~a/(b);c=d,e!*'",
            None,
        ),
        ("https://1password.example/", "1password.example", 443, "/", None),
    ],
)
def test_what_is_read(url: str, host: str, port: int, path: str, authority: str | None) -> None:
    """Nothing is repaired but the case of the host."""
    target = read_target(url)
    assert (target.host, target.port, target.path) == (host, port, path)
    assert target.authority == (authority or host)


def test_errors_name_the_field_and_no_secret() -> None:
    """With the limit and what came."""
    with pytest.raises(InvalidRequest, match="on_failure_webhook must not carry a user") as refused:
        read_target("https://user:hunter2@hooks.example/", "on_failure_webhook")
    assert "hunter2" not in str(refused.value)
    with pytest.raises(InvalidRequest, match="url must have 1 to 2000 characters, not 2001"):
        read_target("https://hooks.example/".ljust(2_001, "a"))
    assert len(read_target("https://hooks.example/".ljust(2_000, "a")).path) == 1_979


@pytest.mark.parametrize(
    "text",
    [
        "1.1.1.1",
        "8.8.8.8",
        "100.63.255.255",
        "100.128.0.0",
        "172.15.255.255",
        "172.32.0.0",
        "191.255.255.255",
        "192.0.1.0",
        "198.17.255.255",
        "198.20.0.0",
        "223.255.255.255",
        "2606:4700::1111",
        "2a00:1450:4001:800::200e",
        "2001:200::1",
        "2003::1",
        "::ffff:8.8.8.8",
        "64:ff9b::808:808",
    ],
)
def test_public_addresses(text: str) -> None:
    """The neighbours of every special range."""
    assert not_public(plain(ip_address(text))) == ""


@pytest.mark.parametrize(
    "text",
    [
        "0.255.255.255",
        "10.255.255.255",
        "100.64.0.0",
        "100.127.255.255",
        "127.255.255.255",
        "169.254.0.0",
        "172.16.0.0",
        "172.31.255.255",
        "192.0.0.0",
        "192.0.2.255",
        "192.88.99.0",
        "192.168.255.255",
        "198.18.0.0",
        "198.19.255.255",
        "198.51.100.1",
        "203.0.113.1",
        "224.0.0.0",
        "239.255.255.255",
        "255.255.255.255",
        "::",
        "::1",
        "::ffff:10.0.0.1",
        "64:ff9b::a00:1",
        "64:ff9b:1::808:808",
        "100::1",
        "2001::1",
        "2001:1ff::1",
        "2001:db8::1",
        "2002:808:808::1",
        "3fff::1",
        "4000::1",
        "5f00::1",
        "fc00::1",
        "fdff::1",
        "fe80::1",
        "fec0::1",
        "ff02::1",
        "fe80::1%1",
        "2a00::5efe:8.8.8.8",
        "2a00::200:5efe:8.8.8.8",
        "::8.8.8.8",
        "::ffff:0:8.8.8.8",
    ],
)
def test_special_addresses(text: str) -> None:
    """The first and the last of ranges, and every form that carries an IPv4 address."""
    assert not_public(plain(ip_address(text)))


def test_hosts_and_networks_are_allowed_and_nothing_beside_them() -> None:
    """Plain http too, there only."""
    door = Door(Policy.parse(" Loop.test , 10.0.0.0/24,::1, fd12::/16"), resolver=addresses)
    for url in ("http://loop.test/", "http://private10.test/", "http://[::1]/", "https://unique.test/"):
        door.check(url)
        door.check(url, schemes=("https",))  # plain http is allowed there
    door.check("http://[::ffff:10.0.0.9]/")
    for url in ("http://127.0.0.1/", "http://10.0.1.1/", "http://localhost/", "http://any.loop.test/"):
        with pytest.raises((TargetRefused, KeyError)):
            door.check(url)
    with pytest.raises(InvalidRequest, match="url must begin with https://, not http://"):
        door.check("http://public.test/", schemes=("https",))


@pytest.mark.parametrize("text", ["10.0.0.1/24", "http://x", "a/b", "10.0.0", "x:80", "*"])
def test_an_entry_that_allows_nothing_is_named(text: str) -> None:
    """Instead of being left out silently."""
    with pytest.raises(InvalidRequest, match="allow_targets has"):
        Policy.parse(f"hooks.local,{text}")


def test_a_name_without_an_address_is_accepted_until_it_is_called() -> None:
    """It may have one by then."""

    def none(host: str, seconds: float) -> list[object]:
        return []

    def hangs(host: str, seconds: float) -> list[object]:
        raise TimeoutError

    for resolver in (none, hangs):
        Door(Policy(), resolver=resolver).check("https://soon.test/")  # type: ignore[arg-type]
