"""Several processes on one catalogue: nothing done twice, nothing lost, whoever is killed."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select, text

from corpus.catalogue import Catalogue, leases
from corpus.catalogue.tables import Chunk, Document, LedgerRow, Run, WorkBatch
from corpus.curating.texts import ScoreStep
from corpus.errors import SettingsError, TransientError
from corpus.stages import StageContext, run_step
from flows import accounting, assist, execution, sharing, stopping
from flows.assist import Assistant
from flows.parameters import RefreshParameters
from flows.runtime import open_runtime
from flows.settings import Settings, load_settings
from flows.sharing import ASSISTANT
from kg.dataset import export
from tests.conftest import REPOSITORY, new_database
from tests.flows import faulty_corpus as made_up
from tests.servers.model_server import Fault, ModelServer, Reply, Request

pytestmark = pytest.mark.timeout(1200)

_COUNT = 80
_PATIENCE_S = 300.0


@dataclass
class World:
    """A filled catalogue, processes on it, and a record of every write of the ledger by the database itself."""

    folder: Path
    url: str
    settings: dict[str, str] = field(default_factory=dict)
    processes: list[subprocess.Popen[str]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.catalogue = Catalogue.open(self.url)
        made_up.fill(self.catalogue, _COUNT)
        kind = self.catalogue.engine.dialect.name
        with self.catalogue.engine.begin() as connection:
            connection.execute(text("CREATE TABLE written (step TEXT, item_id TEXT, run_id TEXT)"))
            for event in ("INSERT", "UPDATE"):
                for line in _TRIGGER[kind].format(event=event, name=event.lower()).split(";;"):
                    connection.execute(text(line))

    def start(self, what: str, pause: float = 0.0, **more: str) -> subprocess.Popen[str]:
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("HCHEM_", "PREFECT_", "OPENAI_"))}
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.flows.sharing_process", what, str(pause)],
            cwd=REPOSITORY,
            env={
                **kept,
                "HCHEM_DATA_DIR": str(self.folder),
                "HCHEM_CATALOGUE__URL": self.url,
                "HCHEM_FLOWS__SHARE_BATCHES": "true",
                "HCHEM_CHUNKS__SCORE": "false",
                **self.settings,
                **more,
            },
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.processes.append(process)
        return process

    def end(self, process: subprocess.Popen[str], number: int) -> tuple[str, str]:
        process.send_signal(number)
        return process.communicate(timeout=_PATIENCE_S)

    def until(self, condition: Callable[[], Any]) -> Any:
        """What a condition says once it says something; fails where a process has ended by itself meanwhile."""
        deadline = time.monotonic() + _PATIENCE_S
        while not (found := condition()):
            assert time.monotonic() < deadline, "it does not come to that"
            for process in self.processes:
                if process.poll() not in (None, -signal.SIGKILL):
                    out, err = process.communicate()
                    pytest.fail(f"a process ended with {process.returncode}:\n{out[-1000:]}\n{err[-3000:]}")
            time.sleep(0.02)
        return found

    def is_at_work(self, process: subprocess.Popen[str], step: str = "") -> bool:
        """Whether a process is in the middle of a batch (of a step)."""
        with self.catalogue.reading() as db:
            rows = db.scalars(select(WorkBatch).where(WorkBatch.state == "claimed")).all()
            for row in rows:
                if f"|{process.pid}|" in row.holder and step in ("", row.step):
                    ids = [item for item, _ in row.items]
                    mine = LedgerRow.step == row.step, LedgerRow.item_id.in_(ids)
                    if 0 < len(db.scalars(select(LedgerRow.item_id).where(*mine)).all()) < len(ids):
                        return True
        return False

    def written(self) -> dict[tuple[str, str], int]:
        """How often each item was recorded, over all processes and runs."""
        with self.catalogue.engine.connect() as connection:
            rows = connection.execute(
                text("SELECT step, item_id, count(*) FROM written GROUP BY step, item_id")
            )
            return {(step, item): n for step, item, n in rows}

    def ledger(self) -> dict[tuple[str, str], tuple[Any, ...]]:
        with self.catalogue.reading() as db:
            return {
                (row.step, row.item_id): (row.fingerprint, row.state, row.reason, row.detail, row.counts)
                for row in db.scalars(select(LedgerRow))
            }

    def content(self) -> dict[str, Any]:
        """Export, documents and chunks: all that the steps made."""
        out = self.folder / "export"
        export(self.catalogue, out)
        files = {str(p.relative_to(out)): p.read_bytes() for p in sorted(out.rglob("*")) if p.is_file()}
        with self.catalogue.reading() as db:
            documents = {
                row.document_id: (row.text, row.version_id, row.score, row.state, row.sections)
                for row in db.scalars(select(Document))
            }
            chunks = {row.chunk_id: (row.start, row.end, row.text) for row in db.scalars(select(Chunk))}
        return {**files, "documents": documents, "chunks": chunks}

    def runs(self) -> list[Run]:
        with self.catalogue.reading() as db:
            return list(db.scalars(select(Run).order_by(Run.started_at)))

    def board(self) -> list[WorkBatch]:
        with self.catalogue.reading() as db:
            return list(db.scalars(select(WorkBatch)))

    def close(self) -> None:
        for process in self.processes:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            process.communicate()
        self.catalogue.close()


_TRIGGER = {
    "sqlite": "CREATE TRIGGER written_{name} AFTER {event} ON ledger BEGIN "
    "INSERT INTO written VALUES (NEW.step, NEW.item_id, NEW.run_id); END",
    "postgresql": "CREATE OR REPLACE FUNCTION note() RETURNS trigger AS $$ BEGIN "
    "INSERT INTO written VALUES (NEW.step, NEW.item_id, NEW.run_id); RETURN NEW; END $$ LANGUAGE plpgsql;;"
    "CREATE TRIGGER written_{name} AFTER {event} ON ledger FOR EACH ROW EXECUTE FUNCTION note()",
}


@dataclass(frozen=True)
class Alone:
    """What one worker makes of the same documents."""

    ledger: dict[tuple[str, str], tuple[Any, ...]]
    content: dict[str, Any]
    steps: dict[str, Any]


def _steps(run: Run) -> dict[str, Any]:
    """The counts of a run, without times."""
    return {
        name: {part: counts[part] for part in ("pending", "states", "reasons", "counts")}
        for stage in run.stages.values()
        for name, counts in stage["steps"].items()
    }


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> Alone:
    folder = tmp_path_factory.mktemp("alone")
    world = World(folder, f"sqlite:///{folder}/catalogue.db", {"HCHEM_FLOWS__SHARE_BATCHES": "false"})
    leader = world.start("lead")
    _, err = leader.communicate(timeout=_PATIENCE_S)
    assert leader.returncode == 0, err
    found = Alone(world.ledger(), world.content(), _steps(world.runs()[0]))
    assert len(found.ledger) == 4 * _COUNT
    world.close()
    return found


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.postgres)])
def world(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[World]:
    folder = tmp_path / "data"
    folder.mkdir()
    url = f"sqlite:///{folder}/catalogue.db"
    if request.param == "postgresql":
        url = new_database(request.getfixturevalue("postgres_server"))
    made = World(folder, url)
    yield made
    made.close()


def test_kills_of_an_assistant_and_of_the_leader_lose_nothing_and_repeat_nothing(
    world: World, alone: Alone
) -> None:
    pause = 0.05
    killed, stays = world.start("assist", pause), world.start("assist", pause)
    world.until(lambda: len(leases.living(world.catalogue, ASSISTANT)) == 2)
    leader = world.start("lead", pause)
    world.until(lambda: world.is_at_work(killed))
    world.end(killed, signal.SIGKILL)
    world.until(lambda: world.is_at_work(leader, "chunks.sentence"))
    world.end(leader, signal.SIGKILL)

    again = world.start("lead", pause)
    out, err = again.communicate(timeout=_PATIENCE_S)
    assert again.returncode == 0, err
    out, err = world.end(stays, signal.SIGTERM)
    assert stays.returncode == 0, err
    helped = json.loads(out)

    assert world.ledger() == alone.ledger
    assert world.content() == alone.content
    assert set(world.written().values()) == {1}
    assert world.board() == []
    first, second = world.runs()
    assert (first.state, second.state) == ("crashed", "completed")
    counted = _steps(first)  # batches of the killed assistant, too
    assert {name: counted[name] for name in ("curate.score", "curate.refine", "graph.extract")} == {
        name: alone.steps[name] for name in ("curate.score", "curate.refine", "graph.extract")
    }
    assert helped["items"] > 0


# --- in one process: a leading run and an assistant on threads ---------------------------------------------------


@dataclass
class Together:
    """A leading run in this thread and an assistant in another one, on SQLite."""

    folder: Path
    monkeypatch: pytest.MonkeyPatch
    lines: list[str] = field(default_factory=list)
    watch: stopping.Watch = field(default_factory=lambda: stopping.Watch(threading.Event()))
    outcome: list[Any] = field(default_factory=list)

    def settings(self, share: bool | None = True, **more: str) -> Settings:
        """Settings of the environment, with more of it for as long as they are read."""
        with self.monkeypatch.context() as patch:
            patch.setenv("HCHEM_DATA_DIR", str(self.folder))
            if share is not None:
                patch.setenv("HCHEM_FLOWS__SHARE_BATCHES", str(share))
            patch.setenv("HCHEM_FLOWS__RETRY_DELAY_S", "0")
            for name, value in more.items():
                patch.setenv(name, value)
            return load_settings()

    @contextlib.contextmanager
    def leading(self, settings: Settings) -> Iterator[execution.Session]:
        with (
            open_runtime(settings=settings, run_id=execution.new_run_id()) as runtime,
            execution.session(runtime, "curate", RefreshParameters()) as current,
        ):
            yield current

    def run(self, current: execution.Session, *names: str) -> dict[str, Any]:
        current.accounts["curate"] = accounting.begin(current.runtime, current.context, "curate")
        steps: list[Any] = [current.runtime.step(name) for name in names]
        for step in steps:
            step.batch_size = 10
        return execution.run_steps(current, "curate", steps, execution.direct)

    def assistant(self, **how: Any) -> Assistant:
        return Assistant(self.watch, self.lines.append, **how)

    @contextlib.contextmanager
    def assisted(self, settings: Settings) -> Iterator[Assistant]:
        """An assistant with these settings, until the end of the block."""
        self.monkeypatch.setattr(
            assist, "load_settings", lambda _overrides=None: settings.model_copy(deep=True)
        )
        helper = self.assistant()

        def work() -> None:
            try:
                self.outcome.append(helper.work(settings))
            except BaseException as error:
                self.outcome.append(error)

        thread = threading.Thread(target=work)
        thread.start()
        try:
            yield helper
        finally:
            self.watch.stop.set()
            thread.join(timeout=_PATIENCE_S)


@pytest.fixture
def together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, template: Path) -> Together:
    folder = tmp_path / "data"
    folder.mkdir()
    shutil.copyfile(template, folder / "catalogue.db")
    return Together(folder, monkeypatch)


def _filled(together: Together, count: int) -> Catalogue:
    catalogue = Catalogue.open(f"sqlite:///{together.folder}/catalogue.db")
    made_up.fill(catalogue, count)
    return catalogue


def test_the_batches_of_assistants_count_and_are_told(together: Together) -> None:
    settings = together.settings()
    catalogue = _filled(together, 40)
    with together.leading(settings) as current:
        board = current.sharing and current.sharing.board
        assert board is not None
        kept = board.claim
        held_up = threading.Event()

        def claim(
            *given: Any, **more: Any
        ) -> Any:  # the leader waits for its first batch until the assistant has one
            held_up.wait(_PATIENCE_S)
            return kept(*given, **more)

        together.monkeypatch.setattr(board, "claim", claim)
        with together.assisted(settings) as helper:
            threading.Thread(target=lambda: (_until(lambda: helper.done.batches), held_up.set())).start()
            report = together.run(current, "curate.score")["curate.score"]
            assert _assistants(catalogue) == 1
    assert report["states"] == {"kept": 40}
    assert report["counts"] == {"scored": 40}
    done = together.outcome[0]
    assert (done.runs, done.steps["curate.score"] >= 10) == (1, True)
    assert any("helping run" in line for line in together.lines)
    assert _assistants(catalogue) == 0


def _assistants(catalogue: Catalogue) -> int:
    """How many assist, as ``hchem status`` counts them."""
    return len(leases.living(catalogue, ASSISTANT))


def _until(condition: Callable[[], Any]) -> None:
    deadline = time.monotonic() + _PATIENCE_S
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.02)


@pytest.mark.parametrize("who", ["assistant", "leader"])
def test_a_key_that_is_refused_to_one_halts_the_step_of_all(
    who: str, together: Together, no_certificates: None
) -> None:
    answers = made_up.Recording()
    catalogue = _filled(together, 40)
    shown = Catalogue.open(f"sqlite:///{together.folder}/answers.db")
    made_up.fill(shown, 40)
    run_step(ScoreStep(models=answers), StageContext(shown, "shown"))

    def script(request: Request) -> Reply | Fault:
        if request.headers.get("authorization", "").endswith("wrong"):
            return Fault(status=401, message="Incorrect API key")
        right = answers.right[made_up.skill_of(request), made_up.document_of(request)]
        return Reply(json.dumps(right), delay_s=0.05)

    def run(settings: Settings, other: Settings) -> None:
        with together.leading(settings) as current:
            board = current.sharing and current.sharing.board
            assert board is not None
            kept = board.free
            with together.assisted(other):
                begun = threading.Event()

                def free(*given: Any, **more: Any) -> Any:  # the leader begins when the assistant is at work
                    if not begun.is_set():
                        _until(lambda: begun.is_set() or _taken(catalogue))
                        begun.set()
                    return kept(*given, **more)

                together.monkeypatch.setattr(board, "free", free)
                together.run(current, "curate.score")

    with ModelServer(script) as server:
        model = {"HCHEM_MODELS__BASE_URL": server.base_url, "HCHEM_MODELS__MODEL": "scripted"}
        right, wrong = (together.settings(**model, HCHEM_MODELS__API_KEY=key) for key in ("right", "wrong"))
        first, second = (right, wrong) if who == "assistant" else (wrong, right)
        second.flows.workers = 1  # some batches are left to the leader
        with pytest.raises(TransientError, match=r"curate\.score stopped: .*401"):
            run(first, second)
    assert isinstance(together.outcome[0], assist.Assisted), together.outcome
    with catalogue.reading() as db:
        assert db.query(WorkBatch).count() == 0
        ended = db.query(Run).one()
        done = db.query(LedgerRow).filter(LedgerRow.state != "failed").count()
    assert (ended.state, done < 40) == ("stopped", True)


def _taken(catalogue: Catalogue) -> bool:
    """Whether a batch was taken off the open ones."""
    with catalogue.reading() as db:
        return db.query(WorkBatch).filter(WorkBatch.state != "open").count() > 0


def test_other_settings_or_another_version_are_refused_by_name(together: Together) -> None:
    with together.leading(together.settings()) as current, current.runtime.catalogue.reading() as db:
        run = db.query(Run).one()
        assist.prove_same(together.settings(HCHEM_MODELS__LIMITS__CONCURRENCY="3"), run)
        with pytest.raises(SettingsError, match=r"corpus\.quality\.threshold is .* there and 3.5"):
            assist.prove_same(together.settings(HCHEM_CORPUS__QUALITY__THRESHOLD="3.5"), run)
        run.code_version = "0.0.1"
        with pytest.raises(SettingsError, match=r"made by version 0\.0\.1, this is"):
            assist.prove_same(together.settings(), run)


def test_a_step_that_would_rest_on_something_else_here_is_refused(together: Together) -> None:
    settings = together.settings()
    catalogue = _filled(together, 100)
    with together.leading(settings) as current:
        step = current.runtime.step("curate.score")
        items = [[(item.id, "another mark") for item in step.plan(current.context)]]
        assert current.sharing is not None
        current.sharing.board.post(current.context.run_id, step.name, items)
        with together.assisted(settings):
            _until(lambda: together.outcome)
        assert isinstance(together.outcome[0], SettingsError)
        assert "fingerprints" in str(together.outcome[0])
        with catalogue.reading() as db:
            assert [row.state for row in db.query(WorkBatch)] == ["open"]
            assert db.query(LedgerRow).count() == 0


def test_without_the_run_s_data_directory_the_archive_is_left_to_others(
    together: Together, tmp_path: Path
) -> None:
    settings = together.settings()
    _filled(together, 60)
    other = tmp_path / "other"
    elsewhere = together.settings(
        HCHEM_DATA_DIR=str(other), HCHEM_CATALOGUE__URL=f"sqlite:///{together.folder}/catalogue.db"
    )
    with together.leading(settings) as current:
        assert current.sharing is not None
        board = current.sharing.board
        board.post(current.context.run_id, "curate.clean", [[("a", "f")], [("b", "f")]])
        with together.assisted(elsewhere):
            _until(lambda: any("left to others" in line for line in together.lines))
            time.sleep(1.0)
            assert board.free(current.context.run_id) == ("curate.clean", 2)
    assert together.outcome[0].items == 0


def test_who_finds_no_run_ends_and_a_run_that_shares_nothing_is_named(together: Together) -> None:
    settings = together.settings()
    done = together.assistant(until_idle=True, patience_s=0.1).work(settings)
    assert (done.runs, done.items) == (0, 0)
    with together.leading(together.settings(False)) as current:
        assert current.sharing is None
        together.assistant(seconds=0.5).work(settings)
    assert any("does not share its batches" in line for line in together.lines)


def test_an_empty_catalogue_is_waited_for_and_not_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    together = Together(tmp_path / "new", monkeypatch)
    together.assistant(until_idle=True, patience_s=0.1).work(together.settings())
    catalogue = Catalogue.open(f"sqlite:///{tmp_path}/new/catalogue.db", migrate=False)
    assert catalogue.check_schema() == ""
    catalogue.close()
    assert "is empty" in together.lines[0]


def test_what_waits_for_a_batch_api_cannot_be_shared(together: Together) -> None:
    batch = {"HCHEM_MODELS__MODEL": "m", "HCHEM_MODELS__API_KEY": "k", "HCHEM_MODELS__TRANSPORT": "batch"}
    with pytest.raises(SettingsError, match=r"cannot be shared: set flows\.share_batches = false"):
        sharing.is_shared(together.settings(**batch))
    server = {"HCHEM_CATALOGUE__URL": "postgresql://h/d"}
    assert not sharing.is_shared(together.settings(None, **batch, **server))
    assert sharing.is_shared(together.settings(None, **server))
    assert not sharing.is_shared(together.settings(None))
