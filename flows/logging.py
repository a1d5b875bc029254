"""Logging: structured, quiet by default, secrets never printed."""

from __future__ import annotations

import logging
import re
import sys
from collections.abc import MutableMapping
from typing import Any

import structlog

_SECRET_KEYS = re.compile(r"(pass(word)?|secret|api_?key|token|authorization)$", re.IGNORECASE)
_SECRET_TEXT = re.compile(r"(sk-[A-Za-z0-9_-]{8,}|(?<=://)[^/@\s:]+:[^/@\s]+(?=@)|Bearer\s+\S+)")
_standard = logging.getLogger("hchem")
_standard.propagate = False
_standard.addHandler(logging.NullHandler())
_LEVELS = (logging.WARNING, logging.INFO, logging.DEBUG)


class _Stderr:
    """The present ``sys.stderr`` at each write: it may be replaced or closed after the set-up."""

    def write(self, text: str) -> int:
        return sys.stderr.write(text)

    def flush(self) -> None:
        sys.stderr.flush()


_stderr: Any = _Stderr()


def without_secrets(text: str) -> str:
    """The text with keys, passwords in URLs and bearer tokens replaced."""
    return _SECRET_TEXT.sub("…", text)


def hide_secrets(_logger: Any, _method: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """Replace values of secret keys, and what looks like a secret inside texts."""
    for key, value in event.items():
        if _SECRET_KEYS.search(key):
            event[key] = "…"
        elif isinstance(value, str):
            event[key] = without_secrets(value)
    return event


def _to_run_page(_logger: Any, method: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """Hand the line to the standard logger ``hchem``, which Prefect shows on the page of the run."""
    fields = " ".join(f"{key}={value}" for key, value in event.items() if key not in ("event", "exc_info"))
    _standard.log(
        logging.getLevelNamesMapping().get(method.upper(), logging.INFO), "%s %s", event["event"], fields
    )
    return event


def _not_prefect(record: logging.LogRecord) -> bool:
    """Prefect's lines belong on the page of the run; the terminal has its own display."""
    return not record.name.startswith("prefect")


def set_up(verbosity: int = 0, *, as_json: bool = False) -> None:
    """Send logs to stderr: warnings by default, ``-v`` steps, ``-vv`` everything."""
    level = _LEVELS[min(verbosity, len(_LEVELS) - 1)]
    renderer: Any = (
        structlog.processors.JSONRenderer(ensure_ascii=False)
        if as_json
        else structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty())
    )
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="%H:%M:%S", utc=False),
            hide_secrets,
            _to_run_page,
            structlog.processors.format_exc_info,
            renderer,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(level),
        logger_factory=structlog.PrintLoggerFactory(file=_stderr),
        cache_logger_on_first_use=False,
    )
    logging.basicConfig(
        level=max(level, logging.WARNING), stream=_stderr, format="%(levelname)s %(name)s: %(message)s"
    )
    for handler in logging.getLogger().handlers:
        handler.setLevel(max(level, logging.WARNING))
        handler.addFilter(_not_prefect)
    for noisy in ("httpx", "neo4j", "pdfminer", "matplotlib", "jieba", "alembic", "pymilvus", "milvus_lite"):
        logging.getLogger(noisy).setLevel(logging.ERROR)
