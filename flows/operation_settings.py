"""Settings of what watches over runs: quality gates, freshness of sources, the webhook, the guard of schedules."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import timedelta
from typing import Annotated, Literal, TypeVar
from urllib.parse import urlsplit

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, SecretStr, field_validator

_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800}
_PERIOD = re.compile(r"(\d{1,6})([smhdw])")

Severity = Literal["off", "warn", "block"]
Kind = Literal["least", "most", "about_half", "drop", "rise", "fall"]
"""How a value is judged: against its limit alone (``least``, ``most``, ``about_half``: distance from 0.5), or
against the baseline (``drop``, ``rise``: as a share of it; ``fall``: in the value's own unit)."""


def period(text: str) -> timedelta:
    """A length of time such as "90s", "12h", "8d", "2w"; "0" is none. Raises ValueError."""
    if text == "0":
        return timedelta(0)
    found = _PERIOD.fullmatch(text)
    if found is None:
        raise ValueError(f"{text!r} is no length of time: a number and s, m, h, d or w, for example '8d'")
    return timedelta(seconds=int(found[1]) * _UNITS[found[2]])


def _checked(text: str) -> str:
    period(text)
    return text


Period = Annotated[str, AfterValidator(_checked)]


@dataclass(frozen=True)
class Gate:
    """A quality gate as it is shipped: after which stage, how severe, how judged against which limit."""

    name: str
    stage: str
    severity: Severity
    kind: Kind
    limit: float
    what: str
    share: bool = False  # the value is a share, shown in per cent


GATES: dict[str, Gate] = {
    gate.name: gate
    for gate in (
        Gate("crawl_empty", "acquire", "block", "least", 1, "pages that a source's crawl brought"),
        Gate(
            "crawl_refused",
            "acquire",
            "block",
            "most",
            0.5,
            "share of a source's pages refused by robots.txt, opt-out, guard, 401, 403, 429, 451 or a challenge",
            share=True,
        ),
        Gate("pages_drop", "acquire", "warn", "drop", 0.2, "pages with content, by source and whole"),
        Gate("documents_drop", "curate", "block", "drop", 0.2, "documents kept, by source and whole"),
        Gate("documents_held", "curate", "warn", "most", 0.2, "share of documents in review or failed", True),
        Gate(
            "refinements_refused",
            "curate",
            "warn",
            "most",
            0.1,
            "share of kept documents whose refinement failed the fidelity check",
            share=True,
        ),
        Gate("assertions_drop", "graph", "block", "drop", 0.2, "assertions kept"),
        Gate("conflicts_rise", "graph", "warn", "rise", 0.25, "values on which sources conflict"),
        Gate("questions_drop", "questions", "block", "drop", 0.2, "questions kept"),
        Gate(
            "proofs_failed", "questions", "block", "most", 0, "questions whose graph query answers otherwise"
        ),
        Gate("boolean_balance", "questions", "warn", "about_half", 0.1, "share of yes, by relation", True),
        Gate(
            "chunks_untiled", "chunks", "block", "most", 0, "partitions whose chunks do not tile the document"
        ),
        Gate(
            "evidence_recall_fall",
            "evaluate",
            "warn",
            "fall",
            0.05,
            "evidence recall, by chunking method",
            True,
        ),
    )
}


_T = TypeVar("_T")


def _known(values: dict[str, _T]) -> dict[str, _T]:
    unknown = sorted(set(values) - set(GATES))
    if unknown:
        raise ValueError(f"no gate {', '.join(unknown)}; gates: {', '.join(GATES)}")
    return values


class GateSettings(BaseModel):
    """Quality gates after each stage: `hchem gates list` names them with what is in force."""

    model_config = ConfigDict(extra="forbid", allow_inf_nan=False)

    severity: dict[str, Severity] = Field(
        default_factory=dict,
        description="Gate → off, warn or block, where it is to differ from what is shipped",
    )
    limit: dict[str, Annotated[float, Field(ge=0)]] = Field(
        default_factory=dict, description="Gate → limit, where it is to differ from what is shipped"
    )
    least: int = Field(
        default=5,
        ge=0,
        description="Changes against the last run that are smaller than this many never trip a gate",
    )
    least_booleans: int = Field(
        default=10,
        ge=1,
        description="Boolean questions of a relation below which their balance is not judged",
    )
    least_asked: int = Field(
        default=10, ge=1, description="Pages of a source below which the share that was refused is not judged"
    )
    wait: Period = Field(
        default="7d", description="How long a suspended run waits for a decision before Prefect fails it"
    )

    _severity_known = field_validator("severity")(_known)
    _limit_known = field_validator("limit")(_known)

    def severity_of(self, name: str) -> Severity:
        """What is in force for a gate."""
        return self.severity.get(name, GATES[name].severity)

    def limit_of(self, name: str) -> float:
        """The limit that is in force for a gate."""
        return self.limit.get(name, GATES[name].limit)


class FreshnessSettings(BaseModel):
    """How old the last whole visit of a source may be (`hchem status --check`)."""

    model_config = ConfigDict(extra="forbid")

    max_age: Period = Field(
        default="8d", description="Age after which a source is stale: a number and s, m, h, d, w"
    )
    sources: dict[str, Period] = Field(
        default_factory=dict, description="Source → its own limit, for example `sources.NAME = '30d'`"
    )


class OperationSettings(BaseModel):
    """What ``[flows]`` says of announcing and of schedules."""

    model_config = ConfigDict(extra="forbid")

    webhook: SecretStr | None = Field(
        default=None,
        description="http(s) address that new versions, failed runs, failed gates and stale sources are posted to "
        "(HCHEM_FLOWS__WEBHOOK; not in a file)",
    )
    webhook_secret: SecretStr | None = Field(
        default=None,
        description="Key of the HMAC-SHA256 signature of what is posted (HCHEM_FLOWS__WEBHOOK_SECRET; not in a file)",
    )
    skip_if_fresher: Period = Field(
        default="0",
        description="A scheduled refresh ends at once where every source was visited within this time; 0: never",
    )

    @field_validator("webhook")
    @classmethod
    def _address(cls, value: SecretStr | None) -> SecretStr | None:
        if value is not None:
            parts = urlsplit(value.get_secret_value())
            if parts.scheme not in ("http", "https") or not parts.hostname:
                raise ValueError(
                    "the webhook must be an http or https address"
                )  # the address itself is a secret
        return value
