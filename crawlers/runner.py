"""Starts a crawl in its own process group, follows it, stops it, reads its result."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections import deque
from collections.abc import Callable
from json import loads
from pathlib import Path
from threading import Thread
from typing import IO

from pydantic import ValidationError

from corpus.errors import DiskError, TerminalError, TransientError
from crawlers.job import PASSWORD_VARIABLE, PROGRESS_MARK, CrawlStats, Job

_TAIL_LINES = 40
_POLL_S = 0.1


def run_crawl(
    job: Job,
    password: str = "",
    *,
    progress: Callable[[int, int], None] = lambda done, known: None,
    cancelled: Callable[[], bool] = lambda: False,
) -> CrawlStats:
    """Run the job in a child interpreter and return its statistics.

    ``progress`` is called with pages done and known. When ``cancelled`` says
    so, the child's group is stopped (SIGTERM, then SIGKILL after the grace time).

    Raises TransientError where the crawl was cancelled or the child died
    (with the end of its standard error), TerminalError where it refused its job.
    """
    with tempfile.TemporaryDirectory(prefix="hchem-crawl-") as folder:
        path = Path(folder) / "job.json"
        stats_path = Path(folder) / "stats.json"
        path.write_text(job.model_copy(update={"stats_path": stats_path}).model_dump_json(), encoding="utf-8")
        child = _start(path, password)
        tail: deque[str] = deque(maxlen=_TAIL_LINES)
        reader = Thread(target=_follow, args=(child.stderr, tail, progress), daemon=True)
        reader.start()
        try:
            was_cancelled = _wait(child, cancelled, job.settings.stop_grace_s)
        finally:
            _kill_group(child)
            reader.join(timeout=5)
        if was_cancelled:
            raise TransientError("the crawl was cancelled", reason="cancelled")
        return _result(child.returncode, stats_path, tail)


def _start(path: Path, password: str) -> subprocess.Popen[str]:
    environment = {name: value for name, value in os.environ.items() if name != PASSWORD_VARIABLE}
    if password:
        environment[PASSWORD_VARIABLE] = password
    return subprocess.Popen(
        [sys.executable, "-m", "crawlers.child", str(path)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        start_new_session=True,
        text=True,
        encoding="utf-8",
        errors="replace",
        env=environment,
    )


def _follow(stream: IO[str] | None, tail: deque[str], progress: Callable[[int, int], None]) -> None:
    for line in stream or ():
        if line.startswith(PROGRESS_MARK):
            with contextlib.suppress(ValueError):
                done, known = loads(line.removeprefix(PROGRESS_MARK))
                progress(int(done), int(known))
        elif line.strip():
            tail.append(line.rstrip())


def _wait(child: subprocess.Popen[str], cancelled: Callable[[], bool], grace_s: float) -> bool:
    """Wait for the end; True where it was asked for."""
    while child.poll() is None:
        if cancelled():
            child.send_signal(signal.SIGTERM)
            with contextlib.suppress(subprocess.TimeoutExpired):
                child.wait(timeout=grace_s)
            return True
        time.sleep(_POLL_S)
    return False


def _kill_group(child: subprocess.Popen[str]) -> None:
    """Nothing of the child's group outlives the call."""
    if child.poll() is None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGKILL)
        child.wait()


def _result(code: int, path: Path, tail: deque[str]) -> CrawlStats:
    end = "\n".join(tail)
    if not path.is_file():
        raise TransientError(f"the crawl's process ended with {code}:\n{end}", reason="crashed")
    try:
        stats = CrawlStats.model_validate_json(path.read_text(encoding="utf-8"))
    except ValidationError as error:
        raise TransientError(f"the crawl's statistics cannot be read: {error}", reason="crashed") from error
    if stats.disk:
        raise DiskError(stats.error)
    if code != 0 or stats.error:
        raise TransientError(f"the crawl failed: {stats.error or code}\n{end}".strip(), reason="crashed")
    if not stats.finished:
        raise TransientError(f"the crawl stopped before its end: {stats.stopped}", reason="stopped")
    return stats


def check_result(source: str, stats: CrawlStats) -> None:
    """A crawl that brought no page is an error, never a green end.

    Raises TerminalError where robots.txt or the source's rules keep everything
    away, TransientError where the site could not be reached.
    """
    got = sum(n for key, n in stats.outcomes.items() if key == "kept")
    if got:
        return
    seen = "; ".join(f"{key} {count}" for key, count in sorted(stats.outcomes.items())) or "no pages"
    refused = sum(n for key, n in stats.outcomes.items() if key.split(":")[1:2] == ["robots"])
    failed = stats.total("failed") + sum(
        n for key, n in stats.outcomes.items() if key.startswith("kept:stale")
    )
    message = f"the crawl of {source} brought no page ({seen})"
    for host, until in sorted(stats.paused.items()):
        message += f"; {host} is not to be asked before {until} (its Retry-After)"
    if failed:
        raise TransientError(message, reason="unreachable")
    raise TerminalError(message, reason="robots" if refused and not stats.total("gone") else "empty_crawl")
