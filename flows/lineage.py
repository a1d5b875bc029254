"""Where an item came from and what came of it, beyond its text: runs, models, entities, versions, evaluation.

What the catalogue holds is the present state; what was before stands in the versions
of the data set (``kg.versions``), whose files are searched for an id.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from sqlalchemy import func, or_, select
from sqlalchemy.orm import Session

from chunking.evaluation.protocol import EVALUATION_SPLIT, evaluation_questions
from corpus.catalogue.tables import (
    Assertion,
    Document,
    Entity,
    EntityAlias,
    Evaluation,
    LedgerRow,
    ModelCall,
    Page,
    Question,
    Run,
)
from corpus.errors import SettingsError
from kg import versions

# steps by what their items are
PAGE_STEPS = ("curate.profile",)
DOCUMENT_STEPS = ("curate.score", "curate.refine")
FACT_STEPS = ("graph.extract", "graph.reference", "graph.sync")
CORPUS_STEPS = ("curate.deduplicate",)
GRAPH_STEPS = ("graph.resolve",)
QUESTION_STEPS = ("questions.generate",)
EVALUATION_STEPS = ("evaluate.score",)
_SKILL_OF = {
    "graph.extract": "extract_assertions",
    "curate.score": "score_document",
    "questions.generate": "reword_question",
}
_ASKED = frozenset({"main", "budget", "differences", "kinds", "languages", "levels", "retrieval"})
_FILES = {"document": "corpus", "fact": "triples", "question": "qa"}
_KEYS = {"document": "document_id", "fact": "id", "question": "id"}


# --- runs and models --------------------------------------------------------------


def made_by(db: Session, steps: Iterable[str], items: Iterable[str] | None = None) -> list[dict[str, Any]]:
    """The runs that made something: step, run, code version and when, of the ledger's rows on these items.

    ``items`` None: steps that work on the whole at once. In the order of the steps.
    """
    wanted = list(steps)
    query = select(LedgerRow).where(LedgerRow.step.in_(wanted))
    if items is not None:
        query = query.where(LedgerRow.item_id.in_(list(items)))
    rows = sorted(db.scalars(query), key=lambda row: (wanted.index(row.step), row.updated_at, row.item_id))
    runs = {
        run.run_id: run for run in db.scalars(select(Run).where(Run.run_id.in_({row.run_id for row in rows})))
    }
    return [_made(row, runs.get(row.run_id)) for row in rows]


def _made(row: LedgerRow, run: Run | None) -> dict[str, Any]:
    return {
        "step": row.step,
        "state": f"{row.state} {row.reason}".strip(),
        "run": row.run_id,
        "code": run.code_version if run is not None else "",
        "at": row.updated_at.isoformat(timespec="seconds"),
    }


def skills(db: Session, skill: str, model: str, runs: Iterable[str] = ()) -> list[dict[str, str]]:
    """Versions of a skill that asked a model: in these runs, or in any where those served stored answers."""
    query = (
        select(ModelCall.skill, ModelCall.skill_version, ModelCall.model)
        .where(ModelCall.skill == skill, ModelCall.model == model)
        .distinct()
        .order_by(ModelCall.skill, ModelCall.skill_version)
    )
    of_runs = db.execute(query.where(ModelCall.run_id.in_(list(runs)))).all()
    return [
        {"skill": name, "version": version, "model": asked}
        for name, version, asked in of_runs or db.execute(query).all()
    ]


def makers(db: Session, found: Page | Document | Assertion | Question, document: Document) -> dict[str, Any]:
    """Who made an item: runs with the version of the code, extractor or model, and the skill's versions."""
    key = document.document_id
    runs = made_by(db, PAGE_STEPS, [document.page_id]) + made_by(db, DOCUMENT_STEPS, [key])
    asked: list[dict[str, str]] = []
    said: dict[str, Any] = {}
    if isinstance(found, Assertion):
        runs = made_by(db, FACT_STEPS, [key]) + made_by(db, GRAPH_STEPS)
        said["extractor"] = found.extractor
        asked = skills(db, _SKILL_OF["graph.extract"], found.extractor, [row["run"] for row in runs])
    elif isinstance(found, Question):
        runs = made_by(db, QUESTION_STEPS)
        said["wording"] = found.wording
        asked = skills(db, _SKILL_OF["questions.generate"], found.wording, [row["run"] for row in runs])
    elif document.score_source:
        said["scored_by"] = document.score_source
        asked = skills(db, _SKILL_OF["curate.score"], document.score_source, [row["run"] for row in runs])
    return {**said, "skills": asked, "runs": runs}


# --- entities ---------------------------------------------------------------------


def entity_names(db: Session, keys: Iterable[str]) -> dict[str, tuple[str, str]]:
    """Key → (Chinese, English) name of the graph's substances and mixtures."""
    found = {}
    wanted = sorted(set(keys) - {""})
    for at in range(0, len(wanted), 500):
        for row in db.scalars(select(Entity).where(Entity.key.in_(wanted[at : at + 500]))):
            found[row.key] = (str(row.names.get("zh") or ""), str(row.names.get("en") or ""))
    return found


def entities(db: Session, facts: Sequence[Assertion]) -> list[dict[str, Any]]:
    """The nodes that facts speak of, each with its names and the facts' relationships that touch it."""
    touched: dict[str, dict[str, Any]] = {}
    names = entity_names(db, [key for fact in facts for key in (fact.subject_key, fact.object_key)])
    for fact in facts:
        for key, label in ((fact.subject_key, ""), (fact.object_key, fact.object_label)):
            if not key:
                continue
            entry = touched.setdefault(key, {"key": key, "label": label, "names": [], "relationships": 0})
            entry["label"] = entry["label"] or label
            entry["names"] = [name for name in names.get(key, ()) if name]
            entry["relationships"] += 1
    labels = {
        row.key: row.label for row in db.scalars(select(Entity).where(Entity.key.in_(sorted(names)))) if names
    }
    for key, entry in touched.items():
        entry["label"] = labels.get(key, entry["label"]) or "Substance"
    return sorted(touched.values(), key=lambda entry: (-entry["relationships"], entry["key"]))


def entity(db: Session, row: Entity) -> dict[str, Any]:
    """A node with its names, and its relationships as kept facts make them, counted by relation and direction."""
    relationships = []
    for direction, column in (("out", Assertion.subject_key), ("in", Assertion.object_key)):
        query = (
            select(Assertion.relation, func.count(), func.count(Assertion.document_id.distinct()))
            .where(column == row.key, Assertion.state == "kept")
            .group_by(Assertion.relation)
            .order_by(func.count().desc(), Assertion.relation)
        )
        relationships += [
            {"relation": relation, "direction": direction, "facts": int(n), "documents": int(documents)}
            for relation, n, documents in db.execute(query)
        ]
    aliases = select(EntityAlias.text).where(EntityAlias.key == row.key, EntityAlias.ambiguous.is_(False))
    return {
        "entity": row.key,
        "label": row.label,
        "names": [str(name) for name in row.names.values() if name],
        "aliases": list(db.scalars(aliases.distinct().order_by(EntityAlias.text))),
        "relationships": relationships,
    }


# --- evaluation -------------------------------------------------------------------


def evaluations(db: Session, question: Question, limit: int, seed: int) -> dict[str, Any]:
    """Whether the evaluation asked a question, and the figures that rest on it.

    ``limit``, ``seed``: of the settings in force. Where questions were made after the figures,
    nobody can say which were asked, and no figure is named.
    """
    score, made = (
        db.get(LedgerRow, ("evaluate.score", "all")),
        db.get(LedgerRow, ("questions.generate", "questions")),
    )
    if score is None:
        return {"asked": False, "why": "no evaluation yet", "figures": []}
    if made is not None and made.updated_at > score.updated_at:
        return {"asked": None, "why": "the figures are older than the questions", "figures": []}
    if not question.curated and question.split != EVALUATION_SPLIT:
        return {"asked": False, "why": f"it is on the {question.split} side", "figures": []}
    if question.question_id not in {row.question_id for row in evaluation_questions(db, limit, seed)}:
        return {"asked": False, "why": "not in the sample", "figures": []}
    rows = db.scalars(
        select(Evaluation)
        .where(Evaluation.table.in_(_ASKED))
        .order_by(Evaluation.table, Evaluation.method, Evaluation.metric, Evaluation.evaluation_id)
    )
    figures = [
        {"id": r.evaluation_id, "table": r.table, "method": r.method, "metric": r.metric, "value": r.value,
         "low": r.low, "high": r.high, "n": r.n}
        for r in rows
        if r.setting.get("kind", question.kind) == question.kind
        and r.setting.get("language", question.language) in (question.language, "all")
    ]  # fmt: skip
    return {"asked": True, "why": "", "figures": figures}


def questions_of(db: Session, documents: Iterable[str]) -> Iterator[Question]:
    """Kept questions with evidence in any of these documents."""
    wanted = set(documents)
    query = select(Question).where(Question.state == "kept").order_by(Question.question_id)
    for row in db.scalars(query.execution_options(yield_per=500)):
        if any(reference["document_id"] in wanted for reference in row.references):
            yield row


# --- versions of the data set -----------------------------------------------------


def held_by(data_dir: Path, kind: str, key: str) -> list[dict[str, Any]]:
    """The versions of the data set that hold an item of ``kind`` (document, fact, question), the oldest first.

    Of a document with the version of its text, so that superseded ones can be seen.
    """
    name, field = _FILES[kind], _KEYS[kind]
    found = []
    for version in versions.versions(versions.folder_of(data_dir)):
        path = versions.folder_of(data_dir) / version.id / f"{name}.jsonl"
        row = _line_of(path, field, key)
        if row is not None:
            found.append(
                {
                    "version": version.id,
                    "taken": version.taken_at,
                    "run": version.run_id,
                    "tags": list(version.tags),
                    "text_version": row.get("version_id", ""),
                }
            )
    return found


def _line_of(path: Path, field: str, key: str) -> dict[str, Any] | None:
    """The row of an id in a file of JSON lines; only lines that hold it are read as JSON."""
    needle = json.dumps(key, ensure_ascii=False).encode()
    try:
        with path.open("rb") as lines:
            for line in lines:
                if needle in line:
                    row = json.loads(line)
                    if row.get(field) == key:
                        return dict(row)
    except (OSError, ValueError) as error:
        raise SettingsError(
            f"version {path.parent.name} is damaged: {path.name} cannot be read ({error})"
        ) from error
    return None


def texts_held(data_dir: Path) -> dict[str, dict[str, list[str]]]:
    """Document → version of its text → the versions of the data set that hold it, the oldest first."""
    found: dict[str, dict[str, list[str]]] = defaultdict(dict)
    folder = versions.folder_of(data_dir)
    for version in versions.versions(folder):
        try:
            for row in versions.rows(folder / version.id, "corpus"):
                found[row["document_id"]].setdefault(row["version_id"], []).append(version.id)
        except (SettingsError, KeyError):
            continue  # a damaged version holds nothing that could be shown; `hchem dataset` says so
    return dict(found)


def gone(data_dir: Path, key: str) -> list[str]:
    """Versions of the data set that hold an item that the catalogue no longer has."""
    found: list[str] = []
    for kind in _FILES:
        found += [entry["version"] for entry in held_by(data_dir, kind, key) if entry["version"] not in found]
    return found


def duplicates(db: Session, document: Document) -> list[str]:
    """Documents that are the same as one, or that it is a duplicate of."""
    same = or_(
        Document.duplicate_of == document.document_id, Document.document_id == (document.duplicate_of or "")
    )
    return list(db.scalars(select(Document.document_id).where(same).order_by(Document.document_id)))
