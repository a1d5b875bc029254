"""Serving the review page: where it listens, and who may reach it."""

from __future__ import annotations

import ipaddress
import socket
import stat
import threading
import webbrowser
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path

import uvicorn

from corpus.catalogue import Catalogue
from corpus.errors import SettingsError
from flows.review.guard import host_names
from flows.review.pages import Options, Review
from kg.settings import ExtractionSettings

USUAL_PORT = 4280
_LEAST_PASSWORD = 12  # characters


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach an address. A name other than localhost may lead anywhere."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def read_auth(path: Path) -> str:
    """``user:password`` from a file that only its owner reads. Raises SettingsError."""
    try:
        mode, text = path.stat().st_mode, path.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError(f"--auth-file {path} cannot be read: {error}") from error
    if mode & (stat.S_IRWXG | stat.S_IRWXO):
        raise SettingsError(f"--auth-file {path} can be read by others; chmod 600 {path}")
    user, colon, password = text.partition(":")
    if not colon or not user or len(password) < _LEAST_PASSWORD or not text.isprintable():
        raise SettingsError(
            f"--auth-file {path} must hold one line user:password, the password of at least {_LEAST_PASSWORD} characters"
        )
    return text


def listen(host: str, port: int | None) -> socket.socket:
    """A listening socket; without a port the usual one, or a free one where that is taken. Raises SettingsError."""
    wanted = [USUAL_PORT, 0] if port is None else [port]
    for at, one in enumerate(wanted, start=1):
        try:
            return socket.create_server(
                (host, one), family=socket.AF_INET6 if ":" in host else socket.AF_INET
            )
        except OSError as error:
            if at == len(wanted):
                raise SettingsError(
                    f"{host} port {one} cannot be listened on: {error.strerror or error}"
                ) from error
    raise AssertionError


def serve(
    catalogue: Catalogue,
    extraction: ExtractionSettings,
    *,
    host: str,
    port: int | None,
    by: str,
    auth: str = "",
    names: Iterable[str] = (),
    read_only: bool = False,
    open_browser: bool = False,
    tell: Callable[[str], None] = print,
) -> None:
    """Serve until a signal ends it. Raises SettingsError for another bind than loopback without ``auth``."""
    if not is_loopback(host) and not auth:
        raise SettingsError(
            f"{host} can be reached from other machines: give --auth-file with user:password, or leave --host out"
        )
    with listen(host, port) as bound:
        number = int(bound.getsockname()[1])
        own = {"127.0.0.1", "localhost", "::1"} if is_loopback(host) else {host}
        shown = f"[{host}]" if ":" in host else host
        url = f"http://{shown}:{number}/"
        options = Options(
            by=by, read_only=read_only, auth=auth, hosts=frozenset(host_names(own, number) | set(names)),
            cookie=f"hchem_review_{number}",  # cookies know no ports: two servers must not share one
        )  # fmt: skip
        app = Review(catalogue, extraction, options).app()
        config = uvicorn.Config(
            app, log_level="warning", access_log=False, server_header=False, proxy_headers=False, lifespan="off",
            ws="none", timeout_graceful_shutdown=5, limit_concurrency=64,
        )  # fmt: skip
        tell(f"review page: {url}  (Ctrl-C ends it)")
        if open_browser:
            threading.Thread(target=webbrowser.open, args=(url,), daemon=True).start()
        with suppress(KeyboardInterrupt):  # the server has shut down and passes the signal on
            uvicorn.Server(config).run(sockets=[bound])
