"""What does it cost to review all chunks of one document? On a real server that reports its cached tokens.

    make test-local-llm                    # once: installs the server and its model
    python -m benchmarks.prefix [--chunks 10] [--tokens 1500] [--slots 4] [--language zh]

One document in Chinese and one in English (the beginnings of two laws in
``samples/pages``) are each cut into chunks of whole sentences that cover it; every
chunk is reviewed once by the skill ``review_chunk`` with its real prompt and a short
answer. For each way of issuing the calls, on a server started anew, in tokens of the
server's model by tokens of the document:

- ``all``: the prompts; what it costs without any cache;
- ``uncached``: what the server had to read;
- ``prefix``: the same without the chunks themselves. These cover the document, so that
  they add 1 to ``uncached`` however well the beginning is shared.

More ``calls`` than chunks: an answer was cut off and asked for once more.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import ClassVar

from pydantic import BaseModel, Field

from chunking.qchunker.reviewer import MissingItem, ReviewChunk, ReviewIn
from chunking.sentences import split_sentences
from models import Models, ModelSettings
from models.errors import AnswerRejected
from tests.servers.llama import LlamaOptions, LlamaServer, model_file

PAGES = Path(__file__).parent.parent / "samples" / "pages"
DOCUMENTS = {"zh": "prc-law/weihuapin_anquan_tiaoli.md", "en": "us-code/15usc2605_4921.md"}
ROOM = (
    3000  # tokens a slot needs beside the document: instructions, chunk, answer, a document a little too long
)


class ShortReview(BaseModel):
    """A review without items: a small model would fill them up to the output limit."""

    items: list[MissingItem] = Field(default_factory=list, max_length=0)
    incomplete: bool = False


class ShortReviewChunk(ReviewChunk):
    """The real prompt of ``review_chunk`` with a short answer; the first call goes alone."""

    output: ClassVar[type[BaseModel]] = ShortReview
    shares_prefix: ClassVar[bool] = True


class UnwarmedReviewChunk(ShortReviewChunk):
    """All calls at once from the start."""

    shares_prefix: ClassVar[bool] = False


@dataclass(frozen=True)
class Way:
    """A way of issuing the calls: calls in flight, slots of the server, whether one slot is named in each call."""

    name: str
    skill: ReviewChunk
    in_flight: int
    slots: int
    named: bool = False


def ways(slots: int) -> list[Way]:
    """What is compared."""
    warmed, unwarmed = ShortReviewChunk(), UnwarmedReviewChunk()
    return [
        Way("one after another", warmed, 1, slots),
        Way("at once", unwarmed, slots, slots),
        Way("first alone, then at once", warmed, slots, slots),
        Way("first alone, then at once, one slot named", warmed, slots, slots, named=True),
        Way("at once, server with one slot", unwarmed, slots, 1),
        Way("first alone, then at once, server with one slot", warmed, slots, 1),
    ]


@dataclass(frozen=True)
class Reviewed:
    """A document and the reviews of its chunks; sizes in tokens of the model."""

    tokens: int
    chunk_tokens: int
    givens: tuple[ReviewIn, ...]


def load(server: LlamaServer, language: str, tokens: int, chunks: int) -> Reviewed:
    """The first sentences of a sample page up to a number of tokens, cut into chunks of like size."""
    text = (PAGES / DOCUMENTS[language]).read_text("utf-8")
    ends, sizes = [0], [0]  # of the sentences read, and tokens up to there
    for start, end in split_sentences(text):
        if sizes[-1] >= tokens:
            break
        ends.append(end)
        sizes.append(sizes[-1] + server.tokens(text[start:end]))
    cuts = [
        min(range(len(sizes)), key=lambda i: abs(sizes[i] - sizes[-1] * part / chunks))
        for part in range(chunks + 1)
    ]
    edges = sorted({ends[cut] for cut in cuts})
    document = text[: ends[-1]]
    spans = list(pairwise(edges))
    return Reviewed(
        server.tokens(document),
        sum(server.tokens(document[start:end]) for start, end in spans),
        tuple(ReviewIn(document, start, end, language) for start, end in spans),
    )


def review(server: LlamaServer, way: Way, givens: Sequence[ReviewIn]) -> tuple[int, int, int]:
    """Ask for every review; calls, tokens of all prompts, and those the server had to read."""
    settings = {
        "base_url": server.base_url,
        "model": server.model,
        "api_key": None,
        "max_output_tokens": 256,
        "timeout_s": 3600.0,
        "limits": {"concurrency": way.in_flight},
        "extra": {"id_slot": 0} if way.named else {},
    }
    models = Models(ModelSettings.model_validate(settings))
    answers = models.run_many(way.skill, givens)
    usage = models.usage()
    models.close()
    rejected = [answer for answer in answers if isinstance(answer, AnswerRejected)]
    if rejected:
        raise SystemExit(f"{len(rejected)} of {len(givens)} reviews were rejected: {rejected[0]}")
    return usage["calls"], usage["tokens_in"], usage["tokens_in"] - usage["tokens_cached"]


def main() -> None:
    """Print one row per language and way."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--chunks", type=int, default=10)
    parser.add_argument("--tokens", type=int, default=1500, help="size of the document")
    parser.add_argument("--slots", type=int, default=4, help="slots of the server, and calls in flight")
    parser.add_argument("--language", choices=sorted(DOCUMENTS), action="append")
    parser.add_argument("--threads", type=int, default=1, help="of the server; 2 on idle cores")
    parser.add_argument("--split", action="store_true", help="each slot with its own part of the context")
    options = parser.parse_args()
    if model_file() is None:
        sys.exit("the server and its model are missing: make test-local-llm installs them")
    for language in options.language or ["zh", "en"]:
        for number, way in enumerate(ways(options.slots)):
            server_options = LlamaOptions(
                slots=way.slots,
                context=way.slots * (options.tokens + ROOM),
                unified=not options.split,
                threads=options.threads,
            )
            with LlamaServer(server_options) as server:
                loaded = load(server, language, options.tokens, options.chunks)
                if number == 0:
                    print(
                        f"{language}: {loaded.tokens} tokens, {len(loaded.givens)} chunks, server with {options.slots} slots\n"
                        f"{'way':50} {'calls':>5} {'all':>6} {'uncached':>9} {'prefix':>7} {'seconds':>8}"
                    )
                started = time.perf_counter()
                calls, total, read = review(server, way, loaded.givens)
                seconds = time.perf_counter() - started
            size = loaded.tokens
            print(
                f"{way.name:50} {calls:5} {total / size:6.2f} {read / size:9.2f} {(read - loaded.chunk_tokens) / size:7.2f} {seconds:8.1f}",
                flush=True,
            )


if __name__ == "__main__":
    main()
