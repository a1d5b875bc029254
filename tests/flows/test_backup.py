"""Backups that are no such thing, targets in use, full disks, other databases; what a collection removes and when it is killed."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import os
import random
import resource
import shutil
import sqlite3
import subprocess
import sys
import tarfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select

from corpus import archive_collection
from corpus.archive import ArchiveWriter, Exchange, Location, iterate_records, read_payload, read_record
from corpus.catalogue import Catalogue, leases, portable
from corpus.catalogue.tables import Base, Embedding, Lease, ModelCall, Page, Run, WorkBatch
from corpus.errors import CatalogueBusyError, PlatformError, SettingsError, TerminalError
from flows import backup, backup_format, housekeeping
from flows.runtime import UNFINISHED_RESTORE, open_runtime
from flows.settings import Settings, load_settings
from tests.conftest import new_database

_NOW = datetime.now(UTC)
_OLD = _NOW - timedelta(days=400)


def _quiet(*_: Any) -> None:
    return


def _exchange(url: str, body: str, date: datetime) -> Exchange:
    data = body.encode()
    stamp = date.strftime("%Y-%m-%dT%H:%M:%SZ")
    return Exchange(url, [("Host", "x.test")], 200, "OK", [("Content-Type", "text/html")], data, data, stamp)


def _page(name: str, place: Location, **facts: Any) -> Page:
    url = f"http://x.test/{name}"
    given = {"state": "kept", "payload_sha256": "s", "fetched_at": _OLD, "visited_at": _OLD} | facts
    return Page(
        page_id=name, document_id=name, source="s", url=url, identity=f"s:/{name}", final_url=url,
        warc_file=place.warc_file, warc_offset=place.offset, **given,
    )  # fmt: skip


@pytest.fixture
def data(template: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A data directory with a real archive: page a had two contents before the present one, b has one, c is gone."""
    folder = tmp_path / "data"
    folder.mkdir()
    shutil.copyfile(template, folder / "catalogue.db")
    monkeypatch.setenv("HCHEM_DATA_DIR", str(folder))
    monkeypatch.setenv("HCHEM_CONFIG", str(_config(tmp_path)))
    writer = ArchiveWriter(folder, "s-1")
    padding = os.urandom(20_000).hex()
    places = {
        text: writer.write_response(_exchange(f"http://x.test/{name}", f"{text} 第 {padding}", date))
        for name, text, date in (
            ("a", "a1", _OLD), ("a", "a2", _OLD + timedelta(days=1)), ("b", "b1", _OLD), ("c", "c1", _OLD),
            ("a", "a3", _OLD + timedelta(days=2)),
        )
    }  # fmt: skip
    writer.close()
    with _catalogue(folder) as catalogue, catalogue.writing() as db:
        db.add_all(
            [_page("a", places["a3"]), _page("b", places["b1"]), _page("c", places["c1"], state="gone")]
        )
        db.add(Run(run_id="r", flow="refresh", state="completed", settings={"说": ["明", 1.5, None, True]}))
        db.add(Embedding(model="no-such-model", text_hash="h", vector=b"\x00\xff\x01"))
        db.add(WorkBatch(batch_id="w", run_id="r", step="x", number=1, items=[], state="done"))
        db.add_all(
            ModelCall(key=key, skill="score_document", skill_version=version, model="m", raw="原", at=at)
            for key, version, at in (("old", "0-gone", _OLD), ("young", "0-gone", _NOW))
        )
    (folder / "reports").mkdir()
    (folder / "reports" / "report.html").write_text("<p>report</p>", encoding="utf-8")
    return folder


def _config(folder: Path) -> Path:
    path = folder / "hchem.toml"
    path.write_text('[graph]\npassword = "geheim-12345"\n\n[crawl]\n# 注释 geheim-12345\n', encoding="utf-8")
    return path


@contextmanager
def _catalogue(folder: Path) -> Iterator[Catalogue]:
    opened = Catalogue.open(f"sqlite:///{folder}/catalogue.db")
    yield opened
    opened.close()


def _settings(folder: Path | None = None) -> Settings:
    return load_settings({"data_dir": folder} if folder else None)


def _back_up(path: Path, **what: bool) -> backup_format.Manifest:
    wanted = {"archive": True, "reports": True, "prefect": False} | what
    return backup.backup(_settings(), path, **wanted, progress=_quiet)


def _rows(catalogue: Catalogue) -> dict[str, list[tuple[Any, ...]]]:
    with catalogue.reading() as db:
        return {
            table.name: sorted((tuple(row) for row in db.execute(select(table))), key=repr)
            for table in Base.metadata.sorted_tables
            if table.name != Lease.__tablename__
        }


def test_a_backup_comes_back_with_the_same_rows_and_files_and_without_secrets(
    data: Path, tmp_path: Path
) -> None:
    for name, age_s in (
        (".b.tar.gz.partial-dead", 0),
        (".other.partial-old", 100_000),
        (".other.partial-new", 0),
    ):
        (tmp_path / name).write_bytes(b"of a backup that was killed, or of one that is at work")
        os.utime(tmp_path / name, (time.time() - age_s,) * 2)
    (tmp_path / ".other.snapshot-old").mkdir()
    os.utime(tmp_path / ".other.snapshot-old", (time.time() - 100_000,) * 2)
    manifest = _back_up(tmp_path / "b.tar.gz")
    assert sorted(path.name for path in tmp_path.glob(".*")) == [".other.partial-new"]
    assert set(manifest.members) == {
        "catalogue.db", "warc/s-1-00001.warc.gz", "reports/report.html", "settings/hchem.toml",
    }  # fmt: skip
    target = tmp_path / "into"
    backup.restore(_settings(target), tmp_path / "b.tar.gz", force=False, progress=_quiet)
    with _catalogue(data) as before, _catalogue(target) as after:
        assert _rows(after) == _rows(before)
    for name in ("warc/s-1-00001.warc.gz", "reports/report.html"):
        assert (target / name).read_bytes() == (data / name).read_bytes()
    kept = (target / "restored-hchem.toml").read_text(encoding="utf-8")
    assert "geheim" not in kept
    assert "注释" in kept
    assert b"geheim" not in gzip.decompress((tmp_path / "b.tar.gz").read_bytes())
    assert not list(target.glob(".re*-*"))


@pytest.mark.postgres
def test_a_backup_of_each_database_restores_into_the_other(
    data: Path, tmp_path: Path, postgres_server: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with _catalogue(data) as catalogue:
        expected = _rows(catalogue)
    _back_up(tmp_path / "lite.tar.gz")
    url = new_database(postgres_server)
    monkeypatch.setenv("HCHEM_CATALOGUE__URL", url)
    monkeypatch.setenv("HCHEM_DATA_DIR", str(tmp_path / "pg"))
    backup.restore(_settings(), tmp_path / "lite.tar.gz", force=False, progress=_quiet)
    served = Catalogue.open(url)
    assert _rows(served) == expected
    manifest = _back_up(tmp_path / "pg.tar.gz")
    assert manifest.database == "postgresql"
    served.close()
    monkeypatch.delenv("HCHEM_CATALOGUE__URL")
    backup.restore(_settings(tmp_path / "lite"), tmp_path / "pg.tar.gz", force=False, progress=_quiet)
    with _catalogue(tmp_path / "lite") as catalogue:
        assert _rows(catalogue) == expected


def test_a_backup_beside_a_writer_is_one_moment_and_points_at_nothing_that_is_missing(
    data: Path, tmp_path: Path
) -> None:
    stop = threading.Event()

    def crawl() -> None:
        writer = ArchiveWriter(data, "live")
        with _catalogue(data) as catalogue, leases.held(catalogue, "run"):
            for number in range(10_000):
                if stop.is_set():
                    break
                place = writer.write_response(_exchange(f"http://x.test/{number}", f"页 {number}", _NOW))
                with catalogue.writing() as db:
                    db.add_all([_page(f"n{number}", place), Run(run_id=f"n{number}", flow="x")])
        writer.close()

    thread = threading.Thread(target=crawl)
    thread.start()
    try:
        while not list((data / "warc").glob("live*")):
            stop.wait(0.05)
        _back_up(tmp_path / "b.tar.gz")
    finally:
        stop.set()
        thread.join()
    target = tmp_path / "into"
    backup.restore(_settings(target), tmp_path / "b.tar.gz", force=False, progress=_quiet)
    with _catalogue(target) as catalogue, catalogue.reading() as db:
        pages = list(db.scalars(select(Page).where(Page.page_id.like("n%"))))
        runs = set(db.scalars(select(Run.run_id).where(Run.run_id.like("n%"))))
        assert db.get(Lease, "run") is None
    assert pages
    assert {page.page_id for page in pages} == runs  # each transaction whole or not at all
    for page in pages:
        assert read_payload(target, page.warc_file, page.warc_offset).decode() == f"页 {page.page_id[1:]}"


def _member(name: str, **facts: Any) -> tuple[tarfile.TarInfo, bytes]:
    info = tarfile.TarInfo(name)
    for key, value in facts.items():
        setattr(info, key, value)
    body = b"x" * 10 if info.type == tarfile.REGTYPE else b""
    info.size = len(body)
    return info, body


@pytest.mark.parametrize(
    "member",
    [
        _member("../outside"),
        _member("/etc/passwd"),
        _member("warc/../../outside"),
        _member("warc/a\\..\\b"),
        _member("warc/./x"),
        _member("unknown.txt"),
        _member("warc/link", type=tarfile.SYMTYPE, linkname="/etc/passwd"),
        _member("warc/hard", type=tarfile.LNKTYPE, linkname="catalogue.db"),
        _member("warc/device", type=tarfile.CHRTYPE),
        _member("warc/pipe", type=tarfile.FIFOTYPE),
        _member("warc/folder", type=tarfile.DIRTYPE),
        _member("catalogue.db"),
        _member("warc/not-listed.warc.gz"),
    ],
    ids=lambda member: member[0].name,
)
def test_a_hostile_member_is_refused_before_anything_is_written(
    member: tuple[tarfile.TarInfo, bytes], data: Path, tmp_path: Path
) -> None:
    _back_up(tmp_path / "b.tar.gz")
    _rewrite(tmp_path / "b.tar.gz", lambda members: [members[0], (member[0], member[1]), *members[1:]])
    _refused(tmp_path, "is not a whole backup")


@pytest.mark.parametrize(
    ("names", "said"),
    [
        (("reports/a", "reports/a/b.html"), "'reports/a' as a file and as a folder"),
        (("reports/a/b.html", "reports/a"), "'reports/a' as a file and as a folder"),
        (("warc/" + "苯" * 100,), "too long for a file system"),
        (("warc" + "/ab" * 400,), "too long for a file system"),
    ],
    ids=["file-first", "folder-first", "long-part", "long-path"],
)
def test_listed_members_that_no_file_system_takes_are_refused_by_name(
    names: tuple[str, ...], said: str, data: Path, tmp_path: Path
) -> None:
    _back_up(tmp_path / "b.tar.gz")

    def put(members: list[Any]) -> list[Any]:
        *kept, (info, body) = members
        listed = json.loads(body)
        for name in names:
            added, content = _member(name)
            listed["members"][name] = {"size": 10, "sha256": hashlib.sha256(content).hexdigest()}
            kept.append((added, content))
        return [*kept, (info, json.dumps(listed).encode())]

    _rewrite(tmp_path / "b.tar.gz", put)
    _refused(tmp_path, said)
    with pytest.raises(PlatformError, match=said):
        backup.check(tmp_path / "b.tar.gz", _quiet)


def _rewrite(path: Path, change: Callable[[list[Any]], list[Any]]) -> None:
    with tarfile.open(path) as tar:
        members = [(info, (tar.extractfile(info) or io.BytesIO()).read()) for info in tar]
    with tarfile.open(path, "w:gz") as tar:
        for info, body in change(members):
            info.size = len(body)
            tar.addfile(info, io.BytesIO(body))


def _refused(tmp_path: Path, why: str) -> None:
    target = tmp_path / "into"
    with pytest.raises(PlatformError, match=why):
        backup.restore(_settings(target), tmp_path / "b.tar.gz", force=False, progress=_quiet)
    assert not target.exists()
    assert not (tmp_path / "outside").exists()


@pytest.mark.parametrize("damage", ["cut", "bit", "empty", "text", "body", "no-list", "list-cut"])
def test_a_damaged_backup_is_refused_before_anything_is_written(
    damage: str, data: Path, tmp_path: Path
) -> None:
    path = tmp_path / "b.tar.gz"
    _back_up(path)
    whole = path.read_bytes()
    if damage in ("cut", "bit", "empty", "text"):
        middle = len(whole) // 2
        flipped = whole[:middle] + bytes([whole[middle] ^ 1]) + whole[middle + 1 :]
        path.write_bytes({"cut": whole[:middle], "bit": flipped, "empty": b"", "text": b"a" * 99}[damage])
    else:
        _rewrite(path, lambda members: _damaged(damage, members))
    _refused(tmp_path, "is not a whole backup")


def test_a_backup_that_ends_within_a_large_member_is_refused(data: Path, tmp_path: Path) -> None:
    """Its end shows while a member is read, not between two."""
    (data / "reports").mkdir(exist_ok=True)
    (data / "reports/large.html").write_bytes(random.Random(1).randbytes(5_000_000))
    _back_up(tmp_path / "whole.tar.gz")
    whole = (tmp_path / "whole.tar.gz").read_bytes()
    (tmp_path / "b.tar.gz").write_bytes(whole[: len(whole) // 2])
    _refused(tmp_path, "is not a whole backup")
    with pytest.raises(PlatformError, match="is not a whole backup"):
        backup.check(tmp_path / "b.tar.gz", _quiet)


def _damaged(damage: str, members: list[Any]) -> list[Any]:
    if damage == "no-list":
        return members[:-1]
    at = -1 if damage == "list-cut" else 1
    info, body = members[at]
    members[at] = (info, body[:-9] if damage == "list-cut" else body[:-1] + bytes([body[-1] ^ 1]))
    return members


@pytest.mark.parametrize("field", ["schema_revision", "format"])
def test_a_backup_of_a_newer_version_is_refused_with_one_line(field: str, data: Path, tmp_path: Path) -> None:
    _back_up(tmp_path / "b.tar.gz")

    def newer(members: list[Any]) -> list[Any]:
        info, body = members[-1]
        listed = json.loads(body) | {field: 99 if field == "format" else "9999"}
        return [*members[:-1], (info, json.dumps(listed).encode())]

    _rewrite(tmp_path / "b.tar.gz", newer)
    _refused(tmp_path, "newer version .*upgrade this installation")


@pytest.mark.parametrize("content", ["another", "no-database", "fewer-rows"])
def test_a_catalogue_that_is_not_the_listed_one_replaces_nothing(
    content: str, data: Path, tmp_path: Path
) -> None:
    _back_up(tmp_path / "b.tar.gz")

    def other(members: list[Any]) -> list[Any]:
        info, body = members[-1]
        listed = json.loads(body)
        at = next(i for i, (one, _) in enumerate(members) if one.name == backup_format.CATALOGUE)
        file = tmp_path / "other.db"
        file.write_bytes(members[at][1] if content == "fewer-rows" else b"")
        with closing(sqlite3.connect(file)) as made:
            made.execute("DELETE FROM pages" if content == "fewer-rows" else "CREATE TABLE foo (a)")
            made.commit()
        put = b"hello" * 999 if content == "no-database" else file.read_bytes()
        members[at] = (members[at][0], put)
        listed["members"][backup_format.CATALOGUE] = {
            "size": len(put), "sha256": hashlib.sha256(put).hexdigest(),
        }  # fmt: skip
        return [*members[:-1], (info, json.dumps(listed).encode())]

    _rewrite(tmp_path / "b.tar.gz", other)
    before = {path: path.read_bytes() for path in data.rglob("*.gz")}
    with portable_rows(data) as rows, pytest.raises(SettingsError, match="is not a whole backup"):
        backup.restore(_settings(), tmp_path / "b.tar.gz", force=True, progress=_quiet)
    with portable_rows(data) as after:
        assert after == rows
    assert {path: path.read_bytes() for path in data.rglob("*.gz")} == before
    assert not (data / UNFINISHED_RESTORE).exists()


@contextmanager
def portable_rows(data: Path) -> Iterator[dict[str, list[tuple[Any, ...]]]]:
    with _catalogue(data) as catalogue:
        yield _rows(catalogue)


def test_a_target_in_use_is_replaced_only_by_force_and_never_under_a_run(data: Path, tmp_path: Path) -> None:
    path = tmp_path / "b.tar.gz"
    _back_up(path)
    with _catalogue(data) as catalogue:
        with catalogue.writing() as db:
            db.add(Run(run_id="later", flow="refresh", state="completed"))
        with pytest.raises(SettingsError, match="is not empty"):
            backup.restore(_settings(), path, force=False, progress=_quiet)
        with leases.held(catalogue, "run"), pytest.raises(CatalogueBusyError):
            backup.restore(_settings(), path, force=True, progress=_quiet)
        with catalogue.reading() as db:
            assert db.get(Run, "later") is not None
    (data / "graph").mkdir()  # a projection of what is replaced
    backup.restore(_settings(), path, force=True, progress=_quiet)
    assert not (data / "graph").exists()
    with _catalogue(data) as catalogue, catalogue.reading() as db:
        assert db.get(Run, "later") is None
        assert read_payload(data, "warc/s-1-00001.warc.gz", db.get_one(Page, "a").warc_offset)[:2] == b"a3"


_LIMITED = """
import sys
from pathlib import Path
from flows import cli
sys.argv = ["hchem", *sys.argv[1:]]
cli.main()
"""


def _with_full_disk(*arguments: str, most: int) -> subprocess.CompletedProcess[str]:
    """The command in a process whose files cannot grow beyond ``most`` bytes: the write fails as on a full disk."""

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))

    return subprocess.run(
        [sys.executable, "-c", _LIMITED, *arguments],
        preexec_fn=limit, capture_output=True, text=True, check=False, timeout=600,
    )  # fmt: skip


def test_a_full_disk_leaves_nothing_half(data: Path, tmp_path: Path) -> None:
    (data / "reports" / "inspect-x.html").write_bytes(os.urandom(3_000_000))
    path = tmp_path / "b.tar.gz"
    before = sorted(tmp_path.iterdir())
    ended = _with_full_disk("backup", str(path), most=1_500_000)
    assert ended.returncode == 2
    assert "cannot be written" in ended.stderr.splitlines()[-1]
    assert sorted(tmp_path.iterdir()) == before
    _back_up(path)
    into = tmp_path / "into"
    ended = _with_full_disk("restore", str(path), "--into", str(into), most=1_500_000)
    assert ended.returncode == 2
    assert "nothing was restored" in ended.stderr.splitlines()[-1]
    with _catalogue(into) as catalogue:
        assert portable.is_empty(catalogue)
    assert not (into / "warc").exists()
    assert not list(into.glob(".restoring-*"))


_KILLED = """
import os, sys
from {module} import {name} as module
def die(*_, **__):
    os._exit(9)
setattr(module, sys.argv.pop(1), die)
from flows import cli
sys.argv = ["hchem", *sys.argv[1:]]
cli.main()
"""


def _killed_at(module: str, function: str, *arguments: str) -> None:
    package, _, name = module.rpartition(".")
    program = _KILLED.format(module=package, name=name)
    ended = subprocess.run(
        [sys.executable, "-c", program, function, *arguments],
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
    assert ended.returncode == 9, ended.stderr


def test_a_killed_restore_keeps_runs_away_until_it_is_repeated(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, into = tmp_path / "b.tar.gz", tmp_path / "into"
    _back_up(path)
    _killed_at("corpus.catalogue.portable", "copy_sqlite", "restore", str(path), "--into", str(into))
    assert (into / UNFINISHED_RESTORE).exists()
    monkeypatch.setenv("HCHEM_DATA_DIR", str(into))
    with pytest.raises(SettingsError, match="did not come to its end"), open_runtime():
        pass
    backup.restore(_settings(into), path, force=False, progress=_quiet)
    with open_runtime() as runtime, runtime.catalogue.reading() as db:
        assert db.get(Page, "a") is not None
    assert not list(into.glob(".rest*-*"))


# --- collection -------------------------------------------------------------------


def _bodies(data: Path) -> list[str]:
    files = sorted((data / "warc").glob("*.warc.gz"))
    return sorted(record.payload.decode()[:2] for file in files for record in iterate_records(file))


def _agree(data: Path) -> None:
    """Every page finds in the archive what it said."""
    with _catalogue(data) as catalogue, catalogue.reading() as db:
        for page in db.scalars(select(Page)):
            record = read_record(data, page.warc_file, page.warc_offset)
            assert record.url == page.url
            assert record.payload.decode()[:2] == {"a": "a3", "b": "b1", "c": "c1"}[page.page_id]


def _lines(plan: housekeeping.Plan) -> dict[str, int]:
    return {line.what: line.count for line in plan.lines if line.count}


def test_a_collection_shows_then_removes_what_nothing_refers_to(data: Path) -> None:
    before = sorted(path for path in data.rglob("*") if path.is_file() and "catalogue" not in path.name)
    with open_runtime() as runtime:
        shown = housekeeping.survey(runtime)
    assert sorted(p for p in data.rglob("*") if p.is_file() and "catalogue" not in p.name) == before
    expected = {
        "archive files rewritten": 1, "pages that are gone": 1, "model answers": 1, "vectors": 1, "shared batches": 1,
    }  # fmt: skip
    assert _lines(shown) == expected
    with open_runtime() as runtime:
        assert _lines(housekeeping.collect(runtime, _quiet)) == expected
    _agree(data)
    assert _bodies(data) == ["a3", "b1", "c1"]
    with open_runtime() as runtime:
        housekeeping.collect(runtime, _quiet)  # the tombstone went, and now its record
        assert _lines(housekeeping.survey(runtime)) == {}
        with runtime.catalogue.reading() as db:
            assert {row.key for row in db.scalars(select(ModelCall))} == {"young"}
            assert {row.page_id for row in db.scalars(select(Page))} == {"a", "b"}
    assert _bodies(data) == ["a3", "b1"]
    _agree(data)


def test_what_is_young_stays(data: Path) -> None:
    with open_runtime() as runtime:
        plan = housekeeping.collect(runtime, _quiet, keep_days=1000)
    assert set(_lines(plan)) == {"vectors", "shared batches"}
    assert _bodies(data) == ["a1", "a2", "a3", "b1", "c1"]


def test_contents_that_a_kept_version_rests_on_stay_until_it_goes(data: Path) -> None:
    version = data / "datasets" / "0123456789abcdef"
    version.mkdir(parents=True)
    taken = (_OLD + timedelta(days=1, hours=1)).isoformat(timespec="seconds")
    (version / "version.json").write_text(
        json.dumps({"id": version.name, "taken_at": taken, "run_id": "r", "rows": {}}), encoding="utf-8"
    )
    (version / "corpus.jsonl").write_text('{"url": "s:/a"}\n{"url": "s:/c"}\n', encoding="utf-8")
    with open_runtime() as runtime:
        housekeeping.collect(runtime, _quiet)
        assert _bodies(data) == ["a1", "a2", "a3", "b1", "c1"]  # in force then, and the one before
        with runtime.catalogue.reading() as db:
            assert db.get(Page, "c") is not None  # the tombstone too
        shutil.rmtree(version)
        housekeeping.collect(runtime, _quiet)
        housekeeping.collect(runtime, _quiet)
    assert _bodies(data) == ["a3", "b1"]
    _agree(data)


@pytest.mark.parametrize("function", ["_point", "_remove"])
def test_a_collection_that_is_killed_leaves_agreement_and_is_completed_by_the_next(
    function: str, data: Path
) -> None:
    _killed_at("corpus.archive_collection", function, "gc")
    _agree(data)
    with open_runtime() as runtime:
        housekeeping.collect(runtime, _quiet)
        housekeeping.collect(runtime, _quiet)
    _agree(data)
    assert _bodies(data) == ["a3", "b1"]
    assert [p.name for p in (data / "warc").iterdir() if p.name.startswith(".")] == []


def test_a_collection_leaves_alone_what_a_writer_has_open_or_a_page_contradicts(data: Path) -> None:
    writer = ArchiveWriter(data, "s-1")  # goes on in the file
    writer.write_response(_exchange("http://x.test/d", "d1", _NOW))
    with open_runtime() as runtime:
        plan = housekeeping.collect(runtime, _quiet)
    assert plan.archive.skipped == {"warc/s-1-00001.warc.gz": "a crawl has it open"}
    writer.close()
    with closing(sqlite3.connect(data / "catalogue.db")) as catalogue:
        catalogue.execute("UPDATE pages SET warc_offset = warc_offset + 1 WHERE page_id = 'b'")
        catalogue.commit()
    with open_runtime() as runtime:
        plan = housekeeping.collect(runtime, _quiet)
    assert "no record begins" in plan.archive.skipped["warc/s-1-00001.warc.gz"]
    assert _bodies(data) == ["a1", "a2", "a3", "b1", "c1", "d1"]


def test_collection_backup_and_run_keep_away_from_each_other(data: Path, tmp_path: Path) -> None:
    with open_runtime() as runtime:
        with leases.held(runtime.catalogue, "run"), pytest.raises(CatalogueBusyError):
            housekeeping.collect(runtime, _quiet)
        with leases.held(runtime.catalogue, "archive"):
            with pytest.raises(CatalogueBusyError):
                housekeeping.collect(runtime, _quiet)
            with pytest.raises(CatalogueBusyError, match="a backup, a collection or a restore is at work"):
                _back_up(tmp_path / "b.tar.gz")
    assert not (tmp_path / "b.tar.gz").exists()


def test_a_revisit_that_stays_keeps_what_it_repeats(data: Path) -> None:
    with _catalogue(data) as catalogue:
        with catalogue.reading() as db:
            page = db.get_one(Page, "a")
            old = next(r for r in iterate_records(data / page.warc_file) if r.payload.startswith(b"a1"))
        writer = ArchiveWriter(data, "s-2")
        writer.write_revisit(_exchange("http://x.test/e", "", _NOW), old, not_modified=False)
        writer.close()
        plan = archive_collection.survey(
            catalogue, data, before=_NOW - timedelta(days=1), moments={}, waste_share=0.01
        )
    kept = {record.place.offset for file in plan.files for record in file.keep}
    assert old.offset in kept


def test_a_damaged_catalogue_is_not_backed_up(data: Path, tmp_path: Path) -> None:
    with (data / "catalogue.db").open("r+b") as file:
        file.seek(4096 * 3)
        file.write(os.urandom(4096 * 8))
    with pytest.raises((TerminalError, SettingsError)):
        _back_up(tmp_path / "b.tar.gz")
    assert not (tmp_path / "b.tar.gz").exists()
