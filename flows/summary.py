"""What is in the knowledge base, computed from the catalogue (never from Prefect's rows)."""

from __future__ import annotations

from collections import Counter
from typing import Any

from sqlalchemy import func, select
from sqlalchemy.orm import Session as DbSession

from corpus.catalogue import Catalogue
from corpus.catalogue.tables import (
    Assertion,
    Check,
    Chunk,
    Document,
    Evaluation,
    Failure,
    ModelCall,
    Page,
    Question,
    Run,
)
from flows import backlog, projections
from kg.stage import current_snapshot

QUESTION_KINDS = ("single_hop", "multi_hop", "aggregative", "boolean")
DOCUMENT_STATES = ("kept", "rejected", "duplicate", "review", "failed", "pending")  # pending: not refined yet


def status(catalogue: Catalogue, settings: dict[str, Any] | None = None) -> dict[str, Any]:
    """The figures of ``hchem status --json`` (architecture, "Settings and command").

    ``settings``: those of now, as plain data; they may put stages behind, and they say where the projections
    are that ``absent`` names where they are not there.
    """
    with catalogue.reading() as db:
        pages = _counts(db, select(Page.state, func.count()).group_by(Page.state))
        documents = _counts(
            db,
            select(Document.state, func.count()).where(Document.kind != "reference").group_by(Document.state),
        )
        questions = _counts(
            db, select(Question.kind, func.count()).where(Question.state == "kept").group_by(Question.kind)
        )
        chunks = _counts(db, select(Chunk.method, func.count()).where(Chunk.leaf).group_by(Chunk.method))
        snapshot = current_snapshot(db)
        return {
            "pages": sum(pages.values()),
            "pages_by_state": pages,
            "pages_for_links": _count(db, Page.page_id, Page.state == "kept", Page.role != "content"),
            "documents": {state: documents.get(state, 0) for state in DOCUMENT_STATES},
            "references": _count(db, Document.document_id, Document.kind == "reference"),
            "rejected_because": _counts(
                db,
                select(Document.reason, func.count())
                .where(Document.state == "rejected", Document.kind != "reference")
                .group_by(Document.reason),
            ),
            "assertions": _count(db, Assertion.assertion_id, Assertion.state == "kept"),
            "graph": {
                "nodes": snapshot.nodes if snapshot else 0,
                "relationships": snapshot.relationships if snapshot else 0,
                "snapshot": snapshot.snapshot_id if snapshot else None,
            },
            "questions": {kind: questions.get(kind, 0) for kind in QUESTION_KINDS},
            "chunks": dict(sorted(chunks.items())),
            "models": _models(db),
            "failures": _count(db, Failure.failure_id, Failure.resolved_run.is_(None)),
            "last_run": _last_run(db),
            "gates": gates(db),
            "behind": backlog.behind(catalogue, settings),
            "absent": [] if settings is None else projections.absent(db, settings),
        }


def _counts(db: DbSession, query: Any) -> dict[str, int]:
    return {str(key): int(n) for key, n in sorted(db.execute(query).all())}


def _count(db: DbSession, column: Any, *conditions: Any) -> int:
    return int(db.scalar(select(func.count(column)).where(*conditions)) or 0)


def _models(db: DbSession) -> dict[str, Any]:
    row = db.execute(
        select(
            func.count(ModelCall.key),
            func.coalesce(func.sum(ModelCall.served), 0),
            func.coalesce(func.sum(ModelCall.tokens_in), 0),
            func.coalesce(func.sum(ModelCall.tokens_out), 0),
            func.coalesce(func.sum(ModelCall.cost), 0.0),
        )
    ).one()
    return {
        "calls": int(row[0]),
        "cached": int(row[1]),
        "tokens_in": int(row[2]),
        "tokens_out": int(row[3]),
        "cost": round(float(row[4]), 6),
    }


def _last_run(db: DbSession) -> dict[str, Any] | None:
    row = db.scalar(select(Run).order_by(Run.started_at.desc()).limit(1))
    if row is None:
        return None
    return {
        "run_id": row.run_id,
        "flow": row.flow,
        "state": row.state,
        "message": row.message,
        "started_at": row.started_at.isoformat(),
        "seconds": (row.finished_at - row.started_at).total_seconds() if row.finished_at else None,
        "changed": changed(row.stages),
    }


def gates(db: DbSession) -> dict[str, Any]:
    """Quality gates of the newest run: how many passed, failed, were skipped; what the failed ones say."""
    newest = select(Run.run_id).order_by(Run.started_at.desc()).limit(1).scalar_subquery()
    rows = list(db.scalars(select(Check).where(Check.run_id == newest).order_by(Check.name, Check.scope)))
    states = Counter(row.state for row in rows)
    return {
        **{state: states[state] for state in ("passed", "failed", "skipped")},
        "failures": [
            {
                "gate": row.name,
                "scope": row.scope,
                "severity": row.severity,
                "message": row.message,
                "decision": row.decision,
            }
            for row in rows
            if row.state == "failed"
        ],
    }


def _gates_line(found: dict[str, Any]) -> str:
    counts = ", ".join(f"{state} {found[state]}" for state in ("passed", "failed", "skipped") if found[state])
    told = "; ".join(f"{row['severity']}: {row['message']}" for row in found["failures"])
    return f"{counts or '–'}{f': {told}' if told else ''}"


def changed(stages: dict[str, Any]) -> dict[str, int]:
    """Items that each step worked on in a run (steps with nothing to do are left out)."""
    return {
        step: counts["pending"]
        for stage in stages.values()
        for step, counts in stage["steps"].items()
        if counts["pending"]
    }


def evaluation_rows(catalogue: Catalogue, table: str = "main") -> tuple[list[str], list[dict[str, Any]]]:
    """The evaluation table as (metric names, rows with method and one figure per metric)."""
    with catalogue.reading() as db:
        found = list(db.scalars(select(Evaluation).where(Evaluation.table == table)))
    metrics = sorted({row.metric for row in found})
    methods = sorted({row.method for row in found})
    by_key = {(row.method, row.metric): row for row in found}
    rows = [{"method": m, **{metric: by_key.get((m, metric)) for metric in metrics}} for m in methods]
    return metrics, rows


def stage_seconds(stages: dict[str, Any]) -> dict[str, float]:
    """Wall time of each stage of a run."""
    return {name: float(stage["seconds"]) for name, stage in stages.items()}


def reasons(stages: dict[str, Any]) -> Counter[str]:
    """Why items were not kept in this run, over all steps."""
    total: Counter[str] = Counter()
    for stage in stages.values():
        for counts in stage["steps"].values():
            total.update(counts["reasons"])
    return total


def lines(figures: dict[str, Any], stages: dict[str, Any]) -> list[tuple[str, str]]:
    """The summary as (label, text) pairs, shared by the terminal and the Prefect artifact."""
    documents = figures["documents"]
    why = ", ".join(f"{reason} {n}" for reason, n in figures["rejected_because"].items())
    result = [
        ("pages", _pages_line(figures)),
        ("documents kept", str(documents["kept"])),
        (
            "documents not kept",
            _joined({k: v for k, v in documents.items() if k != "kept" and v}, nothing="0"),
        ),
        ("rejected because", why or "–"),
        ("reference entries", f"{figures['references']} (of published lists, beside the documents)"),
        ("assertions", str(figures["assertions"])),
        ("graph", _graph_line(figures)),
        ("questions", _joined(figures["questions"])),
        ("chunks", _joined(figures["chunks"])),
        ("model calls", f"{figures['models']['calls']} (served from store {figures['models']['cached']})"),
        ("unresolved failures", str(figures["failures"])),
        ("quality gates", _gates_line(figures["gates"])),
        (
            "time per stage",
            ", ".join(f"{name} {s:.1f} s" for name, s in stage_seconds(stages).items()) or "–",
        ),
    ]
    last = figures["last_run"] or {}
    late = backlog.described(figures["behind"], running=last.get("state") == "running")
    gone = projections.described(figures["absent"])
    return [
        *result,
        *([("behind", late)] if late else []),
        *([("to be made again", gone)] if gone else []),
    ]


def _graph_line(figures: dict[str, Any]) -> str:
    counts = f"{figures['graph']['nodes']} nodes, {figures['graph']['relationships']} relationships"
    gone = any(entry["what"] == "graph" for entry in figures["absent"])
    return f"{counts} when it was last loaded; not loaded here" if gone else counts


def _pages_line(figures: dict[str, Any]) -> str:
    if not figures["pages"]:
        return "0"
    links = f"{figures['pages_for_links']} of them search pages or sitemaps, read for their links only"
    return f"{figures['pages']} ({_joined(figures['pages_by_state'])}), {links}"


def _joined(counts: dict[str, int], nothing: str = "–") -> str:
    return ", ".join(f"{name} {n}" for name, n in counts.items()) or nothing


def markdown(figures: dict[str, Any], stages: dict[str, Any]) -> str:
    """The summary as a Markdown table for Prefect's artifact page."""
    body = "\n".join(f"| {label} | {text} |" for label, text in lines(figures, stages))
    head = "Nothing had changed." if unchanged(stages) else ""
    return f"# Knowledge base\n\n{head}\n\n| what | figure |\n|---|---|\n{body}\n"


def _worked(work: dict[str, int]) -> bool:
    """True when any step other than the always repeated crawl had something to do."""
    return any(step != "acquire.crawl" for step in work)


def unchanged(stages: dict[str, Any]) -> bool:
    """True when a run found nothing to redo besides asking the sources again.

    A run of ``acquire`` alone cannot say so: what it fetched is compared by the next stage.
    """
    return any(stage != "acquire" for stage in stages) and not _worked(changed(stages))
