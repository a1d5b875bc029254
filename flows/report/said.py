"""One statement in words that can stand alone: what is told, the object or value, its conditions, and a denial.

For places with room for a line and none for the quote (a figure, a line in a terminal). A value
without its conditions or a statement without its denial would say something else than the
source, so that they are part of the words, in Chinese and in English.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from corpus.catalogue.tables import Assertion
from flows.report.statements import object_names, relation_title, shipped_words
from flows.report.words import WORDS, Language
from kg.qa import wording
from kg.schema import Relation, property_spec

Both = tuple[str, str]
"""Words in Chinese and in English."""

DENIED: Both = ("否定", "not")
_MODALITY: Mapping[str, Both] = {"may": ("可能", "may"), "must": ("必须", "must")}
_MEASURED = frozenset({Relation.HAS_MEASUREMENT, Relation.HAS_LIMIT, Relation.HAS_TOXICITY})
_OF_VALUE = ("kind", "endpoint", "jurisdiction")
_OF_ANIMAL = ("species", "route")
# conditions whose value says what it is
_PLAIN = frozenset(
    {"temperature", "pressure", "duration", "concentration", "species", "route", "method", "basis", "form"}
)
_RATED = ("health", "fire", "instability", "special")


@dataclass(frozen=True)
class Said:
    """The words of a statement; ``conditions`` holds how sure the source is and when it is so, or nothing.

    ``unsuitable``: it says what must not be used. ``denied``: the source says that it is not so.
    """

    what: Both
    object: Both
    conditions: Both
    denied: bool
    unsuitable: bool

    @property
    def adverse(self) -> bool:
        """Whether it must not be taken for the plain statement of the same object."""
        return self.denied or self.unsuitable


def said(row: Assertion, names: Mapping[str, Both] | None = None) -> Said:
    """A statement in words. ``names``: key of a substance → its names, where they are known."""
    return Said(
        what=_what(row),
        object=_object(row, names or {}),
        conditions=conditions(row),
        denied=row.polarity == "negative",
        unsuitable=row.relation == Relation.NOT_EXTINGUISHED_BY and row.polarity != "negative",
    )


def sentence(row: Assertion) -> str:
    """A statement on one line: "硫酸 · 毒性数据 LC50 · toxicity value LC50: 510 mg/m³ (大鼠，吸入，2 h · rat, …)"."""
    words = said(row)
    denied = f"{together(DENIED)} " if words.denied else ""
    limits = together(words.conditions)
    return f"{row.subject} · {together(words.what)}: {denied}{together(words.object)}" + (
        f" ({limits})" if limits else ""
    )


def together(words: Both) -> str:
    """Words in both languages; once where they are the same or one is missing."""
    zh, en = words
    return f"{zh} · {en}" if zh and en and zh != en else zh or en


def conditions(row: Assertion) -> Both:
    """How sure the source is, and all conditions of the statement and of its value."""
    zh, en = (_conditions(row, language) for language in ("zh", "en"))
    return "，".join(zh), ", ".join(en)


def _conditions(row: Assertion, language: Language) -> list[str]:
    held: dict[tuple[str, str], Any] = {}
    groups = [row.conditions, row.value.get("conditions") or {}]
    if row.relation in _MEASURED or row.relation == Relation.CLASSIFIED_AS:
        groups.append({name: row.properties.get(name) for name in _OF_ANIMAL})
    for group in groups:
        held |= {(name, str(value)): value for name, value in sorted(group.items()) if value}
    found = []
    if row.relation == Relation.HAS_COMPONENT and row.value:
        found.append(_value(row, language))
    found += [_condition(name, value, language) for (name, _), value in held.items()]
    if row.modality in _MODALITY:
        found.insert(0, _MODALITY[row.modality][0 if language == "zh" else 1])
    return found


def _condition(name: str, value: Any, language: Language) -> str:
    """A condition in a language; as the source writes it where no wording is safe."""
    text = wording.route_words(str(value), language) if name == "route" else None
    if text is None:
        text = wording.condition_as_said(name, value, language)
    if name in _PLAIN:
        return text
    return f"{WORDS[language].term(name)}{'：' if language == 'zh' else ': '}{text}"


def _what(row: Assertion) -> Both:
    props, title = row.properties, relation_title(row.relation)
    spec = property_spec(props.get("property"))
    if row.relation == Relation.HAS_MEASUREMENT and spec is not None:
        return spec.zh, spec.en
    if row.relation in _MEASURED:
        told = " ".join(str(props[name]) for name in ("property", *_OF_VALUE) if props.get(name))
        return f"{title[0]} {told}".strip(), f"{title[1]} {told}".strip()
    if row.relation == Relation.HAS_ALIAS:
        kind = str(props.get("kind") or "")
        return wording.KIND_WORDING.get(kind, title)
    return title


def _object(row: Assertion, names: Mapping[str, Both]) -> Both:
    props = row.properties
    if row.relation in _MEASURED:
        zh, en = (_value(row, language) for language in ("zh", "en"))
        return zh, en
    if row.relation == Relation.CLASSIFIED_AS:
        category = str(props.get("category") or "")
        classes = (str(props.get("zh") or ""), str(props.get("en") or props.get("hazard") or ""))
        return (row.object, "") if not any(classes) else _with(classes, category)
    if row.relation == Relation.RATED:
        rated = " · ".join(f"{name} {props[name]}" for name in _RATED if props.get(name))
        return rated or row.object, ""
    if row.relation == Relation.SHIPPED_AS and props.get("un"):
        return shipped_words(row), ""
    if props.get("code"):
        code = str(props["code"])
        zh, en = (str(props.get(f"text_{x}") or props.get(x) or "") for x in ("zh", "en"))
        return f"{code} {zh}".strip(), f"{code} {en}".strip()
    if props.get("text"):
        return str(props["text"]), ""
    if row.value:  # of a component the value is its share, a condition
        return names.get(row.object_key) or (row.object, "")
    return object_names(row, names)


def _with(words: Both, after: str) -> Both:
    zh, en = (f"{word} {after}".strip() if word else "" for word in words)
    return zh, en


def _value(row: Assertion, language: Language) -> str:
    return wording.value_words(row.value, language) or str(row.value.get("text") or row.object)
