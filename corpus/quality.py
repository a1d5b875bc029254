"""The quality score: is this document worth knowing, 0 to 5 (corpus design, section 6).

The offline answer is a formula over measurable features of the cleaned text:

* density = 5·sat((chemistry words + 3·quantities + 4·identifiers) per 100 tokens, 6)
* safety = 5·sat((safety words + words that bid or forbid + 2·hazard codes) per 100 tokens, 4)
* completeness = 5·(0.6·sat(tokens, 350) + 0.4·min(1, structure)), structure =
  SDS sections/8 + filled headings/10 + table rows/25 + articles/15
* readability = 5·(1 − link share − repeats − empty headings − fragments)
* authority = 5·sat(authority signs + SDS sections/4 + articles/10, 3)
* score = 0.30·density + 0.20·safety + 0.25·completeness + 0.15·readability + 0.10·authority

A number whose unit stands in the label of its row or column ("闪点(℃) | 29", "Boiling point (°C): 56")
is a quantity as well.

With sat(x, k) = 1 − e^(−x/k), and a Chinese character as 0.7 of a token where it says
"per 100". A page that is not a document is capped at 1.5. What it
is follows from its form (``page_type``), never from its address:

* search: it says so in its head, and has no SDS section
* error, login, parked, script: a short page that says so (a login with its terms may be longer)
* empty: of 8 and more entries 60 % and more state no value ("no data available", "暂无数据")
* offer: 0.6 words of trade, job adverts or tenders per 100 tokens, with fewer than four SDS sections
* profile: 2.5 words of posts, careers or courses per 100 tokens, where the page is about people or
  teaching (five such words, three of them different), with fewer than four SDS sections
* index: headings without text, entries without sentences, 55 % links, teasers that break
  off, page numbers behind leaders, or lists of dated posts

A page without a subject (density and safety both under 1.5) or with fewer than 40
tokens is capped at 2; one about safety at large with hardly a word about chemicals
(density under 0.5) at 2.9.

The same formula holds a model to the text: an answer far from what the features
bear is asked again, then refused, whatever a page says of its own worth.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from typing import Any, ClassVar, Literal

from pydantic import BaseModel, Field

from corpus import lexicon
from corpus.dashes import with_hyphens
from corpus.headings import level_of, sections_of
from corpus.names import simplified
from corpus.orders import span_with_orders, title_without_orders, without_orders
from corpus.quantities import is_no_data
from corpus.settings import QualitySettings
from corpus.units import parse_unit
from models.languages import language_of, wrong_language
from models.prompts import Prompts, Quoted
from models.skills import ACCEPT, Skill, Verdict

PageType = Literal[
    "document", "search", "index", "offer", "profile", "empty", "error", "login", "parked", "script"
]
_WEIGHTS = {"density": 0.30, "safety": 0.20, "completeness": 0.25, "readability": 0.15, "authority": 0.10}
_CAP = 1.5
_CAP_NO_SUBJECT = 2.0
_NO_CHEMISTRY, _CAP_NO_CHEMISTRY = 0.5, 2.9
_MIN_TOKENS = 40
# How far a model's figure may stand from the formula's, in either direction. The 78 sample pages that have a text
# were scored by the rubric before the formula's figures were looked at (some of them in tests/corpus/test_quality.py).
# The scores lay at most 0.9 (score), 1.9 (density), 3.5 (safety: tables and laws have few safety words) and 1.6
# (completeness) above the formula; on pages that it gives 3.5 and more, at most 0.6, 1.3, 0.8 and 1.7 below it. About
# half a point is added, as judges differ. Authority lay up to 4.8 above, and the formula's readability is mostly
# 5.0: the features say too little of those two to hold anybody to them.
_TOLERANCE = {"score": 1.5, "density": 2.5, "safety": 4.0, "completeness": 2.5}
_NOT_WORTH_KEEPING = 3.0  # most for what the formula caps at 2.0 and below
_CLEARLY_GOOD = 3.5  # from here on a very low answer is as suspicious as a very high one is elsewhere
_HAN, _CHARACTER = re.compile(r"[\u3400-\u9fff]"), 0.3
_TRADITIONAL = re.compile(r"[氣體點險滅劑與應學質藥運儲蝕場護燒發]")
_NAMES_ZH = {"density": "信息密度", "safety": "安全相关性", "completeness": "完整性", "readability": "可读性", "authority": "权威性"}  # fmt: skip
_TYPES_ZH: dict[PageType, str] = {
    "search": "搜索结果页", "index": "目录页", "offer": "报价、招聘或招标页", "profile": "人物或课程介绍页", "empty": "没有数据的页面", "error": "错误页", "login": "登录页", "parked": "停放域名页", "script": "仅有脚本的页面",
}  # fmt: skip
_LEFT_OUT = "\n\n[…]\n\n"
_LOGIN = 700  # tokens up to which a page whose head asks for a login is one, with its terms and conditions
_MIN_ENTRIES, _NO_DATA = (
    8,
    0.6,
)  # entries from which their share without a value counts; share of an empty template
_MIN_OFFERS, _OFFERS = (
    5,
    0.6,
)  # words of trade from which they count; per 100 tokens. Sample documents: 0.54 at most
_MIN_PROFILE, _KINDS_OF_PROFILE, _PROFILE = (
    5,
    3,
    2.5,
)  # the same of people and courses. Sample documents: 0.2 at most
_MOSTLY_LINKS = 0.55
_SHORT = 250  # tokens under which a page's own words about itself decide its type


@dataclass(frozen=True)
class TextFeatures:
    """Measured on the whole cleaned text. ``tokens`` in ``words``; ``*_per_100``: per 100 tokens, a Chinese character as 0.7."""

    tokens: int
    chemistry_per_100: float
    quantities_per_100: float
    identifiers_per_100: float
    safety_per_100: float
    headings: int
    empty_headings: int
    table_rows: int
    list_items: int
    articles: int
    authority: int
    link_share: float
    repeated_share: float
    fragment_share: float
    no_data_share: float
    offers_per_100: float
    profile_per_100: float
    sds_sections: tuple[int, ...]
    page_type: PageType


class Score(BaseModel):
    """Answer of ``score_document``: the score and the sub-scores it rests on, each 0-5, one decimal."""

    score: float = Field(ge=0, le=5)
    density: float = Field(ge=0, le=5, description="information about chemicals per text")
    safety: float = Field(ge=0, le=5, description="relevance to safety")
    completeness: float = Field(ge=0, le=5)
    readability: float = Field(ge=0, le=5)
    authority: float = Field(ge=0, le=5, description="signs of a trustworthy source")
    reason: str
    language: str
    sds_sections: list[int] = Field(default_factory=list)


@dataclass(frozen=True)
class ScoreGiven:
    """A document to be scored: its title, language, sampled windows, and the features of the whole."""

    title: str
    language: str
    sample: tuple[str, ...]
    features: TextFeatures


def scoring_input(
    text: str,
    *,
    title: str,
    language: str,
    settings: QualitySettings,
    count: Callable[[str], int],
    link_share: float = 0.0,
) -> tuple[ScoreGiven, list[tuple[int, int]]]:
    """What a cleaned text is scored on, and the spans of the text behind the sampled windows.

    Passages of text and title that give orders to a language model are left out, so
    that they change neither the features nor a byte of the prompt.
    """
    plain, plain_title = without_orders(text), title_without_orders(title)
    features = measure(plain, title=plain_title, count=count, link_share=link_share)
    spans = sample_windows(plain, settings.sample_windows, settings.sample_tokens, count)
    sample = tuple(plain[start:end] for start, end in spans)
    given = ScoreGiven(plain_title, language, sample, features)
    return given, [span_with_orders(text, *span) for span in spans]


def sample_windows(
    text: str, windows: int, tokens: int, count: Callable[[str], int]
) -> list[tuple[int, int]]:
    """Spans of a text that are scored: the whole where it is short, else windows evenly spread.

    The first and the last part are among them. Cut at line ends; depends on
    nothing but the text and the two sizes.
    """
    if count(text) <= windows * tokens:
        return [(0, len(text))] if text else []
    lines = _line_spans(text)
    sizes = [max(1, count(text[a:b])) for a, b in lines]
    total = sum(sizes)
    spans: list[tuple[int, int]] = []
    for k in range(windows - 1):
        wanted = k * (total - tokens) / (windows - 1)
        first = _line_at(sizes, wanted)
        last = _reach(sizes, first, tokens)
        if not spans or lines[first][0] >= spans[-1][1]:
            spans.append((lines[first][0], lines[last][1]))
    first = len(lines) - 1 - _reach(sizes[::-1], 0, tokens)
    first = next(
        (i for i in range(first, len(lines)) if not spans or lines[i][0] >= spans[-1][1]), len(lines)
    )
    if first < len(lines):
        spans.append((lines[first][0], len(text)))
    return spans


def _line_at(sizes: Sequence[int], offset: float) -> int:
    """Index of the line that holds the token at an offset."""
    before = 0
    for index, size in enumerate(sizes):
        before += size
        if before > offset:
            return index
    return len(sizes) - 1


def _reach(sizes: Sequence[int], first: int, tokens: int) -> int:
    """Index of the last line that still fits; the first one always does."""
    taken, last = sizes[first], first
    while last + 1 < len(sizes) and taken + sizes[last + 1] <= tokens:
        last += 1
        taken += sizes[last]
    return last


def _line_spans(text: str) -> list[tuple[int, int]]:
    """Lines with their ends; a very long line is cut every 2,000 characters."""
    spans: list[tuple[int, int]] = []
    for match in re.finditer(r"[^\n]*\n|[^\n]+$", text):
        spans += [(a, min(a + 2000, match.end())) for a in range(match.start(), match.end(), 2000)]
    return spans


# --- features ------------------------------------------------------------------


def measure(text: str, *, title: str, count: Callable[[str], int], link_share: float = 0.0) -> TextFeatures:
    """Features of a cleaned text (Markdown). ``link_share``: share of it that stands in links."""
    tokens = max(1, count(text))
    if _TRADITIONAL.search(text):
        text = simplified(text)  # the lexicon is in simplified characters
    lines = [line.strip() for line in text.split("\n") if line.strip()]
    rows = [line for line in lines if line.startswith("|") and re.search(r"\w", line)]
    headings, empty = _headings(lines)
    sections = tuple(sorted({section["sds"] for section in sections_of(text) if section["sds"]}))

    # Ten Chinese characters say what seven English words say; without this, equal texts would be unequally dense.
    size = max(1.0, tokens - _CHARACTER * len(_HAN.findall(text)))

    def per_100(pattern: re.Pattern[str]) -> float:
        return 100 * len(pattern.findall(text)) / size

    features = TextFeatures(
        tokens=tokens if text.strip() else 0,
        chemistry_per_100=per_100(lexicon.CHEMISTRY),
        quantities_per_100=per_100(lexicon.QUANTITY) + 100 * _labelled_quantities(lines) / size,
        identifiers_per_100=per_100(lexicon.IDENTIFIER),
        safety_per_100=per_100(lexicon.SAFETY) + per_100(lexicon.ADVICE) + 2 * per_100(lexicon.HAZARD_CODE),
        headings=headings,
        empty_headings=empty,
        table_rows=len(rows),
        list_items=sum(bool(re.match(r"[-*+] |\d{1,3}[.)] ", line)) for line in lines),
        articles=len(lexicon.ARTICLE.findall(text)),
        authority=len(set(lexicon.AUTHORITY.findall(text))),
        link_share=link_share,
        repeated_share=_repeated_share(lines),
        fragment_share=_fragment_share(lines),
        no_data_share=_no_data_share(lines),
        offers_per_100=_several(lexicon.OFFER, text, size, least=_MIN_OFFERS, kinds=2),
        profile_per_100=_several(lexicon.PROFILE, text, size, least=_MIN_PROFILE, kinds=_KINDS_OF_PROFILE),
        sds_sections=sections,
        page_type="document",
    )
    return TextFeatures(**(asdict(features) | {"page_type": page_type(text, title, features)}))


def _headings(lines: Sequence[str]) -> tuple[int, int]:
    """Headings, and those of them that nothing stands under (the next line is no deeper heading, no text)."""
    levels = [level_of(line) for line in lines]
    empty = 0
    for i, level in enumerate(levels):
        following = levels[i + 1] if i + 1 < len(levels) else 1
        if level > 1 and following and following <= level:
            empty += 1
    return sum(level > 0 for level in levels), empty


def _repeated_share(lines: Sequence[str]) -> float:
    long = [line for line in lines if len(line) > 25]
    counts = Counter(long)
    return sum(n - 1 for n in counts.values()) / len(long) if long else 0.0


def _fragment_share(lines: Sequence[str]) -> float:
    """Share of prose lines that break off: snippets end in an ellipsis or in mid-sentence."""
    prose = [line for line in lines if not line.startswith(("|", "#", "```")) and len(line) > 20]
    if not prose:
        return 0.0
    cut = sum(
        bool(re.search(r"(?:…|\.{3})\W{0,3}$|(?:…|\.{3})\s*\S{0,12}$|\w$|,$|，$", line)) for line in prose
    )
    return cut / len(prose)


def _no_data_share(lines: Sequence[str]) -> float:
    """Share of a page's entries (rows, "label: value", text under a heading) that state no value; 0 for few entries."""
    entries = empty = 0
    for i, line in enumerate(lines):
        if line.startswith("|"):
            cells = [cell.strip() for cell in line.strip("|").split("|")]
            if len(cells) < 2 or not re.search(r"\w", line):
                continue
            values = cells[1:]
        elif i and level_of(lines[i - 1]):
            values = [line]
        else:
            _, colon, value = line.partition("：" if "：" in line[:30] else ":")
            if not colon:
                continue
            values = [value.strip()]
        entries += 1
        empty += all(is_no_data(value) or lexicon.NO_VALUE.match(value) is not None for value in values)
    return empty / entries if entries >= _MIN_ENTRIES else 0.0


_UNIT_IN_LABEL = re.compile(
    r"[^\W\d_].*?(?:[(（\[【]\s*([^()（）\[\]【】]{1,16})\s*[)）\]】]|(?:[/／,，]|\bin)\s*([^\s,，/／]{1,12})|(℃|℉|°[CF]|[%％‰])(?:\s?[(（\[]\s?[VvMmWw]\s?[/／]\s?[VvMmWw]\s?[)）\]])?)\W{0,3}$"
)
_BARE_VALUE = re.compile(
    r"[<>≤≥≦≧≈~约>=\s]{0,4}[-+±]?\s?\d[\d.,]*(?:\s?(?:[-~～至]|to)\s?[-+]?\d[\d.,]*)?(?:\s?[(（\[][^()（）]{0,30}[)）\]])?[.。;；,，]?"
)
_LONGEST_LABEL, _LONGEST_VALUE = 60, 80


def _labelled_quantities(lines: Sequence[str]) -> int:
    """Numbers without a unit of their own whose unit stands in the label of their row or column."""
    found = 0
    columns: set[int] = set()  # of the present table, those whose heading has a unit
    previous_was_row = False
    for line in lines:
        if not line.startswith("|"):
            columns, previous_was_row = set(), False
            label, value = _parted(line)
            found += _has_unit(label) and _is_bare(value)
            continue
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if not previous_was_row:
            columns = {number for number, cell in enumerate(cells) if number and _has_unit(cell)}
            if len(columns) == 1 and len(cells) == 2:
                columns = set()  # "Property | Value (°C)" heads rows of all kinds
        previous_was_row = True
        row = _has_unit(cells[0])
        found += sum(
            _is_bare(cell) and (row or number in columns)
            for number, cell in enumerate(cells)
            if number and not (row and number > 1 and number not in columns)
        )
    return found


def _parted(line: str) -> tuple[str, str]:
    """Label and value of a line "label: value"; a colon within brackets parts nothing."""
    for match in re.finditer("[:：]", line[: _LONGEST_LABEL + 1]):
        label = line[: match.start()]
        if label.count("(") + label.count("（") == label.count(")") + label.count("）"):
            return label.strip("-*+•· "), line[match.end() :].strip("* ")
    return "", ""


def _has_unit(label: str) -> bool:
    if not 1 < len(label) <= _LONGEST_LABEL:
        return False
    match = _UNIT_IN_LABEL.search(label)
    return match is not None and any(unit and parse_unit(unit) is not None for unit in match.groups())


def _is_bare(value: str) -> bool:
    if len(value) > _LONGEST_VALUE:
        return False
    plain = with_hyphens(value)
    return _BARE_VALUE.fullmatch(plain) is not None and lexicon.QUANTITY.search(plain) is None


def _several(words: re.Pattern[str], text: str, size: float, *, least: int, kinds: int) -> float:
    """Words of a kind per 100 tokens; 0 where there are hardly any, or the same ones again and again."""
    found = [word.lower() for word in words.findall(text)]
    return 100 * len(found) / size if len(found) >= least and len(set(found)) >= kinds else 0.0


def page_type(text: str, title: str, features: TextFeatures) -> PageType:
    """What kind of page a text is. Documents first: a long text may speak of logins and errors."""
    head = f"{title}\n{text[:400]}"
    short = features.tokens < _SHORT
    sheet = len(features.sds_sections) >= 4
    if lexicon.SEARCH_PAGE.search(head) and not features.sds_sections:
        return "search"
    if short:
        whole = f"{title}\n{text}"
        rich = features.chemistry_per_100 + features.safety_per_100 > 12 and features.tokens > 2 * _MIN_TOKENS
        for name, pattern in _OWN_WORDS:
            if pattern.search(whole) and not rich:
                return name
    elif features.tokens < _LOGIN and lexicon.LOGIN_PAGE.search(head) and not sheet:
        return "login"
    if features.no_data_share >= _NO_DATA:
        return "empty"
    if features.offers_per_100 >= _OFFERS and not sheet and features.articles < 5:
        return "offer"
    if features.profile_per_100 >= _PROFILE and not sheet and features.articles < 5:
        return "profile"
    return "index" if _is_index(text, features) else "document"


_OWN_WORDS: tuple[tuple[PageType, re.Pattern[str]], ...] = (
    ("parked", lexicon.PARKED_PAGE),
    ("error", lexicon.ERROR_PAGE),
    ("login", lexicon.LOGIN_PAGE),
    ("script", lexicon.SCRIPT_PAGE),
)
_SNIPPET_META = re.compile(
    r"\d+(?:\.\d+)? ?[KM]B\b|\([\d,]+ words\)|\d{1,2}:\d{2}, \d|快照|\d{4}-\d{1,2}-\d{1,2}\s+来源|cached\b",
    re.IGNORECASE,
)


def _is_index(text: str, features: TextFeatures) -> bool:
    """Tables of contents, portals and hit lists: headings without text, entries without sentences."""
    if features.articles >= 5 or len(features.sds_sections) >= 4:
        return False
    if features.headings >= 5 and features.empty_headings >= 0.4 * features.headings:
        return True
    if features.link_share >= _MOSTLY_LINKS:
        return True
    if len(_SNIPPET_META.findall(text)) >= 5 and features.fragment_share > 0.3:
        return True
    lines = [line.strip() for line in text.split("\n") if line.strip()]
    return _lists_entries(lines, features) or _leads_elsewhere(lines, features)


def _lists_entries(lines: Sequence[str], features: TextFeatures) -> bool:
    """Whether nearly all lines are entries or headings and hardly one is a sentence."""
    entries = features.list_items + features.headings
    return entries >= 12 and entries >= 0.75 * len(lines) and _sentences(lines) < 0.15 * len(lines)


def _leads_elsewhere(lines: Sequence[str], features: TextFeatures) -> bool:
    """Teasers, contents with page numbers, and lists of dated posts."""
    prose = sum(not line.startswith(("|", "#", "```")) and len(line) > 20 for line in lines)
    if (teasers := sum(bool(lexicon.TEASER.search(line)) for line in lines)) >= 5 and teasers >= 0.25 * prose:
        return True
    filled = [line.strip("| ") for line in lines if re.search(r"\w", line)]
    if _is_contents(filled):
        return True
    if (leaders := sum(bool(lexicon.LEADER.search(line)) for line in filled)) >= 8 and leaders >= 0.4 * len(
        filled
    ):
        return True
    entries = [line for line in filled if not level_of(line)]
    stamped = sum(bool(lexicon.STAMP.search(line)) for line in entries)
    plain = features.quantities_per_100 < 1 and _sentences(lines) < 0.15 * len(lines)
    return stamped >= 10 and stamped >= 0.5 * len(entries) and plain


_CHAPTER = re.compile(
    r"[-*+#>\s]*(?:第\s*[〇零一二三四五六七八九十百\d]+\s*[章节篇编]|附录|\d+(?:\.\d+)+\b|(?:chapter|section|appendix)\s+\w+)",
    re.IGNORECASE,
)
_PAGE_NUMBER = re.compile(r"(?:[|\s]|…{2,}|⋯{2,}|[.．·]{3,})\s*[(（]?(?:第\s*)?(\d{1,4})\s*页?[)）]?$")


def _is_contents(lines: Sequence[str]) -> bool:
    """Whether most lines are a chapter or section with a page number that grows from line to line."""
    pages = [int(found[1]) for line in lines if _CHAPTER.match(line) and (found := _PAGE_NUMBER.search(line))]
    if len(pages) < 8 or len(pages) < 0.6 * len(lines) or len(set(pages)) < 0.5 * len(pages):
        return False
    # Numbers that go up and down are values of a table, not pages.
    return sum(a <= b for a, b in pairwise(pages)) >= 0.9 * (len(pages) - 1)


_STOP = re.compile(
    r"[。！？；]|\w\w[)\]%”\"]?[.!?](?=\s|$)"
)  # the stop behind an initial ("A. Author") ends no sentence
_STOPPED = re.compile(r"[。！？；.!?][\s”’」』\"')\]）*_\d\[]*$")


def _sentences(lines: Sequence[str]) -> int:
    """Lines that hold text: two sentences and more, or one that ends the line."""
    found = 0
    for line in lines:
        stops = len(_STOP.findall(line)) if len(line) > 30 and not line.startswith("#") else 0
        found += stops > 1 or (stops == 1 and _STOPPED.search(line) is not None)
    return found


# --- the skill -----------------------------------------------------------------


class ScoreDocument(Skill[ScoreGiven, Score]):
    """Score a document from 0 to 5 for a knowledge base on chemicals and their safety."""

    name: ClassVar[str] = "score_document"
    version: ClassVar[str] = "6"
    output: ClassVar[type[BaseModel]] = Score
    prompts: ClassVar[Prompts] = Prompts(__package__, "score_document")

    def values(self, given: ScoreGiven) -> Mapping[str, str | int | float | Quoted]:
        """Title and sampled windows as quoted data, and what was measured on the whole."""
        sections = ", ".join(map(str, given.features.sds_sections))
        return {
            "title": Quoted(given.title, "title"),
            "document": Quoted(_LEFT_OUT.join(window.strip("\n") for window in given.sample)),
            "tokens": given.features.tokens,
            "sections": sections or ("无" if language_of(given.language) == "zh" else "none"),
        }

    def check(self, given: ScoreGiven, answer: Score) -> Verdict:
        """One decimal, consistent with its sub-scores and the features, a reason in the text's language, real sections."""
        wrong = [*_faults(given, answer), *_unborne(given, answer)]
        return Verdict.ask_again(*wrong) if wrong else ACCEPT

    def offline(self, given: ScoreGiven) -> Score:
        """The formula of the module's head."""
        return formula(given.features, given.language)


def _faults(given: ScoreGiven, answer: Score) -> list[str]:
    parts = {name: getattr(answer, name) for name in _WEIGHTS}
    wrong = [
        f"{name} must have one decimal at most, got {value}"
        for name, value in {"score": answer.score, **parts}.items()
        if abs(value * 10 - round(value * 10)) > 1e-6
    ]
    if answer.score > max(parts.values()):
        wrong.append(f"score {answer.score} is above all sub-scores")
    if answer.score > weighted(parts) + 1.0:
        wrong.append(
            f"score {answer.score} is not borne out by the sub-scores (their weighted mean is {weighted(parts):.1f})"
        )
    if given.features.page_type != "document" and answer.score > _NOT_WORTH_KEEPING:
        wrong.append(f"the page is a {given.features.page_type} page, not a document: score it 3 or lower")
    if not answer.reason.strip():
        wrong.append("the reason is missing")
    if tongue := wrong_language(answer.reason, given.language):
        wrong.append(f"the reason: {tongue}")
    if given.language[:2] in ("zh", "en") and answer.language[:2].lower() != given.language[:2]:
        wrong.append(f"the language of the text is {given.language}, not {answer.language}")
    if any(not 1 <= section <= 16 for section in answer.sds_sections):
        wrong.append("sds_sections must be numbers from 1 to 16")
    return wrong


def _unborne(given: ScoreGiven, answer: Score) -> list[str]:
    """What stands far from the features: too high anywhere, too low where they are clearly good."""
    measured = formula(given.features, given.language)
    wrong: list[str] = []
    for name, tolerance in _TOLERANCE.items():
        value, borne = getattr(answer, name), getattr(measured, name)
        most = borne + tolerance
        if name == "score" and _cap(given.features, _parts(given.features))[0] <= _CAP_NO_SUBJECT:
            most = min(most, _NOT_WORTH_KEEPING)
        if value > most + 1e-6:
            wrong.append(
                f"{name} {value} is far above what the text bears: its words, values, headings and length give about {borne}"
            )
        if measured.score >= _CLEARLY_GOOD and value < borne - tolerance - 1e-6:
            wrong.append(
                f"{name} {value} is far below what the text bears: its words, values, headings and length give about {borne}"
            )
    return wrong


def weighted(parts: Mapping[str, float]) -> float:
    """Weighted mean of the sub-scores."""
    return sum(weight * parts[name] for name, weight in _WEIGHTS.items())


def _saturating(value: float, scale: float) -> float:
    return 1 - math.exp(-value / scale)


def formula(features: TextFeatures, language: str) -> Score:
    """The offline score (see the head of the module)."""
    parts = _parts(features)
    cap, why = _cap(features, parts)
    score = round(min(weighted(parts), cap, max(parts.values())), 1)
    best, worst = max(parts, key=lambda n: parts[n]), min(parts, key=lambda n: parts[n])
    chinese = language_of(language) == "zh"
    if why:
        reason = why[0] if chinese else why[1]
    elif chinese:
        reason = f"最好的是{_NAMES_ZH[best]} {parts[best]}，最弱的是{_NAMES_ZH[worst]} {parts[worst]}"
    else:
        reason = f"best: {best} {parts[best]}, weakest: {worst} {parts[worst]}"
    return Score(
        score=score, reason=reason, language=language, sds_sections=list(features.sds_sections), **parts
    )  # fmt: skip


def _parts(f: TextFeatures) -> dict[str, float]:
    """The sub-scores of the formula."""
    filled = max(0, f.headings - f.empty_headings)
    structure = len(f.sds_sections) / 8 + filled / 10 + f.table_rows / 25 + f.articles / 15
    empty = f.empty_headings / f.headings if f.headings else 0.0
    # entries of a data sheet ("Flash point: 11 °C") end without a stop and are no fragments
    fragments = 0.0 if len(f.sds_sections) >= 4 else max(0.0, f.fragment_share - 0.3)
    untidy = f.link_share * 0.8 + f.repeated_share + 0.6 * empty + 0.5 * fragments
    subject = f.chemistry_per_100 + 3 * f.quantities_per_100 + 4 * f.identifiers_per_100
    signs = f.authority + len(f.sds_sections) / 4 + f.articles / 10
    parts = {
        "density": 5 * _saturating(subject, 6),
        "safety": 5 * _saturating(f.safety_per_100, 4),
        "completeness": 5 * (0.6 * _saturating(f.tokens, 350) + 0.4 * min(1.0, structure)),
        "readability": 5 * max(0.0, 1 - untidy),
        "authority": 5 * _saturating(signs, 3),
    }
    return {name: round(value, 1) for name, value in parts.items()}


def _cap(features: TextFeatures, parts: Mapping[str, float]) -> tuple[float, tuple[str, str] | None]:
    """The most that a page of its kind can score, and why (zh, en)."""
    if features.page_type != "document":
        kind = features.page_type
        return _CAP, (f"这是{_TYPES_ZH[kind]}，不是文档", f"{kind} page, not a document")
    if features.tokens < _MIN_TOKENS:
        return _CAP_NO_SUBJECT, (f"只有 {features.tokens} 个词元", f"only {features.tokens} tokens")
    if parts["density"] < _NO_CHEMISTRY:
        return _CAP_NO_CHEMISTRY, ("几乎没有关于化学品的内容", "hardly a word about chemicals")
    if parts["density"] < 1.5 and parts["safety"] < 1.5:
        return _CAP_NO_SUBJECT, ("既不涉及化学，也不涉及安全", "neither chemistry nor safety")
    return 5.0, None


def parts_of(score: Score, features: TextFeatures, sample: Sequence[tuple[int, int]]) -> dict[str, Any]:
    """What is stored beside the score: sub-scores, reason, sections, features, the sampled spans."""
    return score.model_dump(exclude={"score"}) | {
        "features": asdict(features) | {"sds_sections": list(features.sds_sections)},
        "sample": [list(span) for span in sample],
    }
