"""Typed parameters of the flows: the command line and Prefect's form share them."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator
from pydantic.json_schema import SkipJsonSchema

from corpus.catalogue.tables import now
from corpus.errors import SettingsError
from corpus.restriction import moment_of

RESTRICTIONS = (
    "sources", "chemicals", "limit", "archive", "since", "only_failed",
    "only_missing", "from_period", "to_period", "chemical_groups",
)  # fmt: skip
"""Parameters that make a run one of a part. Runs are comparable where they are the same."""

StageName = Literal["acquire", "curate", "graph", "questions", "chunks", "evaluate"]
STAGES: tuple[StageName, ...] = ("acquire", "curate", "graph", "questions", "chunks", "evaluate")


class StageParameters(BaseModel):
    """What a run of one stage may be restricted to."""

    model_config = ConfigDict(extra="forbid")

    sources: list[str] = Field(default_factory=list, description="Only these sources (all when empty)")
    chemicals: list[str] = Field(default_factory=list, description="Only these names or CAS numbers")
    since: str | None = Field(
        default=None,
        description="Only contents transferred since then, and of pages that a sitemap dates only those that changed "
        "since then: 2026-11-01 (UTC), or how long ago: 7d, 12h",
    )
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

    on_gate: Literal["ask", "fail", "continue"] | None = Field(
        default=None,
        description="When a blocking quality gate fails: suspend the run and ask here, fail it, or go on. Unset: ask in "
        "a run that a deployment started, fail in any other",
    )

    @field_validator("since", mode="before")
    @classmethod
    def _since(cls, value: str | None) -> str | None:
        if not value:
            return None  # an empty field of the form
        try:
            moment_of(value, now())
        except SettingsError as error:
            raise ValueError(str(error)) from error
        return value

    def chosen(self) -> dict[str, Any]:
        """What a run works on, as fields of ``StageContext``; "7d" means from now on back."""
        return {
            "force": self.force,
            "only_failed": self.only_failed,
            "limit": self.limit,
            "sources": tuple(self.sources),
            "chemicals": tuple(self.chemicals),
            "since": moment_of(self.since, now()) if self.since is not None else None,
        }

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


class BackfillParameters(StageParameters):
    """Which partitions a backfill works on, and how."""

    since: SkipJsonSchema[str | None] = None
    limit: SkipJsonSchema[int | None] = None
    archive: SkipJsonSchema[str | None] = None
    from_period: str | None = Field(
        default=None, description="First period: 2026-01 (also 2026, 2026-W05, 2026-01-31)"
    )
    to_period: str | None = Field(default=None, description="Last period, itself included")
    chemical_groups: str | None = Field(
        default=None, description="Groups of substances to acquire: 0-7 or 0,3,5; with from_stage acquire"
    )
    from_stage: StageName = Field(default="curate", description="First stage to run")
    to_stage: StageName = Field(default="evaluate", description="Last stage to run")
    only_missing: bool = Field(default=False, description="Only what was never processed")
    only_failed: bool = Field(
        default=False,
        description="Only what failed, terminal failures included, and what was never processed beside it",
    )
    force: bool = Field(default=False, description="Redo everything in the chosen partitions")
    parallel: int = Field(
        default=1, ge=1, le=64, description="Processes that work on batches, this one included"
    )
    yes: bool = Field(default=False, description="Agree to the model calls that the run is expected to make")

    @model_validator(mode="after")
    def _sound(self) -> BackfillParameters:
        RefreshParameters(from_stage=self.from_stage, to_stage=self.to_stage)
        if self.since is not None or self.limit or self.archive:
            raise ValueError("a backfill is restricted by periods: since, limit and archive are not for it")
        if self.only_missing and self.only_failed:
            raise ValueError("only_missing or only_failed, not both")
        if self.force and (self.only_missing or self.only_failed):
            raise ValueError("force redoes everything: not with only_missing or only_failed")
        if self.chemical_groups and self.from_stage != "acquire":
            raise ValueError("chemical_groups divide acquisition: they need from_stage acquire")
        return self

    def overrides(self) -> dict[str, Any] | None:
        """With further processes the run shares its batches with them."""
        shared = {"flows": {"share_batches": True}} if self.parallel > 1 else {}
        return ({**(super().overrides() or {}), **shared}) or None

    def chosen(self) -> dict[str, Any]:
        """Nothing: the run is about everything, its parts are restricted one by one."""
        return {}

    def stages(self) -> tuple[StageName, ...]:
        """The stages of the slice, in order."""
        return RefreshParameters(from_stage=self.from_stage, to_stage=self.to_stage).stages()
