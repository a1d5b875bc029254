"""Answers with cited spans: the skill ``answer_question`` and how a question runs through the index.

Offline the answer is extractive: the sentences that best cover the question, as
they stand. A question about one substance is never answered from a sentence
about another, and where nothing covers the question the answer says so.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import zip_longest
from typing import ClassVar

from pydantic import BaseModel, Field

from chunking.grounding import Bound, bound_values, denial_changed, unproved
from chunking.matters import Asked
from chunking.scopes import missing_scopes
from chunking.sentences import split_sentences
from chunking.subjects import fold_names, mentions, places
from chunking.terms import terms
from corpus.units import UNIT_PATTERN, parse_unit
from models.languages import language_of, wrong_language
from models.prompts import Prompts, Quoted
from models.skills import ACCEPT, Skill, Verdict

NOT_FOUND = {"zh": "知识库中没有找到答案。", "en": "Not found in the knowledge base."}
_IN_LANGUAGE = {
    "zh": "answer in Chinese, the language of the question (请用中文回答)",
    "en": "answer in English, the language of the question",
}

_COVERED = 0.6  # weighted share of the question's terms that sentence and title must have
_OWN = 0.34  # share that the sentence itself must have
_OWN_SUBJECT = 0.4  # the same where the substance is known, and is the right one
_SECOND = 0.85  # further sentences need this share of the best one's score
_MAX_QUOTES = 3
_LABEL = 40  # characters up to which a line without a stop may be a label of what follows
_VALUE_AT = 12  # characters before the number of a value that stands below its label
_NUMBER = re.compile(r"\d+(?:[.,]\d+)*")
_QUANTITY = re.compile(
    r"多少|多大|多高|how (?:much|many|high)|"
    r"what (?:is|are) the [^?]*\b(?:points?|temperatures?|limits?|density|pressure|ld50|lc50|mass|weight|value)\b",
    re.IGNORECASE,
)
_MARK = re.compile(
    r"^\W*(?:section\s*|第)?\d{1,2}(?:\.\d{1,2})*(?:部分|[.、．)）]|\s(?=[^\W\d]))\s*", re.IGNORECASE
)
_STOP = re.compile(r"[。！？.!?；;]\W*$")
# Numbers that name something and measure nothing: standards with their year, CAS and UN numbers.
_DESIGNATION = re.compile(
    r"(?<![A-Za-z])(?:GBZ?|HG|AQ|HJ|JT|SY|YY|ISO|IEC|EN|ASTM|ANSI|DIN|NFPA|CFR)(?:/[A-Z]+)?\s*[A-Z]?\d[\d.:—–-]*"
    r"|(?<![\d-])\d{2,7}-\d{2}-\d(?![\d-])|(?<![A-Za-z])UN\s?(?:No\.?\s?)?\d{4}(?!\d)"
)
# Exposure limits stand under their kinds: PC-TWA (GBZ 2.1), TLV (ACGIH), PEL (OSHA), REL (NIOSH), WEL, MAK.
_LIMIT = re.compile(r"(?<![A-Za-z])(?:PC-(?:TWA|STEL)|MAC|TLV|PEL|REL|OEL|WEL|MAK)s?(?![a-z])")
_TABLE_RULE = re.compile(r"[|\s:-]*-{3}[|\s:-]*")


@dataclass(frozen=True)
class Passage:
    """A piece of the context. ``about``: whether its document is about the substance asked for; None: unknown."""

    text: str
    title: str = ""
    about: bool | None = None


@dataclass(frozen=True)
class AnswerIn:
    """A question with its context. ``weights``: inverse document frequency of terms (absent: 1).

    ``names``: the names, folded, of the substances that the question is about; ``each``: the same by
    substance where there are several, all of which an answer has to name. ``asked``: what it asks for
    in the terms of data sheets; ``only_labelled``: the rules then take nothing but what stands under a
    label of that.
    """

    question: str
    language: str
    passages: tuple[Passage, ...]
    weights: Mapping[str, float] = field(default_factory=dict)
    names: tuple[str, ...] = ()
    each: tuple[tuple[str, ...], ...] = ()
    asked: Asked | None = None
    only_labelled: bool = False


class Quote(BaseModel):
    """Words of a passage, letter by letter."""

    passage: int = Field(ge=1, description="Number of the passage, from 1")
    quote: str = Field(min_length=1, description="Words of the passage, copied exactly")


class AnswerOut(BaseModel):
    """An answer that rests on quotes, or ``found`` false."""

    found: bool = Field(description="False when the passages do not answer the question")
    answer: str = Field(description="The answer, in the language of the question")
    quotes: list[Quote] = Field(default_factory=list, description="What the answer rests on")


class AnswerQuestion(Skill[AnswerIn, AnswerOut]):
    """Answers a question from passages, with quotes."""

    name: ClassVar[str] = "answer_question"
    version: ClassVar[str] = "5"
    output: ClassVar[type[BaseModel]] = AnswerOut
    prompts: ClassVar[Prompts] = Prompts(__package__, "answer_question")

    def values(self, given: AnswerIn) -> dict[str, Quoted]:
        """Passages first, each in a fence of its own so that none can pass for another; question last."""
        passages = (
            str(Quoted(f"[{number}] {' '.join(passage.title.split())}\n{passage.text}", "passage"))
            for number, passage in enumerate(given.passages, start=1)
        )
        return {
            "passages": Quoted("\n".join(passages), "passages"),
            "question": Quoted(given.question, "question"),
        }

    def check(self, given: AnswerIn, answer: AnswerOut) -> Verdict:
        """Quotes stand in their passages; figures, properties, denials, classes and words come from them; language."""
        if not answer.found:
            return ACCEPT
        problems = []
        if not answer.quotes or not answer.answer.strip():
            problems.append("an answer needs at least one quote")
        for quote in answer.quotes:
            if quote.passage > len(given.passages):
                problems.append(f"there is no passage {quote.passage}")
            elif quote.quote not in given.passages[quote.passage - 1].text:
                problems.append(f"these words are not in passage {quote.passage}: {quote.quote[:80]}")
        placed = _placed(given, answer.quotes)
        cited = "\n".join(f"{given.passages[q.passage - 1].title}\n{q.quote}" for q in placed)
        problems += [
            f"the quotes do not say that they hold for {scope}"
            for scope in missing_scopes(given.question, cited)
        ]
        if any(not _about_subject(given, given.passages[q.passage - 1], q.quote) for q in placed):
            problems.append("a quote is from a text about another substance")
        source, known = _quoted_parts(given, answer.quotes)
        if answer.answer == _extract(answer.quotes):  # which changes nothing, in whatever language it is,
            cut = denial_changed(answer.answer, source)  # unless a quote begins behind its "not"
            problems += [f"a negation was lost: {clause[:80]!r}" for clause in cut[:1]]
        else:
            titles = "\n".join(given.passages[q.passage - 1].title for q in placed)
            problems += unproved(answer.answer, source, asked=given.question, known=known, context=titles)
            problems += _changed_figures(answer.answer, given.question, [q.quote for q in answer.quotes])
            if wrong_language(answer.answer, given.language):
                problems.append(_IN_LANGUAGE[language_of(given.language)])
        return Verdict.ask_again(*problems) if problems else ACCEPT

    def offline(self, given: AnswerIn) -> AnswerOut:
        """What stands under the label that is asked for, else the sentences that cover the question best.

        ``found`` false where there is neither.
        """
        chosen = _labelled_units(given) or ([] if given.only_labelled else _best(_units(given)))
        if not chosen:
            return AnswerOut(found=False, answer=NOT_FOUND["zh" if given.language.startswith("zh") else "en"])
        quotes = [Quote(passage=unit.passage + 1, quote=unit.text) for unit in chosen]
        return AnswerOut(found=True, answer=_extract(quotes), quotes=quotes)


def _placed(given: AnswerIn, quotes: Sequence[Quote]) -> list[Quote]:
    return [
        quote
        for quote in quotes
        if quote.passage <= len(given.passages) and quote.quote in given.passages[quote.passage - 1].text
    ]


def _quoted_parts(given: AnswerIn, quotes: Sequence[Quote]) -> tuple[str, list[Bound]]:
    """The whole sentences that quotes are taken from, and the quotes' values with the properties they stand by.

    A quote may begin behind the "not" or the label that its sentence or the line
    before it has.
    """
    parts: dict[str, None] = {}
    known: list[Bound] = []
    for quote in _placed(given, quotes):
        text = given.passages[quote.passage - 1].text
        start = text.index(quote.quote)
        end = start + len(quote.quote)
        spans = [(a, b) for a, b in split_sentences(text) if a < end and b > start]
        parts[text[min(a for a, _ in spans) : max(b for _, b in spans)] if spans else quote.quote] = None
        known += [bound for bound in bound_values(text) if start <= bound.start < end]
    return "\n".join(parts), known


def _extract(quotes: Sequence[Quote]) -> str:
    """The quotes and nothing else, as they are read."""
    return "\n".join(_shown(quote.quote) for quote in quotes)


@dataclass(frozen=True)
class _Unit:
    """A sentence, or a label line with what it labels."""

    passage: int
    start: int
    text: str
    score: float


def _units(given: AnswerIn) -> list[_Unit]:
    """Acceptable units, best first; ties by place."""
    wanted = topic_terms(given)
    if not wanted:
        return []
    weights = {term: given.weights.get(term, 1.0) for term in sorted(wanted)}
    quantity = bool(_QUANTITY.search(given.question))
    units: list[_Unit] = []
    for number, passage in enumerate(given.passages):
        title = wanted & _term_set(passage.title)
        for start, middle, end in _candidate_spans(passage.text):
            label, text = passage.text[start:middle], passage.text[start:end]
            if label and not wanted & _term_set(label):
                continue  # what stands before a label is no answer to it
            if quantity and not _measures(passage.text[middle:end], wanted, labelled=bool(label)):
                continue
            if _term_set(text) <= _term_set(passage.title):
                continue  # a title says what the document is about, and answers nothing
            score = _score(text, title, weights, known_subject=bool(given.names))
            if given.asked is not None and not given.asked.speaks(text + passage.title):
                continue
            if score > 0 and _right_subject(given, passage, text):
                units.append(_Unit(number, start, text, score))
    return sorted(units, key=lambda unit: (-unit.score, unit.passage, unit.start, len(unit.text)))


def _best(units: Sequence[_Unit]) -> list[_Unit]:
    """The best unit, and a few that are nearly as good and say something else."""
    chosen: list[_Unit] = []
    for unit in units:
        if unit.score < _SECOND * units[0].score or len(chosen) == _MAX_QUOTES:
            break
        if not any(_repeats(unit, other) for other in chosen):
            chosen.append(unit)
    return chosen


def _labelled_units(given: AnswerIn) -> list[_Unit]:
    """Labels of what is asked for with what stands under them, in documents about the substance.

    Of every matter the first that says something else than those before it, a few in all. A label alone
    says nothing of its substance: nothing is taken from a document whose subject is not known.
    """
    if given.asked is None or not given.names:
        return []
    found: dict[str, list[_Unit]] = {}
    known: set[str] = set()
    for number, passage in enumerate(given.passages):
        last = 0
        for matter, start, middle, end in given.asked.spans(passage.text) if passage.about is True else ():
            if start < last:  # a label inside what stands under another
                continue
            last = end
            if missing_scopes(given.question, f"{passage.title}\n{passage.text[start:end]}"):
                continue
            said = _squeezed(passage.text[middle:end]).casefold().strip("。.;；")
            if (same := f"{matter} {said}") not in known:
                known.add(same)
                found.setdefault(matter, []).append(_Unit(number, start, passage.text[start:end], 1.0))
    turns = zip_longest(*found.values())
    return [unit for turn in turns for unit in turn if unit is not None][: max(_MAX_QUOTES, len(found))]


def _measures(value: str, wanted: set[str], *, labelled: bool) -> bool:
    """Whether a text can give the quantity that is asked for: it has a number that measures.

    A whole sentence below a heading often speaks of something else (a storage
    temperature below "storage and exposure limits"): unless it begins with the
    value it has to name the quantity itself.
    """
    number = _NUMBER.search(_DESIGNATION.sub(" ", _MARK.sub("", value)))
    if number is None:
        return False
    prose = labelled and bool(_STOP.search(value)) and number.start() > _VALUE_AT
    return not prose or bool((_term_set(value) | _kinds_of_limit(value)) & wanted)


def topic_terms(given: AnswerIn) -> set[str]:
    """What the question asks about, the names of its substances left out."""
    return set(terms(_without_names(given), singles=False))


def _without_names(given: AnswerIn) -> str:
    """The question with the substances taken out: they are checked apart, by any of their names."""
    if not given.names:
        return given.question
    question = fold_names(given.question)
    for start, end in sorted(places(question, given.names)):
        question = f"{question[:start]}{' ' * (end - start)}{question[end:]}"
    return question


def _right_subject(given: AnswerIn, passage: Passage, text: str) -> bool:
    """Whether a unit speaks of what the question does: the substance, and the country, year or strength it names."""
    if missing_scopes(given.question, f"{passage.title}\n{text}"):
        return False
    if not _about_subject(given, passage, text):
        return False
    return passage.about is True or not given.names or mentions(text, given.names)


def _about_subject(given: AnswerIn, passage: Passage, text: str) -> bool:
    """A document about another substance never answers, even where a sentence of it names the one asked for.

    Where several are asked for, their names have to stand in the sentence or its title: one alone
    does not say how they compare or go together.
    """
    if passage.about is False:
        return not given.names
    said = f"{passage.title}\n{text}"
    return all(mentions(said, names) for names in given.each)


def _score(text: str, title: set[str], weights: Mapping[str, float], *, known_subject: bool) -> float:
    """Weighted share of the question's terms in unit and title; 0 where it is too small to be an answer."""
    own = (_term_set(text) | _kinds_of_limit(text)) & weights.keys()
    total = sum(weights.values())
    own_share = sum(weights[term] for term in sorted(own)) / total
    covered = sum(weights[term] for term in sorted(own | title)) / total
    enough = own_share >= _OWN_SUBJECT if known_subject else covered >= _COVERED and own_share >= _OWN
    if not enough:
        return 0.0
    brief = 1.0 / (1.0 + len(text) / 400)
    return own_share + 0.25 * covered + 0.1 * brief


@lru_cache(maxsize=65_536)
def _term_set(text: str) -> frozenset[str]:
    return frozenset(terms(text, singles=False))


_LIMIT_TERMS = _term_set("职业接触限值 occupational exposure limit")


def _kinds_of_limit(text: str) -> frozenset[str]:
    """The words for an exposure limit where a text gives one under its short name."""
    return _LIMIT_TERMS if _LIMIT.search(text) else frozenset()


def _shown(text: str) -> str:
    """A quote as it is read: without the frame of a table, rows without their number column."""
    lines = []
    for line in text.splitlines():
        if _TABLE_RULE.fullmatch(line):
            continue
        if "|" in line:
            cells = [cell.strip() for cell in line.split("|") if cell.strip()]
            if len(cells) > 1 and cells[0].isdigit() and cells[1].startswith(f"{cells[0]}."):
                del cells[0]
            lines.append(" | ".join(cells))
        elif line.strip():
            lines.append(line)
    return "\n".join(lines)


@lru_cache(maxsize=16_384)
def _candidate_spans(text: str) -> tuple[tuple[int, int, int], ...]:
    """(start, start of the value, end): sentences, and label lines together with the line that follows.

    For a sentence the first two are the same.
    """
    pieces = [_trimmed(text, start, end) for start, end in split_sentences(text)]
    pieces = [
        (start, end) for start, end in pieces if end > start and not _TABLE_RULE.fullmatch(text, start, end)
    ]
    spans: list[tuple[int, int, int]] = []
    for index, (start, end) in enumerate(pieces):
        if not _is_label(text[start:end]):
            spans.append((start, start, end))
        elif index + 1 < len(pieces) and not _is_label(text[slice(*pieces[index + 1])]):
            spans.append((start, *pieces[index + 1]))
    return tuple(spans)


def _is_label(line: str) -> bool:
    """A short line without stop and without a value: it ends in a colon, or has neither digits nor one inside.

    A table row with one filled cell is the heading of the rows below it.
    """
    if line.startswith("|") and line.endswith("|"):
        cells = [cell.strip() for cell in line.split("|") if cell.strip()]
        return len(cells) == 1 and line.count("|") > 2 and _is_label(cells[0])
    if len(line) > _LABEL or _STOP.search(line):
        return False
    if line.endswith((":", "：")) or line.startswith("#"):
        return True
    return not re.search(r"[:：\t|\d]", _MARK.sub("", line))


def _trimmed(text: str, start: int, end: int) -> tuple[int, int]:
    piece = text[start:end]
    return start + len(piece) - len(piece.lstrip()), start + len(piece.rstrip())


def _repeats(unit: _Unit, other: _Unit) -> bool:
    """Overlapping words of one passage, or the same words again."""
    near = unit.passage == other.passage and abs(unit.start - other.start) < max(
        len(unit.text), len(other.text)
    )
    return near or _squeezed(unit.text) in _squeezed(other.text)


def _squeezed(text: str) -> str:
    return "".join(unicodedata.normalize("NFKC", text).split())


# --- figures ---------------------------------------------------------------------------------------------------

_DASH = re.compile(r"[\u2010-\u2013]")
_CAS_SHAPE = re.compile(r"(?<![0-9A-Za-z.-])\d{2,7}-\d{2}-\d(?![0-9A-Za-z-]|\.\d)")
_UNIT_SIGN = "[度克升米天时分倍]"
# A hyphen is a sign where no number, word or unit stands before it: "为-20℃", but not "3-5", "12%-36%", "10度-20度".
_FIGURE = re.compile(
    r"(?P<minus>(?:零下|负|\bminus|\bnegative)\s?"
    rf"|(?<![0-9A-Za-z%°])(?<!\d\s)(?<!\d{_UNIT_SIGN})(?<!\d\s{_UNIT_SIGN})-)?"
    r"(?P<number>\d{1,3}(?:,\d{3})+(?![\d,])(?:\.\d+)?|\d+(?:[.,]\d+)*)"
    rf"(?:\s?(?P<unit>{UNIT_PATTERN}))?",
    re.IGNORECASE,
)
_THOUSANDS = re.compile(r"\d{1,3}(?:,\d{3})+(?:\.\d+)?")


def _changed_figures(answer: str, question: str, quotes: Sequence[str]) -> list[str]:
    """What the numbers of an answer have that no quote has: another value, sign, unit or CAS number.

    The question's numbers may be said again beside those of the quotes ("not 12 °C
    but 11 °C"), never alone: "yes, 12 °C" rests on nothing. A unit counts as changed
    only where every mention of that number has another one: in tables the unit
    stands in the header.
    """
    said, asked, quoted = _figures(answer), _figures(question), _figures("\n".join(quotes))
    stray = sorted(said.keys() - asked.keys() - quoted.keys())
    problems = [f"numbers of the answer that no quote has: {', '.join(stray)}"] if stray else []
    echoed = sorted(
        number
        for number in said.keys() - quoted.keys() - set(stray)
        if said[number] != {""} or _CAS_SHAPE.fullmatch(number)
    )
    if echoed and not said.keys() & quoted.keys():
        problems.append(f"only the question has {', '.join(echoed)}: say what the quotes state")
    for number in sorted(said.keys() - set(stray)):
        known = asked.get(number, set()) | quoted.get(number, set())
        wrong = said[number] - known - {""}
        if wrong and "" not in known:
            problems.append(
                f"{number} has the unit {', '.join(sorted(known))}, not {', '.join(sorted(wrong))}"
            )
    return problems


def _figures(text: str) -> dict[str, set[str]]:
    """Numbers with their sign, each with the units it stands with ("" for none); CAS numbers are one number."""
    plain = unicodedata.normalize("NFKC", re.sub(r"\u2212\s?", "-", _DASH.sub("-", text)))
    found: dict[str, set[str]] = {cas: {""} for cas in _CAS_SHAPE.findall(plain)}
    for match in _FIGURE.finditer(_CAS_SHAPE.sub(" ", plain)):
        number = match["number"]
        if _THOUSANDS.fullmatch(number):
            number = number.replace(",", "")
        unit = parse_unit(match["unit"]) if match["unit"] else None
        found.setdefault(f"{'-' if match['minus'] else ''}{number}", set()).add(unit.label if unit else "")
    return found
