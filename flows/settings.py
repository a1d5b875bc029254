"""All settings of the platform in one tree; each package owns its section.

Precedence: command line and flow parameters, then the environment
(``HCHEM_…``, sections joined with ``__``), then ``hchem.toml`` in the working
directory (or the file named by ``HCHEM_CONFIG``), then the preset that any of
them names, then the defaults.
"""

from __future__ import annotations

import os
import re
import tomllib
from ipaddress import ip_address
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    SecretStr,
    ValidationError,
    model_validator,
)
from pydantic_settings import (
    BaseSettings,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
    TomlConfigSettingsSource,
)

from chunking.evaluation.settings import EvaluationSettings, VectorSettings
from chunking.settings import ChunkSettings
from corpus.errors import SettingsError
from corpus.settings import CorpusSettings
from crawlers.settings import CrawlSettings
from flows import schedules, secrets
from flows.housekeeping_settings import HousekeepingSettings
from flows.operation_settings import FreshnessSettings, GateSettings, OperationSettings
from flows.partition_settings import PartitionSettings
from flows.presets import PresetSource
from kg.graph_settings import GraphSettings, QuestionSettings
from kg.settings import ExtractionSettings
from models.settings import EmbeddingSettings, ModelSettings

DEFAULT_CONFIG = "hchem.toml"


class CatalogueSettings(BaseModel):
    """The database that is the state."""

    model_config = ConfigDict(extra="forbid")

    url: SecretStr | None = Field(
        default=None, description="SQLAlchemy URL; default: SQLite under the data directory"
    )


def is_loopback(host: str) -> bool:
    """Whether an address reaches this machine only; names but ``localhost`` may lead anywhere."""
    try:
        return ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host == "localhost"


class PrefectSettings(BaseModel):
    """The loopback Prefect server that the platform starts and reuses."""

    model_config = ConfigDict(extra="forbid")

    host: str = Field(
        default="127.0.0.1",
        min_length=1,
        description="Address that the server is bound to; anything but loopback needs `auth`, and TLS in front",
    )
    auth: SecretStr | None = Field(
        default=None,
        description="`user:password` that the server asks of everyone (HCHEM_PREFECT__AUTH; not in a file)",
    )
    port: int | None = Field(
        default=None,
        ge=0,
        le=65535,
        description="Port of the server; unset: 4200 or, when taken, a free one; 0: a free one",
    )
    start_timeout_s: float = Field(
        default=300.0, gt=0, description="How long to wait for the server's health"
    )
    heartbeat_s: int = Field(default=30, ge=30, description="Seconds between flow run heartbeats")

    @model_validator(mode="after")
    def _closed(self) -> PrefectSettings:
        """Whoever reaches the server can start deployments: no open door beyond this machine."""
        if self.auth is not None and not re.fullmatch(r"[^:\s]+:\S{8,}", self.auth.get_secret_value()):
            raise ValueError("auth must be user:password, the password of at least 8 characters")
        if self.auth is None and not is_loopback(self.host):
            raise ValueError(
                f"{self.host!r} is not loopback: set a password first (HCHEM_PREFECT__AUTH=user:password)"
            )
        return self


class FlowSettings(PartitionSettings, OperationSettings):
    """How stages are run."""

    model_config = ConfigDict(extra="forbid")

    task_runner: Literal["thread", "dask", "ray"] = Field(default="thread", description="Where batches run")
    task_runner_address: str | None = Field(default=None, description="Address of a Dask or Ray scheduler")
    workers: int = Field(default=2, ge=1, le=64, description="Batches at once in this process")
    passes: int = Field(default=2, ge=1, le=10, description="Passes over items that failed transiently")
    retry_delay_s: float = Field(default=2.0, ge=0, description="Pause before a repeated pass")
    max_failed_share: float = Field(
        default=0.5, gt=0, le=1, description="A step fails when more than this share of its items failed"
    )
    lease_s: float = Field(
        default=120.0, ge=10, le=86_400, description="Age after which a dead run's lease is taken over"
    )
    keep_versions: int = Field(
        default=8,
        ge=0,
        description="Versions of the data set kept beside those with a tag; 0: a refresh takes none",
    )
    share_batches: bool | None = Field(
        default=None,
        description="Let assistants (`hchem assist`) help with the batches of a run; unset: where the catalogue is not SQLite",
    )
    schedule: Annotated[str, AfterValidator(schedules.checked)] = Field(
        default="0 3 * * 1",
        description="When the scheduled refresh is due: cron (UTC), or an interval such as `every 12h`",
    )


class _SettingsFile(TomlConfigSettingsSource):
    """``hchem.toml``, which must not hold an API key."""

    def __call__(self) -> dict[str, Any]:
        """The file's values. Raises SettingsError for a key."""
        values = super().__call__()
        secrets.refuse_keys(values, config_path())
        return values


class Settings(BaseSettings):
    """Everything that can be set. See ``docs/configuration.md`` for the reference."""

    model_config = SettingsConfigDict(
        env_prefix="HCHEM_",
        env_nested_delimiter="__",
        extra="forbid",
        nested_model_default_partial_update=True,
    )

    data_dir: Path = Field(default=Path("data"), description="Where everything that is produced lives")
    preset: str | None = Field(
        default=None,
        description="A paper's values between the defaults and yours: qchunker-paper or hichunk-paper "
        "(`hchem models presets`)",
    )
    catalogue: CatalogueSettings = Field(default_factory=CatalogueSettings)
    crawl: CrawlSettings = Field(default_factory=CrawlSettings)
    corpus: CorpusSettings = Field(default_factory=CorpusSettings)
    extraction: ExtractionSettings = Field(default_factory=ExtractionSettings)
    graph: GraphSettings = Field(default_factory=GraphSettings)
    questions: QuestionSettings = Field(default_factory=QuestionSettings)
    chunks: ChunkSettings = Field(default_factory=ChunkSettings)
    vectors: VectorSettings = Field(default_factory=VectorSettings)
    evaluation: EvaluationSettings = Field(default_factory=EvaluationSettings)
    models: ModelSettings = Field(default_factory=ModelSettings)
    embeddings: EmbeddingSettings = Field(default_factory=EmbeddingSettings)
    housekeeping: HousekeepingSettings = Field(default_factory=HousekeepingSettings)
    prefect: PrefectSettings = Field(default_factory=PrefectSettings)
    flows: FlowSettings = Field(default_factory=FlowSettings)
    gates: GateSettings = Field(default_factory=GateSettings)
    freshness: FreshnessSettings = Field(default_factory=FreshnessSettings)

    @model_validator(mode="after")
    def _hand_down(self) -> Settings:
        self.models.embeddings = self.embeddings
        if self.models.api_key is None and os.environ.get("OPENAI_API_KEY"):
            self.models.api_key = SecretStr(os.environ["OPENAI_API_KEY"])
        self.models.complete_endpoints()
        if self.models.log_file is None:
            self.models.log_file = (self.data_dir / "logs" / "models.jsonl").absolute()
        secrets.attach(self)
        return self

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Command line over environment over file over preset."""
        own = (init_settings, env_settings, _SettingsFile(settings_cls, config_path()))
        return (*own, PresetSource(settings_cls, own))

    def catalogue_url(self) -> str:
        """The catalogue's URL, the password included."""
        if self.catalogue.url is not None:
            return self.catalogue.url.get_secret_value()
        return f"sqlite:///{(self.data_dir / 'catalogue.db').resolve()}"


def value_at(values: Any, path: str) -> Any:
    """What plain data holds at a path such as ``models.limits``; None where there is nothing."""
    for name in path.split("."):
        values = values.get(name) if isinstance(values, dict) else None
    return values


def config_path() -> Path:
    """The settings file in force (it need not exist)."""
    return Path(os.environ.get("HCHEM_CONFIG", DEFAULT_CONFIG))


def load_settings(overrides: dict[str, Any] | None = None) -> Settings:
    """Read settings from all places. Raises SettingsError naming each place that was looked in."""
    if "HCHEM_CONFIG" in os.environ and not config_path().is_file():
        raise SettingsError(f"settings file {config_path()} (HCHEM_CONFIG) does not exist")
    _check_environment()
    try:
        return Settings(**(overrides or {}))
    except tomllib.TOMLDecodeError as error:
        raise SettingsError(f"settings file {config_path()} is not valid TOML: {error}") from error
    except ValidationError as error:
        problems = "; ".join(_problem(item) for item in error.errors(include_url=False, include_input=False))
        raise SettingsError(f"wrong setting: {problems} (looked in {_places()})") from error
    except (ValueError, OSError) as error:  # a JSON section in the environment that does not parse
        raise SettingsError(f"wrong setting: {error} (looked in {_places()})") from error


def _check_environment() -> None:
    """An unknown HCHEM_ variable is a typing error that would be ignored in silence."""
    known = {name.upper() for name in Settings.model_fields} | {"CONFIG"}
    for name in sorted(os.environ):
        if not name.startswith("HCHEM_") or name.startswith("HCHEM_TEST_"):
            continue
        if name[len("HCHEM_") :].split("__")[0].upper() not in known:
            raise SettingsError(
                f"unknown setting {name} in the environment; sections: {', '.join(sorted(known))}"
            )


def _problem(item: Any) -> str:
    path = [str(part) for part in item["loc"]]
    variable = "HCHEM_" + "__".join(path).upper()
    return f"{'.'.join(path)} ({variable}): {item['msg']}"


def _places() -> str:
    file = config_path()
    return f"the command line, the environment HCHEM_…, {file}{'' if file.is_file() else ' (absent)'}, the defaults"
