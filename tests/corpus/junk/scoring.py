"""Scores of junk and documents by the offline formula, and how well they are apart."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from corpus.cleaning import clean_page
from corpus.quality import formula, scoring_input
from corpus.settings import QualitySettings
from models.tokens import count_words

SAMPLES = Path(__file__).parents[3] / "samples"


@dataclass(frozen=True)
class Scored:
    """A page with what became of it. ``score`` 0: cleaning found no content, ``why`` says what instead."""

    name: str
    language: str
    score: float
    why: str


def scored(name: str, language: str, data: bytes, content_type: str = "text/html; charset=utf-8", url: str = "") -> Scored:  # fmt: skip
    """Clean and score one page as the curate stage does."""
    charset = content_type.partition("charset=")[2]
    page = clean_page(data, url=url, content_type=content_type, header_charset=charset)
    if page.verdict in ("no_main_content", "needs_browser"):
        return Scored(name, language, 0.0, page.verdict)
    given, _ = scoring_input(
        page.text,
        title=page.title,
        language=page.language,
        settings=QualitySettings(),
        count=count_words,
        link_share=page.features.kept_link_density,
    )
    answer = formula(given.features, page.language)
    return Scored(name, language, answer.score, f"{given.features.page_type}: {answer.reason}")


def made_up(pages: Mapping[str, Mapping[str, str]]) -> list[Scored]:
    """Scores of pages by language and kind."""
    return [scored(name, language, html.encode()) for language in pages for name, html in pages[language].items()]  # fmt: skip


def samples() -> Iterator[tuple[Scored, bool]]:
    """Pages of ``samples/`` with whether they are documents (not those that the manifest excludes)."""
    for line in (SAMPLES / "manifest.jsonl").read_text(encoding="utf-8").splitlines():
        entry = json.loads(line)
        data = (SAMPLES / "pages" / entry["file"]).read_bytes()
        url = f"https://samples.example{entry['url_path']}"
        found = scored(entry["file"], entry["language"], data, entry["content_type"], url)
        yield found, entry["expected"] != "not-kept"


def area_under_curve(junk: Sequence[float], documents: Sequence[float]) -> float:
    """Chance that a document scores above a junk page, ties as half (the rank form of the AUC)."""
    wins = sum((d > j) + 0.5 * (d == j) for d in documents for j in junk)
    return wins / (len(junk) * len(documents))
