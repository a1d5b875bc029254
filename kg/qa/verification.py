"""Verification of candidates: every proof is run against the graph, every reference read in its document.

A candidate that fails any check is rejected with the reason; nothing is repaired.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from functools import lru_cache
from typing import Any

from kg.graph_settings import QuestionSettings
from kg.qa import categories
from kg.qa.facts import Fact, Facts, plain
from kg.qa.lists import CODE, list_is_whole
from kg.qa.multi_hop import run
from kg.qa.records import Candidate
from kg.qa.sampling import Side, side_of
from kg.schema import NodeLabel, Relation
from kg.store import GraphStore


class Reason(StrEnum):
    """Why a question is not kept."""

    NO_REFERENCE = "no_reference"
    FEW_REFERENCES = "fewer_than_two_references"
    REFERENCE_NOT_FOUND = "reference_not_in_document"
    STALE_REFERENCE = "reference_of_other_version"
    NUMBER_NOT_IN_EVIDENCE = "number_not_in_evidence"
    NEGATED_EVIDENCE = "negated_evidence"
    ANSWER_LEAKED = "answer_in_question"
    SUBJECT_NOT_NAMED = "subject_not_named"
    AMBIGUOUS_NAME = "name_of_several_substances"
    WRONG_LANGUAGE = "wrong_language"
    SELF_LOOP = "self_loop"
    ALIAS_OF_SEED = "alias_of_seed"
    SAME_ANSWERS = "answers_are_one_thing"
    PROOF_DIFFERS = "proof_gives_other_answers"
    SHORTCUT = "shortcut"
    DIRECT_EDGE = "direct_edge"
    MIXTURE_TOO = "mixture_too"
    HUB = "hub"
    OTHER_ENTRIES = "evidence_names_other_un_numbers"
    LIST_INCOMPLETE = "list_not_complete_in_text"
    DENIED_IN_LIST = "denied_item_in_text"
    BOTH_SIDES = "both_sides_of_split"
    AMBIGUOUS_TEXT = "same_text_other_answer"
    DUPLICATE = "duplicate"
    UNBALANCED = "unbalanced"


def verify(
    candidates: Sequence[Candidate],
    facts: Facts,
    store: GraphStore,
    settings: QuestionSettings,
    sides: Mapping[str, Side],
) -> dict[str, str]:
    """Candidate id → reason of rejection ("" for those that hold)."""
    checks = text_checks(facts, sides)
    verdicts = {
        c.id: next((reason for check in checks.values() if (reason := check(c))), "") for c in candidates
    }
    for check in (_proofs, _further, _hubs):
        left = [c for c in candidates if not verdicts[c.id]]
        verdicts |= check(left, facts, store, settings)
    return verdicts


def each_check(
    candidates: Sequence[Candidate],
    facts: Facts,
    store: GraphStore,
    settings: QuestionSettings,
    sides: Mapping[str, Side],
) -> dict[str, dict[str, str]]:
    """What every check says on its own: name of the check → candidate id → reason, of those it rejects."""
    found = {
        name: {c.id: reason for c in candidates if (reason := check(c))}
        for name, check in text_checks(facts, sides).items()
    }
    found["proof"] = _proofs(candidates, facts, store, settings)
    found["shortcut"] = _further(candidates, facts, store, settings)
    found["hub"] = _hubs(candidates, facts, store, settings)
    return found


def text_checks(facts: Facts, sides: Mapping[str, Side]) -> dict[str, Callable[[Candidate], str]]:
    """The checks that need no server, in the order in which they are made."""

    def split(candidate: Candidate) -> str:
        return "" if side_of(candidate.substances, sides) is not None else Reason.BOTH_SIDES

    return {
        "reference": lambda c: _references(c, facts),
        "nodes": lambda c: _nodes(c, facts),
        "evidence": lambda c: _evidence(c, facts),
        "list": lambda c: _lists(c, facts),
        "wording": lambda c: wording_problem(c, facts, c.question),
        "split": split,
    }


def _proofs(
    candidates: Sequence[Candidate], facts: Facts, store: GraphStore, settings: QuestionSettings
) -> dict[str, str]:
    """The graph returns exactly the stated answers."""
    answers = run(store, [c.proof for c in candidates])
    return {
        c.id: Reason.PROOF_DIFFERS
        for c, found in zip(candidates, answers, strict=True)
        if found != tuple(sorted(c.expected))
    }


def _further(
    candidates: Sequence[Candidate], facts: Facts, store: GraphStore, settings: QuestionSettings
) -> dict[str, str]:
    """The candidates' own further queries: no shortcut, no direct edge."""
    checks = [(c.id, check) for c in candidates for check in c.checks]
    verdicts: dict[str, str] = {}
    found = run(store, [check.proof for _, check in checks])
    for (candidate_id, check), answers in zip(checks, found, strict=True):
        if not check.holds(answers):
            verdicts.setdefault(candidate_id, check.reason)
    return verdicts


def _hubs(
    candidates: Sequence[Candidate], facts: Facts, store: GraphStore, settings: QuestionSettings
) -> dict[str, str]:
    """Intermediate nodes of a path must not be hubs, whoever sampled it."""
    between: dict[str, set[tuple[str, str]]] = {}
    for candidate in candidates:
        if candidate.kind != "multi_hop":
            continue
        relations = re.findall(r"-([A-Z_]+)-", candidate.metapath)
        between[candidate.id] = {
            (node, relation)
            for at, node in enumerate(candidate.nodes[1:-1], start=1)
            if at < len(relations)
            for relation in (relations[at - 1], relations[at])
        }
    degree: dict[tuple[str, str], set[str]] = {key: set() for keys in between.values() for key in keys}
    if degree:
        for fact in facts.facts:
            if fact.positive:
                for one, other in ((fact.object, fact.subject), (fact.subject, fact.object)):
                    if (found := degree.get((one, fact.relation.value))) is not None:
                        found.add(other)
    hubs = {key for key, found in degree.items() if len(found) > settings.hub_degree}
    return {key: Reason.HUB for key, keys in between.items() if keys & hubs}


# --- checks on text -------------------------------------------------------------


def _references(candidate: Candidate, facts: Facts) -> str:
    if not candidate.references:
        return Reason.NO_REFERENCE
    texts = facts.sources
    for reference in candidate.references:
        source = texts.get(reference.document_id)
        if source is None or source.version_id != reference.version_id:
            return Reason.STALE_REFERENCE
        if not reference.quote.strip() or source.text[reference.start : reference.end] != reference.quote:
            return Reason.REFERENCE_NOT_FOUND
    if candidate.kind == "multi_hop":
        spans = {(r.document_id, r.start, r.end) for r in candidate.references}
        if len(spans) < 2:
            return Reason.FEW_REFERENCES
    return ""


def _nodes(candidate: Candidate, facts: Facts) -> str:
    """No node twice on a path, no answer that is the seed under another name."""
    if len(set(candidate.nodes)) != len(candidate.nodes):
        return Reason.SELF_LOOP
    if any(subject == item for subject, _, item in candidate.triples):
        return Reason.SELF_LOOP
    if candidate.kind not in {"multi_hop", "aggregative"}:
        return ""
    answers = [key for key in candidate.expected if isinstance(key, str)]
    named = {key: _names(facts, key) for key in answers}
    if candidate.kind == "multi_hop":
        seed = _names(facts, candidate.nodes[0])
        if candidate.nodes[0] in answers or any(seed & names for names in named.values()):
            return Reason.ALIAS_OF_SEED
    for i, left in enumerate(answers):
        if any(named[left] & named[right] for right in answers[i + 1 :]):
            return Reason.SAME_ANSWERS
    return ""


def _names(facts: Facts, key: str) -> set[str]:
    labels = (NodeLabel.SUBSTANCE, NodeLabel.MIXTURE, NodeLabel.REACTIVE_GROUP)
    return set().union(*(facts.names(label, key) for label in labels))


# words that turn a statement round; the relation's own negative wording ("incompatible", "禁配") is not among them
_NEGATIONS = {
    "zh": re.compile(
        r"(?:并非|不是|不属于|未列为|没有列|未被分类|不分类|不会|不与|并不|未发现|无禁配|可以与|可与.{0,12}共存)"
    ),
    "en": re.compile(
        r"\b(?:not (?:incompatible|classified|known|listed|considered|a\b|an\b|react)|no (?:incompatib|known)|"
        r"is compatible|are compatible|does not|do not (?:burn|decompose|react)|never|neither|nor)\b",
        re.IGNORECASE,
    ),
}
_CHECKED_FOR_NEGATION = frozenset(
    {
        Relation.INCOMPATIBLE_WITH,
        Relation.CLASSIFIED_AS,
        Relation.HAS_H,
        Relation.DECOMPOSES_TO,
        Relation.BURNS_TO,
        Relation.STORE_APART_FROM,
        Relation.EXTINGUISHED_BY,
        Relation.MEMBER_OF,
        Relation.SHIPPED_AS,
        Relation.HAS_COMPONENT,
    }
)


def negated(fact: Fact) -> bool:
    """A positive statement whose sentence says that it is not so."""
    if fact.relation not in _CHECKED_FOR_NEGATION or not fact.positive:
        return False
    return any(pattern.search(fact.quote) for pattern in _NEGATIONS.values())


def _evidence(candidate: Candidate, facts: Facts) -> str:
    """The facts behind the triples still say what the question takes them to say."""
    behind = [fact for triple in candidate.triples for fact in facts.by_triple.get(_key(triple), ())]
    spans = {(r.document_id, r.start, r.end) for r in candidate.references}
    shown = [f for f in behind if (f.source.document_id, f.start, f.end) in spans]
    if any(negated(fact) for fact in shown):
        return Reason.NEGATED_EVIDENCE
    if any(_names_other_entries(fact) for fact in shown):
        return Reason.OTHER_ENTRIES
    if candidate.kind == "single_hop" or candidate.relation == Relation.HAS_MEASUREMENT.value:
        for fact in shown:
            if "text" not in fact.value and not _numbers_in_quote(fact):
                return Reason.NUMBER_NOT_IN_EVIDENCE
    return ""


def _names_other_entries(fact: Fact) -> bool:
    """The evidence of a transport entry gives further UN numbers (by form or concentration)."""
    if fact.relation != Relation.SHIPPED_AS:
        return False
    numbers = set(
        re.findall(r"(?<![\d.,])[0-3]\d{3}(?![\d.,]*\d)", unicodedata.normalize("NFKC", fact.quote))
    )
    return bool(numbers - {str(fact.properties.get("un"))})


def _key(triple: tuple[str, str, str]) -> Any:
    return (triple[0], Relation(triple[1]), triple[2])


def _numbers_in_quote(fact: Fact) -> bool:
    wanted = [fact.value.get(side) for side in ("min", "max")]
    # a sign may be written apart from its number, so sizes are compared
    numbers = tuple(abs(float(number)) for number in wanted if isinstance(number, int | float))
    return _stand_in(numbers, fact.quote)


@lru_cache(maxsize=65_536)
def _stand_in(numbers: tuple[float, ...], quote: str) -> bool:
    from corpus.quantities import numbers_in, parse_number, parse_quantities

    def all_in(sizes: Sequence[float]) -> bool:
        return all(any(_close(number, size) for size in sizes) for number in numbers)

    plain_sizes = [abs(n) for text in numbers_in(quote) if (n := parse_number(text)) is not None]
    if all_in(plain_sizes):
        return True
    read = [n for quantity in parse_quantities(quote) for n in (quantity.minimum, quantity.maximum)]
    return all_in([*plain_sizes, *(abs(n) for n in read if n is not None)])


def _close(left: float, right: float) -> bool:
    return abs(left - right) <= 1e-9 * max(1.0, abs(left), abs(right))


# --- complete lists against the text --------------------------------------------------


def _lists(candidate: Candidate, facts: Facts) -> str:
    """A list that is counted, given whole or denied on must be whole in the text too."""
    for key in candidate.listings:
        members = facts.by_listing.get(key, [])
        if not members or not list_is_whole(members):
            return Reason.LIST_INCOMPLETE
        denied = candidate.proof.parameters.get("object")
        if candidate.template == "is_classified":
            stated = str(candidate.proof.parameters["stated"])
            if categories.others_in_text(stated, members[0].source.text):
                return Reason.DENIED_IN_LIST
        elif candidate.expected == ("no",) and isinstance(denied, str) and _in_text(denied, members, facts):
            return Reason.DENIED_IN_LIST
    return ""


@lru_cache(maxsize=32)
def _plain(text: str) -> str:
    return plain(text)


def _in_text(key: str, members: Sequence[Fact], facts: Facts) -> bool:
    """Whether any name of the denied item stands in the document after all, in the list or elsewhere.

    A sheet that names it in another sentence may well mean it there ("also avoid …").
    """
    lines = _plain(members[0].source.text)
    names = {plain(key.rpartition(":")[2])} if CODE.fullmatch(key) else set()
    for label in NodeLabel:
        names |= facts.names(label, key)
    return any(name and name in lines for name in names)


# --- wording --------------------------------------------------------------------------


_HAN = re.compile(r"[一-鿿]")


def wording_problem(candidate: Candidate, facts: Facts, question: str) -> str:
    """Language right, subjects named, answer not given away; used for templates and rewordings alike."""
    # a title or name keeps its own language
    own = re.sub(r"《[^》]*》|“[^”]*”", "", question)
    if (candidate.language == "zh") != (len(_HAN.findall(own)) >= max(2, len(own) * 0.1)):
        return Reason.WRONG_LANGUAGE
    if reason := _subjects(candidate, facts, question):
        return reason
    if candidate.kind == "boolean" or candidate.template in {
        "compare",
        "highest",
        "lowest",
        "count",
        "shipped",
    }:
        return ""
    if candidate.template == "identifier" and any(says(question, surface) for surface in candidate.surfaces):
        return Reason.ANSWER_LEAKED  # "acetone (67-64-1)" must not be asked for its number
    # names that the question has to name are not a leak where the answer's word is a part of them
    asked = unicodedata.normalize("NFKC", question).casefold()
    answers = {surface.casefold() for surface in candidate.surfaces}
    for label in NodeLabel:
        for key in candidate.nodes:
            name = facts.name(label, key, candidate.language)
            if name and name.casefold() not in answers:
                asked = asked.replace(unicodedata.normalize("NFKC", name).casefold(), " ")
    return Reason.ANSWER_LEAKED if any(says(asked, surface) for surface in candidate.surfaces) else ""


def _subjects(candidate: Candidate, facts: Facts, question: str) -> str:
    """What is asked about stands in the question, by a name that is nothing else's."""
    asked = plain(question)
    # a path is named by its start alone: naming what it leads by way of would shorten it
    subjects = candidate.nodes[:1] if candidate.kind == "multi_hop" else candidate.substances
    for key in subjects:
        names = [name for label in _NAMED if (name := facts.name(label, key, candidate.language))]
        if names and not any(plain(name) in asked for name in names):
            return Reason.SUBJECT_NOT_NAMED
        if any(facts.ambiguous(name) for name in names):
            return Reason.AMBIGUOUS_NAME
    return ""


_NAMED = (NodeLabel.SUBSTANCE, NodeLabel.MIXTURE, NodeLabel.TRANSPORT_ENTRY)


def says(text: str, words: str) -> bool:
    """Whether a text contains words: whole ones in Latin script, anywhere in Chinese."""
    wanted = unicodedata.normalize("NFKC", words).casefold().strip()
    if len(wanted) < 2:
        return False
    left = r"(?<![a-z0-9])" if wanted[0].isascii() else ""
    right = r"(?![a-z0-9])" if wanted[-1].isascii() else ""
    return (
        re.search(left + re.escape(wanted) + right, unicodedata.normalize("NFKC", text).casefold())
        is not None
    )
