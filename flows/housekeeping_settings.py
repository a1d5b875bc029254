"""Settings of what is removed when it is old and nothing refers to it any more."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field


class HousekeepingSettings(BaseModel):
    """What `hchem gc` removes."""

    model_config = ConfigDict(extra="forbid", allow_inf_nan=False)

    keep_days: int = Field(
        default=180,
        ge=0,
        le=36_500,
        description="Age in days below which nothing is removed: contents of pages that newer ones replaced, pages "
        "that are gone, answers of superseded skill versions, reports of single pages",
    )
    waste_share: float = Field(
        default=0.2,
        gt=0,
        le=1,
        description="Share of an archive file that must be of no use before the file is rewritten without it",
    )
