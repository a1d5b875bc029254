"""What a page of the report says in its own words: text outside names, data and figures' names."""

from __future__ import annotations

import re
from html.parser import HTMLParser

_SILENT = frozenset({"script", "style", "code", "pre", "metadata"})
_RUN = re.compile(r"\d{8}T\d{6}-[0-9a-f]{6}")
_VOID = frozenset({"meta", "link", "br", "input", "img", "hr", "col", "path", "use", "wbr"})
_SHOWN = ("placeholder", "title", "aria-label", "data-shown")
NAMES = frozenset(
    [
        "HChemSafety",
        "UTC",
        "ChunkScore",
        "QChunker",
        "ROUGE",
        "BLEU",
        "METEOR",
        "LI",
        "SD",
        "CAS",
        "PDF",
        "XML",
        "NFPA",
        "MB",
        "Pearson",
        "hchem",
        "runs",
        "diff",
        "json",
        "robots",
        "fixed",
        "sentence",
        "semantic",
        "qchunker",
        "qchunker-no-completion",
        "hichunk",
        "am",
        "gold",
        "zh",
        "en",
        "English",
        "n",
        "r",
        "k",
        "L",
        "F",
        "MATCH",
        "x",
    ]
)
"""Names that are the same in both languages: of the product, methods, metrics and formats."""


class OwnWords(HTMLParser):
    """Collects what a reader sees, less what is marked as a name or as data."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.quiet: list[bool] = [False]
        self.said: list[str] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        quiet = self.quiet[-1] or tag in _SILENT or given.get("translate") == "no"
        if given.get("translate") == "yes":
            quiet = False
        if not quiet:
            self.said += [given[name] for name in _SHOWN if name in given]
        if tag not in _VOID:
            self.quiet.append(quiet)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        return

    def handle_endtag(self, tag: str) -> None:
        if tag not in _VOID:
            self.quiet.pop()

    def handle_data(self, data: str) -> None:
        if not self.quiet[-1] and data.strip():
            self.said.append(data.strip())


def left_in_english(html: str) -> list[str]:
    """Texts of a Chinese page with a Latin word that is no name."""
    return [said for said in OwnWords(html).said if any(not _is_name(word) for word in _words(said))]


def _words(said: str) -> list[str]:
    return re.findall(r"[A-Za-z]+(?:-[A-Za-z]+)*", re.sub(r"\{\w+\}", "", _RUN.sub("", said)))


def _is_name(word: str) -> bool:
    """A name, or names joined by hyphens such as ROUGE-L."""
    return word in NAMES or set(word.split("-")) <= NAMES


def left_in_chinese(html: str) -> list[str]:
    """Texts of an English page with a Chinese character, less the link to the other language."""
    return [said for said in OwnWords(html).said if re.search(r"[\u3400-\u9fff]", said) and said != "中文"]
