"""Settings of extraction, reference data and identity."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

ReferenceSource = Literal["NFPA 497", "IEC 60079-20-1", "Ontario", "IARC", "NTP"]


class ExtractionSettings(BaseModel):
    """How assertions are drawn from documents and compared with reference data."""

    model_config = ConfigDict(extra="forbid")

    window: int = Field(
        default=1500,
        ge=100,
        description="Most tokens that a model reads at once (rules read the whole document)",
    )
    rejected_share: float = Field(
        default=0.2,
        ge=0,
        le=1,
        description="Share of a model's assertions that may fail the evidence check before it is asked again",
    )
    reference: bool = Field(
        default=True,
        description="Load the hazard tables of the `chemicals` package for the substances present",
    )
    reference_sources: tuple[ReferenceSource, ...] = Field(
        default=("NFPA 497", "IEC 60079-20-1", "Ontario", "IARC", "NTP"),
        description="Which of those tables; estimates by formula are never loaded",
    )
    temperature_tolerance_k: float = Field(
        default=5.0, ge=0, description="Largest difference of a temperature that still agrees, in kelvin"
    )
    relative_tolerance: float = Field(
        default=0.1, ge=0, description="Largest relative difference of another value that still agrees"
    )
