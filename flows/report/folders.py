"""Folders of pages beside the report: each appears whole or not at all, and only where it would differ."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

from corpus.errors import TerminalError

MARK = "made-by-hchem-report.txt"


def known(folder: Path, content: str) -> dict[str, int] | None:
    """Figures of the folder that is there, where it was made of the same content; else None.

    Raises TerminalError where it holds files that no report wrote.
    """
    if not folder.exists():
        return None
    try:
        said = dict(line.split("=", 1) for line in (folder / MARK).read_text(encoding="utf-8").splitlines())
    except (OSError, ValueError) as error:
        raise TerminalError(
            f"{folder} was not written by a report; move it away or choose another file for the report",
            reason="disk",
        ) from error
    if said.pop("content", None) != content:
        return None
    return {name: int(value) for name, value in said.items()}


def write(folder: Path, content: str, fill: Callable[[Path], dict[str, int]]) -> dict[str, int]:
    """Let ``fill`` write pages into a fresh folder and put it in place; returns the figures it gives.

    Raises OSError where it cannot be written.
    """
    folder.parent.mkdir(parents=True, exist_ok=True)
    fresh = Path(tempfile.mkdtemp(dir=folder.parent, prefix=f".{folder.name}-"))
    try:
        figures = fill(fresh)
        lines = "".join(f"{name}={value}\n" for name, value in figures.items())
        (fresh / MARK).write_text(f"content={content}\n{lines}", encoding="utf-8")
        fresh.chmod(0o755)
        if folder.exists():
            old = Path(tempfile.mkdtemp(dir=folder.parent, prefix=f".{folder.name}-old-"))
            folder.replace(old / "old")
            fresh.replace(folder)
            shutil.rmtree(old, ignore_errors=True)
        else:
            fresh.replace(folder)
    except BaseException:  # an interrupt too must leave no half folder
        shutil.rmtree(fresh, ignore_errors=True)
        raise
    return figures


def put(path: Path, html: str) -> int:
    """Write a page; its size in bytes."""
    data = html.encode("utf-8", "replace")
    path.write_bytes(data)
    return len(data)
