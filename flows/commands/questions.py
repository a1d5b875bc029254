"""``hchem questions``: list, show with evidence in context, verify against graph and documents."""

from __future__ import annotations

import json
from typing import Annotated

import typer

app = typer.Typer(help="Questions that a query proves.")
_CONTEXT = 60  # characters of the document shown on each side of the evidence


@app.command("list")
def list_questions(
    kind: Annotated[str, typer.Option(help="single_hop, multi_hop, aggregative or boolean.")] = "",
    language: Annotated[str, typer.Option(help="zh or en.")] = "",
    rejected: Annotated[
        bool, typer.Option("--rejected", help="Those that were not kept, with reasons.")
    ] = False,
    limit: Annotated[int, typer.Option(min=1)] = 50,
) -> None:
    """Questions in id order."""
    from sqlalchemy import select

    from corpus.catalogue.tables import Question
    from flows.runtime import open_runtime

    query = select(Question).where(Question.state == ("rejected" if rejected else "kept"))
    if kind:
        query = query.where(Question.kind == kind)
    if language:
        query = query.where(Question.language == language)
    with open_runtime() as runtime, runtime.catalogue.reading() as session:
        for row in session.scalars(query.order_by(Question.question_id).limit(limit)):
            reason = f"  [{row.reason}]" if row.reason else ""
            typer.echo(
                f"{row.question_id}  {row.kind:<12}{row.language}  {row.question} → {_short(row.answer)}{reason}"
            )


@app.command()
def show(
    question_id: Annotated[str, typer.Argument(help="Id, or its beginning.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """A question with its proof and its evidence in context."""
    from sqlalchemy import select

    from corpus.catalogue.tables import Document, Question
    from corpus.errors import SettingsError
    from flows.runtime import open_runtime

    with open_runtime() as runtime, runtime.catalogue.reading() as session:
        rows = session.scalars(
            select(Question).where(Question.question_id.startswith(question_id, autoescape=True)).limit(2)
        ).all()
        if len(rows) != 1:
            raise SettingsError(
                f"{'no' if not rows else 'more than one'} question has the id {question_id!r}"
            )
        row = rows[0]
        if as_json:
            fields = {c.key: getattr(row, c.key) for c in Question.__table__.columns}
            typer.echo(json.dumps(fields, ensure_ascii=False, indent=2))
            return
        typer.echo(f"{row.question}\n→ {row.answer}\n")
        typer.echo(
            f"{row.kind}, {row.language}, {row.split}, {row.state} {row.reason}, hops {row.hops}, {row.metapath}"
        )
        typer.echo(
            f"\nproof: {row.proof['cypher']}\n  {json.dumps(row.proof['parameters'], ensure_ascii=False)}"
        )
        for reference in row.references:
            document = session.get(Document, reference["document_id"])
            text = document.text if document is not None else ""
            before = text[max(0, reference["start"] - _CONTEXT) : reference["start"]]
            after = text[reference["end"] : reference["end"] + _CONTEXT]
            typer.echo(f"\n{reference['url']} [{reference['start']}:{reference['end']}]")
            typer.echo("  …" + f"{before}«{reference['quote']}»{after}".replace("\n", " ⏎ ") + "…")


@app.command()
def verify(
    limit: Annotated[int, typer.Option(min=1, help="Failures to show.")] = 20,
) -> None:
    """Run every kept question's proof and look every reference up. Exit code 1 where one fails."""
    from flows.runtime import open_runtime
    from kg.qa.stored import verify_stored
    from kg.store import GraphStore

    with open_runtime() as runtime, GraphStore.connect(runtime.settings.graph, runtime.data_dir) as store:
        checked, problems = verify_stored(runtime.catalogue, store)
    typer.echo(f"{checked} questions checked, {len(problems)} fail")
    for problem in problems[:limit]:
        typer.echo(f"  {problem}")
    if problems:
        raise typer.Exit(1)


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= 80 else line[:79] + "…"
