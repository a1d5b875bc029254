"""How refusals and failures of the network become the fate of a URL."""

from __future__ import annotations

import gzip
import zlib

import brotli  # type: ignore[import-untyped]
from scrapy.exceptions import (
    CannotResolveHostError,
    DownloadCancelledError,
    DownloadConnectionRefusedError,
    DownloadTimeoutError,
    IgnoreRequest,
    ResponseDataLossError,
)

from crawlers.fates import Fate, PageState

_OTHER_HOST = "VerificationError(errors="  # of service_identity, as Twisted passes it on
RETRY_AFTER = "retry_after"
HEADERS_TOO_LONG = "header section too long"


class Refused(IgnoreRequest):
    """A request that is not made, or an answer that is not taken, with the reason."""

    def __init__(self, reason: str, detail: str = "", *, transient: bool = False) -> None:
        super().__init__(detail or reason)
        self.reason = reason
        self.detail = detail
        self.transient = transient


def of_error(error: BaseException) -> Fate:
    """The fate of a URL whose request raised ``error``."""
    if isinstance(error, Refused):
        state: PageState = "failed" if error.transient else "excluded"
        return Fate(state, error.reason, error.detail, error.transient)
    text = str(error)[:500]
    if isinstance(error, DownloadCancelledError) or (
        isinstance(error, IgnoreRequest) and "DOWNLOAD_MAXSIZE" in text
    ):
        return Fate("excluded", "too_large", text)
    if isinstance(error, DownloadTimeoutError):
        return Fate("failed", "timeout", text, transient=True)
    if isinstance(error, CannotResolveHostError):
        return Fate("failed", "dns", text, transient=True)
    if isinstance(error, DownloadConnectionRefusedError):
        return Fate("failed", "connection", text, transient=True)
    if isinstance(error, ResponseDataLossError):
        return Fate("failed", "cut_short", text, transient=True)
    coded = isinstance(error, gzip.BadGzipFile | EOFError | zlib.error | brotli.error)
    if coded or "zstd" in type(error).__module__:  # Scrapy undoes zstd where a module for it is there
        return Fate("failed", "encoding", f"its content encoding cannot be undone: {text}")
    if HEADERS_TOO_LONG in text:
        return Fate("excluded", "too_large", text)
    if _OTHER_HOST in text:
        return Fate("failed", "certificate", f"the certificate is of another host: {text}"[:500])
    if "certificate" in text.lower():
        return Fate("failed", "certificate", text)
    return Fate("failed", "connection", f"{type(error).__name__}: {text}", transient=True)
