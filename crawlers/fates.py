"""What can become of a URL: every URL of a crawl ends with a state and a reason."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

PageState = Literal["kept", "failed", "excluded", "gone"]


@dataclass(frozen=True)
class Fate:
    """State, reason and detail of a URL. ``transient``: the next run tries it again."""

    state: PageState
    reason: str = ""
    detail: str = ""
    transient: bool = False


def of_status(status: int) -> Fate:
    """The fate of a URL that was answered with an error status."""
    if status in (404, 410):
        return Fate("gone", f"http_{status}")
    # 202 is "not ready yet", and what challenge pages of firewalls are sent with
    transient = status >= 500 or status in (202, 408, 425, 429)
    return Fate("failed", f"http_{status}", transient=transient)
