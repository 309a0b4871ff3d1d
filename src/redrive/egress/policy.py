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
        return any(judged.version == network.version and judged in network for network in self.networks)

    def admit(self, target: Target, addresses: Sequence[Address], field: str = "url") -> None:
        """Raise TargetRefused unless each of the target's ``addresses`` may be called.

        One refused address refuses the target: which of them a connection takes is up to the network.
        """
        if self.names(target):
            return
        for address in addresses:
            why = not_public(plain(address))
            if why and not self.lists(address):
                raise TargetRefused(
                    f"{field} leads to {address} ({why}); only public addresses are called",
                    hint="The operator can allow the host or its network: REDRIVE_ALLOW_TARGETS.",
                )

    def admit_scheme(
        self, target: Target, addresses: Sequence[Address], schemes: Sequence[str], field: str = "url"
    ) -> None:
        """Raise InvalidRequest for a scheme not in ``schemes``; allowed targets may use plain http."""
        if target.scheme in schemes or self.names(target):
            return
        if not addresses or not all(map(self.lists, addresses)):
            raise InvalidRequest(f"{field} must begin with {' or '.join(schemes)}://, not {target.scheme}://")
