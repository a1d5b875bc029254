"""``hchem questions``: list, show with evidence in context, verify against graph and documents."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Any

import typer

from flows.words import counted

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sqlalchemy.orm import Session

    from corpus.catalogue.tables import Document, Question
    from kg.qa.stored import Verification

app = typer.Typer(help="Questions that a query proves.")
_CONTEXT = 80  # characters of the document shown on each side of the evidence

Kind = Annotated[str, typer.Option(help="single_hop, multi_hop, aggregative or boolean.")]
Lang = Annotated[str, typer.Option("--language", help="zh or en.")]
Section = Annotated[int | None, typer.Option(help="Section of a safety data sheet, 1 to 16.")]
Split = Annotated[str, typer.Option(help="train or eval.")]
Level = Annotated[str, typer.Option(help="easy, medium or hard, by measured features.")]
Substance = Annotated[str, typer.Option(help="CAS number, or a name: 甲醇, methanol.")]
Template = Annotated[str, typer.Option(help="What is asked: value, storage, count, is_listed, shared …")]
Text = Annotated[str, typer.Option(help="Part of the question or the answer.")]
Curated = Annotated[bool, typer.Option("--curated", help="Only those of eval.jsonl.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]


@app.command("list")
def list_questions(
    kind: Kind = "",
    language: Lang = "",
    section: Section = None,
    split: Split = "",
    level: Level = "",
    substance: Substance = "",
    template: Template = "",
    text: Text = "",
    curated: Curated = False,
    rejected: Annotated[
        bool, typer.Option("--rejected", help="Those that were not kept, with reasons.")
    ] = False,
    reason: Annotated[str, typer.Option(help="Only those rejected for this reason.")] = "",
    limit: Annotated[int, typer.Option(min=1, help="How many at most.")] = 50,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON lines.")] = False,
) -> None:
    """List questions in id order.

    Examples: hchem questions list --kind boolean --language zh | hchem questions list --substance 甲醇 --section 9
    | hchem questions list --rejected --reason shortcut --json
    """
    from flows.runtime import open_runtime
    from kg.qa.stored import Selection, count, not_drawn

    selection = Selection(
        kind, language, section, split, level, substance, template, text, reason, curated,
        "rejected" if rejected or reason else "kept",
    )  # fmt: skip
    with open_runtime() as runtime, runtime.catalogue.reading() as session:
        total = count(session, selection)
        for row in session.scalars(selection.query(session).limit(limit)):
            typer.echo(json.dumps(_fields(row), ensure_ascii=False) if as_json else _line(row))
        everything = count(session, Selection())
        possible = everything + not_drawn(session)
    if not as_json:
        typer.echo(f"{min(limit, total)} of {counted(total, 'question')}")
        if possible > everything:
            typer.echo(
                f"Drawn: {everything:,} of {possible:,} possible (questions.at_most, questions.at_most_of)"
            )


@app.command()
def show(
    question_id: Annotated[str, typer.Argument(metavar="ID", help="Id, or its beginning.")],
    as_json: AsJson = False,
) -> None:
    """Show a question with its answer, its proof, and its evidence in context, marked with «».

    Examples: hchem questions show 0d5f | hchem questions show 0d5f --json
    """
    from corpus.catalogue.tables import Question
    from corpus.lookup import by_beginning
    from flows.runtime import open_runtime

    with open_runtime() as runtime, runtime.catalogue.reading() as session:
        row: Question = by_beginning(
            session, Question.question_id, question_id, "question", "hchem questions list"
        )
        evidence = list(_evidence(session, row))
        if as_json:
            typer.echo(json.dumps({**_fields(row), "evidence": evidence}, ensure_ascii=False, indent=2))
            return
        typer.echo(f"{row.question}\n→ {row.answer}\n")
        state = f"{row.state} {row.reason}".strip()
        section = f"section {row.section}" if row.section else "no section"
        level = row.difficulty.get("level", "")
        curated = ", curated" if row.curated else ""
        typer.echo(f"{row.kind}, {row.language}, {section}, {level}, {row.split}{curated}, {state}")
        typer.echo(f"path {row.metapath}, hops {row.hops}, template {row.template}, words {row.wording}")
        typer.echo(f"\nproof, on snapshot {row.snapshot_id}:\n  {row.proof['cypher']}")
        typer.echo(f"  {json.dumps(row.proof['parameters'], ensure_ascii=False)}")
        typer.echo(f"  returns {json.dumps([item['key'] for item in row.answer_set], ensure_ascii=False)}")
        for entry in evidence:
            typer.echo(f"\n{entry['title'] or entry['url']} [{entry['start']}:{entry['end']}]{entry['note']}")
            typer.echo(f"  …{entry['before']}«{entry['quote']}»{entry['after']}…".replace("\n", " ⏎ "))
            typer.echo(f"  {entry['url']} · {entry['source']} · licence: {entry['licence'] or 'not stated'}")


@app.command()
def verify(
    kind: Kind = "",
    language: Lang = "",
    section: Section = None,
    split: Split = "",
    level: Level = "",
    substance: Substance = "",
    template: Template = "",
    text: Text = "",
    curated: Curated = False,
    limit: Annotated[int, typer.Option(min=1, help="Failures to show.")] = 20,
    as_json: AsJson = False,
) -> None:
    """Run the proofs of kept questions again and look every reference up.

    Exit code 1 where one fails. Examples: hchem questions verify | hchem questions verify --kind boolean --json
    """
    from flows.console import ProgressDisplay
    from flows.runtime import open_runtime
    from kg.qa.stored import Selection, verify_stored
    from kg.store import GraphStore

    selection = Selection(kind, language, section, split, level, substance, template, text, "", curated)
    with (
        open_runtime() as runtime,
        GraphStore.connect(runtime.settings.graph, runtime.data_dir) as store,
        ProgressDisplay() as display,
    ):
        found = verify_stored(
            runtime.catalogue,
            store,
            selection,
            lambda done, total: display("questions verified", done, total),
        )
    _say_verification(found, limit, as_json=as_json)
    if found.problems:
        raise typer.Exit(1)


def _say_verification(found: Verification, limit: int, *, as_json: bool) -> None:
    if as_json:
        problems = [
            {"question": p.question_id, "reason": p.reason, "detail": p.detail} for p in found.problems
        ]
        figures = {"checked": found.checked, "failed": found.failed, "reasons": found.reasons}
        typer.echo(json.dumps({**figures, "problems": problems}, ensure_ascii=False, indent=2))
        return
    fail = "fails" if found.failed == 1 else "fail"
    typer.echo(f"{counted(found.checked, 'question')} checked, {found.failed} {fail}")
    for reason, n in found.reasons.items():
        typer.echo(f"  {reason.replace('_', ' ')}: {n}")
    for problem in found.problems[:limit]:
        typer.echo(f"{problem.question_id}  {problem.reason}: {problem.detail}")
    if len(found.problems) > limit:
        typer.echo(f"… and {len(found.problems) - limit} more (--limit)")


def _fields(row: Question) -> dict[str, Any]:
    return {column.key: getattr(row, column.key) for column in row.__table__.columns}


def _evidence(session: Session, row: Question) -> Iterator[dict[str, Any]]:
    """The references with the text around them, and whose text it is."""
    from corpus.catalogue.tables import Document

    for reference in row.references:
        document = session.get(Document, reference["document_id"])
        start, end = reference["start"], reference["end"]
        text, note = "", _stale(document, reference)
        if document is not None and not note:
            text = document.text
        yield {
            **reference,
            "before": text[max(0, start - _CONTEXT) : start],
            "after": text[end : end + _CONTEXT],
            "title": document.title if document is not None else "",
            "source": document.source if document is not None else "",
            "licence": document.licence if document is not None else "",
            "note": note,
        }


def _stale(document: Document | None, reference: dict[str, Any]) -> str:
    if document is None:
        return " (the document is gone)"
    if document.version_id != reference["version_id"]:
        return " (the document has changed since)"
    same = document.text[reference["start"] : reference["end"]] == reference["quote"]
    return "" if same else " (the quote does not stand there)"


def _line(row: Question) -> str:
    reason = f"  [{row.reason}]" if row.reason else ""
    return f"{row.question_id}  {row.kind:<12}{row.language}  {row.question} → {_short(row.answer)}{reason}"


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= 80 else line[:79] + "…"
