"""Backfills: in parts as a whole run, after a kill, after failures, and what a new prompt would cost."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select, text, update
from typer.testing import CliRunner

from corpus.catalogue import Catalogue
from corpus.catalogue.tables import (
    Chunk,
    Cluster,
    Document,
    LedgerRow,
    Page,
    PageProfile,
    Run,
    SourcePeriod,
)
from corpus.curating.pages import CleanStep
from corpus.errors import SettingsError, TransientError
from corpus.quality import Score, ScoreDocument, ScoreGiven
from corpus.stages import Outcome
from flows import backfill, cli, execution, partitions
from flows.parameters import BackfillParameters, StageName, StageParameters
from flows.partitions import Partition
from flows.planning import context_of
from flows.runtime import Runtime, open_runtime
from flows.settings import Settings
from tests.corpus.archived_pages import Sent, archive
from tests.corpus.test_curate_stage import html, sheet_page
from tests.flows.conftest import Command
from tests.flows.killing import alive, children, held, url
from tests.flows.test_gate_suspends import call
from tests.servers.model_server import ModelServer, Reply, Request
from tests.servers.prefect_api import prefect_api

MONTHS = [datetime(2024, month, 5, tzinfo=UTC) for month in (1, 2, 3)]
SHEETS = [
    ("zh", "甲醇", "67-56-1"), ("zh", "乙醇", "64-17-5"), ("zh", "苯", "71-43-2"), ("en", "acetone", "67-64-1"),
    ("en", "toluene", "108-88-3"), ("en", "ethyl acetate", "141-78-6"), ("zh", "盐酸", "7647-01-0"),
]  # fmt: skip
SOURCES = ("made-up-a", "made-up-b")


COMMAND = {"HCHEM_CHUNKS__METHODS": '["fixed","sentence"]', "HCHEM_CHUNKS__SCORE": "false"}


class Short(BackfillParameters):
    """Curation and chunking alone: the order of a whole run without the graph in between, which takes a server."""

    def stages(self) -> tuple[StageName, ...]:
        return ("curate", "chunks")


def pages() -> list[tuple[Sent, datetime]]:
    """Sheets of both languages over two sources and three months; one page is contained in one of a later month."""
    found = []
    for n, (language, name, cas) in enumerate(SHEETS):
        body = sheet_page(name, cas, 11 + n) if language == "zh" else english(name, cas, n)
        address = f"https://x.example/{language}/{n}.html"
        found.append((Sent(address, body, source=SOURCES[n % 2]), MONTHS[n % 3]))
    longer = sheet_page("甲醇", "67-56-1", 11, note="这一页比先前的一页多一句话，说明储存时应避免阳光直射，")
    found.append((Sent("https://x.example/zh/again.html", longer, source=SOURCES[0]), MONTHS[2]))
    gone = html(
        "<p>抱歉，您访问的页面不存在或已被删除，请返回首页查找其他化学品资料，或者联系网站的管理员，谢谢。</p>",
        "页面不存在",
    )
    found.append((Sent("https://x.example/404.html", gone, source=SOURCES[1]), MONTHS[1]))
    return found


def english(name: str, cas: str, n: int) -> bytes:
    parts = [
        f"<h1>Safety data sheet: {name} (made up)</h1>", "<h2>Section 1 Identification</h2>",
        f"<p>{name}, CAS {cas}, used as a solvent in paints, number {n} of this list of made-up sheets.</p>",
        "<h2>Section 4 First aid measures</h2>",
        f"<p>After inhaling {name} move the person to fresh air and call a doctor. Rinse skin with water for {10 + n} minutes.</p>",
        "<h2>Section 5 Fire-fighting measures</h2>",
        f"<p>Use alcohol-resistant foam or dry powder on burning {name}. Do not use a water jet. Vapours form explosive mixtures.</p>",
        "<h2>Section 9 Physical and chemical properties</h2>",
        f"<p>{name} is a colourless liquid. Flash point {n - 20} °C, boiling point {56 + 7 * n} °C, density 0.{79 + n} g/cm3.</p>",
    ]  # fmt: skip
    return html("".join(parts), f"{name} safety data sheet")


def settings_of(folder: Path, **models: Any) -> Settings:
    return Settings.model_validate(
        {
            "data_dir": folder,
            "chunks": {"methods": ["fixed", "sentence"], "score": False},
            "flows": {"retry_delay_s": 0, "passes": 1},
            "models": {"api_key": None, **models},
        }
    )


@dataclass(frozen=True)
class Made:
    """Pages as a crawl left them, and what a whole run makes of them."""

    folder: Path
    whole: dict[str, str]

    def copy(self, folder: Path) -> Path:
        shutil.copytree(self.folder, folder / "data")
        return folder / "data"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Made:
    folder = tmp_path_factory.mktemp("pages") / "data"
    catalogue = Catalogue.open(f"sqlite:///{_folder(folder)}/catalogue.db")
    archive(catalogue, folder, [sent for sent, _ in pages()])
    with catalogue.writing() as db:
        for sent, moment in pages():
            db.execute(update(Page).where(Page.url == sent.url).values(fetched_at=moment))
    catalogue.close()
    whole = folder.parent / "whole"
    shutil.copytree(folder, whole)
    with open_runtime(settings=settings_of(whole)) as runtime:
        with execution.session(runtime, "refresh", StageParameters()) as current:
            for stage in Short().stages():
                execution.run_stage(current, stage, execution.direct)
        return Made(folder, contents(runtime.catalogue))


def _folder(path: Path) -> Path:
    path.mkdir(parents=True)
    return path


def contents(catalogue: Catalogue) -> dict[str, str]:
    """Everything the steps write, but for run ids and moments."""
    left_out = {"run_id", "updated_at", "seconds"}
    found = {}
    with catalogue.reading() as db:
        for table in (Document, PageProfile, Cluster, Chunk, LedgerRow):
            columns = [c.key for c in table.__mapper__.column_attrs if c.key not in left_out]
            rows = [{name: getattr(row, name) for name in columns} for row in db.scalars(select(table))]
            lines = (json.dumps(row, ensure_ascii=False, sort_keys=True, default=str) for row in rows)
            found[table.__tablename__] = "\n".join(sorted(lines))
    return found


def fill(runtime: Runtime, **parameters: Any) -> backfill.Done:
    chosen = Short(yes=True, **parameters)
    runtime.run_id = execution.new_run_id()
    with execution.session(runtime, "backfill", chosen) as current:
        return backfill.run(current, chosen, execution.direct, lambda _name, work: work())


def states(runtime: Runtime) -> dict[str, str]:
    with runtime.catalogue.reading() as db:
        return {f"{row.source}/{row.period}": row.state for row in db.scalars(select(SourcePeriod))}


def standing(runtime: Runtime) -> dict[str, str]:
    chosen = backfill.choose(runtime, context_of(runtime, Short()), Short())
    return {place.label: found.state for place, found in chosen.before.items()}


def worked(runtime: Runtime, step: str) -> int:
    """Items that the last run did in a step."""
    with runtime.catalogue.reading() as db:
        last = db.scalars(select(Run).order_by(Run.started_at.desc())).first()
        assert last is not None
        stage = last.stages.get(step.split(".")[0], {"steps": {}})
        return sum(stage["steps"].get(step, {"states": {}})["states"].values())


# --- parts and the whole ------------------------------------------------------------------------


def test_a_backfill_in_parts_is_a_whole_run(made: Made, tmp_path: Path) -> None:
    with open_runtime(settings=settings_of(made.copy(tmp_path))) as runtime:
        first = fill(runtime, to_period="2024-02")
        assert set(first.partitions) == {f"{source}/2024-0{month}" for source in SOURCES for month in (1, 2)}
        assert set(first.partitions.values()) == {"ok"}
        with runtime.catalogue.reading() as db:
            early = db.scalars(select(Document).where(Document.url.endswith("/zh/0.html"))).one()
            assert early.state == "kept"
        assert {label for label, state in standing(runtime).items() if state != "ok"} == {
            "made-up-a/2024-03", "made-up-b/2024-03",
        }  # fmt: skip
        fill(runtime, sources=["made-up-b"])
        fill(runtime)
        with runtime.catalogue.reading() as db:
            early = db.get_one(Document, early.document_id)
            assert early.state == "duplicate"  # of a page of a later month, which came in with another part
        assert contents(runtime.catalogue) == made.whole
        assert set(standing(runtime).values()) == {"ok"}
        assert set(states(runtime).values()) == {"ok"}
        assert not fill(runtime).partitions  # nothing is left


def test_a_partition_that_a_barrier_moved_is_brought_up_to_date_again(made: Made, tmp_path: Path) -> None:
    """The kept one of two pages goes: the other one, of a month that nobody chose, takes its place."""
    with open_runtime(settings=settings_of(made.copy(tmp_path))) as runtime:
        fill(runtime)
        with runtime.catalogue.writing() as db:
            db.execute(update(Page).where(Page.url.endswith("/again.html")).values(state="gone"))
        done = fill(runtime, from_period="2024-03", force=True)
        assert "made-up-a/2024-01" in done.moved
        with runtime.catalogue.reading() as db:
            early = db.scalars(select(Document).where(Document.url.endswith("/zh/0.html"))).one()
            assert early.state == "kept"
            assert db.scalars(select(Chunk).where(Chunk.document_id == early.document_id)).all()
            assert not db.scalars(select(Document).where(Document.url.endswith("/again.html"))).all()
        assert set(standing(runtime).values()) == {"ok"}


def test_every_divided_step_is_planned_by_the_partitions_as_by_a_whole_run(
    made: Made, tmp_path: Path
) -> None:
    with open_runtime(settings=settings_of(made.copy(tmp_path))) as runtime:
        fill(runtime)
        ctx = context_of(runtime, StageParameters())
        steps = [step for _, step in backfill.slice_of(runtime, Short())]
        steps += [step for step in runtime.stage("graph").steps if step.name == "graph.extract"]
        places = list(partitions.standings(ctx, steps, "month"))
        assert len(places) == 6
        for step in steps:
            if partitions.is_divided(step.name):
                parts = [item for place in places for item in step.plan(place.narrow(ctx))]
                assert sorted(parts, key=lambda item: item.id) == step.plan(ctx), step.name
            else:
                assert step.plan(places[0].narrow(ctx)) == step.plan(ctx), step.name


def test_since_works_on_what_came_since_and_retires_nothing(made: Made, tmp_path: Path) -> None:
    with open_runtime(settings=settings_of(made.copy(tmp_path))) as runtime:
        fill(runtime, to_period="2024-01")
        with runtime.catalogue.writing() as db:
            db.execute(update(Page).where(Page.url.endswith("/zh/0.html")).values(state="gone"))
        runtime.run_id = execution.new_run_id()
        with execution.session(runtime, "curate", StageParameters(since="2024-03-01")) as current:
            execution.run_stage(current, "curate", execution.direct)
        with runtime.catalogue.reading() as db:
            query = select(Page.fetched_at).join(Document, Document.page_id == Page.page_id)
            found = {moment.month for moment in db.scalars(query) if moment is not None}
            assert found == {1, 3}  # nothing of February, and what vanished waits for a whole run
            assert db.scalars(select(Document).where(Document.url.endswith("/zh/0.html"))).all()


# --- failures -------------------------------------------------------------------------------------


@pytest.fixture
def broken(monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """Documents that cleaning fails on, for the time being."""
    ids: set[str] = set()
    clean = CleanStep.process

    def process(self: CleanStep, ctx: Any, item: Any) -> Outcome:
        if item.id in ids:
            raise TransientError("made to fail", reason="test")
        return clean(self, ctx, item)

    monkeypatch.setattr(CleanStep, "process", process)
    return ids


def test_a_failing_partition_is_named_and_the_others_go_on(
    made: Made, tmp_path: Path, broken: set[str]
) -> None:
    with open_runtime(settings=settings_of(made.copy(tmp_path))) as runtime:
        with runtime.catalogue.reading() as db:
            query = select(Page.document_id).where(Page.source == "made-up-b", Page.fetched_at < MONTHS[1])
            broken.update(db.scalars(query))
        assert broken
        done = fill(runtime)
        assert set(done.failed) == {"made-up-b/2024-01"}
        assert done.stopped
        with pytest.raises(
            backfill.PartitionsFailedError, match="1 of 6 partitions failed: made-up-b/2024-01"
        ):
            done.raise_if_failed()
        assert states(runtime)["made-up-b/2024-01"] == "failed"
        assert states(runtime)["made-up-a/2024-01"] == "ok"
        assert standing(runtime)["made-up-b/2024-01"] == "failed"

        done = fill(runtime, only_missing=True)
        assert not done.partitions  # nothing that was never processed can be reached
        broken.clear()
        done = fill(runtime, only_failed=True)
        assert (done.partitions, done.failed) == ({"made-up-b/2024-01": "ok"}, {})
        assert contents(runtime.catalogue) == made.whole


def test_a_step_of_another_version_makes_partitions_stale(made: Made, tmp_path: Path) -> None:
    with open_runtime(settings=settings_of(made.copy(tmp_path))) as runtime:
        fill(runtime)
        clean: Any = runtime.step("curate.clean")
        clean.version = "99"
        assert set(standing(runtime).values()) == {"stale"}
        assert not fill(runtime, only_missing=True).partitions
        fill(runtime, from_period="2024-02", to_period="2024-02")
        found = standing(runtime)
        assert {label for label, state in found.items() if state == "ok"} == {f"{s}/2024-02" for s in SOURCES}


# --- a kill ------------------------------------------------------------------------------------------


def test_a_killed_backfill_goes_on_to_the_same_bytes(made: Made, tmp_path: Path) -> None:
    data = made.copy(tmp_path)
    command = Command(data, COMMAND)
    process = command.start("backfill", "--direct", "--to-stage", "curate")
    assert process.stderr is not None
    for line in process.stderr:
        if line.startswith("curate.score") and "nothing" not in line:
            break
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.communicate()
    with open_runtime(settings=settings_of(data)) as runtime:
        assert "running" in states(runtime).values()
        done = fill(runtime)
        assert set(done.partitions.values()) == {"ok"}
        assert contents(runtime.catalogue) == made.whole
        assert "running" not in states(runtime).values()


# --- cancelled in Prefect --------------------------------------------------------------------------


_CANCELLED_IN_S = 10.0
_SLACK_S = 5.0  # of a machine that does other things too


@pytest.mark.prefect
@pytest.mark.slow
@pytest.mark.timeout(900)
def test_a_backfill_cancelled_in_prefect_leaves_nothing_behind_and_goes_on(
    made: Made, tmp_path: Path
) -> None:
    """A model that never answers holds the first partition up; the state is set as the pages do."""
    data, api = made.copy(tmp_path), prefect_api()
    with ModelServer(lambda request: Reply("{}", delay_s=600)) as server:
        model = {"score_document": {"model": "m", "base_url": server.base_url}}
        command = Command(
            data, {**COMMAND, "PREFECT_API_URL": api, "HCHEM_MODELS__SKILLS": json.dumps(model)}
        )
        serving = command.start("serve")

        def until(found: Callable[[], Any]) -> Any:
            deadline = time.monotonic() + 300
            while not (it := found()):
                assert serving.poll() is None, serving.communicate()
                assert time.monotonic() < deadline, "waited in vain"
                time.sleep(0.2)
            return it

        try:
            named = {"deployments": {"name": {"any_": ["ad-hoc"]}}, "flows": {"name": {"any_": ["backfill"]}}}
            deployment = until(lambda: call(f"{api}/deployments/filter", named))[0]["id"]
            asked = {
                "parameters": {"parameters": {"to_stage": "curate", "yes": True}},
                "state": {"type": "SCHEDULED"},
            }
            run = f"{api}/flow_runs/{call(f'{api}/deployments/{deployment}/create_flow_run', asked)['id']}"
            until(lambda: server.requests)
            below = children(serving.pid)
            with open_runtime(settings=settings_of(data)) as runtime:
                assert "running" in states(runtime).values()
            call(f"{run}/set_state", {"state": {"type": "CANCELLING"}})
            began = time.monotonic()
            until(lambda: not any(alive(child) for child in below))
            assert time.monotonic() - began < _CANCELLED_IN_S + _SLACK_S
            until(lambda: call(run)["state"]["type"] != "CANCELLING")
            assert call(run)["state"]["type"] == "CANCELLED"
            parts = {"flow_runs": {"parent_flow_run_id": {"any_": [run.rsplit("/", 1)[1]]}}}
            found = call(f"{api}/flow_runs/filter", parts)
            assert {part["state"]["type"] for part in found} == {"COMPLETED", "CANCELLED"}
        finally:
            with suppress(ProcessLookupError):
                os.killpg(serving.pid, signal.SIGKILL)
            serving.communicate()
    assert held(url(command)) == []
    with open_runtime(settings=settings_of(data)) as runtime:
        assert set(states(runtime).values()) == {"pending"}
        with runtime.catalogue.reading() as db:
            assert {row.message for row in db.scalars(select(SourcePeriod))} == {"interrupted"}
        done = fill(runtime, only_missing=True)
        assert set(done.partitions.values()) == {"ok"}
        assert contents(runtime.catalogue) == made.whole


# --- several processes -------------------------------------------------------------------------------


_NOTE = "CREATE TRIGGER note_{event} AFTER {event} ON ledger BEGIN INSERT INTO written VALUES (NEW.step, NEW.item_id, NEW.run_id); END"


def _written(catalogue: Catalogue) -> dict[str, Counter[tuple[str, str]]]:
    """How often each item of a divided step was recorded, by run; the database itself has noted it."""
    found: dict[str, Counter[tuple[str, str]]] = {}
    with catalogue.engine.connect() as connection:
        for step, item, run_id in connection.execute(text("SELECT step, item_id, run_id FROM written")):
            if partitions.is_divided(step):
                found.setdefault(run_id, Counter())[step, item] += 1
    return found


@pytest.mark.slow
def test_processes_share_the_partitions_and_only_a_failed_one_is_done_again(
    made: Made, tmp_path: Path
) -> None:
    data = made.copy(tmp_path)
    catalogue = Catalogue.open(f"sqlite:///{data}/catalogue.db")
    with catalogue.engine.begin() as connection:
        connection.execute(text("CREATE TABLE written (step TEXT, item_id TEXT, run_id TEXT)"))
        for event in ("INSERT", "UPDATE"):
            connection.execute(text(_NOTE.format(event=event)))
    lost = select(Page).where(Page.source == "made-up-b", Page.fetched_at < MONTHS[1])
    with catalogue.writing() as db:
        broken = {page.document_id: page.warc_offset for page in db.scalars(lost)}
        db.execute(update(Page).where(Page.document_id.in_(broken)).values(warc_offset=10**9))
    command = Command(data, COMMAND)
    arguments = ("backfill", "--direct", "--to-stage", "curate", "--parallel", "2")
    told = command.run(*arguments, code=1).stderr
    assert "1 of 6 partitions failed: made-up-b/2024-01" in told
    with open_runtime(settings=settings_of(data)) as runtime:
        found = states(runtime)
    assert found.pop("made-up-b/2024-01") == "failed"
    assert (len(found), set(found.values())) == (5, {"ok"})
    first = _written(catalogue)
    with catalogue.writing() as db:
        for document, offset in broken.items():
            db.execute(update(Page).where(Page.document_id == document).values(warc_offset=offset))

    command.run(*arguments, "--only-failed")
    written = _written(catalogue)
    catalogue.close()
    [(run_id, again)] = [(one, items) for one, items in written.items() if one not in first]
    assert {n for items in written.values() for n in items.values()} == {1}  # nothing is done twice in a run
    # cleaning rests on templates, which the page that came back changes; everything else is done for it alone
    assert {item for step, item in again if step in ("curate.score", "curate.refine")} == set(broken)
    with open_runtime(settings=settings_of(data)) as runtime:
        assert set(states(runtime).values()) == {"ok"}
        with runtime.catalogue.reading() as db:
            assert db.get_one(SourcePeriod, ("made-up-b", "2024-01")).run_id == run_id
        fill(runtime)
        assert contents(runtime.catalogue) == made.whole


# --- what it costs -----------------------------------------------------------------------------------


class Learned:
    """What the rules say of each document, by the substance's CAS number; a server repeats it."""

    def __init__(self) -> None:
        self.answers: dict[str, Score] = {}
        self._lock = threading.Lock()
        self.asked = 0

    def learn(self, given: ScoreGiven, answer: Score) -> None:
        self.answers[self._key("\n".join([given.title, *given.sample]))] = answer

    def __call__(self, request: Request) -> Any:
        with self._lock:
            self.asked += 1
        return self.answers[self._key(request.text)]

    @staticmethod
    def _key(text: str) -> str:
        found = re.search(r"(?:CAS\D{0,12})(\d{2,7}-\d\d-\d)", text)
        return (found[1] if found else "none") + str("这一页比先前" in text) + str("页面不存在" in text)


def test_a_new_prompt_shows_its_cost_and_is_not_paid_for_unasked(
    made: Made, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    learned = Learned()
    rule = ScoreDocument.offline

    def offline(self: ScoreDocument, given: ScoreGiven) -> Score:
        answer = rule(self, given)
        learned.learn(given, answer)
        return answer

    data = made.copy(tmp_path)
    monkeypatch.setattr(ScoreDocument, "offline", offline)
    with open_runtime(settings=settings_of(data)) as runtime:
        fill(runtime)
    documents = len(learned.answers)
    assert documents >= 7
    with ModelServer(learned) as server:
        model = {"model": "m", "base_url": server.base_url}
        given = settings_of(data, skills={"score_document": model})
        monkeypatch.setenv("HCHEM_DATA_DIR", str(data))
        monkeypatch.setenv("HCHEM_CHUNKS__METHODS", '["fixed","sentence"]')
        monkeypatch.setenv("HCHEM_CHUNKS__SCORE", "false")
        monkeypatch.setenv("HCHEM_MODELS__SKILLS", json.dumps({"score_document": model}))
        with open_runtime(settings=given) as runtime:
            assert set(standing(runtime).values()) == {"stale"}
        arguments = ["backfill", "--direct", "--to-stage", "curate"]
        shown = CliRunner().invoke(cli.build(arguments), [*arguments, "--dry-run"])
        assert shown.exit_code == 0, shown.output
        assert "score_document" in shown.output
        refused = CliRunner().invoke(cli.build(arguments), arguments)
        assert isinstance(refused.exception, SettingsError)
        assert f"about {documents} model calls" in str(refused.exception)
        assert learned.asked == 0
        with open_runtime(settings=given) as runtime:
            half = fill(runtime, to_period="2024-01")
            assert 0 < learned.asked < documents
            fill(runtime)
        assert half.partitions.keys() == {f"{source}/2024-01" for source in SOURCES}
        assert learned.asked == documents
        with open_runtime(settings=given) as runtime:
            assert set(standing(runtime).values()) == {"ok"}
            assert backfill.expected_calls(
                backfill.cost(
                    runtime,
                    context_of(runtime, Short()),
                    Short(),
                    backfill.choose(runtime, context_of(runtime, Short()), Short()),
                )
            ) in (0, None)


# --- the command ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "arguments, message",
    [
        (["--source", "nirgends"], "unknown source nirgends; known: "),
        (["--from", "2024-06", "--to", "2024-01"], "--from 2024-06 comes after --to 2024-01"),
        (["--from", "2024-13"], "'2024-13' is no period"),
        (["--chemical", "无此物质"], "unknown chemical 无此物质"),
        (["--only-missing", "--only-failed"], "not both"),
        (["--chemical-groups", "0-7"], "need from_stage acquire"),
        (["--from-stage", "acquire", "--chemical-groups", "0-99"], "numbers of 0 to 15"),
        (["--from-stage", "chunks", "--to-stage", "curate"], "comes after"),
    ],
)
def test_what_cannot_be_meant_is_refused_in_one_line(
    made: Made, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], message: str
) -> None:
    monkeypatch.setenv("HCHEM_DATA_DIR", str(made.copy(tmp_path)))
    found = CliRunner().invoke(cli.build(["backfill"]), ["backfill", "--direct", *arguments])
    assert isinstance(found.exception, SettingsError)
    assert message in str(found.exception)


def test_an_empty_choice_is_no_error_and_the_list_says_why(
    made: Made, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HCHEM_DATA_DIR", str(made.copy(tmp_path)))
    nothing = CliRunner().invoke(cli.build(["backfill"]), ["backfill", "--direct", "--from", "2027-01"])
    assert nothing.exit_code == 0
    assert "nothing to do" in nothing.output
    listed = CliRunner().invoke(cli.build(["partitions"]), ["partitions", "--json", "--source", "made-up-a"])
    rows = json.loads(listed.output)
    assert [(row["source"], row["period"], row["state"]) for row in rows] == [
        ("made-up-a", f"2024-0{month}", "pending") for month in (1, 2, 3)
    ]
    assert [row["steps"]["curate.profile"]["todo"] for row in rows] == [row["pages"] for row in rows]
    assert sum(row["pages"] for row in rows) == sum(sent.source == "made-up-a" for sent, _ in pages())


# --- groups of substances ---------------------------------------------------------------------------------


def test_groups_of_substances_are_stable_and_cover_all() -> None:
    keys = [f"{n}-00-0" for n in range(200)] + ["name:丙酮", "name:acetone"]
    found = {key: partitions.group_of(key, 16) for key in keys}
    assert set(found.values()) == set(range(16))
    assert partitions.group_of("67-64-1", 16) == 10  # the same everywhere and for ever
    assert partitions.groups_from("0-2,5", 16) == [0, 1, 2, 5]
    assert partitions.groups_from(None, 3) == [0, 1, 2]
    for wrong in ("3-1", "16", "a", "0-", "-1"):
        with pytest.raises(SettingsError, match="names no groups"):
            partitions.groups_from(wrong, 16)


def test_a_partition_is_named_by_source_and_period() -> None:
    assert Partition("危化品", "2026-11").label == "危化品/2026-11"
