"""How the corpus is divided for backfills."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, Field

Unit = Literal["month", "week", "day"]


class PartitionSettings(BaseModel):
    """Part of the section ``flows``."""

    period: Unit = Field(default="month", description="Span of time of a partition (source × period)")
    chemical_groups: int = Field(
        default=16,
        ge=1,
        le=999,
        description="Groups of substances that a crawl is divided into by a backfill",
    )
