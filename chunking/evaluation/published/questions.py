"""The questions of a published set under one chunk method: contexts at token budgets, answers, studies.

The same retrieval, answerer and metrics as the stage ``evaluate`` (``chunking.evaluation.protocol``,
``chunking.evaluation.metrics``); what the texts of a set do not have (substances) is left out.
"""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from chunking.answering import AnswerQuestion
from chunking.asking import MERGED, TREE_METHODS, TitleSubjects, build_context, language_of
from chunking.evaluation import metrics
from chunking.evaluation.fact_coverage import FactsIn, JudgeIn, ListFacts, judge_answers
from chunking.evaluation.protocol import Answerer, answer_text
from chunking.evaluation.published.data import Benchmark, BenchmarkQuestion
from chunking.evaluation.settings import EvaluationSettings
from chunking.evaluation.studies import LEVELS, limited
from chunking.hichunk.levels import MAX_LEVEL
from chunking.index import ChunkVectors
from chunking.lexical import LexicalIndex
from chunking.records import UNCOMPLETED, ChunkSet, without_completion
from chunking.retrieval import Context, Forest, auto_merge, fuse
from chunking.subjects import Subjects
from models import Models
from models.errors import AnswerRejected

Progress = Callable[[str, int, int], None]
Column = list[float | None]


@dataclass(frozen=True)
class Asking:
    """What is done with the questions beside finding their evidence.

    ``answers``: answer them from the context of ``evaluation.budget``; ``every_budget``:
    from the contexts of all budgets (HiChunk, Fig. 3); ``facts``: also Fact-Cov;
    ``levels``: evidence by the deepest level of the tree (Fig. 4).
    """

    answers: bool = True
    every_budget: bool = False
    facts: bool = False
    levels: bool = False


@dataclass
class Asked:
    """Figures of a label, question by question (None: not defined there), in the order of ``subsets``."""

    columns: dict[str, Column] = field(default_factory=dict)
    levels: dict[str, Column] = field(default_factory=dict)
    subsets: list[str] = field(default_factory=list)
    refused: Counter[str] = field(default_factory=Counter)

    def put(self, name: str, value: float | None) -> None:
        """One more value of a figure."""
        self.columns.setdefault(name, []).append(value)


@dataclass(frozen=True)
class Asker:
    """Asks the questions of a set of the chunks of one method after the other."""

    benchmark: Benchmark
    models: Models
    settings: EvaluationSettings
    encoder: ChunkVectors
    asking: Asking
    progress: Progress
    facts: dict[tuple[str, str], tuple[str, ...]] = field(default_factory=dict)

    def ask(
        self, method: str, chunks_of: Callable[[str | None], ChunkSet], *, completes: bool
    ) -> dict[str, Asked]:
        """Figures by label: the method, its Auto-Merge form, and the method without its completed texts.

        ``chunks_of``: the chunks of one document, or of all (None); ``completes``: whether some are completed.
        """
        groups: dict[str | None, list[BenchmarkQuestion]] = {}
        for question in self.benchmark.questions:
            groups.setdefault(question.document, []).append(question)
        found: dict[str, Asked] = {}
        apart = completes and "completed" in (self.settings.index_text, self.settings.context_text)
        for variant in (False, True) if apart else (False,):
            label = method + UNCOMPLETED if variant else method
            done = 0
            for scope, questions in groups.items():
                chunks = without_completion(chunks_of(scope)) if variant else chunks_of(scope)
                self._group(label, chunks, questions, found)
                done += len(questions)
                self.progress(f"questions {label}", done, len(self.benchmark.questions))
        return found

    def _group(
        self, method: str, chunks: ChunkSet, questions: Sequence[BenchmarkQuestion], found: dict[str, Asked]
    ) -> None:
        settings = self.settings
        lexical = LexicalIndex(chunks, form=settings.index_text, titles=settings.index_title)
        forest = Forest(chunks.nodes, self.models.count_tokens, settings.context_text)
        titles = TitleSubjects(Subjects(()), chunks.titles)
        answerer = Answerer(lexical, forest, titles, chunks.titles, self.models)
        ranked = self._rankings(chunks, lexical, [question.question for question in questions])
        for label in [method, *([method + MERGED] if method in TREE_METHODS else [])]:
            asked = found.setdefault(label, Asked())
            asked.subsets += [question.subset for question in questions]
            contexts = [self._contexts(keys, forest, label) for keys in ranked]
            for question, by_budget in zip(questions, contexts, strict=True):
                self._found(question, by_budget, asked)
            if self.asking.answers and any(question.answers for question in questions):
                for budget in sorted(
                    {settings.budget, *(settings.budgets if self.asking.every_budget else ())}
                ):
                    self._answers(questions, [by[budget] for by in contexts], answerer, budget, asked)
            if self.asking.levels and label.endswith(MERGED):
                self._levels(chunks, questions, ranked, asked)

    def _rankings(self, chunks: ChunkSet, index: LexicalIndex, questions: Sequence[str]) -> list[list[str]]:
        """Ranked chunk ids in the retrieval form of the settings; dense search is exact."""
        settings = self.settings
        lexical: list[list[str]] = [[] for _ in questions]
        dense: list[list[str]] = [[] for _ in questions]
        if settings.retrieval != "dense":
            lexical = index.search(questions, settings.top_k)
        if settings.retrieval != "lexical":
            keys = [leaf.chunk_id for leaf in chunks.leaves]
            scores = self.encoder.questions(questions) @ self.encoder.chunks(chunks.leaves, chunks).T
            for at, row in enumerate(np.round(scores, 6)):
                dense[at] = [keys[i] for i in np.argsort(-row, kind="stable")[: settings.top_k]]
        if settings.retrieval == "hybrid":
            weights = [1.0, settings.dense_weight]
            return [fuse([a, b], weights) for a, b in zip(lexical, dense, strict=True)]
        return lexical if settings.retrieval == "lexical" else dense

    def _contexts(self, ranked: Sequence[str], forest: Forest, label: str) -> dict[int, Context]:
        settings = self.settings
        return {
            budget: build_context(list(ranked), forest, label, budget, strict=settings.strict_merge)
            for budget in sorted({settings.budget, *settings.budgets})
        }

    def _found(self, question: BenchmarkQuestion, contexts: Mapping[int, Context], asked: Asked) -> None:
        for budget, context in contexts.items():
            # None where no evidence was found in the texts: counted apart, not as a miss
            recall = metrics.evidence_recall(question.regions, context.spans())
            asked.put(f"evidence_recall@{budget}", recall)
            asked.put(f"answer_in_context@{budget}", answer_recall(question.answers, context.text))
            if budget == self.settings.budget:
                substring = (
                    None if recall is None else metrics.substring_recall(question.evidence, context.text)
                )
                asked.put("substring_recall", substring)
                asked.put("context_tokens", float(context.tokens))

    def _answers(
        self,
        questions: Sequence[BenchmarkQuestion],
        contexts: Sequence[Context],
        answerer: Answerer,
        budget: int,
        asked: Asked,
    ) -> None:
        """Answers from one budget's contexts; those of questions without a reference are not asked for."""
        with_answer = [at for at, question in enumerate(questions) if question.answers]
        pairs = [(questions[at].question, language_of(questions[at].question)) for at in with_answer]
        replies = dict(zip(with_answer, answerer(pairs, [contexts[at] for at in with_answer]), strict=True))
        main = budget == self.settings.budget
        texts: list[str | None] = []
        for at, question in enumerate(questions):
            reply = replies.get(at)
            said = answer_text(reply)
            texts.append(said)
            figures = metrics.answer_figures(said or "", question.answers)
            if self.asking.every_budget:
                asked.put(f"rouge_l@{budget}", figures["rouge_l"])
            if not main:
                continue
            if isinstance(reply, AnswerRejected):
                asked.refused[reply.reason] += 1
            for name, value in figures.items():
                asked.put(name, value)
            asked.put("answered", float(said is not None) if question.answers else None)
        if self.asking.facts:
            covered = self._covered(questions, texts)
            for value in covered:
                if self.asking.every_budget:
                    asked.put(f"fact_coverage@{budget}", value)
                if main:
                    asked.put("fact_coverage", value)

    def _covered(
        self, questions: Sequence[BenchmarkQuestion], texts: Sequence[str | None]
    ) -> list[float | None]:
        """Share of the facts of the first reference that an answer covers, mean over the judge's draws."""
        new = [q for q in questions if q.answers and (q.question, q.answers[0]) not in self.facts]
        given = [FactsIn(q.question, q.answers[0], language_of(q.question)) for q in new]
        for question, reply in zip(new, self.models.run_many(ListFacts(), given), strict=True):
            listed = () if isinstance(reply, AnswerRejected) else tuple(reply.value.facts)
            self.facts[question.question, question.answers[0]] = listed
        judged = judge_answers(
            self.models,
            [
                JudgeIn(
                    self.facts[q.question, q.answers[0]] if q.answers else (),
                    text or "",
                    language_of(q.question),
                )
                for q, text in zip(questions, texts, strict=True)
            ],
        )
        return [item.share if any(item.draws) else None for item in judged]

    def _levels(
        self,
        chunks: ChunkSet,
        questions: Sequence[BenchmarkQuestion],
        ranked: Sequence[list[str]],
        asked: Asked,
    ) -> None:
        settings = self.settings
        for name, most in (*((str(level), level) for level in LEVELS), ("all", MAX_LEVEL)):
            forest = Forest(limited(chunks.nodes, most), self.models.count_tokens, settings.context_text)
            asked.levels.setdefault(name, []).extend(
                metrics.evidence_recall(
                    question.regions,
                    auto_merge(keys, forest, settings.budget, strict=settings.strict_merge).spans(),
                )
                for question, keys in zip(questions, ranked, strict=True)
            )


def answer_recall(answers: Sequence[str], context: str) -> float | None:
    """Share of a reference answer's different words that the context has; of several answers the best.

    Chinese words are looked for as strings, since the same characters are cut into
    words differently in different surroundings.
    """
    there = frozenset(metrics.words(context))
    plain = unicodedata.normalize("NFKC", context).casefold()
    shares = []
    for answer in answers:
        wanted = set(metrics.words(answer))
        if wanted:
            found = sum(word in there or (not word.isascii() and word in plain) for word in wanted)
            shares.append(found / len(wanted))
    return max(shares, default=None)


def answers_by(models: Models) -> str:
    """Who answers the questions: a model's identity, or ``offline``."""
    return models.identity(AnswerQuestion())
