"""One loopback Prefect server for all tests that need only a server, started at the first need.

It is started as users do it (``hchem up``), in a folder of its own, and stopped when
the tests end.
"""

from __future__ import annotations

import atexit
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
from contextlib import suppress
from functools import cache
from pathlib import Path

from tests.conftest import REPOSITORY


@cache
def prefect_api() -> str:
    """The address of its API."""
    folder = Path(tempfile.mkdtemp(prefix="hchem-prefect-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("HCHEM_", "PREFECT_"))}
    environment = {
        **kept,
        "HCHEM_DATA_DIR": str(folder),
        "HCHEM_PREFECT__PORT": "0",
        "HCHEM_PREFECT__START_TIMEOUT_S": "240",
    }
    command = [sys.executable, "-m", "flows.cli"]
    subprocess.run([*command, "up"], cwd=REPOSITORY, env=environment, check=True, capture_output=True)
    atexit.register(subprocess.run, [*command, "down"], cwd=REPOSITORY, env=environment, capture_output=True)
    state = json.loads((folder / "prefect" / "server.json").read_text(encoding="utf-8"))
    return str(state["url"])


class Doorway:
    """A port that leads to a server until it is closed: so a server goes away for one client alone."""

    def __init__(self, url: str) -> None:
        host, _, port = url.split("/")[2].partition(":")
        self._target = (host, int(port))
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._open: list[socket.socket] = []
        self.url = url.replace(f"{host}:{port}", f"127.0.0.1:{self._listener.getsockname()[1]}")
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        """Refuse new connections and cut those that are open."""
        for end in (self._listener, *self._open):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                near, _ = self._listener.accept()
                far = socket.create_connection(self._target)
                self._open += [near, far]
                for source, target in ((near, far), (far, near)):
                    threading.Thread(target=_pour, args=(source, target), daemon=True).start()


def _pour(source: socket.socket, target: socket.socket) -> None:
    with suppress(OSError):
        while data := source.recv(65536):
            target.sendall(data)
    with suppress(OSError):
        target.shutdown(socket.SHUT_WR)
