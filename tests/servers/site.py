"""A loopback web site with faults, for the crawler's tests: real sockets, real HTTP.

Routes are plain functions from a request to a ``Reply``; whatever HTTP allows
to go wrong can be asked for: slow bodies, torn answers, wrong lengths, floods.
"""

from __future__ import annotations

import contextlib
import ssl
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from ipaddress import ip_address
from urllib.parse import urlsplit

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

HTML = "text/html; charset=utf-8"


@dataclass
class Reply:
    """An answer. ``drip``: seconds between the body's bytes; ``torn``: closed after that many bytes.

    ``raw``: sent instead of everything else, status line included; then the connection is closed.
    """

    body: bytes = b""
    status: int = 200
    content_type: str = HTML
    headers: Mapping[str, str] = field(default_factory=dict)
    drip: float = 0.0
    torn: int | None = None
    delay: float = 0.0
    length: bool = True
    raw: bytes | None = None


@dataclass(frozen=True)
class Hit:
    """A request that arrived."""

    path: str
    headers: Mapping[str, str]
    at: float


Route = Callable[[Hit], Reply]


class Site:
    """Routes by path (without query); ``fallback`` answers the rest, 404 by default."""

    def __init__(self) -> None:
        self.routes: dict[str, Route] = {}
        self.fallback: Route = lambda hit: Reply(b"not found", 404)
        self.hits: list[Hit] = []
        self.base = ""
        self.netloc = ""

    def page(self, path: str, body: str | bytes, **options: object) -> None:
        """A page that always answers the same, with its own validators where ``etag`` is given."""
        data = body.encode() if isinstance(body, str) else body
        etag = options.pop("etag", None)
        reply = Reply(data, **options)  # type: ignore[arg-type]

        def answer(hit: Hit) -> Reply:
            if etag is None:
                return reply
            tag = {"ETag": f'"{etag}"', **reply.headers}
            if hit.headers.get("if-none-match") == f'"{etag}"':
                return Reply(status=304, headers=tag, content_type="")
            return Reply(data, reply.status, reply.content_type, tag)

        self.routes[path] = answer

    def redirect(self, path: str, target: str, status: int = 302) -> None:
        """A redirect to an absolute or relative address."""
        self.routes[path] = lambda hit: Reply(b"", status, headers={"Location": target})

    def raw(self, path: str, *lines: bytes, body: bytes = b"", status: bytes = b"HTTP/1.1 200 OK") -> None:
        """An answer written byte for byte: status line, header lines, body; then the connection closes."""
        sent = b"\r\n".join([status, *lines, b"Connection: close", b"", body])
        self.routes[path] = lambda hit: Reply(raw=sent)

    def series(self, path: str, *replies: Reply) -> None:
        """One reply after the other; the last one stays."""
        count = iter(range(10**9))

        def answer(hit: Hit) -> Reply:
            return replies[min(next(count), len(replies) - 1)]

        self.routes[path] = answer

    def index(self, *paths: str) -> None:
        """A start page that links to the paths."""
        self.page("/", links(*paths))

    def count(self, path: str) -> int:
        """How often a path (with query) was asked for."""
        return sum(hit.path == path for hit in self.hits)


def links(*targets: str) -> str:
    """An HTML page with links."""
    anchors = "".join(f'<p><a href="{target}">x</a></p>' for target in targets)
    return f"<html><head><title>t</title></head><body>{anchors}</body></html>"


def article(name: str) -> str:
    """A small HTML page with a text."""
    return (
        f"<html><head><title>{name}</title></head><body><h1>{name}</h1><p>flash point 11 °C</p></body></html>"
    )


@contextlib.contextmanager
def serve(site: Site | None = None, *, tls: bool = False) -> Iterator[Site]:
    """Run the site on a free port of loopback; ``tls``: with a certificate that nobody has signed."""
    own = site or Site()
    server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(own))
    server.daemon_threads = True
    own.netloc = f"127.0.0.1:{server.server_address[1]}"
    own.base = f"{'https' if tls else 'http'}://{own.netloc}"
    if tls:
        server.handle_error = lambda *_: None  # type: ignore[method-assign]  # handshakes are meant to fail
        server.socket = _self_signed().wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield own
    finally:
        server.shutdown()
        server.server_close()
        thread.join(timeout=5)


def _self_signed() -> ssl.SSLContext:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "127.0.0.1")])
    moment = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(moment - timedelta(days=1))
        .not_valid_after(moment + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))]), critical=False)
        .sign(key, hashes.SHA256())
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    with tempfile.NamedTemporaryFile(suffix=".pem") as file:
        file.write(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
        file.write(certificate.public_bytes(Encoding.PEM))
        file.flush()
        context.load_cert_chain(file.name)
    return context


def _handler(site: Site) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        timeout = 30

        def do_GET(self) -> None:
            headers = {name.lower(): value for name, value in self.headers.items()}
            hit = Hit(self.path, headers, time.monotonic())
            site.hits.append(hit)
            route = site.routes.get(urlsplit(self.path).path, site.fallback)
            with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                self._send(route(hit))

        def _send(self, reply: Reply) -> None:
            time.sleep(reply.delay)
            if reply.raw is not None:
                self.wfile.write(reply.raw)
                self.close_connection = True
                return
            self.send_response(reply.status)
            if reply.content_type:
                self.send_header("Content-Type", reply.content_type)
            for name, value in reply.headers.items():
                self.send_header(name, value)
            if reply.length and reply.status != 304:
                self.send_header("Content-Length", str(len(reply.body)))
            elif not reply.length:
                self.send_header("Connection", "close")
                self.close_connection = True
            self.end_headers()
            self._body(reply)

        def _body(self, reply: Reply) -> None:
            if reply.torn is not None:
                self.wfile.write(reply.body[: reply.torn])
                self.close_connection = True
                return
            if not reply.drip:
                self.wfile.write(reply.body)
                return
            for number in range(len(reply.body)):
                self.wfile.write(reply.body[number : number + 1])
                self.wfile.flush()
                time.sleep(reply.drip)

        def log_message(self, format: str, *arguments: object) -> None:
            """Quiet."""

    return Handler
