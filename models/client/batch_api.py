"""The calls of the batch API and the reading of its files: what ``models.client.batch`` is built on.

Source: OpenAI batch API guide and reference (files, batches), as in ``openai`` 3.57.
"""

from __future__ import annotations

import io
import json
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import IO, TYPE_CHECKING, Any, Literal, TypeVar

from models.client.call import Reply, Transient
from models.client.http import Clients, read_completion
from models.client.retry import with_retries
from models.errors import ModelError, ModelRefused
from models.protocols import BatchJob, BatchLine
from models.settings import Limits, Price, ResolvedModel

if TYPE_CHECKING:
    from openai import OpenAI
    from openai.types import Batch

T = TypeVar("T")

ENDPOINT: Literal["/v1/chat/completions"] = "/v1/chat/completions"
_NAME = "hchem"  # the metadata field that holds our id of a job
_TRANSFER_S = 600.0  # for a file of 200 MB
_SETTING_CODES = {"model_not_found": 404, "insufficient_quota": 429, "billing_hard_limit_reached": 429}


class BatchApi:
    """The calls of the batch API, with retries. Raises Transient or ModelRefused."""

    def __init__(self, clients: Clients, limits: Limits) -> None:
        self._clients = clients
        self._limits = limits

    def upload(self, access: ResolvedModel, job: BatchJob, file: IO[bytes]) -> str:
        """Send the file of a job; returns the endpoint's name for it."""
        timeout = max(access.timeout_s, _TRANSFER_S)

        def once(client: OpenAI) -> str:
            file.seek(0)
            name = f"hchem-{job.job_id}.jsonl"
            return client.files.create(file=(name, file), purpose="batch", timeout=timeout).id

        return self._supported(access, once)

    def create(self, access: ResolvedModel, job: BatchJob) -> Batch:
        """Create a job for an uploaded file. After a failure it is looked for first: it may have been created."""
        failed = False

        def once(client: OpenAI) -> Batch:
            nonlocal failed
            known = _listed(client, job) if failed else None
            failed = True
            return known or client.batches.create(
                input_file_id=job.file_id,
                endpoint=ENDPOINT,
                completion_window="24h",
                metadata={_NAME: job.job_id},
                timeout=access.timeout_s,
            )

        return self._supported(access, once)

    def find(self, access: ResolvedModel, job: BatchJob) -> Batch | None:
        """A job by the name or the file that we gave it."""
        return self._ask(access, lambda client: _listed(client, job))

    def retrieve(self, access: ResolvedModel, job: BatchJob) -> Batch:
        """The endpoint's record of a job."""
        return self._ask(
            access, lambda client: client.batches.retrieve(job.batch_id, timeout=access.timeout_s)
        )

    def cancel(self, access: ResolvedModel, job: BatchJob) -> None:
        """Ask the endpoint to stop a job; one that is over already cannot be stopped, which is no error."""
        try:
            self._ask(access, lambda client: client.batches.cancel(job.batch_id, timeout=access.timeout_s))
        except ModelRefused as error:
            if error.reason != "bad_request":
                raise

    def rows(self, access: ResolvedModel, file_id: str) -> Iterator[Any]:
        """The lines of a file; a line that is not JSON is None."""
        timeout = max(access.timeout_s, _TRANSFER_S)
        data = self._ask(access, lambda client: client.files.content(file_id, timeout=timeout).content)
        for line in io.BytesIO(data):
            if line.strip():
                try:
                    yield json.loads(line)
                except ValueError:
                    yield None

    def _supported(self, access: ResolvedModel, work: Callable[[OpenAI], T]) -> T:
        try:
            return self._ask(access, work)
        except ModelRefused as error:
            if error.reason != "not_found":
                raise
            text = f"{error}. Has this endpoint a batch API? If not, set models.transport = 'online'"
            raise ModelRefused(text, reason="not_found") from error

    def _ask(self, access: ResolvedModel, work: Callable[[OpenAI], T]) -> T:
        import openai

        from models.client.errors import translated

        client = self._clients.get(access.base_url, access.api_key)
        secret = access.api_key.get_secret_value() if access.api_key is not None else ""

        def once() -> T:
            try:
                return work(client)
            except (openai.OpenAIError, ValueError) as error:  # ValueError: a body that is not JSON
                raise translated(error, url=access.base_url, secret=secret) from None

        return with_retries(once, self._limits, sleep=time.sleep)


def _listed(client: OpenAI, job: BatchJob) -> Batch | None:
    seen: set[str] = set()
    for batch in client.batches.list(limit=100):
        if batch.id in seen:  # a server that knows no pages gives the first one for ever
            return None
        seen.add(batch.id)
        named = (batch.metadata or {}).get(_NAME) == job.job_id
        if named or (job.file_id and batch.input_file_id == job.file_id):
            return batch
    return None


def reply_of(row: dict[str, Any], line: BatchLine, access: ResolvedModel) -> Reply:
    """The reply in a line of an output file. Raises Transient (ask again) or ModelRefused."""
    from openai.types.chat import ChatCompletion

    response = row.get("response")
    status = response.get("status_code") if isinstance(response, dict) else None
    body = response.get("body") if isinstance(response, dict) else None
    if not isinstance(status, int):
        error = row.get("error")
        code, message = (error.get("code"), error.get("message")) if isinstance(error, dict) else ("", error)
        text = _shown(f"{access.base_url}: {code or 'no response'}: {message}", access)
        raise Transient(text, reason=str(code or "no_response")[:48])
    if status != 200:
        raise _refusal(status, body, access)
    price = Price.model_validate(line.price) if line.price is not None else None
    try:
        completion = ChatCompletion.construct(**(body or {}))  # as the package reads it: nothing is required
        reply = read_completion(completion, replace(access, price=price), 0.0)
        if not (isinstance(reply.raw, str) and isinstance(reply.tokens_in + reply.tokens_out, int)):
            raise TypeError("content or usage of an unknown kind")
    except (AttributeError, TypeError, LookupError) as error:
        raise Transient(f"{access.base_url}: malformed: {error}", reason="malformed", billed=True) from error
    return reply


def _refusal(status: int, body: Any, access: ResolvedModel) -> ModelError:
    """The error that the same status would be outside a batch."""
    import openai
    from httpx2 import Request, Response

    from models.client.errors import translated

    inner = body.get("error", body) if isinstance(body, dict) else body
    message = str(inner.get("message", inner)) if isinstance(inner, dict) else str(inner)
    secret = access.api_key.get_secret_value() if access.api_key is not None else ""
    response = Response(status, request=Request("POST", access.base_url))
    error = openai.APIStatusError(message, response=response, body=inner)
    return translated(error, url=access.base_url, secret=secret)


def problems_of(batch: Batch, access: ResolvedModel) -> str:
    """What the endpoint says is wrong with a whole job, in words."""
    found = batch.errors.data if batch.errors is not None and batch.errors.data else []
    return "; ".join(_shown(f"{problem.code}: {problem.message}", access) for problem in found[:3])


def _shown(message: str, access: ResolvedModel) -> str:
    from models.client.errors import shown

    return shown(message, access.api_key.get_secret_value() if access.api_key is not None else "")


def failures_of(
    batch: Batch, keys: Sequence[str], access: ResolvedModel
) -> tuple[ModelError | None, dict[str, ModelError]]:
    """Why no line of a job was answered (None: they were), and why the endpoint refused single lines of its file."""
    if batch.status == "completed":
        return None, {}
    if batch.status != "failed":
        word = f"batch_{batch.status}"
        return Transient(f"{access.base_url}: the job {batch.status}", reason=word), {}
    single: dict[str, ModelError] = {}
    text = f"{access.base_url}: the job failed: {problems_of(batch, access)}"
    whole: ModelError = Transient(text, reason="batch_failed")
    for problem in batch.errors.data or [] if batch.errors is not None else []:
        body = {"message": problem.message, "code": problem.code}
        if problem.code in _SETTING_CODES:
            whole = _refusal(_SETTING_CODES[problem.code], body, access)
        elif problem.line is not None and 0 < problem.line <= len(keys):
            single[keys[problem.line - 1]] = _refusal(400, body, access)
    return whole, single
