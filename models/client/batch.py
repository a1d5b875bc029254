"""The batch API as a transport: questions travel in files, answers are collected later.

A question that the store cannot answer is queued and ``AnswerDeferred`` is raised.
``BatchQueue.work_off`` sends the queue as jobs, waits for them and stores the raw
answers; whoever asked asks again and finds them. What a job left unanswered is
released, so that asking again queues it again.

The order of the writes makes a kill at any moment harmless: a job is recorded with
its questions before it is sent; answers are stored before their questions are
released; and a recorded job of unknown fate is looked for at the endpoint, by the
name it was given there, before anything of it is sent a second time.
"""

from __future__ import annotations

import json
import logging
import os
import re
import threading
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from tempfile import SpooledTemporaryFile, TemporaryFile
from typing import IO, TYPE_CHECKING, Any, NoReturn, cast

from models.client.batch_api import ENDPOINT, BatchApi, failures_of, problems_of, reply_of
from models.client.budget import Budgets, Spending
from models.client.cache import answer_of
from models.client.call import Call, Transient
from models.client.http import Clients, Dialect, Format, HttpLayer, request_body, simpler
from models.errors import (
    AnswerDeferred,
    BudgetExhausted,
    EndpointDown,
    ModelError,
    ModelRefused,
    ModelUnavailable,
)
from models.protocols import AnswerStore, BatchJob, BatchLine, BatchStore
from models.settings import Limits, ModelSettings, ResolvedModel
from models.usage import Usage

if TYPE_CHECKING:
    from openai.types import Batch

logger = logging.getLogger(__name__)

Tell = Callable[[str], None]
"""Gets lines for people."""
Wait = Callable[[float], object]
"""Waits for seconds; true where the waiting is to end."""

_FINAL = frozenset({"completed", "failed", "expired", "cancelled"})
_LONGEST_PAUSE_S = 300.0
_IN_MEMORY = 32_000_000  # bytes of the queue that stay out of the file system
_READS = 2  # of an output file that holds less than its job says
_SETTLED_AT_ONCE = 200
_FORM = re.compile(r"response_format|json[_ ]?(schema|object|mode)|max_completion_tokens", re.I)


@dataclass(frozen=True)
class _Queued(Call):
    """A call whose text waits in the spool; what budget and records need of it."""

    own_key: str = ""
    size: int = 0
    form: Dialect = field(default_factory=Dialect)
    start: int = 0
    length: int = 0

    def key(self) -> str:
        return self.own_key

    def worst_tokens_in(self) -> int:
        return self.size


@dataclass
class _Tally:
    """What the files of a job held: answers and refusals by key, and lines that are neither."""

    answered: dict[str, None] = field(default_factory=dict)  # in the order of the file
    errors: dict[str, ModelError] = field(default_factory=dict)
    seen: set[str] = field(default_factory=set)
    duplicates: int = 0
    unknown: int = 0
    malformed: int = 0

    def oddities(self) -> str:
        """The lines that should not be there, in words."""
        counts = {"duplicated": self.duplicates, "of unknown id": self.unknown, "malformed": self.malformed}
        return ", ".join(f"{n} {what}" for what, n in counts.items() if n)


class BatchQueue:
    """The queue of one run and the life of its jobs. ``ask`` may be called from any thread."""

    def __init__(
        self,
        settings: ModelSettings,
        clients: Clients,
        http: HttpLayer,
        answers: AnswerStore,
        store: BatchStore,
        budgets: Budgets,
        usage: Usage,
    ) -> None:
        self._settings = settings
        self._http = http
        self._answers = answers
        self._store = store
        self._budgets = budgets
        self._usage = usage
        self._api = BatchApi(clients, settings.limits)
        self._lock = threading.Lock()
        self._taking = False
        self._queue: dict[str, _Queued] = {}
        self._spool = _new_spool()
        self._jobs: dict[str, str] = {}  # key -> unfinished job that holds it
        self._awaited: set[str] = set()  # jobs whose answers somebody asked for
        self._held: dict[str, tuple[_Queued, Spending]] = {}
        self._failures: dict[str, int] = {}
        self._ended: dict[str, ModelError] = {}  # no further attempt in this run
        self._fresh: set[str] = set()
        self._fruitless = 0  # rounds in a row without an answer
        self._missed = 0  # looks in a row that the endpoint did not answer

    # --- asking -----------------------------------------------------------------

    @contextmanager
    def taking(self, tell: Tell) -> Iterator[None]:
        """For a run, which will ``work_off``: collect what earlier runs left open, then take questions."""
        self.collect(tell)
        self._taking = True
        try:
            yield
        finally:
            self._taking = False
            self._forget_run()

    def _forget_run(self) -> None:
        """Questions that were not sent and what was given up end with the run; jobs stay recorded, and paid."""
        for key, (_, reserved) in list(self._held.items()):
            self._settle_budget(key, reserved)
        with self._lock:
            self._queue.clear()
            self._spool.close()
            self._spool = _new_spool()
            self._jobs.clear()
            self._awaited.clear()
            self._failures.clear()
            self._ended.clear()
            self._fruitless = self._missed = 0

    def takes(self, call: Call) -> bool:
        """Whether a call travels this way. Outside a run nobody would wait for the answer."""
        return self._taking and call.model.transport == "batch"

    def ask(self, call: Call) -> NoReturn:
        """Queue a question, once. Raises AnswerDeferred, or what became of it where this run gave it up."""
        key = call.key()
        with self._lock:
            ended = self._ended.get(key)
            known = key in self._queue or key in self._jobs
            if key in self._jobs:
                self._awaited.add(self._jobs[key])
        if ended is not None:
            raise type(ended)(str(ended), reason=ended.reason)
        if not known:
            self._enqueue(key, call)
        raise AnswerDeferred(f"{call.skill}: the question waits for a batch job")

    def waits(self, key: str) -> bool:
        """Whether this question was asked in this run and has no answer yet."""
        with self._lock:
            return key in self._queue or key in self._jobs or key in self._ended

    def collected(self, key: str) -> bool:
        """Whether an answer came by a job of this run and was not handed out before; true once."""
        with self._lock:
            fresh = key in self._fresh
            self._fresh.discard(key)
            return fresh

    def _enqueue(self, key: str, call: Call) -> None:
        form = self._http.dialect(call.model)
        line = {"custom_id": key, "method": "POST", "url": ENDPOINT, "body": request_body(call, form)}
        data = json.dumps(line, ensure_ascii=False).encode() + b"\n"
        price = call.model.price.for_batch() if call.model.price is not None else None
        with self._lock:
            if key in self._queue:
                return
            start = self._spool.seek(0, os.SEEK_END)
            self._spool.write(data)
            self._queue[key] = _Queued(
                call.skill,
                call.skill_version,
                (),
                replace(call.model, price=price),
                call.output,
                call.draw,
                own_key=key,
                size=call.worst_tokens_in(),
                form=form,
                start=start,
                length=len(data),
            )

    # --- sending ----------------------------------------------------------------

    def work_off(self, tell: Tell, wait: Wait) -> None:
        """Send what was asked, wait until all jobs that hold an asked question are over, store the answers.

        Returns early where ``wait`` says so. Raises BudgetExhausted where the budget
        allows none of the questions, EndpointDown where the endpoint stays away,
        ModelRefused where it has no batch API or refuses the key. Jobs that are
        open then stay open.
        """
        if self._fruitless and wait(
            min(self._limits.poll_s * 2.0 ** (self._fruitless - 1), _LONGEST_PAUSE_S)
        ):
            return
        self._submit(tell)
        answers_before, pause = len(self._fresh), self._limits.poll_s
        while True:
            for job_id in sorted(self._awaited):
                self._look(job_id, tell)
            if not self._awaited:
                break
            if wait(pause):
                return
            pause = min(1.5 * pause, max(_LONGEST_PAUSE_S, self._limits.poll_s))
        self._fruitless = 0 if len(self._fresh) > answers_before else self._fruitless + 1

    def jobs(self, *, ended: bool = False) -> list[BatchJob]:
        """Jobs that are not over (with ``ended`` all jobs), oldest first."""
        return self._store.jobs(ended=ended)

    @property
    def _limits(self) -> Limits:
        return self._settings.limits

    def _submit(self, tell: Tell) -> None:
        with self._lock:
            queued, self._queue = list(self._queue.values()), {}
            spool, self._spool = self._spool, _new_spool()
        short: BudgetExhausted | None = None
        with spool:
            for part in self._parts(queued):
                fitting: list[_Queued] = []
                for line in part:
                    try:  # waiting for lines in flight would be for ever: this thread collects them
                        self._held[line.own_key] = line, self._budgets.reserve(line, wait=False)
                        fitting.append(line)
                    except BudgetExhausted as error:
                        short = short or error
                if fitting:
                    self._send(fitting, spool, tell)
        if short is not None and not self._awaited:
            raise short

    def _parts(self, queued: Sequence[_Queued]) -> Iterator[list[_Queued]]:
        """One endpoint, key and model a file, within the limits of a file."""
        groups: dict[tuple[str, str, str], list[_Queued]] = {}
        for line in queued:
            secret = line.model.api_key.get_secret_value() if line.model.api_key is not None else ""
            groups.setdefault((line.model.base_url, secret, line.model.model), []).append(line)
        most = self._limits.batch_mb * 1_000_000
        for group in groups.values():
            part: list[_Queued] = []
            size = 0
            for line in group:
                if part and (len(part) >= self._limits.batch_lines or size + line.length > most):
                    yield part
                    part, size = [], 0
                part.append(line)
                size += line.length
            yield part

    def _send(self, lines: Sequence[_Queued], spool: IO[bytes], tell: Tell) -> None:
        """Record a job of lines that the budget holds room for, upload, create. Raises what the endpoint answers, after the claim is undone."""
        model = lines[0].model
        job = BatchJob(
            job_id=uuid.uuid4().hex,
            base_url=model.base_url,
            model=model.model,
            skills=sorted({line.skill for line in lines}),
            total=len(lines),
        )
        claimed = self._store.claim(job, [_record(line, n) for n, line in enumerate(lines, 1)])
        for key in (line.own_key for line in lines if line.own_key not in claimed):
            self._settle_budget(key, Spending())
        self._held_elsewhere([line.own_key for line in lines if line.own_key not in claimed])
        mine = [line for line in lines if line.own_key in claimed]
        if not mine:
            return
        with self._lock:
            self._jobs |= dict.fromkeys(claimed, job.job_id)
            self._awaited.add(job.job_id)
        try:
            with TemporaryFile() as file:
                for line in mine:
                    spool.seek(line.start)
                    file.write(spool.read(line.length))
                job.file_id = self._api.upload(model, job, file)
            self._store.save(job)
            batch = self._api.create(model, job)
        except ModelError as error:
            if job.file_id and error.transient and not isinstance(error, ModelRefused):
                raise  # it may exist: the job stays recorded and is looked for by the next run
            self._give_up(job, f"not created: {error}")
            raise
        job.batch_id, job.state, job.status = batch.id, "open", batch.status
        self._store.save(job)
        tell(f"{_named(job)}: {job.total:,} sent to {job.model} at {job.base_url} ({', '.join(job.skills)})")

    def _held_elsewhere(self, keys: Sequence[str]) -> None:
        """Questions that a job of another process holds are waited for, not sent."""
        holders = self._store.holders(keys)
        with self._lock:
            self._jobs |= holders
            self._awaited |= set(holders.values())

    def _give_up(self, job: BatchJob, why: str) -> None:
        keys = [line.key for line in self._store.lines(job.job_id)]
        self._store.settle(job.job_id, keys)  # first: lines of a finished job would be held for ever
        job.state, job.detail = "given_up", why
        self._store.save(job)
        for key in keys:
            self._settle_budget(key, Spending())
        self._forget(job.job_id)

    def _forget(self, job_id: str) -> None:
        with self._lock:
            self._awaited.discard(job_id)
            self._jobs = {key: holder for key, holder in self._jobs.items() if holder != job_id}

    def _settle_budget(self, key: str, used: Spending) -> None:
        held = self._held.pop(key, None)
        if held is not None:
            self._budgets.settle(held[0], held[1], used)

    # --- looking ----------------------------------------------------------------

    def collect(self, tell: Tell) -> list[BatchJob]:
        """Look once at every unfinished job and collect those that are over; returns all that were unfinished.

        A job that cannot be asked for is left as it is, and that is told.
        """
        found = self._store.jobs()
        for job in found:
            with self._lock:
                self._jobs |= {line.key: job.job_id for line in self._store.lines(job.job_id)}
            try:
                self._look(job.job_id, tell)
            except ModelError as error:
                tell(f"{_named(job)}: left open, {error}")
        return [self._store.job(job.job_id) or job for job in found]

    def cancel(self, job_id: str, tell: Tell) -> None:
        """Cancel a job at its endpoint; what it has answered stays, a run that waits for the rest goes without it.

        It needs no lease: the job is only marked and is collected by the next look
        at it. Raises ModelRefused for a job that is not open and for one whose
        endpoint no setting names.
        """
        job = self._unfinished(job_id)
        if job.state == "submitting":
            raise ModelRefused(
                f"{_named(job)} is being sent, or its process died: hchem models batches collect finds out",
                reason="job",
            )
        access = self._access(job)
        job.state = "cancelling"
        self._store.save(job)
        self._api.cancel(access, job)
        tell(f"{_named(job)}: cancelled; what was answered is collected by the run or by `batches collect`")

    def give_up(self, job_id: str) -> None:
        """Forget a job without asking its endpoint: its questions may be asked, and paid, again.

        Raises ModelRefused for an unknown or finished job.
        """
        self._give_up(self._unfinished(job_id), "given up by hand")

    def _unfinished(self, job_id: str) -> BatchJob:
        job = self._store.job(job_id)
        if job is None or job.ended:
            word = "finished" if job is not None else "unknown"
            raise ModelRefused(f"batch job {job_id[:8]} is {word}", reason="job")
        return job

    def _look(self, job_id: str, tell: Tell) -> None:
        """Ask for a job's state and collect it when it is over; a failure of the endpoint is told and may pass."""
        job = self._store.job(job_id)
        if job is None or job.ended:  # another process collected it or gave it up
            self._forget(job_id)
            return
        access = self._access(job)
        try:
            self._follow(job, access, tell)
        except ModelUnavailable as error:
            self._missed += 1
            if self._missed >= self._limits.give_up_after:
                raise EndpointDown(
                    f"{_named(job)} stays open, its endpoint does not answer: {error}", reason="endpoint_down"
                ) from error
            tell(f"{_named(job)}: no answer from its endpoint, looking again ({error})")
        except ModelRefused as error:
            raise ModelRefused(
                f"{_named(job)} stays open: {error}. If it is lost: hchem models batches cancel {job.job_id[:8]} "
                "--forget",
                reason=error.reason,
            ) from error
        else:
            self._missed = 0

    def _follow(self, job: BatchJob, access: ResolvedModel, tell: Tell) -> None:
        if job.state == "submitting":
            batch = self._adopted(job, access, tell)
            if batch is None:
                return
        else:
            batch = self._api.retrieve(access, job)
        before = job.status, job.answered, job.failed
        counts = batch.request_counts
        job.status = batch.status
        if counts is not None:
            job.answered, job.failed = counts.completed, counts.failed
        if batch.status in _FINAL:
            self._collect(job, batch, access, tell)
        elif before != (job.status, job.answered, job.failed):
            self._store.save(job)
            tell(f"{_named(job)}: {job.answered:,} of {job.total:,} answered ({job.status})")

    def _adopted(self, job: BatchJob, access: ResolvedModel, tell: Tell) -> Batch | None:
        """Find a job that was recorded and not seen created: its process died, or is at it now.

        A young one may exist and not be listed yet.
        """
        batch = self._api.find(access, job)
        if batch is not None:
            job.batch_id, job.state = batch.id, "open"
            self._store.save(job)
            tell(f"{_named(job)}: found at the endpoint ({batch.status})")
            return batch
        young = (datetime.now(UTC) - job.created_at).total_seconds() < self._limits.poll_s
        if not young and not self._store.is_sending(job.job_id):
            self._give_up(job, "never created")
            tell(f"{_named(job)}: was never created, its {job.total:,} questions are asked again")
        return None

    def _access(self, job: BatchJob) -> ResolvedModel:
        """Endpoint and key of a job: those of its skills, else of any skill at the same address."""
        there = {
            name: model
            for name, model in self._settings.configured().items()
            if model.base_url == job.base_url
        }
        for name in [*job.skills, *there]:
            if name in there:
                return there[name]
        raise ModelRefused(
            f"{_named(job)} is at {job.base_url}, which no skill uses now: set models.base_url to it and run "
            f"`hchem models batches collect`, or give its answers up: `hchem models batches cancel "
            f"{job.job_id[:8]} --forget`",
            reason="settings",
        )

    # --- collecting -------------------------------------------------------------

    def _collect(self, job: BatchJob, batch: Batch, access: ResolvedModel, tell: Tell) -> None:
        lines = {line.key: line for line in self._store.lines(job.job_id)}
        counts = batch.request_counts
        expected = counts.completed + counts.failed if counts is not None else 0
        already = job.total - len(lines)  # settled by a process that died while collecting
        tally = _Tally()
        for _ in range(_READS):  # a cut or damaged transfer is read again
            tally = _Tally(answered=tally.answered, errors=tally.errors)
            for file_id in filter(None, (batch.output_file_id, batch.error_file_id)):
                for row in self._api.rows(access, file_id):
                    self._take(job, lines, row, access, tally)
            if not tally.malformed and len(tally.seen) >= expected:
                break
        self._store.settle(job.job_id, list(tally.answered))
        self._sort_failures(job, batch, lines, tally, access)
        self._store.settle(job.job_id, [key for key in lines if key not in tally.answered])
        job.answered = already + len(tally.answered)
        job.failed, job.state = job.total - job.answered, "collected"
        job.detail = "; ".join(filter(None, (problems_of(batch, access), tally.oddities())))
        self._store.save(job)
        self._forget(job.job_id)
        odd = f"; lines ignored: {tally.oddities()}" if tally.oddities() else ""
        tell(f"{_named(job)}: {job.status}, {job.answered:,} of {job.total:,} answered{odd}")

    def _take(
        self, job: BatchJob, lines: dict[str, BatchLine], row: Any, access: ResolvedModel, tally: _Tally
    ) -> None:
        """Store the answer in a line of a file; the first answer to a question counts."""
        key = row.get("custom_id") if isinstance(row, dict) else None
        if not isinstance(key, str):
            tally.malformed += 1
            return
        if key in tally.seen:
            tally.duplicates += 1
        line = lines.get(key)
        if line is None and self._answers.get(key) is None:
            tally.unknown += 1
            logger.warning("%s: a line answers the unknown question %s", _named(job), key[:40])
            return
        tally.seen.add(key)
        if line is None or key in tally.answered:  # stored before a kill, or by an earlier line or read
            return
        try:
            reply = reply_of(row, line, access)
        except ModelError as error:
            tally.malformed += error.reason == "malformed"
            tally.errors.setdefault(key, error)
            return
        tally.answered[key] = None
        known = self._answers.get(key)
        if known is None or known.state == "refused":
            self._answers.put(answer_of(key, line, job.model, line.parameters, reply))
        self._usage.reply(line.skill, reply)
        self._settle_budget(key, Spending(1, reply.tokens_in + reply.tokens_out, reply.cost))
        with self._lock:
            self._fresh.add(key)
        if len(tally.answered) % _SETTLED_AT_ONCE == 0:
            self._store.settle(job.job_id, list(tally.answered)[-_SETTLED_AT_ONCE:])

    def _sort_failures(
        self,
        job: BatchJob,
        batch: Batch,
        lines: dict[str, BatchLine],
        tally: _Tally,
        access: ResolvedModel,
    ) -> None:
        """Decide for each question without an answer: ask again, ask in a simpler form, or give it up."""
        stopped = job.state == "cancelling"
        whole, single = failures_of(batch, list(lines), access)
        for key, line in lines.items():
            if key in tally.answered:
                continue
            error = tally.errors.get(key) or single.get(key) or whole
            if error is None:  # answered, says the job, and yet in no file
                text = f"{access.base_url}: the job's files hold no answer"
                error = Transient(text, reason="missing", billed=True)
            used = Spending(calls=int(key in tally.errors))
            if isinstance(error, Transient) and error.billed and key in self._held:
                used = self._held[key][1]
            self._settle_budget(key, used)
            if stopped:
                self._ended[key] = ModelUnavailable(f"{_named(job)} was cancelled", reason="cancelled")
            elif isinstance(error, Transient):
                self._failures[key] = self._failures.get(key, 0) + 1
                if self._failures[key] > self._limits.retries:
                    text = f"{error} (asked in {self._failures[key]} batch jobs)"
                    self._ended[key] = ModelUnavailable(text, reason=error.reason)
            elif not self._simplified(line, error, replace(access, model=job.model)):
                self._ended[key] = error

    def _simplified(self, line: BatchLine, error: ModelError, model: ResolvedModel) -> bool:
        """Whether a refusal of the request's form was met by learning a simpler one."""
        if not isinstance(error, ModelRefused) or not _FORM.search(str(error)):
            return False
        asked = Dialect(cast(Format, line.form["format"]), cast(Any, line.form["limit"]))
        following = simpler(asked, error)
        if following is None:
            return False
        if self._http.dialect(model) == asked:
            self._http.learn(model, following)
        return True


def _new_spool() -> IO[bytes]:
    return cast("IO[bytes]", SpooledTemporaryFile(max_size=_IN_MEMORY))


def _named(job: BatchJob) -> str:
    return f"batch job {job.job_id[:8]}"


def _record(line: _Queued, position: int) -> BatchLine:
    return BatchLine(
        key=line.own_key,
        skill=line.skill,
        skill_version=line.skill_version,
        draw=line.draw,
        parameters=line.model.parameters(),
        form={"format": line.form.format, "limit": line.form.limit},
        price=line.model.price.model_dump() if line.model.price is not None else None,
        position=position,
    )
