"""Where a request came from and where it was sent: addresses, hosts and origins."""

import ipaddress
from collections.abc import Sequence
from typing import Final
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.types import Scope

_Network = ipaddress.IPv4Network | ipaddress.IPv6Network
_IPV6_BLOCK: Final = 64  # one customer holds at least this much


def parse_networks(texts: Sequence[str]) -> tuple[_Network, ...]:
    """Raises ValueError."""
    return tuple(ipaddress.ip_network(text, strict=False) for text in texts)


def is_loopback(host: str) -> bool:
    """Whether a host name or address is this machine's own."""
    if host.lower() == "localhost" or host.lower().endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


class Proxies:
    """Reads X-Forwarded-* from the proxies that are trusted, and from nobody else."""

    def __init__(self, networks: Sequence[_Network]) -> None:
        self._networks = tuple(networks)

    def client_of(self, scope: Scope, headers: Headers) -> str:
        """The address that a caller's rate is counted under."""
        client = scope.get("client")
        address = str(client[0]) if client else "unknown"
        if self.is_trusted(address):
            hops = ",".join(headers.getlist("x-forwarded-for")).split(",")
            for hop in reversed([hop.strip() for hop in hops]):
                if not _is_address(hop):
                    break
                address = hop
                if not self.is_trusted(hop):
                    break
        return _block(address)

    def is_secure(self, scope: Scope, headers: Headers) -> bool:
        """Whether the client speaks TLS, to this server or to a trusted proxy."""
        client = scope.get("client")
        if client and self.is_trusted(str(client[0])):
            forwarded = headers.get("x-forwarded-proto", "")
            if forwarded:
                return forwarded.strip().lower() == "https"
        return scope.get("scheme") in {"https", "wss"}

    def is_trusted(self, address: str) -> bool:
        if not _is_address(address):
            return False
        parsed = ipaddress.ip_address(address)
        return any(parsed in network for network in self._networks)


def host_name(host: str) -> str | None:
    """The name in a Host header, or None where it is none."""
    try:
        return urlsplit(f"//{host}").hostname if _is_plain(host) else None
    except ValueError:
        return None


def is_same_origin(origin: str, host: str) -> bool:
    """Whether an Origin header names the host that the request was sent to."""
    try:
        parts = urlsplit(origin)
        return (
            parts.scheme in {"http", "https"} and _is_plain(host) and parts.netloc == host.lower()
        )
    except ValueError:
        return False


def _is_plain(host: str) -> bool:
    return bool(host) and not any(c in host for c in "/?#@\\ \t")


def _is_address(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True


def _block(address: str) -> str:
    if not _is_address(address):
        return address
    parsed = ipaddress.ip_address(address)
    if isinstance(parsed, ipaddress.IPv6Address):
        if parsed.ipv4_mapped is not None:
            return str(parsed.ipv4_mapped)
        return str(ipaddress.ip_network((parsed, _IPV6_BLOCK), strict=False))
    return str(parsed)
