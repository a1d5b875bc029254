"""What becomes of data over time, on a site of three pages: moved, backed up and restored, pages that go and come back."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select

from corpus.archive import read_payload
from corpus.catalogue import Catalogue
from corpus.catalogue.tables import Page, now
from tests.conftest import SAMPLES
from tests.flows.conftest import Command
from tests.flows.tiny import PAGES, tiny_site, write_manifest

_ON = (
    "refresh",
    "--direct",
    "--to-stage",
    "questions",
    "--on-gate",
    "continue",
)  # a page of three is a drop that a gate stops at

pytestmark = [pytest.mark.slow, pytest.mark.timeout(2400)]


@dataclass(frozen=True)
class Finished:
    """A whole run on the site, and the data set that it gave."""

    command: Command
    export: dict[str, bytes]

    def copy(self, folder: Path) -> Command:
        shutil.copytree(self.command.data_dir, folder)
        return Command(folder, dict(self.command.settings))


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Finished:
    folder = tmp_path_factory.mktemp("finished")
    command = Command(folder / "data", {"HCHEM_CRAWL__SAMPLE_DIR": str(tiny_site(folder / "site"))})
    command.run("refresh", "--direct")
    return Finished(command, command.export("first"))


def _worked(command: Command) -> set[str]:
    """Steps of the last run that had something to do."""
    stages = command.last_run()["stages"]
    return {name for stage in stages.values() for name, counts in stage["steps"].items() if counts["pending"]}


def test_data_that_moved_go_on_and_a_restored_backup_only_rebuilds_projections(
    finished: Finished, tmp_path: Path
) -> None:
    moved = finished.copy(tmp_path / "else where" / "数据")
    moved.run("refresh", "--direct")
    assert _worked(moved) == {"acquire.crawl"}
    question = json.loads(finished.export["qa.jsonl"].splitlines()[0])["id"]
    traced = moved.run("trace", question, "--json").stdout
    place = next(iter(_values(json.loads(traced), "archive")))
    file, _, offset = place.partition("@")
    assert read_payload(moved.data_dir, file, int(offset)).startswith(b"<")
    assert (moved.data_dir / "reports" / "report.html").stat().st_size > 10_000

    file_ = tmp_path / "备份.tar.gz"
    moved.run("backup", str(file_))
    restored = Command(tmp_path / "restored", dict(moved.settings))
    told = restored.run("restore", str(file_)).stderr
    assert "graph and the vector index are not part of a backup" in told
    assert not (restored.data_dir / "graph").exists()
    assert not (restored.data_dir / "vectors").exists()
    versions = json.loads(restored.run("dataset", "versions", "--json").stdout)
    assert [version["tags"] for version in versions] == [["current"]]
    restored.run("refresh", "--direct")
    assert _worked(restored) == {"acquire.crawl", "graph.sync", "graph.snapshot", "evaluate.index"}
    assert restored.export("restored") == finished.export
    restored.run("graph", "verify")


def _values(data: Any, name: str) -> Iterator[str]:
    if isinstance(data, dict):
        if data.get(name):
            yield data[name]
        data = list(data.values())
    if isinstance(data, list):
        for inner in data:
            yield from _values(inner, name)


def _page(command: Command, name: str) -> Page:
    catalogue = Catalogue.open(f"sqlite:///{command.data_dir}/catalogue.db")
    try:
        with catalogue.reading() as db:
            return next(row for row in db.scalars(select(Page)) if row.url.endswith(name))
    finally:
        catalogue.close()


def test_a_page_that_is_gone_leaves_a_tombstone_and_lives_again_when_it_is_back(
    finished: Finished, tmp_path: Path
) -> None:
    site = tiny_site(tmp_path / "site")
    command = finished.copy(tmp_path / "data")
    command.settings["HCHEM_CRAWL__SAMPLE_DIR"] = str(site)
    lost = PAGES[0]
    began = now()
    write_manifest(site, PAGES[1:])
    (site / "pages" / lost).unlink()
    command.run(*_ON)
    tombstone = _page(command, lost)
    assert (tombstone.state, tombstone.status) == ("gone", 404)
    assert tombstone.reason
    assert tombstone.visited_at is not None
    assert tombstone.visited_at > began
    assert tombstone.payload_sha256  # what it said stays in the archive
    found = json.loads(command.run("dataset", "diff", "--all", "--json").stdout)
    changes = found["changes"]
    document = tombstone.document_id
    assert [c["id"] for c in changes if (c["what"], c["how"]) == ("document", "retired")] == [document]
    assert any((c["what"], c["how"]) == ("fact", "retired") for c in changes)
    assert any(c["how"] == "stale" and c["why"] == "document retired" for c in changes)
    exported = command.export("gone")
    assert document.encode() not in b"".join(
        exported[f"{name}.jsonl"] for name in ("corpus", "triples", "qa")
    )
    command.run("graph", "verify")  # its facts left the graph, too

    write_manifest(site, PAGES)
    shutil.copyfile(SAMPLES / "pages" / lost, site / "pages" / lost)
    command.run(*_ON)
    assert _page(command, lost).state == "kept"
    assert command.export("back") == finished.export
