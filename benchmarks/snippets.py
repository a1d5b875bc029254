"""Annotated pages: what a cleaner is to keep of a page and what it is to drop, as short snippets.

``samples/annotations/*.jsonl`` holds a page a line: ``{"page", "kept", "dropped"}`` with
``page`` below ``samples/pages``, or below ``samples/<root>`` where the line has a ``root``.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

SAMPLES = Path(__file__).resolve().parent.parent / "samples"
_SCRIPTS = re.compile(r"</?su[bp]>", re.IGNORECASE)
_INVISIBLE = re.compile(r"[\s\u00ad\u200b-\u200f\u2060\ufeff]+")
_MARKS = re.compile(r"[*_`\\]")


def squeeze(text: str) -> str:
    """The form in which snippets and texts are compared.

    Sub- and superscript tags out, NFKC (so that ``10⁻³`` reads ``10-3``), every minus a
    hyphen, blanks and invisible characters out, Markdown's marks and escapes out; case is kept.
    """
    plain = unicodedata.normalize("NFKC", _SCRIPTS.sub("", text)).replace("−", "-")
    return _MARKS.sub("", _INVISIBLE.sub("", plain))


@dataclass(frozen=True)
class Annotated:
    """A page with the snippets a reader decided on; ``group`` is for example ``real en``."""

    page: str
    path: Path
    kept: tuple[str, ...]
    dropped: tuple[str, ...]
    group: str


@dataclass(frozen=True)
class Outcome:
    """What one cleaner's text does with one page's snippets."""

    page: Annotated
    lost: tuple[str, ...]
    surviving: tuple[str, ...]


def languages(samples: Path = SAMPLES) -> dict[Path, str]:
    """File → language, of every manifest below ``samples`` ("general" has its own)."""
    found = {}
    for manifest, folder in ((samples, samples / "pages"), (samples / "general", samples / "general")):
        path = manifest / "manifest.jsonl"
        if path.is_file():
            for line in path.read_text(encoding="utf-8").splitlines():
                entry = json.loads(line)
                found[folder / entry["file"]] = str(entry["language"])
    return found


def _made_up(samples: Path) -> set[Path]:
    lines = (samples / "manifest.jsonl").read_text(encoding="utf-8").splitlines()
    return {samples / "pages" / entry["file"] for entry in map(json.loads, lines) if entry["made_up"]}


def annotated_pages(samples: Path = SAMPLES) -> list[Annotated]:
    """All annotations, in the order of file names and lines. Raises ValueError naming a bad line."""
    tongues, made_up = languages(samples), _made_up(samples)
    pages: list[Annotated] = []
    for file in sorted((samples / "annotations").glob("*.jsonl")):
        for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1):
            try:
                entry = json.loads(line)
                root = entry.get("root", "pages")
                path = samples / root / entry["page"]
                kept, dropped = tuple(entry["kept"]), tuple(entry["dropped"])
            except (ValueError, KeyError, TypeError) as error:
                raise ValueError(f"{file.name}, line {number}: {error!r}") from error
            if not path.is_file():
                raise ValueError(f"{file.name}, line {number}: no page {root}/{entry['page']}")
            origin = root if root != "pages" else "made-up" if path in made_up else "real"
            tongue = "zh" if tongues.get(path, "en").startswith("zh") else "en"
            name = entry["page"] if root == "pages" else f"{root}/{entry['page']}"
            pages.append(Annotated(name, path, kept, dropped, f"{origin} {tongue}"))
    return pages


def judge(page: Annotated, text: str) -> Outcome:
    """Which kept snippets ``text`` lacks, and which dropped ones it still has."""
    squeezed = squeeze(text)
    return Outcome(
        page,
        tuple(snippet for snippet in page.kept if squeeze(snippet) not in squeezed),
        tuple(snippet for snippet in page.dropped if squeeze(snippet) in squeezed),
    )


def shares(outcomes: Iterable[Outcome]) -> tuple[float, float]:
    """Share of the kept snippets that were kept, and of the dropped ones that were dropped (1.0 of none)."""
    kept = lost = dropped = surviving = 0
    for outcome in outcomes:
        kept += len(outcome.page.kept)
        lost += len(outcome.lost)
        dropped += len(outcome.page.dropped)
        surviving += len(outcome.surviving)
    return (1 - lost / kept if kept else 1.0), (1 - surviving / dropped if dropped else 1.0)


def listing(outcomes: Sequence[Outcome]) -> list[str]:
    """A line for every snippet lost or surviving, with its page."""
    lines = []
    for outcome in outcomes:
        lines += [f"lost       {outcome.page.page}  {snippet}" for snippet in outcome.lost]
        lines += [f"surviving  {outcome.page.page}  {snippet}" for snippet in outcome.surviving]
    return lines
