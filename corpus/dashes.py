"""The dashes and minus signs of Unicode as one: the sign that a keyboard has.

One list for all that compare texts. What makes a number negative in one place must do so in
every other, or two documents that are told apart here are one there. The long vowel mark of
Japanese and the soft hyphen are none: the one is a letter, the other is not seen.
"""

from __future__ import annotations

import re

DASHES = "\u2010\u2011\u2012\u2013\u2014\u2015\u2043\u2212\ufe58\ufe63\uff0d"
"""Hyphens, dashes, the hyphen bullet, the minus sign, and their small and full-width forms."""
_DASHES = re.compile(f"[{DASHES}]")


def with_hyphens(text: str) -> str:
    """The text with every dash and minus sign as ``-``."""
    return _DASHES.sub("-", text)
