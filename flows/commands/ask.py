"""``hchem ask``: an answer with cited spans from the built knowledge base."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated

import typer

from flows.console import out
from flows.runtime import open_runtime

if TYPE_CHECKING:
    from chunking.asking import Reply

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
    """Answer a question with the words of the documents it rests on.

    Example: hchem ask "甲醇的闪点是多少？"
    """
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
        )
    if as_json:
        typer.echo(json.dumps(reply.as_dict(), ensure_ascii=False, indent=2))
    else:
        _show(reply)


def _show(reply: Reply) -> None:
    out.print(reply.answer, markup=False, soft_wrap=True)
    for number, citation in enumerate(reply.citations, start=1):
        place = f"[{number}] {citation.title or citation.url} ({citation.start}-{citation.end})"
        out.print(f"{place}\n    {citation.url}", markup=False, soft_wrap=True)
    form = f"{reply.method}, {reply.retrieval['form']} retrieval, {reply.source} answer"
    out.print(f"({form})", style="dim", markup=False)
