"""The catalogue as the model layer's storage (``models.protocols``)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields

import numpy as np
from sqlalchemy import select, update

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
                query = select(Embedding).where(
                    Embedding.model == model, Embedding.text_hash.in_(list(hashes[start : start + _SLICE]))
                )
                for row in session.scalars(query):
                    found[row.text_hash] = np.frombuffer(row.vector, dtype="<f4")
        return found

    def put(self, model: str, vectors: dict[str, Vectors]) -> None:
        """Store vectors that are not yet known."""
        if not vectors:
            return
        known = self.get(model, list(vectors))
        with self._catalogue.writing() as session:
            for key in sorted(set(vectors) - set(known)):
                data = np.asarray(vectors[key], dtype="<f4").tobytes()
                session.merge(Embedding(model=model, text_hash=key, vector=data))
