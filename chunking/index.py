"""The vector index: chunk vectors in Milvus, a projection of the catalogue.

One collection per embedder; the method is the partition key. Milvus Lite under
the data directory by default, a Milvus server by address: the same client. The
index is brought up to date by difference (chunk id and text hash), so only new
chunks are embedded and sent, and a dropped index is rebuilt.
"""

from __future__ import annotations

import json
import logging
import os
import time
import traceback
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from chunking.evaluation.settings import IndexText, VectorSettings
from chunking.records import ChunkRecord, ChunkSet
from chunking.sentences import split_sentences
from chunking.vectors import VIEW
from corpus.errors import SettingsError, TransientError
from corpus.ids import canonical_json, digest
from models.protocols import Embedder, Vectors

if TYPE_CHECKING:
    from models import Models

_BATCH = 2000  # rows of a request: about 8 MB of the largest embedded vectors; servers take 64 MB
_QUERIES = 1000  # questions of a request; Milvus takes 16,384
_NO_PROXY = "no_grpc_proxy"  # gRPC reads it in small letters only
_LOCAL = "chunks.db"
_MARKER = "index.json"
_LOCK_WAIT_S = 5.0
_TITLE_WEIGHT = 1.0  # of the title's vector beside the pooled chunk (benchmarks/retrieval.py)


class ChunkVectors:
    """Vectors of chunks and questions.

    ``sentence`` pools the cohesion embedder's sentence vectors, which the chunk
    stage has computed already, weighted by characters, with the title's vector
    added; ``chunk`` embeds each chunk with its title by the index embedder. The
    embedded encoders read a few whole chunks a second on two cores, so the
    pooled form is what a default run can afford.
    """

    def __init__(
        self, models: Models, settings: VectorSettings, form: IndexText = "completed", *, titles: bool = True
    ) -> None:
        chosen = models.settings.embeddings
        unit: Literal["sentence", "chunk"]
        if settings.unit == "auto":
            unit = "chunk" if chosen.index is not None or chosen.base_url is not None else "sentence"
        else:
            unit = settings.unit
        self.unit = unit
        self.form: IndexText = form
        self.titles = titles
        self.embedder: Embedder = models.embedder("index" if unit == "chunk" else "cohesion")
        self._known: dict[str, Vectors] = {}
        self._tables: dict[str, _Table] = {}

    @property
    def name(self) -> str:
        """What computed the vectors; stands beside every figure and names the collection."""
        return f"{self.embedder.name}/{self.unit}"

    def chunks(self, wanted: Sequence[ChunkRecord], chunks: ChunkSet) -> Vectors:
        """Unit vectors of some leaves of a set, shape (n, d); zero for a chunk without a readable character."""
        heads = [self._head(leaf, chunks.titles) for leaf in wanted]
        if self.unit == "chunk":
            texts = [
                f"{head}\n{x.index_text(self.form)}".strip() for x, head in zip(wanted, heads, strict=True)
            ]
            return self.embedder.passages(texts)
        return self._pooled(self._weighted_views(wanted, chunks), [head[:VIEW] for head in heads])

    def questions(self, questions: Sequence[str]) -> Vectors:
        """Unit vectors of questions, shape (n, d)."""
        return self.embedder.queries(list(questions))

    def text_hash(self, leaf: ChunkRecord, titles: Mapping[str, str]) -> str:
        """Hash of all text that a chunk's vector rests on."""
        return digest(self._head(leaf, titles), leaf.index_text(self.form))

    def _head(self, leaf: ChunkRecord, titles: Mapping[str, str]) -> str:
        return titles.get(leaf.document_id, "") if self.titles else ""

    def _weighted_views(self, wanted: Sequence[ChunkRecord], chunks: ChunkSet) -> list[_Views]:
        """Sentences of each chunk with their share in it.

        Sentences are those of the whole document, so that a chunk that cuts one
        needs no new vector; the leaves tile the document.
        """
        texts: dict[str, list[str]] = {leaf.document_id: [] for leaf in wanted}
        for leaf in chunks.leaves:
            if leaf.document_id in texts:
                texts[leaf.document_id].append(leaf.text)
        tables = {document: self._table("".join(parts)) for document, parts in texts.items()}
        found: list[_Views] = []
        for leaf in wanted:
            text = leaf.index_text(self.form)
            if text == leaf.text:
                found.append(_overlap(tables[leaf.document_id], leaf.start, leaf.end))
            else:
                found.append([(view, end - start) for start, end, view in _sentence_table(text)])
        return found

    def _table(self, text: str) -> _Table:
        """Sentences of a document: the methods cut the same texts, so each is split once."""
        if text not in self._tables:
            self._tables[text] = _sentence_table(text)
        return self._tables[text]

    def _pooled(self, pieces: Sequence[_Views], heads: Sequence[str]) -> Vectors:
        views = {*heads, *(view for found in pieces for view, _ in found)} - {""}
        new = sorted(views - self._known.keys())
        if new:
            self._known.update(zip(new, self.embedder.passages(new), strict=True))
        pooled = np.zeros((len(pieces), self.embedder.dimension))
        for at, (found, head) in enumerate(zip(pieces, heads, strict=True)):
            for view, weight in found:
                pooled[at] += weight * self._known[view].astype(np.float64)
            norm = float(np.linalg.norm(pooled[at]))
            if norm > 0:
                pooled[at] /= norm
            if head.strip():
                pooled[at] += _TITLE_WEIGHT * self._known[head]
        norms = np.linalg.norm(pooled, axis=1, keepdims=True)
        unit: Vectors = np.divide(pooled, norms, out=np.zeros_like(pooled), where=norms > 0).astype(
            np.float32
        )
        return unit


_Views = list[tuple[str, int]]
_Table = list[tuple[int, int, str]]


def _sentence_table(text: str) -> _Table:
    """Sentences in the form in which the chunk stage embeds them."""
    table = [(start, end, " ".join(text[start:end].split())[:VIEW]) for start, end in split_sentences(text)]
    return [row for row in table if row[2]]


def _overlap(table: _Table, start: int, end: int) -> _Views:
    first = bisect_right(table, start, key=lambda row: row[1])
    found: _Views = []
    for low, high, view in table[first:]:
        if low >= end:
            break
        found.append((view, min(high, end) - max(low, start)))
    return found


class VectorIndex:
    """An open index; use it as a context manager. One process at a time can hold Milvus Lite.

    Raises SettingsError where the server cannot be reached or refuses, and
    TransientError where another process holds the embedded index.
    """

    def __init__(self, settings: VectorSettings, data_dir: Path) -> None:
        self._settings = settings
        self._folder = data_dir / "vectors"
        self.place = settings.uri or str(self._folder / _LOCAL)
        self._client: Any = None

    def __enter__(self) -> VectorIndex:
        if self._settings.uri is None:
            self._folder.mkdir(parents=True, exist_ok=True)
            self._client = _open_local(self.place)
        else:
            self._client = _open_server(self._settings)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._client.close()
        self._client = None
        if self._settings.uri is None:
            from milvus_lite import server_manager_instance

            server_manager_instance.release_server(self.place)

    def version(self) -> str:
        """The server's own version text."""
        return str(self._client.get_server_version())

    def sync(self, chunks: ChunkSet, vectors: ChunkVectors) -> dict[str, int]:
        """Bring one method up to date: ``{"indexed", "removed", "unchanged"}``.

        Vectors of another embedder are dropped, since nothing can search them.
        """
        name = self._collection(vectors, create=True)
        leaves = {leaf.chunk_id: leaf for leaf in chunks.leaves}
        wanted = {key: vectors.text_hash(leaf, chunks.titles) for key, leaf in leaves.items()}
        present = self._present(name, chunks.method)
        gone = sorted(key for key, text_hash in present.items() if wanted.get(key) != text_hash)
        new = sorted(key for key, text_hash in wanted.items() if present.get(key) != text_hash)
        for start in range(0, len(gone), _BATCH):
            self._client.delete(name, ids=gone[start : start + _BATCH])
        for start in range(0, len(new), _BATCH):
            part = [leaves[key] for key in new[start : start + _BATCH]]
            rows = vectors.chunks(part, chunks)
            self._client.upsert(
                name, [_row(x, wanted[x.chunk_id], row) for x, row in zip(part, rows, strict=True)]
            )
        if self._settings.uri is None:
            _write_marker(self._folder, _marker(self._folder) | {chunks.method: vectors.name})
        return {"indexed": len(new), "removed": len(gone), "unchanged": len(wanted) - len(new)}

    def remove(self, methods: Sequence[str]) -> None:
        """Forget methods, whatever embedder their vectors are of."""
        prefix = f"{self._settings.collection}_"
        for name in self._client.list_collections():
            if name.startswith(prefix):
                self._client.load_collection(name)
                for method in methods:
                    self._client.delete(name, filter=f'method == "{method}"')
        if self._settings.uri is None:
            _write_marker(self._folder, {k: v for k, v in _marker(self._folder).items() if k not in methods})

    def holds(self, name: str) -> bool:
        """Whether there is a collection for vectors of that name."""
        return bool(self._client.has_collection(self._name(name)))

    def search(self, method: str, vectors: Vectors, top_k: int, name: str) -> list[list[str]]:
        """Chunk ids by cosine similarity for each query vector; ties by id. ``name``: of the ChunkVectors."""
        collection = self._name(name)
        if not self._client.has_collection(collection):
            raise TransientError(
                f"the vector index {self.place} has no vectors of {name}", reason="index_lost"
            )
        self._client.load_collection(collection)
        ranked: list[list[str]] = []
        for start in range(0, len(vectors), _QUERIES):
            found = self._client.search(
                collection,
                data=list(vectors[start : start + _QUERIES]),
                anns_field="vector",
                filter=f'method == "{method}"',
                limit=top_k,
                output_fields=["chunk_id"],  # unset would send the vectors back
            )
            for hits in found:
                pairs = sorted((-round(float(hit["distance"]), 6), str(hit["chunk_id"])) for hit in hits)
                ranked.append([key for _, key in pairs])
        return ranked

    def _name(self, vectors: str) -> str:
        return f"{self._settings.collection}_{digest(vectors)[:8]}"

    def _collection(self, vectors: ChunkVectors, *, create: bool) -> str:
        name = self._name(vectors.name)
        prefix = f"{self._settings.collection}_"
        for other in self._client.list_collections():
            if other != name and other.startswith(prefix) and len(other) == len(name):
                self._client.drop_collection(other)
        if self._client.has_collection(name) and self._dimension(name) != vectors.embedder.dimension:
            self._client.drop_collection(name)  # another model behind the same name: the index is made anew
        if self._client.has_collection(name):
            self._client.load_collection(name)
            return name
        if create:
            self._create(name, vectors.embedder.dimension)
            return name
        return ""

    def _dimension(self, name: str) -> int:
        """Length of the vectors that a collection takes."""
        fields = self._client.describe_collection(name)["fields"]
        return next(int(field["params"]["dim"]) for field in fields if field["name"] == "vector")

    def _create(self, name: str, dimension: int) -> None:
        from pymilvus import DataType

        schema = self._client.create_schema(auto_id=False, enable_dynamic_field=False)
        schema.add_field("chunk_id", DataType.VARCHAR, is_primary=True, max_length=64)
        schema.add_field("method", DataType.VARCHAR, max_length=24, is_partition_key=True)
        schema.add_field("document_id", DataType.VARCHAR, max_length=64)
        schema.add_field("text_hash", DataType.VARCHAR, max_length=64)
        schema.add_field("vector", DataType.FLOAT_VECTOR, dim=dimension)
        parameters = self._client.prepare_index_params()
        parameters.add_index(
            "vector", index_type="FLAT", metric_type="COSINE"
        )  # exact: results do not wander
        self._client.create_collection(
            name, schema=schema, index_params=parameters, consistency_level="Strong"
        )

    def _present(self, name: str, method: str) -> dict[str, str]:
        # Milvus Lite has no session timestamp, which the client would warn of for each iterator.
        logging.getLogger("pymilvus.client.iterator.query_iterator").setLevel(logging.ERROR)
        iterator = self._client.query_iterator(
            name, batch_size=2000, filter=f'method == "{method}"', output_fields=["chunk_id", "text_hash"]
        )
        found: dict[str, str] = {}
        try:
            while rows := iterator.next():
                found.update({str(row["chunk_id"]): str(row["text_hash"]) for row in rows})
        finally:
            iterator.close()
        return found


def _row(leaf: ChunkRecord, text_hash: str, vector: Vectors) -> dict[str, Any]:
    return {
        "chunk_id": leaf.chunk_id,
        "method": leaf.method,
        "document_id": leaf.document_id,
        "text_hash": text_hash,
        "vector": vector,
    }


def _open_local(place: str) -> Any:
    """Milvus Lite runs in this process behind a loopback port."""
    _no_proxy_on_loopback()
    logging.getLogger("grpc._server").addFilter(_keeps)  # adding it again changes nothing
    from pymilvus import MilvusClient
    from pymilvus.exceptions import MilvusException

    deadline = time.monotonic() + _LOCK_WAIT_S
    while True:
        try:
            return MilvusClient(place)
        except MilvusException as error:
            if not _locked(Path(place)):
                raise SettingsError(f"the embedded vector index {place} cannot be opened: {error}") from error
            if time.monotonic() > deadline:
                raise TransientError(
                    f"the embedded vector index {place} is in use by another process", reason="index_busy"
                ) from error
            time.sleep(0.5)


def _locked(place: Path) -> bool:
    """Whether another process holds Milvus Lite's lock file."""
    import fcntl

    try:
        with (place / "LOCK").open("rb") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    return False


def _open_server(settings: VectorSettings) -> Any:
    from pymilvus import MilvusClient
    from pymilvus.exceptions import MilvusException

    token = settings.token.get_secret_value() if settings.token else ""
    try:
        return MilvusClient(settings.uri, token=token, timeout=settings.timeout_s)
    except MilvusException as error:
        raise SettingsError(
            f"vector server {settings.uri} (HCHEM_VECTORS__URI) cannot be used: {error.message or error}; "
            "start it, or unset the setting for the embedded index"
        ) from error


def _keeps(record: logging.LogRecord) -> bool:
    """Drops gRPC's traceback of AllocTimestamp, which the embedded server does not have; keeps all others.

    The client asks for it after creating an index and copes without.
    """
    error = record.exc_info[1] if record.exc_info else None
    if not isinstance(error, NotImplementedError):
        return True
    return all(frame.name != "AllocTimestamp" for frame in traceback.extract_tb(error.__traceback__))


def _no_proxy_on_loopback() -> None:
    """gRPC obeys http_proxy even for 127.0.0.1, unless told otherwise."""
    known = os.environ.get(_NO_PROXY) or os.environ.get("no_proxy") or ""
    if "127.0.0.1" not in known.split(","):
        os.environ[_NO_PROXY] = ",".join(filter(None, [known, "127.0.0.1", "localhost"]))


def check_vectors(settings: VectorSettings, data_dir: Path) -> str:
    """One line on the index for ``hchem doctor``. Raises SettingsError or TransientError."""
    with VectorIndex(settings, data_dir) as index:
        kind = "Milvus server" if settings.uri else "Milvus Lite"
        return f"{kind} {index.version()} at {index.place}"


def lost_methods(
    settings: VectorSettings, data_dir: Path, name: str, methods: Sequence[str]
) -> frozenset[str]:
    """Methods whose vectors are gone: the embedded index by its files, a server by asking it.

    A server that cannot be reached counts as complete; the work itself will say so.
    """
    if settings.uri is None:
        folder = data_dir / "vectors"
        marker = _marker(folder) if (folder / _LOCAL / "databases").is_dir() else {}
        return frozenset(method for method in methods if marker.get(method) != name)
    try:
        with VectorIndex(settings, data_dir) as index:
            return frozenset() if index.holds(name) else frozenset(methods)
    except SettingsError:
        return frozenset()


def _marker(folder: Path) -> dict[str, str]:
    """What was brought into the embedded index: method to name of the vectors."""
    try:
        return dict(json.loads((folder / _MARKER).read_text(encoding="utf-8")))
    except (OSError, ValueError):
        return {}


def _write_marker(folder: Path, methods: Mapping[str, str]) -> None:
    temporary = folder / f"{_MARKER}.new"
    temporary.write_text(json.dumps(dict(methods), sort_keys=True), encoding="utf-8")
    temporary.replace(folder / _MARKER)


def index_basis(vectors: ChunkVectors, settings: VectorSettings) -> str:
    """What the index of a chunk set rests on beside the chunks."""
    return canonical_json(
        {
            "vectors": vectors.name,
            "form": vectors.form,
            "titles": vectors.titles,
            "uri": settings.uri,
            "collection": settings.collection,
        }
    )
