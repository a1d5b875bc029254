"""The embedded perplexity: does a context explain its own successor, and how fast is it?

    python benchmarks/perplexity.py

For sentences of the sample pages: the share whose loss is lower after their own
predecessor than after a sentence at least ten away in the same document (0.5 is
chance), the mean LI after either, and losses per second of CPU time on fresh pairs.
"""

from __future__ import annotations

import math
import random
import re
import time
from pathlib import Path

import numpy as np
from embedders import paragraphs

from models.perplexity import NgramPerplexity

PAGES = Path(__file__).parent.parent / "samples" / "pages"
PER_DOCUMENT = 60


def documents(language: str) -> list[list[str]]:
    """Sentences of the laws (zh) and of the encyclopedia articles (en)."""
    folder = "prc-law" if language == "zh" else "en.wikipedia.org-2019"
    found = []
    for path in sorted((PAGES / folder).iterdir()):
        if path.suffix not in (".md", ".html") or path.name.startswith("search_"):
            continue
        text = "\n".join(p for p in paragraphs(path) if len(p) > 60 and not p.strip().startswith("^"))
        parts = re.split(r"(?<=[。；])\s*|\n", text) if language == "zh" else re.split(r"(?<=[.])\s+", text)
        sentences = [s.strip() for s in parts if 15 < len(s.strip()) < 400]
        if len(sentences) >= 30:
            found.append(sentences)
    return found


def main() -> None:
    """Print one line per language."""
    for language in ("zh", "en"):
        chooser = random.Random(0)
        wins, near, far, seconds, pairs, characters = [], [], [], 0.0, 0, 0
        for sentences in documents(language):
            model = NgramPerplexity(["\n".join(sentences)])
            for place in range(1, min(len(sentences), PER_DOCUMENT)):
                other = chooser.randrange(len(sentences))
                if abs(other - place) < 10:
                    continue
                alone = model.loss(sentences[place])
                started = time.process_time()
                after = model.loss(sentences[place], sentences[place - 1])
                seconds += time.process_time() - started
                pairs, characters = pairs + 1, characters + len(sentences[place])
                elsewhere = model.loss(sentences[place], sentences[other])
                wins.append((after < elsewhere) + 0.5 * (after == elsewhere))
                near.append(math.exp(after - alone))
                far.append(math.exp(elsewhere - alone))
        print(
            f"{language}: own predecessor explains more {np.mean(wins):.3f} (n={len(wins)}), LI {np.mean(near):.2f} "
            f"against {np.mean(far):.2f} far away, {pairs / seconds:.0f} losses per CPU second at {characters / pairs:.0f} characters"
        )


if __name__ == "__main__":
    main()
