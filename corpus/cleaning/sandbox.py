"""Cleaning in a child process that can be killed: limits on bytes, elements, memory and wall time.

A thread or signal cannot stop a parser written in C; killing the process can. One
worker serves many pages, so that its start (about half a second) is paid once and
again only after a page that had to be stopped.
"""

from __future__ import annotations

import contextlib
import subprocess
import sys
import threading
import weakref
from collections.abc import Collection
from types import TracebackType
from typing import Any

from corpus.cleaning.page import CleanedPage
from corpus.cleaning.parsing import LIMITS, Limits, check_size
from corpus.cleaning.template import PageProfile, Template
from corpus.cleaning.worker import read_frame, write_frame
from corpus.errors import TerminalError, TransientError

_START_SECONDS = 60.0
_WITHOUT_PARENT_S = 10  # beyond the time that the parent allows


class SandboxedCleaner:
    """``clean`` and ``profile`` with hard limits. Thread-safe; calls queue for the one worker.

    Use as a context manager or call ``close``; an abandoned one closes when collected
    or at exit. ``max_memory`` is the worker's address space in bytes (0: no limit).
    """

    def __init__(
        self, timeout_s: float = 20.0, *, limits: Limits = LIMITS, max_memory: int = 3_000_000_000
    ) -> None:
        self.timeout_s = timeout_s
        self.limits = limits
        self.max_memory = max_memory
        self.restarts = 0
        self._lock = threading.Lock()
        self._worker: subprocess.Popen[bytes] | None = None
        self._finalizer: weakref.finalize[Any, Any] | None = None
        self._closed = False

    def clean(
        self,
        data: bytes,
        *,
        url: str = "",
        content_type: str = "",
        header_charset: str = "",
        template: Template | None = None,
        kept_classes: Collection[str] = (),
    ) -> CleanedPage:
        """``clean_page`` in the worker.

        Raises TerminalError as it does, also with the reasons ``timeout``, ``memory``,
        ``crashed`` and ``cleaning_fault``; TransientError(``worker``) when no worker
        could be started.
        """
        header = self._header("clean", url, content_type, header_charset)
        header["template"] = template.to_json() if template is not None else None
        header["kept_classes"] = sorted(kept_classes)
        return CleanedPage.from_json(self._ask(header, data))

    def profile(
        self, data: bytes, *, url: str = "", content_type: str = "", header_charset: str = ""
    ) -> PageProfile:
        """``profile_page`` in the worker. Raises as ``clean``."""
        result = self._ask(self._header("profile", url, content_type, header_charset), data)
        result["blocks"] = tuple(result["blocks"])
        return PageProfile(**result)

    def close(self) -> None:
        """End the worker. Later calls raise ValueError."""
        with self._lock:
            self._closed = True
            self._stop()

    def __enter__(self) -> SandboxedCleaner:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _header(self, action: str, url: str, content_type: str, header_charset: str) -> dict[str, Any]:
        return {
            "action": action,
            "url": url,
            "content_type": content_type,
            "header_charset": header_charset,
            "limits": {"max_bytes": self.limits.max_bytes, "max_elements": self.limits.max_elements},
        }

    def _ask(self, header: dict[str, Any], data: bytes) -> dict[str, Any]:
        check_size(data, self.limits)
        with self._lock:
            if self._closed:
                raise ValueError("the cleaner is closed")
            answer = self._exchange(header, data)
        if "result" in answer:
            result: dict[str, Any] = answer["result"]
            return result
        raise TerminalError(str(answer.get("error")), reason=str(answer.get("reason")))

    def _exchange(self, header: dict[str, Any], data: bytes) -> dict[str, Any]:
        worker = self._running()
        killed = threading.Event()
        timer = threading.Timer(self.timeout_s, self._kill, (worker, killed))
        timer.daemon = True
        timer.start()
        try:
            if worker.stdin is None or worker.stdout is None:
                raise TransientError("the cleaning worker has no pipes", reason="worker")
            write_frame(worker.stdin, header, data)
            frame = read_frame(worker.stdout)
        except OSError:  # the pipe broke: the worker is gone
            frame = None
        finally:
            timer.cancel()
        if frame is not None:
            return frame[0]
        self._stop()
        self.restarts += 1
        if killed.is_set():
            raise TerminalError(f"cleaning took longer than {self.timeout_s:g} s", reason="timeout")
        raise TerminalError("the cleaning worker died on this page", reason="crashed")

    @staticmethod
    def _kill(worker: subprocess.Popen[bytes], killed: threading.Event) -> None:
        killed.set()
        worker.kill()

    def _running(self) -> subprocess.Popen[bytes]:
        if self._worker is not None and self._worker.poll() is None:
            return self._worker
        self._stop()
        try:
            worker = subprocess.Popen(
                [sys.executable, "-m", "corpus.cleaning.worker"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                start_new_session=True,  # Ctrl-C is for the parent: a worker that it ends would look like a bad page
            )
        except OSError as error:
            raise TransientError(f"the cleaning worker does not start: {error}", reason="worker") from error
        self._worker = worker
        self._finalizer = weakref.finalize(self, _end, worker)
        killed = threading.Event()
        timer = threading.Timer(_START_SECONDS, self._kill, (worker, killed))
        timer.daemon = True
        timer.start()
        try:
            if worker.stdin is not None and worker.stdout is not None:
                at_most = int(self.timeout_s) + _WITHOUT_PARENT_S
                write_frame(worker.stdin, {"max_memory": self.max_memory, "at_most_s": at_most})
                if read_frame(worker.stdout) is not None:
                    return worker
        except OSError:
            pass
        finally:
            timer.cancel()
        self._stop()
        raise TransientError("the cleaning worker does not start", reason="worker")

    def _stop(self) -> None:
        if self._finalizer is not None:
            self._finalizer()
        self._worker = None
        self._finalizer = None


def _end(worker: subprocess.Popen[bytes]) -> None:
    """Close the pipes, give the worker a moment, then kill and reap it."""
    for stream in (worker.stdin, worker.stdout):
        if stream is not None:
            with contextlib.suppress(OSError):  # a broken pipe cannot be flushed
                stream.close()
    try:
        worker.wait(timeout=2)
    except subprocess.TimeoutExpired:
        worker.kill()
        worker.wait()
