"""What an example of the training data is, and the chat record that it becomes.

An example is compact: where its input lies in a document, and the answer. The
prompt is made when the record is written, by the code that asks a model.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from functools import lru_cache
from typing import Any, Literal, get_args

from pydantic import BaseModel

from chunking.headings import visible
from chunking.hichunk.levels import AssignLevels, LevelsIn
from chunking.prompted.windows import WindowIn
from chunking.qchunker.reviewer import ReviewIn
from chunking.qchunker.slm import SlmDiscriminate, SlmGenerate, SlmRefine
from chunking.sentences import split_sentences
from corpus.ids import canonical_json, digest
from models.client.call import Call, encodable
from models.client.http import Dialect, request_body
from models.client.parse import Unreadable, parse
from models.prompts import neutral
from models.settings import ResolvedModel
from models.skills import Skill

Task = Literal["generate", "discriminate", "refine", "levels"]
TASKS: tuple[Task, ...] = get_args(Task)
MadeBy = Literal["model", "mixed", "offline", "unknown", "document"]
"""Who made an answer: models alone; models and rules; rules alone; not recorded; the document's own headings."""

SKILLS: Mapping[Task, Skill[Any, Any]] = {
    "generate": SlmGenerate(),
    "discriminate": SlmDiscriminate(),
    "refine": SlmRefine(),
    "levels": AssignLevels(),
}
"""The skill that a model trained on a task serves."""

_NOBODY = ResolvedModel("", "", None, None, None, 1, 1.0, 1, None)  # a request's messages do not depend on it


@dataclass(frozen=True)
class Example:
    """A question and its answer about one version of a document.

    ``place`` says where the input lies (offsets or sentence numbers, by task);
    ``variant`` names how a levels input was arranged; ``origin`` says who made the answer.
    """

    task: Task
    document: str
    version: str
    language: str
    place: Mapping[str, Any]
    answer: Mapping[str, Any]
    made_by: MadeBy
    origin: Mapping[str, str] = field(default_factory=dict)
    variant: str = "original"

    @property
    def id(self) -> str:
        """Hash of the question; equal questions are one example."""
        return digest("training", self.task, self.version, canonical_json(self.place))

    def as_dict(self) -> dict[str, Any]:
        """Plain data."""
        return asdict(self)


@dataclass
class Made:
    """Examples of a document, and what was left out: (task, reason) → how many."""

    examples: list[Example] = field(default_factory=list)
    drops: Counter[tuple[str, str]] = field(default_factory=Counter)

    def drop(self, task: str, reason: str, number: int = 1) -> None:
        """Count something left out. ``task`` "debate" or "headings" counts whole documents."""
        self.drops[task, reason] += number

    def add(self, example: Example, given: Any) -> None:
        """Take an example that its skill's check accepts for its input, or count why not."""
        reason = fault(example, given)
        if reason:
            self.drop(example.task, reason)
        else:
            self.examples.append(example)


# --- the prompt ------------------------------------------------------------------------------------------------


def chat_messages(skill: Skill[Any, Any], given: Any) -> list[dict[str, str]]:
    """The messages that inference sends for an input (to an endpoint that takes a JSON schema).

    They are taken from the request body of the model layer itself, so that
    training and serving cannot come apart.
    """
    call = Call(skill.name, skill.version, tuple(skill.messages(given)), _NOBODY, skill.output)
    messages: list[dict[str, str]] = request_body(call, Dialect())["messages"]
    return messages


def answer_text(answer: Mapping[str, Any]) -> str:
    """The answer as the assistant's words: JSON in the form that the prompts show."""
    return json.dumps(answer, ensure_ascii=False)


def given_of(example: Example, text: str) -> Any:
    """The skill's input of an example, made from its document's text."""
    place = example.place
    match example.task:
        case "generate":
            return WindowIn(text[place["start"] : place["end"]], example.language, place["size"])
        case "levels":
            lines = visible_sentences(text, place["view"])
            return LevelsIn(tuple(lines[i] for i in place["lines"]), place["residual"], example.language)
        case _:
            begin, end = place["view"]
            return ReviewIn(text, place["start"], place["end"], example.language, view=text[begin:end])


@lru_cache(maxsize=4)  # the examples of one document are made one after the other
def visible_sentences(text: str, view: int) -> tuple[str, ...]:
    """The sentences of a text as the levels model sees them: marks hidden, the first ``view`` characters."""
    return tuple(visible(text[start:end])[:view] for start, end in split_sentences(text))


def record_of(example: Example, text: str, count: Callable[[str], int]) -> dict[str, Any]:
    """The chat record of an example: messages with the answer last, and where it comes from."""
    skill = SKILLS[example.task]
    messages = chat_messages(skill, given_of(example, text))
    messages.append({"role": "assistant", "content": answer_text(example.answer)})
    return {
        "id": example.id,
        "task": example.task,
        "skill": f"{skill.name}/{skill.version}" + (f"/{skill.prompts.digest}" if skill.prompts else ""),
        "messages": messages,
        "language": example.language,
        "document_id": example.document,
        "version_id": example.version,
        "variant": example.variant,
        "made_by": example.made_by,
        "origin": dict(sorted(example.origin.items())),
        "tokens": sum(count(message["content"]) for message in messages),
    }


# --- the proof -------------------------------------------------------------------------------------------------


def fault(example: Example, given: Any) -> str:
    """Why an answer must not be learnt; empty where it passes what an answer at inference must pass."""
    skill, said = SKILLS[example.task], answer_text(example.answer)
    if encodable(said) != said:
        return "the answer holds characters that UTF-8 cannot carry"
    if neutral(said) != said:
        return "the answer holds role marks or special tokens"  # a tokenizer would read them as its own
    try:
        value: BaseModel = parse(said, skill.output, "stop")
    except Unreadable as error:
        return f"the answer cannot be read: {error.reason}"
    if value.model_dump() != dict(example.answer):
        return "the answer is read as another one"
    verdict = skill.check(given, value)
    return "" if verdict.kind == "accept" else f"check of {skill.name}"
