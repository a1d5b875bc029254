"""The cleaners that ours is measured beside, each behind one pair of calls.

Every call does the whole work from the bytes of a page to its text, or to its HTML, with
the settings its documentation gives for a page as a whole. A package that is not installed
is named in ``missing``; nothing else fails for it.
"""

from __future__ import annotations

import importlib
import logging
from collections.abc import Callable
from dataclasses import dataclass
from importlib import metadata
from typing import Any

from lxml import etree

from corpus.cleaning import clean_page
from corpus.cleaning.tags import name_set
from corpus.errors import TerminalError

OURS = "ours"
HINT = "pip install hchemsafety[bench]"

#: bytes of a page, its language ("en", "zh") → text
ToText = Callable[[bytes, str], str]
#: bytes of a page → HTML
ToHtml = Callable[[bytes], str]

_BLOCKS = name_set(
    "address article aside blockquote br caption dd div dl dt figcaption figure footer form h1 h2 h3 h4 h5 h6 "
    "header hr li main nav ol p pre section table td th tr ul"
)


@dataclass(frozen=True)
class Cleaner:
    """One tool: ``text`` for the snippets and the time, ``html`` for the table of what is left."""

    name: str
    version: str
    text: ToText | None
    html: ToHtml | None


def attempt(call: Callable[..., str] | None, *arguments: object) -> str | None:
    """The answer of a cleaner; None where it has no such call or raises: another's tool, another's errors."""
    if call is None:
        return None
    try:
        return call(*arguments)
    except Exception:  # noqa: BLE001
        return None


def tree_of(html: str) -> Any:
    """The tree of an HTML text; None for nothing."""
    if not html.strip():
        return None
    return etree.fromstring(
        html.encode("utf-8", "replace"),
        etree.HTMLParser(huge_tree=True, encoding="utf-8", remove_comments=True),
    )


def text_of(html: str) -> str:
    """Text of HTML, a line a block, as a reader of it would save it."""
    root = tree_of(html)
    parts: list[str] = []
    for event, element in etree.iterwalk(root, events=("start", "end")) if root is not None else ():
        if event == "start":
            if element.tag in _BLOCKS:
                parts.append("\n")
            parts.append(element.text or "")
        else:
            parts.append(("\n" if element.tag in _BLOCKS else "") + (element.tail or ""))
    return "".join(parts)


def _ours() -> tuple[ToText, ToHtml]:
    def text(data: bytes, language: str) -> str:
        try:
            return clean_page(data).text
        except TerminalError:
            return ""

    def html(data: bytes) -> str:
        try:
            return clean_page(data).html
        except TerminalError:
            return ""

    return text, html


def _trafilatura() -> tuple[ToText, ToHtml]:
    extract = importlib.import_module("trafilatura").extract

    def text(data: bytes, language: str) -> str:
        return extract(data, output_format="markdown", include_tables=True) or ""

    def html(data: bytes) -> str:
        return extract(data, output_format="html", include_tables=True) or ""

    return text, html


def _resiliparse() -> tuple[ToText, None]:
    extract = importlib.import_module("resiliparse.extract.html2text").extract_plain_text
    tree = importlib.import_module("resiliparse.parse.html").HTMLTree
    detect = importlib.import_module("resiliparse.parse.encoding").detect_encoding

    def text(data: bytes, language: str) -> str:
        return str(extract(tree.parse_from_bytes(data, detect(data, from_html_meta=True)), main_content=True))

    return text, None


def _readability() -> tuple[ToText, ToHtml]:
    document = importlib.import_module("readability").Document

    def html(data: bytes) -> str:
        return str(document(data).summary())

    return (lambda data, language: text_of(html(data))), html


def _justext() -> tuple[ToText, None]:
    module = importlib.import_module("justext")
    english = module.get_stoplist("English")

    def text(data: bytes, language: str) -> str:
        # There is no list for Chinese: an empty one with both thresholds at nought, as documented.
        if language == "en":
            paragraphs = module.justext(data, english)
        else:
            paragraphs = module.justext(data, frozenset(), stopwords_low=0, stopwords_high=0)
        return "\n".join(paragraph.text for paragraph in paragraphs if not paragraph.is_boilerplate)

    return text, None


def _html_cleaner() -> tuple[None, ToHtml]:
    cleaner = importlib.import_module("lxml_html_clean").Cleaner(style=True)

    def html(data: bytes) -> str:
        cleaned = cleaner.clean_html(data)
        return cleaned.decode("utf-8", "replace") if isinstance(cleaned, bytes) else str(cleaned)

    return None, html


_MAKERS: dict[str, tuple[str, Callable[[], tuple[ToText | None, ToHtml | None]]]] = {
    OURS: ("hchemsafety", _ours),
    "trafilatura": ("trafilatura", _trafilatura),
    "resiliparse": ("resiliparse", _resiliparse),
    "readability": ("readability-lxml", _readability),
    "justext": ("justext", _justext),
    "lxml Cleaner": ("lxml_html_clean", _html_cleaner),
}
NAMES = tuple(_MAKERS)


def load(only: str = "") -> tuple[list[Cleaner], list[str]]:
    """The cleaners that are installed (all, or the one named), and the packages that are missing."""
    logging.getLogger("trafilatura").setLevel(logging.CRITICAL)
    logging.getLogger("readability").setLevel(logging.CRITICAL)
    found, missing = [], []
    for name, (package, make) in _MAKERS.items():
        if only and name != only:
            continue
        try:
            text, html = make()
        except ImportError:
            missing.append(package)
            continue
        found.append(Cleaner(name, metadata.version(package), text, html))
    return found, missing
