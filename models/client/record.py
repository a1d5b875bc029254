"""The outermost layer: a JSON line per call, without secrets.

Lines go to the logger ``hchem.models.calls`` (it does not pass them on, so that
prompts do not wander into other logs) and to ``models.log_file``. With
``models.log = "usage"`` a line holds figures only, with ``"full"`` also the
messages and the raw answer.
"""

from __future__ import annotations

import fcntl
import json
import logging
import os
import re
import threading
import time
from collections.abc import Iterable
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from models.client.call import Call, Layer, Reply, Transient
from models.errors import AnswerDeferred, ModelError
from models.settings import ModelSettings, StoredKey

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pydantic import SecretStr

logger = logging.getLogger(__name__)
lines = logging.getLogger("hchem.models.calls")
lines.propagate = False
lines.setLevel(logging.INFO)

_as_json = json.JSONEncoder(ensure_ascii=False).encode
_STARS = "***"
_SHORTEST = 4  # a shorter key (EMPTY's like) would blank out ordinary words
_FOREIGN = ("finish_reason", "message", "refusal", "raw", "messages")  # what pages and endpoints have written
_OLDER = 4  # files kept beside the present one

# What is a key wherever it stands, in the forms that providers give them.
_KEYS = re.compile(
    r"(?<![A-Za-z0-9])(?:sk|pk|rk)-[A-Za-z0-9_\-]{6,}"  # OpenAI and most others
    r"|(?<![A-Za-z0-9])(?:gsk|hf|xai|ghp|r8|nvapi|pplx|tgp_v1)[_-][A-Za-z0-9_\-]{16,}"
    r"|(?<![A-Za-z0-9])AIza[A-Za-z0-9_\-]{30,}|(?<![A-Za-z0-9])AKIA[A-Z0-9]{16}(?![A-Z0-9])"
    r"|(?<![A-Za-z0-9])eyJ[A-Za-z0-9_\-]{8,}\.[A-Za-z0-9_\-]{8,}\.[A-Za-z0-9_\-]{8,}"  # JSON web token
)
# What follows a word that announces a secret; the word is kept. Pages are full of basic solutions and
# of accesskey="z", so a bare word needs a colon or an equals sign and something long after it.
_ANNOUNCED = re.compile(
    r"(?P<word>\bBearer\s+|\bAuthorization\\?[\"']?\s*[:=]\s*\\?[\"']?(?:(?:Bearer|Basic|Token)\s+)?"
    r"|(?<![A-Za-z])(?:api|access|auth|secret|subscription)[_-]?(?:key|token)\\?[\"']?\s*[:=]\s*\\?[\"']?"
    r"|[?&](?:key|token|sig|signature|secret|password)=)"
    r"[^\s\"'\\,;}&<>]{6,}",
    re.I,
)
_USER = re.compile(r"(?<=://)[^/@\s\"'<>]+(?=@)")

# A text without these words (lower case) has nothing for the expressions, which take a millisecond a page.
_KEY_SIGNS = (
    "sk-",
    "pk-",
    "rk-",
    "gsk",
    "hf_",
    "hf-",
    "xai",
    "ghp",
    "r8",
    "nvapi",
    "pplx",
    "tgp_v1",
    "aiza",
    "akia",
    "eyj",
)
_WORD_SIGNS = ("bearer", "authorization", "key", "token", "sig", "secret", "password")


def without_secrets(text: str, known: Iterable[str] = ()) -> str:
    """The text with stars for the known keys, for what looks like a key, and for logins in addresses."""
    for key in known:
        if len(key) >= _SHORTEST:
            text = text.replace(key, _STARS)
    small = text.lower()
    if any(sign in small for sign in _KEY_SIGNS):
        text = _KEYS.sub(_STARS, text)
    if (":" in text or "=" in text or "bearer" in small) and any(sign in small for sign in _WORD_SIGNS):
        text = _ANNOUNCED.sub(rf"\g<word>{_STARS}", text)
    return _USER.sub(_STARS, text) if "://" in text and "@" in text else text


class RecordLayer:
    """Writes what became of each call of the next layer; it never makes one fail."""

    def __init__(self, following: Layer, settings: ModelSettings) -> None:
        self._following = following
        self._level = settings.log
        self._keys = list(settings.keys().values())
        self._file = RollingFile(settings.log_file, settings.log_mb) if settings.log_file else None

    def __call__(self, call: Call) -> Reply:
        """The reply of the next layer, written down; so is its error."""
        if self._level == "off":
            return self._following(call)
        began = time.perf_counter()
        try:
            reply = self._following(call)
        except AnswerDeferred:  # nothing happened yet
            raise
        except ModelError as error:
            self._write(call, began, error=error.reason, message=str(error))
            raise
        except Exception as error:
            self._write(call, began, error=type(error).__name__, message=str(error))
            raise
        self._write(
            call,
            began,
            finish_reason=reply.finish_reason,
            tokens_in=reply.tokens_in,
            tokens_cached=reply.tokens_cached,
            tokens_out=reply.tokens_out,
            cost=round(reply.cost, 9),
            seconds=0.0 if reply.from_store else round(reply.seconds, 4),
            from_store=reply.from_store,
            **{"refusal": reply.refusal} if reply.refusal else {},
            **{"raw": reply.raw} if self._level == "full" else {},
        )
        return reply

    def repeated(self, call: Call, failure: Transient) -> None:
        """Write down an attempt that failed and is made again."""
        if self._level != "off":
            self._write(call, None, repeat=True, error=failure.reason, message=str(failure))

    def close(self) -> None:
        """Close the file; the next line opens it again."""
        if self._file is not None:
            self._file.close()

    def _write(self, call: Call, began: float | None, **found: Any) -> None:
        row: dict[str, Any] = {
            "time": datetime.now(UTC).isoformat(timespec="milliseconds"),
            "skill": call.skill,
            "model": call.model.model,
            "host": _host(call.model.base_url),
            "draw": call.draw,
            "key": call.key(),
            **found,
        }
        if began is not None:
            row["waited"] = round(
                time.perf_counter() - began, 4
            )  # with limits, repeats, and the client's start
        if self._level == "full":
            row["messages"] = [{"role": m.role, "content": m.content} for m in call.messages]
        known = self._known(call.model.api_key)
        for name in _FOREIGN:
            if name in row:
                row[name] = _clean(row[name], known)
        line = _as_json(row)
        if lines.handlers:
            lines.info("%s", line)
        if self._file is not None:
            self._file.append(line)

    def _known(self, own: SecretStr | None) -> list[str]:
        """The keys in memory; one that was not read yet cannot stand anywhere."""
        held = [*self._keys, own] if own is not None else self._keys
        return [key.known if isinstance(key, StoredKey) else key.get_secret_value() for key in held]


def _clean(value: Any, known: list[str]) -> Any:
    if isinstance(value, str):
        return without_secrets(value, known)
    if isinstance(value, list):
        return [_clean(item, known) for item in value]
    if isinstance(value, dict):
        return {name: _clean(item, known) for name, item in value.items()}
    return value


@cache
def _host(url: str) -> str:
    """Host and port of an address: logins and queries stay out."""
    parts = urlsplit(url)
    host = parts.hostname or ""
    return f"{host}:{parts.port}" if parts.port else host


class RollingFile:
    """Lines at the end of a file that several processes write to.

    Above ``megabytes`` the file becomes ``<name>.1`` and so on to ``.4``. A file
    that cannot be written is said once and then left alone: calls are worth more
    than their log.
    """

    def __init__(self, path: Path, megabytes: float) -> None:
        self._path = path
        self._limit = int(megabytes * 1_000_000)
        self._lock = threading.Lock()
        self._name = str(path)
        self._descriptor = -1
        self._opened: tuple[int, int] | None = None
        self._broken = False

    def append(self, line: str) -> None:
        """Write one line, whole, in one piece."""
        data = f"{line}\n".encode("utf-8", "replace")
        with self._lock:
            if self._broken:
                return
            try:
                if self._size() + len(data) > self._limit:
                    self._roll(len(data))
                os.write(self._descriptor, data)
            except OSError as error:
                self._broken = True
                logger.warning("%s cannot be written, calls are not recorded: %s", self._path, error)

    def close(self) -> None:
        """Close the descriptor."""
        with self._lock:
            self._forget()

    def _forget(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1
            self._opened = None

    def _size(self) -> int:
        """Bytes of the file, which is opened where it is not, or where another process has rolled it away since."""
        with suppress(FileNotFoundError):
            found = os.stat(self._name)
            if (found.st_dev, found.st_ino) == self._opened:
                return found.st_size
        self._forget()
        self._path.parent.mkdir(parents=True, exist_ok=True)
        # for the owner only: with log = "full" it holds pages and prompts
        self._descriptor = os.open(self._name, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        found = os.fstat(self._descriptor)
        self._opened = (found.st_dev, found.st_ino)
        return found.st_size

    def _roll(self, coming: int) -> None:
        with self._alone():
            size = self._size()
            if size and size + coming > self._limit:  # no other process has done it meanwhile
                for number in range(_OLDER, 0, -1):
                    older = self._numbered(number - 1) if number > 1 else self._path
                    with suppress(FileNotFoundError):
                        older.replace(self._numbered(number))
                self._size()

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Keep other processes from rolling at the same time."""
        guard = os.open(self._path.with_name(f"{self._path.name}.lock"), os.O_WRONLY | os.O_CREAT, 0o600)
        try:
            fcntl.flock(guard, fcntl.LOCK_EX)
            yield
        finally:
            os.close(guard)

    def _numbered(self, number: int) -> Path:
        return self._path.with_name(f"{self._path.name}.{number}")
