"""Retrieval on a built knowledge base: is what is there worth its place?

    python benchmarks/retrieval.py fusion --data data --method sentence
    python benchmarks/retrieval.py automerge --data data [--questions FILE]
    python benchmarks/retrieval.py completion --data data

``fusion``: lexical, dense and hybrid retrieval. Prints for each form how often one of the
first k chunks touches the evidence, and the evidence recall of a context of ``--budget``
tokens with its paired difference to lexical retrieval.

``automerge``: FC200 (``sentence``), HC200 (``hichunk``) and HC200 with Auto-Merge at equal
token budgets, corpus-wide, on questions over sections of the same documents (T0, T1, T2:
``chunking.evaluation.hicbench``; what is asked and what is evidence is said there), by kind
and language, with where the evidence is lost. ``--questions FILE`` keeps them as JSON Lines
(written if it is not there) so that other settings are compared on the same ones.
``--control`` takes the questions of ``section_questions.jsonl`` instead, which were written and
given their evidence sentences by reading sections of the sample pages before anything had been
retrieved for them.

``completion``: chunks of ``qchunker`` indexed as they are and as completed, equal budget of
the same context text, on the section questions and on the catalogue's own questions.

Intervals are 95 % bootstrap ones, paired, with whole documents drawn.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import jieba
import numpy as np
from sqlalchemy import select

from chunking import lexical, terms
from chunking.evaluation.hicbench import KINDS, SourceDocument, section_questions
from chunking.evaluation.metrics import evidence_recall
from chunking.evaluation.protocol import EvaluationQuestion, evaluation_questions
from chunking.evaluation.settings import EvaluationSettings, IndexText, VectorSettings
from chunking.evaluation.statistics import Bootstrap, Estimate
from chunking.index import ChunkVectors
from chunking.lexical import LexicalIndex
from chunking.records import ChunkSet, load_chunks
from chunking.retrieval import Context, Forest, auto_merge, fuse, take
from chunking.sentences import split_sentences
from corpus.catalogue import Catalogue
from corpus.catalogue.stores import CatalogueVectors
from corpus.catalogue.tables import Document
from models import Models
from models.settings import EmbeddingSettings, ModelSettings

DEPTHS = (1, 5, 10, 20)
TOP = 64
RANKED = 128  # leaves that may fill a budget of 4,096 tokens; HiChunk ranks as many
BUDGETS = (256, 512, 1024, 2048, 3072, 4096)
BASELINE = "FC200"
BY_HAND = Path(__file__).resolve().parent / "section_questions.jsonl"

Values = list[float | None]


def main() -> None:
    """Run one part."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("part", choices=("fusion", "automerge", "completion"))
    parser.add_argument("--data", type=Path, default=Path("data"))
    parser.add_argument("--method", default="sentence", help="fusion: the chunk method")
    parser.add_argument("--limit", type=int, default=700, help="the catalogue's questions at most")
    parser.add_argument("--questions", type=Path, default=None, help="section questions, kept in this file")
    parser.add_argument("--control", action="store_true", help="section questions: the control set")
    parser.add_argument("--per-document", type=int, default=6, help="section questions of a kind at most")
    parser.add_argument("--seed", type=int, default=0, help="which sections are asked about")
    parser.add_argument(
        "--embedder", default=None, help="index embedder for whole chunks; unset: pooled sentences"
    )
    parser.add_argument("--budget", type=int, default=1424, help="fusion: tokens of context")
    options = parser.parse_args()
    catalogue = Catalogue.open(f"sqlite:///{(options.data / 'catalogue.db').resolve()}")
    models = Models(
        ModelSettings(api_key=None, embeddings=EmbeddingSettings(index=options.embedder)),
        vectors=CatalogueVectors(catalogue),
    )
    if options.part == "fusion":
        compare_fusion(catalogue, models, options.method, options.limit, options.budget)
        return
    if options.control:
        questions = control_questions(catalogue)
    else:
        questions = asked(catalogue, models, options.questions, options.per_document, options.seed)
    describe(questions)
    if options.part == "automerge":
        compare_merging(catalogue, models, questions)
    else:
        compare_completion(catalogue, models, questions, options.limit)


# --- fusion --------------------------------------------------------------------------------------------------


def compare_fusion(catalogue: Catalogue, models: Models, method: str, limit: int, budget: int) -> None:
    """Print one line per form of retrieval."""
    with catalogue.reading() as session:
        chunks = load_chunks(session, method)
        questions = evaluation_questions(session, limit, 0)
    questions = [question for question in questions if question.evidence]
    print(f"{len(chunks.leaves)} chunks ({method}), {len(questions)} questions with located evidence")
    texts = [question.question for question in questions]
    for titles in (False, True):
        began = time.monotonic()
        ranked = LexicalIndex(chunks, titles=titles).search(texts, TOP)
        report(
            f"BM25, characters and pairs, title {titles}", ranked, chunks, questions, time.monotonic() - began
        )
    jieba_ranked = with_jieba(chunks, texts)
    report("BM25, jieba words, title True", jieba_ranked, chunks, questions)
    began = time.monotonic()
    dense, name = by_vectors(chunks, texts, models, TOP)
    report(f"dense {name}", dense, chunks, questions, time.monotonic() - began)
    forms = {"lexical": ranked, "dense": dense}
    for weight in (1.0, 0.5, 0.25, 0.1):
        forms[f"hybrid, dense weight {weight}"] = [
            fuse([a, b], [1.0, weight]) for a, b in zip(ranked, dense, strict=True)
        ]
        report(f"hybrid, dense weight {weight}", forms[f"hybrid, dense weight {weight}"], chunks, questions)
    forest = Forest(chunks.nodes, models.count_tokens)
    bootstrap, groups = Bootstrap(1000, 0.95, 0), documents_of(questions)
    recalls = {
        name: [
            evidence_recall(question.evidence, take(keys, forest, budget).spans())
            for keys, question in zip(found, questions, strict=True)
        ]
        for name, found in forms.items()
    }
    for name, values in recalls.items():
        mean = bootstrap.mean(values, groups)
        print(
            f"{name:<28} evidence recall {mean.value:.3f}, "
            f"difference {signed(bootstrap.difference(values, recalls['lexical'], groups))}"
        )


def by_vectors(
    chunks: ChunkSet, texts: list[str], models: Models, top: int, form: IndexText = "completed"
) -> tuple[list[list[str]], str]:
    """Exact search; the same ranking as the index gives."""
    vectors = ChunkVectors(models, VectorSettings(), form)
    scores = vectors.questions(texts) @ vectors.chunks(chunks.leaves, chunks).T
    keys = [leaf.chunk_id for leaf in chunks.leaves]
    return [[keys[i] for i in np.argsort(-row, kind="stable")[:top]] for row in scores], vectors.name


def with_jieba(chunks: ChunkSet, texts: list[str]) -> list[list[str]]:
    """BM25 with jieba words in place of characters and pairs."""
    original = terms._pairs
    terms._chinese.cache_clear()
    terms._pairs = lambda run, singles: [w for w in jieba.cut(run) if not set(w) <= terms.STOP_CHARACTERS]
    try:
        return lexical.LexicalIndex(chunks).search(texts, TOP)
    finally:
        terms._pairs = original
        terms._chinese.cache_clear()


def report(
    name: str,
    ranked: list[list[str]],
    chunks: ChunkSet,
    questions: list[EvaluationQuestion],
    seconds: float = 0.0,
) -> None:
    """R@k: share of questions with a chunk among the first k that touches the evidence."""
    nodes = {leaf.chunk_id: leaf for leaf in chunks.leaves}
    line = []
    for depth in DEPTHS:
        hits = [
            any(
                nodes[key].document_id == document and nodes[key].start < end and start < nodes[key].end
                for key in keys[:depth]
                for document, start, end in question.evidence
            )
            for keys, question in zip(ranked, questions, strict=True)
        ]
        line.append(f"R@{depth} {np.mean(hits):.3f}")
    print(f"{name:<44} {'  '.join(line)}{f'  {seconds:.1f} s' if seconds else ''}")


# --- questions over sections ---------------------------------------------------------------------------------


def asked(
    catalogue: Catalogue, models: Models, place: Path | None, per_document: int, seed: int
) -> list[EvaluationQuestion]:
    """Section questions of the kept documents, or those of the file ``place``."""
    if place is not None and place.exists():
        rows = [json.loads(line) for line in place.read_text(encoding="utf-8").splitlines()]
        questions = [
            EvaluationQuestion(
                **row
                | {
                    "evidence": tuple((d, start, end) for d, start, end in row["evidence"]),
                    "quotes": tuple(row["quotes"]),
                }
            )
            for row in rows
        ]
    else:
        with catalogue.reading() as session:
            rows_of = session.scalars(
                select(Document).where(Document.state == "kept", Document.kind != "reference")
            )
            documents = [
                SourceDocument(
                    row.document_id, row.title, "zh" if row.language.startswith("zh") else "en", row.text
                )
                for row in rows_of
            ]
        made = section_questions(documents, models, per_document=per_document, seed=seed)
        questions = list(made.questions)
        print(
            f"{len(questions)} questions over sections of {len(documents)} documents, written by {made.source}, "
            f"{made.draws} draws of the evidence; dropped: {made.dropped}"
        )
        if place is not None:
            lines = [json.dumps(asdict(question), ensure_ascii=False) for question in questions]
            place.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return questions


def control_questions(catalogue: Catalogue) -> list[EvaluationQuestion]:
    """The questions of ``section_questions.jsonl`` whose page is a kept document.

    Evidence sentences are found by their first characters, in order, from the line that opens their section.
    """
    with catalogue.reading() as session:
        rows = session.scalars(select(Document).where(Document.state == "kept"))
        documents = {urlsplit(row.url).path.lstrip("/"): row for row in rows}
        questions, lost = [], 0
        for number, line in enumerate(BY_HAND.read_text(encoding="utf-8").splitlines()):
            row = json.loads(line)
            document = documents.get(row["page"])
            spans = [] if document is None else located(row["evidence"], document.text)
            if document is None or not spans:
                lost += 1
                continue
            questions.append(
                EvaluationQuestion(
                    f"control-{number:03}",
                    row["kind"],
                    row["language"],
                    row["question"],
                    "",
                    tuple((document.document_id, start, end) for start, end in spans),
                    tuple(document.text[start:end] for start, end in spans),
                )
            )
    print(f"{len(questions)} control questions; {lost} whose page or sentences are not there")
    return questions


def located(parts: Sequence[dict[str, Any]], text: str) -> list[tuple[int, int]]:
    """Spans of the sentences that begin with the given characters; [] where one is not found."""
    ends = dict(split_sentences(text))
    spans = []
    for part in parts:
        cursor = text.find(part["section"])
        for beginning in part["sentences"]:
            at = text.find(beginning, cursor) if cursor >= 0 else -1
            start = max((s for s in ends if s <= at), default=-1)
            if at < 0 or text[start:at].strip():
                return []
            spans.append((at, start + len(text[start : ends[start]].rstrip())))
            cursor = spans[-1][1]
    return sorted(spans)


def describe(questions: Sequence[EvaluationQuestion]) -> None:
    """Print how many questions of each kind there are and how much evidence they have."""
    for kind in KINDS:
        own = [question for question in questions if question.kind == kind]
        if own:
            size = np.mean([sum(end - start for _, start, end in q.evidence) for q in own])
            count = np.mean([len(q.evidence) for q in own])
            languages = {name: sum(q.language == name for q in own) for name in ("zh", "en")}
            print(
                f"{kind}: {len(own)} questions {languages} from {len(set(documents_of(own)))} documents, evidence "
                f"{count:.1f} sentences, {size:.0f} characters"
            )


def documents_of(questions: Sequence[EvaluationQuestion]) -> list[str]:
    """The document that each question is about: what the bootstrap draws."""
    return [question.evidence[0][0] for question in questions]


def hybrid(
    chunks: ChunkSet, questions: Sequence[EvaluationQuestion], models: Models, form: IndexText
) -> list[list[str]]:
    """Ranked leaves under the default retrieval of the evaluation."""
    texts = [question.question for question in questions]
    by_words = LexicalIndex(chunks, form=form).search(texts, RANKED)
    dense, _ = by_vectors(chunks, texts, models, RANKED, form)
    weight = EvaluationSettings().dense_weight
    return [fuse([a, b], [1.0, weight]) for a, b in zip(by_words, dense, strict=True)]


# --- Auto-Merge ----------------------------------------------------------------------------------------------


@dataclass
class Recalls:
    """Evidence recall by budget and question, and what was lost: document, section, within the section."""

    values: dict[int, Values]
    lost: dict[int, list[tuple[float, float, float]]]
    merges: dict[int, list[int]]


def measured(
    ranked: Sequence[Sequence[str]],
    forest: Forest,
    questions: Sequence[EvaluationQuestion],
    build: Callable[[Sequence[str], Forest, int], Context],
) -> Recalls:
    """Contexts of every budget for every question."""
    found = Recalls({}, {}, {})
    for budget in BUDGETS:
        contexts = [build(keys, forest, budget) for keys in ranked]
        found.values[budget] = [
            evidence_recall(question.evidence, context.spans())
            for question, context in zip(questions, contexts, strict=True)
        ]
        found.lost[budget] = [
            losses(question, context) for question, context in zip(questions, contexts, strict=True)
        ]
        found.merges[budget] = [context.merges for context in contexts]
    return found


def losses(question: EvaluationQuestion, context: Context) -> tuple[float, float, float]:
    """Shares of the evidence that is missing: its document is; its section's stretch is; only the sentence is."""
    spans = context.spans()
    missing = 1.0 - (evidence_recall(question.evidence, spans) or 0.0)
    document = question.evidence[0][0]
    low, high = question.evidence[0][1], question.evidence[-1][2]
    own = [span for span in spans if span[0] == document]
    if not own:
        return missing, 0.0, 0.0
    if not any(start < high and low < end for _, start, end in own):
        return 0.0, missing, 0.0
    return 0.0, 0.0, missing


def compare_merging(catalogue: Catalogue, models: Models, questions: Sequence[EvaluationQuestion]) -> None:
    """Print recall, differences and losses by kind, language and budget."""
    results: dict[str, Recalls] = {}
    for method in ("sentence", "hichunk"):
        with catalogue.reading() as session:
            chunks = load_chunks(session, method)
        forest = Forest(chunks.nodes, models.count_tokens)
        ranked = hybrid(chunks, questions, models, "chunk")
        sizes = [forest.length(leaf) for leaf in chunks.leaves]
        print(f"{method}: {len(sizes)} leaves of {np.mean(sizes):.0f} tokens, {len(chunks.nodes)} nodes")
        if method == "sentence":
            results[BASELINE] = measured(ranked, forest, questions, take)
        else:
            results["HC200"] = measured(ranked, forest, questions, take)
            results["HC200+AM"] = measured(ranked, forest, questions, auto_merge)
    needed = [sum(map(models.count_tokens, question.quotes)) for question in questions]
    for language in ("all", "zh", "en"):
        for kind in KINDS:
            chosen = [
                i for i, q in enumerate(questions) if q.kind == kind and language in ("all", q.language)
            ]
            if chosen:
                print_budgets(f"{kind}, {language}", results, questions, chosen, needed)


def print_budgets(
    name: str,
    results: dict[str, Recalls],
    questions: Sequence[EvaluationQuestion],
    chosen: Sequence[int],
    needed: Sequence[int],
) -> None:
    """One table: a line per budget. ``needed``: tokens of the evidence, which say what a budget holds at best."""
    bootstrap = Bootstrap(2000, 0.95, 0)
    groups = [questions[i].evidence[0][0] for i in chosen]
    print(f"\n{name}: n = {len(chosen)} questions, {len(set(groups))} documents")
    others = [label for label in results if label != BASELINE]
    heads = "".join(f"{label:>9}{'difference':>25}" for label in others)
    print(
        f"{'budget':>6}{'at best':>9}{BASELINE:>9}{heads}   merges  lost: document/section/within, {BASELINE} | {others[-1]}"
    )
    for budget in BUDGETS:
        base = [results[BASELINE].values[budget][i] for i in chosen]
        best = np.mean([min(1.0, budget / needed[i]) for i in chosen])
        line = f"{budget:>6}{best:>9.3f}{bootstrap.mean(base).value:>9.3f}"
        for label in others:
            values = [results[label].values[budget][i] for i in chosen]
            mean = bootstrap.mean(values).value
            line += f"{mean:>9.3f}{signed(bootstrap.difference(values, base, groups)):>25}"
        merges = np.mean([results[others[-1]].merges[budget][i] for i in chosen])
        shown = " | ".join(
            "/".join(f"{x:.2f}" for x in np.mean([results[label].lost[budget][i] for i in chosen], axis=0))
            for label in (BASELINE, others[-1])
        )
        print(f"{line}   {merges:>6.1f}  {shown}")


def signed(estimate: Estimate) -> str:
    """A difference with its interval."""
    return f"{estimate.value:+.3f} [{estimate.low:+.3f}, {estimate.high:+.3f}]"


# --- completion ----------------------------------------------------------------------------------------------


def compare_completion(
    catalogue: Catalogue, models: Models, questions: Sequence[EvaluationQuestion], limit: int
) -> None:
    """Print recall with raw and completed index text; the context is the raw text of the same chunks."""
    with catalogue.reading() as session:
        chunks = load_chunks(session, "qchunker")
        own = [question for question in evaluation_questions(session, limit, 0) if question.evidence]
    done = sum(leaf.completed is not None and leaf.completed != leaf.text for leaf in chunks.leaves)
    print(f"qchunker: {len(chunks.leaves)} chunks, {done} completed")
    forest = Forest(chunks.nodes, models.count_tokens)
    bootstrap = Bootstrap(2000, 0.95, 0)
    for name, chosen in (("section questions", list(questions)), ("the catalogue's questions", own)):
        if not chosen:
            continue
        forms: tuple[IndexText, IndexText] = ("chunk", "completed")
        raw, completed = (
            measured(hybrid(chunks, chosen, models, form), forest, chosen, take) for form in forms
        )
        for language in ("all", "zh", "en"):
            where = [i for i, q in enumerate(chosen) if language in ("all", q.language)]
            groups = [chosen[i].evidence[0][0] for i in where]
            print(f"\n{name}, {language}: n = {len(where)}, {len(set(groups))} documents")
            for budget in BUDGETS:
                one = [raw.values[budget][i] for i in where]
                other = [completed.values[budget][i] for i in where]
                print(
                    f"{budget:>6} raw {bootstrap.mean(one).value or 0:.3f}  completed "
                    f"{bootstrap.mean(other).value or 0:.3f}  {signed(bootstrap.difference(other, one, groups))}"
                )


if __name__ == "__main__":
    main()
