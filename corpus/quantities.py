"""Quantities as pages write them: "≤-20 ℃（闭杯）", "1.5%~15%(V/V)", "12–13 °C (54–55 °F)".

A quantity is an operator, a least and a greatest value, a unit, the same in SI
units (by ``pint``) and the conditions it holds under. "无资料/not available" is
an explicit ``NO_DATA``, which is neither zero nor absent. What can be read in
two ways is not read at all: a wrong number is worse than none.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from itertools import pairwise
from typing import Any, Final

from corpus.units import UNIT_PATTERN, Unit, convert, parse_unit, same_dimension

_SUPERSCRIPTS = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁻⁺", "0123456789-+")
# One character for one character, so that offsets into the text stay valid.
_WIDTH = {code: code - 0xFEE0 for code in range(0xFF01, 0xFF5F)} | {
    ord(a): b
    for a, b in zip("\u2212\u2011\u301c\u223c≦≧⩽⩾\u00b5˚º\u3000\u00a0\uff61", "--~~≤≥≤≥μ°°  .", strict=True)
}


class NoData:
    """The source says that there is no value. Never equal to zero or to a missing statement."""

    def __repr__(self) -> str:
        return "NO_DATA"

    def __bool__(self) -> bool:
        return False


NO_DATA: Final = NoData()


@dataclass(frozen=True)
class Quantity:
    """A value with its unit. ``start``/``end``: where it stands in the text it was read from.

    A plain value has ``minimum == maximum``; "<" and "<=" have only a maximum,
    ">" and ">=" only a minimum; "~" is an approximate plain value or range.
    """

    operator: str
    minimum: float | None
    maximum: float | None
    unit: str
    si_minimum: float | None = None
    si_maximum: float | None = None
    si_unit: str = ""
    conditions: Mapping[str, str] = field(default_factory=dict)
    start: int = 0
    end: int = 0

    def as_value(self) -> dict[str, Any]:
        """The form that assertions store."""
        value: dict[str, Any] = {
            "operator": self.operator,
            "min": self.minimum,
            "max": self.maximum,
            "unit": self.unit,
            "si": {"min": self.si_minimum, "max": self.si_maximum, "unit": self.si_unit},
        }
        if self.conditions:
            value["conditions"] = dict(self.conditions)
        return value


def plain_width(text: str) -> str:
    """Half-width digits, signs and brackets; same length, so offsets stay valid."""
    return text.translate(_WIDTH)


_NO_DATA = re.compile(
    r"^\W*(?:[暂暫尚]?[无無](?:相[关關])?(?:可用|有效|可靠)?(?:的)?(?:[数數][据據]|[资資]料|信息|資訊)(?:[资資]料|可用)?|[无無]可用[数數][据據]|[没沒]有(?:相[关關])?(?:[数數][据據]|[资資]料)"
    r"|未(?:[测測]定|确定|確定|知|提供|[获獲]得)|不[详詳]|[无無]意[义義]|不[适適]用|缺乏[资資]料|[资資]料缺乏|no (?:relevant )?(?:data|information)(?: is| are)?(?: available)?"
    r"|(?:data )?not (?:available|applicable|determined|established|known|tested)|n\.?\s?/?\s?a\.?|n\.?d\.?|none (?:available|established)|unknown)"
    r"\W*$",
    re.IGNORECASE,
)


def is_no_data(text: str) -> bool:
    """Whether the whole text says that no value is known or applicable.

    "无资料", "不适用", "Not available", "N/A" and dashes; not "0", not the empty text.
    """
    shown = text.strip()
    return bool(shown) and (bool(_NO_DATA.match(shown)) or bool(re.fullmatch(r"[-—–/\\\s]+", shown)))


# --- numbers ----------------------------------------------------------------

_EXPONENT = r"(?:\^\{?\s?[-+]?\d{1,2}\}?|<sup>\s?[-+−]?\d{1,2}\s?</sup>|[⁻⁺]?[⁰¹²³⁴⁵⁶⁷⁸⁹]{1,2}|[-+]\d{1,2}(?!\d)|[1-9]\d?(?!\d))"
_BODY = (
    r"(?:\d{1,3}(?:,\d{3})+(?!\d)|\d{1,3}(?:[\u2009\u202f]\d{3})+(?!\d)|\d{1,3}(?:['’]\d{3})+(?!\d)"
    r"|\d+(?=\.\d{3}[ \u2009\u202f]\d{3}(?!\d))|\d+)(?:\.\d{3}(?:[ \u2009\u202f]\d{3})+(?!\d)|\.\d+)?|\.\d+"
)
_NUMBER = rf"(?:[-+]\s?|(?<![–—])[–—](?=\d))?(?:{_BODY})(?:\(\d{{1,2}}\)(?=\s?[°℃A-Za-z]))?(?:\s?[×xX*✕·∙]\s?10{_EXPONENT}|[eE][-+]?\d{{1,2}})?"
_POWER = r"(?:[-+]\s?)?10(?:\^\{?\s?[-+]?\d{1,2}\}?|<sup>\s?[-+−]?\d{1,2}\s?</sup>|[⁻⁺]?[⁰¹²³⁴⁵⁶⁷⁸⁹]{1,2})"
_NUM = rf"(?:{_POWER}|{_NUMBER})"
_OPERATOR = (
    r"≤|≥|<=|>=|<|>|[~≈]|约为?|大约|不(?:宜|得|应|能|可|要|应当|允许)?(?:低于|小于|少于)|不(?:宜|得|应|能|可|要|应当|允许)?(?:高于|超过|大于|多于)|(?:大于|高于|超过)(?:或?等于)?|(?:小于|低于)(?:或?等于)?"
    r"|最(?:小|低)(?:值)?(?:为|:)?|最(?:大|高)(?:值)?(?:为|:)?|至少|至多|不少于|不多于|(?<!\d )(?<!\d)(?:min(?:imum|\.)|max(?:imum|\.)):?"
    r"|\b(?:not|n't|no) (?:be )?(?:exceed(?:ing)?|above|over|more than|higher than|greater than|in excess of)|\b(?:not|no) (?:be )?(?:below|under|less than|lower than|fewer than)"
    r"|(?:about|approx(?:imately|\.)?|circa|ca?\.|around|less than or equal to|greater than or equal to|less than|more than|greater than"
    r"|at least|at most|up to|exceeding|exceeds|higher than|lower than|below|above|under|over)"
)
_RANGE = r"\s*(?:~|–|—|-|to|至|到)\s*"
_QUANTITY = re.compile(
    rf"(?P<op>{_OPERATOR})?(?P<between>\bbetween\s|介于|在(?=[^,，。;；]{{1,24}}之间))?\s?(?:(?<![A-Za-z0-9.'’])(?<!\d,)|(?<=[mM]in\.)|(?<=[mM]ax\.))(?<!\d[-–—/])(?<!/[-–—])(?P<low>{_NUM})(?P<lost>(?<=10)-\d(?![\d.]))?"
    rf"(?:\s?(?P<lowunit>(?>{UNIT_PATTERN}))?(?P<sep>{_RANGE}|(?(between)\s*(?:and|和|与)\s*|(?!)))(?P<high>{_NUM})|\s?±\s?(?P<pm>{_BODY}))?"
    rf"(?:\s?(?P<unit>{UNIT_PATTERN}))?(?P<after>\s?(?:以下|以上|左右|or (?:less|more|below|above)))?",
    re.IGNORECASE,
)
_SYMBOLS = {"≦": "<=", "≤": "<=", "≥": ">=", "~": "~", "≈": "~", "<": "<", ">": ">", "<=": "<=", ">=": ">="}
_WORDS: tuple[tuple[str, str], ...] = (
    (
        r"不.*(?:低于|小于|少于)|最(?:小|低).*|至少|min.*|.*(?:大于|高于|超过)或?等于|at least|(?:not|no) .*(?:below|under|less|lower|fewer).*|greater than or equal.*",
        ">=",
    ),
    (
        r"不.*(?:高于|超过|大于|多于)|最(?:大|高).*|至多|max.*|.*(?:小于|低于)或?等于|at most|up to|(?:not|no|n't) .*|less than or equal.*",
        "<=",
    ),
    (r"大于|高于|超过|more than|greater than|higher than|exceed.*|above|over", ">"),
    (r"小于|低于|less than|lower than|below|under", "<"),
)


def _operator(text: str) -> str:
    shown = " ".join(text.strip().lower().split())
    if not shown:
        return "="
    if shown in _SYMBOLS:
        return _SYMBOLS[shown]
    return next((symbol for words, symbol in _WORDS if re.fullmatch(words, shown)), "~")


def parse_number(text: str) -> float | None:
    """A single number with sign, separators and power of ten; None where it is ambiguous.

    "1.5×10-3" (superscript lost) is 0.0015; "1,234" is 1234; "0,789" is 0.789;
    "1,5" and "2×100" are ambiguous.
    """
    shown = plain_width(_two_ways(text)).strip().replace("–", "-").replace("—", "-")
    shown = re.sub(r"</?sup>|[\s\u2009\u202f{}]|(?<=\d)['’](?=\d{3})", "", shown)
    power = re.fullmatch(r"([-+]?)10(?:\^|(?=[⁻⁺⁰¹²³⁴⁵⁶⁷⁸⁹]))(.+)", shown)
    if power:
        exponent = _int(power[2])
        return None if exponent is None else float(f"{power[1]}1e{exponent}")
    match = re.fullmatch(r"([-+]?[\d.,]+)(?:\(\d+\))?(?:[×xX*✕·∙]10\^?(.+)|[eE]([-+]?\d+))?", shown)
    if not match:
        return None
    if match[2] == "0":
        return None  # "2×100" is no power of ten, and whether a factor of 100 is meant is unclear
    mantissa = _mantissa(match[1])
    exponent = _int(match[2] or match[3] or "0")
    if mantissa is None or exponent is None:
        return None
    return float(f"{mantissa}e{exponent}")


def _mantissa(text: str) -> str | None:
    if "," not in text:
        return text if re.fullmatch(r"[-+]?(?:\d+\.?\d*|\.\d+)", text) else None
    if re.fullmatch(r"[-+]?[1-9]\d{0,2}(?:,\d{3})+(?:\.\d+)?", text):
        return text.replace(",", "")
    return text.replace(",", ".") if re.fullmatch(r"[-+]?0,\d+", text) else None


def _int(text: str) -> int | None:
    shown = text.translate(_SUPERSCRIPTS)
    return int(shown) if re.fullmatch(r"[-+]?\d{1,2}", shown) else None


# --- quantities --------------------------------------------------------------


def parse_quantities(
    text: str, *, dimension: str = "", default_unit: str = "", bare: bool = False
) -> list[Quantity]:
    """All quantities of a text, each with the conditions around it.

    ``dimension``: a unit of the wanted kind ("degC"); others are taken as
    conditions (temperature, pressure, duration) or left out. ``default_unit``:
    unit of numbers that carry none (from the label, "闪点(℃)"). ``bare``: numbers
    without unit count (pH, relative density). A value repeated in another unit
    in brackets is one quantity, in the unit that came first.
    """
    # "水=1，20℃": no number "1,20"
    shown = re.sub(r"(?<==1),(?=\s?\d)", "、", _broken(plain_width(_two_ways(text))))
    found: list[Quantity] = []
    for start, end in _segments(shown):
        for quantity in _segment(shown, start, end, dimension, default_unit, bare):
            if not any(_same_elsewhere(known, quantity) for known in found):
                found.append(quantity)
    return found


_FULL_WIDTH_GROUPS = re.compile(r"(?<![\d０-９.．])[\d０-９]{1,3}(?:，[\d０-９]{3})+(?![\d０-９])")


def _two_ways(text: str) -> str:
    """Text of the same length without "300，450": one number of six digits or two of three; "1，000" can be one only."""
    return _FULL_WIDTH_GROUPS.sub(
        lambda m: m[0] if re.search("，[0０]", m[0]) else "\ue000" * len(m[0]), text
    )


_BREAK = re.compile(r"<br\s*/?>", re.IGNORECASE)


def _broken(text: str) -> str:
    """Text of the same length with a semicolon for a line break, whose marks look like bounds ("30 ℃<br>56 ℃")."""
    return _BREAK.sub(lambda m: ";" + " " * (len(m[0]) - 1), text)


def _same_elsewhere(known: Quantity, other: Quantity) -> bool:
    """The value repeated in another unit ("−41.6 °C; −42.9 °F") and under the same conditions."""
    if known.unit == other.unit or known.si_unit != other.si_unit or known.conditions != other.conditions:
        return False
    pairs = ((known.si_minimum, other.si_minimum), (known.si_maximum, other.si_maximum))
    return all((a is None) == (b is None) and (a is None or b is None or _near(a, b)) for a, b in pairs)


def _near(a: float, b: float) -> bool:
    return abs(a - b) <= max(0.03 * max(abs(a), abs(b)), 1e-12)


def parse_quantity(
    text: str, *, dimension: str = "", default_unit: str = "", bare: bool = False
) -> Quantity | NoData | None:
    """The first quantity of a text, ``NO_DATA`` where it says so, None where nothing can be read."""
    if is_no_data(text):
        return NO_DATA
    found = parse_quantities(text, dimension=dimension, default_unit=default_unit, bare=bare)
    return found[0] if found else None


def _segments(text: str) -> list[tuple[int, int]]:
    """Parts that stand on their own: cut at semicolons, Chinese stops and line ends outside brackets."""
    cuts = [0]
    depth = 0
    for index, char in enumerate(text):
        if char in "([":
            depth += 1
        elif char in ")]":
            depth = max(0, depth - 1)
        elif depth == 0 and char in ";\n。|":
            cuts.append(index + 1)
    cuts.append(len(text) + 1)
    return [(a, min(b - 1, len(text))) for a, b in pairwise(cuts) if text[a : b - 1].strip()]


@dataclass(frozen=True)
class _Reading:
    """One match with its numbers; ``unit`` None where the text gives none."""

    operator: str
    low: float | None
    high: float | None
    unit: Unit | None
    start: int
    end: int
    approximate: bool = False


_TEN = r"[ \u2009\u202f]*10(?:\^|<sup>|[⁻⁺⁰¹²³⁴⁵⁶⁷⁸⁹]|[-–]\d(?!\d))"


_BLANK = "[ \u2009\u202f]"
_LOOSE_POINT = rf"(?:{_BLANK}+[.,]{_BLANK}?|\.{_BLANK}+)"  # "48 . 1", "3. 6", "1 ,5"
_LOST_BEFORE = re.compile(rf"(?<![A-Za-z\d_])\d+{_LOOSE_POINT}$|\d{_BLANK}?[·∙•・]{_BLANK}?$")
_LOST_BEHIND = re.compile(rf"{_LOOSE_POINT}\d|{_BLANK}?[·∙•・]{_BLANK}?\d")
_GROUP = re.compile(r"\d{3}(?!\d)")
# a number of digits alone, no "LD50", no "Z-1" and no year: what may have lost its thousands or its decimals
_HEAD = rf"(?<![A-Za-z\d.,_])(?<![A-Za-z]-)(?:\d{{1,3}}(?:{_BLANK}\d{{3}})*|\d{{1,3}}[.,]\d{{1,4}})"
_HEAD_BEFORE = re.compile(rf"(?P<head>{_HEAD}){_BLANK}+$")
_LISTED_BEFORE = re.compile(rf"(?<![A-Za-z\d.,_])\d{{1,3}},{_BLANK}+$")
_LISTED_BEHIND = re.compile(rf",{_BLANK}+\d{{3}}(?!\d)")
_PIECE_BEHIND = re.compile(
    rf"{_BLANK}+(?P<piece>\d[\d.,]*)(?!-?[A-Za-z一-鿿])|{_BLANK}+\.\d|{_BLANK}+(?P<long>\d[\d.,]*)"
)
# a number that names a thing and is no part of the next ("pH 7 10 g/L", "GBZ 2.1 300 mg/m³")
_NAMING = re.compile(
    r"(?:\bpH(?:值)?|\bGBZ?(?:/T)?|\bNo\.?|\b(?:part|section|class|division|category|cat\.?|CFR|table|rule|method|OECD|note|item|type|zone)|类别?|项|第|编号|标准|附[录表]|表)\s?[:：=]?\s?$",
    re.IGNORECASE,
)
_AT_HEAD = re.compile(r"(?:\bat|@|/|在|[(,])\s*[-–]?\s?$", re.IGNORECASE)
_WARMTH = re.compile(r"\s?(?:°\s?[CF]|℃|℉)")
_SIGN_APART = re.compile(r"(?<![-–—])(?:[-–—]\s+|(?:零下|负|\bminus|\bnegative)\s*)$", re.IGNORECASE)


def _torn(text: str, start: int, end: int, number: tuple[int, int], dimension: str) -> bool:
    """Whether a blank tore a number apart, so that no piece of it is the value.

    "0.13 10-3 kPa" (a power that lost its sign of multiplication), "3. 6 ℃", "48 . 1 kPa", "94·7 ℃" and
    "5 6 ℃" (scanned text), "1 780 mg/kg" (thousands behind a plain blank, which may as well part two
    numbers), "– 94 ℃" (a sign apart). "0.79 20 ℃" is a value and its temperature, unless one is asked for.
    """
    power = re.match(_TEN, text[start : start + 12]) and re.search(
        r"\d[ \u2009\u202f]+$", text[max(0, start - 4) : start]
    )
    if power or re.match(_TEN, text[end : end + 12]):
        return True
    before, behind = text[max(0, number[0] - 24) : number[0]], text[number[1] : number[1] + 24]
    if _LOST_BEFORE.search(before) or _LOST_BEHIND.match(behind) or _SIGN_APART.search(before):
        return True
    if _LISTED_BEFORE.search(before) and _GROUP.match(text, number[0]):
        return True  # "1, 000 mg/m³"
    head = _HEAD_BEFORE.search(before)
    if head and text[number[0]] in "0123456789." and not _NAMING.search(before[: head.start()]):
        warm = dimension not in _TEMPERATURES and _WARMTH.match(behind)
        if not (warm and re.search("[.,]", head["head"]) and not _AT_HEAD.search(before[: head.start()])):
            return True
    last = re.search(r"\d[\d.,]*$", text[number[0] : number[1]])
    if last is None or not re.fullmatch(r"\d{1,3}(?:[.,]\d{1,4})?", last[0]):
        return False
    if _LISTED_BEHIND.match(behind) and "." not in last[0]:
        return True
    piece = _PIECE_BEHIND.match(behind)
    if piece is None or piece["long"] or _NAMING.search(before):
        return False
    warm = dimension not in _TEMPERATURES and _WARMTH.match(behind[piece.end() :])
    return not (warm and "." in last[0] and not _AT_HEAD.search(before))


_TEMPERATURES = frozenset({"kelvin", "degC"})
# what is counted in thousands, so that "5.800 mg/kg" may be a European 5800
_COUNTED = re.compile(r"^\s?(?:[mμu]?g\s?/\s?(?:kg|m|L|l)|kg\s?/\s?m|pp[mb]|Pa\b|k?J\s?/\s?(?:kg|mol)|毫克)")
_EUROPEAN = re.compile(
    r"(?<![\d.,])(?:\d{1,3}(?:\.\d{3})+,\d|[1-9]\d*,\d{1,2}(?![\d,])|\d{1,3}(?:\.\d{3}){2,})"
)


def _thousands(text: str, number: str, unit: str) -> bool:
    """Whether a number may be one with a point between its thousands ("24.000 Pa"), which is left out."""
    if not re.fullmatch(r"[-+–—]?\s?[1-9]\d{0,2}\.\d{3}", number):
        return False
    if number.endswith(".000"):
        return bool(unit.strip()) and not re.match(r"\s?(?:g\s?/|g\s?[·.]|kg\s?/\s?L)", unit)
    return bool(_COUNTED.match(unit)) and (number.endswith("0") or bool(_EUROPEAN.search(text)))


# "-20 °C (c.c.) to 4 °C": a remark within a range
_RANGE_BEHIND = re.compile(r"\s*\([^()]*\)\s*(?:~|–|—|to\b|至|到)\s*[-–—+]?\s?\d", re.IGNORECASE)
_RANGE_BEFORE = re.compile(r"\d\s?[^\s\d(),;]{0,6}\s*\([^()]*\)\s*(?:~|–|—|\bto|至|到)\s*$", re.IGNORECASE)


def _readings(text: str, start: int, end: int, dimension: str = "") -> list[_Reading]:
    matches = [m for m in _QUANTITY.finditer(text, start, end) if not _chained(m)]
    return [r for m in matches if (r := _reading(m, dimension)) is not None]


_AGAIN = re.compile(r"\s*[~–—-]\s*\d")
_BEFORE_IT = re.compile(r"\d\s?(?:°\s?[CF]|℃|K|%|[khM]?Pa)?\s*$")


def _chained(match: re.Match[str]) -> bool:
    """ "12℃~14℃~16℃": three numbers joined are no range, whatever two of them look like."""
    text, end = match.string, match.end()
    if match["high"] and match["sep"].strip() in "~–—-" and _AGAIN.match(text, end):
        return True
    led = (match["op"] or "").strip() == "~"
    return led and bool(_BEFORE_IT.search(text[max(0, match.start() - 8) : match.start()]))


def _reading(match: re.Match[str], dimension: str) -> _Reading | None:
    text = match.string
    said = match["op"] or ""
    if said == ">" and re.search(r"</?su[bp]$", text[: match.start("op")]):
        said = ""  # "LD<sub>50</sub> 500 mg/kg": the tag's end is no bound
    begin = match.start("op") if said else match.start("low")
    end = match.end("unit") if match["unit"] else _number_end(match)
    if match["after"]:
        end = match.end("after")
    if (
        not match["unit"]
        and end < len(text)
        and text[end - 1] in "0123456789"
        and re.match(r"[\d.,]\d", text[end:])
    ):
        return None  # a longer number that the pattern did not understand
    if _torn(text, match.start("low"), end, (match.start("low"), _number_end(match)), dimension):
        return None
    if any(_thousands(text, match[name], match["unit"] or "") for name in ("low", "high") if match[name]):
        return None
    if not match["high"] and (
        _RANGE_BEHIND.match(text, end) or _RANGE_BEFORE.search(text[max(0, begin - 40) : begin])
    ):
        return None
    low = parse_number(match["low"])
    if low is None:
        return None
    if match["lost"]:  # "10-3": no range falls from 10 to 3
        low = float(f"1e{match['lost']}")
    high: float | None = low
    operator = _operator(said)
    if match["pm"]:
        spread = parse_number(match["pm"])
        if spread is None:
            return None
        low, high = _tidy(low - spread), _tidy(low + spread)
    elif match["high"]:
        second = parse_number(match["high"])
        ends = None if second is None else _range(low, second, match["sep"].strip())
        if ends is None:
            return None
        low, high = ends
    unit = parse_unit(match["unit"]) if match["unit"] else None
    lower_unit = parse_unit(match["lowunit"]) if match["lowunit"] else None
    if lower_unit and unit and lower_unit != unit:
        return None
    sign = (
        re.match(r"\s?([≤<≥>])=?\s?(?=(?!su[bp]>)[A-Za-z一-鿿])", text[end:]) if unit or lower_unit else None
    )
    return _bounded(
        operator,
        (match["after"] or "").strip().lower(),
        low,
        high,
        unit or lower_unit,
        begin,
        end,
        _FACING[sign[1]] if sign else "",
    )


def _number_end(match: re.Match[str]) -> int:
    return max(match.end(name) for name in ("low", "lost", "high", "pm", "lowunit"))


def _range(low: float, high: float, separator: str) -> tuple[float, float] | None:
    """Ends in order. A hyphen before a negative end is its sign; falling positive ranges are unclear."""
    if low <= high:
        return low, high
    if low <= 0 and high <= 0:
        return high, low
    return None


# "23℃≤闪点<61℃": a number before the sign bounds from the other side
_FACING = {"≤": ">=", "<": ">", "≥": "<=", ">": "<"}


def _bounded(
    operator: str,
    after: str,
    low: float,
    high: float | None,
    unit: Unit | None,
    start: int,
    end: int,
    facing: str = "",
) -> _Reading:
    if after in {"以下", "or less", "or below"}:
        operator = "<="
    elif after in {"以上", "or more", "or above"}:
        operator = ">="
    elif after == "左右":
        operator = "~"
    single = low == high
    if single and operator == "=" and facing:
        operator = facing
    if operator in {"<", "<="} and single:
        return _Reading(operator, None, high, unit, start, end)
    if operator in {">", ">="} and single:
        return _Reading(operator, low, None, unit, start, end)
    return _Reading(operator if operator == "~" else "=", low, high, unit, start, end)


def _tidy(value: float) -> float:
    return float(f"{value:.10g}")


def _segment(
    text: str, start: int, end: int, dimension: str, default_unit: str, bare: bool
) -> list[Quantity]:
    readings = _readings(text, start, end, dimension)
    fallback = parse_unit(default_unit) if default_unit else None
    wanted: list[tuple[_Reading, Unit | None]] = []
    others: list[_Reading] = []
    for reading in readings:
        unit = reading.unit or fallback
        if unit is None:
            if bare and not dimension and _free(text, reading):
                wanted.append((reading, None))
        elif reading.unit is None and not _free(text, reading):
            continue
        elif dimension and not same_dimension(unit, dimension):
            others.append(reading)
        elif dimension or not bare:
            wanted.append((reading, unit))
        else:
            others.append(reading)
    return _assemble(text, start, end, wanted, others)


_BASIS = re.compile(r"(?:\bair|\bwater|\bH2O|\bhydrogen|空气|水|氢气?)\s*=\s*$", re.IGNORECASE)


def _free(text: str, reading: _Reading) -> bool:
    """Whether a number without unit stands alone, not inside a word, a name or an equation."""
    before = text[max(0, reading.start - 1) : reading.start]
    if _BASIS.search(text[max(0, reading.start - 12) : reading.start]):
        return False  # "air = 1": what a density is relative to
    # a locant ("2-propanol", "2-丙醇") is no number of its own
    return not re.match(r"[A-Za-z=_]", before) and not re.match(
        r"[A-Za-z=_]|-[A-Za-z一-鿿]", text[reading.end :]
    )


def _assemble(
    text: str,
    start: int,
    end: int,
    wanted: list[tuple[_Reading, Unit | None]],
    others: list[_Reading],
) -> list[Quantity]:
    kept: list[tuple[_Reading, Unit | None]] = []
    for reading, unit in wanted:
        bracketed = _depth(text, start, reading.start) > 0
        if kept and bracketed and _repeats(kept[-1], reading, unit):
            continue
        if (kept or bracketed) and _is_condition(text, reading, bracketed):
            others.append(reading)
        elif kept and not bracketed and _repeats(kept[-1], reading, unit) and unit != kept[-1][1]:
            continue
        elif bracketed and kept:
            others.append(reading)
        else:
            kept.append((reading, unit))
    return [
        quantity
        for index, (reading, unit) in enumerate(kept)
        if (quantity := _quantity(text, reading, unit, *_scope(text, kept, index, start, end), others))
        is not None
    ]


def _scope(
    text: str, kept: list[tuple[_Reading, Unit | None]], index: int, start: int, end: int
) -> tuple[int, int]:
    """Where the conditions of one of several quantities are looked for."""
    reading = kept[index][0]
    left = _border(text, kept[index - 1][0].end, reading.start) if index else start
    right = end
    if index + 1 < len(kept):
        after = kept[index + 1][0].start
        right = _border(text, reading.end, after)
    commas = [at for at in range(left, right) if text[at] in ",，" and _depth(text, start, at) <= 0]
    commas = [at for at in commas if not (text[at - 1 : at].isdigit() and text[at + 1 : at + 2].isdigit())]
    # further comma segments count as long as each is a circumstance and no value of its own
    before = [at for at in commas if at < reading.start]
    for last, first in pairwise([*before[::-1], left - 1]):
        if not _circumstance(text[first + 1 : last]):
            left = last + 1
            break
    behind = [at for at in commas if at >= reading.end]
    for first, last in pairwise([*behind, right]):
        if not _circumstance(text[first + 1 : last]):
            right = first
            break
    return left, right


def _border(text: str, left: int, right: int) -> int:
    """Where the words of one value end and those of the next begin: at the last comma between, else at the next."""
    commas = [at for at in range(left, right) if text[at] in ",，" and _depth(text, left, at) <= 0]
    return commas[-1] + 1 if commas else right


_OWN_UNIT = re.compile(r"(?:cm|dm)\s?(?:\^|<sup>)?[3³]|/\s?m[lL]|[·.]\s?mL", re.IGNORECASE)
_SOLVED = re.compile(
    r"^\s*(?:的)?(?:水?溶液|水中|in water|aq\b|(?:aqueous )?solution|[,，]|$)", re.IGNORECASE
)


def _circumstance(segment: str) -> bool:
    """Whether words between commas can hold for the value beside them: no further value stands in them.

    "20 ℃", "4 h", "closed cup", "10%溶液" can; "0.788 g/cm³ (25 ℃)" and "0.785 at 25 °C" are values.
    """
    left = _DURATION.sub(" ", segment)
    for reading in reversed(_readings(left, 0, len(left))):
        kind = _condition_kind(reading)
        if kind in {"temperature", "pressure"} or (
            kind == "concentration" and _SOLVED.match(left[reading.end :])
        ):
            left = left[: reading.start] + " " + left[reading.end :]
    if re.search(r"\d", left):
        return False
    return not re.search(r"\([^()]*\d[^()]*\)", segment) or not re.match(r"\s*[-–<>≤≥~]?\s?\d", segment)


def _is_condition(text: str, reading: _Reading, bracketed: bool) -> bool:
    before = text[max(0, reading.start - 8) : reading.start]
    after = text[reading.end : reading.end + 2]
    # outside brackets a comma parts two values ("24 kPa(20℃)，30.6 kPa(25℃)")
    marks = r"(?:\bat|@|/|,\s*|在)\s*$" if bracketed else r"(?:\bat|@|/|在)\s*$"
    return bool(re.search(marks, before)) or after[:1] in {"时", "下"}


def _depth(text: str, start: int, position: int) -> int:
    part = text[start:position]
    return part.count("(") + part.count("[") - part.count(")") - part.count("]")


def _repeats(first: tuple[_Reading, Unit | None], reading: _Reading, unit: Unit | None) -> bool:
    """The same value in another unit: equal within the rounding of either."""
    if unit is None or first[1] is None or not same_dimension(unit, first[1].pint):
        return False
    if unit == first[1] and (first[0].low, first[0].high) != (reading.low, reading.high):
        return False  # 13 ℃ and 16 ℃ are two values, however near in kelvin
    one, two = _si(first[0], first[1]), _si(reading, unit)
    for a, b in zip(one[:2], two[:2], strict=True):
        if (a is None) != (b is None):
            return False
        if a is not None and b is not None and not _near(a, b):
            return False
    return True


def _si(reading: _Reading, unit: Unit) -> tuple[float | None, float | None, str]:
    low = None if reading.low is None else convert(reading.low, unit)
    high = None if reading.high is None else convert(reading.high, unit)
    name = (low or high or (0.0, ""))[1]
    return (low[0] if low else None, high[0] if high else None, name)


def _quantity(
    text: str, reading: _Reading, unit: Unit | None, left: int, right: int, others: list[_Reading]
) -> Quantity | None:
    si: tuple[float | None, float | None, str] = (reading.low, reading.high, "")
    if unit is not None:
        si = _si(reading, unit)
        if si[0] is None and si[1] is None:
            return None
    around = [o for o in others if left <= o.start < right]
    conditions = _conditions(text, left, right, reading, around)
    label = unit.label if unit else ""
    return Quantity(
        reading.operator, reading.low, reading.high, label, *si, conditions, reading.start, reading.end
    )


# --- conditions ---------------------------------------------------------------

_FIXED: tuple[tuple[str, str, str], ...] = (
    ("method", "closed cup", r"闭口?杯|闭口|closed[- ]cup|\bc\.?c\.?(?![a-z])|tag closed|pensky"),
    ("method", "open cup", r"开口?杯|开口|open[- ]cup|\bo\.?c\.?(?![a-z])|cleveland"),
    ("basis", "volume", r"\(?\bv\s?/\s?v\b\)?|体积(?:分数|比|百分比)?|vol\.?\s?%|%\s?vol|by volume"),
    ("basis", "mass", r"\bw\s?/\s?w\b|\bm\s?/\s?m\b|wt\.?\s?%|%\s?wt|质量分数|by (?:weight|mass)"),
    ("form", "anhydrous", r"无水|anhydrous"),
    ("note", "decomposes", r"分解|decompos"),
    ("note", "sublimes", r"升华|sublim"),
    ("species", "rat", r"大鼠|\brats?\b"),
    ("species", "mouse", r"小鼠|\bmouse\b|\bmice\b"),
    ("species", "rabbit", r"兔|\brabbits?\b"),
    ("species", "guinea pig", r"豚鼠|guinea[- ]pigs?"),
    ("species", "dog", r"狗|犬|\bdogs?\b"),
    ("species", "human", r"\bhumans?\b|\bman\b|成人|人吸入|人经口"),
    ("species", "cat", r"(?<!催)猫|\bcats?\b"),
    ("species", "fish", r"鱼|\bfish\b"),
    ("route", "oral", r"经口|口服|食入|吞食|灌胃|\boral(?:ly)?\b|\bingest(?:ion|ed)\b|\bgavage\b"),
    ("route", "dermal", r"经皮|皮肤|\bdermal(?:ly)?\b|\bskin\b"),
    ("route", "inhalation", r"吸入|\binhalation\b|\binhaled\b|\binh\b"),
    ("route", "intraperitoneal", r"腹腔|intraperitoneal|\bi\.?p\.?\b"),
    ("route", "intravenous", r"静脉|intravenous|\bi\.?v\.?\b"),
)
_COMPILED = tuple((name, value, re.compile(words, re.IGNORECASE)) for name, value, words in _FIXED)
_DURATION = re.compile(
    r"(\d+(?:\.\d+)?)\s?(h(?:ours?|rs?)?|小时|min(?:utes?)?|分钟|d(?:ays?)?|天)(?![A-Za-z])", re.I
)
_DURATION_UNIT = {"h": "h", "小": "h", "m": "min", "分": "min", "d": "d", "天": "d"}


# "2.8%~28.0%（体积） 自燃点 480 ℃": the next property's own value on the same line
_OF_PROPERTY = re.compile(
    r"(?:[一-鿿](?:点|压[力强]?|限|密度)|(?:自燃|引燃|临界|分解|着火)温度|\bpoint|\bdensity|\blimits?|\b(?:ignition|critical|decomposition) temperature|\b(?:vapou?r|critical) pressure)\s*[:：]?\s*$",
    re.IGNORECASE,
)


def _conditions(
    text: str, left: int, right: int, reading: _Reading, others: list[_Reading]
) -> dict[str, str]:
    # a bracket with a value of its own ("13 ℃（开杯：16 ℃）") speaks of that value
    for opened in re.finditer(r"\([^()]*\)", text[reading.end : right]):
        a, b = reading.end + opened.start(), reading.end + opened.end()
        if any(a <= o.start < b and _same_kind(reading, o) for o in others):
            others = [o for o in others if not a <= o.start < b]
            text = text[:a] + " " * (b - a) + text[b:]
    context = text[left : reading.start] + " " + text[reading.end : right] + " "
    # what belongs to the unit itself ("vol%") is a basis too
    context += text[reading.start : reading.end]
    found: dict[str, str] = {}
    for name, value, words in _COMPILED:
        if name not in found and words.search(context):
            found[name] = value
    duration = _DURATION.search(text[left : reading.start] + " " + text[reading.end : right])
    if duration:
        found["duration"] = f"{duration[1]} {_DURATION_UNIT[duration[2][0].lower()]}"
    for other in others:
        if other.operator not in {"=", "~"}:
            continue  # a bound of its own ("相对湿度不超过80%") is no circumstance of another value
        if _OF_PROPERTY.search(text[reading.end : other.start]):
            continue
        kind = _condition_kind(other)
        if kind == "concentration" and (
            _in_other_terms(reading, other)
            or _another_share(reading, other, text[other.end :])
            or _of_a_limit(text[left : other.start], text[other.end :])
        ):
            continue
        if kind and kind not in found:
            found[kind] = text[other.start : other.end].strip()
    return found


def _same_kind(reading: _Reading, other: _Reading) -> bool:
    return bool(reading.unit and other.unit and same_dimension(other.unit, reading.unit.pint))


def _in_other_terms(reading: _Reading, other: _Reading) -> bool:
    """ "5 ppm (15 mg/m³)": a concentration beside a concentration is the same one, said otherwise."""
    kinds = ("kg/m**3", "mol/L")
    if reading.unit is None or other.unit is None or not any(same_dimension(other.unit, k) for k in kinds):
        return False
    return reading.unit.pint in {"percent", "ppm", "ppb", "permille"} or any(
        same_dimension(reading.unit, k) for k in kinds
    )


def _another_share(reading: _Reading, other: _Reading, after: str) -> bool:
    """ "水中 8.7%；水在环己酮中 5.6%": a share beside a share is another value, unless it names a solution."""
    both = reading.unit is not None and other.unit is not None
    alike = both and reading.unit.pint == other.unit.pint == "percent"  # type: ignore[union-attr]
    return bool(alike) and not re.match(r"\s*(?:的)?(?:水?溶液|(?:aqueous )?solution)", after, re.IGNORECASE)


def _of_a_limit(before: str, after: str) -> bool:
    """ "[10% LEL]", "12.8%（下限2.5%）": a share that is another property's value."""
    return bool(
        re.match(r"\s*(?:of )?(?:the )?(?:LEL|LFL|UEL|UFL|爆炸[上下]限|lower|upper)", after, re.IGNORECASE)
        or re.search(
            r"(?:限|limit|LEL|LFL|UEL|UFL|纯度|purity)\s*(?:为|[:：=]|of|is)?\s*$", before, re.IGNORECASE
        )
    )


def _condition_kind(reading: _Reading) -> str:
    if reading.unit is None or _OWN_UNIT.search(reading.unit.label):
        return ""
    for kind, unit in (("temperature", "kelvin"), ("pressure", "pascal")):
        if same_dimension(reading.unit, unit):
            return kind
    shares = ("kg/m**3", "mol/L")
    if reading.unit.pint == "percent" or any(same_dimension(reading.unit, unit) for unit in shares):
        return "concentration"
    return ""


# --- concentrations in air ------------------------------------------------------

_MOLAR_VOLUME = 24.45  # L/mol at 25 °C and 101.325 kPa, the convention of exposure limits


def ppm_to_mg_m3(ppm: float, molar_mass: float) -> float:
    """Concentration of a vapour in air at 25 °C and 101.325 kPa (molar mass in g/mol).

    There is no conversion without a molar mass. Raises ValueError for one that is not positive.
    """
    if molar_mass <= 0:
        raise ValueError(f"molar mass {molar_mass!r} must be positive")
    return _tidy(ppm * molar_mass / _MOLAR_VOLUME)


def mg_m3_to_ppm(mg_m3: float, molar_mass: float) -> float:
    """Inverse of ``ppm_to_mg_m3``."""
    if molar_mass <= 0:
        raise ValueError(f"molar mass {molar_mass!r} must be positive")
    return _tidy(mg_m3 * _MOLAR_VOLUME / molar_mass)


@cache
def numbers_in(text: str) -> tuple[str, ...]:
    """The numbers of a text as written, width and sign normalised: what evidence checks compare."""
    shown = plain_width(text).translate(_SUPERSCRIPTS).replace("–", "-").replace("—", "-")
    return tuple(re.findall(r"\d+(?:[.,]\d+)*", shown))
