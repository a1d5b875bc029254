"""The lexicons under ``kg/data``: labels, classes of matter, extinguishing media, hazard classes."""

from __future__ import annotations

import re
import tomllib
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib.resources import files
from typing import Any

from corpus.ids import digest
from corpus.names import simplified
from corpus.quantities import plain_width

_SUBSCRIPTS = str.maketrans("₀₁₂₃₄₅₆₇₈₉", "0123456789")


def shadow(text: str) -> str:
    """Text of the same length in which rules look for words: plain width, simplified, no subscripts."""
    return _short_shadow(text) if len(text) <= 2000 else _shadow(text)


def _shadow(text: str) -> str:
    plain = plain_width(text).translate(_SUBSCRIPTS)
    if plain.isascii():
        return plain
    converted = simplified(plain)
    if len(converted) != len(plain):
        converted = "".join(c if len(s := simplified(c)) != 1 else s for c in plain)
    return converted


_short_shadow = lru_cache(maxsize=16_384)(_shadow)  # labels and quotes come again and again

COMMA = re.compile(r"[,，](?!\d{3}(?!\d))")
"""A comma that parts words: not one between thousands."""


@cache
def _data(name: str) -> dict[str, Any]:
    return tomllib.loads((files("kg") / "data" / f"{name}.toml").read_text(encoding="utf-8"))


@dataclass(frozen=True)
class Field:
    """What a label gives: ``family`` ("measurement") and ``name`` ("flash_point")."""

    family: str
    name: str


@cache
def fields() -> dict[str, Field]:
    """Labels in normal form → field, those of a user's file included."""
    own = {
        label: Field(family, name)
        for family, names in _data("labels").items()
        for name, labels in names.items()
        for label in labels
    }
    return own | _added


_added: dict[str, Field] = {}


def set_added_labels(labels: Mapping[str, Field]) -> None:
    """Replace the labels that a user's file adds (``kg/extension.py``); written in normal form."""
    _added.clear()
    _added.update(labels)
    fields.cache_clear()
    field_of.cache_clear()


def label_form(text: str) -> str:
    """The normal form in which labels are compared."""
    plain = " ".join(unicodedata.normalize("NFKC", bare_label(text)).lower().split()).strip(" :,.-/*")
    if re.search(r"[一-鿿]", plain):
        plain = re.sub(r"(?<=[一-鿿]) | (?=[一-鿿])", "", plain)
    return plain


_NUMBERING = re.compile(r"^\s*[(（]?\d{1,2}(?:\.\d{1,2}){0,3}[.、)）]?\s*(?=\D)")
_BRACKETS = re.compile(r"[(\[【][^()\[\]]*[)\]】]")
_UNIT_TAIL = re.compile(r"[\s,/]*(?:[%‰℃]|°[CF]|kPa|g/cm3|g/mol|mg/m3|ppm|mg/kg|kJ/mol|MPa)\s*$")


def bare_label(text: str) -> str:
    """A label without numbering, marks, editing links and closing colon; case and brackets kept."""
    label = shadow(text).strip().strip("*_# ").strip()
    label = re.sub(r"(?:\[\s*(?:edit|编辑)\s*\]|编辑)\s*$", "", label).strip()
    label = _NUMBERING.sub("", label)
    return label.rstrip(":：").strip().strip("*_").strip()


@lru_cache(maxsize=65_536)
def field_of(text: str) -> tuple[str, Field] | None:
    """Normal form and field of a label, or None for words that are not one.

    "熔点（℃）" → ("熔点", measurement/melting_point); "9.7 Flash point:" likewise.
    """
    bare = bare_label(text)
    if not bare or len(bare) > 60 or "\n" in bare:
        return None
    known = fields()
    for form in (bare, _BRACKETS.sub("", bare), _UNIT_TAIL.sub("", _BRACKETS.sub("", bare))):
        plain = label_form(form)
        if plain in known:
            return plain, known[plain]
    return None


# --- classes of matter and extinguishing media -----------------------------------


@dataclass(frozen=True)
class Term:
    """An entry of a lexicon: language-independent key and the names shown."""

    key: str
    zh: str
    en: str


def _index(name: str, prefix: str) -> dict[str, Term]:
    index: dict[str, Term] = {}
    for key, names in _data(name).items():
        term = Term(prefix + key, names["zh"][0], names["en"][0])
        for spelling in (*names["zh"], *names["en"]):
            index[word_form(spelling)] = term
    return index


def word_form(text: str) -> str:
    """Form in which lexicon words are compared."""
    plain = " ".join(unicodedata.normalize("NFKC", shadow(text)).lower().split())
    return plain.strip(" .,;:。，；：、")


@cache
def groups() -> dict[str, Term]:
    """Classes of matter by every spelling."""
    return _index("groups", "group:")


@cache
def agents() -> dict[str, Term]:
    """Extinguishing media by every spelling."""
    return _index("agents", "agent:")


_CLASS_ZH = re.compile(
    r"(?:类|剂|金属|粉末|粉|化学品|可燃物|易燃物|有机物|物质|材料|化合物|酸酐|盐|氧化物|卤素|氰化物|硫化物|氯化物)$"
)
_CLASS_EN = re.compile(
    r"\b(?:agents|acids|bases|metals|halogens|compounds|materials|substances|oxides|salts|amines|alcohols|peroxides|chlorides"
    r"|anhydrides|fluorides|cyanides|powders|oxidizers|oxidants|feedstuffs|combustibles|sulfides|hydrides|fumes|gases|vapou?rs)$"
)
# compounds whose names merely end like a class
_COMPOUND = re.compile(
    r"^(?:一|二|三|四|五|六|过|次|亚|高|氧化|氯化|氟化|硫化|氰化|溴化|碘化|硝酸|硫酸|碳酸|磷酸)"
)


def group_term(text: str) -> Term | None:
    """The class of matter that words name: from the lexicon, or minted where they end like a class."""
    form = word_form(text)
    known = groups().get(form)
    if known:
        return known
    chinese = bool(re.search(r"[一-鿿]", form))
    if (chinese and _CLASS_ZH.search(form) and not _COMPOUND.match(form)) or (
        not chinese and _CLASS_EN.search(form)
    ):
        shown = text.strip()
        return Term(f"group:{digest('group', form)[:24]}", shown if chinese else "", "" if chinese else shown)
    return None


# --- hazard classes ----------------------------------------------------------------


@dataclass(frozen=True)
class HazardClassName:
    """A spelling of a GHS hazard class."""

    slug: str
    spelling: str
    routed: bool


@cache
def hazard_names() -> tuple[HazardClassName, ...]:
    """All spellings, longest first."""
    names = [
        HazardClassName(
            slug, word_form(spelling) if spelling.isascii() else shadow(spelling), bool(entry.get("routed"))
        )
        for slug, entry in _data("hazard_classes").items()
        for spelling in (*entry["zh"], *(s.rstrip(".") for s in entry["en"]))
    ]
    return tuple(sorted(names, key=lambda n: (-len(n.spelling), n.spelling)))


def hazard_term(slug: str) -> Term:
    """The names shown for a hazard class."""
    entry = _data("hazard_classes")[slug]
    return Term(slug, entry["zh"][0], entry["en"][0])
