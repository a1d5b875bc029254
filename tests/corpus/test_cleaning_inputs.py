"""The generated hostile pages are those of their seed, whatever else is loaded."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, given, seed, settings

from tests.corpus.hostile import BACKEND, markup


def pages(number: int) -> list[bytes]:
    found: list[bytes] = []

    @seed(number)
    @settings(max_examples=40, database=None, deadline=None, backend=BACKEND, phases=[Phase.generate], suppress_health_check=list(HealthCheck))  # fmt: skip
    @given(markup())
    def collect(case: tuple[bytes, dict[str, str]]) -> None:
        found.append(case[0] + repr(case[1]).encode())

    collect()
    return found


def test_a_module_that_is_loaded_changes_no_input(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = pages(3)
    constants = ", ".join(map(str, range(40)))
    (tmp_path / "full_of_constants.py").write_text(f'NUMBERS = ({constants})\nWORDS = ("苯", "benzene")\n')
    monkeypatch.syspath_prepend(tmp_path)
    importlib.import_module("full_of_constants")
    try:
        assert pages(3) == before
    finally:
        del sys.modules["full_of_constants"]
    assert pages(4) != before
