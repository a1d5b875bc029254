"""The one seam to language models: the skill (architecture, idea 4).

A skill names a job, says how to ask a model for it, how to prove the answer
against the input, and how to answer by rules when no model is configured.
Skills are defined next to the stage that uses them and run by ``models.Models``.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Literal, TypeVar

from pydantic import BaseModel

if TYPE_CHECKING:
    from collections.abc import Mapping

    from models.prompts import Prompts, Quoted

In = TypeVar("In")
Out = TypeVar("Out", bound=BaseModel)


@dataclass(frozen=True)
class Message:
    """A chat message. Long shared text goes first, what varies goes last."""

    role: Literal["system", "user", "assistant"]
    content: str


@dataclass(frozen=True)
class Verdict:
    """What ``check`` says of an answer: accept, ask again because …, or reject because …"""

    kind: Literal["accept", "ask_again", "reject"] = "accept"
    reasons: tuple[str, ...] = ()

    @classmethod
    def ask_again(cls, *reasons: str) -> Verdict:
        """The model is asked once more, with the reasons; a second failure rejects."""
        return cls("ask_again", reasons)

    @classmethod
    def reject(cls, *reasons: str) -> Verdict:
        """The answer is refused at once and never served again."""
        return cls("reject", reasons)


ACCEPT = Verdict()


class Skill(ABC, Generic[In, Out]):
    """A job given to a language model.

    ``version`` enters cache keys and fingerprints: raise it with every change of
    check or rules (a changed prompt file counts by itself). ``output`` is the
    pydantic type of the answer, ``prompts`` the files beside the skill.
    ``shares_prefix`` says that many inputs begin with the same long text, so that
    ``Models.run_many`` sends one of them first and the rest when a server's prefix
    cache is warm.
    """

    name: ClassVar[str]
    version: ClassVar[str]
    output: ClassVar[type[BaseModel]]
    prompts: ClassVar[Prompts | None] = None
    shares_prefix: ClassVar[bool] = False

    def language(self, given: In) -> str:
        """Language code of the input; decides the prompt file. By default its attribute ``language``."""
        return str(getattr(given, "language", "en"))

    def values(self, given: In) -> Mapping[str, str | int | float | Quoted]:
        """What the prompt's placeholders stand for; text of pages as ``Quoted``."""
        raise NotImplementedError(f"{type(self).__name__} defines neither values() nor messages()")

    def messages(self, given: In) -> list[Message]:
        """The prompt in the language of the input (zh or en), made from the prompt file."""
        from models.languages import language_of

        if self.prompts is None:
            raise NotImplementedError(f"{type(self).__name__} has no prompt files")
        return self.prompts.render(language_of(self.language(given)), self.values(given))

    def check(self, given: In, answer: Out) -> Verdict:
        """Prove the answer against the input. Accepts by default."""
        return ACCEPT

    @abstractmethod
    def offline(self, given: In) -> Out:
        """Deterministic rule-based answer. Raises OfflineUnavailable where none is honest."""


@dataclass(frozen=True)
class Answer(Generic[Out]):
    """A checked answer and where it came from (``offline`` or the model's name)."""

    value: Out
    source: str
    draw: int = 0
    from_store: bool = False
    usage: dict[str, Any] = field(default_factory=dict)
