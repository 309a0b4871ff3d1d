"""Which addresses are public, by a table of our own.

Source: IANA's registries of special-purpose IPv4 and IPv6 addresses (RFC 6890 and what amended it), of 2026.
Whatever either registry names is refused, also the few that are reachable from everywhere (AS112, AMT):
nobody's webhook lives there. Of IPv6 only 2000::/3 is public at all, so that what is not assigned yet is
refused too.
"""

from __future__ import annotations

from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_network
from typing import Final, TypeAlias

Address: TypeAlias = IPv4Address | IPv6Address
Network: TypeAlias = IPv4Network | IPv6Network

_SPECIAL: Final = {
    ip_network(network): what
    for network, what in {
        "0.0.0.0/8": "this network",
        "10.0.0.0/8": "private",
        "100.64.0.0/10": "shared by carriers",
        "127.0.0.0/8": "loopback",
        "169.254.0.0/16": "link-local",
        "172.16.0.0/12": "private",
        "192.0.0.0/24": "assigned to protocols",
        "192.0.2.0/24": "documentation",
        "192.31.196.0/24": "AS112",
        "192.52.193.0/24": "AMT",
        "192.88.99.0/24": "6to4 relay",
        "192.168.0.0/16": "private",
        "192.175.48.0/24": "AS112",
        "198.18.0.0/15": "benchmarking",
        "198.51.100.0/24": "documentation",
        "203.0.113.0/24": "documentation",
        "224.0.0.0/4": "multicast",
        "240.0.0.0/4": "reserved",
        "2001::/23": "assigned to protocols (Teredo, ORCHID and others)",
        "2001:db8::/32": "documentation",
        "2002::/16": "6to4",
        "2620:4f:8000::/48": "AS112",
        "3fff::/20": "documentation",
    }.items()
}
_GLOBAL_6: Final = IPv6Network("2000::/3")
_MAPPED: Final = IPv6Network("::ffff:0:0/96")
_NAT64: Final = IPv6Network("64:ff9b::/96")
_ISATAP: Final = (0x00005EFE, 0x02005EFE)  # the middle of an address that carries an IPv4 address behind it


def plain(address: Address) -> Address:
    """The IPv4 address that a mapped or a translated (NAT64, 64:ff9b::/96) IPv6 address stands for; any other
    address itself. A connection to either form ends at the IPv4 address, which is therefore what is judged.
    """
    if isinstance(address, IPv4Address) or address.scope_id is not None:
        return address
    return IPv4Address(int(address) & 0xFFFFFFFF) if address in _MAPPED or address in _NAT64 else address


def not_public(address: Address) -> str:
    """Why ``address`` is not public, in two or three words; empty when it is. Judge :func:`plain` ones."""
    if isinstance(address, IPv6Address):
        if address.scope_id is not None:
            return "bound to an interface"
        if address not in _GLOBAL_6:
            return "not a global address"
        if (int(address) >> 32) & 0xFFFFFFFF in _ISATAP:
            return "ISATAP"
    return next((what for network, what in _SPECIAL.items() if address in network), "")
