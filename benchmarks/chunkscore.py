"""ChunkScore as a judge: gold partitions beside moved, shuffled and random ones; its time; its perplexity.

    python benchmarks/chunkscore.py order [--draws 20] [--documents N]
    python benchmarks/chunkscore.py time [--candidates 8]
    python benchmarks/chunkscore.py independence --model FOLDER [--gguf FILE]

``order`` takes the pages of ``samples/`` with at least four headings, heading marks hidden or heading
lines removed, and scores the partition at the headings (one without text of its own stays with the first
below it) beside partitions with as many chunks: every border moved by one to three sentences; the same
chunk lengths in another order; borders at random sentences. Printed is the share of pairs in which the
gold one scores higher (ties count half), as the paper prints the score (λ 0.3) and for LI and SD alone,
averaged over documents with a bootstrap interval over documents, by language and by kind of page.

``time`` prints processor seconds of scoring p candidates against one of them, with and without those of
embedding the sentences (once for either); the losses that both need are known (perplexity calls are
counted apart).

``independence`` compares LI of sentence borders under the embedded character n-gram model with LI under
a causal language model read by ``transformers`` (extra ``local-lm``): Spearman's rank correlation within
documents, by language. FOLDER holds the model; with ``--gguf`` one file of it.
"""

from __future__ import annotations

import argparse
import itertools
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.segmentation import FORMS, kind_of
from benchmarks.throughput import cleaned, pages
from chunking.background import Backgrounds
from chunking.chunkscore import Selector, boundary_losses, chunk_score
from chunking.evaluation.published.data import from_markdown
from chunking.evaluation.statistics import Bootstrap
from chunking.qchunker.sampling import offline_candidates
from chunking.qchunker.segmenter import spans_of
from chunking.segment import Segmenter, language_of
from chunking.vectors import SentenceVectors
from models import Models
from models.protocols import Perplexity
from models.settings import EmbeddingSettings, ModelSettings

_LEAST = 4  # headings of a page that counts
_MOST = 3  # sentences that a border is moved by
_PARTS = ("score", "LI", "SD")


@dataclass(frozen=True)
class Gold:
    """A document with the sentence indices at which its sections begin."""

    name: str
    kind: str
    language: str
    vectors: SentenceVectors
    cuts: tuple[int, ...]
    perplexity: Perplexity


def main() -> None:
    """Run one part."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("part", choices=("order", "time", "independence"))
    parser.add_argument("--documents", type=int, default=None, help="documents at most")
    parser.add_argument("--draws", type=int, default=20, help="other partitions of each sort a document")
    parser.add_argument(
        "--reach",
        type=int,
        default=None,
        help="characters on each side of a border that LI reads; unset: all",
    )
    parser.add_argument(
        "--whole",
        action="store_true",
        help="embed whole chunks, the paper's form, instead of pooling sentences",
    )
    parser.add_argument("--embedder", default=None, help="embeddings.cohesion; unset: the default")
    parser.add_argument("--candidates", type=int, default=8)
    parser.add_argument("--model", type=Path, help="folder of a causal language model")
    parser.add_argument("--gguf", default=None, help="file in that folder, where it is a GGUF model")
    parser.add_argument(
        "--borders", type=int, default=40, help="sentence borders a document that are compared"
    )
    options = parser.parse_args()
    if options.part == "order":
        for form in FORMS:
            print_order(form, list(gold(form, options.documents, options.embedder)), options)
    elif options.part == "time":
        print_time(list(gold("hidden", options.documents)), options.candidates)
    else:
        if options.model is None:
            parser.error("independence needs --model FOLDER")
        print_independence(list(gold("hidden", options.documents)), options)


def gold(form: Any, most: int | None, embedder: str | None = None) -> Iterator[Gold]:
    """Pages with headings, with their sentence vectors."""
    chosen = EmbeddingSettings(**({"cohesion": embedder} if embedder else {}))
    models = Models(ModelSettings(api_key=None, embeddings=chosen))
    segmenter, backgrounds = Segmenter(models), Backgrounds(models)
    found = 0
    for entry, data in pages():
        document = from_markdown(entry["file"], cleaned(entry, data).text, form)
        if len(document.borders) < _LEAST:
            continue
        vectors = segmenter.table(document.text)
        starts = [start for start, _ in vectors.sentences]
        headings = sorted({int(np.searchsorted(starts, at)) for at in document.borders} - {len(starts)})
        cuts = with_their_text(headings, vectors) if form == "hidden" else headings
        cuts = [cut for cut in cuts if cut]
        if len(cuts) < _LEAST or len(cuts) > len(starts) // 2:
            continue  # where every other sentence is a heading there is nothing to move
        yield Gold(entry["file"], kind_of(entry["file"]), language_of(document.text), vectors, tuple(cuts),
                   backgrounds.perplexity(document.text))  # fmt: skip
        found += 1
        if most is not None and found >= most:
            return


def with_their_text(headings: Sequence[int], vectors: SentenceVectors) -> list[int]:
    """Sentence indices of headings but those right below another: one without text of its own stays with the next.

    Where heading lines are removed the two borders are one already.
    """
    kept = list(headings[:1])
    for before, at in itertools.pairwise(headings):
        part = vectors.text[vectors.sentences[before][0] : vectors.sentences[at][0]]
        if sum(bool(line.strip()) for line in part.splitlines()) > 1:
            kept.append(at)
    return kept


# --- order ---------------------------------------------------------------------------------------------------


def print_order(form: str, documents: Sequence[Gold], options: Any) -> None:
    """Print the share of pairs won by the gold partition."""
    draws = options.draws
    won: dict[tuple[str, str, str], list[float]] = defaultdict(list)
    for number, document in enumerate(documents):
        rng = np.random.default_rng([7, number])
        best = _parts(document, document.cuts, options)
        for sort in ("moved", "shuffled", "random"):
            others = [_parts(document, _other(document, sort, rng), options) for _ in range(draws)]
            for part, mine, theirs in zip(_PARTS, best, zip(*others, strict=True), strict=True):
                share = float(np.mean([(mine > value) + 0.5 * (mine == value) for value in theirs]))
                for group in ("all", document.language, document.kind):
                    won[group, sort, part].append(share)
    print(
        f"\nheadings {form}: {len(documents)} documents, {draws} partitions of each sort; share won by gold"
    )
    groups = sorted({group for group, _, _ in won}, key=lambda group: (group != "all", group))
    for group in groups:
        print(f"{group} (n = {len(won[group, 'moved', 'score'])})")
        for sort in ("moved", "shuffled", "random"):
            cells = []
            for part in _PARTS:
                values = won[group, sort, part]
                cells.append(f"{part} {_told(values)}")
            above = np.mean([share > 0.5 for share in won[group, sort, "score"]])
            print(f"  {sort:9} {'   '.join(cells)}   documents above half {above:.3f}")


def _told(values: Sequence[float]) -> str:
    mean = Bootstrap(1000, 0.95, 0).mean(values)
    return f"{mean.value:.3f} [{mean.low:.3f}, {mean.high:.3f}]"


def _parts(document: Gold, cuts: Sequence[int], options: Any) -> tuple[float, float, float]:
    score = chunk_score(
        document.vectors.text, spans_of(document.vectors, cuts), document.perplexity, document.vectors,
        reach=options.reach, pooling="whole" if options.whole else "pooled",
    )  # fmt: skip
    return tuple(float("-inf") if value is None else value for value in (score.cs, score.li, score.sd))  # type: ignore[return-value]


def _other(document: Gold, sort: str, rng: np.random.Generator) -> tuple[int, ...]:
    """Inner cuts of another partition with as many chunks."""
    n, cuts = len(document.vectors), np.array(document.cuts)
    if sort == "random":
        return tuple(sorted(int(cut) for cut in rng.choice(np.arange(1, n), len(cuts), replace=False)))
    if sort == "shuffled":
        for _ in range(100):
            lengths = rng.permutation(np.diff([0, *cuts, n]))
            other = tuple(int(cut) for cut in np.cumsum(lengths)[:-1])
            if other != document.cuts:
                return other
        return document.cuts
    moved: list[int] = []
    for cut in cuts:
        step = int(rng.integers(1, _MOST + 1)) * int(rng.choice([-1, 1]))
        moved.append(int(cut) + step)
    legal = sorted({min(max(cut, 1), n - 1) for cut in moved})
    free = [i for i in range(1, n) if i not in set(legal) and i not in set(document.cuts)]
    while len(legal) < len(cuts) and free:  # two that fell together: one goes to a free place
        legal.append(free.pop(int(rng.integers(len(free)))))
    return tuple(sorted(legal))


# --- time ----------------------------------------------------------------------------------------------------


def print_time(documents: Sequence[Gold], candidates: int, rounds: int = 3) -> None:
    """Print processor seconds of choosing among p candidates and of standing one, losses known."""
    one = several = embedding = 0.0
    asked = 0
    for document in documents:
        cuts = [c.cuts for c in offline_candidates(document.vectors, 200, (), seed=0)]
        cuts = list(itertools.islice(itertools.cycle(cuts), candidates))
        losses = {
            i: boundary_losses(document.vectors, document.perplexity)(i)
            for i in range(1, len(document.vectors))
        }
        asked += 2 * len(losses)
        embedding += _embedding_seconds(document.vectors.text)
        one += min(_seconds(document, losses, cuts[:1]) for _ in range(rounds))
        several += min(_seconds(document, losses, cuts) for _ in range(rounds))
    print(f"{len(documents)} documents; sentences embedded in {embedding:.2f} s; then one candidate {one:.2f} s, "
          f"{candidates} candidates {several:.2f} s; ratio {(embedding + several) / (embedding + one):.2f}, of "
          f"sentences already embedded {several / one:.2f}; {asked} perplexity calls for either "
          "(each border once)")  # fmt: skip


def _embedding_seconds(text: str) -> float:
    """Sentences and their vectors of a text of which none is known."""
    segmenter = Segmenter(Models.offline())
    began = time.process_time()
    _ = segmenter.table(text).vectors
    return time.process_time() - began


def _seconds(document: Gold, losses: dict[int, float], cuts: list[tuple[int, ...]]) -> float:
    began = time.process_time()
    Selector(document.vectors, losses.__getitem__).choose(cuts)
    return time.process_time() - began


# --- independence --------------------------------------------------------------------------------------------


def print_independence(documents: Sequence[Gold], options: Any) -> None:
    """Print the rank correlation of the two models' LI over sentence borders of a document."""
    from scipy.stats import spearmanr

    from models.perplexity import make_perplexity
    from models.settings import PerplexitySettings

    folder = _unpacked(options.model, options.gguf) if options.gguf else options.model
    reader = make_perplexity(PerplexitySettings(backend="transformers", model=str(folder)))
    found: dict[str, list[float]] = defaultdict(list)
    levels: dict[str, list[tuple[float, float]]] = defaultdict(list)
    for document in documents:
        rng = np.random.default_rng(3)
        n = len(document.vectors)
        places = sorted(rng.choice(np.arange(1, n), min(options.borders, n - 1), replace=False))
        ours, theirs = (boundary_losses(document.vectors, model) for model in (document.perplexity, reader))
        pairs = np.array([(ours(int(i)), theirs(int(i))) for i in places])
        pairs = pairs[np.isfinite(pairs).all(axis=1)]
        if len(pairs) >= 10:
            found[document.language].append(float(spearmanr(pairs[:, 0], pairs[:, 1]).statistic))
            levels[document.language] += [tuple(row) for row in pairs]  # type: ignore[misc]
    for language, values in sorted(found.items()):
        means = np.mean(levels[language], axis=0)
        print(f"{language}: n = {len(values)} documents, {len(levels[language])} borders; Spearman "
              f"{_told(values)}; mean LI n-gram {means[0]:.2f}, model {means[1]:.2f}")  # fmt: skip


def _unpacked(folder: Path, file: str) -> Path:
    """A GGUF model as ``transformers`` keeps its own: read once, so that it is not dequantised again."""
    from transformers import AutoModelForCausalLM, AutoTokenizer

    target = Path(tempfile.mkdtemp(prefix="hchem-model-"))
    AutoTokenizer.from_pretrained(folder, gguf_file=file).save_pretrained(target)
    read = AutoModelForCausalLM.from_pretrained(folder, gguf_file=file)
    if hasattr(read.config, "quantization_config"):  # a model that is marked as quantised cannot be saved
        del read.config.quantization_config
    plain = AutoModelForCausalLM.from_config(read.config)
    plain.load_state_dict(read.state_dict())
    plain.save_pretrained(target)
    return target


if __name__ == "__main__":
    main()
