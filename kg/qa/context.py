"""What the makers of questions share: facts, settings, sides, and which statements agree."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from kg.graph_settings import QuestionSettings
from kg.qa.disagreement import contradicted
from kg.qa.facts import Fact, Facts, Node
from kg.qa.records import LANGUAGES, Language, Reference
from kg.qa.sampling import Side
from kg.schema import NodeLabel


@dataclass
class Context:
    """Input of question making.

    ``dropped`` counts why no candidate came of something; ``keys`` holds what queries for keys have given.
    """

    facts: Facts
    settings: QuestionSettings
    sides: Mapping[str, Side]
    dropped: Counter[str] = field(default_factory=Counter)
    keys: dict[str, list[str]] = field(default_factory=dict)
    _contradicted: dict[tuple[object, ...], bool] = field(default_factory=dict)

    def contradicted(self, fact: Fact) -> bool:
        """Whether another source contradicts a positive statement; many paths rest on one."""
        # all that it depends on: what is said twice in a document is looked at once; equal properties are one object
        key = (*fact.triple(), fact.subject_label, fact.source.document_id, id(fact.properties))
        if key not in self._contradicted:
            self._contradicted[key] = contradicted(self.facts, fact)
        return self._contradicted[key]

    @property
    def languages(self) -> tuple[Language, ...]:
        """Languages to word questions in."""
        return tuple(language for language in LANGUAGES if language in self.settings.languages)

    def name(self, node: Node, language: Language) -> str | None:
        """How a node is called in a language."""
        return self.facts.name(node[0], node[1], language)


def references(facts: Iterable[Fact], language: Language | None = None) -> tuple[Reference, ...]:
    """Distinct evidence spans; those in the question's language first, then by place."""
    found = {(r.document_id, r.start, r.end): r for r in (fact.reference() for fact in facts)}
    return tuple(
        sorted(found.values(), key=lambda r: (r.language != language, r.document_id, r.start, r.end))
    )


def one_per_document(facts: Sequence[Fact], language: Language) -> list[Fact]:
    """The first fact of each document, those in the question's language first."""
    chosen: dict[str, Fact] = {}
    for fact in sorted(facts, key=lambda f: (f.language != language, f.source.document_id, f.start, f.id)):
        chosen.setdefault(fact.source.document_id, fact)
    return list(chosen.values())


def interval(fact: Fact) -> tuple[float, float] | None:
    """The value's closed interval in SI units; None for bounds and missing numbers."""
    si = fact.value.get("si") or {}
    low, high = si.get("min"), si.get("max")
    if not isinstance(low, int | float) or not isinstance(high, int | float):
        return None
    return (float(low), float(high))


def is_temperature(fact: Fact) -> bool:
    """Whether the value is in kelvin, where a relative tolerance has no meaning."""
    return str((fact.value.get("si") or {}).get("unit")) in {"K", "kelvin"}


def agree(facts: Sequence[Fact], settings: QuestionSettings) -> bool:
    """Whether all values are numbers of one kind within the tolerance of each other."""
    found = [interval(fact) for fact in facts]
    units = {str((fact.value.get("si") or {}).get("unit")) for fact in facts}
    if len(units) != 1 or any(pair is None for pair in found):
        return False
    lows = [pair[0] for pair in found if pair is not None]
    highs = [pair[1] for pair in found if pair is not None]
    low_spread, high_spread = max(lows) - min(lows), max(highs) - min(highs)
    if is_temperature(facts[0]):
        return max(low_spread, high_spread) <= settings.temperature_tolerance_k
    scale = max(abs(n) for n in (*lows, *highs))
    return max(low_spread, high_spread) <= settings.tolerance * scale


def margin(facts: Sequence[Fact], settings: QuestionSettings) -> float:
    """Distance in SI units by which values must lie apart before one is called higher."""
    if is_temperature(facts[0]):
        return settings.temperature_margin_k
    scale = max(max(abs(n) for n in pair) for fact in facts if (pair := interval(fact)) is not None)
    return settings.margin * scale


def substances_of(*nodes: Node) -> tuple[str, ...]:
    """Keys of the substances and mixtures among nodes, sorted."""
    return tuple(sorted({key for label, key in nodes if label in (NodeLabel.SUBSTANCE, NodeLabel.MIXTURE)}))
