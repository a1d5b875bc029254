"""What a crawl may connect to: only http(s), only global addresses, resolved once.

The rule is one rule, not a list: a resolved address that is not globally
routable is refused, also inside IPv4-mapped, 6to4, NAT64 and Teredo forms,
unless the source names the host. The connection goes to the very addresses
that were checked (``PinnedResolver``), so a second DNS answer cannot be used.
"""

from __future__ import annotations

import asyncio
import ipaddress
import socket
from collections.abc import Collection, Sequence
from typing import Any
from urllib.parse import SplitResult, urlsplit

from twisted.internet.address import IPv4Address, IPv6Address
from twisted.internet.interfaces import IHostnameResolver, IHostResolution
from twisted.web._newclient import HTTPClientParser
from zope.interface import implementer

from crawlers.outcomes import HEADERS_TOO_LONG, Refused

_NAT64 = ipaddress.ip_network("64:ff9b::/96")
_PORTS = {"http": 80, "https": 443}
_DNS_TIMEOUT_S = 20.0
MAX_HEADER_BYTES = 256 * 1024

Address = ipaddress.IPv4Address | ipaddress.IPv6Address


def is_public(address: str) -> bool:
    """Whether an IP address is globally routable, looking through embedded IPv4 forms."""
    try:
        parsed = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return False
    return all(one.is_global and not one.is_multicast for one in (parsed, *_embedded(parsed)))


def _embedded(address: Address) -> list[Address]:
    if isinstance(address, ipaddress.IPv4Address):
        return []
    inner: list[Address] = [one for one in (address.ipv4_mapped, address.sixtofour) if one is not None]
    if address.teredo is not None:
        inner.extend(address.teredo)
    if address in _NAT64:
        inner.append(ipaddress.IPv4Address(int(address) & 0xFFFFFFFF))
    return inner


class Guard:
    """Decides about URLs before every request, redirects included.

    ``private``: hosts (``host`` or ``host:port``) that may be private addresses.
    ``ports``: ports beside 80 and 443 that are allowed everywhere.
    """

    def __init__(self, private: Collection[str] = (), *, max_url_length: int = 2000) -> None:
        self._private = frozenset(host.lower() for host in private)
        self._max_url_length = max_url_length
        self._pinned: dict[str, list[str]] = {}

    async def check(self, url: str) -> None:
        """Raise Refused where the URL must not be asked for; else remember its host's addresses."""
        parts = self.check_form(url)
        host = parts.hostname or ""
        addresses = self._pinned.get(host) or await self._resolve(host, parts.port or _PORTS[parts.scheme])
        refused = [address for address in addresses if not is_public(address)]
        if refused and not self._named(parts):
            raise Refused("guard", f"{host} is {refused[0]}, which is not a public address")
        self._pinned[host] = addresses

    def check_form(self, url: str) -> SplitResult:
        """The checks that need no network: scheme, credentials, port, length."""
        try:
            parts = urlsplit(url)
            port = parts.port
        except ValueError as error:
            raise Refused("guard", f"not a URL: {error}") from error
        if parts.scheme not in _PORTS or not parts.hostname:
            raise Refused("guard", f"only http and https are asked for, not {parts.scheme or 'this'}:")
        if parts.username or parts.password:
            raise Refused("guard", "a URL with credentials")
        if len(url) > self._max_url_length:
            raise Refused("url_too_long", f"{len(url)} characters")
        if port not in (None, 80, 443) and not self._named(parts):
            raise Refused("guard", f"port {port} is not named by the source")
        return parts

    def addresses(self, host: str) -> list[str]:
        """The checked addresses of a host; empty where it was not checked."""
        return self._pinned.get(host, [])

    def _named(self, parts: SplitResult) -> bool:
        host = (parts.hostname or "").lower()
        return host in self._private or f"{host}:{parts.port or _PORTS.get(parts.scheme)}" in self._private

    async def _resolve(self, host: str, port: int) -> list[str]:
        lookup = asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
        try:
            found = await asyncio.wait_for(lookup, _DNS_TIMEOUT_S)
        except (OSError, UnicodeError, TimeoutError) as error:
            raise Refused("dns", f"{host} cannot be resolved: {error}", transient=True) from error
        return list(dict.fromkeys(str(entry[4][0]) for entry in found))


def limit_headers(limit: int = MAX_HEADER_BYTES) -> None:
    """Make answers fail whose header section is over about ``limit`` bytes, in this whole process.

    Twisted bounds a line but not their number, so that a host could fill the
    memory within the timeout. There is no public place to hook in.
    """
    received: Any = HTTPClientParser.dataReceived
    if getattr(received, "limited", False):
        return

    def data_received(parser: Any, data: bytes) -> None:
        if parser.line_mode:  # status line and headers; a block may hold the body's beginning
            parser.header_bytes = getattr(parser, "header_bytes", 0) + len(data)
            if parser.header_bytes > limit:
                raise ValueError(HEADERS_TOO_LONG)
        received(parser, data)

    data_received.limited = True  # type: ignore[attr-defined]
    HTTPClientParser.dataReceived = data_received  # type: ignore[method-assign]


@implementer(IHostResolution)
class _Resolution:
    """A resolution that is complete at once."""

    def __init__(self, name: str) -> None:
        self.name = name

    def cancel(self) -> None:
        """Nothing runs that could be cancelled."""


@implementer(IHostnameResolver)
class PinnedResolver:
    """Twisted name resolver that knows only the hosts which the guard has checked."""

    guard = Guard()  # the crawl's own, set before the crawl begins

    def __init__(self, reactor: Any) -> None:
        self._reactor = reactor

    @classmethod
    def from_crawler(cls, crawler: Any, reactor: Any) -> PinnedResolver:
        """Scrapy's way of building the resolver."""
        return cls(reactor)

    def install_on_reactor(self) -> None:
        """Become the reactor's only resolver."""
        self._reactor.installNameResolver(self)

    def resolveHostName(
        self,
        receiver: Any,
        hostName: str,
        portNumber: int = 0,
        addressTypes: Sequence[Any] | None = None,
        transportSemantics: str = "TCP",
    ) -> _Resolution:
        """Give the receiver the checked addresses; none means that the lookup fails."""
        resolution = _Resolution(hostName)
        receiver.resolutionBegan(resolution)
        for address in self.guard.addresses(hostName):
            kind = IPv6Address if ":" in address else IPv4Address
            receiver.addressResolved(kind("TCP", address, portNumber))
        receiver.resolutionComplete()
        return resolution
