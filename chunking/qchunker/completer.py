"""Agent 4, the knowledge completer: weave what is missing into the chunk, adding no fact (section 3.2.4)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import ClassVar

from pydantic import BaseModel, Field

from chunking.qchunker.guards import LENGTH_RATIO, guard
from models.languages import wrong_language
from models.prompts import Prompts, Quoted
from models.skills import ACCEPT, Skill, Verdict


class VerifiedItem(BaseModel):
    """The completer's second look at an item (by its number from 0)."""

    index: int
    needed: bool = True
    stated: bool = True
    new_topic: bool = False

    @property
    def accepted(self) -> bool:
        """Whether the item may be woven in."""
        return self.needed and self.stated and not self.new_topic


class Completion(BaseModel):
    """Items after verification, and the rewritten chunk."""

    items: list[VerifiedItem] = Field(default_factory=list)
    text: str


@dataclass(frozen=True)
class Support:
    """A missing item as the completer sees it: kind, what it is needed for, and the document's own words."""

    kind: str
    need: str
    quote: str


@dataclass(frozen=True)
class CompleteIn:
    """A chunk with the items to be woven in."""

    chunk: str
    items: tuple[Support, ...]
    language: str


class CompleteChunk(Skill[CompleteIn, Completion]):
    """Chunk and missing items to the completed chunk. Offline: stated words inserted verbatim."""

    name: ClassVar[str] = "complete_chunk"
    version: ClassVar[str] = "2"
    output: ClassVar[type[BaseModel]] = Completion
    prompts: ClassVar[Prompts] = Prompts(__package__, "complete_chunk")

    def values(self, given: CompleteIn) -> dict[str, float | Quoted]:
        """Chunk, then the numbered items."""
        items = [{"index": i, **asdict(item)} for i, item in enumerate(given.items)]
        return {
            "chunk": Quoted(given.chunk, "chunk"),
            "items": Quoted.as_json(items, "items"),
            "ratio": LENGTH_RATIO,
        }

    def check(self, given: CompleteIn, answer: Completion) -> Verdict:
        """Language, and the guard against the quotes of the accepted items; on failure the model is asked once more."""
        quotes = accepted_quotes(given, answer.items)
        reasons = guard(given.chunk, answer.text, quotes)
        complaint = wrong_language(answer.text, given.language)
        # a chunk may itself be in another language than its document
        if complaint and not wrong_language("\n".join([given.chunk, *quotes]), given.language):
            reasons.insert(0, complaint)
        return Verdict.ask_again(*reasons) if reasons else ACCEPT

    def offline(self, given: CompleteIn) -> Completion:
        """Headings and table headers go before the chunk, definitions behind it, as long as the guard holds."""
        chosen: list[int] = []
        text = given.chunk
        for index in range(len(given.items)):
            tried = _inserted(given, [*chosen, index])
            if not guard(given.chunk, tried, [given.items[i].quote for i in [*chosen, index]]):
                chosen.append(index)
                text = tried
        items = [VerifiedItem(index=i, needed=i in chosen) for i in range(len(given.items))]
        return Completion(items=items, text=text)


def accepted_quotes(given: CompleteIn, items: Sequence[VerifiedItem]) -> list[str]:
    """Quotes of the items that passed verification; unknown numbers are ignored."""
    return [
        given.items[item.index].quote
        for item in items
        if item.accepted and 0 <= item.index < len(given.items)
    ]


def _inserted(given: CompleteIn, chosen: Sequence[int]) -> str:
    """Verbatim insertion: what is said first, the chunk, then definitions in brackets."""
    opening, closing = ("（", "）") if given.language.startswith("zh") else ("(", ")")
    front = [
        given.items[i].quote for i in chosen if given.items[i].kind in ("subject", "table_header", "premise")
    ]
    back = [
        given.items[i].quote
        for i in chosen
        if given.items[i].kind not in ("subject", "table_header", "premise")
    ]
    body = given.chunk.rstrip()
    tail = given.chunk[len(body) :]
    notes = "".join(f"\n{opening}{quote}{closing}" for quote in back)
    return "".join(f"{quote}\n" for quote in front) + body + notes + tail
