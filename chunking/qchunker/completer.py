"""Agent 4, the knowledge completer: weave what is missing into the chunk, adding no fact (section 3.2.4)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from pydantic import BaseModel, Field

from chunking.qchunker.guards import LENGTH_RATIO, guard
from models.skills import ACCEPT, Message, Skill, Verdict


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


_SYSTEM_ZH = (
    "你是知识补全者。逐项核实缺失信息：是否为理解该块所必需（needed）、是否由文档原文陈述（stated）、是否引入了新话题（new_topic）。"
    "只把通过核实的内容以原文的措辞和该块的文风插入合适的位置。块中原有的每个字、数字、单位和否定都必须保留，不得添加任何未陈述的事实，"
    f"长度不超过原来的{LENGTH_RATIO}倍。"
    '只输出JSON：{"items":[{"index":0,"needed":true,"stated":true,"new_topic":false}],"text":"改写后的块"}'
)
_SYSTEM_EN = (
    "You complete text chunks. Verify each missing item: needed to understand the chunk, stated in the document's words, "
    "not a new topic. Weave only the verified ones in, in their own words and the chunk's style, where they belong. "
    "Keep every word, number, unit and negation of the chunk; add no fact that is not stated; at most "
    f"{LENGTH_RATIO} times the length. Answer in JSON only: "
    '{"items":[{"index":0,"needed":true,"stated":true,"new_topic":false}],"text":"the rewritten chunk"}'
)


class CompleteChunk(Skill[CompleteIn, Completion]):
    """Chunk and missing items to the completed chunk. Offline: stated words inserted verbatim."""

    name: ClassVar[str] = "complete_chunk"
    version: ClassVar[str] = "1"
    output: ClassVar[type[BaseModel]] = Completion

    def messages(self, given: CompleteIn) -> list[Message]:
        """Chunk and numbered items."""
        zh = given.language.startswith("zh")
        items = "\n".join(
            f"{i}. [{item.kind}] {item.need}: {item.quote}" for i, item in enumerate(given.items)
        )
        return [
            Message("system", _SYSTEM_ZH if zh else _SYSTEM_EN),
            Message("user", f"<chunk>\n{given.chunk}\n</chunk>\n<items>\n{items}\n</items>"),
        ]

    def check(self, given: CompleteIn, answer: Completion) -> Verdict:
        """The guard against the quotes of the accepted items; on failure the model is asked once more."""
        reasons = guard(given.chunk, answer.text, accepted_quotes(given, answer.items))
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
