"""Characters that steer or hide: what pages say is shown as it is stored, never as it would have itself shown."""

from __future__ import annotations

import unicodedata
from typing import Any

from markupsafe import Markup

_HIDDEN = {"Cc", "Cf", "Co", "Cs", "Zl", "Zp"}  # controls, marks of direction, halves of characters


def visible(value: Any) -> Any:
    """Text of pages with what would steer a browser's lines, or hide, written as its code; markup and other values as they are."""
    if isinstance(value, Markup) or not isinstance(value, str) or (value.isascii() and value.isprintable()):
        return value
    return "".join(
        f"‹U+{ord(c):04X}›" if unicodedata.category(c) in _HIDDEN and c not in "\n\t" else c for c in value
    )
