"""What a text written from a source may not bring along: figures and names that the source does not have.

A summary, question or fact says things in its own words, so it cannot be proved
word by word; but a changed number, a lost unit or another substance is the worst
fault of this platform, and these are compared as they stand. The comparison is
strict: what is only written in another way (15 min, 15 minutes) counts as not
stated, and the model is told to write it as the source does.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Iterable
from functools import lru_cache

from chunking.qchunker.guards import tokens_of
from chunking.sentences import split_sentences
from corpus.fidelity import facts
from corpus.quantities import Quantity, parse_quantities, plain_width
from models.languages import is_chinese

_DASHES = re.compile(r"[\u2010-\u2015\u2212\u2043]")
_CODE = re.compile(
    r"(?<![A-Za-z0-9-])(?:[1-9]\d{1,6}-\d{2}-\d(?![\d-])|UN ?\d{4}(?!\d)|(?:EUH|H|P)\d{3}(?!\d)[A-Za-z]{0,2})"
)
_LIST_MARK = re.compile(r"(?:^|(?<=[；;。:：]))\s*[(（]?\d{1,2}[.、)）](?!\d)|[\u2460-\u2473]", re.M)
# Between two numbers these join a range or a date; before one number "-" is its sign.
_JOINT = re.compile(r"(?<=\d)(?P<unit>\s?(?:[°%‰]\s?[CF]?|[A-Za-zμ]{1,4}))?\s?(?:[-~至到]|\bto\b)\s?(?=\d)")

# A run of these characters is a chemical name where one of the core is in it; a name ends with one.
_CORE = (
    "酚胺酸醛酮醇烯烷炔醚酯腈肼脲胍苯萘蒽菲啶唑吡呋噻吩氯溴碘氟硫磷硅硼氮氢氰硝磺氨钠钾钙镁铵锂钡铝锌铁铜铅汞砷硒镉铬锰镍钴银"
    "盐酐酰碳"
)
_AROUND = "甲乙丙丁戊己庚辛壬癸异仲叔环基氧亚过次偏焦化邻间对聚多羟羧一二三四五六七八九十"
_HAN_NAME = re.compile(rf"[{_CORE}{_AROUND}]*[{_CORE}]")
_WHOLE_NAMES = frozenset("苯氨氯溴氟碘汞铅砷镉铬肼酚硫磷")  # single characters that name a substance
_AMBIGUOUS = ("对", "一")  # first characters that may be words of their own: "toxic to …", "a …"

_WORD = re.compile(r"[A-Za-z][A-Za-z0-9]+")
_CHEMICAL = re.compile(
    r"meth(?:an|yl|ox)|eth(?:an|yl)|prop(?:an|yl)|but(?:an|yl)|vinyl|phenyl|phenol|benz|toluen|xylen|chlor|brom|fluor"
    r"|iod[io]|nitr|sulf|sulph|phosph|cyan|amin[eo]|amide|ammon|acet[aioy]|aldehyd|keton|pyrid|acryl|styren|hydrogen"
    r"|oxid|carbon|mercur|arsen|cadmi|sodium|potassium|calcium|lithium"
)
_LABELS = frozenset({"cas", "un", "no"})  # of numbers; the numbers themselves are figures
_NO_NAME = re.compile(r"(?:ed|ing|ations?|[ai]ble|ability|izers?|isers?|ative)$")


# Words that deny, without those in which the same characters deny nothing (colourless, inorganic, very, …).
_NEGATION = re.compile(
    r"不(?:得|可|能|应|宜|要|许|准)|不(?!锈|饱和|同|断|仅|但|管)|[严切请][禁勿]止?|禁止|[无無](?!色|味|臭|机|水|论|数|烟|氧)|非(?!常|金属)|未(?!来)|[勿莫没]|否(?!则)|禁(?!忌|配)|避免|除外"
    r"|\b(?:no|not|non|none|never|nor|neither|without|cannot|avoid|except|unless|prohibited|forbidden)\b|n['’]t\b",
    re.IGNORECASE,
)
_MODAL = re.compile(
    r"可以|应该|应当|必须|需要|[应须宜可]|\b(?:must|shall|should|may|can|could|always|please)\b",
    re.IGNORECASE,
)
_COMMA = re.compile(r"，|,(?=\s|[\u3400-\u9fff])")
_FILLERS = frozenset("的是为之则其该：:、/“”\"'()（）") | frozenset(
    ["the", "a", "an", "is", "are", "was", "were", "be", "of", "it", "its", "this", "that", "do", "does"]
)


@lru_cache(maxsize=4096)
def figures(text: str) -> frozenset[str]:
    """Numbers with sign, bound and unit; CAS and UN numbers; H and P codes; formulae. List numbers are left out.

    ``64.7 ℃`` and ``64.7°C``, full and half width are the same; a range gives its two ends.
    """
    plain = _DASHES.sub("-", unicodedata.normalize("NFKC", _LIST_MARK.sub("", text)))
    codes = {match[0].replace(" ", "") for match in _CODE.finditer(plain)}
    apart = _JOINT.sub(lambda match: f"{match['unit'] or ''} ; ", _CODE.sub(" ; ", plain))
    found = (fact.partition(":") for fact in facts(apart))
    return frozenset(codes | {value for kind, _, value in found if kind in ("number", "formula")})


@lru_cache(maxsize=4096)
def names(text: str) -> frozenset[str]:
    """Words that name substances or are abbreviations, case folded; every Latin word of a Chinese text.

    Found by their form (醇, 苯, chlor-, -oxide), so that no list of substances is
    needed; a longer name is not its part (二甲苯 is not 甲苯).
    """
    plain = unicodedata.normalize("NFKC", text)
    han = {name for name in _HAN_NAME.findall(plain) if len(name) > 1 or name in _WHOLE_NAMES}
    latin = {_singular(word) for word in _WORD.findall(plain) if _names(word, everything=is_chinese(plain))}
    return frozenset(han | latin - _LABELS)


def _names(word: str, *, everything: bool) -> bool:
    if sum(char.isupper() for char in word) > 1 or (everything and len(word) > 2):
        return True
    low = word.lower()
    return bool(_CHEMICAL.search(low)) and not _NO_NAME.search(low)


def _singular(word: str) -> str:
    low = word.casefold()
    return low[:-1] if len(low) > 3 and low.endswith("s") and low[-2] not in "us" else low


@lru_cache(maxsize=4096)
def _known_names(text: str) -> frozenset[str]:
    """What a source states: its names, and all its Latin words."""
    han = {name for name in names(text) if not name.isascii()}
    words = {_singular(word) for word in _WORD.findall(unicodedata.normalize("NFKC", text))}
    return frozenset(han | {name[1:] for name in han if name[0] in _AMBIGUOUS} | words)


def unstated(text: str, sources: Iterable[str]) -> list[str]:
    """Figures and names of a text that none of its sources has, in order of their spelling."""
    given = list(sources)
    known = frozenset[str]().union(*map(figures, given))
    said = frozenset[str]().union(*map(_known_names, given))
    stray = {
        name for name in names(text) - said if not (name[0] in _AMBIGUOUS and name[1:] in said)
    }  # fmt: skip
    return sorted(figures(text) - known) + sorted(stray)


_PLAIN_NUMBER = re.compile(r"(?<![A-Za-z])\d+(?:[.,]\d+)*")


def absent_numbers(text: str, source: str) -> list[str]:
    """Numbers of a text that a source has neither as written nor as the same quantity in another unit.

    Lenient, for sources that speak freely: single digits may be words there, and
    what is glued to letters (LD50) may be spelt out.
    """
    known = {number.replace(",", "") for number in _PLAIN_NUMBER.findall(plain_width(source))}
    said = parse_quantities(source)
    same = {
        number
        for quantity in parse_quantities(text)
        if any(_equal(quantity, other) for other in said)
        for number in _PLAIN_NUMBER.findall(plain_width(text)[quantity.start : quantity.end])
    }
    found = dict.fromkeys(_PLAIN_NUMBER.findall(plain_width(text)))
    return [
        number
        for number in found
        if number.replace(",", "") not in known and number not in same and len(number) > 1
    ]


def _equal(one: Quantity, other: Quantity) -> bool:
    ends = ((one.si_minimum, other.si_minimum), (one.si_maximum, other.si_maximum))
    return one.si_unit == other.si_unit and all(
        (a is None and b is None) or (a is not None and b is not None and math.isclose(a, b, rel_tol=5e-3))
        for a, b in ends
    )


# --- what a text says and denies -------------------------------------------------------------------------------


def statements(text: str) -> list[str]:
    """The parts of a text between stops and semicolons, list marks and blanks left out."""
    return [shown for part in _pieces(text) if (shown := _shown(part))]


def clauses(text: str) -> list[str]:
    """The parts of a text between stops, semicolons and commas, list marks and blanks left out."""
    return [shown for part in _pieces(text) for piece in _COMMA.split(part) if (shown := _shown(piece))]


def _pieces(text: str) -> list[str]:
    parts = [_LIST_MARK.sub("", text[start:end]) for start, end in split_sentences(text)]
    return [piece for part in parts for piece in re.split("[；;]", part)]


def _shown(piece: str) -> str:
    shown = piece.strip().rstrip("。.！!？?…")
    return shown if any(char.isalnum() for char in shown) else ""


@lru_cache(maxsize=16_384)
def _core(text: str, *, modal: bool = True) -> tuple[tuple[str, ...], int]:
    """The words of a text without negations and fillers (and modal words, where asked), and how often it denies."""
    plain = unicodedata.normalize("NFKC", text)
    bare = _NEGATION.sub(" ", plain)
    words = tokens_of(bare if modal else _MODAL.sub(" ", bare))
    kept = (word for word in words if word not in _FILLERS and not _is_stop(word))
    return tuple(kept), len(_NEGATION.findall(plain))


def _is_stop(word: str) -> bool:
    return len(word) == 1 and unicodedata.category(word).startswith("P") and word not in "-%"


def _contains(words: tuple[str, ...], part: tuple[str, ...]) -> bool:
    size = len(part)
    return any(words[i : i + size] == part for i in range(len(words) - size + 1))


def states(text: str, fact: str) -> bool:
    """Whether a text contains a fact: the same words in order, as often denied, same figures and names.

    Fillers and punctuation do not count. A lower bound: a paraphrase is not recognised.
    """
    wanted, denied = _core(fact)
    if not wanted:
        return False
    parts = clauses(text)
    for width in range(1, len(clauses(fact)) + 2):
        for first in range(len(parts) - width + 1):
            stretch = " ; ".join(parts[first : first + width])
            words, negations = _core(stretch)
            if negations == denied and _contains(words, wanted) and not unstated(fact, [stretch]):
                return True
    return False


def polarity_changed(text: str, source: str) -> list[str]:
    """Clauses of a text that the source has only with another number of denials: 易燃 from 不易燃."""
    known = [_core(clause, modal=False) for clause in clauses(source)]
    known = [core for core in known if _telling(core[0])]
    changed = []
    for clause in clauses(text):
        words, denied = _core(clause, modal=False)
        if not _telling(words):
            continue
        around = {negations for others, negations in known if _contains(others, words)}
        inside = [negations for others, negations in known if _contains(words, others)]
        possible = around | ({*inside, sum(inside)} if inside else set())
        if possible and denied not in possible:
            changed.append(clause)
    return changed


def _telling(words: tuple[str, ...]) -> bool:
    """Whether words are enough to be recognised by: two Chinese characters, or a Latin word of four letters."""
    joined = "".join(words)
    return len(joined) >= (4 if joined.isascii() else 2)
