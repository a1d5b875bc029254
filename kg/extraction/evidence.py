"""Proof of a draft against the text: quote, numbers, unit, polarity, and the page's own words behind it.

Words that address a language model state nothing, whoever read them as a fact.

A fuzzy match proves nothing (design notes: 511 of 516 altered phrases still got
a span), so only equality after width and blank normalisation counts.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from corpus.dashes import with_hyphens
from corpus.documents import RefinedDocument
from corpus.orders import gives_orders
from corpus.quantities import numbers_in, parse_quantities
from corpus.units import parse_unit
from kg.extraction.clauses import clauses
from kg.extraction.denial import taken_back
from kg.extraction.frames import framed
from kg.extraction.model import Draft
from kg.extraction.vocabulary import shadow
from kg.schema import ADDED_LABELS, RELATIONS, DropReason, NodeLabel, Polarity, Property, Relation

_NEGATION = re.compile(
    r"不(?!燃|锈|饱和|锈钢|溶|挥发|定|同|等|足|良|明|适|超过|低于|高于|大于|小于|少于|断|慎|但|仅|只|论|管|宜超过|得超过|要超过|应超过)|禁止|严禁|切勿|勿|未|并非|没有|无(?:法|效|需|(?:任何)?(?:化学)?反应)"
    r"|\b(?:not(?! only)|never|no|cannot|without|neither|nor)\b|n['’]t\b",
    re.IGNORECASE,
)
# relations whose object is an instruction or a list of its own: negations inside belong to the text
_VERBATIM = frozenset(
    {
        Relation.FIRST_AID, Relation.SPILL_ACTION, Relation.STORE_UNDER, Relation.DISPOSED_BY, Relation.HAS_P,
        Relation.HAS_H, Relation.USED_FOR, Relation.NOT_EXTINGUISHED_BY, Relation.STORE_APART_FROM,
        Relation.REGULATED_BY, Relation.REQUIRES_PPE,
    }
)  # fmt: skip
_QUOTED_OBJECT = frozenset(
    {
        Relation.HAS_COMPONENT, Relation.INCOMPATIBLE_WITH, Relation.DECOMPOSES_TO, Relation.BURNS_TO, Relation.MEMBER_OF,
        Relation.EXTINGUISHED_BY, Relation.NOT_EXTINGUISHED_BY, Relation.STORE_APART_FROM, Relation.REQUIRES_PPE,
        Relation.FIRST_AID, Relation.SPILL_ACTION, Relation.STORE_UNDER, Relation.DISPOSED_BY, Relation.USED_FOR,
        Relation.HAS_ALIAS,
    }
)  # fmt: skip
_PAGE_LIMIT = 2000


def folded(text: str) -> str:
    """Form in which quotes are compared: NFKC, no blanks, no Markdown marks, one kind of dash."""
    plain = with_hyphens(unicodedata.normalize("NFKC", text))
    return re.sub(r"[\s*_|#\\]+|</?su[bp]>|<br\s*/?>", "", plain)


def negations(text: str) -> Counter[str]:
    """Negating words of a text."""
    return Counter(match[0].lower() for match in _NEGATION.finditer(shadow(text)))


def judge(draft: Draft, document: RefinedDocument) -> tuple[DropReason | None, str]:
    """Why the draft must be dropped (None: it is proved), and the page's words behind its quote."""
    if draft.rejected is not None:
        return draft.rejected, ""
    if gives_orders(document.text, draft.start, draft.end):
        return DropReason.GIVES_ORDERS, ""
    quote = document.text[draft.start : draft.end]
    reason = _schema(draft) or _quoted(draft, document, quote)
    if reason:
        return reason, ""
    if taken_back(draft, document.text) or framed(draft, document.text):
        return DropReason.POLARITY_MISMATCH, ""
    page = page_words(document, draft.start, draft.end)
    if page is not None and folded(quote) not in folded(page):
        # a model reworded the text: one line of the page must still state number, unit and polarity
        page = next((line for line in page.split("\n") if _stands(quote, line, draft)), None)
    if page is None:
        return DropReason.NOT_ON_PAGE, ""
    return None, page[:_PAGE_LIMIT]


def _schema(draft: Draft) -> DropReason | None:
    spec = RELATIONS.get(draft.relation)
    if spec is None:
        return DropReason.NOT_IN_SCHEMA
    if draft.object_label not in spec.objects:
        return DropReason.BAD_ENDPOINT
    if not draft.object.strip():
        return DropReason.MISSING_VALUE
    if (
        draft.object_label in {NodeLabel.MEASUREMENT, NodeLabel.EXPOSURE_LIMIT, NodeLabel.TOXICITY}
        and not draft.value
    ):
        return DropReason.MISSING_VALUE
    return None


def _quoted(draft: Draft, document: RefinedDocument, quote: str) -> DropReason | None:
    if not quote.strip():
        return DropReason.QUOTE_NOT_FOUND
    if not value_in_quote(draft.value, draft.properties, quote):
        return DropReason.NUMBER_NOT_IN_QUOTE
    header = document.text[slice(*draft.header_span)] if draft.header_span else ""
    if not unit_in_quote(draft.value, draft.properties, f"{quote} {header}"):
        return DropReason.UNIT_NOT_IN_QUOTE
    if header and not _conditions_stated(draft, f"{quote} {header}"):
        return DropReason.NUMBER_NOT_IN_QUOTE
    if not _numbers_given(draft, quote):
        return DropReason.NUMBER_NOT_IN_QUOTE
    quoted = draft.relation in _QUOTED_OBJECT or draft.object_label in ADDED_LABELS
    if quoted and folded(draft.object).lower() not in folded(quote).lower():
        return DropReason.OBJECT_NOT_IN_QUOTE
    return _polarity(draft, quote)


def _numbers_given(draft: Draft, quote: str) -> bool:
    """Numbers of codes and identifiers (H225, UN1230, category 1B) stand in the quote."""
    wanted: list[str] = []
    for name in ("code", "un", "hazard_class", "category", "cas", "health", "fire", "instability"):
        wanted += numbers_in(str(draft.properties.get(name, "")))
    if draft.relation is Relation.SHOWS_PICTOGRAM:
        wanted = []
    have = Counter(n for number in numbers_in(quote) for n in (number, *re.split(r"[.,]", number)))
    return all(have[number] for number in wanted)


def _conditions_stated(draft: Draft, words: str) -> bool:
    """Numbers of the circumstances under which a cell's value holds stand in its row or its column's header."""
    have = Counter(numbers_in(words))
    told = [*draft.conditions.values(), *draft.value.get("conditions", {}).values()]
    return all(have[number] for text in told for number in numbers_in(str(text)))


def _polarity(draft: Draft, quote: str) -> DropReason | None:
    negated = bool(negations(quote))
    if draft.polarity is Polarity.NEGATIVE:
        return None if negated and _denied(draft, quote) else DropReason.POLARITY_MISMATCH
    if (
        draft.relation in _VERBATIM
        or draft.value
        or draft.relation in {Relation.HAS_ALIAS, Relation.CLASSIFIED_AS}
    ):
        return _clause_polarity(draft, quote)
    return DropReason.POLARITY_UNCLEAR if negated and _near_negation(draft, quote) else None


def _clause_polarity(draft: Draft, quote: str) -> DropReason | None:
    """ "闪点不是11 ℃" must not become a flash point: no negation right before value or object."""
    if draft.relation in _VERBATIM:
        return None
    plain = shadow(quote)
    at = plain.find(shadow(draft.object))
    before = plain[max(0, at - 8) : at] if at > 0 else ""
    if re.search(
        r"(?:不是|并非|非|不为|不等于|不属于|is not|isn't|not)\s*(?:为|:)?\s*$", before, re.IGNORECASE
    ):
        return DropReason.POLARITY_MISMATCH
    return None


def _denied(draft: Draft, quote: str) -> bool:
    """Whether a clause that names the object denies, and is no "do not use it" of something else beside it."""
    wanted = shadow(draft.object).lower()
    plain = shadow(quote)
    parts = [plain[start:end] for start, end in clauses(plain)]
    if draft.relation is not Relation.INCOMPATIBLE_WITH or re.search(r"[一-鿿]", plain):
        # a list in Chinese stands before its verb, so here a comma ends what is denied
        parts = [piece for part in parts for piece in re.split(r"[,，]", part)]
    named = [part for part in parts if wanted in part.lower()]
    return not named or any(_NEGATION.search(part) for part in named)


def _near_negation(draft: Draft, quote: str) -> bool:
    """Whether every clause that names the object is negated, before it or after it ("与水不发生反应")."""
    plain = shadow(quote)
    wanted = shadow(draft.object).lower()
    if draft.relation is Relation.INCOMPATIBLE_WITH:
        parts = [plain[start:end] for start, end in clauses(plain)]
    else:
        marks = r"[。；;\n]|\.\s|[,，]" if draft.relation is Relation.EXTINGUISHED_BY else r"[。；;\n]|\.\s"
        parts = re.split(marks, plain)
    named = [part for part in parts if wanted in part.lower()]
    unlabelled = [re.sub(r"^[^:：|]{0,40}[:：|]", "", clause) for clause in named]
    if (
        draft.relation is Relation.INCOMPATIBLE_WITH
    ):  # contact that is forbidden is no reaction that is denied
        unlabelled = [
            re.sub(r"(?:禁止|严禁|切勿|勿)(?=(?:使?其)?与[^。;；]{1,80}接触)", "", c) for c in unlabelled
        ]
    stated = [clause for clause in unlabelled if not _NEGATION.search(clause)]
    if draft.relation is Relation.INCOMPATIBLE_WITH and 0 < len(stated) < len(unlabelled):
        # a clause denies it; another one must say so of it, and not "水解" of "水"
        name = re.escape(wanted)
        met = rf"[与和跟遇](?:[^,，]*[、和及或])?{name}[^,，]*反应|\bwith\b[^.;]*\b{name}\b"
        stated = [clause for clause in stated if re.search(met, clause.lower())]
    return not stated


# --- numbers and units -----------------------------------------------------------


def value_in_quote(value: Mapping[str, Any], properties: Mapping[str, Any], quote: str) -> bool:
    """Whether every number of a value is one that the quote states (sign included)."""
    wanted = [float(value[end]) for end in ("min", "max") if value.get(end) is not None]
    if not wanted:
        return True
    stated = stated_numbers(quote)
    return all(any(_equal(number, known) for known in stated) for number in wanted)


@lru_cache(maxsize=4096)
def stated_numbers(quote: str) -> frozenset[float]:
    """All numbers that a text states, read with signs, separators and powers of ten; ± gives both ends."""
    found: set[float] = set()
    for bare in (True, False):
        for unit in ("", "g/mol"):
            for quantity in parse_quantities(quote.replace("|", " ; "), default_unit=unit, bare=bare):
                found |= {v for v in (quantity.minimum, quantity.maximum) if v is not None}
    plain = shadow(quote)
    for match in re.finditer(r"(?<![\d.])\d+(?:\.\d+)?", plain):
        signed = re.search(r"(?:^|[^\d\s\w)%℃])\s?-$|(?:^|[\s:：|(（~])-$", plain[: match.start()])
        if not signed:
            found.add(float(match[0]))
    return frozenset(found)


def _equal(a: float, b: float) -> bool:
    return abs(a - b) <= 1e-9 * max(1.0, abs(a), abs(b))


def unit_in_quote(value: Mapping[str, Any], properties: Mapping[str, Any], quote: str) -> bool:
    """Whether the quote states the value's unit (label brackets included).

    A relative molecular mass carries none: its number is that of g/mol.
    """
    unit = str(value.get("unit") or "")
    if not unit:
        return True
    if properties.get("property") == Property.MOLAR_MASS.value and unit == "g/mol":
        return True
    wanted = parse_unit(unit)
    plain = shadow(quote).replace("|", " ; ")
    if any(parse_unit(q.unit) == wanted for q in parse_quantities(plain) if q.unit):
        return True
    if any(
        parse_unit(q.unit) == wanted
        for q in parse_quantities(plain, dimension=wanted.pint if wanted else "")
        if q.unit
    ):
        return True
    if any(parse_unit(cell.strip()) == wanted for cell in shadow(quote).split("|") if cell.strip()):
        return True  # a cell of its own
    brackets = re.findall(r"[(\[]\s*([^()\[\]]+?)\s*[)\]]|([%‰℃])", plain)
    texts = [
        part.strip() for pair in brackets for text in pair for part in (text, *re.split(r"[,，;；、]", text))
    ]
    return any(parse_unit(text) == wanted for text in texts if text) or (
        unit == "t" and bool(re.search(r"\(\s*[tT]\s*\)|吨", plain))
    )


# --- the page behind the text --------------------------------------------------------


def page_words(document: RefinedDocument, start: int, end: int) -> str | None:
    """The cleaned text behind a span: the very words where they stand there, else their blocks."""
    cleaned = document.cleaned_text
    if not cleaned:
        return None
    blocks = [b for b in document.blocks if b.start < end and start < b.end]
    left, right = (
        (min(b.cleaned_start for b in blocks), max(b.cleaned_end for b in blocks))
        if blocks
        else (0, len(cleaned))
    )
    part = cleaned[left:right]
    found = locate(document.text[start:end], part)
    if found:
        return part[found[0] : found[1]]
    return part if blocks else None


def locate(quote: str, text: str) -> tuple[int, int] | None:
    """Span of a quote in a text, equal after normalisation of width, blanks and marks; the first one."""
    if quote in text:
        at = text.index(quote)
        return at, at + len(quote)
    wanted = folded(quote)
    if not wanted:
        return None
    forms: list[str] = []
    where: list[int] = []
    for index, char in enumerate(text):
        plain = folded(char)
        forms.append(plain)
        where += [index] * len(plain)
    joined = "".join(forms)
    at = joined.find(wanted)
    if at < 0:
        return None
    return where[at], where[at + len(wanted) - 1] + 1


def _other_unit(value: Mapping[str, Any], page: str) -> bool:
    """Whether the page gives the value's number another unit, and nowhere its own."""
    wanted = parse_unit(str(value.get("unit") or ""))
    if wanted is None:
        return False
    ends = (value.get("min"), value.get("max"))
    units = {parse_unit(q.unit) for q in parse_quantities(page) if q.unit and (q.minimum, q.maximum) == ends}
    return bool(units) and wanted not in units


_CUBED = re.compile(r"m[23](?!\d)")  # the 3 of "mg/m³" is no value


def _stands(quote: str, page: str, draft: Draft) -> bool:
    """Number, unit and polarity of the quote also stand in the page's words."""
    have, want = (Counter(numbers_in(_CUBED.sub("m", folded(words)))) for words in (page, quote))
    if want - have:
        return False
    if negations(quote) - negations(page) or _other_unit(draft.value, page):
        return False
    if draft.polarity is Polarity.NEGATIVE and not _denied(draft, page):
        return False
    return unit_in_quote(draft.value, draft.properties, page) and (
        folded(draft.object).lower() in folded(page).lower() or bool(draft.value) or bool(draft.object_key)
    )
