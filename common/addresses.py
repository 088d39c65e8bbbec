"""Which addresses a request may be sent to, where people or other servers name them.

A name is resolved and its address checked at each connection, and the connection goes to that very address:
a name that resolves to another one a moment later (DNS rebinding) gains nothing.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network

# Where clouds hand out the credentials of a machine: no setting opens these.
METADATA = frozenset(
    map(ip_address, ("169.254.169.254", "fd00:ec2::254", "100.100.100.200", "168.63.129.16"))
)
# IPv6 addresses that stand for an IPv4 one: mapped, translated (NAT64), 6to4, Teredo, compatible.
_STANDS_FOR_IPV4 = tuple(
    map(IPv6Network, ("::ffff:0:0/96", "64:ff9b::/96", "64:ff9b:1::/48", "2002::/16", "2001::/32", "::/96"))
)
PRIVATE = "an address in a private network: the operator of this server has to allow it"
_NUMERIC = re.compile(r"(0[xX][0-9a-fA-F]*|[0-9]+)")


class AddressRefused(OSError):
    """A connection that may not be made; the message says why, in one line."""


@dataclass(frozen=True, slots=True)
class AddressPolicy:
    """Which addresses may be dialled beside public ones: this machine (`loopback`) and these networks."""

    loopback: bool = False
    networks: tuple[Network, ...] = ()

    def problem(self, address: str) -> str:
        """Return why an address may not be dialled; "" if it may.

        Examples
        --------
        >>> AddressPolicy().problem("8.8.8.8"), AddressPolicy(loopback=True).problem("127.0.0.1")
        ('', '')
        >>> AddressPolicy().problem("10.0.0.4")
        '10.0.0.4 is an address in a private network: the operator of this server has to allow it'
        """
        try:
            found = ip_address(address)
        except ValueError:
            return f"{address} is no address that can be checked"
        kind = self._kind(found)
        return f"{address} is {kind}" if kind else ""

    def _kind(self, address: Address) -> str:
        if address.is_unspecified:
            return "an unspecified address, which means this machine"
        if address in METADATA:
            return "where a cloud keeps the credentials of its machines"
        if isinstance(address, IPv6Address) and not address.is_loopback and _stands_for_ipv4(address):
            return "an IPv6 address that stands for an IPv4 one"
        if any(address in network for network in self.networks):
            return ""
        if address.is_loopback:
            return "" if self.loopback else "this machine itself"
        if address.is_link_local:
            return "a link-local address"
        if address.is_multicast or address.is_reserved:
            return "not the address of one server"
        return "" if address.is_global else PRIVATE

    def host_problem(self, host: str) -> str:
        """Return why a host must not be entered; "" for a name, which is checked when it is resolved.

        Examples
        --------
        >>> AddressPolicy().host_problem("2130706433"), AddressPolicy().host_problem("api.openai.com")
        ('2130706433 is a number: write the address as four numbers with dots, or a name', '')
        """
        if "%" in host:
            return f"{host} names a network interface"
        if ":" in host:
            return self.problem(host)
        if not _NUMERIC.fullmatch(host.rstrip(".").rpartition(".")[2]):
            return ""
        try:
            IPv4Address(host)
        except ValueError:
            return f"{host} is a number: write the address as four numbers with dots, or a name"
        return self.problem(host)


def _stands_for_ipv4(address: IPv6Address) -> bool:
    return any(address in network for network in _STANDS_FOR_IPV4)


def networks_read(texts: Iterable[str]) -> tuple[Network, ...]:
    """Return networks such as 10.0.0.0/8; raises ValueError for anything else."""
    return tuple(ip_network(text.strip()) for text in texts if text.strip())
