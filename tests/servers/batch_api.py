"""The batch API of the scripted model server: ``/v1/files``, ``/v1/batches`` and what can go wrong with them.

Each line of a job is asked of the server's own ``/v1/chat/completions`` over HTTP, so
that script, faults and counters of ``ModelServer`` hold for it as for any call.

    with ModelServer({"score": 4}) as server:
        server.batch_api.plans = [Plan(duplicates=2), Plan(expire_after=10)]  # first job, second job

Source: OpenAI API reference, objects ``file`` and ``batch``, batch input and output lines.
"""

from __future__ import annotations

import http.client
import json
import re
import threading
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, urlsplit

if TYPE_CHECKING:
    from tests.servers.model_server import ModelServer


@dataclass
class Plan:
    """How one job goes: looks before it is over, lines that are lost, doubled, broken, or never worked on."""

    looks: int = 0
    duplicates: int = 0
    missing: int = 0
    unknown: int = 0
    malformed: int = 0
    broken_body: int = 0
    cut: bool = False  # the output file ends in the middle of its last line, each time it is read
    cut_once: bool = False
    expire_after: int | None = None
    fail: dict[str, Any] | None = None  # an entry of batch.errors; nothing is worked on
    silent_looks: int = 0  # looks that are answered with 503
    create_fails: bool = False  # the job is created, the reply says 500


@dataclass
class Job:
    """A job at the server."""

    id: str
    number: int
    file_id: str
    metadata: dict[str, str]
    plan: Plan
    status: str = "in_progress"
    output: list[bytes] = field(default_factory=list)
    errors: list[bytes] = field(default_factory=list)
    total: int = 0
    answered: int = 0
    looks: int = 0
    worker: threading.Thread | None = None


class BatchApi:
    """Files and jobs of a server. ``paid`` counts answers by custom id; ``at`` is called before each reply.

    The moments of ``at``: uploaded, created, looked, read.
    """

    def __init__(self, server: ModelServer) -> None:
        self.plans: list[Plan] = []
        self.supported = True
        self.listed = True  # whether GET /v1/batches shows jobs
        self.keeps_metadata = True
        self.page = 100
        self.at: Callable[[str], None] = lambda moment: None
        self.jobs: dict[str, Job] = {}
        self.files: dict[str, bytes] = {}
        self.paid: Counter[str] = Counter()
        self.seen: list[str] = []  # "POST /v1/batches" and so on
        self._server = server
        self._lock = threading.Lock()

    def handles(self, path: str) -> bool:
        """Whether a path belongs to the batch API."""
        return re.match(r"/v1/(files|batches)(/|\?|$)", path) is not None

    def lines(self, number: int) -> list[dict[str, Any]]:
        """The lines that the client sent for a job; jobs count from 1."""
        job = next(job for job in self.jobs.values() if job.number == number)
        return [json.loads(line) for line in self.files[job.file_id].splitlines()]

    def finish(self) -> None:
        """Wait until every job is worked on, also those whose client is gone."""
        for job in list(self.jobs.values()):
            if job.worker is not None:
                job.worker.join(30)

    def get(self, handler: Any) -> None:
        """Answer a GET."""
        path = self._note(handler, "GET")
        if self._refused(handler):
            return
        if not self.supported:
            handler._error(404, "no such path", "not_found")
        elif path == "/v1/batches":
            self._list(handler)
        elif found := re.fullmatch(r"/v1/files/([\w-]+)/content", path):
            self._content(handler, found[1])
        elif (found := re.fullmatch(r"/v1/batches/([\w-]+)", path)) and found[1] in self.jobs:
            self._look(handler, self.jobs[found[1]])
        else:
            handler._error(404, f"no such object: {path}", "not_found")

    def post(self, handler: Any, raw: bytes) -> None:
        """Answer a POST."""
        path = self._note(handler, "POST")
        if self._refused(handler):
            return
        if not self.supported:
            handler._error(404, "no such path", "not_found")
        elif path == "/v1/files":
            self._upload(handler, raw)
        elif path == "/v1/batches":
            self._create(handler, json.loads(raw))
        elif (found := re.fullmatch(r"/v1/batches/([\w-]+)/cancel", path)) and found[1] in self.jobs:
            job = self.jobs[found[1]]
            if job.status == "in_progress":
                job.status = "cancelling"
                job.plan.looks = min(job.plan.looks, job.looks + 1)
            handler._json(200, self._shown(job))
        else:
            handler._error(404, f"no such object: {path}", "not_found")

    def _refused(self, handler: Any) -> bool:
        wanted = self._server.api_key
        if wanted and handler.headers.get("Authorization") != f"Bearer {wanted}":
            handler._error(401, "Incorrect API key provided", "invalid_api_key")
            return True
        return False

    def _note(self, handler: Any, method: str) -> str:
        path: str = urlsplit(handler.path).path
        with self._lock:
            self.seen.append(f"{method} {path}")
        return path

    def _upload(self, handler: Any, raw: bytes) -> None:
        boundary = re.search(r"boundary=([^;\s]+)", handler.headers["Content-Type"])
        assert boundary is not None
        fields: dict[str, bytes] = {}
        for part in raw.split(b"--" + boundary[1].strip('"').encode()):
            head, _, body = part.partition(b"\r\n\r\n")
            name = re.search(rb'name="(\w+)"', head)
            if name:
                fields[name[1].decode()] = body.removesuffix(b"\r\n")
        if fields.get("purpose") != b"batch":
            handler._error(400, "purpose must be batch", None)
            return
        with self._lock:
            file_id = f"file-{len(self.files) + 1}"
            self.files[file_id] = fields["file"]
        self.at("uploaded")
        handler._json(
            200,
            {
                "id": file_id,
                "object": "file",
                "bytes": len(fields["file"]),
                "created_at": 0,
                "filename": "x.jsonl",
                "purpose": "batch",
                "status": "processed",
            },
        )

    def _create(self, handler: Any, body: dict[str, Any]) -> None:
        if body["completion_window"] != "24h" or body["input_file_id"] not in self.files:
            handler._error(400, "wrong window or unknown file", None)
            return
        with self._lock:
            number = len(self.jobs) + 1
            plan = self.plans[number - 1] if number <= len(self.plans) else Plan()
            metadata = body.get("metadata", {}) if self.keeps_metadata else {}
            job = Job(f"batch_{number}", number, body["input_file_id"], metadata, plan)
            self.jobs[job.id] = job
        key = handler.headers.get("Authorization", "")
        job.worker = threading.Thread(target=self._work, args=(job, key), daemon=True)
        job.worker.start()
        self.at("created")
        if plan.create_fails:
            handler._error(500, "created, but you shall not know", None)
        else:
            handler._json(200, self._shown(job))

    def _list(self, handler: Any) -> None:
        query = parse_qs(urlsplit(handler.path).query)
        jobs = sorted(self.jobs.values(), key=lambda job: -job.number) if self.listed else []
        if "after" in query:
            at = [job.id for job in jobs].index(query["after"][0])
            jobs = jobs[at + 1 :]
        page = jobs[: min(int(query.get("limit", ["20"])[0]), self.page)]
        handler._json(
            200,
            {
                "object": "list",
                "data": [self._shown(job) for job in page],
                "has_more": len(page) < len(jobs),
            },
        )

    def _look(self, handler: Any, job: Job) -> None:
        job.looks += 1
        self.at("looked")
        if job.looks <= job.plan.silent_looks:
            handler._error(503, "overloaded", None)
            return
        if job.looks > job.plan.looks and job.worker is not None:
            job.worker.join(30)
            job.status = self._final(job)
        handler._json(200, self._shown(job))

    def _content(self, handler: Any, file_id: str) -> None:
        if file_id not in self.files:
            handler._error(404, f"no such file: {file_id}", "not_found")
            return
        data = self.files[file_id]
        job = next((job for job in self.jobs.values() if file_id == f"out-{job.number}"), None)
        if job is not None and (job.plan.cut or job.plan.cut_once) and data:
            job.plan.cut_once = False
            data = data[: len(data) - len(data.splitlines()[-1]) // 2 - 1]
        self.at("read")
        handler._send(200, data, "application/octet-stream")

    def _final(self, job: Job) -> str:
        if job.plan.fail is not None:
            return "failed"
        if job.status in ("cancelling", "cancelled"):
            return "cancelled"
        return "expired" if job.plan.expire_after is not None else "completed"

    def _work(self, job: Job, key: str) -> None:
        lines = [json.loads(line) for line in self.files[job.file_id].splitlines()]
        job.total = len(lines)
        if job.plan.fail is not None:
            return
        address = urlsplit(self._server.base_url)
        connection = http.client.HTTPConnection(address.hostname or "", address.port, timeout=30)
        last = len(lines) if job.plan.expire_after is None else job.plan.expire_after
        for line in lines[:last]:
            row, answered = self._ask(connection, line, key)
            (job.output if answered else job.errors).append(json.dumps(row, ensure_ascii=False).encode())
        for line in lines[last:]:
            error = {"code": "batch_expired", "message": "This request could not be executed in time."}
            job.errors.append(
                json.dumps({"custom_id": line["custom_id"], "response": None, "error": error}).encode()
            )
        connection.close()
        job.answered = len(job.output)
        self._spoil(job)
        self.files[f"out-{job.number}"] = b"".join(line + b"\n" for line in job.output)
        self.files[f"err-{job.number}"] = b"".join(line + b"\n" for line in job.errors)

    def _ask(
        self, connection: http.client.HTTPConnection, line: dict[str, Any], key: str
    ) -> tuple[dict[str, Any], bool]:
        row: dict[str, Any] = {
            "id": f"req-{line['custom_id']}",
            "custom_id": line["custom_id"],
            "error": None,
        }
        data = json.dumps(line["body"]).encode()
        try:
            connection.request(
                line["method"], line["url"], data, {"Content-Type": "application/json", "Authorization": key}
            )
            reply = connection.getresponse()
            body = json.loads(reply.read())
        except (OSError, http.client.HTTPException, ValueError) as error:
            connection.close()
            return row | {"response": None, "error": {"code": "server_error", "message": str(error)}}, False
        row["response"] = {"status_code": reply.status, "request_id": "r", "body": body}
        if reply.status == 200:
            with self._lock:
                self.paid[line["custom_id"]] += 1
        return row, reply.status == 200

    def _spoil(self, job: Job) -> None:
        plan, output = job.plan, job.output
        del output[: plan.missing]
        doubled = [json.loads(line) for line in output[: plan.duplicates]]
        for row in doubled:  # another answer to the same question, which must not win
            row["response"]["body"]["choices"][0]["message"]["content"] = '{"score": 0, "note": "second"}'
        for at in range(plan.malformed):
            output[-1 - at] = output[-1 - at][: len(output[-1 - at]) // 2]
        for at in range(plan.broken_body):
            row = json.loads(output[at])
            row["response"]["body"] = {"choices": [{}]}
            output[at] = json.dumps(row).encode()
        output += [json.dumps(row).encode() for row in doubled]
        for at in range(plan.unknown):
            row = json.loads(output[0]) | {"custom_id": f"unknown-{at}"}
            output.insert(0, json.dumps(row).encode())

    def _shown(self, job: Job) -> dict[str, Any]:
        final = job.status in ("completed", "expired", "cancelled")
        return {
            "id": job.id,
            "object": "batch",
            "endpoint": "/v1/chat/completions",
            "input_file_id": job.file_id,
            "completion_window": "24h",
            "created_at": 0,
            "status": job.status,
            "metadata": job.metadata,
            "output_file_id": f"out-{job.number}" if final and job.output else None,
            "error_file_id": f"err-{job.number}" if final and job.errors else None,
            "errors": {"object": "list", "data": [job.plan.fail]} if job.status == "failed" else None,
            "request_counts": {
                "total": job.total,
                "completed": job.answered if final else min(job.looks, job.answered),
                "failed": len(job.errors) if final else 0,
            },
        }
