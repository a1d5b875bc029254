"""Settings of segmentation (section ``chunks``)."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator

Method = Literal[
    "fixed",
    "sentence",
    "recursive",
    "semantic",
    "lumberchunker",
    "meta-chunker",
    "direct-llm",
    "qchunker",
    "qchunker-slm",
    "hichunk",
]


class ChunkSettings(BaseModel):
    """Which methods cut the documents, and how. Sizes and windows are in the token counter in force."""

    model_config = ConfigDict(extra="forbid", allow_inf_nan=False)

    methods: list[Method] = Field(
        default=["fixed", "sentence", "semantic", "qchunker", "hichunk"],
        description="Methods that cut every kept document",
    )
    size: int = Field(
        default=200,
        ge=1,
        description="Largest chunk (FC-n, HC-n, cap of the others); a sentence longer than it stands alone, but for `fixed`",
    )
    kinds: list[str] = Field(
        default=["page", "pdf", "text", "xml"], description="Kinds of documents that are cut"
    )
    semantic_percentile: float = Field(
        default=74.0,
        ge=0,
        le=100,
        description="Breakpoint percentile of the semantic splitter (paper presets: 68, 74)",
    )
    semantic_buffer: int = Field(
        default=1, ge=0, le=10, description="Neighbour sentences in its window, each side"
    )
    chunkscore_lambda: float = Field(default=0.3, ge=0, le=1, description="λ of ChunkScore")
    chunkscore_alpha: float = Field(default=1e-3, gt=0, description="α of semantic dispersion")
    chunkscore_variant: Literal["ppl_ratio", "loss_ratio"] = Field(
        default="ppl_ratio", description="LI as ratio of perplexities (the paper's) or of mean losses"
    )
    chunkscore_reach: int | None = Field(
        default=200,
        ge=1,
        description="Characters of a chunk, and of the one before it, that LI reads in the stage; unset: all",
    )
    score: bool = Field(default=True, description="Compute ChunkScore of every partition")
    selection_samples: int = Field(
        default=64, ge=2, description="Random partitions that a QChunker candidate is compared with"
    )
    seed: int = Field(default=0, ge=0, description="Seed of the samplers")
    qchunker_window: int = Field(
        default=12_000, ge=200, description="Largest document stretch shown to a model"
    )
    meta_window: int = Field(
        default=4_000, ge=200, description="Largest document stretch shown to the meta-chunker (MoC)"
    )
    direct_window: int = Field(
        default=2_000,
        ge=100,
        description="Largest document stretch that a model is asked to copy chunk by chunk (direct-llm)",
    )
    lumber_window: int = Field(
        default=550, ge=20, description="LumberChunker's window: paragraphs are shown until it is passed"
    )
    completion: bool = Field(
        default=True, description="Review and complete chunks (off: the paper's w/o M_Ref)"
    )
    hichunk_window: int = Field(default=16_384, ge=200, description="Inference window of the levels model")
    hichunk_view: int = Field(
        default=100, ge=10, description="Characters of a sentence that the levels model sees"
    )
    hichunk_max_level: int = Field(default=10, ge=1, le=10, description="Deepest level of the tree")

    @field_validator("methods")
    @classmethod
    def _once(cls, value: list[Method]) -> list[Method]:
        if len(set(value)) < len(value):
            raise ValueError("a method is named twice")
        return value
