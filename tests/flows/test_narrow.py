"""Lists in a terminal of 80 columns: ids and names that a person types, and numbers, are whole."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from typer.testing import CliRunner

from corpus.catalogue import Catalogue
from corpus.catalogue.tables import Document, Evaluation, Page, Run
from flows.cli import build
from flows.console import whole

RUNS = [f"20240301T05{n:02}31-51{n}2fa" for n in range(3)]
METHODS = ("qchunker-no-completion", "qchunker", "fixed")
METRICS = ("evidence_recall", "substring_recall", "rouge_l", "bleu_4", "meteor", "context_tokens")


@pytest.fixture
def narrow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HCHEM_DATA_DIR", str(tmp_path))
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.chdir(tmp_path)
    made = Catalogue.open(f"sqlite:///{tmp_path}/catalogue.db")
    began = datetime(2024, 3, 1, 5, 0, tzinfo=UTC)
    counts = {"pending": 60, "states": {"kept": 60}, "reasons": {"low_score": 3}, "counts": {"completed": 1234},
              "wall_seconds": 12.5}  # fmt: skip
    with made.writing() as session:
        for n, key in enumerate(RUNS):
            session.add(
                Run(run_id=key, flow="backfill", state="suspended", message="stopped on request " * 4,
                    started_at=began + timedelta(hours=n), finished_at=began + timedelta(hours=n, seconds=481),
                    stages={"chunks": {"seconds": 1.0, "steps": {"curate.deduplicate": counts, "graph.reference": counts}}})
            )  # fmt: skip
        session.add(
            Page(
                page_id="ab" * 16,
                document_id="d",
                source="s",
                url="https://x/" + "y" * 90,
                identity="x",
                state="excluded",
                reason="robots_unavailable",
            )
        )
        for n, title in enumerate(("安全资料" * 20, "Safety data " * 20)):
            session.add(Document(document_id=f"{n}" * 32, page_id="p", source="s", url="https://x/" + "y" * 90,
                                 identity=f"x{n}", title=title, language="zh", state="kept", score=4.5))  # fmt: skip
        for method in METHODS:
            for metric in METRICS:
                session.add(Evaluation(evaluation_id=f"{method}{metric}", table="main", method=method, metric=metric,
                                       setting={}, value=1375.0 if metric == "context_tokens" else 0.632, n=200, unit=""))  # fmt: skip
    made.close()
    return tmp_path


def _shown(*argv: str) -> str:
    ended = CliRunner().invoke(build([argv[0]]), list(argv))
    assert ended.exit_code == 0, (ended.output, ended.exception)
    return ended.output


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("runs list", RUNS),
        ("runs show last", ["curate.deduplicate", "graph.reference"]),
        ("status", [*METHODS, "0.632", "1375"]),
        ("documents list", ["0" * 32, "1" * 32]),
        ("pages list", ["ab" * 6, "excluded"]),
        ("sources list", ["chemicalbook-zh"]),
        ("models show", ["extract_assertions"]),
    ],
)
def test_what_is_typed_is_whole_at_80_columns(narrow: Path, command: str, expected: list[str]) -> None:
    shown = _shown(*command.split())
    words = shown.replace("│", " ").split()
    assert [text for text in expected if text not in words] == []
    assert "…" not in shown
    table = [line for line in shown.splitlines() if any(text in line for text in expected)]
    assert max(map(cell_len, table)) <= 80


def test_other_columns_give_way_and_numbers_stay(capsys: pytest.CaptureFixture[str]) -> None:
    table = Table("id", "名称", box=None)
    table.add_column("substances found", justify="right")
    table.add_row("0123456789abcdef", "浓硫酸" * 30, "1234567")
    Console(width=44, color_system=None).print(whole(table, "id"))
    shown = capsys.readouterr().out
    assert "0123456789abcdef" in shown
    assert "1234567" in shown
    assert "…" not in shown
    assert shown.count("浓") == 30
    assert max(map(cell_len, shown.splitlines())) <= 44
