"""Ages of sources, the exit code of ``hchem status --check``, and the guard against scheduled runs that pile up."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from corpus.catalogue.tables import Check, LedgerRow, Run, now
from corpus.errors import SettingsError
from flows import freshness
from flows.cli import build
from flows.parameters import RefreshParameters
from flows.runtime import open_runtime
from flows.settings import Settings
from tests.flows.gate_world import crawl, run, settings

_SOURCE = "sample"


def _aged(s: Settings, **age: float) -> None:
    """Make everything in the catalogue that much older."""
    with open_runtime(settings=s) as runtime, runtime.catalogue.writing() as db:
        for row in db.query(LedgerRow):
            row.updated_at -= timedelta(**age)
        for check in db.query(Check):
            check.at -= timedelta(**age)
        for ran in db.query(Run):
            ran.started_at -= timedelta(**age)


def _one(s: Settings) -> freshness.Age:
    with open_runtime(settings=s) as runtime:
        return next(age for age in freshness.ages(runtime.catalogue, s) if age.source == _SOURCE)


def _kept(run_id: str) -> Any:
    return crawl(_SOURCE, run_id, {"kept": 20})


def test_a_source_ages_and_is_stale(tmp_path: Path) -> None:
    s = settings(tmp_path)
    assert (_one(s).stale, _one(s).age) == (True, None)
    run(s, "1", "acquire", _kept("1"))
    assert not _one(s).stale
    _aged(s, days=8, minutes=1)
    assert _one(s).stale
    assert _one(s).line().startswith("sample: stale, visited 8 d 1 min ago (")
    patient = settings(tmp_path, freshness={"sources": {_SOURCE: "30d"}})
    assert not _one(patient).stale


def test_a_failed_crawl_is_no_visit(tmp_path: Path) -> None:
    s = settings(tmp_path)
    run(s, "1", "acquire", _kept("1"))
    _aged(s, days=9)
    before = _one(s).visited_at
    assert run(s, "2", "acquire", crawl(_SOURCE, "2", {}, "failed", "unreachable")).error is not None
    assert _one(s).visited_at == pytest.approx(before, abs=timedelta(seconds=5))
    assert _one(s).stale


def test_a_crawl_of_some_chemicals_is_no_visit_of_the_source(tmp_path: Path) -> None:
    s = settings(tmp_path)
    run(s, "1", "acquire", _kept("1"), chemicals=["甲苯"])
    assert _one(s).visited_at is None
    run(s, "2", "acquire", _kept("2"), sources=[_SOURCE])
    assert not _one(s).stale


def test_a_clock_that_was_set_back_makes_no_negative_age(tmp_path: Path) -> None:
    s = settings(tmp_path)
    run(s, "1", "acquire", _kept("1"))
    _aged(s, hours=-1)
    assert _one(s).age == timedelta(0)
    assert not _one(s).stale


def test_unknown_source_in_the_settings(tmp_path: Path) -> None:
    s = settings(tmp_path, freshness={"sources": {"无此": "1d"}})
    with (
        open_runtime(settings=s) as runtime,
        pytest.raises(SettingsError, match=r"unknown source 无此; known: .*sample"),
    ):
        freshness.ages(runtime.catalogue, s)


def test_status_says_it_with_an_exit_code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HCHEM_DATA_DIR", str(tmp_path / "data"))
    s = settings(tmp_path)

    def status(*arguments: str) -> Any:
        return CliRunner().invoke(build(["status"]), ["status", *arguments])

    never = status("--check")
    assert (never.exit_code, "sample: stale, never visited (limit 8 d)" in never.output) == (3, True)
    run(s, "1", "acquire", _kept("1"))
    fresh = status("--check", "--json")
    assert fresh.exit_code == 0
    assert json.loads(fresh.stdout)["freshness"][0]["state"] == "fresh"
    _aged(s, days=20)
    assert status("--check").exit_code == 3
    whole = status("--json")
    assert whole.exit_code == 0
    figures = json.loads(whole.stdout)
    assert figures["freshness"][0]["age_s"] == pytest.approx(20 * 86400, abs=60)
    assert figures["gates"]["passed"] >= 2
    assert "sample: stale" in status().output


# --- the guard of schedules ----------------------------------------------------------------


def _needless(s: Settings, minutes_ago: float, **parameters: Any) -> str:
    with open_runtime(settings=s) as runtime:
        scheduled = now() - timedelta(minutes=minutes_ago)
        return freshness.needless(runtime.catalogue, s, RefreshParameters(**parameters), scheduled)


def _refresh(s: Settings, run_id: str, **parameters: Any) -> None:
    run(s, run_id, "acquire", _kept(run_id), **parameters)


def test_a_late_run_ends_where_a_later_one_has_done_its_work(tmp_path: Path) -> None:
    s = settings(tmp_path)
    assert _needless(s, 60) == ""
    _refresh(s, "1")
    assert _needless(s, 60).startswith("already fresh: run 1 began after ")
    assert _needless(s, -1) == ""  # its time came after that run began
    assert _needless(s, 60, force=True) == ""
    assert _needless(s, 60, from_stage="graph") == ""


@pytest.mark.parametrize("parameters", [{"limit": 3}, {"sources": [_SOURCE]}, {"to_stage": "acquire"}])
def test_a_part_of_the_work_is_not_the_work(tmp_path: Path, parameters: dict[str, Any]) -> None:
    s = settings(tmp_path)
    _refresh(s, "1", **parameters)
    assert _needless(s, 60) == ""


def test_a_failed_run_has_not_done_the_work(tmp_path: Path) -> None:
    s = settings(tmp_path)
    run(s, "1", "acquire", crawl(_SOURCE, "1", {}, "failed", "unreachable"))
    assert _needless(s, 60) == ""


def test_fresh_sources_spare_a_scheduled_run_where_that_is_set(tmp_path: Path) -> None:
    s = settings(tmp_path, flows={"skip_if_fresher": "3d"})
    run(s, "1", "acquire", _kept("1"), sources=[_SOURCE])
    assert _needless(s, 0) == "already fresh: every source was visited within 3 d"
    _aged(s, days=4)
    assert _needless(s, 0) == ""
