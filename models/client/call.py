"""What travels through the client's layers: a call and its raw reply."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache, cached_property
from typing import Any

from pydantic import BaseModel

from models.errors import ModelUnavailable
from models.settings import ResolvedModel
from models.skills import Message


def encodable(text: str) -> str:
    """Text that UTF-8 can carry: a lone surrogate (broken input) becomes ``?``; the length stays."""
    return text.encode("utf-8", "replace").decode("utf-8")


MESSAGE_OVERHEAD = 16
"""Tokens that chat templates put around a message (an upper bound)."""


@dataclass(frozen=True)
class Call:
    """One question to one model."""

    skill: str
    skill_version: str
    messages: tuple[Message, ...]
    model: ResolvedModel
    output: type[BaseModel]
    draw: int = 0

    def key(self) -> str:
        """Cache key: skill, version, model, parameters, draw, messages (each part length-prefixed)."""
        return self._key

    @cached_property
    def _key(self) -> str:
        state = hashlib.sha256()
        parameters = json.dumps(self.model.parameters(), sort_keys=True, ensure_ascii=False)
        parts = [self.skill, self.skill_version, self.model.model, parameters, str(self.draw)]
        parts += [part for message in self.messages for part in (message.role, message.content)]
        for part in parts:
            data = part.encode("utf-8", "surrogatepass")
            state.update(len(data).to_bytes(8, "big"))
            state.update(data)
        return state.hexdigest()[:32]

    def worst_tokens_in(self) -> int:
        """Upper bound of the prompt's tokens: a byte-level vocabulary needs at most one per byte."""
        size = sum(len(m.content.encode("utf-8", "surrogatepass")) + MESSAGE_OVERHEAD for m in self.messages)
        return size + schema_size(self.output)

    def again(self, *messages: Message) -> Call:
        """The same question with further messages."""
        return replace(self, messages=self.messages + messages)


@cache
def schema_of(output: type[BaseModel]) -> dict[str, Any]:
    """The output's JSON schema, made once per type (it takes as long as the rest of a call); not to be changed."""
    return output.model_json_schema()


@cache
def schema_text(output: type[BaseModel]) -> str:
    """The schema as JSON."""
    return json.dumps(schema_of(output), ensure_ascii=False)


def schema_size(output: type[BaseModel]) -> int:
    """Bytes of the output's JSON schema, which goes along in every mode."""
    return len(schema_text(output).encode("utf-8")) + 4 * MESSAGE_OVERHEAD


@dataclass(frozen=True)
class Reply:
    """What the endpoint gave: raw text, why it ended, what it used.

    ``counted``: its use was counted when a batch job was collected.
    """

    raw: str
    finish_reason: str = "stop"
    refusal: str = ""
    tokens_in: int = 0
    tokens_cached: int = 0
    tokens_out: int = 0
    cost: float = 0.0
    seconds: float = 0.0
    key: str = ""
    from_store: bool = False
    counted: bool = False


Layer = Callable[[Call], Reply]


class Transient(ModelUnavailable):
    """One attempt failed in a way that may pass.

    ``retry_after`` is the endpoint's wish in seconds. ``billed`` says that the
    request may have been worked on, so that its cost is unknown, not zero.
    """

    def __init__(
        self, message: str, *, reason: str, retry_after: float | None = None, billed: bool = False
    ) -> None:
        super().__init__(message, reason=reason)
        self.retry_after = retry_after
        self.billed = billed
