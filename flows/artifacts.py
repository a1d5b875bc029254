"""Artifacts of a run on Prefect's pages: short Markdown tables under stable keys, so that the server keeps a history.

The text is made from the catalogue by plain functions; only ``publish_stage`` and
``publish_run`` talk to Prefect. What pages, names and models say is data: it is
escaped, so that it can be neither markup nor another column.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from sqlalchemy import func, select

from corpus.catalogue import Catalogue
from corpus.catalogue.tables import Evaluation, LedgerRow, Question
from flows import comparison, summary
from flows.comparison import Comparison
from flows.report import data
from kg.stage import current_snapshot

if TYPE_CHECKING:
    from pathlib import Path

    from flows.execution import Session
    from kg.versions import Diff, Version

_ROWS = 12  # of a table before the rest is only counted
_CELL = 160  # characters
_MAIN = ("evidence_recall", "token_f1", "rouge_l", "answered")
_MARKUP = re.compile(r"([\\`*_\[\]<>#!|~])")
_STAGE_TEXTS = {
    "acquire": ("funnel",),
    "curate": ("funnel",),
    "graph": ("funnel", "knowledge-graph"),
    "questions": ("funnel", "questions"),
    "evaluate": ("evaluation",),
}
_TITLES = {
    "funnel": "From pages to questions",
    "knowledge-graph": "Knowledge graph",
    "questions": "Questions",
    "evaluation": "Evaluation",
    "run-comparison": "Against the run before",
    "dataset-version": "Version of the data set",
}


def cell(value: Any) -> str:
    """Text as a table cell: one line, no markup, no control characters, cut where it is long."""
    text = " ".join(
        "".join(" " if unicodedata.category(c) in ("Cc", "Zl", "Zp") else c for c in str(value)).split()
    )
    text = "".join(c for c in text if unicodedata.category(c) not in ("Cf", "Cs"))
    if len(text) > _CELL:
        text = text[: _CELL - 1] + "…"
    text = _MARKUP.sub(r"\\\1", text.replace("&", "&amp;"))
    return text.replace("://", ":\u200b//").replace("www.", "www\u200b.")  # no link of a page's making


def table(head: Sequence[str], rows: Iterable[Sequence[Any]], *, most: int = _ROWS) -> str:
    """A Markdown table; numbers to the right, what is left out is said below."""
    kept = [tuple(row) for row in rows]
    if not kept:
        return "Nothing yet.\n"
    right = [all(_is_figure(row[at]) for row in kept) for at in range(len(head))]
    lines = [
        "| " + " | ".join(head) + " |",
        "|" + "|".join("---:" if to_right else "---" for to_right in right) + "|",
        *("| " + " | ".join(map(cell, row)) + " |" for row in kept[:most]),
    ]
    left = len(kept) - most
    return "\n".join(lines) + "\n" + (f"\n… and {left} more.\n" if left > 0 else "")


def _is_figure(value: Any) -> bool:
    return isinstance(value, int | float) or (
        isinstance(value, str) and bool(re.fullmatch(r"[+−±–\d.,% ]+", value))
    )


# --- texts ------------------------------------------------------------------------


def funnel(catalogue: Catalogue) -> str:
    """From pages to questions, with what each step left behind and why."""
    rows = []
    for step in data.funnel(catalogue):
        reasons = step["reasons"]
        told = ", ".join(f"{reason} {n}" for reason, n in reasons[:4])
        rest = sum(n for _, n in reasons[4:])
        rows.append((step["name"], step["n"], told + (f", others {rest}" if rest else "")))
    return table(("what", "n", "left behind because"), rows)


def knowledge_graph(catalogue: Catalogue) -> str:
    """Nodes and relationships by kind, and where sources disagree."""
    found = data.graph_statistics(catalogue)
    with catalogue.reading() as db:
        snapshot = current_snapshot(db)
        row = db.get(LedgerRow, ("graph.resolve", "identity"))
        counts = dict(row.counts) if row is not None else {}
    compared = [(name.partition(": ")[2], n) for name, n in counts.items() if name.startswith("reference: ")]
    decided = [(name.partition(": ")[2], n) for name, n in counts.items() if name.startswith("decision: ")]
    nodes, relationships = (snapshot.nodes, snapshot.relationships) if snapshot else (0, 0)
    head = f"{nodes} nodes, {relationships} relationships.\n"
    return "\n".join(
        (
            head,
            "### Nodes\n",
            table(("label", "n"), found["labels"], most=20),
            "### Statements by relation\n",
            table(("relation", "n"), found["relations"], most=30),
            "### Statements by extractor\n",
            table(("extractor", "n"), found["extractors"]),
            "### Against published lists\n",
            table(("verdict", "statements"), compared),
            "### Identity\n",
            table(("decision", "n"), decided),
        )
    )


def questions(catalogue: Catalogue) -> str:
    """Kept questions by kind and language, the balance of yes and no, proofs, and why others were not kept."""
    with catalogue.reading() as db:
        kept = Question.state == "kept"
        counts = {
            (str(kind), str(language)): int(n)
            for kind, language, n in db.execute(
                select(Question.kind, Question.language, func.count())
                .where(kept)
                .group_by(Question.kind, Question.language)
            )
        }
        answers: Counter[tuple[str, str]] = Counter()
        proved = 0
        query = select(Question.kind, Question.language, Question.answer_set, Question.proof).where(kept)
        for kind, language, answer_set, proof in db.execute(query.execution_options(yield_per=1000)):
            proved += bool(proof.get("cypher"))
            if kind == "boolean" and answer_set:
                said = answer_set[0].get("key", "") if isinstance(answer_set[0], dict) else answer_set[0]
                answers[language, str(said)] += 1
        rejected = data.groups(db, Question.reason, Question.state == "rejected")
    languages = sorted({language for _, language in counts})
    kinds = [kind for kind in summary.QUESTION_KINDS if any(key[0] == kind for key in counts)]
    rows = [
        (kind, *(counts.get((kind, language), 0) for language in languages), sum(n for k, n in counts.items() if k[0] == kind))
        for kind in kinds
    ]  # fmt: skip
    balance = []
    for language in languages:
        yes, no = answers[language, "yes"], answers[language, "no"]
        if yes + no:
            balance.append((language, yes, no, f"{100 * yes / (yes + no):.0f} %"))
    return "\n".join(
        (
            f"{sum(counts.values())} questions, {proved} of them with the graph query that proves the answer "
            "(`hchem questions verify` runs them).\n",
            table(("kind", *languages, "all"), rows),
            "### Yes and no\n",
            table(("language", "yes", "no", "share of yes"), balance),
            "### Not kept\n",
            table(("reason", "n"), rejected),
        )
    )


def evaluation(catalogue: Catalogue) -> str:
    """The main table: one row a method, each figure with its interval and n."""
    metrics, found = summary.evaluation_rows(catalogue)
    shown = [name for name in _MAIN if name in metrics] or metrics[:4]
    rows = [(row["method"], *(_figure(row[name]) for name in shown)) for row in found]
    sizes = sorted({row[name].n for row in found for name in shown if row[name] is not None})
    told = (
        f"n = {', '.join(map(str, sizes))} questions; in brackets the interval of the setting's confidence.\n"
    )
    return (told + "\n" if rows else "") + table(
        ("method", *(name.replace("_", " ") for name in shown)), rows
    )


def _figure(row: Evaluation | None) -> str:
    if row is None or row.value is None:
        return "–"
    if row.low is None or row.high is None:
        return f"{row.value:.3f}"
    return f"{row.value:.3f} ({row.low:.3f} to {row.high:.3f})"


def run_comparison(found: Comparison | None) -> str:
    """A run against the comparable one before: failures and checks first, then the largest changes."""
    if found is None:
        return "There is no earlier completed run of the same flow with the same restriction.\n"
    parts = [
        table(
            ("", "run", "state", "started (UTC)", "code"),
            [(name, h["run_id"], h["state"], h["started_at"][:19], h["code_version"] or "–") for name, h in (("old", found.old), ("new", found.new))],
        ),
        "A run counts what it worked on; what had not changed is not in it.\n",
    ]  # fmt: skip
    if found.checks:
        rows = [
            (
                c.stage,
                f"{c.name} {c.scope}".strip(),
                c.severity,
                c.old or "–",
                c.new,
                c.decision or "–",
                c.message,
            )
            for c in found.checks
        ]
        parts += [
            "### Checks\n",
            table(("stage", "check", "severity", "old", "new", "decided", "says"), rows),
        ]
    for group in comparison.GROUPS:
        changed = [
            (e.place, e.what, comparison.number(e.old), comparison.number(e.new), comparison.signed(e.change))
            for e in found.of(group)
        ]
        if changed:
            parts += [
                f"### {group.capitalize()}\n",
                table(("where", "what", "old", "new", "change"), changed),
            ]
    parts.append(f"{found.same} figures are the same.\n")
    return "\n".join(parts)


def dataset_version(version: Version, diff: Diff | None) -> str:
    """A version of the data set, and what differs from the one before (None: there is none)."""
    head = table(
        ("version", "taken (UTC)", "run", "tags"),
        [(version.id, version.taken_at[:19], version.run_id, ", ".join(version.tags))],
    )
    sets = [(name, n) for name, n in sorted(version.rows.items()) if name.endswith(".jsonl")]
    rows = table(("file", "rows"), sets)
    if diff is None:
        return f"{head}\n{rows}\nThere is no version before it.\n"
    counts = table((f"{diff.old} → {diff.new}", "n"), diff.counts().items())
    shown = [
        (c.what, c.how, c.text, c.before, c.after)
        for c in sorted(diff.changes, key=lambda c: (c.how == "added", c.what != "fact", c.id))
    ]
    details = table(("what", "how", "which", "before", "after"), shown) if shown else "Nothing differs.\n"
    return f"{head}\n{rows}\n### What changed\n\n{counts if shown else ''}\n{details}"


def run_summary(catalogue: Catalogue, stages: dict[str, Any], run_id: str) -> str:
    """What is in the knowledge base, the run's checks, and what changed most since the run before."""
    text = summary.markdown(summary.status(catalogue), stages)
    with catalogue.reading() as db:
        checks = comparison.checks_of(db, run_id)
        compared = comparison.against_previous(db, run_id)
    if checks:
        text += f"\nChecks: {cell(comparison.checks_brief(checks))}\n"
    if compared is not None:
        told = "".join(f"- {cell(comparison.line(entry))}\n" for entry in compared.brief())
        text += f"\nAgainst run {cell(compared.old['run_id'])}:\n\n{told or '- the same items, reasons and calls'}\n"
    return text


# --- Prefect ----------------------------------------------------------------------


def publish_stage(catalogue: Catalogue, stage: str, reports: dict[str, Any]) -> None:
    """The tables of a stage that has run: its steps, and what the knowledge base is now."""
    from prefect.artifacts import create_table_artifact

    create_table_artifact(table=_steps(reports), key=f"stage-{stage}", description=f"Stage {stage}")
    texts = {
        "funnel": funnel,
        "knowledge-graph": knowledge_graph,
        "questions": questions,
        "evaluation": evaluation,
    }
    for key in _STAGE_TEXTS.get(stage, ()):
        _markdown(key, texts[key](catalogue))


def _steps(reports: dict[str, Any]) -> list[dict[str, Any]]:
    return [
        {
            "step": step,
            "to do": counts["pending"],
            **{
                state: counts["states"].get(state, 0)
                for state in ("kept", "rejected", "duplicate", "review", "failed")
            },
            "reasons": ", ".join(f"{reason} {n}" for reason, n in sorted(counts["reasons"].items())),
            "made": ", ".join(f"{what} {n}" for what, n in sorted(counts["counts"].items())),
            "seconds": counts["wall_seconds"],
        }
        for step, counts in reports.items()
    ]


def publish_run(current: Session, version: Version | None, report: Path) -> None:
    """Summary, comparison, version of the data set, and the link to the report."""
    from prefect.artifacts import create_link_artifact, create_markdown_artifact

    catalogue, run_id = current.runtime.catalogue, current.context.run_id
    create_markdown_artifact(
        run_summary(catalogue, current.stages, run_id),
        key="run-summary",
        description="What is in the knowledge base",
    )
    with catalogue.reading() as db:
        compared = comparison.against_previous(db, run_id)
    _markdown("run-comparison", run_comparison(compared))
    if version is not None:
        _markdown("dataset-version", _version_text(current, version))
    create_link_artifact(
        link=report.as_uri(), link_text=str(report), key="run-report", description="HTML report"
    )


def _version_text(current: Session, version: Version) -> str:
    from kg import versions

    folder = versions.folder_of(current.runtime.data_dir)
    if version.run_id != current.context.run_id:
        return f"Unchanged since run {cell(version.run_id or 'by hand')}.\n\n{dataset_version(version, None)}"
    earlier = [v for v in versions.versions(folder) if versions.PREVIOUS in v.tags and v.id != version.id]
    return dataset_version(version, versions.diff(folder, earlier[0].id, version.id) if earlier else None)


def _markdown(key: str, text: str) -> None:
    from prefect.artifacts import create_markdown_artifact

    create_markdown_artifact(f"# {_TITLES[key]}\n\n{text}", key=key, description=_TITLES[key])
