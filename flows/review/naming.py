"""Codes of facts and values in the visitor's language: properties, conditions, relations, how far two values lie apart."""

from __future__ import annotations

from flows.report.words import WORDS as REPORT_WORDS
from flows.review.words import WORDS, Language
from kg.conflicts import Finding, unit_words
from kg.qa import wording
from kg.schema import property_spec

# code -> (Chinese, English)
_NAMES: dict[str, tuple[str, str]] = {
    "limit": ("接触限值", "exposure limit"),
    "toxicity": ("毒性", "toxicity"),
    "jurisdiction": ("地区", "jurisdiction"),
    "year": ("年份", "year"),
    "species": ("物种", "species"),
    "route": ("途径", "route"),
    "method": ("方法", "method"),
    "temperature": ("温度", "temperature"),
    "pressure": ("压力", "pressure"),
    "concentration": ("浓度", "concentration"),
    "duration": ("时间", "duration"),
    "basis": ("基准", "basis"),
    "form": ("形态", "form"),
    "solvent": ("溶剂", "solvent"),
    "phase": ("相态", "phase"),
    "medium": ("介质", "medium"),
    "note": ("备注", "note"),
}


def topic(what: str, language: Language) -> str:
    """What is measured: ``flash_point``, ``limit PC-TWA``, ``toxicity LD50``; an unknown code as it is, in words."""
    kind, _, rest = what.partition(" ")
    if rest:
        return f"{_NAMES[kind][language == 'en']} {rest}" if kind in _NAMES else what
    if spec := property_spec(what):
        return spec.zh if language == "zh" else spec.en
    return what.replace("_", " ")


def code(key: str, language: Language) -> str:
    """A code's name where there is one, else the code: of this page, of a fact, of what the report names."""
    if key in WORDS[language]:
        return WORDS[language][key]
    if property_spec(key) or key.partition(" ")[2]:
        return topic(key, language)
    if key in _NAMES:
        return _NAMES[key][language == "en"]
    words = REPORT_WORDS[language]
    return words.term(key) if words.known(key) else key


def condition(name: str, text: str, language: Language) -> str:
    """A condition's value in words; as the source has it where there is no safe wording."""
    return wording.condition_as_said(name, text, language)


def difference(finding: Finding, language: Language) -> str:
    """How far two values lie apart, and the tolerance."""
    limits, distance = finding.result.tolerance, finding.result.difference
    if language == "en":
        return finding.said
    if limits is None or distance is None:
        return "类别不同" if finding.result.verdict == "conflict" else "类别相同"
    if limits.relative:
        return f"相差 {100 * distance:.3g} %，容差 {100 * limits.differ:.3g} %"
    unit = unit_words(finding.result.unit)
    return f"相差 {distance:.4g}{unit}，容差 {limits.differ:g}{unit}"
