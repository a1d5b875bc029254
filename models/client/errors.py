"""From the ``openai`` package's errors to ours: transient or terminal, decided here."""

from __future__ import annotations

import email.utils
import re
import time

import openai

from models.client.call import Transient
from models.errors import ModelError, ModelRefused

_TRANSIENT_STATUS = {408, 409, 425, 429}
_QUOTA = ("insufficient_quota", "billing_hard_limit_reached")
_CONTEXT = re.compile(
    r"context[ _-]?(length|window|size)|maximum context|too many tokens|prompt is too long", re.I
)
_SECRET = re.compile(r"(sk-|Bearer\s+)[^\s\"',}]+", re.I)


def shown(message: str, secret: str = "") -> str:
    """An endpoint's message for people: one line, short, without keys."""
    text = message.replace(secret, "***") if len(secret) > 3 else message
    text = _SECRET.sub(r"\1***", text)
    return " ".join(text.split())[:300]


def retry_after(headers: object) -> float | None:
    """Seconds from ``retry-after-ms`` or ``Retry-After`` (seconds or a date), if any."""
    get = getattr(headers, "get", None)
    if get is None:
        return None
    try:
        if (millis := get("retry-after-ms")) is not None:
            return max(0.0, float(millis) / 1000)
        value = get("retry-after")
        if value is None:
            return None
        if re.fullmatch(r"\d+(\.\d+)?", value.strip()):
            return float(value)
        return max(0.0, email.utils.parsedate_to_datetime(value).timestamp() - time.time())
    except (TypeError, ValueError):
        return None


def translated(error: Exception, *, url: str, secret: str = "") -> ModelError:
    """Our error for one of the package's; ``secret`` is removed from its message."""
    if isinstance(error, openai.APITimeoutError):
        return Transient(f"{url}: no answer in time", reason="timeout", billed=True)
    if isinstance(error, openai.APIStatusError):
        return _by_status(error, url, secret)
    if isinstance(error, openai.APIConnectionError):
        cause = error.__cause__
        unreached = type(cause).__name__ == "ConnectError"
        what = shown(f"{type(cause).__name__}: {cause}" if cause else str(error), secret)
        return Transient(
            f"{url}: {what}", reason="unreachable" if unreached else "reset", billed=not unreached
        )
    return Transient(f"{url}: malformed reply: {shown(str(error), secret)}", reason="malformed", billed=True)


def _by_status(error: openai.APIStatusError, url: str, secret: str) -> ModelError:
    status, message = error.status_code, shown(error.message, secret)
    text = f"{url}: HTTP {status}: {message}"
    if status == 429 and (error.code in _QUOTA or error.type in _QUOTA):
        return ModelRefused(text, reason="quota")
    if status == 501:  # the server can never do this
        return ModelRefused(text, reason="not_supported")
    if status in _TRANSIENT_STATUS or status >= 500:
        reason = "rate_limit" if status == 429 else f"http_{status}"
        return Transient(text, reason=reason, retry_after=retry_after(error.response.headers))
    if status in (401, 403):
        return ModelRefused(text, reason="authentication")
    if status == 404:
        return ModelRefused(text, reason="not_found")
    if _CONTEXT.search(message):
        return ModelRefused(text, reason="context_length")
    return ModelRefused(text, reason="bad_request")
