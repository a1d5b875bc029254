"""Asking every configured endpoint once: does it answer, and in which output format?"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pydantic import BaseModel

from models.client.call import Call
from models.client.http import HttpLayer
from models.client.parse import Unreadable, parse
from models.errors import ModelError
from models.settings import SKILL_NAMES, ResolvedModel
from models.skills import Message

if TYPE_CHECKING:
    from models.registry import Models


@dataclass(frozen=True)
class Finding:
    """One endpoint: what it serves, whether it works, what was seen."""

    name: str
    fine: bool
    seen: str


class Pong(BaseModel):
    """The answer that a check asks for."""

    ok: bool


def check_endpoints(models: Models, tell: Callable[[str], None] = lambda line: None) -> list[Finding]:
    """Check chat, embedding and perplexity endpoints, each once; embedded backends are loaded.

    ``tell`` hears before each chat endpoint what is waited for and how long.
    """
    findings = []
    for resolved, skills in _endpoints(models):
        tell(f"asking {resolved.model} at {resolved.base_url}, for at most {resolved.timeout_s:g} s a try")
        findings.append(_chat(models, resolved, skills))
    embeddings = models.settings.embeddings
    purposes = {embeddings.backend("cohesion"): "cohesion", embeddings.backend("index"): "index"}
    for backend, purpose in sorted(purposes.items()):
        findings.append(_embedder(models, backend, "cohesion" if purpose == "cohesion" else "index"))
    if models.settings.perplexity.backend != "ngram":
        findings.append(_perplexity(models))
    return findings


def _endpoints(models: Models) -> list[tuple[ResolvedModel, list[str]]]:
    """Distinct endpoints with the skills they serve."""
    found: dict[tuple[str, str, str], tuple[ResolvedModel, list[str]]] = {}
    for name, resolved in models.settings.configured().items():
        key = resolved.api_key.get_secret_value() if resolved.api_key is not None else ""
        found.setdefault((resolved.base_url, resolved.model, key), (resolved, []))[1].append(name)
    return list(found.values())


def _chat(models: Models, resolved: ResolvedModel, skills: list[str]) -> Finding:
    served = "all skills" if len(skills) == len(SKILL_NAMES) else ", ".join(skills)
    name = f"{resolved.model} at {resolved.base_url}"
    question = Message("user", 'This is a connection check. Answer with the JSON object {"ok": true}.')
    call = Call("connection_check", "1", (question,), resolved, Pong)
    try:
        http = HttpLayer(models.clients)
        reply = http(call)
        parse(reply.raw, Pong, reply.finish_reason)
    except ModelError as error:
        return Finding(name, False, str(error))
    except Unreadable as error:
        return Finding(name, False, f"answers, but not with the JSON asked for: {error}")
    return Finding(name, True, f"answers by {http.format(resolved)} ({served})")


def _embedder(models: Models, backend: str, purpose: str) -> Finding:
    try:
        embedder = models.embedder("cohesion" if purpose == "cohesion" else "index")
        vector = embedder.passages(["connection check"])
    except ModelError as error:
        return Finding(f"embeddings by {backend}", False, str(error))
    return Finding(f"embeddings by {backend}", True, f"{embedder.name}, {vector.shape[1]} dimensions")


def _perplexity(models: Models) -> Finding:
    name = f"perplexity by {models.settings.perplexity.backend}"
    try:
        loss = models.perplexity().loss("a connection check", "this is")
    except ModelError as error:
        return Finding(name, False, str(error))
    return Finding(name, True, f"answers, {loss:.2f} nats a token")
