"""Sub- and superscripts as Unicode, and the blanks of inline text."""

from __future__ import annotations

import re

from corpus.cleaning.tags import squashed

_SUPER = dict(
    zip(
        "0123456789+-−–=()abcdefghijklmnoprstuvwxyz",
        "⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻⁻⁻⁼⁽⁾ᵃᵇᶜᵈᵉᶠᵍʰⁱʲᵏˡᵐⁿᵒᵖʳˢᵗᵘᵛʷˣʸᶻ",
        strict=True,
    )
)
_SUB = dict(
    zip(
        "0123456789+-−–=()aehijklmnoprstuvxβγρφχ",
        "₀₁₂₃₄₅₆₇₈₉₊₋₋₋₌₍₎ₐₑₕᵢⱼₖₗₘₙₒₚᵣₛₜᵤᵥₓᵦᵧᵨᵩᵪ",
        strict=True,
    )
)
_SUPER.update(dict.fromkeys("\u2010\u2011\ufe63\uff0d", "⁻"))
_SUB.update(dict.fromkeys("\u2010\u2011\ufe63\uff0d", "₋"))
#: Digits and signs that are written raised or lowered in measures and formulas.
SCRIPTED = frozenset("0123456789+-−–")
_ALREADY = frozenset("".join((*_SUPER.values(), *_SUB.values(), "°º′″*†‡§")))
_ORDINAL = re.compile(r"^(?:st|nd|rd|th|er|re|ème|o|a|TM|SM|®|™|©)$")
_INVISIBLE = re.compile(r"[\u00ad\u200b\u2060\ufeff\u200e\u200f\u202a-\u202e]")
_CJK = r"\u3000-\u303f\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\uff00-\uffef"
_CJK_WRAP = re.compile(rf"(?<=[{_CJK}])[^\S\n]*\n\s*(?=[{_CJK}])")


def raised(text: str) -> str:
    """Superscript in Unicode where every character has one, else in ``<sup>``."""
    return _script(text, _SUPER, "sup")


def lowered(text: str) -> str:
    """Subscript in Unicode where every character has one, else in ``<sub>``."""
    return _script(text, _SUB, "sub")


def _script(text: str, table: dict[str, str], tag: str) -> str:
    core = text.strip()
    if not core:
        return text
    if tag == "sup" and _ORDINAL.match(core):
        return text
    if all(character in table or character in _ALREADY for character in core):
        return text.replace(core, "".join(table.get(character, character) for character in core))
    return f"<{tag}>{core}</{tag}>"


def collapse(text: str) -> str:
    """Runs of blanks to one; line breaks between CJK characters to none; invisible characters out.

    A soft hyphen or zero-width blank inside ``71-43-2`` would hide the number.
    """
    if not text.isascii():  # none of these characters is ASCII
        text = _INVISIBLE.sub("", text)
        if "\n" in text:
            text = _CJK_WRAP.sub("", text)
    return squashed(text)
