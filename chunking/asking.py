"""One question through index, context and answer, with citations into the documents."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from chunking.answering import NOT_FOUND, AnswerIn, AnswerOut, AnswerQuestion, Passage, topic_terms
from chunking.evaluation.settings import EvaluationSettings, VectorSettings
from chunking.index import ChunkVectors, VectorIndex, lost_methods
from chunking.lexical import LexicalIndex
from chunking.records import ChunkRecord, ChunkSet, chunk_methods, load_chunks
from chunking.retrieval import Context, Forest, auto_merge, ranked_by, take
from chunking.subjects import Subjects
from corpus.catalogue import Catalogue
from corpus.catalogue.tables import Document, Evaluation
from corpus.errors import SettingsError, TerminalError, TransientError
from models.errors import AnswerRejected

if TYPE_CHECKING:
    from models import Models

MERGED = "+am"  # of a method's label: with Auto-Merge
TREE_METHODS = frozenset({"hichunk"})
_REFUSED = {
    "zh": "模型的回答未通过检查，已被拒绝，不予显示。原因：{}",
    "en": "The model's answer failed its check and was refused; it is not shown. Reason: {}",
}
_PREFERRED = (
    "hichunk+am",
    "hichunk",
    "qchunker",
    "qchunker-slm",
    "sentence",
    "recursive",
    "semantic",
    "meta-chunker",
    "lumberchunker",
    "direct-llm",
    "fixed",
)
_CJK = re.compile(r"[\u3400-\u9fff\uf900-\ufaff]")


@dataclass(frozen=True)
class Citation:
    """Words of a document: ``quote`` is exactly ``text[start:end]`` of that version's refined text."""

    document_id: str
    version_id: str
    url: str
    title: str
    start: int
    end: int
    quote: str
    chunk_id: str


@dataclass(frozen=True)
class Reply:
    """An answer with what it rests on. ``source``: ``offline`` or ``model``.

    ``refused``: why the model's answer failed its check; ``answer`` then says so, and is not the model's.
    """

    question: str
    answer: str
    source: str
    found: bool
    citations: tuple[Citation, ...]
    method: str
    retrieval: dict[str, Any]
    refused: str = ""

    def as_dict(self) -> dict[str, Any]:
        """Plain data for ``hchem ask --json``."""
        return asdict(self)


def language_of(question: str) -> str:
    """``zh`` where the question has a Chinese character, else ``en``."""
    return "zh" if _CJK.search(question) else "en"


class TitleSubjects:
    """Which substances the titles of documents name; each title is read once."""

    def __init__(self, subjects: Subjects, titles: Mapping[str, str]) -> None:
        self.subjects = subjects
        self._titles = titles
        self._named: dict[str, frozenset[str]] = {}

    def about(self, document_id: str, wanted: frozenset[str]) -> bool | None:
        """Whether a document is about one of the substances; None where its title names none."""
        if document_id not in self._named:
            self._named[document_id] = self.subjects.named(self._titles.get(document_id, ""))
        named = self._named[document_id]
        return bool(named & wanted) if named and wanted else None


def answer_input(
    question: str,
    language: str,
    context: Context,
    forest: Forest,
    lexical: LexicalIndex,
    titles: TitleSubjects,
    title_of: Mapping[str, str],
) -> AnswerIn:
    """What the answerer is given: one passage per node of the context."""
    wanted = titles.subjects.named(question)
    passages = tuple(
        Passage(forest.text(node), title_of.get(node.document_id, ""), titles.about(node.document_id, wanted))
        for node in context.nodes
    )
    given = AnswerIn(question, language, passages, names=titles.subjects.names(wanted))
    return replace(given, weights=lexical.weights(topic_terms(given)))


def build_context(ranked: list[str], forest: Forest, label: str, budget: int, *, strict: bool) -> Context:
    """The context of a method's label: ``…+am`` merges, the others take leaves."""
    if label.endswith(MERGED):
        return auto_merge(ranked, forest, budget, strict=strict)
    return take(ranked, forest, budget)


def ask(
    catalogue: Catalogue,
    question: str,
    models: Models,
    settings: EvaluationSettings,
    vector_settings: VectorSettings,
    data_dir: Path,
    *,
    method: str | None = None,
    budget: int | None = None,
) -> Reply:
    """Answer from the built knowledge base.

    Raises TerminalError where there are no chunks yet, SettingsError for an
    unknown method or an empty question; errors of index and model pass through.
    """
    question = question.strip()
    if not question:
        raise SettingsError("the question is empty")
    with catalogue.reading() as session:
        label = _label(session, method)
        chunks = load_chunks(session, label.removesuffix(MERGED))
        subjects = Subjects.load(session)
    budget = budget or settings.budget
    lexical = LexicalIndex(chunks, form=settings.index_text, titles=settings.index_title)
    vectors = ChunkVectors(models, vector_settings, settings.index_text, titles=settings.index_title)
    dense = _dense(question, chunks, vectors, settings, vector_settings, data_dir)
    form = "lexical" if dense is None else settings.retrieval
    by_words = lexical.search([question], settings.top_k)[0]
    ranked = ranked_by(form, {0: by_words}, {0: dense or []}, 0, settings.dense_weight)
    forest = Forest(chunks.nodes, models.count_tokens, settings.context_text)
    context = build_context(ranked, forest, label, budget, strict=settings.strict_merge)
    language = language_of(question)
    titles = TitleSubjects(subjects, chunks.titles)
    given = answer_input(question, language, context, forest, lexical, titles, chunks.titles)
    value, source, refused = _answer(given, models)
    with catalogue.reading() as session:
        citations = _citations(session, value, context.nodes)
    retrieval = {
        "form": form,
        "embedder": None if dense is None else vectors.name,
        "budget": budget,
        "tokens": context.tokens,
        "counter": models.token_counter_name,
        "chunks": len(context.nodes),
        "merges": context.merges,
    }
    found = value.found and bool(citations)
    text = value.answer if found else NOT_FOUND[language]
    if refused:
        text = _REFUSED[language].format(refused)
    return Reply(question, text, source, found, citations if found else (), label, retrieval, refused)


def _answer(given: AnswerIn, models: Models) -> tuple[AnswerOut, str, str]:
    """The answer, who gave it, and why it was refused (then it is not found)."""
    source = "offline" if models.is_offline(AnswerQuestion.name) else "model"
    nothing = AnswerOut(found=False, answer="")
    if not given.passages:
        return nothing, source, ""
    try:
        return models.run(AnswerQuestion(), given).value, source, ""
    except AnswerRejected as error:
        return nothing, source, str(error).removeprefix(f"{AnswerQuestion.name}: ")


def _dense(
    question: str,
    chunks: ChunkSet,
    vectors: ChunkVectors,
    settings: EvaluationSettings,
    vector_settings: VectorSettings,
    data_dir: Path,
) -> list[str] | None:
    """The vector index's ranking; None where retrieval is lexical.

    Hybrid retrieval does without it where the index is not built yet or in use
    by a running refresh; the reply names the form that was used.
    """
    if settings.retrieval == "lexical":
        return None
    hybrid = settings.retrieval == "hybrid"
    if hybrid and lost_methods(vector_settings, data_dir, vectors.name, [chunks.method]):
        return None
    try:
        with VectorIndex(vector_settings, data_dir) as index:
            return index.search(chunks.method, vectors.questions([question]), settings.top_k, vectors.name)[0]
    except TransientError as error:
        if hybrid and error.reason in ("index_lost", "index_busy"):
            return None
        raise


def labels(methods: list[str]) -> list[str]:
    """Methods with the Auto-Merge form of those that have a tree."""
    return sorted([*methods, *(method + MERGED for method in methods if method in TREE_METHODS)])


def _label(session: Session, wanted: str | None) -> str:
    """The method asked for, or the one with the best evidence recall so far."""
    known = labels(chunk_methods(session))
    if not known:
        raise TerminalError(
            "there is no knowledge base yet: run hchem refresh first", reason="no_knowledge_base"
        )
    if wanted is not None:
        if wanted not in known:
            raise SettingsError(f"unknown chunk method {wanted!r}; there are: {', '.join(known)}")
        return wanted
    best = session.scalars(
        select(Evaluation.method)
        .where(
            Evaluation.table == "main", Evaluation.metric == "evidence_recall", Evaluation.value.is_not(None)
        )
        .order_by(Evaluation.value.desc(), Evaluation.method)
    )
    return next((label for label in [*best, *_PREFERRED] if label in known), known[0])


def _citations(session: Session, value: AnswerOut, nodes: list[ChunkRecord]) -> tuple[Citation, ...]:
    """Quotes as spans of the documents; words that only a completed text has cannot be cited."""
    found: list[Citation] = []
    for quote in value.quotes:
        node = nodes[quote.passage - 1]
        at = node.text.find(quote.quote)
        document = session.get(Document, node.document_id)
        if at < 0 or document is None or document.version_id != node.version_id:
            continue
        start, end = node.start + at, node.start + at + len(quote.quote)
        if document.text[start:end] != quote.quote:
            continue
        found.append(
            Citation(
                document_id=node.document_id,
                version_id=node.version_id,
                url=document.url,
                title=document.title,
                start=start,
                end=end,
                quote=quote.quote,
                chunk_id=node.chunk_id,
            )
        )
    return tuple(found)
