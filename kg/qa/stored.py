"""Verification of stored questions: proofs run again, references looked up again."""

from __future__ import annotations

from typing import Any

from sqlalchemy import select

from corpus.catalogue import Catalogue
from corpus.catalogue.tables import Document, Question
from kg.store import GraphStore


def verify_stored(catalogue: Catalogue, store: GraphStore) -> tuple[int, list[str]]:
    """Number of kept questions checked, and what is wrong with those that fail."""
    problems: list[str] = []
    checked = 0
    with catalogue.reading() as session:
        texts = {
            row.document_id: (row.version_id, row.text)
            for row in session.execute(select(Document.document_id, Document.version_id, Document.text))
        }
        for row in session.scalars(
            select(Question).where(Question.state == "kept").order_by(Question.question_id)
        ):
            checked += 1
            stated = _sorted(item["key"] for item in row.answer_set)
            proved = stored_answers(store, row.proof)
            if proved != stated:
                problems.append(
                    f"{row.question_id}: the proof returns {list(proved)}, stated is {list(stated)}"
                )
            problems += [
                f"{row.question_id}: reference {r['start']}:{r['end']} is not in document {r['document_id']}"
                for r in row.references
                if not _found(texts.get(r["document_id"]), r)
            ]
    return checked, problems


def stored_answers(store: GraphStore, proof: dict[str, Any]) -> tuple[Any, ...]:
    """What a stored proof returns now, sorted."""
    return _sorted(row["answer"] for row in store.read(proof["cypher"], **proof["parameters"]))


def _sorted(answers: Any) -> tuple[Any, ...]:
    return tuple(sorted(answers, key=lambda answer: (str(type(answer)), answer)))


def _found(document: tuple[str, str] | None, reference: dict[str, Any]) -> bool:
    if document is None or document[0] != reference["version_id"]:
        return False
    return document[1][reference["start"] : reference["end"]] == str(reference["quote"])
