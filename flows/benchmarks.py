"""What ``hchem benchmark`` shows: the tables of a comparison for a terminal and for a page of its own."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from chunking.evaluation.published.comparison import Comparison
from chunking.evaluation.rows import figure_row
from chunking.evaluation.statistics import Estimate
from corpus.catalogue.tables import Evaluation
from corpus.errors import TerminalError
from flows.files import put_whole

Row = dict[str, Any]

_GENERAL = (
    "chunks", "chunks_per_document", "mean_tokens", "max_tokens", "seconds_per_document", "refused_documents",
)  # fmt: skip
_BORDERS = (
    "border_precision", "border_recall", "border_f1", "border_f1_near", "f1_level_1", "f1_level_2", "pk",
    "window_diff", "boundary_similarity",
)  # fmt: skip
_ANSWERS = (
    "bleu_4",
    "rouge_l",
    "meteor",
    "token_f1",
    "fact_coverage",
    "answered",
    "brevity_penalty",
    "context_tokens",
)
_SUBSETS = (
    "questions",
    "evidence_recall",
    "bleu_4",
    "rouge_l",
    "meteor",
    "token_f1",
    "fact_coverage",
    "answer_in_context",
)
_SCORES = ("li", "sd", "chunkscore")


class Table:
    """Lines of figures under heads: a line's first cell names what it is of."""

    def __init__(self, title: str, heads: Sequence[str], lines: Sequence[Sequence[str]]) -> None:
        self.title, self.heads, self.lines = title, list(heads), [list(line) for line in lines]


def tables_of(head: Mapping[str, Any], found: Comparison, budget: int) -> list[Table]:
    """All tables that have a figure."""
    rows = found.rows
    names = {name for row in rows for name in row}
    how = f"{head['retrieval']} retrieval"
    made = [
        _table("Chunks", rows, _GENERAL),
        _table(f"Borders (headings {head['headings']}; pk and window diff: lower is better)", rows, _BORDERS),
        _table(
            f"Evidence recall by budget ({how}, context of at most so many tokens)",
            rows,
            _at(names, "evidence_recall"),
        ),
        _table(
            f"Words of the answer in the context, by budget ({how})", rows, _at(names, "answer_in_context")
        ),
        _table(
            f"Evidence word for word, with a context of at most {budget} tokens", rows, ("substring_recall",)
        ),
        _table(f"Answers from a context of at most {budget} tokens, by {head['answers_by']}", rows, _ANSWERS)
        if any("rouge_l" in row for row in rows)
        else None,
        _table("ROUGE-L of the answers by budget", rows, _at(names, "rouge_l")),
        _table("Fact-Cov of the answers by budget", rows, _at(names, "fact_coverage")),
        *_by_subset(rows),
        _levels(rows, budget),
        _table("ChunkScore of the partitions (mean over documents)", rows, _SCORES),
        _completion(found.studies),
        _lambda(found.studies),
    ]
    return [table for table in made if table is not None]


def _at(names: set[str], figure: str) -> tuple[str, ...]:
    return tuple(
        sorted((n for n in names if n.startswith(f"{figure}@")), key=lambda name: int(name.partition("@")[2]))
    )


def _table(title: str, rows: Sequence[Row], names: Sequence[str], label: str = "method") -> Table | None:
    shown = [name for name in names if any(row.get(name) is not None for row in rows)]
    if not shown:
        return None
    lines = [
        [row[label], *(cell(row.get(name)) for name in shown)]
        for row in rows
        if any(row.get(name) is not None for name in shown)
    ]
    return Table(title, [label, *(name.partition("@")[2] or name.replace("_", " ") for name in shown)], lines)


def _by_subset(rows: Sequence[Row]) -> list[Table | None]:
    names = sorted({name for row in rows for name in row.get("subsets", ())})
    return [
        _table(
            f"Questions of {name}",
            [{"method": row["method"], **row["subsets"][name]} for row in rows if "subsets" in row],
            _SUBSETS,
        )
        for name in names
    ]


def _levels(rows: Sequence[Row], budget: int) -> Table | None:
    given = [
        {"method": row["method"], **{f"to level {level}": figure for level, figure in row["levels"].items()}}
        for row in rows
        if "levels" in row
    ]
    heads = [name for row in given[:1] for name in row if name != "method"]
    return _table(f"Evidence recall by deepest level that is merged into, {budget} tokens", given, heads)


def _completion(studies: Sequence[Evaluation]) -> Table | None:
    lines: dict[str, Row] = {}
    for row in studies:
        if row.table == "completion":
            name = f"{row.method}, {row.setting['language']}"
            lines.setdefault(name, {"method": name})[row.metric] = _figure(row)
    names = ("loss_before", "loss_after", "loss_difference", "perplexity_before", "perplexity_after")
    return _table("Chunks before and after completion (loss: nats a token)", list(lines.values()), names)


def _lambda(studies: Sequence[Evaluation]) -> Table | None:
    """Every tenth step; the page draws all of them."""
    rows = [
        {"λ": f"{row.setting['lambda']:.1f}", "pearson_r": _figure(row), "methods": row.n}
        for row in studies
        if row.table == "lambda" and round(row.setting["lambda"] * 100) % 10 == 0
    ]
    return _table(
        "Pearson's r between ChunkScore and ROUGE-L over methods", rows, ("pearson_r", "methods"), "λ"
    )


def _figure(row: Evaluation) -> Row | None:
    if row.value is None:
        return None
    return {"value": row.value, "low": row.low, "high": row.high, "n": row.n}


def cell(figure: Any) -> str:
    """A figure with interval and n, a plain number, or a dash."""
    if figure is None:
        return "–"
    if not isinstance(figure, dict):
        return f"{figure:,}" if isinstance(figure, int) else f"{figure:.3f}"
    value, low, high, n = (figure[key] for key in ("value", "low", "high", "n"))
    span = "" if low is None or high is None else f" [{low:.3f}, {high:.3f}]"
    return f"{value:.3f}{span} n={n}"


def studies_as_dict(studies: Sequence[Evaluation]) -> list[Row]:
    """Rows of the studies as plain data."""
    return [
        {"table": row.table, "method": row.method, "metric": row.metric, **(_figure(row) or {"value": None}),
         "unit": row.unit, "setting": row.setting}
        for row in studies
    ]  # fmt: skip


def print_tables(tables: Sequence[Table]) -> None:
    """To the terminal; a table that is too wide has one figure a line, since intervals do not bear cutting."""
    from rich.table import Table as Shown

    from flows.console import out

    for table in tables:
        shown = Shown(title=table.title, title_justify="left")
        widths = (max(map(len, column)) + 3 for column in zip(table.heads, *table.lines, strict=True))
        if sum(widths) < out.width:
            for at, head in enumerate(table.heads):
                shown.add_column(head, justify="right" if at else "left", no_wrap=not at)
            for line in table.lines:
                shown.add_row(*line)
        else:
            for head in ("figure", table.heads[0], "value"):
                shown.add_column(head, justify="right" if head == "value" else "left")
            for at, head in enumerate(table.heads[1:], 1):
                for number, line in enumerate(table.lines):
                    last = number == len(table.lines) - 1
                    shown.add_row("" if number else head, line[0], line[at], end_section=last)
        out.print(shown)


# --- a page -----------------------------------------------------------------------------------------------------


def _rows_at(found: Comparison, figure: str, table: str, key: str) -> list[Evaluation]:
    """``figure@budget`` of every label as rows that the report's figures take."""
    rows = []
    for row in found.rows:
        values = row.get("levels", {}) if table == "levels" else row
        for name, value in values.items():
            plain, _, at = (figure, "", name) if table == "levels" else name.partition("@")
            if plain == figure and at and isinstance(value, dict):
                estimate = Estimate(value["value"], value["low"], value["high"], value["n"])
                rows.append(figure_row(table, row["method"], figure, estimate, "share", {key: at}))
    return rows


def write_page(path: Path, head: Mapping[str, Any], found: Comparison, tables: Sequence[Table]) -> None:
    """One HTML file with figures and tables; it appears whole or not at all. Raises TerminalError."""
    from flows.report import figures
    from flows.report.explorer import environment, page_frame

    def drawn(svg: str) -> str:
        """As an image: what a figure styles stays in it, and the page's policy need not allow it."""
        return "data:image/svg+xml;base64," + base64.b64encode(svg.encode()).decode()

    pictures: list[tuple[str, str]] = []
    for figure, title in (
        ("evidence_recall", "Evidence recall over the token budget."),
        ("answer_in_context", "Words of the answer in the context over the token budget."),
        ("rouge_l", "ROUGE-L of the answers over the token budget."),
        ("fact_coverage", "Fact-Cov of the answers over the token budget."),
    ):
        if rows := _rows_at(found, figure, "budget", "budget"):
            pictures.append((title, drawn(figures.budget_curve(rows, figure))))
    if levels := _rows_at(found, "evidence_recall", "levels", "max_level"):
        pictures.append(
            ("Evidence recall by the deepest level that is merged into.", drawn(figures.level_curve(levels)))
        )
    by_table = {
        name: [row for row in found.studies if row.table == name] for name in ("lambda", "completion")
    }
    if by_table["lambda"]:
        title = "Pearson's r between ChunkScore and ROUGE-L over the methods, by λ; band: documents and questions drawn anew."
        pictures.append((title, drawn(figures.lambda_curve(by_table["lambda"]))))
    if by_table["completion"]:
        title = "Token loss of completed chunks before and after."
        pictures.append((title, drawn(figures.completion_bars(by_table["completion"]))))
    made = environment()
    html = made.get_template("benchmark.html.j2").render(
        head=head, tables=tables, pictures=pictures, **page_frame(made, "explorer.css", "benchmark.css")
    )
    try:
        put_whole(path, html)
    except OSError as error:
        raise TerminalError(f"{path} cannot be written: {error.strerror or error}", reason="file") from error
