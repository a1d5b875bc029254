"""A step whose questions travel by the batch API: same result as online, kills, interrupts, budget, commands."""

from __future__ import annotations

import json
import multiprocessing
import os
import re
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select
from typer.testing import CliRunner

from corpus.catalogue import Catalogue
from corpus.catalogue.stores import CatalogueAnswers, CatalogueBatches
from corpus.catalogue.tables import Document, Failure, LedgerRow, ModelBatch, ModelBatchLine, ModelCall, Run
from corpus.curating.texts import ScoreStep
from corpus.errors import SettingsError, TransientError
from corpus.ids import digest
from corpus.quality import Score, ScoreDocument, ScoreGiven
from corpus.settings import CorpusSettings
from corpus.stages import Stage
from flows import execution
from flows.parameters import StageParameters
from flows.runtime import open_runtime
from flows.settings import Settings
from flows.stopping import RunStoppedError, Watch
from models import Models
from models.client.batch_api import BatchApi
from tests.servers.batch_api import Plan
from tests.servers.model_server import Answer, Fault, ModelServer, Request

pytestmark = pytest.mark.usefixtures("no_certificates")

STEP = "curate.score"
SHEETS = {
    "zh": "# 样品{n}安全技术说明书（虚构）\n\n## 9 理化特性\n\n样品{n}为无色液体，闪点 {f} ℃，沸点 {b} ℃，密度 0.79 g/cm³，易溶于水。\n\n"
    "## 4 急救措施\n\n吸入：迅速脱离现场至空气新鲜处，保持呼吸道通畅，立即就医。皮肤接触：用大量清水冲洗至少 15 分钟。\n\n"
    "## 5 消防措施\n\n用抗溶性泡沫、干粉、二氧化碳灭火。蒸气与空气可形成爆炸性混合物，遇明火、高热能引起燃烧爆炸。\n",
    "en": "# Safety data sheet of sample {n} (made up)\n\n## 9 Physical properties\n\nSample {n} is a colourless liquid, flash point "
    "{f} °C, boiling point {b} °C, density 0.79 g/cm3, miscible with water.\n\n## 4 First aid\n\nInhalation: move to fresh air, "
    "keep the airway clear, get medical help. Skin: rinse with plenty of water for 15 minutes.\n\n## 5 Fire fighting\n\nUse "
    "alcohol-resistant foam, dry powder or carbon dioxide. Vapour forms explosive mixtures with air; toxic by inhalation.\n",
}  # fmt: skip


def documents(count: int) -> list[Document]:
    """Made-up sheets, half Chinese, half English, as cleaning leaves them."""
    rows = []
    for n in range(count):
        language = "zh" if n % 2 else "en"
        text = SHEETS[language].format(n=1000 + n, f=10 + n % 60, b=60 + n)
        rows.append(
            Document(
                document_id=f"d{n:04}", page_id=f"p{n:04}", source="made-up", url=f"https://x.example/{n}",
                identity=f"https://x.example/{n}", title=text.splitlines()[0].lstrip("# "), language=language,
                state="kept", cleaned_text=text, cleaned_hash=digest("text", text), score_parts={"page": {}},
            )
        )  # fmt: skip
    return rows


class Recording(ScoreDocument):
    """The rule's answers, by the number in the title."""

    def __init__(self) -> None:
        self.answers: dict[str, Score] = {}

    def offline(self, given: ScoreGiven) -> Score:
        answer = super().offline(given)
        self.answers[number_of(given.title)] = answer
        return answer


def number_of(text: str) -> str:
    found = re.search(r"(?:样品|sample )(\d+)", text)
    assert found is not None
    return found[1]


@pytest.fixture(scope="module")
def by_rule(template: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Score]:
    """What the rule says of every made-up document: answers that hold the check of a model's too."""
    folder = tmp_path_factory.mktemp("rule")
    fill(folder, template, 200)
    skill = Recording()
    with open_runtime(settings=settings_for(folder, None)) as runtime:
        step = ScoreStep(settings=CorpusSettings(), models=Models.offline(), skill=skill)
        runtime._stages["curate"] = Stage("curate", [step])
        with execution.session(runtime, "curate", StageParameters()) as current:
            execution.run_stage(current, "curate", execution.direct)
    assert len(skill.answers) == 200
    return skill.answers


def fill(folder: Path, template: Path, count: int) -> None:
    folder.mkdir(exist_ok=True)
    (folder / "catalogue.db").write_bytes(template.read_bytes())
    catalogue = Catalogue.open(f"sqlite:///{folder}/catalogue.db", migrate=False)
    with catalogue.writing() as db:
        db.add_all(documents(count))
    catalogue.close()


def settings_for(folder: Path, base_url: str | None, **models: Any) -> Settings:
    limits = {"poll_s": 0.02, "retries": 2, "pause_s": 0.005, "batch_lines": 5} | models.pop("limits", {})
    own = {"model": "m", "base_url": base_url, "transport": models.pop("transport", "batch")}
    skills = {"score_document": {k: v for k, v in own.items() if v}} if base_url else {}
    flows = {"retry_delay_s": 0, **models.pop("flows", {})}
    return Settings.model_validate(
        {
            "data_dir": folder,
            "models": {"skills": skills, "limits": limits, "api_key": None, **models},
            "flows": flows,
        }
    )


def score_step(settings: Settings) -> dict[str, Any]:
    """The step as a run of it does it, without the stage's other steps."""
    with open_runtime(settings=settings, run_id=execution.new_run_id()) as runtime:
        step = ScoreStep(settings=CorpusSettings(), models=runtime.models)
        runtime._stages["curate"] = Stage("curate", [step])
        with execution.session(runtime, "curate", StageParameters()) as current:
            report = execution.run_stage(current, "curate", execution.direct)[STEP]
        return {**report, "usage": runtime.models.usage()}


def contents(folder: Path) -> dict[str, str]:
    """Everything the step writes, but for run ids, moments and durations."""
    catalogue = Catalogue.open(f"sqlite:///{folder}/catalogue.db", migrate=False)
    left_out = {"run_id", "updated_at", "seconds", "at", "served"}
    found = {}
    with catalogue.reading() as db:
        for table in (Document, LedgerRow, ModelCall, Failure):
            columns = [c.key for c in table.__mapper__.column_attrs if c.key not in left_out]
            rows = [{name: getattr(row, name) for name in columns} for row in db.scalars(select(table))]
            found[table.__tablename__] = "\n".join(
                sorted(json.dumps(row, ensure_ascii=False, sort_keys=True, default=str) for row in rows)
            )
    catalogue.close()
    return found


def count(folder: Path, table: Any) -> int:
    catalogue = Catalogue.open(f"sqlite:///{folder}/catalogue.db", migrate=False)
    with catalogue.reading() as db:
        n = len(list(db.scalars(select(table))))
    catalogue.close()
    return n


def scored(folder: Path) -> int:
    catalogue = Catalogue.open(f"sqlite:///{folder}/catalogue.db", migrate=False)
    with catalogue.reading() as db:
        n = len(list(db.scalars(select(Document.document_id).where(Document.score_source == "m"))))
    catalogue.close()
    return n


Script = Callable[[Request], Answer]


@pytest.fixture
def script(by_rule: dict[str, Score]) -> Script:
    """The rule's answer; for some documents first one that cannot be read, or that leaves the scale."""

    def answer(request: Request) -> Answer:
        number = number_of(request.text)
        first = all(message["role"] != "assistant" for message in request.messages)
        if first and int(number) % 7 == 0:
            return '{"score": 4.0, "den'
        if first and int(number) % 11 == 0:
            return by_rule[number].model_dump() | {"score": 9.9}
        return by_rule[number]

    return answer


def asked_twice(count: int) -> int:
    return sum(n % 7 == 0 or n % 11 == 0 for n in range(1000, 1000 + count))


@pytest.fixture
def home(tmp_path: Path, template: Path) -> Callable[[str, int], Path]:
    def make(name: str, count: int) -> Path:
        fill(tmp_path / name, template, count)
        return tmp_path / name

    return make


# --- the same as online ------------------------------------------------------------------


def test_a_step_gives_the_same_bytes_as_online(
    home: Callable[[str, int], Path], script: Script, capsys: pytest.CaptureFixture[str]
) -> None:
    online, batch = home("online", 200), home("batch", 200)
    needed = 200 + asked_twice(200)
    with ModelServer(script) as server:
        first = score_step(settings_for(online, server.base_url, transport="online"))
        assert len(server.calls()) == needed
    with ModelServer(script) as server:
        server.batch_api.plans = [
            Plan(duplicates=3, unknown=1),
            Plan(missing=2, malformed=1),
            Plan(expire_after=20, looks=2),
            Plan(cut_once=True),
        ]
        second = score_step(settings_for(batch, server.base_url, limits={"batch_lines": 60}))
        paid = server.batch_api.paid
        assert len(paid) == needed
        assert sum(paid.values()) == needed + 3  # two lines and a damaged one were lost by the server
    assert first["states"] == second["states"] == {"kept": first["states"]["kept"], **second["states"]}
    assert sum(second["states"].values()) == second["pending"] == 200
    assert first["usage"]["calls"] == second["usage"]["calls"] == needed
    expected, found = contents(online), contents(batch)
    calls = [
        re.sub(r'"tokens_cached": \d+', "", part["model_calls"]) for part in (expected, found)
    ]  # the server's prefix cache depends on the order of the calls
    assert calls[0] == calls[1]
    for table in ("documents", "ledger", "failures"):
        assert found[table] == expected[table]
    assert '"score_source": "m"' in found["documents"]
    assert count(batch, ModelBatchLine) == 0
    shown = capsys.readouterr().err
    assert re.search(r"batch job \w{8}: completed, \d+ of \d+ answered", shown)


# --- kills -------------------------------------------------------------------------------


def run_and_die(folder: str, base_url: str, moment: str) -> None:
    """A run in a process of its own; some moments are not the server's to see."""

    def die(*_: object, **__: object) -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    if moment == "claimed":
        BatchApi.upload = die  # type: ignore[method-assign,assignment]
    elif moment == "storing":
        store, puts = CatalogueAnswers.put, []

        def put(self: CatalogueAnswers, answer: Any) -> None:
            puts.append(answer)
            if len(puts) == 3:
                die()
            store(self, answer)

        CatalogueAnswers.put = put  # type: ignore[method-assign]
    elif moment == "stored":
        CatalogueBatches.settle = die  # type: ignore[method-assign]
    score_step(settings_for(Path(folder), base_url))


@pytest.fixture(scope="module")
def processes() -> Any:
    """Children that are forked from a process which has imported everything."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["tests.flows.test_batch_run", "openai.types.chat", "openai"])
    return context


@pytest.mark.parametrize(
    ("moment", "nth"),
    [
        ("claimed", 1),
        ("uploaded", 1),
        ("created", 1),
        ("created", 3),
        ("created", 4),  # the repeats of answers that failed their check
        ("looked", 1),
        ("read", 2),
        ("storing", 1),
        ("stored", 1),
    ],
    ids=lambda value: str(value),
)
def test_a_kill_pays_nothing_twice(
    home: Callable[[str, int], Path], script: Script, processes: Any, moment: str, nth: int
) -> None:
    folder = home("killed", 12)
    with ModelServer(script) as server:
        api = server.batch_api
        api.plans = [Plan(looks=2), Plan(looks=2), Plan(looks=2), Plan(looks=2)]
        child = processes.Process(target=run_and_die, args=(str(folder), server.base_url, moment))
        seen: list[str] = []
        dead = threading.Event()

        def kill(now: str) -> None:
            seen.append(now)
            if now == moment and seen.count(moment) == nth:
                child.kill()
                dead.wait(20)  # the reply must not reach it

        api.at = kill
        child.start()
        child.join(60)
        dead.set()
        assert child.exitcode == -signal.SIGKILL
        api.at = lambda now: None
        api.finish()
        jobs_before = len(api.jobs)
        score_step(settings_for(folder, server.base_url))
        api.finish()
        needed = 12 + asked_twice(12)
        assert len(api.paid) == needed
        assert dict(api.paid) == dict.fromkeys(api.paid, 1), (
            f"paid twice; {jobs_before} jobs before the second run"
        )
    assert scored(folder) == 12
    assert count(folder, ModelBatchLine) == 0
    assert count(folder, Failure) == 0


# --- interrupts, budgets, refusals ----------------------------------------------------------


@pytest.fixture
def no_watchdog(monkeypatch: pytest.MonkeyPatch) -> None:
    """A run that was interrupted leaves its process some seconds later, and here that is the tests' own."""

    @contextmanager
    def only_handling(watch: Watch) -> Iterator[None]:
        with watch.handling():
            yield

    monkeypatch.setattr(Watch, "armed", only_handling)


@pytest.mark.usefixtures("no_watchdog")
def test_an_interrupt_leaves_the_jobs_open_and_says_so(
    home: Callable[[str, int], Path],
    script: Script,
    capsys: pytest.CaptureFixture[str],
    request: pytest.FixtureRequest,
) -> None:
    folder = home("interrupted", 4)
    # where the tests run in the background, the shell has the signal ignored
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    request.addfinalizer(lambda: signal.signal(signal.SIGINT, before))
    with ModelServer(script) as server:
        server.batch_api.plans = [Plan(looks=10_000)]
        server.batch_api.at = lambda now: os.kill(os.getpid(), signal.SIGINT) if now == "looked" else None
        with pytest.raises(RunStoppedError):
            score_step(settings_for(folder, server.base_url))
        assert "stays open: the next run" in capsys.readouterr().err
        server.batch_api.at = lambda now: None
        server.batch_api.jobs["batch_1"].plan.looks = 0
        score_step(settings_for(folder, server.base_url))
        assert set(server.batch_api.paid.values()) == {1}
    catalogue = Catalogue.open(f"sqlite:///{folder}/catalogue.db", migrate=False)
    with catalogue.reading() as db:
        states = list(db.scalars(select(Run.state).order_by(Run.started_at)))
    catalogue.close()
    assert states == ["cancelled", "completed"]
    assert scored(folder) == 4


def test_the_budget_halts_after_what_was_paid_is_used(
    home: Callable[[str, int], Path], script: Script
) -> None:
    folder = home("budget", 12)
    with ModelServer(script) as server:
        with pytest.raises(TransientError, match=r"max_calls = 7.*of 12 items are done") as caught:
            score_step(settings_for(folder, server.base_url, budget={"max_calls": 7}))
        assert caught.value.reason == "budget"
        assert len(server.calls()) == 7
        before = scored(folder)
        assert before == 7 - sum(n % 7 == 0 or n % 11 == 0 for n in range(1000, 1007))
        score_step(settings_for(folder, server.base_url))
        assert len(server.calls()) == 12 + asked_twice(12)
        assert set(server.batch_api.paid.values()) == {1}
    assert scored(folder) == 12


def test_an_item_ends_with_its_own_error_and_the_rest_goes_on(
    home: Callable[[str, int], Path], script: Script
) -> None:
    def faulty(request: Request) -> Answer:
        match number_of(request.text):
            case "1003":
                return Fault(status=400, message="content is not allowed")
            case "1004":
                return Fault(status=500)
        return script(request)

    folder = home("errors", 12)
    with ModelServer(faulty) as server:
        report = score_step(settings_for(folder, server.base_url))
        refused = [call for call in server.calls() if number_of(call.text) == "1003"]
        tried = [call for call in server.calls() if number_of(call.text) == "1004"]
    assert (len(refused), len(tried)) == (1, 3)  # once, and once more in each of the two rounds allowed
    assert report["states"]["failed"] == 2
    assert scored(folder) == 10
    catalogue = Catalogue.open(f"sqlite:///{folder}/catalogue.db", migrate=False)
    with catalogue.reading() as db:
        rows = {
            row.item_id: (row.reason, row.detail.split(":")[0])
            for row in db.scalars(select(LedgerRow))
            if row.state == "failed"
        }
    catalogue.close()
    assert rows["d0003"][0] == "bad_request"
    assert rows["d0004"] == ("http_500", "transient")


def test_questions_that_wait_are_not_done_and_an_endpoint_without_batches_halts(
    home: Callable[[str, int], Path], script: Script
) -> None:
    folder = home("none", 6)
    with ModelServer(script) as server:
        server.batch_api.supported = False
        with pytest.raises(TransientError, match=r"models\.transport.*0 of 6 items are done"):
            score_step(settings_for(folder, server.base_url))
    assert (count(folder, LedgerRow), count(folder, Failure), count(folder, ModelBatchLine)) == (0, 0, 0)


@pytest.mark.parametrize("runner", ["dask", "ray"])
def test_other_task_runners_are_refused_before_anything_is_recorded(
    home: Callable[[str, int], Path], runner: str
) -> None:
    folder = home("runner", 1)
    with pytest.raises(SettingsError, match=f"score_document.*not '{runner}'"):
        score_step(settings_for(folder, "http://127.0.0.1:9/v1", flows={"task_runner": runner}))
    assert count(folder, Run) == 0


# --- commands ---------------------------------------------------------------------------------


@pytest.mark.usefixtures("no_watchdog")
def test_the_commands_list_collect_and_cancel(
    home: Callable[[str, int], Path], script: Script, monkeypatch: pytest.MonkeyPatch
) -> None:
    from flows.commands import model_batches

    def command(*arguments: str) -> Any:
        return CliRunner().invoke(model_batches.app, list(arguments))

    folder = home("commands", 8)
    with ModelServer(script) as server:
        monkeypatch.setenv("HCHEM_DATA_DIR", str(folder))
        monkeypatch.setenv("HCHEM_MODELS__MODEL", "m")
        monkeypatch.setenv("HCHEM_MODELS__BASE_URL", server.base_url)
        assert "no open batch jobs" in command("list").output
        server.batch_api.plans = [Plan(looks=10_000), Plan(looks=10_000)]
        server.batch_api.at = lambda now: os.kill(os.getpid(), signal.SIGINT) if now == "looked" else None
        with pytest.raises(RunStoppedError):
            score_step(settings_for(folder, server.base_url))
        server.batch_api.at = lambda now: None
        listed = json.loads(command("list", "--json").output)
        assert [(job["state"], job["total"], job["skills"]) for job in listed] == [
            ("open", 5, ["score_document"]),
            ("open", 3, ["score_document"]),
        ]
        assert "0 of 2 open jobs finished" in command("collect").output
        server.batch_api.jobs["batch_1"].plan.looks = 0
        assert "1 of 2 open jobs finished" in command("collect").output
        one, other = (job["job_id"] for job in listed)
        assert "names no batch job" in str(command("cancel", "zzz").exception)
        assert command("cancel", other[:8]).exit_code == 0
        assert json.loads(command("list", "--json").output)[0]["state"] == "cancelling"
        assert "finished" in str(command("cancel", one).exception)
        server.batch_api.jobs["batch_2"].plan.looks = 0
        assert "1 of 1 open jobs finished" in command("collect").output
        states = {
            job["job_id"]: job["status"] for job in json.loads(command("list", "--all", "--json").output)
        }
        assert states == {one: "completed", other: "cancelled"}
        score_step(settings_for(folder, server.base_url))
        assert set(server.batch_api.paid.values()) == {1}
    assert scored(folder) == 8
    assert count(folder, ModelBatch) > 2


@pytest.mark.usefixtures("no_watchdog")
def test_a_job_can_be_forgotten_when_its_endpoint_is_gone(
    home: Callable[[str, int], Path], script: Script, monkeypatch: pytest.MonkeyPatch
) -> None:
    from flows.commands import model_batches

    folder = home("forgotten", 3)
    with ModelServer(script) as server:
        server.batch_api.plans = [Plan(looks=10_000)]
        server.batch_api.at = lambda now: os.kill(os.getpid(), signal.SIGINT) if now == "looked" else None
        with pytest.raises(RunStoppedError):
            score_step(settings_for(folder, server.base_url))
    monkeypatch.setenv("HCHEM_DATA_DIR", str(folder))
    with ModelServer(script) as server:
        with pytest.raises(TransientError, match="no skill uses now"):
            score_step(settings_for(folder, server.base_url))
        listed = json.loads(CliRunner().invoke(model_batches.app, ["list", "--json"]).output)
        forgotten = CliRunner().invoke(model_batches.app, ["cancel", listed[0]["job_id"][:8], "--forget"])
        assert "is forgotten" in forgotten.output
        score_step(settings_for(folder, server.base_url))
    assert scored(folder) == 3
