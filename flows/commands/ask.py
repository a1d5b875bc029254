"""``hchem ask``: an answer with cited spans from the built knowledge base."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated

import typer

from flows.console import err, out
from flows.runtime import open_runtime

if TYPE_CHECKING:
    from chunking.asking import Reply
    from chunking.matters import Lexicon

app = typer.Typer()


@app.command()
def ask(
    question: Annotated[str, typer.Argument(help="A question in Chinese or English.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
    method: Annotated[
        str | None, typer.Option(help="Chunk method, e.g. sentence, hichunk+am; default: the best evaluated.")
    ] = None,
    budget: Annotated[
        int | None, typer.Option(min=16, help="Tokens of context; default: evaluation.budget.")
    ] = None,
) -> None:
    """Answer a question with the words of the documents it rests on, in either language.

    Examples: hchem ask "甲醇的闪点是多少？" | hchem ask "甲苯着火怎么灭火" | hchem ask "How is acetone stored?"
    """
    with err.status(
        "opening the knowledge base"
    ) as waiting:  # nothing is shown where the output is no terminal
        from chunking.asking import ask as ask_knowledge_base

        with open_runtime() as runtime:
            settings = runtime.settings
            reply = ask_knowledge_base(
                runtime.catalogue,
                question,
                runtime.models,
                settings.evaluation,
                settings.vectors,
                runtime.data_dir,
                method=method,
                budget=budget,
                lexicon=lexicon(),
                progress=waiting.update,
            )
    if as_json:
        typer.echo(json.dumps(reply.as_dict(), ensure_ascii=False, indent=2))
    else:
        _show(reply)


def lexicon() -> Lexicon:
    """The labels that extraction reads, those of a user's vocabulary included."""
    from chunking.matters import Lexicon
    from kg.extraction.vocabulary import field_of, fields

    def matter_of(label: str) -> str | None:
        found = field_of(label)
        return f"{found[1].family}.{found[1].name}" if found else None

    return Lexicon({label: f"{place.family}.{place.name}" for label, place in fields().items()}, matter_of)


def _show(reply: Reply) -> None:
    if reply.note:
        out.print(reply.note, markup=False, soft_wrap=True)
    out.print(reply.answer, markup=False, soft_wrap=True)
    for number, citation in enumerate(reply.citations, start=1):
        place = f"[{number}] {citation.title or citation.url} ({citation.start}-{citation.end})"
        out.print(f"{place}\n    {citation.url}", markup=False, soft_wrap=True)
    form = f"{reply.method}, {reply.retrieval['form']} retrieval, {reply.source} answer"
    out.print(f"({form})", style="dim", markup=False)
