"""One question through index, context and answer, with citations into the documents."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unicodedata import category

from sqlalchemy import select
from sqlalchemy.orm import Session

from chunking.answering import NOT_FOUND, AnswerIn, AnswerOut, AnswerQuestion, Passage, topic_terms
from chunking.evaluation.settings import EvaluationSettings, VectorSettings
from chunking.held import Held, held_denial, reaction_asked
from chunking.index import ChunkVectors, VectorIndex, lost_methods
from chunking.lexical import LexicalIndex
from chunking.matters import Asked, Lexicon
from chunking.records import ChunkRecord, ChunkSet, chunk_methods, load_chunks
from chunking.retrieval import Context, Forest, auto_merge, ranked_by, take
from chunking.scopes import scopes
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
_OTHER = {"zh": "en", "en": "zh"}
_FROM_OTHER = {
    "zh": "以下内容出自英文页面，为其原文：",
    "en": "The following is from pages in Chinese, in their own words:",
}
_LIMITED = {
    "zh": "问题限定为：{}。没有页面就此作答；其他情形的内容不作为答案。",
    "en": "The question is limited to: {}. No page answers it for that; what holds elsewhere is not given as the answer.",
}
_MEDIA = frozenset(
    {"7732-18-5"}
)  # water: what something dissolves in or is put out with, beside another substance
_REACT = re.compile(r"反应|反應|作用|react|incompatib|禁配|禁忌", re.IGNORECASE)
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
    ``note``: that the answer rests on pages in the other language, or that there is none for the
    country, year or strength that the question is limited to; else "".
    """

    question: str
    answer: str
    source: str
    found: bool
    citations: tuple[Citation, ...]
    method: str
    retrieval: dict[str, Any]
    refused: str = ""
    note: str = ""

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
    mentioned = titles.subjects.mentioned(question)
    matters = _matters(mentioned)
    wanted = frozenset().union(*matters)
    passages = tuple(
        Passage(forest.text(node), title_of.get(node.document_id, ""), titles.about(node.document_id, wanted))
        for node in context.nodes
    )
    several = dict.fromkeys(matters) if not _subject(mentioned) else ()
    each = tuple(titles.subjects.names(keys) for keys in several) if len(several) > 1 else ()
    given = AnswerIn(question, language, passages, names=titles.subjects.names(wanted), each=each)
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
    lexicon: Lexicon | None = None,
    progress: Callable[[str], None] = lambda doing: None,
) -> Reply:
    """Answer from the built knowledge base; from pages in the other language where those in the question's have none.

    ``lexicon``: labels of data sheets in both languages, by which the question is put into
    the words of the sheets. ``progress`` is told what is being done.
    Raises TerminalError where there are no chunks yet, SettingsError for an
    unknown method or an empty question; errors of index and model pass through.
    """
    question = "".join(
        c for c in " ".join(question.split()) if category(c) not in ("Cc", "Cf")
    )  # unseen in a word
    if not question:
        raise SettingsError("the question is empty")
    progress("reading the chunks")
    with catalogue.reading() as session:
        label = _label(session, method)
        chunks = load_chunks(session, label.removesuffix(MERGED))
        subjects = Subjects.load(session)
        rows = session.execute(select(Document.document_id, Document.language))
        languages = {key: str(code) for key, code in rows}
    budget = budget or settings.budget
    progress("indexing their words")
    lexical = LexicalIndex(chunks, form=settings.index_text, titles=settings.index_title)
    vectors = ChunkVectors(models, vector_settings, settings.index_text, titles=settings.index_title)
    progress("searching")
    dense = _dense(question, chunks, vectors, settings, vector_settings, data_dir)
    pages = _Pages(
        chunks, lexical, Forest(chunks.nodes, models.count_tokens, settings.context_text),
        TitleSubjects(subjects, chunks.titles), languages, dense, label, budget, settings,
    )  # fmt: skip
    language, subject = language_of(question), _subject(subjects.mentioned(question))
    named = subjects.named(question)
    asked = lexicon.asked(question, subjects.names(subject or named)) if lexicon is not None else None
    if asked is not None and not subject:
        asked = replace(asked, matters=())
    offline = models.is_offline(AnswerQuestion.name)
    reaction = reaction_asked(question) is not None

    def attempt(search: _Search) -> _Attempt:
        form, context = pages.found(search, subject)
        given = answer_input(question, language, context, pages.forest, lexical, pages.titles, chunks.titles)
        given = replace(given, asked=asked, only_labelled=search.only_labelled)
        value, refused = _answer(given, models)
        if offline and reaction and not _REACT.search("".join(quote.quote for quote in value.quotes)):
            value = AnswerOut(found=False, answer="")  # words on water alone do not say what reacts with it
        with catalogue.reading() as session:
            citations = _citations(session, value, context.nodes) if value.found else ()
        return _Attempt(form, context, value, pages.placed(citations), refused)

    used = {"form": "fact", "embedder": None, "budget": budget, "tokens": 0,
            "counter": models.token_counter_name, "chunks": 0, "merges": 0}  # fmt: skip
    by_fact = Reply(question, "", "offline", True, (), label, used)
    progress("answering")
    if offline and (reply := _of_denial(catalogue, by_fact, subjects, chunks, languages)):
        return reply
    made = _first_answer(attempt, _searches(question, language, asked, offline=offline))
    lost = not offline and not made.found and not made.refused
    if lost and (reply := _of_denial(catalogue, by_fact, subjects, chunks, languages)):
        return reply
    text = made.value.answer if made.found else NOT_FOUND[language]
    if made.refused:
        text = _REFUSED[language].format(made.refused)
    retrieval = {
        "form": made.form,
        "embedder": None if made.form == "lexical" else vectors.name,
        "budget": budget,
        "tokens": made.context.tokens,
        "counter": models.token_counter_name,
        "chunks": len(made.context.nodes),
        "merges": made.context.merges,
    }
    note = _note(language, made.citations, languages)
    if not made.found and not made.refused and (limits := scopes(question)):
        note = _LIMITED[language].format("、".join(limits) if language == "zh" else ", ".join(limits))
    source = "offline" if offline else "model"
    return Reply(question, text, source, made.found, made.citations, label, retrieval, made.refused, note)


def _note(language: str, citations: Sequence[Citation], languages: Mapping[str, str]) -> str:
    """That all citations are from pages in the other language, else ""."""
    cited = {languages.get(citation.document_id, "")[:2] for citation in citations}
    return _FROM_OTHER[language] if cited == {_OTHER[language]} else ""


@dataclass(frozen=True)
class _Search:
    """One way to look for an answer.

    ``pages``: only pages in this language that are about the substance asked for; "" where any page will do.
    ``only_labelled``: the rules take nothing but what stands under a label of what is asked for.
    """

    words: str
    pages: str = ""
    only_labelled: bool = False


@dataclass(frozen=True)
class _Pages:
    """The chunks of a method, and how one question's searches go through them. ``dense``: its ranking by meaning."""

    chunks: ChunkSet
    lexical: LexicalIndex
    forest: Forest
    titles: TitleSubjects
    languages: Mapping[str, str]
    dense: list[str] | None
    label: str
    budget: int
    settings: EvaluationSettings

    def found(self, search: _Search, subject: frozenset[str]) -> tuple[str, Context]:
        """The form of retrieval and the context of a search."""
        if not search.pages:
            form = "lexical" if self.dense is None else self.settings.retrieval
            by_words = self.lexical.search([search.words], self.settings.top_k)[0]
            ranked = ranked_by(form, {0: by_words}, {0: self.dense or []}, 0, self.settings.dense_weight)
            return form, self._context(ranked)
        ranked = [
            key for key in self.lexical.scores(search.words) if self._about(key, search.pages, subject)
        ][: self.settings.top_k]
        # what stands under a label may go on in the next chunk
        ranked = [further for key in ranked for further in (key, *self._following.get(key, ()))]
        context = self._context(ranked)
        return "lexical", replace(context, nodes=_joined(context.nodes))

    def placed(self, citations: tuple[Citation, ...]) -> tuple[Citation, ...]:
        """Citations with the chunk that they begin in, where several were read as one piece."""
        return tuple(
            replace(
                citation,
                chunk_id=next(
                    (
                        leaf.chunk_id
                        for leaf in self.chunks.leaves
                        if leaf.document_id == citation.document_id
                        and leaf.start <= citation.start < leaf.end
                    ),
                    citation.chunk_id,
                ),
            )
            if self.forest.nodes[citation.chunk_id].leaf
            else citation
            for citation in citations
        )

    def _context(self, ranked: list[str]) -> Context:
        return build_context(ranked, self.forest, self.label, self.budget, strict=self.settings.strict_merge)

    def _about(self, key: str, language: str, subject: frozenset[str]) -> bool:
        document = self.forest.nodes[key].document_id
        written = self.languages.get(document, "")
        return written.startswith(language) and self.titles.about(document, subject) is True

    @cached_property
    def _following(self) -> Mapping[str, tuple[str]]:
        return {
            left.chunk_id: (right.chunk_id,)
            for left, right in pairwise(self.chunks.leaves)
            if left.document_id == right.document_id and left.end == right.start
        }


@dataclass(frozen=True)
class _Attempt:
    """What a search came to."""

    form: str
    context: Context
    value: AnswerOut
    citations: tuple[Citation, ...]
    refused: str

    @property
    def found(self) -> bool:
        return bool(self.citations)


def _subject(mentioned: list[frozenset[str]]) -> frozenset[str]:
    """The one substance that a question is about, none where it names two, or one name may be several.

    A label does not say whose value stands under it.
    """
    matters = _matters(mentioned)
    one = frozenset().union(*matters)
    several = len(set(matters)) > 1 or sum(not key.startswith(("mixture:", "name:")) for key in one) > 1
    return frozenset() if several else one


def _matters(mentioned: list[frozenset[str]]) -> list[frozenset[str]]:
    """The substances that a question is about: not the water that is put on them."""
    return [keys for keys in mentioned if not keys <= _MEDIA] or mentioned


def _searches(question: str, language: str, asked: Asked | None, *, offline: bool) -> list[_Search]:
    """The ways to look for an answer, in order; the first that finds one is the last.

    What stands under the very label is better than sentences that are like the question, and a value
    in prose of the question's language better than one in the other. A model reads for itself: it is
    given the pages in the other language when the first context holds no answer.
    """
    plain = _Search(question)
    if asked is None or not asked.matters:
        return [plain]
    own, other = (
        _Search(
            " ".join((*asked.words(pages), *(question,) * (pages == language))), pages, only_labelled=True
        )
        for pages in (language, _OTHER[language])
    )
    if not offline:
        return [plain, own, other]
    return [own, plain, other] if asked.measured else [own, other, plain]


def _first_answer(attempt: Callable[[_Search], _Attempt], searches: list[_Search]) -> _Attempt:
    """The first attempt that answers or is refused, else the first of all."""
    first = made = attempt(searches[0])
    for search in searches[1:]:
        if made.found or made.refused:
            break
        made = attempt(search)
    return made if made.found or made.refused else first


def _joined(nodes: Sequence[ChunkRecord]) -> list[ChunkRecord]:
    """Neighbours of one document as one piece, so that an instruction does not end where a chunk does."""
    found: list[ChunkRecord] = []
    for node in nodes:
        last = found[-1] if found else None
        if last is not None and last.document_id == node.document_id and last.end == node.start:
            found[-1] = replace(last, end=node.end, text=last.text + node.text, completed=None)
        else:
            found.append(node)
    return found


def _answer(given: AnswerIn, models: Models) -> tuple[AnswerOut, str]:
    """The answer, and why it was refused (then it is not found)."""
    nothing = AnswerOut(found=False, answer="")
    if not given.passages:
        return nothing, ""
    try:
        return models.run(AnswerQuestion(), given).value, ""
    except AnswerRejected as error:
        return nothing, str(error).removeprefix(f"{AnswerQuestion.name}: ")


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


def _of_denial(
    catalogue: Catalogue, blank: Reply, subjects: Subjects, chunks: ChunkSet, languages: Mapping[str, str]
) -> Reply | None:
    """The reply of held denials to a question of a reaction; None where it is another, or none is held."""
    language = language_of(blank.question)
    with catalogue.reading() as session:
        held = held_denial(session, blank.question, language, subjects)
        if held is None:
            return None
        cited = _cited(session, held, chunks)
    return replace(blank, answer=held.answer, citations=cited, note=_note(language, cited, languages))


def _cited(session: Session, held: Held, chunks: ChunkSet) -> tuple[Citation, ...]:
    """The quotes of held assertions, each with the chunk that it begins in ("" where no chunk has it)."""
    found: list[Citation] = []
    for fact in held.facts:
        document = session.get_one(Document, fact.document_id)
        chunk = next(
            (
                leaf.chunk_id
                for leaf in chunks.leaves
                if leaf.document_id == fact.document_id and leaf.start <= fact.start < leaf.end
            ),
            "",
        )
        found.append(
            Citation(
                fact.document_id, fact.version_id, document.url, document.title, fact.start, fact.end,
                fact.quote, chunk,
            )
        )  # fmt: skip
    return tuple(found)
