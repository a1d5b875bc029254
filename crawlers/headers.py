"""Reading HTTP header values."""

from __future__ import annotations

import re
from collections.abc import Iterable

MAX_VALUE = 2000
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")


def clean_value(value: str) -> str:
    """A header value without control characters (databases refuse NUL); empty where it is absurdly long."""
    value = _CONTROL.sub("", value).strip()
    return value if len(value) <= MAX_VALUE else ""


def media_type(content_type: str) -> str:
    """The media type of a Content-Type header, lower case, without parameters."""
    return content_type.split(";", maxsplit=1)[0].strip().lower()


def charset_of(content_type: str) -> str:
    """The charset parameter of a Content-Type header, at most 32 characters, empty where there is none."""
    for parameter in content_type.split(";")[1:]:
        name, _, value = parameter.partition("=")
        if name.strip().lower() == "charset":
            return value.strip().strip("\"'").lower()[:32]
    return ""


def reservation(values: Iterable[str]) -> bool | None:
    """What ``tdm-reservation`` values say: True reserves (1), False frees (0), None is neither.

    W3C TDM Reservation Protocol, final report of 10 May 2024.
    """
    words = {part.strip().lower() for value in values for part in value.split(",")}
    if words & {"1", "true"}:
        return True
    return False if words & {"0", "false"} else None


def robots_tags(values: Iterable[str], agent: str) -> tuple[bool, bool]:
    """noindex and nofollow of X-Robots-Tag headers, those for everybody and those for ``agent``.

    A value may begin with the name of a crawler, which then holds for the whole value.
    """
    tags = []
    for value in values:
        name, colon, rest = value.lower().partition(":")
        directive = not colon or "," in name or name.strip() in _WITH_VALUE
        if directive or name.strip() == agent.lower():
            tags.append(value.lower() if directive else rest)
    return says(",".join(tags), "noindex"), says(",".join(tags), "nofollow")


def says(tags: str, word: str) -> bool:
    """Whether robots tags (lower case) hold the word, or ``none``, which means both."""
    words = set(re.split(r"[\s,]+", tags))
    return word in words or "none" in words


_WITH_VALUE = frozenset({"unavailable_after", "max-snippet", "max-image-preview", "max-video-preview"})
