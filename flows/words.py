"""Words that commands share: counts with their noun, and text that cannot steer a terminal."""

from __future__ import annotations

import unicodedata

_STEERING = {"Cc", "Cf", "Cs", "Zl", "Zp"}  # controls, marks of direction, halves of a character, line ends


def counted(number: int, noun: str, plural: str = "") -> str:
    """ "1 conflict", "2 conflicts"; ``plural`` where it is not the noun with an s."""
    return f"{number} {noun if number == 1 else plural or noun + 's'}"


def visible(text: str) -> str:
    """A line for a terminal: characters that would steer it are written as escapes."""
    return "".join(ascii(c)[1:-1] if unicodedata.category(c) in _STEERING else c for c in text)
