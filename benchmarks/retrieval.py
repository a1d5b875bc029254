"""Lexical, dense and hybrid retrieval on a built knowledge base: does the fusion earn its place?

    python benchmarks/retrieval.py --data data --method sentence

Reads chunks and evaluation questions of the catalogue in the data directory. Prints for
each form how often one of the first k chunks touches the evidence, and the evidence
recall of a context of ``--budget`` tokens with its paired difference to lexical
retrieval (95 % bootstrap interval).
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import jieba
import numpy as np

from chunking import lexical, terms
from chunking.evaluation.metrics import evidence_recall
from chunking.evaluation.protocol import EvaluationQuestion, evaluation_questions
from chunking.evaluation.settings import VectorSettings
from chunking.evaluation.statistics import Bootstrap
from chunking.index import ChunkVectors
from chunking.lexical import LexicalIndex
from chunking.records import ChunkSet, load_chunks
from chunking.retrieval import Forest, fuse, take
from corpus.catalogue import Catalogue
from corpus.catalogue.stores import CatalogueVectors
from models import Models
from models.settings import EmbeddingSettings, ModelSettings

DEPTHS = (1, 5, 10, 20)
TOP = 64


def main() -> None:
    """Print one line per form."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, default=Path("data"))
    parser.add_argument("--method", default="sentence")
    parser.add_argument("--questions", type=int, default=300)
    parser.add_argument(
        "--embedder", default=None, help="index embedder for whole chunks; unset: pooled sentences"
    )
    parser.add_argument("--budget", type=int, default=1424)
    options = parser.parse_args()
    catalogue = Catalogue.open(f"sqlite:///{(options.data / 'catalogue.db').resolve()}")
    with catalogue.reading() as session:
        chunks = load_chunks(session, options.method)
        questions = evaluation_questions(session, options.questions, 0)
    questions = [question for question in questions if question.evidence]
    print(f"{len(chunks.leaves)} chunks ({options.method}), {len(questions)} questions with located evidence")
    models = Models(
        ModelSettings(api_key=None, embeddings=EmbeddingSettings(index=options.embedder)),
        vectors=CatalogueVectors(catalogue),
    )
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
    dense, name = by_vectors(chunks, texts, models)
    report(f"dense {name}", dense, chunks, questions, time.monotonic() - began)
    forms = {"lexical": ranked, "dense": dense}
    for weight in (1.0, 0.5, 0.25, 0.1):
        forms[f"hybrid, dense weight {weight}"] = [
            fuse([a, b], [1.0, weight]) for a, b in zip(ranked, dense, strict=True)
        ]
        report(f"hybrid, dense weight {weight}", forms[f"hybrid, dense weight {weight}"], chunks, questions)
    forest = Forest(chunks.nodes, models.count_tokens)
    bootstrap = Bootstrap(1000, 0.95, 0)
    recalls = {
        name: [
            evidence_recall(question.evidence, take(keys, forest, options.budget).spans())
            for keys, question in zip(found, questions, strict=True)
        ]
        for name, found in forms.items()
    }
    for name, values in recalls.items():
        mean, gain = bootstrap.mean(values), bootstrap.difference(values, recalls["lexical"])
        print(
            f"{name:<28} evidence recall {mean.value:.3f}, "
            f"difference {gain.value:+.3f} [{gain.low:+.3f}, {gain.high:+.3f}]"
        )


def by_vectors(chunks: ChunkSet, texts: list[str], models: Models) -> tuple[list[list[str]], str]:
    """Exact search; the same ranking as the index gives."""
    vectors = ChunkVectors(models, VectorSettings())
    scores = vectors.questions(texts) @ vectors.chunks(chunks.leaves, chunks).T
    keys = [leaf.chunk_id for leaf in chunks.leaves]
    return [[keys[i] for i in np.argsort(-row, kind="stable")[:TOP]] for row in scores], vectors.name


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


if __name__ == "__main__":
    main()
