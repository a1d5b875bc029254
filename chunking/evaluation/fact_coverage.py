"""Fact-Cov: which facts of the reference answer an answer covers (HiCBench; Xiang et al., GraphRAG-Bench).

``list_facts`` takes a reference answer apart, ``judge_facts`` labels each fact for
an answer, ``fact_coverage`` makes figures of the labels. The share is always
taken of the facts that were listed: a judge that omits labels gains nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from statistics import fmean, pstdev
from typing import TYPE_CHECKING, Any, ClassVar

from pydantic import BaseModel, Field

from chunking.evaluation.metrics import normalised
from chunking.grounding import (
    absent_numbers,
    clauses,
    figures,
    polarity_changed,
    statements,
    states,
    unproved,
    unstated,
)
from models.errors import AnswerRejected
from models.languages import wrong_language
from models.prompts import Prompts, Quoted
from models.skills import ACCEPT, Skill, Verdict

if TYPE_CHECKING:
    from models import Models

# --- the facts of an answer ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class FactsIn:
    """A question and its reference answer."""

    question: str
    answer: str
    language: str


class FactList(BaseModel):
    """Facts that can be checked one by one, without the others."""

    facts: list[str] = Field(description="statements of the answer, each complete in itself")


class ListFacts(Skill[FactsIn, FactList]):
    """Reference answer to its atomic facts. Offline: its clauses."""

    name: ClassVar[str] = "list_facts"
    version: ClassVar[str] = "2"
    output: ClassVar[type[BaseModel]] = FactList
    prompts: ClassVar[Prompts | None] = Prompts(__package__, "list_facts")

    def values(self, given: FactsIn) -> dict[str, int | Quoted]:
        """Question and answer; both may come from a model."""
        return {"question": Quoted(given.question, "question"), "answer": Quoted(given.answer, "answer")}

    def check(self, given: FactsIn, answer: FactList) -> Verdict:
        """No figure, name, property, class or denial that the answer does not have; none of its figures lost; no fact twice."""
        problems = []
        facts = [fact.strip() for fact in answer.facts]
        if not any(facts) and clauses(given.answer):
            problems.append("there is no fact")
        if len({normalised(fact) for fact in facts}) < len(facts) or "" in facts:
            problems.append("a fact is empty or given twice")
        for fact in facts:
            if stray := unstated(fact, [given.answer, given.question]):
                problems.append(f"the answer does not state {', '.join(stray)}: {fact[:80]!r}")
            if changed := polarity_changed(fact, given.answer):
                problems.append(f"a negation was lost or added: {changed[0][:80]!r}")
            problems += unproved(fact, given.answer, asked=given.question)
        lost = figures(given.answer) - figures(given.question) - frozenset().union(*map(figures, facts))
        if lost:
            problems.append(f"no fact has {', '.join(sorted(lost))}")
        if wrong := wrong_language(" ".join(facts), given.language):
            problems.append(wrong)
        return Verdict.ask_again(*problems[:10]) if problems else ACCEPT

    def offline(self, given: FactsIn) -> FactList:
        """Sentences and parts between semicolons; enumerated values one by one."""
        return FactList(facts=_clause_facts(given.answer))


def _clause_facts(answer: str) -> list[str]:
    """A comma parts facts only where each part has a figure of its own: a condition stays with its result."""
    facts: dict[str, str] = {}
    for statement in statements(answer):
        parts = clauses(statement)
        apart = len(parts) > 1 and all(map(figures, parts))
        for fact in parts if apart else [statement]:
            facts.setdefault(normalised(fact), fact)
    return list(facts.values())


# --- which of them an answer covers --------------------------------------------------------------------------


@dataclass(frozen=True)
class JudgeIn:
    """The facts of a reference answer, and the answer under judgement."""

    facts: tuple[str, ...]
    answer: str
    language: str


class FactLabel(BaseModel):
    """Whether the answer states a fact, by the fact's number from 1."""

    fact: int = Field(description="number of the fact, from 1")
    covered: bool = Field(description="whether the answer states it, with its values and negations")


class Judgement(BaseModel):
    """A label for every fact."""

    labels: list[FactLabel]


class JudgeFacts(Skill[JudgeIn, Judgement]):
    """Facts and an answer to a label for each fact. Offline: the fact's words stand in the answer."""

    name: ClassVar[str] = "judge_facts"
    version: ClassVar[str] = "1"
    output: ClassVar[type[BaseModel]] = Judgement
    prompts: ClassVar[Prompts | None] = Prompts(__package__, "judge_facts")

    def values(self, given: JudgeIn) -> dict[str, int | Quoted]:
        """The facts, shared by all answers to a question, then the answer."""
        facts = "\n".join(
            f"{number}. {' '.join(fact.split())}" for number, fact in enumerate(given.facts, start=1)
        )
        return {
            "facts": Quoted(facts, "facts"),
            "answer": Quoted(given.answer, "answer"),
            "count": len(given.facts),
        }

    def check(self, given: JudgeIn, answer: Judgement) -> Verdict:
        """Exactly one label for every fact; none is covered whose numbers the answer does not have."""
        numbers = [label.fact for label in answer.labels]
        wanted = range(1, len(given.facts) + 1)
        problems = []
        if missing := [number for number in wanted if number not in numbers]:
            problems.append(f"no label for fact {', '.join(map(str, missing))}")
        if stray := sorted({number for number in numbers if number not in wanted}):
            problems.append(f"there is no fact {', '.join(map(str, stray))}")
        if twice := sorted({number for number in numbers if numbers.count(number) > 1}):
            problems.append(f"several labels for fact {', '.join(map(str, twice))}")
        for label in answer.labels:
            absent = absent_numbers(given.facts[label.fact - 1], given.answer) if label.fact in wanted else []
            if label.covered and absent:
                problems.append(
                    f"fact {label.fact} is labelled covered, but the answer does not have {', '.join(absent)}"
                )
        return Verdict.ask_again(*problems[:10]) if problems else ACCEPT

    def offline(self, given: JudgeIn) -> Judgement:
        """Covered where clauses of the answer have the fact's words in order, as often denied, with its figures."""
        labels = [
            FactLabel(fact=number, covered=states(given.answer, fact))
            for number, fact in enumerate(given.facts, start=1)
        ]
        return Judgement(labels=labels)


def covered(count: int, judgement: Judgement) -> tuple[bool, ...]:
    """One verdict per fact: a fact without a label, or with labels that contradict each other, is not covered."""
    found: dict[int, bool] = {}
    for label in judgement.labels:
        found[label.fact] = label.covered and found.get(label.fact, True)
    return tuple(found.get(number, False) for number in range(1, count + 1))


# --- figures -------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Judged:
    """A question's draws: for each the verdict per fact, None where the judge's answer was rejected."""

    draws: tuple[tuple[bool, ...] | None, ...]

    def __post_init__(self) -> None:
        if len({len(draw) for draw in self.draws if draw is not None}) > 1:
            raise ValueError("the draws of one question judge different numbers of facts")

    @property
    def facts(self) -> int:
        """How many facts were judged."""
        return max((len(draw) for draw in self.draws if draw is not None), default=0)

    @property
    def share(self) -> float:
        """Mean share of covered facts over the draws that were accepted. Only where :attr:`facts` is above 0."""
        return fmean(sum(draw) / len(draw) for draw in self.draws if draw)


@dataclass(frozen=True)
class FactCoverage:
    """Fact-Cov over questions, in [0, 1].

    A question's share is the mean over its draws. ``macro`` is the mean over
    questions, ``micro`` weights them by their facts; the spreads are the standard
    deviations of both figures over the draws. Values are None without a judged
    fact, spreads with fewer than two draws. ``unjudged``: questions of which every draw was rejected; ``without_facts``:
    questions whose answer has no fact. Both are left out of the means.
    """

    macro: float | None
    micro: float | None
    macro_spread: float | None
    micro_spread: float | None
    questions: int
    facts: int
    draws: int
    rejected_draws: int
    unjudged: int
    without_facts: int

    def as_dict(self) -> dict[str, Any]:
        """Plain data."""
        return asdict(self)


def fact_coverage(items: Sequence[Judged]) -> FactCoverage:
    """Macro and micro Fact-Cov with their spread over draws (design hichunk, "Metrics")."""
    judged = [item for item in items if any(item.draws)]
    shares = [(item.share, item.facts) for item in judged]
    total = sum(facts for _, facts in shares)
    width = max((len(item.draws) for item in judged), default=0)
    draws = [[item.draws[n] for item in judged if len(item.draws) > n] for n in range(width)]
    present = [[verdicts for verdicts in draw if verdicts] for draw in draws]
    macros = [fmean(sum(each) / len(each) for each in draw) for draw in present if draw]
    micros = [sum(map(sum, draw)) / sum(map(len, draw)) for draw in present if draw]
    return FactCoverage(
        macro=fmean(share for share, _ in shares) if shares else None,
        micro=sum(share * facts for share, facts in shares) / total if total else None,
        macro_spread=pstdev(macros) if len(macros) > 1 else None,
        micro_spread=pstdev(micros) if len(micros) > 1 else None,
        questions=len(judged),
        facts=total,
        draws=width,
        rejected_draws=sum(draw is None for item in items for draw in item.draws),
        unjudged=sum(all(draw is None for draw in item.draws) for item in items),
        without_facts=sum(() in item.draws for item in items),
    )


def judge_answers(models: Models, asked: Sequence[JudgeIn]) -> list[Judged]:
    """Every answer judged in all draws of the skill (5 with a model, 1 by the rules), in order.

    Answers without facts are not asked about. Raises the errors of the model layer
    other than a rejected answer.
    """
    draws = range(models.draws(JudgeFacts.name))
    with_facts = [given for given in asked if given.facts]
    found = iter(models.run_many(JudgeFacts(), with_facts, draws=draws))
    judged = []
    for given in asked:
        if not given.facts:
            judged.append(Judged(((),)))
            continue
        answers = [next(found) for _ in draws]
        judged.append(
            Judged(
                tuple(
                    None if isinstance(answer, AnswerRejected) else covered(len(given.facts), answer.value)
                    for answer in answers
                )
            )
        )
    return judged
