"""A set of section questions from a folder of Markdown files, in the files in which HiChunk's data is published.

``docs/sections/<id>.txt`` are the texts as they are, ``qas/sections.jsonl`` the questions with answer,
evidence sentences and kind (T0, T1, T2), ``card.json`` and ``README.md`` who made them and what was dropped.
``hchem benchmark hichunk --path`` reads it. It is made by HiCBench's procedure
(:mod:`chunking.evaluation.hicbench`) and is not HiCBench.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from chunking.answering import AnswerQuestion
from chunking.evaluation.fact_coverage import JudgeFacts, ListFacts
from chunking.evaluation.hicbench import (
    KINDS,
    SectionQuestions,
    SourceDocument,
    section_questions,
    section_spans,
)
from chunking.evaluation.published.data import BenchmarkError, read_text
from chunking.evaluation.section_questions import ExtractEvidence, SummariseSection, WriteQuestion
from chunking.segment import language_of
from corpus.errors import TerminalError
from corpus.headings import sections_of
from corpus.ids import canonical_json, digest
from models.tokens import count_words

if TYPE_CHECKING:
    from models import Models

SET = "sections"
HICBENCH_WORDS = 4000
"""Words that a document of HiCBench has at least."""
SKILLS = (SummariseSection(), WriteQuestion(), ExtractEvidence(), ListFacts(), AnswerQuestion(), JudgeFacts())
_PATTERNS = ("*.md", "*.markdown")
_UNNAMEABLE = re.compile(r"[^\w.-]+")


@dataclass(frozen=True)
class Sources:
    """Documents of a folder that questions can be made of, and why others were left out."""

    documents: tuple[SourceDocument, ...]
    left_out: Counter[str]


def read_sources(folder: Path, least_words: int = 0) -> Sources:
    """Markdown files of a folder and those below it (or one file), in the order of their paths.

    Left out and counted: files without a text, without two headed sections, or with fewer words (a
    Chinese character is a word). Raises BenchmarkError where there is none, and for one that is not UTF-8.
    """
    if not folder.exists():
        raise BenchmarkError(f"{folder} is not there; sections takes a folder of Markdown files")
    found = (
        [folder] if folder.is_file() else [path for pattern in _PATTERNS for path in folder.rglob(pattern)]
    )
    paths = sorted(path for path in found if path.is_file())
    if not paths:
        raise BenchmarkError(f"{folder}: no Markdown file ({' or '.join(_PATTERNS)}) in it")
    documents: list[SourceDocument] = []
    left_out: Counter[str] = Counter()
    names: set[str] = set()
    for path in paths:
        text = read_text(path)
        if not text.strip():
            left_out["files without a text"] += 1
        elif len(section_spans(text)) < 2:
            left_out["files without headed sections (lines with # marks)"] += 1
        elif count_words(text) < least_words:
            left_out[f"files of fewer than {least_words} words"] += 1
        else:
            relative = path.name if folder.is_file() else str(path.relative_to(folder))
            name = _UNNAMEABLE.sub("_", relative.rsplit(".", 1)[0]).strip("._") or "document"
            name = name if name not in names else f"{name}-{digest(relative)[:8]}"
            names.add(name)
            title = next((s["heading"] for s in sections_of(text) if s["level"]), "") or path.stem
            documents.append(SourceDocument(name, str(title), language_of(text), text))
    if not documents:
        why = "; ".join(f"{n} {reason}" for reason, n in sorted(left_out.items()))
        raise BenchmarkError(f"{folder}: no document that questions can be made of ({why})")
    return Sources(tuple(documents), left_out)


def set_fingerprint(documents: Sequence[SourceDocument], models: Models, per_document: int, seed: int) -> str:
    """Changes with everything that the set rests on: texts, who answers, options."""
    texts = [[d.document_id, d.title, d.language, digest(d.text)] for d in documents]
    makers = [[skill.name, models.identity(skill), models.draws(skill.name)] for skill in SKILLS]
    return digest(
        "section set", "1", canonical_json(texts), canonical_json(makers), str(per_document), str(seed)
    )


def made_card(folder: Path) -> dict[str, Any] | None:
    """The card of a set that was made in a folder; None where there is none that is whole."""
    try:
        found = json.loads((folder / "card.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return found if isinstance(found, dict) else None


def make_set(
    sources: Sources, models: Models, out: Path, *, per_document: int = 6, seed: int = 0
) -> dict[str, Any]:
    """Make the questions and write the set; returns its card. One that is there and rests on the same is taken.

    Answers of models are stored as they come, so that a build that was stopped
    pays for none of them again. Raises TerminalError for a folder that holds something else, and
    where no question was left.
    """
    mark = set_fingerprint(sources.documents, models, per_document, seed)
    card = made_card(out)
    if card is not None and card.get("fingerprint") == mark:
        return card
    if out.exists() and (not out.is_dir() or (card is None and any(out.iterdir()))):
        raise TerminalError(
            f"{out} holds something that is no set of questions; choose another --out", reason="file"
        )
    made = section_questions(sources.documents, models, per_document=per_document, seed=seed)
    card = {**_card(sources, made, per_document, seed), "fingerprint": mark}
    if not made.questions:
        why = "; ".join(f"{n} {reason}" for reason, n in made.dropped.items()) or "no section is long enough"
        raise TerminalError(f"no question was left ({why})", reason="no_questions")
    try:
        _write(sources.documents, made, out, card)
    except OSError as error:
        raise TerminalError(f"{out} cannot be written: {error.strerror or error}", reason="file") from error
    return card


def _write(
    documents: Sequence[SourceDocument], made: SectionQuestions, out: Path, card: dict[str, Any]
) -> None:
    (out / "card.json").unlink(missing_ok=True)  # written last: a set without it is not whole
    for folder in (out / "docs" / SET, out / "qas"):
        folder.mkdir(parents=True, exist_ok=True)
    for old in (out / "docs" / SET).glob("*.txt"):
        old.unlink()
    for document in documents:
        (out / "docs" / SET / f"{document.document_id}.txt").write_bytes(document.text.encode())
    rows = []
    for question in made.questions:
        row = {
            "_id": question.evidence[0][0],
            "input": question.question,
            "answers": [question.answer],
            "evidences": list(question.quotes),
            "all_classes": [question.kind],
            "language": question.language,
            "made_by": made.source,
        }
        rows.append(json.dumps(row, ensure_ascii=False) + "\n")
    (out / "qas" / f"{SET}.jsonl").write_text("".join(rows), encoding="utf-8", newline="\n")
    (out / "README.md").write_text(_readme(card), encoding="utf-8", newline="\n")
    (out / "card.json").write_text(json.dumps(card, ensure_ascii=False, indent=2) + "\n", encoding="utf-8")


def _card(sources: Sources, made: SectionQuestions, per_document: int, seed: int) -> dict[str, Any]:
    kinds = Counter(question.kind for question in made.questions)
    languages = Counter(question.language for question in made.questions)
    offline = made.source.startswith("offline")
    return {
        "made_by": made.source,
        "offline": offline,
        "documents": len(sources.documents),
        "words": sum(count_words(document.text) for document in sources.documents),
        "files_left_out": dict(sorted(sources.left_out.items())),
        "questions": {kind: kinds[kind] for kind in KINDS},
        "languages": dict(sorted(languages.items())),
        "dropped": dict(made.dropped),
        "draws_of_evidence": made.draws,
        "per_document": per_document,
        "seed": seed,
    }


def _readme(card: dict[str, Any]) -> str:
    who = (
        "**offline**: questions, answers and evidence were made by rules, not by a model"
        if card["offline"]
        else f"questions, answers and evidence by {card['made_by']}"
    )
    counts = "\n".join(f"| {kind} | {n} |" for kind, n in card["questions"].items())
    dropped = "\n".join(f"| {reason} | {n} |" for reason, n in card["dropped"].items()) or "| nothing | 0 |"
    return (
        "# Questions over sections\n\n"
        f"Made by HiCBench's procedure from {card['documents']} documents of one's own; this is not HiCBench. "
        f"Made by: {who}; evidence from {card['draws_of_evidence']} draws.\n\n"
        "T0 rests on one or two sentences, T1 on one section, T2 on two. "
        "`hchem benchmark hichunk --path` takes this folder.\n\n"
        f"| kind | questions |\n| --- | --- |\n{counts}\n\n| dropped | number |\n| --- | --- |\n{dropped}\n"
    )
