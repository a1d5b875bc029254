"""Skill ``reword_question``: a model may say a template's question more naturally, and only that."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from dataclasses import dataclass
from functools import cache
from typing import ClassVar

from pydantic import BaseModel, Field

from kg.extraction.vocabulary import fields, shadow
from kg.qa.facts import plain
from kg.schema import PROPERTIES
from models.languages import han_share, wrong_language
from models.prompts import Prompts, Quoted
from models.skills import ACCEPT, Skill, Verdict


@dataclass(frozen=True)
class RewordIn:
    """A template's question. ``keep``: words that must stay (names, titles, codes); ``hidden``: the answer."""

    question: str
    language: str
    keep: tuple[str, ...]
    hidden: tuple[str, ...]
    plural: bool


class Reworded(BaseModel):
    """The question in other words."""

    question: str = Field(min_length=4, max_length=600)


_NUMBER = re.compile(r"\d+(?:[.,]\d+)*")
_UNITS = re.compile(r"°[CF]|℃|℉|%|\b(?:kPa|Pa|MPa|mg/kg|mg/m3|mg/m³|ppm|g/mol|g/cm3|g/cm³|K)\b")
_NEGATION = {
    "zh": re.compile(r"不|非|无|禁|勿|未|没"),
    "en": re.compile(
        r"\b(?:not|no|never|without|un\w+able|unsuitable|incompatib\w+|must not|cannot)\b", re.IGNORECASE
    ),
}
_PLURAL = {
    "zh": re.compile(r"哪些|哪几|都有|列出|分别"),
    "en": re.compile(r"\b(?:which|what)\b(?!.*\bis the\b)|\blist\b|\bare\b", re.IGNORECASE),
}
# what asks for one thing, and what would ask for several instead
_ONE = {
    "zh": (re.compile(r"哪一?[种个项]"), re.compile(r"哪些|哪几|分别")),
    "en": (
        re.compile(r"\bwhich (?:other )?substance\b", re.IGNORECASE),
        re.compile(r"\bsubstances\b", re.IGNORECASE),
    ),
}
_MIXED = 0.3  # change in the share of Chinese characters that no rewording in one language makes
_DIRECTION = re.compile(r"最高|最低|更高|高于|低于|highest|lowest|higher|lower|共同|both", re.IGNORECASE)
# What kind of answer a question wants, the most telling first; without any of these it asks what, which or how.
_WHY = re.compile(r"为什么|为何|为啥|何以|何故|原因|\bwhy\b|\breasons?\b|\bhow come\b", re.IGNORECASE)
_WHETHER_ZH = re.compile(r"吗|是否|能否|可否|会不会|是不是")
_OPEN_EN = re.compile(r"\b(?:what|which|how|who|where|when|list|name)\b", re.IGNORECASE)
_WHETHER_EN = re.compile(
    r"\bwhether\b|(?:^|[,:;.]\s*|\bor not\b)(?:is|are|was|were|does|do|did|can|could|may|must|should|has|have)\b",
    re.IGNORECASE,
)


class RewordQuestion(Skill[RewordIn, Reworded]):
    """Reword a question without touching what it asks (knowledge-graph design, section 5)."""

    name: ClassVar[str] = "reword_question"
    version: ClassVar[str] = "4"
    output: ClassVar[type[BaseModel]] = Reworded
    prompts: ClassVar[Prompts | None] = Prompts(__package__, "reword_question")

    def values(self, given: RewordIn) -> dict[str, Quoted]:
        """Names and titles of pages stand in both; what the answer is, the model does not learn."""
        return {
            "keep": Quoted.as_json(list(given.keep), "keep"),
            "question": Quoted(given.question, "question"),
        }

    def check(self, given: RewordIn, answer: Reworded) -> Verdict:
        """Names, numbers, units, properties, kind, polarity, plural, direction, language kept; answer not given away."""
        problems = list(problems_of(given, answer.question))
        return Verdict.ask_again(*problems) if problems else ACCEPT

    def offline(self, given: RewordIn) -> Reworded:
        """The template's own words."""
        return Reworded(question=given.question)


def problems_of(given: RewordIn, question: str) -> list[str]:
    """What a rewording changed that it must not change."""
    said = unicodedata.normalize("NFKC", question)
    asked = unicodedata.normalize("NFKC", given.question)
    # counted, since a name may also stand inside a title that is kept
    problems = [
        f"{word!r} is missing"
        for word in given.keep
        if plain(said).count(plain(word)) < plain(asked).count(plain(word))
    ]
    if Counter(_NUMBER.findall(said)) != Counter(_NUMBER.findall(asked)):
        problems.append("the numbers differ")
    if Counter(_UNITS.findall(said)) != Counter(_UNITS.findall(asked)):
        problems.append("the units differ")
    language = "zh" if given.language == "zh" else "en"
    if bool(_NEGATION[language].search(_without(said, given.keep))) != bool(
        _NEGATION[language].search(_without(asked, given.keep))
    ):
        problems.append("the polarity differs")
    if {w.lower() for w in _DIRECTION.findall(said)} != {w.lower() for w in _DIRECTION.findall(asked)}:
        problems.append("the direction of the comparison differs")
    bare_said, bare_asked = _without(said, given.keep), _without(asked, given.keep)
    if properties_of(bare_said) != properties_of(bare_asked):
        problems.append("the property asked for differs")
    if _kind(bare_said, language) != _kind(bare_asked, language):
        problems.append("the kind of question differs (what, why, whether)")
    if given.plural and not _PLURAL[language].search(said):
        problems.append("the plural is lost")
    one, several = _ONE[language]
    if (
        not given.plural
        and one.search(bare_asked)
        and several.search(bare_said)
        and not several.search(bare_asked)
    ):
        problems.append("the singular is lost")
    problems += _language_problems(bare_said, bare_asked, language)
    if "\n" in question.strip():
        problems.append("it is not one line")
    asked_plain = plain(asked)
    problems += [
        "the answer is given away"
        for word in given.hidden
        if len(plain(word)) >= 2 and plain(word) in plain(said) and plain(word) not in asked_plain
    ]
    return problems


def _kind(text: str, language: str) -> str:
    if _WHY.search(text):
        return "why"
    if language == "zh":
        return "whether" if _WHETHER_ZH.search(text) else "open"
    return "whether" if _WHETHER_EN.search(text) and not _OPEN_EN.search(text) else "open"


# Verbs that stand for a property.
_VERBS = {
    "boiling_point": r"沸腾|\bboils?\b",
    "flash_point": r"\bflash(?:es)?\b",
    "melting_point": r"熔化|\b(?:melts?|freezes?)\b",
    "autoignition_temperature": r"自燃|\b(?:auto)?ignites?\b",
}


@cache
def _labels() -> tuple[re.Pattern[str], dict[str, str]]:
    """All labels of properties and identifiers, longer ones first, and the name of each."""
    names = {
        label: field.name
        for label, field in fields().items()
        if field.name in PROPERTIES and not (label.isascii() and len(label) < 2)
    }
    names |= {
        wording.casefold(): name.value for name, spec in PROPERTIES.items() for wording in (spec.zh, spec.en)
    }
    ordered = sorted(names, key=lambda label: (-len(label), label))
    edge = [
        rf"(?<![a-z]){re.escape(label)}s?(?![a-z])" if label.isascii() else re.escape(label)
        for label in ordered
    ]
    return re.compile("|".join(edge)), names


def properties_of(text: str) -> frozenset[str]:
    """Properties that a question names by a label of the graph's lexicon or by a verb, longest match first."""
    pattern, names = _labels()
    plain_text = shadow(text).casefold()
    found = {
        names.get(match[0]) or names[match[0].removesuffix("s")] for match in pattern.finditer(plain_text)
    }
    rest = pattern.sub(" ", plain_text)
    return frozenset(found | {name for name, verb in _VERBS.items() if re.search(verb, rest)})


def _language_problems(said: str, asked: str, language: str) -> list[str]:
    """Names and titles, which keep their own language, are left out of both."""
    wrong = wrong_language(said, language)
    mixed = abs(han_share(said) - han_share(asked)) > _MIXED
    if language == "en":  # "请问，Which …": one Chinese word is enough to spoil an English question
        mixed = mixed or (han_share(said) > 0 and han_share(asked) == 0)
    if not wrong and mixed:
        wrong = (
            "the language is mixed: 请只用中文"
            if language == "zh"
            else "the language is mixed: use English only"
        )
    return [wrong] if wrong else []


def _without(text: str, words: tuple[str, ...]) -> str:
    for word in sorted(words, key=len, reverse=True):
        text = text.replace(unicodedata.normalize("NFKC", word), " ")
    return text
