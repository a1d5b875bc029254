"""Every skill of the platform by name: its class, the type of its input, and an example of one.

Modules are imported when a skill is asked for, so that a command pays only for
the skill that it uses.
"""

from __future__ import annotations

import dataclasses
import json
from functools import cache
from importlib import import_module
from importlib.resources import files
from typing import Any, cast, get_args

from pydantic import TypeAdapter, ValidationError

from corpus.errors import TerminalError
from models.languages import Language
from models.skills import Skill

PLACES: dict[str, str] = {
    "score_document": "corpus.quality:ScoreDocument",
    "refine_window": "corpus.refinement:RefineWindow",
    "extract_assertions": "kg.extraction.skill:ExtractAssertions",
    "propose_identity": "kg.proposals:ProposeIdentity",
    "reword_question": "kg.qa.reword:RewordQuestion",
    "question_outline": "chunking.qchunker.outline:QuestionOutline",
    "segment_text": "chunking.qchunker.segmenter:SegmentText",
    "review_chunk": "chunking.qchunker.reviewer:ReviewChunk",
    "complete_chunk": "chunking.qchunker.completer:CompleteChunk",
    "slm_generate": "chunking.qchunker.slm:SlmGenerate",
    "slm_discriminate": "chunking.qchunker.slm:SlmDiscriminate",
    "slm_refine": "chunking.qchunker.slm:SlmRefine",
    "find_shift": "chunking.prompted.lumber:FindShift",
    "meta_chunk": "chunking.prompted.mask:MetaChunk",
    "direct_chunk": "chunking.prompted.direct:DirectChunk",
    "assign_levels": "chunking.hichunk.levels:AssignLevels",
    "summarise_section": "chunking.evaluation.section_questions:SummariseSection",
    "write_question": "chunking.evaluation.section_questions:WriteQuestion",
    "extract_evidence": "chunking.evaluation.section_questions:ExtractEvidence",
    "list_facts": "chunking.evaluation.fact_coverage:ListFacts",
    "judge_facts": "chunking.evaluation.fact_coverage:JudgeFacts",
    "answer_question": "chunking.answering:AnswerQuestion",
}
"""Skill name to ``module:class``, in the order of ``models.settings.SKILL_NAMES``."""

ABSENT = frozenset(
    {"slm_generate", "slm_discriminate", "slm_refine", "find_shift", "meta_chunk", "direct_chunk", "write_question"}
)  # fmt: skip
"""Skills that no rule answers: without a model they are refused."""


def skill_of(name: str) -> Skill[Any, Any]:
    """The skill of a name. Raises TerminalError for an unknown one."""
    place = PLACES.get(name)
    if place is None:
        raise TerminalError(f"unknown skill {name!r}; skills: {', '.join(PLACES)}", reason="usage")
    module, _, attribute = place.partition(":")
    return cast("Skill[Any, Any]", getattr(import_module(module), attribute)())


def input_type(skill: Skill[Any, Any]) -> Any:
    """The type that a skill's class names as its input: the first argument of ``Skill[In, Out]``."""
    for base in type(skill).__orig_bases__:  # type: ignore[attr-defined]
        arguments = get_args(base)
        if len(arguments) == 2:
            return arguments[0]
    raise TypeError(f"{type(skill).__name__} does not name its input as Skill[In, Out]")


def read_input(skill: Skill[Any, Any], data: str) -> Any:
    """A skill's input from JSON text. Raises TerminalError that names the place of what is wrong."""
    wanted = input_type(skill)
    try:
        value = json.loads(data)
    except json.JSONDecodeError as error:
        raise TerminalError(
            f"the input is not JSON (line {error.lineno}, column {error.colno}): {error.msg}", reason="usage"
        ) from error
    except RecursionError as error:
        raise TerminalError("the input is nested too deeply", reason="usage") from error
    known = [field.name for field in dataclasses.fields(wanted)]
    stray = sorted(set(value) - set(known)) if isinstance(value, dict) else []
    if stray:
        raise TerminalError(
            f"input of {skill.name}: unknown {', '.join(map(repr, stray))}; fields: {', '.join(known)}",
            reason="usage",
        )
    try:
        return TypeAdapter(wanted).validate_python(value)
    except ValidationError as error:
        items = error.errors(include_url=False, include_input=False)[:5]
        shown = "; ".join(f"{'.'.join(map(str, item['loc'])) or 'input'}: {item['msg']}" for item in items)
        raise TerminalError(f"input of {skill.name}: {shown}", reason="usage") from error


def example(name: str, language: Language) -> dict[str, Any]:
    """A small made-up input of a skill as plain data. Raises TerminalError for an unknown skill."""
    skill_of(name)
    return dict(_examples(language)[name])


@cache
def _examples(language: Language) -> dict[str, dict[str, Any]]:
    text = (files("flows") / "skill_examples" / f"{language}.json").read_text("utf-8")
    return cast("dict[str, dict[str, Any]]", json.loads(text))
