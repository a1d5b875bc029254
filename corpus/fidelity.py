"""What a rewriting of safety text must not change, counted before and after.

A changed number, a lost negation or a new substance is the worst fault of this
platform, so a refined text is compared with its source as multisets of facts:
numbers with sign, operator and unit; CAS, UN, H and P codes; formulae;
negations; comparisons and modal words (corpus design, section 7).
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from functools import lru_cache

from corpus.dashes import with_hyphens
from corpus.names import ELEMENT_SYMBOL

_SUPERSCRIPTS = "⁰¹²³⁴⁵⁶⁷⁸⁹⁻⁺"
_RAISED = re.compile(rf"<sup>\s*([-+−–]?\d{{1,3}}[-+−]?)\s*</sup>|([{_SUPERSCRIPTS}]+)")
_PLAIN_SUPERSCRIPTS = str.maketrans(_SUPERSCRIPTS, "0123456789-+")
_TAGS = re.compile(r"</?(?:sub|sup|br)\s*/?>")
# What no reader sees. It goes first: with it between them, letters and their accents would not be composed.
INVISIBLE = re.compile(r"[\u00ad\u200b-\u200f\u202a-\u202e\u2060-\u2064\ufeff]|[\x00-\x08\x0e-\x1f\x7f]")
_ESCAPED = re.compile(r"\\(?=[!-/:-@\[-`{-~])")

_KNOWN = (
    r"mg|g|kg|μg|ug|ng|t|tonnes?|lbs?|oz|mL|ml|L|l|gal|gallons?|litres?|liters?|m|cm|mm|km|μm|nm|ft|feet|inch(?:es)?|K"
    r"|kPa|MPa|Pa|hPa|mbar|bar|atm|psi|mm\s?Hg|[Tt]orr|ppm|ppb|ppmv|mol|kmol|mmol|kJ|MJ|J|kcal|cal|eV|h|hr|hrs|min|s|d"
    r"|days?|weeks?|months?|years?|hours?|minutes?|seconds?|percent|degrees?|times|kW|W|V|Hz|Bq|Gy|Sv|mPa|cP|D|M|N"
)
# A unit stands right behind its number, or after a blank where it is a known one.
_LATIN_UNIT = (
    rf"(?:\s?[°%‰]\s?(?:[CFK]\b)?|[A-Za-zμΩ]{{1,9}}|\s(?:{_KNOWN})(?![A-Za-z]))"
    r"(?:\^[-+]?\d)?(?:\s?[/·]\s?[A-Za-zμ]{1,9}(?:\^[-+]?\d|\d)?){0,3}"
)
_CHINESE_UNIT = (
    r"(?:摄氏度|华氏度|分钟|小时|毫克|千克|公斤|微克|毫升|立方米|平方米|厘米|毫米|千米|公里|分|秒|克|升|吨|米|天|日|月|年|周|倍"
    r"|次|人|度|万元|元|级|类|项|条|款|章|种|号)(?:/(?:千克|公斤|升|毫升|立方米|克|吨|小时|天|日|人))?"
)
_NUMBER = re.compile(
    rf"(?P<sign>[-+±<>=≤≥≦≧≈~]{{0,2}})\s?(?P<number>(?<![\d.])\d(?:[\d,]*\d)?(?:\.\d+)*(?:\^[-+]?\d+)?)"
    rf"(?P<unit>{_LATIN_UNIT}|\s?{_CHINESE_UNIT})?"
)
_CODES = re.compile(
    r"(?<![\w-])(?:[1-9]\d{1,6}-\d{2}-\d(?![\d-])|UN ?\d{4}|EUH ?\d{3}[A-Z]?|[HP]\d{3}[A-Za-z]{0,2}(?:\s?\+\s?[HP]\d{3})*)(?!\w)"
)
_FORMULA = re.compile(rf"(?<![A-Za-z])(?:(?:{ELEMENT_SYMBOL})\d*|[()\[\]]\d*){{2,}}(?![A-Za-z])")
_NEGATION = re.compile(
    r"[不无無未非禁勿否没沒莫忌]|避免|除外"
    r"|\b(?:no|not|non|none|never|nor|neither|without|cannot|avoid|except|unless|prohibited|forbidden)\b|n['’]t\b",
    re.IGNORECASE,
)
_COMPARISON = re.compile(
    r"大于|小于|高于|低于|超过|以上|以下|以内|至少|至多|最大|最小|最高|最低|必须|应当|严|可能"
    r"|\b(?:less|more|greater|fewer|below|above|under|over|least|most|exceed(?:s|ing)?|maximum|minimum|up to"
    r"|must|shall|should|may|might)\b",
    re.IGNORECASE,
)
_SIGNS = re.compile(r"[^\w]|_")
_HAN = r"[\u3400-\u9fff\uf900-\ufaff]"
_WRAP = re.compile(rf"(?<={_HAN})[^\S\n]*\n[^\S\n]*(?={_HAN})")  # one break; an empty line parts paragraphs
_PARTED = re.compile(r"\b([A-Za-z]{1,10})-\s?([a-z]{1,10})\b")
# A hyphen parts words: "non-\nflammable" and "non-flammable" have the same ones.
_WORD = re.compile(r"[\u3400-\u9fff\uf900-\ufaff]|[^\W\d_]{2,}(?:['’][^\W\d_]+)*")


_CACHED = 2000  # characters; a block is read several times, a whole document would only fill the memory


def _plain(text: str) -> str:
    return _cached_plain(text) if len(text) <= _CACHED else _as_plain(text)


@lru_cache(maxsize=4096)
def _cached_plain(text: str) -> str:
    return _as_plain(text)


def _as_plain(text: str) -> str:
    """One form for comparison: raised digits marked, tags and escapes gone, width and dashes unified, words whole."""
    text = INVISIBLE.sub("", text)
    text = _RAISED.sub(lambda m: "^" + (m[1] or m[2].translate(_PLAIN_SUPERSCRIPTS)), text)
    text = _TAGS.sub(lambda m: "\n" if "br" in m[0] else "", text)
    text = with_hyphens(unicodedata.normalize("NFKC", _ESCAPED.sub("", text)))
    if "\n" in text:
        text = _WRAP.sub("", text)
    if "-" in text:
        text = _PARTED.sub(_whole, text)
    return re.sub(r"[\s|*_#`]+", " ", text).replace("〜", "~").replace("∼", "~")


def _whole(match: re.Match[str]) -> str:
    """A negation or comparison that was hyphenated ("pro-\nhibited") in one piece; other words as they are."""
    word = match[1] + match[2]
    return word if _NEGATION.fullmatch(word) or _COMPARISON.fullmatch(word) else match[0]


def facts(text: str) -> Counter[str]:
    """Multiset of what must stay: ``number:≤-20°C``, ``code:67-56-1``, ``formula:H2O``, ``not:不`` …"""
    plain = _plain(text)
    found: Counter[str] = Counter()
    for match in _CODES.finditer(plain):
        found[f"code:{match[0].replace(' ', '')}"] += 1
    plain = _CODES.sub(";", plain)
    for match in _FORMULA.finditer(plain):
        shown = match[0].strip("()[]")
        if re.search(r"[A-Z].*[A-Z\d]", shown) and (re.search(r"\d|[a-z]", shown) or len(shown) <= 3):
            found[f"formula:{shown}"] += 1
    for match in _NUMBER.finditer(plain):
        unit = re.sub(r"\s", "", match["unit"] or "")
        found[f"number:{match['sign']}{match['number']}{unit}"] += 1
    found.update(f"not:{match[0].lower()}" for match in _NEGATION.finditer(plain))
    found.update(f"than:{match[0].lower()}" for match in _COMPARISON.finditer(plain))
    return found


def negations(text: str) -> int:
    """How often a text denies."""
    return sum(1 for _ in _NEGATION.finditer(_plain(text)))


def numbers_in_order(text: str) -> list[str]:
    """Numbers with their signs and units as they follow each other: "90 % acetone, 10 % benzene" is not its contrary."""
    plain = _CODES.sub(";", _plain(text))
    return [
        match["sign"] + match["number"] + "".join((match["unit"] or "").split())
        for match in _NUMBER.finditer(plain)
    ]


def differences(before: str, after: str) -> list[str]:
    """What the rewriting lost or gained, in words a model can act on; empty where nothing changed."""
    if before == after:
        return []
    return changes(facts(before), facts(after))


def changes(one: Counter[str], two: Counter[str]) -> list[str]:
    """What differs between two multisets of facts, in words; empty where nothing does."""
    if one == two:
        return []
    lost, gained = one - two, two - one
    return [f"lost {_shown(fact, n)}" for fact, n in sorted(lost.items())] + [
        f"added {_shown(fact, n)}" for fact, n in sorted(gained.items())
    ]


def _shown(fact: str, count: int) -> str:
    kind, _, text = fact.partition(":")
    return f"{kind} {text!r}" + (f" ({count} times)" if count > 1 else "")


def reordered(before: str, after: str) -> str:
    """Where a rewriting puts something that the source does not say at that place; empty where it keeps the order.

    A rewriting may leave out furniture and mend marks, so its letters and digits
    must be those of the source in the source's order. Equal sets of numbers are not
    enough: "boiling point 29, flash point 75" has the numbers of its contrary.
    """
    source, wanted = (_SIGNS.sub("", _plain(text).lower()) for text in (before, after))
    position = 0
    for index, char in enumerate(wanted):
        found = source.find(char, position)
        if found < 0:
            return wanted[max(0, index - 12) : index + 12]
        position = found + 1
    return ""


def holds_facts(text: str) -> bool:
    """Whether a text carries identifiers, hazard codes, or numbers with a unit of measurement."""
    plain = _plain(text)
    if _CODES.search(plain):
        return True
    return bool(
        re.search(
            r"\d\s?(?:[°%‰]|(?:mg|g|kg|μg|mL|ml|L|ppm|kPa|MPa|Pa|mm|cm|mol|kJ|min|h)\b|摄氏度|毫克|千克|毫升|立方米|分钟|小时)",
            plain,
        )
    )


def words(text: str) -> Counter[str]:
    """Content words for coverage and novelty: Chinese characters, other words in lower case."""
    return Counter(match[0].lower() for match in _WORD.finditer(_plain(text)))
