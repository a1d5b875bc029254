"""What stands before every request of the review page: whom it serves, and what browsers may do with it.

A page on another site can make a browser send requests to loopback addresses, and by DNS
rebinding even read the answers. So the Host must be one of ours, and a request that changes
something must come from our own pages (Origin, and a token that only they know). Catalogued
text is hostile: no script runs at all, and nothing is loaded from anywhere else.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import secrets
from collections.abc import Collection, Iterable
from http.cookies import CookieError, SimpleCookie

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; style-src 'self'; img-src data:; form-action 'self'; base-uri 'none'; "
    "frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "same-origin",  # with no-referrer browsers would hide the Origin of our own forms
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
_SAFE = ("GET", "HEAD")


class Guard:
    """ASGI middleware. ``hosts``: values of the Host header that are ours; ``auth``: ``user:password`` or nothing."""

    def __init__(self, app: ASGIApp, hosts: Collection[str], *, auth: str = "", cookie: str) -> None:
        self.app = app
        self.hosts = {host.lower() for host in hosts}
        self.auth = auth
        self.cookie = cookie

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Refuse, or pass on with the headers that keep the answer to itself."""
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self.app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        visitor = _cookie(headers.get("cookie", ""), self.cookie)
        fresh = "" if visitor else secrets.token_urlsafe(24)
        scope["hchem_visitor"] = visitor or fresh

        async def answer(message: Message) -> None:
            if message["type"] == "http.response.start":
                sent = MutableHeaders(scope=message)
                for name, value in _HEADERS.items():
                    sent[name] = value
                if fresh:
                    sent.append("Set-Cookie", f"{self.cookie}={fresh}; HttpOnly; SameSite=Strict; Path=/")
            await send(message)

        refusal = self._refusal(scope["method"], headers)
        await (refusal or self.app)(scope, receive, answer)

    def _refusal(self, method: str, headers: Headers) -> PlainTextResponse | None:
        if headers.getlist("host") and headers.getlist("host")[0].lower() not in self.hosts:
            return PlainTextResponse("This server does not answer under that name.\n", status_code=421)
        if len(headers.getlist("host")) != 1:
            return PlainTextResponse("Exactly one Host header is needed.\n", status_code=400)
        if self.auth and not _authorised(headers.get("authorization", ""), self.auth):
            return PlainTextResponse(
                "User and password are needed.\n",
                status_code=401,
                headers={"WWW-Authenticate": 'Basic realm="hchem review", charset="UTF-8"'},
            )
        if method not in _SAFE:
            scheme, _, origin = headers.get("origin", "").partition("://")
            if scheme not in ("http", "https") or origin.lower() != headers["host"].lower():
                return PlainTextResponse(
                    "Decisions are taken from this server's own pages only.\n", status_code=403
                )
        return None


def user_of(request: Request) -> str:
    """The user that the browser gave with the password; "" where none is asked for."""
    return _decoded(request.headers.get("authorization", "")).partition(":")[0]


def _decoded(header: str) -> str:
    kind, _, value = header.partition(" ")
    if kind.lower() != "basic":
        return ""
    try:
        return base64.b64decode(value.strip(), validate=True).decode("utf-8")
    except (binascii.Error, UnicodeDecodeError):
        return ""


def _authorised(header: str, auth: str) -> bool:
    return hmac.compare_digest(_decoded(header).encode(), auth.encode())


def _cookie(header: str, name: str) -> str:
    return cookies(header).get(name, "")


def cookies(header: str) -> dict[str, str]:
    """Cookies of a request; none where the header is no such thing."""
    try:
        return {name: morsel.value for name, morsel in SimpleCookie(header).items()}
    except CookieError:
        return {}


class Tokens:
    """Tokens of forms: made of a visitor's cookie with a secret of this process."""

    def __init__(self) -> None:
        self._secret = secrets.token_bytes(32)

    def of(self, request: Request) -> str:
        """The token that forms for this visitor carry."""
        visitor = str(request.scope["hchem_visitor"])
        return hmac.new(self._secret, visitor.encode(), hashlib.sha256).hexdigest()

    def fits(self, request: Request, token: str) -> bool:
        """Whether a form came from a page that this process made for this visitor."""
        return hmac.compare_digest(self.of(request).encode(), token.encode())


def host_names(names: Iterable[str], port: int) -> set[str]:
    """Host headers under which a server on a port is called: with the port, and without for the usual ones."""
    found: set[str] = set()
    for name in names:
        shown = f"[{name}]" if ":" in name and not name.startswith("[") else name
        found.add(f"{shown}:{port}")
        if port == 80:
            found.add(shown)
    return found
