"""``hchem benchmark``: chunk methods on a published data set that the user has on disk."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from corpus.errors import TerminalError

if TYPE_CHECKING:
    from chunking.evaluation.published import Benchmark
    from flows.settings import Settings

app = typer.Typer()

_DEFAULT = "fixed,sentence,recursive,semantic,hichunk"


@app.command()
def benchmark(
    name: Annotated[
        str,
        typer.Argument(
            metavar="NAME",
            help="hichunk, hchemsafety, crud, omnieval, longbench, qasper, gov-report, gutenqa, wiki-727k, "
            "ohr-bench, chroma or choi.",
        ),
    ],
    path: Annotated[Path, typer.Option("--path", help="Folder (or file) with the data set as published.")],
    methods: Annotated[
        str, typer.Option("--methods", "-m", help="Chunk methods, separated by commas.")
    ] = _DEFAULT,
    limit: Annotated[
        int | None, typer.Option("--limit", min=1, help="Documents at most, the first in order.")
    ] = None,
    subset: Annotated[
        str | None, typer.Option("--subset", help="Subsets or domains, separated by commas; default: all.")
    ] = None,
    headings: Annotated[
        str,
        typer.Option(
            "--headings", help="hidden (headings stand as plain lines) or removed; their marks never stand."
        ),
    ] = "hidden",
    size: Annotated[int | None, typer.Option("--size", min=1, help="Largest chunk in tokens.")] = None,
    budgets: Annotated[
        str | None, typer.Option("--budgets", help="Token budgets of the context, separated by commas.")
    ] = None,
    without_completion: Annotated[
        bool, typer.Option("--without-completion", help="qchunker, qchunker-slm: the paper's w/o M_Ref.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
    afresh: Annotated[
        bool, typer.Option("--afresh", help="Cut everything again; do not go on where a run was stopped.")
    ] = False,
) -> None:
    """Compare chunk methods on a published data set: borders, evidence at token budgets, counts, time.

    Figures are of our retrieval and settings; they are not the published tables. A run that is stopped goes on
    where it was when it is called again.

    Example: hchem benchmark qasper --path qasper-dev-v0.3.json --methods sentence,hichunk --limit 20
    """
    from chunking.evaluation.published import read_benchmark
    from chunking.evaluation.published.comparison import Cuts, compare
    from chunking.segment import Segmenter, require_models
    from flows.console import ProgressDisplay
    from flows.runtime import open_runtime

    settings = _settings(size, budgets, without_completion=without_completion)
    chosen = _methods(methods)
    if headings not in ("hidden", "removed"):
        raise TerminalError(f"unknown form {headings!r}; headings: hidden, removed", reason="usage")
    data = read_benchmark(
        name, path, headings="removed" if headings == "removed" else "hidden", subsets=_listed(subset)
    ).limited(limit)
    # vectors and answers of foreign texts are kept beside the knowledge base, not in it
    settings.data_dir = settings.data_dir / "benchmarks"
    settings.catalogue.url = None
    with open_runtime(settings=settings) as runtime:
        for method in chosen:  # said before the first one has run for an hour
            require_models(method, runtime.models, completion=settings.chunks.completion)
        kept = runtime.data_dir / f"{name}.jsonl"
        if afresh:
            kept.unlink(missing_ok=True)
        cuts = Cuts(kept)
        with ProgressDisplay() as progress:
            rows = compare(
                data,
                chosen,
                Segmenter(runtime.models, settings.chunks),
                settings.evaluation,
                settings.vectors,
                cuts=cuts,
                progress=progress,
            )
        head = {
            **_head(data, settings, headings),
            "tokens": runtime.models.token_counter_name,
            "from_an_earlier_run": cuts.taken,
        }
    if as_json:
        typer.echo(json.dumps({**head, "methods": rows}, ensure_ascii=False, indent=2))
    else:
        _show(head, rows, settings.evaluation.budget)


def _settings(size: int | None, budgets: str | None, *, without_completion: bool) -> Settings:
    from pydantic import ValidationError

    from chunking.evaluation.settings import EvaluationSettings
    from chunking.settings import ChunkSettings
    from flows.settings import load_settings

    settings = load_settings()
    chunks: dict[str, Any] = {} if size is None else {"size": size}
    if without_completion:
        chunks["completion"] = False
    evaluation: dict[str, Any] = {}
    if budgets is not None:
        try:
            values = [int(value) for value in _listed(budgets)]
        except ValueError as error:
            raise TerminalError(f"budgets {budgets!r} are no whole numbers", reason="usage") from error
        evaluation = {"budgets": values, "budget": max(values, default=0)}
    try:
        settings.chunks = ChunkSettings.model_validate(settings.chunks.model_dump() | chunks)
        settings.evaluation = EvaluationSettings.model_validate(settings.evaluation.model_dump() | evaluation)
    except ValidationError as error:
        first = error.errors()[0]
        raise TerminalError(f"{'.'.join(map(str, first['loc']))}: {first['msg']}", reason="usage") from error
    return settings


def _listed(value: str | None) -> list[str]:
    return [part.strip() for part in (value or "").split(",") if part.strip()]


def _methods(value: str) -> list[str]:
    from chunking.segment import METHODS

    chosen = list(dict.fromkeys(_listed(value)))
    unknown = [method for method in chosen if method not in METHODS]
    if unknown or not chosen:
        what = ", ".join(map(repr, unknown)) or "none"
        raise TerminalError(f"unknown method {what}; methods: {', '.join(METHODS)}", reason="usage")
    return chosen


def _head(data: Benchmark, settings: Settings, headings: str) -> dict[str, Any]:
    gold = sum(bool(document.borders) for document in data.documents)
    return {
        "benchmark": data.name,
        "documents": len(data.documents),
        "documents_with_gold_borders": gold,
        "questions": len(data.questions),
        "questions_with_located_evidence": sum(bool(question.regions) for question in data.questions),
        "left_out": dict(sorted(data.notes.items())),
        "headings": headings,
        "size": settings.chunks.size,
        "retrieval": settings.evaluation.retrieval,
        "budgets": list(settings.evaluation.budgets),
        "confidence": settings.evaluation.confidence,
    }


_GENERAL = (
    "chunks",
    "chunks_per_document",
    "mean_tokens",
    "max_tokens",
    "seconds_per_document",
    "refused_documents",
)
_BORDERS = (
    "border_precision", "border_recall", "border_f1", "border_f1_near", "f1_level_1", "f1_level_2", "pk",
    "window_diff", "boundary_similarity",
)  # fmt: skip


def _show(head: dict[str, Any], rows: list[dict[str, Any]], budget: int) -> None:
    from flows.console import out

    counts = f"{head['documents']} documents, {head['questions']} questions"
    out.print(
        f"{head['benchmark']}: {counts}; chunks of at most {head['size']} {head['tokens']}", markup=False
    )
    for reason, number in head["left_out"].items():
        out.print(f"  left out: {number} {reason}", markup=False)
    _table("Chunks", rows, _GENERAL)
    _table(f"Borders (headings {head['headings']}; pk and window diff: lower is better)", rows, _BORDERS)
    names = {name for row in rows for name in row}
    recalls = sorted((n for n in names if n.startswith("evidence_recall@")), key=_budget)
    answers = sorted((n for n in names if n.startswith("answer_in_context@")), key=_budget)
    title = f"{head['retrieval']} retrieval, context of at most so many tokens"
    _table(f"Evidence recall by budget ({title})", rows, tuple(recalls))
    _table(f"Words of the answer in the context, by budget ({title})", rows, tuple(answers))
    _table(
        f"Evidence word for word, with a context of at most {budget} tokens",
        rows,
        ("substring_recall", "context_tokens"),
    )


def _budget(name: str) -> int:
    return int(name.partition("@")[2])


def _table(title: str, rows: list[dict[str, Any]], names: tuple[str, ...]) -> None:
    from rich.table import Table

    from flows.console import out

    shown = [name for name in names if any(row.get(name) is not None for row in rows)]
    if not shown:
        return
    heads = [name.partition("@")[2] or name.replace("_", " ") for name in shown]
    lines = [
        [row["method"], *(_cell(row.get(name)) for name in shown)]
        for row in rows
        if any(row.get(name) is not None for name in shown)
    ]
    table = Table(title=title, title_justify="left")
    widths = (max(map(len, column)) + 3 for column in zip(["method", *heads], *lines, strict=True))
    if sum(widths) < out.width:
        table.add_column("method", no_wrap=True)
        for head in heads:
            table.add_column(head, justify="right")
        for line in lines:
            table.add_row(*line)
    else:  # one figure a line: intervals do not bear cutting
        for head in ("figure", "method", "value"):
            table.add_column(head, justify="right" if head == "value" else "left")
        for at, head in enumerate(heads, 1):
            for number, line in enumerate(lines):
                table.add_row("" if number else head, line[0], line[at], end_section=number == len(lines) - 1)
    out.print(table)


def _cell(figure: Any) -> str:
    if figure is None:
        return "–"
    if not isinstance(figure, dict):
        return f"{figure:,}" if isinstance(figure, int) else f"{figure:.3f}"
    value, low, high, n = (figure[key] for key in ("value", "low", "high", "n"))
    return f"{value:.3f} [{low:.3f}, {high:.3f}] n={n}"
