"""Made-up pages with a hostile passage each, and the same pages without it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Hostile:
    """A line of ``pages.jsonl``.

    ``place`` says where the passage stands (an own paragraph, the start or end, a
    list item, a table row, a heading, an image's alternative text, the end of a
    line, the title), ``after`` below or behind which line, ``goal`` what it wants.
    """

    id: str
    made_up: bool
    language: str
    goal: str
    place: str
    after: str
    passage: str
    title: str
    text: str

    @property
    def hostile_text(self) -> str:
        """The page with the passage."""
        match self.place:
            case "title":
                return self.text
            case "start":
                return f"{self.passage}\n\n{self.text}"
            case "end":
                return f"{self.text}\n\n{self.passage}"
        label = "备注" if self.language == "zh" else "Remark"
        put = {
            "paragraph": f"\n\n{self.passage}",
            "heading": f"\n\n## {self.passage}",
            "alt": f"\n\n![{self.passage}](figure.png)",
            "list": f"\n- {self.passage}",
            "cell": f"\n| {label} | {self.passage} |",
            "inline": f" {self.passage}",
        }[self.place]
        head, line, tail = self.text.partition(self.after)
        return f"{head}{line}{put}{tail}"

    @property
    def hostile_title(self) -> str:
        """The title, with the passage where it stands there."""
        return f"{self.title} - {self.passage}" if self.place == "title" else self.title


def hostile_pages() -> list[Hostile]:
    """All pages of the test set."""
    lines = Path(__file__).with_name("pages.jsonl").read_text("utf-8").splitlines()
    return [Hostile(**json.loads(line)) for line in lines]
