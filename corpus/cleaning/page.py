"""What cleaning returns: the cleaned page with features, counts and a verdict."""

from __future__ import annotations

import re
from dataclasses import asdict, dataclass, field, fields
from typing import Any, Literal

Verdict = Literal["ok", "no_main_content", "needs_browser", "review"]
Kind = Literal["page", "pdf", "text", "xml"]

_HAN = re.compile(r"[\u3400-\u9fff]+")
_KANA = re.compile(r"[\u3040-\u30ff]+")
_HANGUL = re.compile(r"[\uac00-\ud7af]+")
_CYRILLIC = re.compile(r"[\u0400-\u04ff]+")
_OTHER_SCRIPT = re.compile(r"[\u0400-\u04ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
_LATIN = re.compile(r"[A-Za-z\u00c0-\u024f]+")
_ENGLISH = frozenset(
    [
        "the",
        "of",
        "and",
        "to",
        "in",
        "is",
        "with",
        "for",
        "or",
        "be",
        "are",
        "by",
        "from",
        "not",
        "as",
        "on",
        "if",
    ]
)


@dataclass(frozen=True)
class Features:
    """Measured on the raw page before cleaning and on what was kept; used by the quality score.

    ``link_density``: share of link text in the raw page; ``script_share``: share of
    script characters in the source; counts of the kept part carry ``kept_``.
    """

    link_density: float = 0.0
    kept_link_density: float = 0.0
    raw_text_chars: int = 0
    kept_text_chars: int = 0
    n_links: int = 0
    kept_links: int = 0
    n_forms: int = 0
    n_password_fields: int = 0
    n_headings: int = 0
    n_tables: int = 0
    n_table_cells: int = 0
    n_list_items: int = 0
    n_paragraphs: int = 0
    n_images: int = 0
    script_share: float = 0.0
    has_noscript_notice: bool = False
    pages: int = 0


@dataclass
class CleanedPage:
    """A page after the three cleanings.

    ``text`` is Markdown (NFC, LF), ``plain`` the same without marks (tabs between
    cells); ``blocks``: [{"start","end","path","kind"}] of ``text`` in code points with
    DOM path (``page N`` for PDF, ``line N`` for text). ``removed``: cleaning → rule →
    count. ``verdict`` other than ``ok`` has ``reasons``.
    """

    kind: Kind = "page"
    html: str = ""
    text: str = ""
    plain: str = ""
    blocks: list[dict[str, Any]] = field(default_factory=list)
    title: str = ""
    language: str = ""
    canonical_url: str = ""
    encoding: dict[str, Any] = field(default_factory=dict)
    removed: dict[str, dict[str, int]] = field(default_factory=dict)
    verdict: Verdict = "ok"
    reasons: tuple[str, ...] = ()
    features: Features = field(default_factory=Features)

    def to_json(self) -> dict[str, Any]:
        """Plain data."""
        return asdict(self)

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> CleanedPage:
        """The page of ``to_json``'s data."""
        known = {entry.name for entry in fields(cls)}
        data = {name: item for name, item in value.items() if name in known}
        data["features"] = Features(**data.get("features", {}))
        data["reasons"] = tuple(data.get("reasons", ()))
        return cls(**data)

    def counts(self) -> dict[str, int]:
        """Removals as one flat table: ``structural/link_list`` → 12."""
        return {
            f"{cleaning}/{rule}": count
            for cleaning, rules in sorted(self.removed.items())
            for rule, count in sorted(rules.items())
        }


def language_of(text: str, declared: str = "") -> str:
    """Language of a text: zh, en, ja, ko, ru, else the page's own declaration, else empty.

    By script first, since declarations lie; a page of Latin letters is English where
    English function words say so or nothing else is declared.
    """
    sample = text[:20_000]
    plain = not _OTHER_SCRIPT.search(sample)
    han, kana = (0, 0) if plain else (sum(map(len, pattern.findall(sample))) for pattern in (_HAN, _KANA))
    runs = _LATIN.findall(sample)
    latin = sum(map(len, runs))
    if kana > 0.1 * (han + kana) and kana > 5:
        return "ja"
    if not plain and sum(map(len, _HANGUL.findall(sample))) > 0.2 * (latin + 1):
        return "ko"
    if han and 5 * han > latin:  # formulas and units put Latin letters into Chinese data sheets
        return "zh"
    if not plain and sum(map(len, _CYRILLIC.findall(sample))) > latin:
        return "ru"
    if not latin:
        return declared[:2].lower()
    words = " ".join(run for run in runs if len(run) > 1).lower().split()
    if words and sum(map(_ENGLISH.__contains__, words)) >= 0.08 * len(words):
        return "en"
    return declared[:2].lower() if declared[:2].isalpha() and declared[:2].lower() != "zh" else "en"
