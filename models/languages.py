"""Chinese or English? Rough on purpose: it guards against an answer in the other language, nothing finer."""

from __future__ import annotations

import re
from typing import Literal

Language = Literal["zh", "en"]

_HAN = re.compile(r"[\u3400-\u4dbf\u4e00-\u9fff]")
_LETTER = re.compile(r"[^\W\d_]")
_ENOUGH = 12  # letters below which a text (a name, a code, a value) has no language


def language_of(code: str) -> Language:
    """The prompt language for a document's language code: ``zh`` for Chinese, else ``en``."""
    return "zh" if code.lower().startswith("zh") else "en"


def han_share(text: str) -> float:
    """Share of a text's letters that are Han characters; 0 for a text without letters."""
    letters = len(_LETTER.findall(text))
    return len(_HAN.findall(text)) / letters if letters else 0.0


def is_chinese(text: str) -> bool:
    """Whether a prompt is written in Chinese (Latin names and JSON keys among it count little)."""
    return han_share(text) > 0.15


def wrong_language(text: str, code: str) -> str:
    """What to tell a model that answered in the other language; empty where it did not.

    Names, formulae and codes stay Latin in Chinese texts, so Chinese needs only a
    few Han characters, English hardly any; short texts are let through.
    """
    wanted = language_of(code)
    if len(_LETTER.findall(text)) < _ENOUGH:
        return ""
    share = han_share(text)
    if wanted == "zh" and share < 0.05:
        return "answer in Chinese, the language of the document (请用中文回答)"
    if wanted == "en" and share > 0.3:
        return "answer in English, the language of the document"
    return ""
