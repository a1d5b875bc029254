"""Skill ``propose_identity``: what a model thinks of two mentions that the rules leave open.

A proposal is a remark beside an entry of the review list, for the person who
decides; nothing is merged, linked or kept apart by it (knowledge-graph design,
section 3).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar, Literal

from pydantic import BaseModel, Field
from sqlalchemy import select
from sqlalchemy.orm import Session

from corpus.asking import ask_many
from corpus.catalogue.tables import Assertion
from corpus.names import normalise_name, valid_cas
from corpus.quantities import numbers_in
from kg.extraction.context import language_of
from kg.extraction.evidence import folded
from kg.identity import (
    AliasTable,
    Record,
    as_formula,
    contradiction,
    decide,
    disputed,
    one_composition,
    rivals,
    structural_block,
)
from kg.identity import Verdict as RuleVerdict
from kg.schema import NAME_KINDS, AliasKind, Relation
from models import ACCEPT, Answer, Models, Skill, Verdict
from models.languages import wrong_language
from models.prompts import Prompts, Quoted

if TYPE_CHECKING:
    from kg.components import Mention

_CONTEXTS = 12  # per candidate
_CONTEXT_LIMIT = 300  # characters
_LEAST_EVIDENCE = 4  # characters below which a passage ("酸") is found anywhere
_PARTS = re.compile(r"[.,]")
_FORBIDDEN = "the verdict must not be same"
_SHOWN_LIMIT = 1000  # characters of a remark in the review list


@dataclass(frozen=True)
class Candidate:
    """A substance as one document names it.

    ``keys``: where the name repository leads the name; ``solution_of``: what it is
    known to be a solution of; ``contexts``: the document's own words about it.
    """

    name: str
    aliases: tuple[str, ...] = ()
    formula: str = ""
    cas: str = ""
    inchikey: str = ""
    ec: str = ""
    mixture: bool = False
    keys: tuple[str, ...] = ()
    solution_of: str = ""
    contexts: tuple[str, ...] = ()

    @property
    def record(self) -> Record:
        """For the pairwise rules."""
        return Record(self.name, self.cas, self.inchikey, self.ec, self.mixture, self.formula)

    @property
    def names(self) -> tuple[str, ...]:
        """Name and aliases."""
        return (self.name, *self.aliases)

    def shown(self) -> dict[str, object]:
        """What a model sees of it beside the contexts; without what is not known."""
        fields = {
            "name": self.name, "aliases": list(self.aliases), "formula": self.formula, "cas": self.cas,
            "inchikey": self.inchikey, "ec": self.ec, "mixture": self.mixture,
            "name_leads_to": list(self.keys), "solution_of": self.solution_of,
        }  # fmt: skip
        return {name: value for name, value in fields.items() if value}


@dataclass(frozen=True)
class IdentityGiven:
    """Two candidates."""

    first: Candidate
    second: Candidate

    @property
    def language(self) -> str:
        """Chinese where one of the names is."""
        return "zh" if "zh" in map(language_of, (self.first.name, self.second.name)) else "en"

    @cached_property
    def ruled(self) -> RuleVerdict:
        """The rules' verdict on the pair; ``review`` where they have nothing to go by."""
        keys: dict[str, frozenset[str]] = {}
        solutions: dict[str, frozenset[str]] = {}
        for candidate in (self.first, self.second):  # of one name, both count, whichever stands first
            name = normalise_name(candidate.name)
            if candidate.keys:
                keys[name] = keys.get(name, frozenset()) | frozenset(candidate.keys)
            if candidate.solution_of:
                solutions[name] = solutions.get(name, frozenset()) | {candidate.solution_of}
        table = AliasTable(keys=keys, solutions=solutions)
        found = decide(self.first.record, self.second.record, table)
        return RuleVerdict("review", found.rule, found.why) if found.rule == "no_evidence" else found


class IdentityProposal(BaseModel):
    """Whether two candidates are one substance, as far as the data show."""

    verdict: Literal["same", "different", "unsure"]
    reason: str = Field(min_length=1, max_length=600, description="one sentence")
    evidence: list[str] = Field(
        default_factory=list, max_length=8, description="passages of the texts, copied letter by letter"
    )


class ProposeIdentity(Skill[IdentityGiven, IdentityProposal]):
    """A model's view of an open pair. The offline answer is the rules' verdict, ``unsure`` where they have none."""

    name: ClassVar[str] = "propose_identity"
    version: ClassVar[str] = "1"
    output: ClassVar[type[BaseModel]] = IdentityProposal
    prompts: ClassVar[Prompts | None] = Prompts(__package__, "propose_identity")

    def values(self, given: IdentityGiven) -> dict[str, Quoted]:
        """Names and texts come from pages: all of it is quoted."""
        return {
            "first": Quoted.as_json(given.first.shown(), "candidate"),
            "first_contexts": Quoted("\n".join(given.first.contexts), "texts"),
            "second": Quoted.as_json(given.second.shown(), "candidate"),
            "second_contexts": Quoted("\n".join(given.second.contexts), "texts"),
        }

    def check(self, given: IdentityGiven, answer: IdentityProposal) -> Verdict:
        """No ``same`` against a hard block; evidence stands in the texts; no number from memory; language right."""
        problems = []
        if answer.verdict == "same" and (why := forbidden(given)):
            problems.append(f"{_FORBIDDEN}: {why}")
        problems += _evidence_problems(given, answer)
        known = {
            part
            for text in _texts(given)
            for number in numbers_in(text)
            for part in (number, *_PARTS.split(number))
        }
        foreign = [number for number in numbers_in(answer.reason) if number not in known]
        if foreign:
            problems.append(f"the reason has numbers that the data do not give: {', '.join(foreign)}")
        problems += filter(None, [wrong_language(answer.reason, given.language)])
        return Verdict.ask_again(*problems) if problems else ACCEPT

    def offline(self, given: IdentityGiven) -> IdentityProposal:
        """The rules' verdict and nothing else, said to be theirs."""
        ruled = given.ruled
        verdict, zh, en = _RULED[ruled.kind]
        said = f"按规则 {ruled.rule}：{zh}。" if given.language == "zh" else f"By rule {ruled.rule}: {en}."
        return IdentityProposal(verdict=verdict, reason=said)


_RULED: Mapping[str, tuple[Literal["same", "different", "unsure"], str, str]] = {
    "merge": ("same", "认定为同一物质", "they are one substance"),
    "link": ("different", "一种是另一种的溶液或其他形态，不得合并", "one is a solution or another form of the other"),
    "apart": ("different", "不得合并", "they must not be merged"),
    "review": ("unsure", "规则不足以判断", "the rules cannot tell"),
}  # fmt: skip


def forbidden(given: IdentityGiven) -> str:
    """Why the two must not be called the same, "" where nothing forbids it.

    The rules' own verdict comes first; where they have none, the hard blocks are
    applied to all names, formulae are compared, and so is where the names lead.
    """
    one, two = given.first, given.second
    ruled = given.ruled
    if ruled.kind == "merge":
        return ""
    held_back = "_other_" in ruled.rule or ruled.rule == "id_against_name"
    if ruled.kind in ("apart", "link") or held_back:
        return f"{ruled.rule} ({ruled.why})"
    block = structural_block(one.name, two.name)
    if block:
        return f"{block} of the names {one.name!r} and {two.name!r} differs"
    pairs = [(a, b) for a in one.names for b in two.names if language_of(a) == language_of(b)]
    blocks = [structural_block(a, b) for a, b in pairs]
    if blocks and all(blocks):
        return f"{blocks[0]} of the names {pairs[0][0]!r} and {pairs[0][1]!r} differs"
    formulae = one.formula or as_formula(one.name), two.formula or as_formula(two.name)
    if all(formulae) and not one_composition(*formulae):
        return f"the formulae differ ({formulae[0]} and {formulae[1]})"
    left, right = ({candidate.cas} if candidate.cas else set(candidate.keys) for candidate in (one, two))
    if left and right and not left & right:
        return (
            f"the names lead to different substances ({', '.join(sorted(left))}; {', '.join(sorted(right))})"
        )
    return ""


def refusal(
    left: tuple[str, Sequence[Mention]], right: tuple[str, Sequence[Mention]], table: AliasTable
) -> str:
    """Why two entities (key, mentions) must not be merged by anybody, "" where nothing forbids it.

    People are held to what models are held to: trusted identifiers that differ, the
    hard blocks between all names, formulae. Without an override, since an identifier
    or an alias in the name repository proves a true synonym.
    """
    for _, mentions in (left, right):
        for mention in mentions:
            if why := disputed(mention.record, table):
                return f"the page contradicts itself: {why}"
    for kind, name in (("CAS numbers", "cas"), ("InChIKeys", "inchikey"), ("EC numbers", "ec")):
        ids = [{str(getattr(m.record, name)) for m in mentions} - {""} for _, mentions in (left, right)]
        if kind == "CAS numbers":
            ids = [
                found | ({key} if valid_cas(key) else set())
                for found, (key, _) in zip(ids, (left, right), strict=True)
            ]
        if all(ids) and ids[0] != ids[1]:
            return f"their {kind} differ ({', '.join(sorted(ids[0]))} and {', '.join(sorted(ids[1]))})"
    names = [sorted({n for m in mentions for n in (m.name, *m.names)}) for _, mentions in (left, right)]
    groups: dict[str, list[str]] = {}
    for name in names[1]:
        for mark in rivals(name):
            groups.setdefault(mark, []).append(name)
    for one in names[0]:
        for mark in rivals(one):
            for two in groups.get(mark, ()):
                block = contradiction(one, two) or (
                    structural_block(one, two) if mark.startswith("skeleton") else ""
                )
                if block:
                    return f"{block} of the names {one!r} and {two!r} differs"
    sides = [_profile(key, mentions, table) for key, mentions in (left, right)]
    return forbidden(IdentityGiven(*sides))


def _profile(key: str, mentions: Sequence[Mention], table: AliasTable) -> Candidate:
    """An entity as one candidate, called by the name that most documents use."""
    counts = Counter(mention.name for mention in mentions)
    name = min(counts, key=lambda n: (table.lookup(n) != key, -counts[n], len(n), n)) if counts else key
    one = [
        {str(getattr(m.record, kind)) for m in mentions} - {""}
        for kind in ("cas", "inchikey", "ec", "formula")
    ]
    cas, inchikey, ec, formula = (next(iter(found)) if len(found) == 1 else "" for found in one)
    leads = {k for n in counts for k in table.keys.get(normalise_name(n), ())}
    return Candidate(
        name=name,
        aliases=tuple(sorted({n for m in mentions for n in (m.name, *m.names)} - {name})),
        formula=formula,
        cas=key if valid_cas(key) else cas,
        inchikey=inchikey,
        ec=ec,
        mixture=key.startswith("mixture:"),
        keys=tuple(sorted(leads)),
        solution_of=next(filter(None, (table.dissolved(n) for n in sorted(counts))), ""),
    )


def _evidence_problems(given: IdentityGiven, answer: IdentityProposal) -> list[str]:
    sides = [[folded(text) for text in candidate.contexts] for candidate in (given.first, given.second)]
    problems = []
    found = [False, False]
    names_both = False
    for passage in answer.evidence:
        wanted = folded(passage)
        stands = [any(wanted in text for text in side) for side in sides]
        if len(wanted) < _LEAST_EVIDENCE or not any(stands):
            problems.append(f"this evidence is not a passage of the texts: {passage[:120]!r}")
            continue
        found = [a or b for a, b in zip(found, stands, strict=True)]
        names_both = names_both or _names_both(given, wanted.lower())
    if answer.verdict in ("unsure", _RULED[given.ruled.kind][0]):  # what the rules hold needs no passage
        return problems
    if not any(found):
        problems.append(f"{answer.verdict} needs evidence from the texts; without it answer unsure")
    elif answer.verdict == "same" and not all(found) and not names_both:
        problems.append("same needs evidence from the texts of both, or a passage that states both names")
    return problems


def _names_both(given: IdentityGiven, text: str) -> bool:
    """Whether a passage states a name of each; "二甲苯" alone does not state 甲苯 as well."""
    for one in given.first.names:
        for two in given.second.names:
            shorter, longer = sorted((folded(one).lower(), folded(two).lower()), key=len)
            if shorter != longer and longer in text and shorter in text.replace(longer, " "):
                return True
    return False


def _texts(given: IdentityGiven) -> list[str]:
    texts: list[str] = []
    for one in (given.first, given.second):
        texts += [*one.names, *one.contexts, one.formula, one.cas, one.ec, one.solution_of, *one.keys]
    return [*texts, given.ruled.rule]


# --- the review list ---------------------------------------------------------------

Place = tuple[str, str]
"""Document and name."""


@dataclass(frozen=True)
class Stated:
    """What a document says of a name: formulae and its own words, the telling ones first."""

    formulae: frozenset[str] = frozenset()
    contexts: tuple[str, ...] = ()


def stated(session: Session, places: Iterable[Place]) -> dict[Place, Stated]:
    """Formulae and proved quotes of kept assertions about names in documents."""
    wanted = set(places)
    documents = sorted({document for document, _ in wanted})
    found: dict[Place, list[tuple[int, int, str]]] = {place: [] for place in wanted}
    formulae: dict[Place, set[str]] = {place: set() for place in wanted}
    for at in range(0, len(documents), 500):
        query = (
            select(
                Assertion.document_id, Assertion.subject, Assertion.object, Assertion.relation, Assertion.properties,
                Assertion.start, Assertion.quote,
            )
            .where(Assertion.document_id.in_(documents[at : at + 500]), Assertion.state == "kept")
            .order_by(Assertion.assertion_id)
        )  # fmt: skip
        for row in session.execute(query):
            kind = str(row.properties.get("kind", ""))
            for place in {(row.document_id, row.subject), (row.document_id, row.object)} & wanted:
                found[place].append((_telling(row.relation, kind), row.start, " ".join(row.quote.split())))
                if (
                    row.relation == Relation.HAS_ALIAS
                    and kind == AliasKind.FORMULA
                    and place[1] == row.subject
                ):
                    formulae[place].add(row.object)
    return {
        place: Stated(
            frozenset(formulae[place]),
            tuple(dict.fromkeys(quote[:_CONTEXT_LIMIT] for _, _, quote in sorted(quotes)))[:_CONTEXTS],
        )
        for place, quotes in found.items()
    }


def _telling(relation: str, kind: str) -> int:
    """How much a statement tells of identity: names, then numbers, then properties, then the rest."""
    if relation == Relation.HAS_ALIAS:
        return 0 if kind in NAME_KINDS else 1
    return 2 if relation in {Relation.HAS_MEASUREMENT, Relation.HAS_COMPONENT, Relation.MEMBER_OF} else 3


def candidate(
    record: Record, table: AliasTable, aliases: Iterable[str] = (), said: Stated | None = None
) -> Candidate:
    """A mention with what the name repository and its document say of it."""
    said = said or Stated()
    others = sorted({name for name in aliases if normalise_name(name) != record.form})
    return Candidate(
        name=record.name,
        aliases=tuple(others),
        formula=next(iter(said.formulae)) if len(said.formulae) == 1 else record.formula,
        cas=record.cas,
        inchikey=record.inchikey,
        ec=record.ec,
        mixture=record.mixture,
        keys=tuple(sorted(table.keys.get(record.form, ()))),
        solution_of=table.dissolved(record.name),
        contexts=said.contexts,
    )


@dataclass(frozen=True)
class Proposal:
    """A remark for the review list, in ``words`` for people.

    ``verdict``: the model's; ``refused`` where it insisted on *same* against what
    forbids it, ``none`` where there was no other answer that held.
    """

    verdict: str
    words: str


def propose(models: Models, givens: Sequence[IdentityGiven]) -> list[Proposal]:
    """A model's proposals in order. Not to be called offline: the rules' verdict is in the list already.

    Raises what may pass or would meet every question alike (PlatformError).
    """
    skill = ProposeIdentity()
    proposals = []
    for given, answer in zip(givens, ask_many(models, skill, givens), strict=True):
        if isinstance(answer, Answer):
            made = answer.value
            passages = "".join(f" [{passage}]" for passage in made.evidence)
            proposals.append(
                Proposal(
                    made.verdict, _line(f"{answer.source} proposes {made.verdict}: {made.reason}{passages}")
                )
            )
        elif _FORBIDDEN in str(answer):
            words = f'a model\'s "same" was refused: {forbidden(given)}'
            proposals.append(Proposal("refused", _line(words)))
        else:
            proposals.append(Proposal("none", f"no proposal ({answer.reason})"))
    return proposals


def _line(text: str) -> str:
    """One line without control characters: it is shown in terminals."""
    plain = "".join(c if c.isprintable() else " " for c in text)
    return " ".join(plain.split())[:_SHOWN_LIMIT]
