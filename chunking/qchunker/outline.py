"""Agent 1, the question outline: expert questions, one per expected unit (QChunker, section 3.2.1)."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter as Tally
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

from pydantic import BaseModel, Field

from chunking.headings import Heading, heading_shape, marked_level, visible
from chunking.partition import Span
from chunking.sentences import split_sentences
from models.languages import wrong_language
from models.prompts import Prompts, Quoted
from models.skills import ACCEPT, Skill, Verdict

Kind = Literal["motivation", "assumption", "method", "conclusion", "relation", "definition", "fact"]


class OutlineQuestion(BaseModel):
    """A question that one unit of the document answers.

    ``about`` are words of the document that the unit begins with or is about;
    ``depends_on`` are numbers (from 0) of questions that must be answered before.
    """

    question: str
    about: str
    kind: Kind = "fact"
    depends_on: list[int] = Field(default_factory=list)


class Outline(BaseModel):
    """The questions in document order."""

    questions: list[OutlineQuestion]


@dataclass(frozen=True)
class OutlineIn:
    """A document (or a window of one), its language and the number of units expected."""

    text: str
    language: str
    units: int


class QuestionOutline(Skill[OutlineIn, Outline]):
    """Document to question outline. Offline: from headings, definitions and key phrases."""

    name: ClassVar[str] = "question_outline"
    version: ClassVar[str] = "2"
    output: ClassVar[type[BaseModel]] = Outline
    prompts: ClassVar[Prompts] = Prompts(__package__, "question_outline")

    def values(self, given: OutlineIn) -> dict[str, int | Quoted]:
        """Document first, then the number of units."""
        return {"document": Quoted(given.text), "units": given.units}

    def check(self, given: OutlineIn, answer: Outline) -> Verdict:
        """Most questions must name words of the document; there must be some and not absurdly many."""
        if not answer.questions:
            return Verdict.ask_again("there is no question")
        if len(answer.questions) > max(20, 6 * given.units):
            return Verdict.ask_again(
                f"{len(answer.questions)} questions are too many for {given.units} units"
            )
        folded = given.text.casefold()
        lost = [q.about for q in answer.questions if not q.about.strip() or q.about.casefold() not in folded]
        if 2 * len(lost) > len(answer.questions):
            return Verdict.ask_again(f"these `about` words are not in the document: {lost[:5]}")
        complaint = wrong_language(_own_words(answer), given.language)
        return Verdict.ask_again(complaint) if complaint else ACCEPT

    def offline(self, given: OutlineIn) -> Outline:
        """Headings and definitions in document order; key phrases where a long stretch has neither."""
        return Outline(questions=_offline_questions(given))


def _own_words(outline: Outline) -> str:
    """The questions without the words that they take from the document, which may be in any language."""
    taken = sorted({question.about for question in outline.questions}, key=len, reverse=True)
    asked = "\n".join(question.question for question in outline.questions)
    for about in filter(str.strip, taken):
        asked = asked.replace(about, " ")
    return asked


# --- where the questions point -----------------------------------------------------------------------------


def anchors(text: str, sentences: Sequence[Span], questions: Sequence[OutlineQuestion]) -> list[int | None]:
    """For each question the sentence that it begins at, found with a moving cursor; None where it is lost.

    A place at the beginning of a line is preferred, since that is where units begin.
    """
    folded = text.casefold()
    if len(folded) != len(text):  # case folding changed lengths (ß): offsets would be wrong
        folded = text
    starts = [start for start, _ in sentences]
    found: list[int | None] = []
    cursor = 0
    for question in questions:
        about = question.about.strip().casefold() if folded is not text else question.about.strip()
        at = _locate(folded, about, cursor)
        if at is None:
            found.append(None)
            continue
        index = bisect_right(starts, at) - 1
        found.append(index)
        cursor = sentences[index][0]
    return found


def _locate(text: str, about: str, cursor: int) -> int | None:
    if not about:
        return None
    lead = r"[ \t#*=(（\d.、一二三四五六七八九十第章节部分)）\-]{0,12}"
    match = re.compile(f"^{lead}{re.escape(about)}", re.MULTILINE).search(text, cursor)
    if match:
        return match.end() - len(about)
    at = text.find(about, cursor)
    return at if at >= 0 else None


# --- the offline answer --------------------------------------------------------------------------------------

_DEFINITION_ZH = re.compile(
    r"(?:本(?:条例|办法|法|标准|规定)所?称的?)?[“\"]?(?P<term>[^\s，。；：“”\"（）()#]{2,16})[”\"]?(?:（[^（）]{1,40}）)?[，,]?\s?(?:是指|系指|指的是|定义为)"
)
_DEFINITION_EN = re.compile(
    r"(?:The term )?[“\"]?(?P<term>[A-Z][\w\- ]{2,40}?)[”\"]?(?: \([^()]{1,40}\))?,? (?:means|is defined as|refers to|is (?:an?|the) )"
)
_WORD = re.compile(r"[A-Za-z][A-Za-z\-]{3,}|[\u3400-\u9fff]{2,}")
_COMMON = frozenset(
    [
        "this",
        "that",
        "with",
        "from",
        "have",
        "been",
        "were",
        "which",
        "their",
        "these",
        "those",
        "such",
        "than",
        "when",
        "where",
        "other",
        "also",
        "into",
        "more",
        "most",
        "some",
        "only",
        "between",
        "after",
        "before",
        "about",
        "under",
        "over",
        "used",
        "using",
        "should",
        "must",
        "shall",
        "including",
        "include",
        "each",
        "both",
        "during",
        "there",
        "they",
        "them",
        "then",
        "because",
        "while",
        "through",
        "being",
        "would",
        "could",
        "does",
        "made",
        "make",
        "many",
        "very",
    ]
)


def _offline_questions(given: OutlineIn) -> list[OutlineQuestion]:
    sentences = split_sentences(given.text)
    zh = given.language.startswith("zh")
    step = max(1, len(sentences) // max(given.units, 1))
    questions: list[OutlineQuestion] = []
    seen: set[str] = set()
    subject = ""
    last = -1
    for index, (start, end) in enumerate(sentences):
        line = given.text[start:end]
        question = _from_line(line, subject, zh)
        if question is None and index - last > 2 * step:
            question = _from_phrases(
                given.text[start : sentences[min(index + step, len(sentences) - 1)][1]], zh
            )
        if question is None or question.about in seen:
            continue
        if not subject and question.kind == "fact" and marked_level(line) == 1:
            subject = question.about
        seen.add(question.about)
        questions.append(question)
        last = index
    return questions[: max(20, 4 * given.units)]


def _from_line(line: str, subject: str, zh: bool) -> OutlineQuestion | None:
    shown = visible(line)
    shape = heading_shape(shown)
    if marked_level(line) is not None or (shape and shape.strength >= 0.6 and shape.style != "article"):
        return _from_heading(shown, shape, subject, zh)
    match = (_DEFINITION_ZH if zh else _DEFINITION_EN).match(shown)
    if match:
        term = match["term"].strip()
        question = f"什么是{term}？" if zh else f"What is {term}?"
        return OutlineQuestion(question=question, about=term, kind="definition")
    return None


def _from_heading(shown: str, shape: Heading | None, subject: str, zh: bool) -> OutlineQuestion | None:
    title = (shape.title if shape and shape.title else shown)[:80].strip()
    if not title:
        return None
    if zh:
        question = f"{subject}的“{title}”说明了什么？" if subject else f"“{title}”说明了什么？"
    else:
        question = (
            f"What does the document say about {title} of {subject}?"
            if subject
            else f"What does the document say about {title}?"
        )
    return OutlineQuestion(question=question, about=title)


def _from_phrases(text: str, zh: bool) -> OutlineQuestion | None:
    tally: Tally[str] = Tally()
    for word in _WORD.findall(text):
        if word[0].isascii():
            if word.lower() not in _COMMON:
                tally[word] += 2
        else:
            tally.update(word[i : i + 4] for i in range(0, max(1, len(word) - 3)))
    if not tally:
        return None
    phrase = min(tally, key=lambda word: (-tally[word], text.find(word)))
    question = (
        f"关于{phrase}，文档给出了哪些事实？" if zh else f"Which facts does the document give about {phrase}?"
    )
    return OutlineQuestion(question=question, about=phrase)
