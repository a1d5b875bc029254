"""The catalogue as the model layer's storage (``models.protocols``)."""

from __future__ import annotations

import json
import threading
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import fields
from datetime import timedelta
from functools import cache
from typing import Any, cast

import numpy as np
from sqlalchemy import Connection, PoolProxiedConnection, Table, bindparam, delete, select, update
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.exc import OperationalError

from corpus.catalogue.database import Catalogue, write_error
from corpus.catalogue.leases import holder_name, is_dead
from corpus.catalogue.tables import Embedding, ModelBatch, ModelBatchLine, ModelCall, now
from corpus.errors import TransientError
from models.protocols import BatchJob, BatchLine, StoredAnswer, Vectors

_SLICE = 500  # identifiers per query: databases limit the number of parameters
_SENDING = timedelta(hours=1)
_NOTES = 64  # verdicts, or answers served, that are written together


class CatalogueAnswers:
    """Raw model answers in the table ``model_calls``. Safe to share between threads.

    An answer is committed by ``put`` itself. What is noted of it afterwards (its
    verdict, how often it was served) is kept in memory, where ``get`` sees it, and
    written with the next answer, when ``_NOTES`` of them wait, or by ``flush``: a
    killed process loses such notes, never an answer, and the next one judges a
    stored answer again.
    """

    def __init__(self, catalogue: Catalogue, run_id: str = "") -> None:
        self._catalogue = catalogue
        self._run_id = run_id
        self._lock = threading.Lock()
        self._verdicts: dict[str, tuple[str, str]] = {}
        self._served: Counter[str] = Counter()
        self._served_since = 0
        self._reading, self._writing = threading.Lock(), threading.Lock()
        self._reader: PoolProxiedConnection | None = None
        self._query = _ANSWER.compile(dialect=catalogue.engine.dialect)
        self._writer: Connection | None = None

    def get(self, key: str) -> StoredAnswer | None:
        """The stored answer, refused ones included."""
        answer = self._read(key)
        if answer is not None:
            with self._lock:
                answer.state, answer.reason = self._verdicts.get(key, (answer.state, answer.reason))
        return answer

    def put(self, answer: StoredAnswer) -> None:
        """Store an answer before it is parsed, with what is still to be written of others."""
        with self._lock:
            self._verdicts.pop(answer.key, None)  # of the answer that is replaced
        self._write(answer)

    def mark(self, key: str, state: str, reason: str = "") -> None:
        """Record that the answer was accepted or refused."""
        with self._lock:
            self._verdicts[key] = (state, reason)
            due = len(self._verdicts) >= _NOTES
        if due:
            self._write()

    def served(self, key: str) -> None:
        """Count an answer that was given again without a call."""
        with self._lock:
            self._served[key] += 1
            self._served_since += 1
            due = self._served_since >= _NOTES
        if due:
            self._write()

    def flush(self) -> None:
        """Write what is kept in memory and give the connections back."""
        self._write()
        with self._reading:
            if self._reader is not None:
                self._reader.close()
                self._reader = None
        with self._writing:
            self._close_writer()

    def _read(self, key: str) -> StoredAnswer | None:
        """One row by the driver itself, on a connection that stays open: SQLAlchemy takes ten times as long."""
        engine, order = self._catalogue.engine, self._query.positiontup
        parameters: Any = {"wanted": key} if order is None else (key,)
        with self._reading:
            for last in (False, True):
                if self._reader is None:
                    self._reader = engine.raw_connection()
                try:
                    cursor = self._reader.cursor()
                    cursor.execute(self._query.string, parameters)
                    row = cursor.fetchone()
                    cursor.close()
                    self._reader.rollback()  # the next query must see what was written since
                    break
                except engine.dialect.loaded_dbapi.Error as error:
                    self._reader.invalidate()
                    self._reader = None
                    if last:  # a connection that had died is made anew once
                        raise TransientError(f"catalogue: {error}", reason="database") from error
        return None if row is None else _answer_of(row)

    def _close_writer(self) -> None:
        if self._writer is not None:
            self._writer.close()
            self._writer = None

    @contextmanager
    def _transaction(self) -> Iterator[Connection]:
        """``Catalogue.writing`` without a session, which costs as much as the statements, on a connection of its own."""
        with self._writing:
            if self._writer is None:
                self._writer = self._catalogue.engine.connect().execution_options(hchem_immediate=True)
            try:
                yield self._writer
                self._writer.commit()
            except BaseException as error:
                self._close_writer()  # rolls back
                if not isinstance(error, OperationalError):
                    raise
                raise write_error(error) from error

    def _write(self, answer: StoredAnswer | None = None) -> None:
        """One transaction for an answer and the notes; notes leave the memory once it is committed."""
        with self._lock:
            verdicts, served = dict(self._verdicts), self._served
            self._served, self._served_since = Counter(), 0
        if answer is None and not verdicts and not served:
            return
        try:
            with self._transaction() as connection:
                if answer is not None:
                    connection.execute(_upsert(connection.dialect.name), self._row(answer))
                if verdicts:
                    rows = [
                        {"wanted": key, "new_state": state, "new_reason": reason}
                        for key, (state, reason) in sorted(verdicts.items())
                    ]
                    connection.execute(_VERDICT, rows)
                if served:
                    connection.execute(
                        _SERVED, [{"wanted": k, "times": n} for k, n in sorted(served.items())]
                    )
        except BaseException:  # whatever ended the write: what was served is counted by the next one
            with self._lock:
                self._served.update(served)
            raise
        with self._lock:
            for key, verdict in verdicts.items():
                if self._verdicts.get(key) is verdict:
                    del self._verdicts[key]

    def _row(self, answer: StoredAnswer) -> dict[str, Any]:
        return {**vars(answer), "run_id": self._run_id, "served": 0, "at": now()}


_CALLS = cast(Table, ModelCall.__table__)
_ANSWER = select(*(_CALLS.c[f.name] for f in fields(StoredAnswer))).where(_CALLS.c.key == bindparam("wanted"))
_VERDICT = (
    update(_CALLS)
    .where(_CALLS.c.key == bindparam("wanted"))
    .values(state=bindparam("new_state"), reason=bindparam("new_reason"))
)
_SERVED = (
    update(_CALLS)
    .where(_CALLS.c.key == bindparam("wanted"))
    .values(served=_CALLS.c.served + bindparam("times"))
)


def _answer_of(row: Sequence[Any]) -> StoredAnswer:
    answer = StoredAnswer(*row)
    if isinstance(answer.parameters, str):  # SQLite has no type for JSON
        answer.parameters = json.loads(answer.parameters)
    return answer


def _insert(dialect: str) -> Any:
    """The database's own ``insert``, which knows what to do about a row that is there already."""
    return postgresql.insert if dialect == "postgresql" else sqlite.insert


@cache
def _upsert(dialect: str) -> Any:
    """Insert an answer; a refused one of the same key is replaced, what it was served stays counted."""
    insert = _insert(dialect)(_CALLS)
    kept = ("key", "served")
    return insert.on_conflict_do_update(
        index_elements=["key"], set_={c.name: insert.excluded[c.name] for c in _CALLS.c if c.name not in kept}
    )


class CatalogueBatches:
    """Jobs of the batch API in ``model_batches``, their unsettled questions in ``model_batch_lines``."""

    def __init__(self, catalogue: Catalogue, run_id: str = "") -> None:
        self._catalogue = catalogue
        self._run_id = run_id
        self._holder = holder_name()

    def claim(self, job: BatchJob, lines: Sequence[BatchLine]) -> set[str]:
        """Record a job with the lines that no unfinished job holds; returns their keys."""
        rows = [{**vars(line), "job_id": job.job_id} for line in sorted(lines, key=lambda line: line.key)]
        if not rows:
            return set()
        with self._catalogue.writing() as session:
            insert = _insert(session.get_bind().dialect.name)
            wanted = insert(ModelBatchLine).on_conflict_do_nothing().returning(ModelBatchLine.key)
            claimed = set(session.scalars(wanted, rows))
            if claimed:
                row = vars(job) | {"total": len(claimed), "run_id": self._run_id, "holder": self._holder}
                session.add(ModelBatch(**row))
        job.total = len(claimed)
        return claimed

    def save(self, job: BatchJob) -> None:
        """Record a job's present state; a person's wish to cancel it is kept."""
        with self._catalogue.writing() as session:
            row = session.get_one(ModelBatch, job.job_id, with_for_update=True)
            if row.state == "cancelling" and job.state == "open":
                job.state = "cancelling"
            for name, value in vars(job).items():
                setattr(row, name, value)

    def job(self, job_id: str) -> BatchJob | None:
        """A job by its id."""
        with self._catalogue.reading() as session:
            row = session.get(ModelBatch, job_id)
            return None if row is None else _job(row)

    def is_sending(self, job_id: str) -> bool:
        """Whether another process may still be sending a recorded job.

        One of another host cannot be looked at: it is believed to live for an hour,
        which the upload of the largest file does not take.
        """
        with self._catalogue.reading() as session:
            row = session.get(ModelBatch, job_id)
        if row is None or row.holder == self._holder or is_dead(row.holder):
            return False
        return now() - row.created_at < _SENDING

    def jobs(self, *, ended: bool = False) -> list[BatchJob]:
        """Unfinished jobs (with ``ended`` all jobs), oldest first."""
        query = select(ModelBatch).order_by(ModelBatch.created_at, ModelBatch.job_id)
        if not ended:
            query = query.where(ModelBatch.state.in_(("submitting", "open", "cancelling")))
        with self._catalogue.reading() as session:
            return [_job(row) for row in session.scalars(query)]

    def lines(self, job_id: str) -> list[BatchLine]:
        """The lines of a job that are not settled, by position."""
        query = (
            select(ModelBatchLine)
            .where(ModelBatchLine.job_id == job_id)
            .order_by(ModelBatchLine.position, ModelBatchLine.key)
        )
        with self._catalogue.reading() as session:
            return [
                BatchLine(**{f.name: getattr(row, f.name) for f in fields(BatchLine)})
                for row in session.scalars(query)
            ]

    def holders(self, keys: Sequence[str]) -> dict[str, str]:
        """Which unfinished job holds a key, for the keys that are held."""
        found: dict[str, str] = {}
        with self._catalogue.reading() as session:
            for start in range(0, len(keys), _SLICE):
                query = select(ModelBatchLine.key, ModelBatchLine.job_id).where(
                    ModelBatchLine.key.in_(list(keys[start : start + _SLICE]))
                )
                found |= {row.key: row.job_id for row in session.execute(query)}
        return found

    def settle(self, job_id: str, keys: Sequence[str]) -> None:
        """Forget lines whose answers are stored or will not come."""
        with self._catalogue.writing() as session:
            for start in range(0, len(keys), _SLICE):
                session.execute(
                    delete(ModelBatchLine).where(
                        ModelBatchLine.job_id == job_id,
                        ModelBatchLine.key.in_(list(keys[start : start + _SLICE])),
                    )
                )


def _job(row: ModelBatch) -> BatchJob:
    return BatchJob(**{f.name: getattr(row, f.name) for f in fields(BatchJob)})


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
            insert = _insert(session.get_bind().dialect.name)
            session.execute(insert(Embedding).on_conflict_do_nothing(), rows)
