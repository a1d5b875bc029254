"""Putting the report together: data, figures, template, a file in each language."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined, select_autoescape
from markupsafe import Markup, escape

from corpus.catalogue.tables import Evaluation, Run
from corpus.errors import TerminalError
from corpus.ids import canonical_json
from flows import accounting, comparison, summary
from flows.files import put_whole
from flows.parameters import STAGES
from flows.report import data, figures, gates
from flows.report.debates import Debates, write_debates
from flows.report.explorer import Explorer, write_explorer
from flows.report.places import document_page, in_chinese, listed_documents
from flows.report.trails import Trails, write_trails
from flows.report.words import EN, LANGUAGES, WORDS, Words
from flows.runtime import Runtime
from flows.visible import visible

_PACKAGES = (
    "hchemsafety", "prefect", "scrapy", "neo4j", "openai", "sqlalchemy", "pydantic", "lxml", "pymilvus", "arcadedb-embedded",
)  # fmt: skip
_MAIN_METRIC = "evidence_recall"


def write(runtime: Runtime, run_id: str, stages: dict[str, Any], *, path: Path | None = None) -> Path:
    """Write the report; returns the path of the English file (default ``<data>/reports/report.html``).

    Beside it the Chinese file ``<name>.zh.html``, the graph explorer, a folder ``<name>-substances`` with a page per
    substance, ``<name>-lineage`` with a page per document and a search, and ``<name>-debates`` with a page per document
    that QChunker cut. Each appears whole or not at all. Raises TerminalError when one cannot be written.
    """
    target = path or runtime.data_dir / "reports" / "report.html"
    beside = Beside(
        write_explorer(runtime.catalogue, target, runtime.settings.extraction),
        write_debates(runtime.catalogue, target),
        write_trails(runtime.catalogue, target, runtime.data_dir),
    )
    content = _content(runtime, run_id, stages, beside)
    for language in reversed(LANGUAGES):  # the English one last: it stands for the report
        file = in_chinese(target) if language == "zh" else target
        other = target if language == "zh" else in_chinese(target)
        html = render(content, WORDS[language], other.name)
        try:
            put_whole(file, html)
        except OSError as error:
            raise TerminalError(
                f"report {file} cannot be written: {error.strerror or error}", reason="disk"
            ) from error
    return target.resolve()


@dataclass(frozen=True)
class Beside:
    """The folders of pages that a report links to."""

    explorer: Explorer
    debates: Debates
    lineage: Trails


def render(content: Mapping[str, Any], words: Words = EN, other: str = "") -> str:
    """The report in a language as HTML text; ``other``: the file in the other one."""
    environment = Environment(
        loader=PackageLoader("flows.report"),
        autoescape=select_autoescape(["html", "j2"]),
        undefined=StrictUndefined,
        finalize=visible,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["figure"] = _figure
    environment.tests["public"] = lambda url: (
        str(url).startswith(("http://", "https://")) and ".test/" not in url
    )
    environment.filters["term"] = lambda code: _term(words, code)
    environment.filters["judged"] = lambda name: gates.judged(name, words)
    environment.filters["found"] = lambda check: gates.found(check, words, lambda code: _term(words, code))
    environment.filters["amount"] = comparison.number
    environment.filters["signed"] = comparison.signed
    tables: dict[str, list[Evaluation]] = content["evaluations"]
    return environment.get_template("report.html.j2").render(
        **content,
        w=words,
        other=other,
        histogram=_inline(figures.histogram(content["scores"], content["threshold"], words)),
        bars=_inline(figures.recall_bars(tables["main"], _MAIN_METRIC, words)) if "main" in tables else None,
        curve=_inline(figures.budget_curve(tables["budget"], _MAIN_METRIC, words))
        if "budget" in tables
        else None,
        studies=_studies(tables, words),
    )


def _content(runtime: Runtime, run_id: str, stages: dict[str, Any], beside: Beside) -> dict[str, Any]:
    """What the report shows, in whichever language."""
    catalogue = runtime.catalogue
    with catalogue.reading() as db:
        run = db.get(Run, run_id) if run_id else None
        compared = comparison.against_previous(db, run_id)
        checks = compared.checks if compared else comparison.first_checks(db, run_id)
        listed = listed_documents(db)
    tables = data.evaluation_tables(catalogue)
    edges, names = data.graph_edges(catalogue)
    return {
        "compared": compared,
        "checks": checks,
        "stage_names": STAGES,
        "groups": [group for group in comparison.GROUPS if group != "checks"],
        "trails": {key: document_page(key) for key, _ in listed},
        "status": summary.status(catalogue),
        "run": run,
        "stages": stages,
        "unchanged": bool(stages) and summary.unchanged(stages),
        "funnel": data.funnel(catalogue),
        "documents": data.documents(catalogue),
        "failures": data.failures(catalogue),
        "scores": data.scores(catalogue),
        "threshold": runtime.settings.corpus.quality.threshold,
        "graph": data.graph_statistics(catalogue),
        "explorer": beside.explorer,
        "debates": beside.debates,
        "lineage": beside.lineage,
        "network": figures.network(edges, names),
        "questions": data.questions(catalogue),
        "kinds": summary.QUESTION_KINDS,
        "views": data.chunk_views(catalogue),
        "evaluations": tables,
        "tables": {
            name: _pivot(tables[name])
            for name in sorted(tables, key=lambda name: (name != "main", name))
            if name != "lambda"  # a hundred rows: drawn
        },
        "calls": data.model_calls(catalogue),
        "accounts": accounting.rows_of(stages),
        "preset": run.settings.get("preset") if run else None,
        "preset_notes": run.settings.get("preset_notes", []) if run else [],
        "flat_settings": sorted(_flat(runtime.settings.model_dump(mode="json"))),
        "versions": {name: version(name) for name in _PACKAGES},
    }


def _term(words: Words, code: object) -> Markup:
    """A code's name; one without a name in both languages is marked as a name of its own."""
    said = escape(words.term(code))
    return said if words.known(code) else Markup('<span translate="no">{}</span>').format(said)


def _studies(tables: dict[str, list[Evaluation]], words: Words) -> list[tuple[str, Markup]]:
    """(caption, figure) of the studies that there are figures of."""
    drawn = {
        "lambda": figures.lambda_curve,
        "levels": figures.level_curve,
        "completion": figures.completion_bars,
    }
    found = {
        **tables,
        "completion": [r for r in tables.get("completion", []) if r.metric.startswith("loss_")],
    }
    return [
        (words[f"{name}_caption"], _inline(draw(found[name], words)))
        for name, draw in drawn.items()
        if found.get(name)
    ]


def _inline(svg: str) -> Markup:
    """A figure as markup: drawn by our own code, its labels escaped by the drawing library."""
    return Markup(svg)  # noqa: S704


def _pivot(rows: list[Evaluation]) -> dict[str, Any]:
    """Figures of one table as methods × metrics.

    Rows of one method and metric that differ in a setting (budget, kind,
    language …) stay apart. Of figures by perplexity background the one that
    most documents share is shown, since backgrounds cannot be mixed.
    """
    metrics = sorted({row.metric for row in rows})
    rows = _most_shared(rows)
    varying = _varying(rows)
    lines: dict[tuple[str, tuple[tuple[str, Any], ...]], dict[str, Evaluation]] = {}
    for row in sorted(rows, key=lambda row: [_sortable(row.setting.get(key)) for key in varying]):
        shown = tuple((key, row.setting[key]) for key in varying if key in row.setting)
        lines.setdefault((row.method, shown), {})[row.metric] = row
    common = {
        key: value
        for key, value in rows[0].setting.items()
        if all(canonical_json(row.setting.get(key)) == canonical_json(value) for row in rows)
    }
    return {
        "metrics": metrics,
        "units": {row.metric: row.unit for row in rows},
        "lines": sorted(lines.items(), key=lambda line: line[0][0]),
        "common": sorted(common.items()),
        "n": sorted({row.n for row in rows}),
    }


def _most_shared(rows: list[Evaluation]) -> list[Evaluation]:
    best: dict[tuple[str, str, str], Evaluation] = {}
    for row in rows:
        rest = {key: value for key, value in row.setting.items() if key != "perplexity"}
        key = (row.method, row.metric, canonical_json(rest))
        if key not in best or row.n > best[key].n:
            best[key] = row
    return list(best.values())


def _varying(rows: list[Evaluation]) -> list[str]:
    """Settings that tell apart figures of one method and metric."""
    seen: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for row in rows:
        seen.setdefault((row.method, row.metric), []).append(row.setting)
    found = set()
    for settings in seen.values():
        for key in {key for setting in settings for key in setting}:
            values = {canonical_json(setting.get(key)) for setting in settings}
            if len(values) > 1 and all(isinstance(s.get(key), str | int | float | None) for s in settings):
                found.add(key)
    return sorted(found)


def _sortable(value: Any) -> tuple[int, float, str]:
    return (0, float(value), "") if isinstance(value, int | float) else (1, 0.0, str(value))


def _figure(row: Evaluation | None) -> str:
    if row is None or row.value is None:
        return "–"
    number = (
        f"{row.value:.0f}" if float(row.value).is_integer() and abs(row.value) > 1 else f"{row.value:.3f}"
    )
    return number if row.low is None or row.high is None else f"{number} [{row.low:.3f}, {row.high:.3f}]"


def _flat(tree: dict[str, Any], prefix: str = "") -> list[tuple[str, str]]:
    result = []
    for key, value in tree.items():
        name = f"{prefix}{key}"
        if isinstance(value, dict) and value:
            result.extend(_flat(value, f"{name}."))
        else:
            result.append((name, canonical_json(value)))
    return result
