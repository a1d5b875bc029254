"""The loopback Prefect server: started in the background, waited for, reused.

Prefect's ephemeral mode is not used: it is slow, times out on a fresh home and
loses history. The server keeps its home under the data directory; its settings
are those that keep SQLite usable and nothing leaves the machine.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

import psutil

from corpus.errors import PlatformError, SettingsError, TerminalError, TransientError
from flows import stopping
from flows.settings import PrefectSettings, is_loopback

_HOST = "127.0.0.1"
_PREFERRED_PORT = 4200
_STOP_WAIT_S = 10.0
_PATIENCE_S = 20.0  # without a word to who waits


@dataclass(frozen=True)
class Server:
    """A server that answers. ``pid`` is 0 for one that the platform did not start.

    ``host`` and ``closed`` (asks for a password) are how it was started.
    """

    url: str
    pid: int = 0
    host: str = _HOST
    closed: bool = False

    @property
    def ui_url(self) -> str:
        """Where people look."""
        return self.url.removesuffix("/api")


def _home(data_dir: Path) -> Path:
    return data_dir / "prefect"


def _state_file(data_dir: Path) -> Path:
    return _home(data_dir) / "server.json"


def environment(data_dir: Path, port: int, settings: PrefectSettings) -> dict[str, str]:
    """Environment of the server and of every client of it (measured defaults of the design)."""
    url = _url(settings.host, port)
    closed = {} if settings.auth is None else {"PREFECT_SERVER_API_AUTH_STRING": _password(settings)}
    return {
        **client_environment(data_dir, url, settings),
        **closed,
        "PREFECT_SERVER_API_HOST": settings.host,
        "PREFECT_SERVER_API_PORT": str(port),
        # Prefect allows every origin: any page open in a browser of this machine could start deployments.
        "PREFECT_SERVER_CORS_ALLOWED_ORIGINS": url.removesuffix("/api"),
        "PREFECT_SERVER_SERVICES_TASK_RUN_RECORDER_BATCH_SIZE": "100",
        "PREFECT_SERVER_SERVICES_TASK_RUN_RECORDER_READ_BATCH_SIZE": "100",
        "PREFECT_SERVER_SERVICES_TASK_RUN_RECORDER_FLUSH_INTERVAL": "1",
        "PREFECT_SERVER_SERVICES_EVENT_PERSISTER_BATCH_SIZE": "200",
        "PREFECT_SERVER_SERVICES_EVENT_PERSISTER_READ_BATCH_SIZE": "200",
        # Slots that are held outlive a restart; in the server's memory they would stay taken for ever.
        "PREFECT_SERVER_CONCURRENCY_LEASE_STORAGE": "prefect.server.concurrency.lease_storage.filesystem",
        "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
        "PREFECT_SERVER_UI_SHOW_PROMOTIONAL_CONTENT": "false",
        "PREFECT_SERVER_UI_V2_ENABLED": "false",
    }


def _url(host: str, port: int) -> str:
    """How this machine reaches the API: a server bound to every address answers on loopback too."""
    reached = {"0.0.0.0": _HOST, "::": "[::1]", "::1": "[::1]"}.get(host, host)  # noqa: S104 - compared, not bound
    return f"http://{reached}:{port}/api"


def _password(settings: PrefectSettings) -> str:
    return settings.auth.get_secret_value() if settings.auth is not None else ""


def client_environment(data_dir: Path, api_url: str, settings: PrefectSettings) -> dict[str, str]:
    """Environment of a Prefect client of this platform: private home, no telemetry."""
    closed = {} if settings.auth is None else {"PREFECT_API_AUTH_STRING": _password(settings)}
    return {
        **closed,
        "PREFECT_HOME": str(_home(data_dir)),
        "PREFECT_PROFILES_PATH": str(_home(data_dir) / "profiles.toml"),
        "PREFECT_API_URL": api_url,
        "PREFECT_FLOWS_HEARTBEAT_FREQUENCY": str(settings.heartbeat_s),
        "PREFECT_LOGGING_EXTRA_LOGGERS": "hchem,scrapy",
        "PREFECT_LOGGING_TO_API_WHEN_MISSING_FLOW": "ignore",
        "PREFECT_SERVER_EPHEMERAL_STARTUP_TIMEOUT_SECONDS": "120",
        "PREFECT_SERVER_ALLOW_EPHEMERAL_MODE": "false",
        "DO_NOT_TRACK": "1",
        # Run pages get the log lines; the terminal has its own display and one line for an error.
        "PREFECT_LOGGING_LEVEL": "INFO",
        "PREFECT_LOGGING_HANDLERS_CONSOLE_LEVEL": os.environ.get(
            "PREFECT_LOGGING_HANDLERS_CONSOLE_LEVEL", "CRITICAL"
        ),
    }


def healthy(url: str, timeout_s: float = 10.0) -> bool:
    """True when the API at ``url`` answers its health check."""
    try:
        with urllib.request.urlopen(f"{url}/health", timeout=timeout_s) as answer:  # noqa: S310 - our own URL
            return bool(answer.status == 200)
    except (urllib.error.URLError, OSError, ValueError):
        return False


def running(data_dir: Path) -> Server | None:
    """The server of this data directory, if it answers."""
    try:
        state = json.loads(_state_file(data_dir).read_text(encoding="utf-8"))
        server = Server(**state)
    except (OSError, ValueError, TypeError):
        return None
    return server if _alive(server.pid) and healthy(server.url) else None


def _alive(pid: int) -> bool:
    try:
        return "prefect" in " ".join(psutil.Process(pid).cmdline())
    except (psutil.NoSuchProcess, psutil.AccessDenied):
        return False


def ensure(
    data_dir: Path, settings: PrefectSettings, *, tell: Callable[[str], None] = lambda line: None
) -> Server:
    """Find or start the server and point this process at it.

    A server named by PREFECT_API_URL is used as it is. Raises SettingsError for
    a wrong URL or an occupied port, TerminalError when the server does not
    become healthy.
    """
    outside = os.environ.get("PREFECT_API_URL", "")
    if outside and os.environ.get("_HCHEM_PREFECT_OURS") != outside:
        if not healthy(outside):
            raise SettingsError(f"Prefect server {outside} (PREFECT_API_URL) does not answer; is it up?")
        os.environ.update(client_environment(data_dir, outside, settings))
        return Server(url=outside)
    server = running(data_dir)
    if server is None:
        server = _start(data_dir, settings, tell)
    elif (server.host, server.closed) != (settings.host, settings.auth is not None):
        raise SettingsError(
            f"the Prefect server {server.ui_url} was started with other settings (bound to {server.host}, "
            f"{'with' if server.closed else 'without'} a password); stop it first: hchem down"
        )
    os.environ.update(client_environment(data_dir, server.url, settings))
    os.environ["_HCHEM_PREFECT_OURS"] = server.url
    return server


GONE = "prefect_gone"
"""Reason of the error where the server went away in the middle of a run."""


@contextmanager
def needed(server: Server) -> Iterator[None]:
    """A block that needs the server. Raises TransientError where it fails and the server no longer answers."""
    try:
        yield
    except Exception as error:
        if isinstance(error, PlatformError) or healthy(server.url):
            raise
        raise TransientError(
            f"the Prefect server {server.url} went away in the middle of the run; what was done is kept, the same "
            "command goes on with the rest (--direct: without a server)",
            reason=GONE,
        ) from error


def _start(data_dir: Path, settings: PrefectSettings, tell: Callable[[str], None]) -> Server:
    home = _home(data_dir)
    home.mkdir(parents=True, exist_ok=True)
    port = _choose_port(settings.port, tell)
    if not is_loopback(settings.host):
        tell(f"bound to {settings.host} without TLS: put a proxy with TLS in front before others use it")
    log_path = home / "server.log"
    command = [sys.executable, "-m", "prefect", "server", "start"]
    with log_path.open("ab") as log:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            env={**os.environ, **environment(data_dir, port, settings)},
        )
    stopping.spare(process.pid)
    server = Server(_url(settings.host, port), process.pid, settings.host, settings.auth is not None)
    _state_file(data_dir).write_text(json.dumps(asdict(server)), encoding="utf-8")
    tell(f"starting the Prefect server on port {port} (first start takes about half a minute)")
    began = said = time.monotonic()
    deadline = began + settings.start_timeout_s
    while time.monotonic() < deadline:
        if process.poll() is not None:
            raise TerminalError(_dead(log_path, f"ended with code {process.returncode}"), reason="prefect")
        if healthy(server.url):
            tell(f"Prefect is up: {server.ui_url}")
            return server
        if time.monotonic() - said > _PATIENCE_S:
            said = time.monotonic()
            tell(f"still starting after {said - began:.0f} s (of {settings.start_timeout_s:.0f} s allowed)")
        time.sleep(0.5)
    _terminate(process.pid)
    raise TerminalError(
        _dead(log_path, f"did not answer within {settings.start_timeout_s:.0f} s")
        + "; on a busy machine run the command again, raise prefect.start_timeout_s, or run without it: --direct",
        reason="prefect",
    )


def _dead(log_path: Path, what: str) -> str:
    lines = [line for line in log_path.read_text(errors="replace").splitlines() if line.strip()]
    last = lines[-1].strip() if lines else "no output"
    return f"the Prefect server {what}; last line of {log_path}: {last}"


def _choose_port(wanted: int | None, tell: Callable[[str], None]) -> int:
    if wanted is None:
        if _free(_PREFERRED_PORT):
            return _PREFERRED_PORT
        tell(f"port {_PREFERRED_PORT} is taken; using a free one")
        return _any_port()
    if wanted == 0:
        return _any_port()
    if not _free(wanted):
        raise SettingsError(
            f"port {wanted} is already in use; set HCHEM_PREFECT__PORT to another one (0 picks a free one)"
        )
    return wanted


def _free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((_HOST, port))
        except OSError:
            return False
    return True


def _any_port() -> int:
    with socket.socket() as probe:
        probe.bind((_HOST, 0))
        return int(probe.getsockname()[1])


def stop(data_dir: Path) -> bool:
    """Stop the server of this data directory. False when none was running."""
    state_file = _state_file(data_dir)
    try:
        pid = int(json.loads(state_file.read_text(encoding="utf-8"))["pid"])
    except (OSError, ValueError, KeyError):
        return False
    was_alive = _alive(pid)
    if was_alive:
        _terminate(pid)
    state_file.unlink(missing_ok=True)
    return was_alive


def _terminate(pid: int) -> None:
    try:
        os.killpg(pid, signal.SIGTERM)
        psutil.Process(pid).wait(_STOP_WAIT_S)
    except psutil.TimeoutExpired:
        os.killpg(pid, signal.SIGKILL)
    except (ProcessLookupError, psutil.NoSuchProcess):
        return
