"""Settings of the graph store and of question generation."""

from __future__ import annotations

from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, SecretStr, field_validator, model_validator

from corpus.errors import SettingsError
from kg import extension

_SCHEMES = ("bolt", "bolt+s", "bolt+ssc", "neo4j", "neo4j+s", "neo4j+ssc")


class GraphSettings(BaseModel):
    """Where the graph lives. Without ``uri`` the platform starts its own Bolt server on loopback."""

    model_config = ConfigDict(extra="forbid", allow_inf_nan=False)

    uri: str | None = Field(
        default=None, description="Bolt address of a Neo4j server (bolt://… or neo4j://…); unset: embedded"
    )
    user: str = Field(default="neo4j", description="User on that server")
    password: SecretStr | None = Field(
        default=None, description="Password on that server; unset: a server with authentication switched off"
    )
    database: str = Field(default="neo4j", min_length=1, description="Database on that server, always named")
    schema_file: Path | None = Field(
        default=None,
        description="TOML file with your own node labels, relations, properties and labels (docs/extraction.md)",
    )
    batch_size: int = Field(default=1000, ge=1, le=25_000, description="Rows of one UNWIND transaction")
    documents_per_batch: int = Field(
        default=200, ge=1, description="Documents whose contributions are read and written together"
    )
    heap: str = Field(default="1g", pattern=r"^\d+[mg]$", description="Java heap of the embedded server")
    full_jit: bool = Field(
        default=False,
        description="Let the embedded server's Java compile optimised code: slower for minutes, faster for hours",
    )
    start_timeout_s: float = Field(default=180.0, gt=0, description="How long to wait until Bolt answers")

    @model_validator(mode="after")
    def _complete(self) -> GraphSettings:
        if self.uri is None:
            return self
        scheme, mark, _ = self.uri.partition("://")
        if not mark:
            raise ValueError("the graph address needs a scheme, for example bolt://localhost:7687")
        if scheme not in _SCHEMES:
            web = (
                "; a web address is that of the server's browser page, Bolt has a port of its own, usually 7687"
                if scheme.startswith("http")
                else ""
            )
            raise ValueError(
                f"the graph address begins with {scheme}://, but it must be one of {', '.join(_SCHEMES)}{web}"
            )
        return self

    @model_validator(mode="after")
    def _vocabulary(self) -> GraphSettings:
        """The vocabulary is one for the whole process, so it is put in force where it is set."""
        if self.schema_file is not None:
            try:
                extension.use(self.schema_file)
            except SettingsError as error:
                raise ValueError(str(error)) from error
        return self


class QuestionSettings(BaseModel):
    """What questions are made, how many, and how they are divided."""

    model_config = ConfigDict(extra="forbid", allow_inf_nan=False)

    seed: int = Field(default=0, description="Seed of every sampling order and of the split")
    at_most: int = Field(
        default=135_000,
        ge=0,
        description="Questions in all. Where more are possible, so many are drawn evenly by kind, language, relation "
        "and substance, before they are proved; 0: all",
    )
    at_most_of: dict[str, int] = Field(
        default_factory=dict,
        description="Questions of a kind or a language, for example {boolean = 20000, zh = 60000}",
    )
    evaluation_share: float = Field(
        default=0.3, ge=0, le=1, description="Share of substance groups on the evaluation side"
    )
    curated_per_cell: int = Field(
        default=8, ge=1, description="Curated questions per kind, section and language on the evaluation side"
    )
    list_limit: int = Field(
        default=10, ge=1, description="Longest answer list; above it only the count is asked"
    )
    hub_degree: int = Field(
        default=60, ge=1, description="Intermediate nodes with more neighbours are not walked"
    )
    per_seed: int = Field(default=4, ge=1, description="Multi-hop questions per seed and metapath")
    per_metapath: int = Field(default=200, ge=1, description="Multi-hop questions per metapath")
    per_answer: int = Field(default=6, ge=1, description="Multi-hop questions with the same answer")
    per_document: int = Field(default=400, ge=1, description="Questions of one kind resting on one document")
    tolerance: float = Field(
        default=0.02, ge=0, description="Relative spread within which sources agree on a value"
    )
    temperature_tolerance_k: float = Field(
        default=2.0, ge=0, description="Spread in kelvin within which sources agree on a temperature"
    )
    margin: float = Field(
        default=0.1, gt=0, description="Relative margin that a comparison needs above the spread of sources"
    )
    temperature_margin_k: float = Field(
        default=10.0, gt=0, description="Margin in kelvin that a comparison of temperatures needs"
    )
    max_answer_characters: int = Field(
        default=1200, ge=50, description="Longest answer text of a section question"
    )
    languages: tuple[str, ...] = Field(default=("zh", "en"), description="Languages questions are worded in")

    @field_validator("at_most_of")
    @classmethod
    def _known(cls, given: dict[str, int]) -> dict[str, int]:
        known = ("single_hop", "multi_hop", "aggregative", "boolean", "zh", "en")
        for name, most in given.items():
            if name not in known:
                raise ValueError(f"{name!r} is none of the kinds and languages {', '.join(known)}")
            if most < 0:
                raise ValueError(f"a number of questions cannot be {most}")
        return given

    @field_validator("languages")
    @classmethod
    def _worded(cls, given: tuple[str, ...]) -> tuple[str, ...]:
        if not given:
            raise ValueError("no language is left to word questions in; zh, en or both")
        for language in given:
            if language not in ("zh", "en"):
                raise ValueError(f"there are no questions in {language!r}; zh, en or both")
        if len(set(given)) < len(given):
            raise ValueError(f"a language is named twice: {', '.join(given)}")
        return given
