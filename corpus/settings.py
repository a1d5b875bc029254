"""Settings of the corpus: name repository, quality threshold, windows, near-duplicates, cleaner limits."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field, model_validator


class ChemicalSettings(BaseModel):
    """The name repository."""

    model_config = ConfigDict(extra="forbid", allow_inf_nan=False)

    lists: tuple[str, ...] = Field(
        default=("IARC", "NTP", "NFPA 497", "IEC 60079-20-1", "Ontario"),
        description="Hazard lists of the `chemicals` package whose substances are taken.",
    )
    synonyms: int = Field(
        default=0,
        ge=0,
        le=200,
        description="Unchecked PubChem synonyms taken per substance beside its names; some of them name "
        "mixtures or other substances (arsenic is also called arsenic hydride there), so none by default.",
    )


class QualitySettings(BaseModel):
    """The quality score (0-5) and what is kept."""

    model_config = ConfigDict(extra="forbid", allow_inf_nan=False)

    threshold: float = Field(default=3.0, ge=0, le=5, description="Documents that score above it are kept.")
    sample_windows: int = Field(default=6, ge=1, description="Windows of a long document that are scored.")
    sample_tokens: int = Field(default=600, ge=50, description="Tokens (`words`) per scored window.")


class RefinementSettings(BaseModel):
    """The sliding window of refinement."""

    model_config = ConfigDict(extra="forbid", allow_inf_nan=False)

    window: int = Field(default=1800, ge=50, description="Tokens (`words`) per window.")
    overlap: int = Field(default=200, ge=0, description="Tokens (`words`) that two windows share at most.")

    @model_validator(mode="after")
    def _overlap_fits(self) -> RefinementSettings:
        if self.overlap * 2 > self.window:
            raise ValueError(f"overlap {self.overlap} must be at most half of window {self.window}")
        return self


class DuplicateSettings(BaseModel):
    """Near-duplicates: MinHash LSH on 5-gram shingles, containment."""

    model_config = ConfigDict(extra="forbid", allow_inf_nan=False)

    threshold: float = Field(default=0.8, gt=0, le=1, description="Jaccard similarity of near-duplicates.")
    containment: float = Field(
        default=0.9, gt=0, le=1, description="Share of a page's shingles inside another that makes it a part."
    )
    shingle: int = Field(default=5, ge=1, description="Length of a shingle: characters (zh) or words (en).")
    permutations: int = Field(default=128, ge=16, description="MinHash permutations.")


class CleaningSettings(BaseModel):
    """Limits of the cleaner's child process and of the guards."""

    model_config = ConfigDict(extra="forbid", allow_inf_nan=False)

    seconds: float = Field(default=60.0, gt=0, description="Wall time per page before the child is killed.")
    max_bytes: int = Field(default=32 * 1024 * 1024, gt=0, description="Largest page that is parsed.")


class CorpusSettings(BaseModel):
    """Section ``[corpus]``."""

    model_config = ConfigDict(extra="forbid", allow_inf_nan=False)

    chemicals: ChemicalSettings = Field(default_factory=ChemicalSettings, description="The name repository.")
    cleaning: CleaningSettings = Field(default_factory=CleaningSettings, description="Limits of the cleaner.")
    quality: QualitySettings = Field(default_factory=QualitySettings, description="Score and threshold.")
    refinement: RefinementSettings = Field(
        default_factory=RefinementSettings, description="The sliding window of refinement."
    )
    duplicates: DuplicateSettings = Field(default_factory=DuplicateSettings, description="Near-duplicates.")
