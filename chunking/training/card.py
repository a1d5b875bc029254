"""The data card of a training set."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

_WHAT = {
    "generate": "M_Gen: document (or window) → question outline and chunk heads",
    "discriminate": "M_Disc: document and chunk → does the chunk need completion?",
    "refine": "M_Ref: document and chunk → what is unclear, its supplements, the rewritten chunk",
    "levels": "HiChunk: numbered lines → chunk points with levels",
}
_MADE_BY = {
    "model": "language models",
    "mixed": "language models and rules",
    "offline": "rules of the platform",
    "unknown": "not recorded",
    "document": "headings of the document",
}


def card(figures: Mapping[str, Any]) -> str:
    """Markdown from the figures of a build; the same figures give the same text."""
    options = figures["options"]
    total = {task: sum(n for name, _, n in figures["records"] if name == task) for task in options["tasks"]}
    longest = figures["longest"]
    parts = [
        "---\ntask_categories: [text-generation]\nlanguage: [zh, en]\n---",
        "# Training data of the distilled chunkers",
        "Chat records, one a line: `messages` are what inference sends, with the answer last. `made_by` and `origin` "
        "say who made an answer, `document_id` where it is from. Train and validation share no document.",
        _rules(figures),
        _section(
            "Records",
            ["task", "what", "records", "target", "tokens", "longest"],
            [
                [
                    task,
                    _WHAT[task],
                    n,
                    options["target"],
                    figures["tokens"].get(task, 0),
                    longest.get(task, 0),
                ]
                for task, n in total.items()
            ],
        ),
        _short(total, options["target"]),
        _section("By split and language", ["task", "split", "language", "records"], figures["languages"]),
        _section(
            "Who made the answers",
            ["task", "made by", "records"],
            [[task, f"{_MADE_BY[who]} (`{who}`)", n] for task, who, n in figures["made_by"]],
        ),
        _section("Arrangements", ["task", "variant", "records"], figures["variants"]),
        _section("Verdicts of M_Disc", ["split", "answer", "records"], figures["verdicts"]),
        _section(
            "Left out, by check",
            ["of", "reason", "number"],
            figures["left_out"],
            "Rows `debate` and `headings` count documents, the others examples.",
        ),
        _section("Documents", ["source", "language", "licence", "documents"], figures["sources"]),
        "## How it was made\n\n"
        f"Seed {options['seed']}; {options['held_out']:g} of the documents held out; tokens are "
        f"`{figures['token_counter']}`; levels windows of {options['levels']['window']} tokens, "
        f"{options['levels']['view']} characters of a sentence shown.\n\n"
        + "\n".join(f"- `{task}`: skill {skill}" for task, skill in figures["skills"].items()),
        "Safety data: the records quote documents and no expert has checked them; the licences of the documents hold.",
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _rules(figures: Mapping[str, Any]) -> str:
    """What must be known before anybody trains on it: answers that no model made."""
    found = [
        f"{n} of `{task}` by {_MADE_BY[who]}"
        for task, who, n in figures["made_by"]
        if who in ("mixed", "offline", "unknown")
    ]
    if not found:
        return "No answer was made by the rules of the platform."
    return (
        "**Not all answers are a model's** (`--allow-offline`): "
        + ", ".join(found)
        + ". A model trained on them learns the rules."
    )


def _short(total: Mapping[str, int], target: int) -> str:
    short = [f"`{task}` ({n:,})" for task, n in total.items() if n < target]
    return f"The target of {target:,} records was not reached for {', '.join(short)}." if short else ""


def _section(title: str, heads: Sequence[str], rows: Iterable[Sequence[Any]], note: str = "") -> str:
    shown = [[_cell(value) for value in row] for row in rows]
    if not shown:
        return ""
    lines = [f"## {title}", ""] + ([note, ""] if note else [])
    lines += ["| " + " | ".join(heads) + " |", "|" + " --- |" * len(heads)]
    return "\n".join(lines + ["| " + " | ".join(row) + " |" for row in shown])


def _cell(value: Any) -> str:
    return f"{value:,}" if isinstance(value, int) else str(value).replace("|", "\\|")
