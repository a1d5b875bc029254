"""What each step asks of models: its own code, run with models that ask nobody.

Steps that work on one document are rehearsed document by document. Questions
and answers depend on what earlier steps make: rewordings are rehearsed where the
graph already is what it will be, answers from contexts that fill the budget.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import structlog
from sqlalchemy import func, select

from chunking.answering import AnswerIn, AnswerQuestion, Passage
from chunking.asking import labels
from chunking.baselines import recursive
from chunking.evaluation.protocol import evaluation_questions
from chunking.qchunker.heads import heads_of
from corpus.catalogue.stores import CatalogueAnswers, CatalogueBatches, CatalogueVectors
from corpus.catalogue.tables import Document, Question
from corpus.documents import RefinedDocument, Section, refined
from corpus.errors import PlatformError
from corpus.headings import sections_of
from corpus.stages import Halt, Item, StageContext, Step
from flows.runtime import Runtime
from kg.qa.reword import RewordIn, RewordQuestion
from models.errors import ModelError
from models.estimate import Enough, Rehearsal, StandIn, Tally, by_rules
from models.skills import Skill

log = structlog.get_logger("hchem.estimate")

SKILLS: dict[str, tuple[str, ...]] = {
    "curate.score": ("score_document",),
    "curate.refine": ("refine_window",),
    "graph.extract": ("extract_assertions",),
    "graph.resolve": ("propose_identity",),
    "questions.generate": ("reword_question",),
    "chunks.qchunker": ("question_outline", "segment_text", "review_chunk", "complete_chunk"),
    "chunks.qchunker-slm": ("slm_generate", "slm_discriminate", "slm_refine"),
    "chunks.lumberchunker": ("find_shift",),
    "chunks.meta-chunker": ("meta_chunk",),
    "chunks.direct-llm": ("direct_chunk",),
    "chunks.hichunk": ("assign_levels",),
    "evaluate.score": ("answer_question",),
}
"""The steps that ask models, with their skills in the order of asking."""

BY_DOCUMENT = frozenset(step for step in SKILLS if step.split(".")[0] in ("curate", "graph", "chunks")) - {
    "graph.resolve"
}

INDEPENDENT = frozenset({"refine_window", "extract_assertions", "question_outline", "reword_question",
                         "review_chunk", "complete_chunk", "propose_identity"})  # fmt: skip
"""Skills whose questions about one document do not depend on each other's answers."""

FOLLOWS = {"complete_chunk": "review_chunk", "slm_refine": "slm_discriminate"}
"""Skills that are asked for a share of the answers of another."""

FOLLOWING_SHARE = 0.5
"""That share where the store has no history. The rules complete nine chunks of ten, a reviewer about half."""

QUESTIONS_PER_DOCUMENT = 40
"""Kept questions of a document (2,500 from 57 documents of the sample site), where there are none yet."""


_QUESTION = ("What is the flash point of acetone according to its safety data sheet?", "en")
_SAMPLE = 40  # questions that stand for all of them


def _generated(skill: Skill[Any, Any], given: Any) -> Any:
    """Heads of a plain split, since no rule stands for the fine-tuned model."""
    from chunking.qchunker.slm import Generated, GeneratedChunk
    from models.tokens import count_words

    heads = heads_of(given.text, recursive(given.text, given.size, count_words))
    return Generated(
        outline=["…"] * len(heads),
        chunks=[GeneratedChunk(question=at, head=head) for at, head in enumerate(heads, start=1)],
    )


def _unchanged(skill: Skill[Any, Any], given: Any) -> Any:
    """No shift in a window: the fewest windows that a document can need."""
    from chunking.prompted.lumber import Shift

    return Shift(id=None)


def _plain_pieces(given: Any) -> list[str]:
    from models.tokens import count_words

    return [given.text[start:end] for start, end in recursive(given.text, given.size, count_words)]


def _masked(skill: Skill[Any, Any], given: Any) -> Any:
    from chunking.prompted.mask import Masked

    return Masked(chunks=[f"{piece[:20]}[MASK]{piece[-20:]}" for piece in _plain_pieces(given)])


def _copied(skill: Skill[Any, Any], given: Any) -> Any:
    from chunking.prompted.direct import Copies

    return Copies(chunks=_plain_pieces(given))


def _incomplete(skill: Skill[Any, Any], given: Any) -> Any:
    from chunking.qchunker.slm import Discrimination

    return Discrimination(incomplete=True)


STAND_INS: dict[str, StandIn] = {
    "score_document": by_rules,
    "question_outline": by_rules,
    "segment_text": by_rules,
    "review_chunk": by_rules,
    "assign_levels": by_rules,
    "slm_generate": _generated,
    "slm_discriminate": _incomplete,
    "find_shift": _unchanged,
    "meta_chunk": _masked,
    "direct_chunk": _copied,
}
"""Answers that later questions depend on. The others are rejected, which every step survives."""


@dataclass(frozen=True)
class Source:
    """A document to rehearse. ``final`` False: its text will change first, the cleaned text stands in for it."""

    id: str
    final: bool = True


def _waiting(runtime: Runtime) -> Callable[[str], bool]:
    """Whether a question is in an open batch job."""
    batches = CatalogueBatches(runtime.catalogue)
    if not batches.jobs():
        return lambda key: False
    return lambda key: bool(batches.holders([key]))


class Rehearsing:
    """The steps of a run over models that ask nobody. Nothing is written."""

    def __init__(self, runtime: Runtime, context: StageContext) -> None:
        # ChunkScore of the result asks nothing and takes long
        chunks = runtime.settings.chunks.model_copy(update={"score": False})
        settings = runtime.settings.model_copy(update={"chunks": chunks})
        self.models = Rehearsal(
            settings.models,
            CatalogueAnswers(runtime.catalogue),
            CatalogueVectors(runtime.catalogue),
            stand_ins=STAND_INS,
            independent=INDEPENDENT,
            waits=_waiting(runtime),
        )
        self._context = replace(context, progress=lambda step, done, total: None, halt=Halt())
        self._runtime = replace(
            runtime, settings=settings, models=self.models, _stages={}, _graph=runtime.graph()
        )
        self.passed: dict[str, list[str]] = {}
        self.failed: dict[str, set[str]] = {}

    def close(self) -> None:
        """Give connections back."""
        self.models.close()

    def documents(self, step: str, sources: list[Source], *, first_only: bool = False) -> dict[str, Tally]:
        """Tallies by skill of a step that works on one document; one that fails counts nothing."""
        acting: Any = self._runtime.step(step)
        passed = self.passed.setdefault(step, [])
        for source in sources:
            self.models.begin()
            self.models.first_only = first_only
            try:
                if self._document(acting, source):
                    passed.append(source.id)
            except Enough:
                pass
            except Exception as error:  # noqa: BLE001 - what breaks here is told when the step itself runs
                log.debug("not estimated", step=step, item=source.id, error=repr(error))
                self.failed.setdefault(step, set()).add(source.id)
            finally:
                self.models.first_only = False
        return self._final(sources)

    def _final(self, sources: list[Source]) -> dict[str, Tally]:
        tallies = self.models.take()
        if not all(source.final for source in sources):
            for tally in tallies.values():
                tally.certain = 0
        return tallies

    def _document(self, step: Any, source: Source) -> bool:
        """Rehearse a step on a document; whether it would go on to the next step."""
        if step.name.startswith("curate."):
            return bool(step.process(self._context, Item(source.id, "")).state == "kept")
        document = self._refined(source)
        if step.name == "graph.extract":
            step.assertions(document)
        elif document.kind in self._runtime.settings.chunks.kinds:
            step.segmenter.run(document.text, step.method, document.language or None)
        return True

    def _refined(self, source: Source) -> RefinedDocument:
        with self._context.catalogue.reading() as session:
            document = refined(session.get_one(Document, source.id))
        if source.final and document.text:
            return document
        text = document.cleaned_text
        sections = tuple(Section(**section) for section in sections_of(text))
        return replace(document, text=text, sections=sections, blocks=())

    def barrier(self, step: str, items: list[Item]) -> dict[str, Tally] | None:
        """Tallies of a step that works on everything at once; None where it cannot be rehearsed now."""
        acting: Step = self._runtime.step(step)
        try:
            for item in items:
                self.models.begin()
                acting.process(self._context, item)
        except (PlatformError, ModelError) as error:  # the graph is away, or not what the catalogue says
            log.debug("not estimated", step=step, error=repr(error))
            self.models.take()
            return None
        return self.models.take()

    # --- what rests on things that are not there yet -----------------------------------------------------------

    def rewordings(self, documents: float) -> dict[str, Tally]:
        """Rewordings of as many questions as there are, or as ``documents`` let expect."""
        with self._context.catalogue.reading() as session:
            kept = select(Question.question, Question.language).where(Question.state == "kept")
            known = int(session.scalar(select(func.count()).select_from(kept.subquery())) or 0)
            rows = session.execute(kept.order_by(Question.question_id).limit(_SAMPLE)).all()
        total = known or round(documents * QUESTIONS_PER_DOCUMENT)
        asked = [(text, language) for text, language in rows] or [_QUESTION]
        self.models.begin()
        for text, language in asked:
            given = RewordIn(text, language, (text[: len(text) // 2],), (), False)
            self._projected(RewordQuestion(), given)
        return self._scaled(total / len(asked))

    def answers(self) -> dict[str, Tally]:
        """Answers of every method to every question, from contexts that fill the budget."""
        settings = self._runtime.settings
        budget = settings.evaluation.budget
        with self._context.catalogue.reading() as session:
            questions = evaluation_questions(
                session, settings.evaluation.max_questions, settings.evaluation.seed
            )
            texts = session.scalars(
                select(Document.cleaned_text)
                .where(Document.cleaned_text != "")
                .order_by(Document.document_id)
                .limit(20)
            ).all()
        asked = [(q.question, q.language) for q in questions[:_SAMPLE]] or [_QUESTION]
        context = self._filled("\n".join(texts) or _QUESTION[0], budget)
        self.models.begin()
        for number, (text, language) in enumerate(asked):
            # a number before each context keeps contexts apart, as they are for different questions
            passages = (Passage(f"{number} {context}"),)
            self._projected(AnswerQuestion(), AnswerIn(text, language, passages))
        methods = len(labels(list(settings.chunks.methods)))
        if settings.chunks.completion and "completed" in (
            settings.evaluation.index_text,
            settings.evaluation.context_text,
        ):  # those that complete chunks are asked once more without that
            methods += len({"qchunker", "qchunker-slm"} & set(settings.chunks.methods))
        total = methods * (len(questions) or settings.evaluation.max_questions)
        return self._scaled(total / len(asked))

    def _filled(self, text: str, tokens: int) -> str:
        """The longest beginning of a text, repeated where it is short, within so many tokens."""
        text *= 1 + tokens // max(self.models.count_tokens(text), 1)
        return text[
            : bisect_right(range(len(text)), tokens, key=lambda at: self.models.count_tokens(text[:at]))
        ]

    def _projected(self, skill: Skill[Any, Any], given: Any) -> None:
        if not self.models.is_offline(skill.name):
            self.models.run_many(skill, [given])

    def _scaled(self, factor: float) -> dict[str, Tally]:
        found = {}
        for name, tally in self.models.take().items():
            found[name] = Tally(name, tally.model)
            found[name].add(tally, factor)
            found[name].certain = found[name].stored = 0
        return found
