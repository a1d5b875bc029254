"""What a text written from a source may not bring along: figures and names that the source does not have.

A summary, question or fact says things in its own words, so it cannot be proved
word by word; but a changed number, a lost unit or another substance is the worst
fault of this platform, and these are compared as they stand. The comparison is
strict: what is only written in another way (15 min, 15 minutes) counts as not
stated, and the model is told to write it as the source does. :func:`unproved`
adds what figures alone do not show: which property a value belongs to, denials,
classes of substances and hazards, and words from nowhere.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from chunking.qchunker.guards import tokens_of
from chunking.sentences import split_sentences
from chunking.terms import STOP_CHARACTERS, STOP_WORDS
from corpus.dashes import with_hyphens
from corpus.fidelity import facts
from corpus.quantities import Quantity, parse_quantities, plain_width
from models.languages import is_chinese

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
    plain = with_hyphens(unicodedata.normalize("NFKC", _LIST_MARK.sub("", text)))
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


# --- which property a value belongs to -------------------------------------------------------------------------

# Longer labels stand before those that they contain; a label is found once, by the first that fits.
_PROPERTIES: Mapping[str, str] = {
    "boiling point": r"沸点|沸程|沸腾|\bboil(?:s|ing|ed)?\b(?: (?:points?|temperatures?|range))?|\bb\.p\.",
    "flash point": r"闪点|闪火点|\bflash(?:es)?[ -]?points?\b|\bflash(?:es)?\b(?! ?(?:back|over|fire|light))",
    "melting point": r"熔点|凝固点|冰点|熔化|\b(?:melt|freez)(?:s|es|ing)?\b(?: (?:points?|temperatures?|range))?",
    "autoignition temperature": r"自燃(?:温度|点)|引燃温度|自动着火温度|燃点|着火点"
    r"|\b(?:auto-?|auto |self-)?ignit(?:ion|es)\b(?! (?:source|energy))(?: (?:temperature|point|temp))?|\bautoignites?\b",
    "decomposition temperature": r"分解温度|\bdecomposition temp(?:erature)?|\bdecomposes (?=at\b)",
    "critical temperature": r"临界温度|\bcritical temperature",
    "critical pressure": r"临界压[力强]|\bcritical pressure",
    "lower explosive limit": r"(?:爆炸|燃烧)?(?:极限)?下限|\blower (?:explosi(?:ve|on)|flammab(?:le|ility)) limit|\bLEL\b|\bLFL\b|\blower limit",
    "upper explosive limit": r"(?:爆炸|燃烧)?(?:极限)?上限(?!/)|\bupper (?:explosi(?:ve|on)|flammab(?:le|ility)) limit|\bUEL\b|\bUFL\b|\bupper limit",
    "explosive limits": r"(?:爆炸|燃烧|可燃)(?:极限|界限|范围)|\b(?:explosi(?:ve|on)|flammab(?:le|ility)) (?:limits?|range)",
    "vapour density": r"(?:相对)?(?:蒸[气汽]|气体)密度|\b(?:relative )?vapou?r density",
    "relative density": r"相对(?:水)?密度|比重|\brelative density|\bspecific gravity",
    "density": r"密度|\bdensity",
    "vapour pressure": r"(?:饱和)?蒸[气汽]压力?|\bvapou?r pressure",
    "molar mass": r"(?:相对)?分子(?:质量|量)|摩尔质量|\bmol(?:ar|ecular) (?:mass|weight)|\bformula weight",
    "viscosity": r"[黏粘]度|\bviscosity",
    "refractive index": r"折[射光]率|\brefractive index",
    "heat of combustion": r"燃烧热|\bheat of combustion",
    "ignition energy": r"点火能|\bignition energy",
    "surface tension": r"表面张力|\bsurface tension",
    "odour threshold": r"嗅[觉阈]阈?值?|\bodou?r threshold",
    "partition coefficient": r"分配系数|\bpartition coefficient|\blog (?:kow|p)\b",
    "solubility": r"溶解[度性]|\bsolubility",
    "pH": r"(?<![A-Za-z])pH(?![A-Za-z])",
    "LD50": r"(?<![A-Za-z])LD ?50|半数致死量",
    "LC50": r"(?<![A-Za-z])LC ?50|半数致死浓度",
    "PC-TWA": r"(?<![A-Za-z])PC-TWA(?![A-Za-z])",
    "PC-STEL": r"(?<![A-Za-z])PC-STEL(?![A-Za-z])",
    "IDLH": r"(?<![A-Za-z])IDLH(?![A-Za-z])",
}
_LABELLED = re.compile(
    "|".join(f"(?P<p{n}>{pattern})" for n, pattern in enumerate(_PROPERTIES.values())), re.IGNORECASE
)
_NAMES_OF_PROPERTIES = tuple(_PROPERTIES)
_VALUE = re.compile(r"(?<![A-Za-z\d.,])\d+(?:[.,]\d+)*")
_LOCANT = re.compile(r"\d+(?:,\d+)*-(?=[A-Za-z\u3400-\u9fff])")  # 1,2-dichloroethane
_REFERENCE = re.compile(r"(?:水|空气|water|air)\s*=\s*1(?![\d.])", re.IGNORECASE)
_END = re.compile(r"[。；;！？!?\n]|\.(?=\s|$)")
_IN_RANGE = re.compile(r"\s?(?:[°%‰]?\s?[A-Za-z℃]{0,3})\s?(?:[-~至到]|\bto\b|\band\b)\s?")


@dataclass(frozen=True)
class Bound:
    """A number with the property whose label it stands by, and where it stands.

    ``direct``: it is the label's own value (the first after it, or the other end of
    its range), not a condition or another number further on.
    """

    label: str
    number: str
    start: int
    direct: bool


def _aligned(text: str) -> str:
    """Half-width; codes, locants and references (water = 1) blanked, every character in its place."""
    plain = with_hyphens(plain_width(text))
    for pattern in (_CODE, _LOCANT, _REFERENCE):
        plain = pattern.sub(lambda match: " " * len(match[0]), plain)
    return plain


@lru_cache(maxsize=4096)
def bound_values(text: str) -> tuple[Bound, ...]:
    """Numbers bound to property labels: those after a label, or before the only one of their sentence.

    As many labels as numbers after them ("… and … are … and …") go in order. A line
    that is only a label reaches into the next; in a table the column's heading counts.
    """
    plain = _aligned(text)
    events: list[tuple[int, int, str, str]] = [
        (match.start(), match.end(), "label", _property(match)) for match in _LABELLED.finditer(plain)
    ]
    spans = [(start, end) for start, end, _, _ in events]
    events += [
        (match.start(), match.end(), "number", match[0].replace(",", ""))
        for match in _VALUE.finditer(plain)
        if not any(start <= match.start() < end for start, end in spans)
    ]
    events += [(match.start(), match.end(), "end", match[0]) for match in _END.finditer(plain)]
    found: list[Bound] = []
    labels: list[str] = []
    numbers: list[tuple[int, int, str]] = []
    early: list[tuple[int, int, str]] = []

    def close() -> None:
        found.extend(_pairs(plain, labels, numbers))
        if len(labels) == 1 and not numbers:  # "29 °C is the flash point"
            found.extend(Bound(labels[0], number, at, at == early[-1][0]) for at, _, number in early)
        labels.clear()
        numbers.clear()
        early.clear()

    for start, end, kind, value in sorted(events):
        if kind == "label":
            if numbers and labels:
                close()
            labels.append(value)
        elif kind == "number":
            (numbers if labels else early).append((start, end, value))
        elif numbers or early or value != "\n":
            close()
    close()
    return (*found, *_table_values(plain))


def _property(match: re.Match[str]) -> str:
    return _NAMES_OF_PROPERTIES[int((match.lastgroup or "p0")[1:])]


def _pairs(plain: str, labels: Sequence[str], numbers: Sequence[tuple[int, int, str]]) -> list[Bound]:
    if not labels:
        return []
    if len(labels) == len(numbers) > 1:
        return [Bound(label, n, at, True) for label, (at, _, n) in zip(labels, numbers, strict=True)]
    found = []
    near = True
    for index, (start, _, number) in enumerate(numbers):
        near = near and (index == 0 or bool(_IN_RANGE.fullmatch(plain, numbers[index - 1][1], start)))
        found.append(Bound(labels[-1], number, start, near))
    if labels[-1] == "explosive limits" and len(numbers) > 1:
        found += [
            Bound(label, number, start, False)
            for label, (start, _, number) in zip(
                ("lower explosive limit", "upper explosive limit"), numbers[:2], strict=True
            )
        ]
    return found


def _table_values(plain: str) -> list[Bound]:
    """Numbers of table cells below a heading cell that is a label."""
    found: list[Bound] = []
    heads: list[str | None] = []
    at = 0
    for line in plain.splitlines(keepends=True):
        if "|" not in line:
            heads = []
        else:
            cells = line.split("|")
            named = [_LABELLED.search(cell) for cell in cells]
            if sum(match is not None for match in named) > 1 and not _VALUE.search(_LABELLED.sub(" ", line)):
                heads = [_property(match) if match else None for match in named]
            place = at
            for index, cell in enumerate(cells):
                head = heads[index] if index < len(heads) else None
                if head:
                    found += [
                        Bound(head, match[0].replace(",", ""), place + match.start(), True)
                        for match in _VALUE.finditer(cell)
                    ]
                place += len(cell) + 1
        at += len(line)
    return found


@lru_cache(maxsize=4096)
def properties(text: str) -> frozenset[str]:
    """Physical properties and limits that a text names, in one form for both languages ("boils at": boiling point)."""
    found = {_property(match) for match in _LABELLED.finditer(_aligned(text))}
    found |= {bound.label for bound in bound_values(text)}
    return frozenset(found)


def misbound(
    text: str, source: str, known: Iterable[Bound], named: frozenset[str], asked: str = ""
) -> list[str]:
    """Properties of a text that are not among the named ones, and values that it gives to another property.

    ``known``: the source's bound values. Numbers that the source does not have are
    for :func:`unstated`. A value that the source binds to nothing
    may go with a property for which the source has no bound value. Where the text
    names no property, its values answer for the only one that is ``asked`` for.
    """
    pairs = {(bound.label, bound.number) for bound in known}
    labels, numbers = {label for label, _ in pairs}, {number for _, number in pairs}
    stated = {match[0].replace(",", "") for match in _VALUE.finditer(_aligned(source))} | numbers
    problems = [f"the {label} is not stated" for label in sorted(properties(text) - named)]
    said = [(bound.label, bound.number) for bound in bound_values(text) if bound.direct]
    wanted = properties(asked)
    if not properties(text) and len(wanted) == 1:
        values = [match[0].replace(",", "") for match in _VALUE.finditer(_aligned(text))]
        theirs = {number for label, number in pairs if label in wanted}
        if not theirs.intersection(values):
            said += [(next(iter(wanted)), number) for number in values if number in numbers]
    problems += [
        f"{number} is not stated as the {label}"
        for label, number in dict.fromkeys(said)
        if number in stated and (label, number) not in pairs and (label in labels or number in numbers)
    ]
    return problems


# --- denials, classes, words from nowhere ----------------------------------------------------------------------

# To keep things apart denies that they may be together.
_APART = re.compile(
    r"远离|分开|隔离|隔绝|忌|拒绝|\b(?:away|apart|separate(?:d|ly)?|isolated?) from\b|\bincompatible\b|\bprevent(?:s|ed)?\b",
    re.IGNORECASE,
)
_NOT_APART = re.compile(
    r"(?:不(?:得|必|要|用|应|能|可)?|无需|无须|勿)(?:与?其?)(?:远离|分开|隔离|隔绝|忌)"
    r"|\b(?:not|never|n['’]t|no need to)\b(?: \w+){0,4} (?:away|apart|separate(?:d|ly)?|isolated?) from\b",
    re.IGNORECASE,
)
# These deny no statement.
_NO_VALUE = re.compile(
    r"\bnot (?:available|applicable|determined)|\bno data\b|无(?:相关)?(?:可用)?(?:资料|数据)|不适用",
    re.IGNORECASE,
)
_ALSO_DENIED = re.compile(r"\b(?:or|nor)\b", re.IGNORECASE)
_TURN = re.compile(r"\b(?:but|instead|only|then)\b|但|而应", re.IGNORECASE)
_REPLY = re.compile(
    r"^\s*(?:yes|no|是的?|对|否|不是的?|不|可以|不可以|能|不能|会|不会|没有)\s*(?:[,，。.!！;；:：]|$)\s*",
    re.IGNORECASE,
)
_SHARED = 0.5  # of a clause's content words: so many make a clause of the source its subject
_NEAREST = 0.8  # of the greatest share: clauses that are as near
_STATED = 0.5  # of a sentence's content words that source and question must have
_HAN_RUN = re.compile(r"[\u3400-\u9fff]+")
_SUFFIX = re.compile(r"(?:ations?|ings?|ions?|ers?|ors?|ed|es|ly|s|e)$")
# What says only how a value is written or a sentence is built.
_COPIED = 8  # characters from which a copied sentence brings its own proof of its classes
_FORM = frozenset(
    ["minus", "negative", "degree", "degrees", "celsius", "fahrenheit", "percent", "between", "about", "value",
     "yes", "according", "also", "both", "respectively", "section", "any", "than", "when", "there", "please",
     "kg", "mg", "ml", "kpa", "mpa", "pa", "ppm", "ug", "mol", "cm", "mm"]
)  # fmt: skip
_FORM_HAN = re.compile(
    r"[摄华]氏度|零下|千克|毫克|百分之|分别|本节|以及|可以|应当|应该|必须|需要|其中|根据|第.{1,3}部分"
)


@lru_cache(maxsize=16_384)
def _content(text: str) -> frozenset[str]:
    """Word stems and pairs of Chinese characters; no negations, modal words, figures and forms."""
    bare = unicodedata.normalize("NFKC", text).casefold()
    for pattern in (_NEGATION, _APART, _MODAL):
        bare = pattern.sub(" ", bare)
    latin = {
        word[: -len(match[0])] if (match := _SUFFIX.search(word)) and len(word) - len(match[0]) > 2 else word
        for word in _WORD.findall(bare)
        if word not in STOP_WORDS and word not in _FORM
    }
    pairs = {
        run[i : i + 2]
        for run in _HAN_RUN.findall(_FORM_HAN.sub(" ", bare))
        for i in range(len(run) - 1)
        if not STOP_CHARACTERS & set(run[i : i + 2])
    }
    return frozenset(latin | pairs)


@lru_cache(maxsize=16_384)
def _denies(text: str) -> bool:
    plain = _NO_VALUE.sub(" ", unicodedata.normalize("NFKC", text))
    return not _NOT_APART.search(plain) and bool(_NEGATION.search(plain) or _APART.search(plain))


def _denied_clauses(statement: str) -> list[tuple[str, bool]]:
    """The clauses of a sentence, and whether they are denied; "do not a, b or c" denies all three."""
    found: list[tuple[str, bool]] = []
    denied = False
    for piece in _COMMA.split(statement):
        if part := _shown(piece):
            carried = denied and bool(_ALSO_DENIED.search(part)) and not _TURN.search(part)
            denied = _denies(part) or carried
            found.append((part, denied))
    return found


@lru_cache(maxsize=1024)
def _units(source: str) -> tuple[tuple[frozenset[str], bool], ...]:
    """Content and denial of a source's sentences and of their clauses."""
    found = []
    for statement in statements(source):
        parts = _denied_clauses(statement)
        found += [(_content(statement), _denies(statement))] if len(parts) > 1 else []
        found += [(_content(part), denied) for part, denied in parts]
    return tuple((words, denied) for words, denied in found if words)


def denial_changed(text: str, source: str) -> list[str]:
    """Clauses of a text whose words the source has only in denied clauses and they do not deny, and the reverse.

    What is copied with its denial is right wherever its sentence ends.
    """
    units = _units(source)
    whole = _squeezed(source)
    numbers = set(_VALUE.findall(_aligned(source)))
    changed = []
    for clause, denied in (part for statement in statements(text) for part in _denied_clauses(statement)):
        if denied and _squeezed(clause) in whole:
            continue
        words = _content(clause)
        if not words:
            said = set(_VALUE.findall(_aligned(clause)))
            if denied and said and said <= numbers:  # "it is not 29 °C" has no other words
                changed.append(clause)
            continue
        shares = [(len(words & others) / len(words), other) for others, other in units]
        best = max((share for share, _ in shares), default=0.0)
        if best >= _SHARED and denied not in {other for share, other in shares if share >= _NEAREST * best}:
            changed.append(clause)
    return changed


def _squeezed(text: str) -> str:
    return "".join(text.split())


_CLASSES: Mapping[str, re.Pattern[str]] = {
    name: re.compile(pattern, re.IGNORECASE)
    for name, pattern in {
        "oxidizer": r"氧化剂|氧化性|\boxidi[sz](?:er|ing)|\boxidant",
        "reducing agent": r"还原剂|还原性|\breduc(?:er|tant)s?\b|\breducing (?:agent|substance|material)",
        "acid": r"酸|\bacid",
        "base": r"碱|\bbases?\b|\balkali|\bcaustic",
        "flammable": r"(?<![不非])易燃|(?<![不非])可燃|(?<!non)(?<!non-)(?<!not )\b(?:in)?flammable\b|(?<!non-)\bcombustible\b",
        "not flammable": r"不(?:易|可)?燃|非(?:易|可)燃|\bnon-?(?:in)?flammable|\bnot (?:\w+ )?(?:in)?flammable|\b(?:in|non-?)combustible",
        "safe": r"\bsafe\b|(?<!不)安全的|[很是更较]安全|安全(?=[，。；！,.;!]|$)|无危险|没有危险",
        "harmless": r"\bharmless|无害|无危害|\bnon-?hazardous|\bnot (?:hazardous|harmful|dangerous)",
        "harmful": r"\bharmful|(?<!没)有害",
        "dangerous": r"(?<!not )\bdangerous\b|(?<![没无])有危险|[很最]危险|危险的",
        "toxic": r"(?<!没)有毒|[剧高中低]毒|毒性|毒害|中毒|(?<!non)(?<!non-)(?<!not )\btoxic|\bpoison",
        "not toxic": r"无毒|没有毒|\bnon-?toxic|\bnot (?:\w+ )?toxic",
        "to be drunk or eaten": r"饮用|食用|\bdrink|\bedible\b|\beat\b|\beaten\b",
        "corrosive": r"腐蚀|\bcorro[sd]",
        "explosive": r"爆炸(?!极限|上限|下限|界限|范围)|\bexplo(?:d|sives?\b(?! (?:limit|range))|sions?\b(?! limit))",
        "carcinogenic": r"致癌|\bcarcinogen|\bcancer",
        "irritant": r"刺激|\birrita",
        "unstable": r"不稳定|\bunstable|\bnot stable",
        "stable": r"(?<!不)稳定|(?<!not )\bstable",
        "insoluble": r"[不难]溶|\binsoluble|\bimmiscible|\bnot (?:soluble|miscible)",
        "soluble": r"(?<![不难微])[易可]溶|(?<![不难微易可])溶于|(?<!不)混溶|互溶|(?<!not )\bsoluble|(?<!not )\bmiscible",
        "strong": r"强(?=酸|碱|氧化|还原)|\bstrong",
        "weak": r"弱(?=酸|碱|氧化|还原)|\bweak",
    }.items()
}  # fmt: skip


@lru_cache(maxsize=4096)
def classes(text: str) -> frozenset[str]:
    """Classes of substances and hazards that a text names, in one form for both languages."""
    plain = unicodedata.normalize("NFKC", text)
    return frozenset(name for name, pattern in _CLASSES.items() if pattern.search(plain))


def foreign_statements(text: str, source: str) -> list[str]:
    """Sentences of which most content words are not in the source; none where text and source differ in language."""
    if is_chinese(text) != is_chinese(source):
        return []
    known = _content(source)
    characters = {char for pair in known if not pair.isascii() for char in pair}
    found = []
    for statement in statements(text):
        words = _content(_LABELLED.sub(" ", statement))  # properties are proved by themselves
        missing = {
            word for word in words - known if word.isascii() or not characters.issuperset(word)
        }  # the pair at a seam is new, its characters are not
        if len(missing) > 1 and len(missing) > (1 - _STATED) * len(words):
            found.append(statement)
    return found


def unproved(
    text: str,
    source: str,
    *,
    asked: str = "",
    known: Iterable[Bound] | None = None,
    context: str = "",
) -> list[str]:
    """Why a text does not follow from its source, as the model is told; empty where nothing speaks against it.

    ``asked``: the question, which may name properties and lend words, but proves
    nothing. A text that answers one may begin with yes or no, which is not
    judged. ``known``: bound values of the source, where more than its own words
    tell what they belong to. ``context``: titles that may be named.
    """
    body = _REPLY.sub("", text, count=1) if asked else text
    ground = f"{source}\n{context}"
    bounds = tuple(bound_values(source) if known is None else known)
    named = properties(ground) | properties(asked) | {bound.label for bound in bounds}
    problems = misbound(body, source, bounds, named, asked)
    if changed := denial_changed(body, source):
        problems.append(f"a negation was lost or added: {changed[0][:80]!r}")
    whole = _squeezed(ground)
    own = [part for part in statements(body) if len(part) < _COPIED or _squeezed(part) not in whole]
    if stray := sorted(classes("\n".join(own)) - classes(ground)):
        problems.append(f"nothing says {', '.join(stray)}")
    if foreign := foreign_statements(body, f"{ground}\n{asked}"):
        problems.append(f"this says what is not stated: {foreign[0][:80]!r}")
    return problems
