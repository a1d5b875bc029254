"""Settings of the vector index and of the evaluation (sections ``vectors`` and ``evaluation``)."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, SecretStr, field_validator

IndexText = Literal["chunk", "completed", "question+chunk"]
ContextText = Literal["chunk", "completed"]
Retrieval = Literal["lexical", "dense", "hybrid"]


class VectorSettings(BaseModel):
    """Where the vector index lives. It is a projection and can be dropped at any time."""

    model_config = ConfigDict(extra="forbid", allow_inf_nan=False)

    uri: str | None = Field(
        default=None,
        description="Milvus server (http://host:19530); unset: Milvus Lite under the data directory",
    )
    token: SecretStr | None = Field(default=None, description="Token (user:password) of a Milvus server")
    collection: str = Field(
        default="hchem_chunks",
        pattern=r"^[A-Za-z_][A-Za-z0-9_]{0,254}$",
        description="Beginning of the collection's name; give each catalogue its own on a shared server",
    )
    unit: Literal["auto", "sentence", "chunk"] = Field(
        default="auto",
        description="Vectors pooled from the sentences' vectors (cohesion embedder, nearly free), or each chunk "
        "embedded (index embedder); auto: chunk where embeddings.index or embeddings.base_url is set",
    )
    timeout_s: float = Field(default=30.0, gt=0, description="Seconds until a call to the server is given up")

    @field_validator("uri")
    @classmethod
    def _address(cls, value: str | None) -> str | None:
        if value is not None and not value.startswith(("http://", "https://", "tcp://", "unix:")):
            raise ValueError(
                f"{value!r} is no server address: give http://host:port, or leave it unset for the embedded index"
            )
        return value


class EvaluationSettings(BaseModel):
    """How chunk methods are compared: the same questions, retrieval and token budget for all."""

    model_config = ConfigDict(extra="forbid", allow_inf_nan=False)

    max_questions: int = Field(
        default=200, ge=1, description="Questions evaluated; of more, a seeded subset in hash order is taken"
    )
    budget: int = Field(default=1424, ge=16, description="Tokens of context per question (main tables)")
    budgets: tuple[int, ...] = Field(
        default=(356, 712, 1424, 2136, 2848), description="Token budgets of the budget curve"
    )
    top_k: int = Field(default=64, ge=1, le=1024, description="Ranked chunks that may fill the budget")
    retrieval: Retrieval = Field(
        default="hybrid",
        description="lexical (BM25), dense, or hybrid (both, reciprocal rank fusion). Hybrid finds more evidence at "
        "equal budget (docs/measurements.md)",
    )
    dense_weight: float = Field(
        default=0.25,
        ge=0,
        le=10,
        description="Weight of the dense ranking in the fusion; the lexical one has 1",
    )
    index_text: IndexText = Field(
        default="completed",
        description="What is indexed: the chunk, its completed text, outline question + chunk",
    )
    index_title: bool = Field(
        default=True, description="The document's title counts as part of each of its chunks"
    )
    context_text: ContextText = Field(
        default="chunk", description="What is given to the answerer: the chunk or its completed text"
    )
    completion_sample: int = Field(
        default=200,
        ge=0,
        description="Completed chunks whose perplexity is compared with what they were (0: none)",
    )
    strict_merge: bool = Field(
        default=False,
        description="Auto-Merge: the whole parent must fit what is left, as printed in the paper",
    )
    bootstrap: int = Field(default=1000, ge=100, description="Resamples of the paired bootstrap")
    confidence: float = Field(default=0.95, gt=0.5, lt=1, description="Level of the bootstrap intervals")
    seed: int = Field(default=20251, description="Seed of the subset and the bootstrap")

    @field_validator("budgets")
    @classmethod
    def _increasing(cls, value: tuple[int, ...]) -> tuple[int, ...]:
        if not value or min(value) < 16:
            raise ValueError("budgets are token counts of at least 16")
        return tuple(sorted(set(value)))
