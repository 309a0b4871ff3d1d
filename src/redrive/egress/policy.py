"""What the operator allows beyond public addresses (`REDRIVE_ALLOW_TARGETS`)."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Self

from redrive.domain.errors import InvalidRequest, TargetRefused
from redrive.egress.addresses import Address, Network, not_public, plain
from redrive.egress.targets import Target

ALLOWED_MAX: Final = 1_000
_HOST: Final = re.compile(r"[a-z0-9_-]+(\.[a-z0-9_-]+)*\.?")


@dataclass(frozen=True)
class Policy:
    """Hosts (whatever their addresses) and networks that may be called although they are not public, and
    without TLS. By itself it allows public addresses only.
    """

    hosts: frozenset[str] = frozenset()
    networks: tuple[Network, ...] = ()

    @classmethod
    def parse(cls, text: str) -> Self:
        """From names, addresses and networks between commas: ``hooks.local, 10.1.2.0/24, fd00::1``.

        Raises InvalidRequest that names the entry.
        """
        hosts: set[str] = set()
        networks: list[Network] = []
        entries = [entry.strip().lower() for entry in text.split(",") if entry.strip()]
        if len(entries) > ALLOWED_MAX:
            raise InvalidRequest(
                f"allow_targets has {len(entries)} entries, at most {ALLOWED_MAX} are allowed"
            )
        for entry in entries:
            try:
                networks.append(ipaddress.ip_network(entry.strip("[]")))
            except ValueError as error:
                if not _HOST.fullmatch(entry) or entry.rstrip(".").rpartition(".")[2].isdecimal():
                    raise InvalidRequest(
                        f"allow_targets has {entry!r}, which is no host name, address or network: {error}",
                        hint="Without scheme, port and path: hooks.local, 10.1.2.3, 10.1.2.0/24, fd00::/8",
                    ) from None
                hosts.add(entry.rstrip("."))
        return cls(frozenset(hosts), tuple(networks))

    def names(self, target: Target) -> bool:
        """Whether the target's host is allowed by its name."""
        return target.host.rstrip(".") in self.hosts

    def lists(self, address: Address) -> bool:
        """Whether one of the networks has the address."""
        judged = plain(address)
        return any(judged in network for network in self.networks)

    def admit(
        self, target: Target, addresses: Sequence[Address], schemes: Sequence[str], field: str = "url"
    ) -> None:
        """Raise InvalidRequest for a scheme not in ``schemes``, unless the target is an allowed one, and
        TargetRefused unless each of its ``addresses`` may be called.

        One refused address refuses the target: which of them a connection takes is up to the network.
        """
        if self.names(target):
            return
        allowed = [self.lists(address) for address in addresses]
        if target.scheme not in schemes and not (allowed and all(allowed)):
            raise InvalidRequest(f"{field} must begin with {' or '.join(schemes)}://, not {target.scheme}://")
        for address, listed in zip(addresses, allowed, strict=True):
            why = "" if listed else not_public(plain(address))
            if why:
                raise TargetRefused(
                    f"{field} leads to {address} ({why}); only public addresses are called",
                    hint="The operator can allow the host or its network: REDRIVE_ALLOW_TARGETS.",
                )
