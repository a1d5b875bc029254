"""Typed parameters of the flows: the command line and Prefect's form share them."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

StageName = Literal["acquire", "curate", "graph", "questions", "chunks", "evaluate"]
STAGES: tuple[StageName, ...] = ("acquire", "curate", "graph", "questions", "chunks", "evaluate")


class StageParameters(BaseModel):
    """What a run of one stage may be restricted to."""

    model_config = ConfigDict(extra="forbid")

    sources: list[str] = Field(default_factory=list, description="Only these sources (all when empty)")
    chemicals: list[str] = Field(default_factory=list, description="Only these names or CAS numbers")
    only_failed: bool = Field(
        default=False, description="Only what failed before, terminal failures included"
    )
    force: bool = Field(default=False, description="Redo everything, whatever the fingerprints say")
    limit: int | None = Field(
        default=None,
        ge=1,
        description="At most this many items in each step; a crawl's items are sources, each crawled in full",
    )
    wait: bool = Field(default=False, description="Wait for another run to end instead of refusing")
    archive: str | None = Field(
        default=None, description="A WARC file to take pages from instead of the network"
    )
    preset: str | None = Field(
        default=None, description="A paper's values below the settings: qchunker-paper or hichunk-paper"
    )

    def overrides(self) -> dict[str, Any] | None:
        """What of these parameters is a setting, for ``load_settings`` and ``open_runtime``."""
        return {"preset": self.preset} if self.preset else None

    def common(self) -> StageParameters:
        """These parameters without what belongs to a whole refresh."""
        return StageParameters(**{name: getattr(self, name) for name in StageParameters.model_fields})


class RefreshParameters(StageParameters):
    """A run of the pipeline, or of a slice of it."""

    from_stage: StageName = Field(default="acquire", description="First stage to run")
    to_stage: StageName = Field(default="evaluate", description="Last stage to run")

    @model_validator(mode="after")
    def _ordered(self) -> RefreshParameters:
        if STAGES.index(self.from_stage) > STAGES.index(self.to_stage):
            raise ValueError(f"from_stage {self.from_stage} comes after to_stage {self.to_stage}")
        return self

    def stages(self) -> tuple[StageName, ...]:
        """The stages of the slice, in order."""
        return STAGES[STAGES.index(self.from_stage) : STAGES.index(self.to_stage) + 1]
