"""Errors of the platform: two families, decided where they are raised.

*Transient* errors are retried, *terminal* ones are recorded with their reason
and left alone until the input changes. Each carries the step and item it
belongs to once the runner knows them. (``models.errors`` mirrors the families
for the model layer, which knows nothing of ours.)
"""

from __future__ import annotations

import errno


class PlatformError(Exception):
    """Base of all errors that the platform raises on purpose.

    ``reason`` is a short stable word that is counted; the message is for people.
    """

    transient = False
    halts = False
    """Whether the step must stop: what failed (budget, key, endpoint) fails alike for every other item."""

    def __init__(self, message: str, *, reason: str = "error", item_id: str = "", step: str = "") -> None:
        super().__init__(message)
        self.reason = reason
        self.item_id = item_id
        self.step = step


class TransientError(PlatformError):
    """Timeouts, 429, locks, deadlocks: the same call may succeed later."""

    transient = True


class DiskError(TransientError):
    """The disk is full, over its quota, broken or read-only: nothing goes on until that is mended, nothing is lost."""

    halts = True

    def __init__(self, message: str) -> None:
        super().__init__(message, reason="disk")


_OF_DISK = frozenset(
    {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS, errno.EIO, errno.EACCES, errno.EPERM}
)


def disk_error(error: OSError) -> DiskError | None:
    """What an error of the operating system says of the disk; None where it says nothing of it."""
    if error.errno not in _OF_DISK:
        return None
    where = f"{error.filename}: " if error.filename else ""
    return DiskError(f"{where}{error.strerror}; make room (or give access), then the same command goes on")


class DeferredError(TransientError):
    """The item waits for answers of a batch job; nothing failed, and it is not recorded."""


class TerminalError(PlatformError):
    """Malformed page, rejected output, bad setting: repeating it changes nothing."""


class SettingsError(TerminalError):
    """A wrong or missing setting. The message names every place that was looked in."""

    def __init__(self, message: str) -> None:
        super().__init__(message, reason="settings")


class CatalogueBusyError(TransientError):
    """Another run holds the catalogue's lease."""
