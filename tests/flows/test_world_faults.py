"""What the world does to a run: full and read-only disks, servers that restart, a clock that is set.

Each fault has a real cause. The run goes on or ends with one clear line; nothing
is lost, and the rerun gives the bytes of a run that nothing disturbed.
"""

from __future__ import annotations

import contextlib
import importlib.util
import logging
import os
import re
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import psutil
import pytest
from sqlalchemy import func, select, text

from corpus.catalogue import Catalogue, leases
from corpus.catalogue.tables import Failure, LedgerRow, Page, Run
from corpus.errors import DiskError, PlatformError, SettingsError, TransientError
from corpus.stages import BaseStep, Item, Outcome, StageContext, batches, pending, run_batch
from kg import versions
from kg.dataset import differences, export
from kg.graph_settings import GraphSettings
from kg.stage import GraphSync
from kg.store import GraphHandle, GraphStore
from kg.verify import verify_graph
from models.client.record import RollingFile
from tests.conftest import missing, new_database
from tests.flows.conftest import Command, small_site
from tests.kg.graph_builders import MADE
from tests.kg.graph_builders import fill as fill_graph

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

CHEMICALS = 8  # of the sample list, so that a crawl takes seconds
ACQUIRE = ("refresh", "--direct", "-v", "--to-stage", "acquire")
CURATE = ("refresh", "--direct", "-v", "--from-stage", "curate", "--to-stage", "curate")


def exported(url: str, folder: Path) -> dict[str, bytes]:
    """The data set of a catalogue, made in this process."""
    catalogue = Catalogue.open(url)
    try:
        export(catalogue, folder)
    finally:
        catalogue.close()
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


def sqlite(command: Command) -> str:
    return f"sqlite:///{command.data_dir}/catalogue.db"


def count(url: str, what: type) -> int:
    catalogue = Catalogue.open(url)
    with catalogue.reading() as session:
        found = session.scalar(select(func.count()).select_from(what)) or 0
    catalogue.close()
    return int(found)


@dataclass(frozen=True)
class Undisturbed:
    """A run that nothing disturbed: its site, its data after each stage, what it exports."""

    folder: Path
    expected: dict[str, bytes]

    def copy(self, stage: str, data_dir: Path) -> Command:
        """The command on a copy of the data as they stood after a stage ("": before the first)."""
        if stage:
            shutil.copytree(self.folder / stage, data_dir, dirs_exist_ok=True)
        return Command(data_dir, {"HCHEM_CRAWL__SAMPLE_DIR": str(self.folder / "site")})

    def check(self, command: Command, url: str = "") -> None:
        """The catalogue holds what it would hold, and nothing failed for good."""
        url = url or sqlite(command)
        found = exported(url, command.data_dir.parent / "exported")
        assert [name for name in self.expected if found.get(name) != self.expected[name]] == []
        assert found.keys() == self.expected.keys()
        catalogue = Catalogue.open(url)
        with catalogue.reading() as session:
            assert session.scalars(select(LedgerRow.item_id).where(LedgerRow.state == "failed")).all() == []
            assert session.scalars(select(Page.url).where(Page.state == "failed")).all() == []
            assert session.scalars(select(Failure.reason).where(Failure.resolved_run.is_(None))).all() == []
        catalogue.close()


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Undisturbed:
    """Made once: pages in both languages, crawled and cleaned."""
    folder = tmp_path_factory.mktemp("undisturbed")
    site = small_site(folder / "site")
    rows = (site / "chemicals.csv").read_text(encoding="utf-8").splitlines()
    (site / "chemicals.csv").write_text("\n".join(rows[: CHEMICALS + 1]) + "\n", encoding="utf-8")
    command = Command(folder / "data", {"HCHEM_CRAWL__SAMPLE_DIR": str(site)})
    for stage, arguments in (("acquire", ACQUIRE), ("curate", CURATE)):
        command.run(*arguments)
        shutil.copytree(command.data_dir, folder / stage)
    expected = exported(sqlite(command), folder / "exported")
    languages = expected["corpus.jsonl"].decode()
    assert '"zh"' in languages
    assert '"en"' in languages
    return Undisturbed(folder, expected)


def one_line(finished: subprocess.CompletedProcess[str], *words: str) -> None:
    """The command ended with one line that says why, and no traceback."""
    said = finished.stdout + finished.stderr
    assert "Traceback" not in said, said[-3000:]
    lines = [line for line in finished.stderr.splitlines() if line.startswith("hchem: ")]
    assert len(lines) == 1, finished.stderr[-3000:]
    assert all(word in lines[0] for word in words), lines[0]


def reach(process: subprocess.Popen[str], step: str) -> None:
    """Read on until the step has work under way."""
    assert process.stderr is not None
    for line in process.stderr:
        if line.startswith(step) and "nothing to do" not in line:
            return
    raise AssertionError(f"{step} was never reached")


def ended(process: subprocess.Popen[str]) -> subprocess.CompletedProcess[str]:
    out, err = process.communicate(timeout=600)
    return subprocess.CompletedProcess(process.args, process.returncode, out, err)


# --- the disk ---------------------------------------------------------------------


@dataclass(frozen=True)
class Disk:
    """A file system of its own, in memory."""

    folder: Path

    def resize(self, size: int) -> None:
        """Make room, or take it."""
        subprocess.run(["mount", "-o", f"remount,size={size}", str(self.folder)], check=True)


@pytest.fixture
def small_disk() -> Iterator[Callable[[Path, int], Disk]]:
    """Mounts small file systems; where that is not allowed only the forms with a quota run."""
    mounted: list[Path] = []

    def mount(folder: Path, size: int) -> Disk:
        folder.mkdir(parents=True, exist_ok=True)
        done = subprocess.run(
            ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder)],
            capture_output=True,
            check=False,
        )
        if done.returncode:
            pytest.skip("mounting is not allowed here; the form with a quota (RLIMIT_FSIZE) runs")
        mounted.append(folder)
        return Disk(folder)

    yield mount
    for folder in reversed(mounted):
        subprocess.run(["umount", "-l", str(folder)], check=False)


def size_of(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def test_the_archive_is_full_while_crawling(
    undisturbed: Undisturbed, tmp_path: Path, small_disk: Callable[[Path, int], Disk]
) -> None:
    command = undisturbed.copy("", tmp_path / "data")
    archive = small_disk(command.data_dir / "warc", 48 * 1024)
    one_line(command.run(*ACQUIRE, code=2), "acquire.crawl", "No space left", "the same command goes on")
    stored = count(sqlite(command), Page)
    assert stored > 0
    archive.resize(64 * 1024 * 1024)
    small_disk(tmp_path / "tmp", 4096)  # and no room for temporary files in the place that is set for them
    (tmp_path / "tmp" / "filler").write_bytes(b"x" * 4096)
    command.settings["TMPDIR"] = str(tmp_path / "tmp")
    command.run(*ACQUIRE)
    command.run(*CURATE)
    undisturbed.check(command)


@pytest.mark.parametrize("form", ["disk", "quota"])
def test_the_catalogue_is_full_while_cleaning(
    form: str, undisturbed: Undisturbed, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    room = 200 * 1024
    if form == "disk":
        size = size_of(undisturbed.folder / "acquire") + room
        disk: Disk = request.getfixturevalue("small_disk")(tmp_path / "data", size)
        command = undisturbed.copy("acquire", tmp_path / "data")
    else:
        command = undisturbed.copy("acquire", tmp_path / "data")
        command.prefix = ("prlimit", f"--fsize={room}")
    one_line(command.run(*CURATE, code=2), "catalogue cannot be written")
    command.prefix = ()
    if form == "disk":
        disk.resize(256 * 1024 * 1024)
    command.run(*CURATE)
    undisturbed.check(command)


def test_an_export_a_version_and_a_report_that_find_no_room(undisturbed: Undisturbed, tmp_path: Path) -> None:
    command = undisturbed.copy("curate", tmp_path / "data")
    versions.take(opened := Catalogue.open(sqlite(command)), command.data_dir / "datasets")
    opened.close()
    before = versions.find(command.data_dir / "datasets", "current")
    reports = command.data_dir / "reports"
    pages = {path: path.read_bytes() for path in reports.iterdir() if path.is_file()}
    assert pages
    tight = replace(
        command, prefix=("prlimit", "--fsize=40000")
    )  # the index of a write-ahead log takes 32 KiB
    out = tmp_path / "out"
    one_line(tight.run("dataset", "export", "--out", str(out), code=2), "File too large")
    with pytest.raises(SettingsError, match="not finished"):
        differences(out)
    one_line(tight.run("dataset", "snapshot", "--tag", "发布", code=2), "File too large")
    assert versions.find(command.data_dir / "datasets", "current") == before
    assert not list((command.data_dir / "datasets").glob(".partial-*"))
    one_line(tight.run("report", code=2), "File too large")
    assert {path: path.read_bytes() for path in reports.iterdir() if path.is_file()} == pages
    undisturbed.check(command)


def test_a_log_on_a_full_disk_costs_one_warning(caplog: pytest.LogCaptureFixture) -> None:
    log = RollingFile(Path("/dev/full"), 1)
    with caplog.at_level(logging.WARNING):
        log.append("first")
        log.append("second")
    assert [record.getMessage().count("No space left") for record in caplog.records] == [1]


def test_the_data_directory_becomes_read_only_in_the_middle(undisturbed: Undisturbed, tmp_path: Path) -> None:
    command = undisturbed.copy("acquire", tmp_path / "data")
    if os.geteuid() == 0:  # without the right to pass over modes, which root has
        drop = "-dac_override,-dac_read_search"
        command.prefix = ("setpriv", f"--bounding-set={drop}", "--inh-caps=-all")
    process = command.start(*CURATE)
    reach(process, "curate.clean")
    folders = [command.data_dir, *(path for path in command.data_dir.rglob("*"))]
    modes = {path: path.stat().st_mode for path in folders if path.exists()}
    for path in modes:
        path.chmod(0o555 if path.is_dir() else 0o444)
    finished = ended(process)
    if finished.returncode:  # what is open may be written on, new files may not be made
        one_line(finished)
    one_line(command.run(*CURATE, code=2), "cannot be written")
    for path, mode in modes.items():
        if path.exists():
            path.chmod(mode)
    command.run(*CURATE)
    undisturbed.check(command)


# --- servers that go away ---------------------------------------------------------


class Counting(BaseStep):
    """Ten items that take a moment each; each leaves a row."""

    def plan(self, ctx: StageContext) -> list[Item]:
        return [Item(f"{number:02d}", "f") for number in range(10)]

    def process(self, ctx: StageContext, item: Item) -> Outcome:
        time.sleep(0.1)
        return Outcome(counts={"done": 1})


def restart(server: str) -> subprocess.Popen[bytes]:
    """Stop the PostgreSQL server at once for those who are connected, and start it again."""
    import psycopg

    with psycopg.connect(f"{server}/postgres") as connection:
        row = connection.execute("SHOW data_directory").fetchone()
        data = str(row[0]) if row else ""
    homes = sorted(Path("/usr/lib/postgresql").glob("*/bin/pg_ctl"))
    control = str(homes[-1]) if homes else str(shutil.which("pg_ctl"))
    prefix = ["runuser", "-u", "postgres", "--"] if os.geteuid() == 0 else []
    return subprocess.Popen(
        [*prefix, control, "-D", data, "-m", "fast", "-w", "-l", f"{data}/../log", "restart"],
        stdout=subprocess.DEVNULL,
        cwd="/",
    )


@pytest.mark.postgres
def test_the_database_restarts_in_the_middle_of_a_batch(postgres_server: str) -> None:
    catalogue = Catalogue.open(new_database(postgres_server))
    context = StageContext(catalogue, "run")
    step = Counting(name="test.count")
    items = pending(step, context)
    run_batch(step, context, items[:2])  # connections are open
    restarting = restart(postgres_server)
    report = run_batch(step, context, items[2:])
    assert restarting.wait() == 0
    assert dict(report.states) == {"kept": 8}
    with catalogue.reading() as session:
        assert session.scalar(select(func.count()).select_from(LedgerRow)) == 10
    catalogue.close()


@pytest.mark.postgres
def test_the_database_restarts_in_the_middle_of_a_run(
    undisturbed: Undisturbed, tmp_path: Path, postgres_server: str
) -> None:
    url = new_database(postgres_server)
    command = undisturbed.copy("", tmp_path / "data")
    command.settings["HCHEM_CATALOGUE__URL"] = url
    process = command.start("refresh", "--direct", "-v", "--to-stage", "curate")
    for step in ("acquire.crawl", "curate.clean"):
        reach(process, step)
        assert restart(postgres_server).wait() == 0
    finished = ended(process)
    if finished.returncode:
        one_line(finished, "catalogue")
    command.run("refresh", "--direct", "--to-stage", "curate")
    undisturbed.check(command, url)


def test_a_database_that_is_away_is_one_clear_line(undisturbed: Undisturbed, tmp_path: Path) -> None:
    command = undisturbed.copy("", tmp_path / "data")
    command.settings["HCHEM_CATALOGUE__URL"] = "postgresql://hchem:geheim@127.0.0.1:9/none"
    finished = command.run("status", code=2)
    one_line(finished, "cannot be opened", "127.0.0.1:9")
    assert "geheim" not in finished.stderr


@pytest.mark.graph
def test_the_graph_server_dies_in_the_middle_of_a_sync_and_comes_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sqlite_catalogue = Catalogue.open(f"sqlite:///{tmp_path}/catalogue.db")
    if importlib.util.find_spec("arcadedb_embedded") is None:
        missing("arcadedb-embedded")
    fill_graph(sqlite_catalogue, MADE[:3])
    handle = GraphHandle(GraphSettings(heap="256m", documents_per_batch=1), tmp_path)
    context = StageContext(sqlite_catalogue, "run")
    step = GraphSync(handle, handle.settings)
    items = pending(step, context)
    written = 0
    original = GraphStore.write

    def killing(self: GraphStore, *arguments: object) -> object:
        nonlocal written
        written += 1
        if written == 3:
            assert self.server is not None
            assert self.server.server_pid is not None
            os.kill(self.server.server_pid, signal.SIGKILL)
        return original(self, *arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(GraphStore, "write", killing)
    assert GraphStore.__init__.__kwdefaults__ is not None
    monkeypatch.setitem(
        GraphStore.__init__.__kwdefaults__, "retry_s", 1.0
    )  # not half a minute for a dead server
    try:
        [work] = batches(step, items)
        failed = run_batch(step, context, work)
        assert failed.reasons.keys() == {"failed: graph_away"}
        again = run_batch(step, context, pending(step, context))  # what the second pass of a run does
        assert dict(again.states) == {"kept": len(items)}
        assert verify_graph(sqlite_catalogue, handle.store) == []
    finally:
        handle.close()
        sqlite_catalogue.close()


def test_a_graph_server_that_is_stopped_is_one_clear_line(undisturbed: Undisturbed, tmp_path: Path) -> None:
    command = undisturbed.copy("curate", tmp_path / "data")
    command.settings |= {"HCHEM_GRAPH__URI": "bolt://127.0.0.1:9", "HCHEM_FLOWS__RETRY_DELAY_S": "0"}
    one_line(
        command.run("run", "graph", "--direct", code=2),
        "bolt://127.0.0.1:9",
        "HCHEM_GRAPH__URI",
        "not reachable",
    )


@pytest.mark.prefect
def test_the_prefect_server_dies_in_the_middle_of_a_run(undisturbed: Undisturbed, tmp_path: Path) -> None:
    command = undisturbed.copy("acquire", tmp_path / "data")
    command.settings["PREFECT_CLIENT_MAX_RETRIES"] = "1"  # a minute of repetitions by default
    process = command.start("run", "curate", "-v")
    reach(process, "curate.clean")
    server = next(
        child
        for child in psutil.process_iter(["cmdline", "environ"])
        if "prefect" in (child.info["cmdline"] or ())
        and str(command.data_dir) in (child.info["environ"] or {}).get("PREFECT_HOME", "")
    )
    os.kill(server.pid, signal.SIGKILL)
    finished = ended(process)
    if (
        finished.returncode
    ):  # Prefect's own threads may write of what they could not log, before our last word
        assert finished.returncode == 2
        last = finished.stderr.splitlines()[-1]
        assert re.fullmatch(
            r"hchem: the Prefect server \S+ went away .* the same command goes on .*", last
        ), last
    command.run(*CURATE)
    undisturbed.check(command)


# --- the clock --------------------------------------------------------------------


def faked(command: Command, offset: str, file: Path | None = None) -> Command:
    """The command by a clock that goes wrong; the monotonic clock stays right, as it does when a clock is set."""
    found = importlib.util.find_spec("libfaketime")
    if found is None or not found.submodule_search_locations:
        missing("libfaketime")
    library = Path(next(iter(found.submodule_search_locations))) / "vendor/libfaketime/src/libfaketime.so.1"
    clock = {"FAKETIME": offset} if file is None else {"FAKETIME_TIMESTAMP_FILE": str(file)}
    return replace(
        command,
        settings={
            **command.settings,
            **clock,
            "LD_PRELOAD": str(library),
            "DONT_FAKE_MONOTONIC": "1",
            "FAKETIME_NO_CACHE": "1",
        },
    )


def test_the_clock_is_set_back_during_a_run_and_before_the_next(
    undisturbed: Undisturbed, tmp_path: Path
) -> None:
    command = undisturbed.copy("acquire", tmp_path / "data")
    clock = tmp_path / "clock"
    clock.write_text("+0")
    began = time.monotonic()
    process = faked(command, "", clock).start(*CURATE)
    reach(process, "curate.clean")
    clock.write_text("-3600")
    # by a clock that is ahead the lease has long expired, but its holder is seen to live
    one_line(faked(command, "+5400").run("run", "curate", "--direct", code=2), "another run holds")
    finished = ended(process)
    assert finished.returncode == 0, finished.stderr
    took = time.monotonic() - began
    command = faked(command, "-3600")
    command.run(*CURATE)
    undisturbed.check(command)
    catalogue = Catalogue.open(sqlite(command))
    with catalogue.reading() as session:
        runs = session.scalars(select(Run).order_by(Run.started_at)).all()
        assert [row.state for row in runs] == ["completed"] * 3
        assert runs == sorted(runs, key=lambda row: row.started_at)
        assert [list(row.stages) for row in runs] == [["acquire"], ["curate"], ["curate"]]
        assert any(counts["pending"] for counts in runs[1].stages["curate"]["steps"].values())
        spent = [(row.finished_at - row.started_at).total_seconds() for row in runs if row.finished_at]
        assert all(seconds >= 0 for seconds in spent)
        assert spent[1] <= took
        last = session.get_one(Run, runs[2].run_id)
        assert not any(counts["pending"] for counts in last.stages["curate"]["steps"].values())
    catalogue.close()


def test_a_run_that_died_by_a_clock_ahead_does_not_block(undisturbed: Undisturbed, tmp_path: Path) -> None:
    command = undisturbed.copy("acquire", tmp_path / "data")
    process = faked(command, "+86400").start(*CURATE)
    reach(process, "curate.clean")
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()
    began = time.monotonic()
    command.run(*CURATE, timeout=300)
    assert time.monotonic() - began < 86400
    undisturbed.check(command)


def test_versions_stay_in_order_when_the_clock_is_set_back(undisturbed: Undisturbed, tmp_path: Path) -> None:
    command = undisturbed.copy("curate", tmp_path / "data")
    catalogue, folder = Catalogue.open(sqlite(command)), tmp_path / "datasets"
    first, _ = versions.take(catalogue, folder)
    manifest = folder / first.id / "version.json"
    manifest.chmod(0o644)  # taken by a clock that was an hour ahead
    ahead = (datetime.now(UTC) + timedelta(hours=1)).isoformat(timespec="seconds")
    manifest.write_text(re.sub(r'"taken_at": "[^"]*"', f'"taken_at": "{ahead}"', manifest.read_text()))
    with catalogue.writing() as session:
        session.execute(
            text("UPDATE documents SET title = 'Ein anderer Titel 另一个标题' WHERE state = 'kept'")
        )
    second, new = versions.take(catalogue, folder)
    catalogue.close()
    assert new
    assert [version.id for version in versions.versions(folder)] == [first.id, second.id]
    assert [versions.find(folder, name).id for name in ("current", "previous")] == [second.id, first.id]
    assert [version.id for version in versions.collect(folder, 0, dry_run=True)] == []


def test_a_lease_of_a_living_process_is_not_stolen_by_a_clock_ahead(catalogue: Catalogue) -> None:
    sleeper = subprocess.Popen(["sleep", "60"])
    try:
        mine = leases.holder_name().split("|")
        living = "|".join([mine[0], str(sleeper.pid), leases.started(sleeper.pid)[0], "other"])
        leases.take(catalogue, "run", living, -3600)
        with pytest.raises(TransientError, match="another run holds"):
            leases.take(catalogue, "run", leases.holder_name(), 60)
    finally:
        sleeper.kill()
        sleeper.wait()
    leases.take(catalogue, "run", leases.holder_name(), 60)


# --- what a full disk means to a batch --------------------------------------------


class Refused(Counting):
    """The third item meets a full disk, as a file of its own would."""

    full = True

    def process(self, ctx: StageContext, item: Item) -> Outcome:
        if self.full and item.id == "02":
            with Path("/dev/full").open("w") as file:
                file.write("正文 text")
        return Outcome()


def test_a_disk_that_is_full_halts_a_step_and_records_no_failure(catalogue: Catalogue) -> None:
    context = StageContext(catalogue, "run")
    step = Refused(name="test.refused")
    report = run_batch(step, context, pending(step, context))
    assert isinstance(context.halt.error, DiskError)
    assert report.states["kept"] == 2
    step.full = False
    again = StageContext(catalogue, "again")
    assert [item.id for item in pending(step, again)] == [f"{number:02d}" for number in range(2, 10)]
    with contextlib.suppress(PlatformError), catalogue.reading() as session:
        assert session.scalars(select(Failure.item_id)).all() == []
