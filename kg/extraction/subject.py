"""Which substance a document is about, from its identity fields and title; None where it is about none."""

from __future__ import annotations

import re
import unicodedata

from corpus.documents import RefinedDocument
from corpus.names import find_cas, normalise_name
from kg.extraction.model import Entry, Reading, Subject
from kg.extraction.vocabulary import field_of, shadow

_TITLE_NOISE = re.compile(
    r"(?:化学品)?安全(?:技术|数据)?(?:说明书|资料表|数据表)|化学品安全说明书|物质安全资料表|安全技术说明书|\bM?SDS\b|(?:material )?safety data sheets?:?"
    r"|\s[-–|_—]\s*(?:wikipedia|维基百科|百度百科|化工百科|百科).*$|[_|-](?:化工百科|百科|维基百科).*$|的?(?:理化性质|危险性|性质|用途)$",
    re.IGNORECASE,
)
_MIXTURE = re.compile(r"混合物|溶液|mixture|solution", re.IGNORECASE)
_PURE = re.compile(r"纯(?:净)?(?:品|物)|单一物质|pure|substance", re.IGNORECASE)
_SOLUTION_NAME = re.compile(r"溶液|水溶液|\bsolution\b|\baqueous\b|福尔马林|formalin", re.IGNORECASE)


def find_subject(document: RefinedDocument, reading: Reading) -> Subject | None:
    """The document's main substance or mixture.

    A document has one where it gives a name together with a CAS number or at
    least four sections of a data sheet. Several CAS numbers in its identity
    fields, or a CAS number given for a part only ("50-00-0（甲醛）"), make it a
    mixture without a number of its own.
    """
    named: dict[str, list[Entry]] = {}
    for entry in reading.entries:
        found = field_of(entry.label)
        if found and found[1].family == "identity":
            named.setdefault(found[1].name, []).append(entry)
    numbers = _cas_numbers(reading, named.get("cas", []))
    name = _name(document, reading, named)
    sections = {section.sds for section in document.sections if section.sds} | {
        entry.sds for entry in reading.entries if entry.sds
    }
    if not name or not (numbers or len(sections) >= 4):
        return None
    if not numbers:
        numbers = _sheet_numbers(document, reading)
    several = len(set(numbers)) > 1 and len(named.get("cas", [])) > 1
    if several and len(sections) < 4:
        return None
    mixture = several or _is_mixture(reading, named, name)
    cas = "" if mixture else _own_number(reading, named.get("cas", []), numbers)
    others = tuple(
        reading.text[e.start : e.end].strip()
        for kind in ("name", "name_other", "alias")
        for e in named.get(kind, [])
        if not (mixture and e.sds == 3)  # a component's
    )
    names = [name]
    for text in others:
        names += [
            part.strip()
            for part in re.split(
                r"[、；;，\n]|,\s+|<br\s*/?>|[（(].*?[)）]", text if mixture else _of_the_pure(text)
            )
            if part.strip()
        ]
    title = _plain_title(reading.title)
    if title:
        names.append(title)
    return Subject(name, tuple(dict.fromkeys(names)), cas, mixture)


def _of_the_pure(text: str) -> str:
    """Names without those that a remark says are of a solution ("氨；氨水（含氨≥10%）")."""
    return re.sub(
        r"[^、；;，,\n（(]+[（(][^()（）]*(?:%|％|溶液|\bsolution|\baqueous)[^()（）]*[)）]", " ", text
    )


def _cas_numbers(reading: Reading, entries: list[Entry]) -> list[str]:
    found: list[str] = []
    for entry in entries:
        found += find_cas(reading.shadow[entry.start : entry.end])
    if not found:  # "氨（ammonia），CAS号7664-41-7": the lead of an article
        lead = next((s for s in reading.sentences if len(s.heading) < 40), None)
        if lead and re.search(r"cas", reading.shadow[lead.start : lead.end], re.IGNORECASE):
            found = find_cas(reading.shadow[lead.start : lead.end])
    return found


def _sheet_numbers(document: RefinedDocument, reading: Reading) -> list[str]:
    """The one CAS number of a data sheet's first three sections, where no label gives it."""
    found: list[str] = []
    for section in document.sections:
        if section.sds in {1, 3}:
            found += find_cas(reading.shadow[section.start : section.end])
    return found[:1] if len(set(found)) == 1 else []


def _own_number(reading: Reading, entries: list[Entry], numbers: list[str]) -> str:
    """The number without remark where a field lists those of hydrates beside it."""
    if len(set(numbers)) == 1:
        return numbers[0]
    plain = [
        number
        for entry in entries
        for number in dict.fromkeys(find_cas(reading.shadow[entry.start : entry.end]))
        if not re.search(re.escape(number) + r"[^\d;,、\n]{0,6}\(", reading.shadow[entry.start : entry.end])
    ]
    return plain[0] if len(plain) == 1 else ""


def _name(document: RefinedDocument, reading: Reading, named: dict[str, list[Entry]]) -> str:
    for entry in named.get("name", []):
        text = reading.text[entry.start : entry.end].strip()
        if 0 < len(text) <= 80 and "\n" not in text and not re.search(r"[。|]", text):
            return _first_name(text)
    for heading in (*reading.headings[:1], reading.title):
        title = _plain_title(heading)
        if title:
            return title
    return ""


def _first_name(text: str) -> str:
    """ "苯酚 Phenol" and "甲醇（木精）" give their first name; locants and "Ammonia, anhydrous" stay whole."""
    text = re.split(r"[;；]", text)[0]
    mixed = re.match(r"^([一-鿿][^A-Za-z(（]*)\s+[A-Za-z][A-Za-z ,'-]+$", text)
    return (mixed[1] if mixed else text).strip()


def _plain_title(title: str) -> str:
    words = _TITLE_NOISE.sub(" ", unicodedata.normalize("NFC", title))
    words = re.sub(r"\s*\[(?:edit|编辑)\]", "", words).strip(" :：-–—_|#*·")
    words = " ".join(words.split())
    if not 0 < len(words) <= 60 or re.search(r"[。；？！]|https?:", words):
        return ""
    return _first_name(words)


def _is_mixture(reading: Reading, named: dict[str, list[Entry]], name: str) -> bool:
    for entry in named.get("substance_kind", []):
        words = reading.shadow[entry.start : entry.end]
        if _MIXTURE.search(words):
            return True
        if _PURE.search(words):
            return False
    if _SOLUTION_NAME.search(shadow(name)) or _diluted(shadow(name)) or _composed(reading, named):
        return True
    for entry in named.get("cas", []):
        words = reading.shadow[entry.start : entry.end]
        part = re.search(r"\d-\d\s*\(([^)]*)\)", words)
        if (
            part
            and re.search(r"[一-鿿]|[a-z]{3}", part[1])
            and normalise_name(part[1]) != normalise_name(name)
        ):
            return True
    return False


def _diluted(name: str) -> bool:
    """ "氢氟酸（40%）", "Hydrochloric acid 37%": a share in the name that is no purity."""
    shares = [float(number) for number in re.findall(r"(\d+(?:\.\d+)?)\s?%", name)]
    return bool(shares) and max(shares) < 98


def _composed(reading: Reading, named: dict[str, list[Entry]]) -> bool:
    """Whether the composition of a data sheet lists several numbers with shares, none of them nearly all of it."""
    own = {n for e in named.get("cas", []) for n in find_cas(reading.shadow[e.start : e.end])}
    for grid in reading.grids:
        heads = [reading.shadow[cell.start : cell.end].lower() for cell in grid.header]
        share = next(
            (at for at, h in enumerate(heads) if re.search(r"含量|浓度|分数|concentration|%|content", h)),
            None,
        )
        if grid.sds != 3 or share is None:
            continue
        found: dict[str, float] = {}
        for row in grid.rows:
            numbers = {n for cell in row for n in find_cas(reading.shadow[cell.start : cell.end])}
            if len(numbers) == 1 and share < len(row):
                words = reading.shadow[row[share].start : row[share].end]
                shown = [float(n) for n in re.findall(r"\d+(?:\.\d+)?", words)]
                found[numbers.pop()] = max(shown, default=0.0)
        if len(found) > 1 and max(found.values()) < 98 and not own & found.keys():
            return True
    return False
