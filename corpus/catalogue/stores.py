"""The catalogue as the model layer's storage (``models.protocols``)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields

import numpy as np
from sqlalchemy import select, update
from sqlalchemy.dialects import postgresql, sqlite

from corpus.catalogue.database import Catalogue
from corpus.catalogue.tables import Embedding, ModelCall
from models.protocols import StoredAnswer, Vectors

_SLICE = 500  # identifiers per query: databases limit the number of parameters


class CatalogueAnswers:
    """Raw model answers in the table ``model_calls``."""

    def __init__(self, catalogue: Catalogue, run_id: str = "") -> None:
        self._catalogue = catalogue
        self._run_id = run_id

    def get(self, key: str) -> StoredAnswer | None:
        """The stored answer, refused ones included."""
        with self._catalogue.reading() as session:
            row = session.get(ModelCall, key)
            if row is None:
                return None
            return StoredAnswer(**{f.name: getattr(row, f.name) for f in fields(StoredAnswer)})

    def put(self, answer: StoredAnswer) -> None:
        """Store an answer before it is parsed."""
        values = {f.name: getattr(answer, f.name) for f in fields(StoredAnswer)}
        with self._catalogue.writing() as session:
            session.merge(ModelCall(**values, run_id=self._run_id))

    def mark(self, key: str, state: str, reason: str = "") -> None:
        """Record that the answer was accepted or refused."""
        with self._catalogue.writing() as session:
            session.execute(update(ModelCall).where(ModelCall.key == key).values(state=state, reason=reason))

    def served(self, key: str) -> None:
        """Count an answer that was given again without a call."""
        with self._catalogue.writing() as session:
            session.execute(update(ModelCall).where(ModelCall.key == key).values(served=ModelCall.served + 1))


class CatalogueVectors:
    """Embeddings in the table ``embeddings`` as little-endian float32."""

    def __init__(self, catalogue: Catalogue) -> None:
        self._catalogue = catalogue

    def get(self, model: str, hashes: Sequence[str]) -> dict[str, Vectors]:
        """Known vectors by hash."""
        found: dict[str, Vectors] = {}
        with self._catalogue.reading() as session:
            for start in range(0, len(hashes), _SLICE):
                query = select(Embedding.text_hash, Embedding.vector).where(
                    Embedding.model == model, Embedding.text_hash.in_(list(hashes[start : start + _SLICE]))
                )
                for text_hash, vector in session.execute(query):
                    found[text_hash] = np.frombuffer(vector, dtype="<f4")
        return found

    def put(self, model: str, vectors: dict[str, Vectors]) -> None:
        """Store vectors that are not yet known."""
        if not vectors:
            return
        rows = [
            {"model": model, "text_hash": key, "vector": np.asarray(vectors[key], dtype="<f4").tobytes()}
            for key in sorted(
                vectors
            )  # in one order, so that two writers do not wait for each other crosswise
        ]
        with self._catalogue.writing() as session:
            insert = postgresql.insert if session.get_bind().dialect.name == "postgresql" else sqlite.insert
            session.execute(insert(Embedding).on_conflict_do_nothing(), rows)
