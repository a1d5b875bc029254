"""Answers, studies and questions made from Markdown files in ``hchem benchmark``. All data are made up."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from chunking.evaluation import metrics
from chunking.evaluation.published import Benchmark
from chunking.evaluation.published.comparison import Cuts, compare
from chunking.evaluation.published.data import BenchmarkDocument, BenchmarkQuestion
from chunking.evaluation.published.questions import Asking
from chunking.evaluation.settings import VectorSettings
from chunking.segment import Segmenter
from chunking.settings import ChunkSettings
from corpus.errors import TerminalError
from tests.chunking.published_sets import MAKERS, put
from tests.chunking.test_partition import HashedModels
from tests.chunking.test_published import SETTINGS, called
from tests.chunking.test_qchunker import EN_SHEET, SHEET
from tests.servers.model_server import ModelServer


@pytest.mark.parametrize(
    ("question", "reference", "text"),
    [
        ("虚构剂乙的闪点是多少？", "虚构剂乙的闪点为75 ℃。", "虚构剂乙的闪点为75 ℃。虚构剂乙稳定，无毒。"),
        (
            "What is the flash point of madeupine B?",
            "The flash point of madeupine B is 75 °C.",
            "The flash point of madeupine B is 75 °C. It is stable and not toxic.",
        ),
    ],
    ids=["zh", "en"],
)
def test_answers_have_the_figures_of_the_stage_evaluate(question: str, reference: str, text: str) -> None:
    data = Benchmark(
        "x",
        [BenchmarkDocument("d", "", text)],
        [
            BenchmarkQuestion("1", question, ("别的。", reference), document="d"),
            BenchmarkQuestion("2", question, (), document="d"),  # no reference: not asked, no figure
        ],
    )
    segmenter = Segmenter(HashedModels(), ChunkSettings(size=20))
    asking = Asking(facts=True, every_budget=True)
    (row,) = compare(data, ["sentence"], segmenter, SETTINGS, VectorSettings(), asking=asking).rows
    wanted = metrics.answer_figures(reference, (reference,))
    assert (row["rouge_l"]["value"], row["rouge_l"]["n"]) == (wanted["rouge_l"], 1)
    assert row["bleu_4"]["value"] == pytest.approx(wanted["bleu_4"])
    assert row["meteor"]["value"] == pytest.approx(wanted["meteor"], abs=1e-5)
    assert row["token_f1"]["value"] == row["answered"]["value"] == 1.0
    assert {name for name in row if "@" in name and name.startswith("rouge")} == {"rouge_l@16", "rouge_l@24"}
    assert row["rouge_l@24"]["value"] == 1.0
    (without,) = compare(
        data, ["sentence"], segmenter, SETTINGS, VectorSettings(), asking=Asking(answers=False)
    ).rows
    assert "rouge_l" not in without
    assert "answer_in_context@24" in without


def test_of_several_references_the_best_counts() -> None:
    one = metrics.answer_figures("闪点11 ℃", ("沸点64 ℃", "闪点11 ℃"))
    assert one["rouge_l"] == one["token_f1"] == 1.0
    assert one == metrics.answer_figures("闪点11 ℃", ("闪点11 ℃", "沸点64 ℃"))
    assert set(metrics.answer_figures("x", ()).values()) == {None}


@pytest.mark.parametrize(
    ("text", "question"), [(SHEET, "LD50是多少？"), (EN_SHEET, "What is the MLD?")], ids=["zh", "en"]
)
def test_a_method_that_completes_has_a_row_without_completion(
    text: str, question: str, tmp_path: Path
) -> None:
    data = Benchmark(
        "x", [BenchmarkDocument("d", "", text)], [BenchmarkQuestion("1", question, ("5628 mg/kg",))]
    )
    segmenter = Segmenter(HashedModels(), ChunkSettings(size=40))
    found = compare(
        data, ["qchunker"], segmenter, SETTINGS, VectorSettings(), studies=True, cuts=Cuts(tmp_path / "c")
    )
    assert [row["method"] for row in found.rows] == ["qchunker", "qchunker-no-completion"]
    assert found.rows[1]["questions"] == 1
    assert {row.metric for row in found.studies if row.table == "completion"} >= {"loss_before", "loss_after"}
    assert found.rows[0]["chunkscore"]["n"] == 1
    kept = Cuts(tmp_path / "c")
    again = compare(data, ["qchunker"], segmenter, SETTINGS, VectorSettings(), studies=True, cuts=kept)
    assert again.rows[0]["chunkscore"] == found.rows[0]["chunkscore"]
    assert sum("score" in json.loads(line) for line in (tmp_path / "c").read_text("utf-8").splitlines()) == 1


def _markdown(folder: Path) -> None:
    """Made-up manuals, zh and en, whose sections are long enough for all kinds of questions."""
    for language, title, names, line in (
        ("zh", "虚构剂手册", ("储存", "消防", "急救"), "第{n}号库房存放虚构剂{n}，温度不得超过{n}5 ℃，并与第{n}类氧化剂隔开{n}米。"),
        ("en", "Madeupine manual", ("Storage", "Fires", "First aid"),
         "Room number {n} holds madeupine lot {n} below {n}5 degrees and {n} metres away from oxidiser group {n}. "),
    ):  # fmt: skip
        parts = [
            f"## {name}\n\n" + "".join(line.format(n=at * 40 + n) for n in range(1, 32)) + "\n\n"
            for at, name in enumerate(names)
        ]
        put(folder / language / "manual.md", f"# {title}\n\n" + "".join(parts))


def test_a_set_of_section_questions_is_made_told_and_taken_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HCHEM_DATA_DIR", str(tmp_path / "data"))
    monkeypatch.setenv("HCHEM_MODELS__EMBEDDINGS__COHESION", "ngram")
    _markdown(tmp_path / "md")
    put(tmp_path / "md" / "empty.md", "")
    put(tmp_path / "md" / "plain.md", "无标题。\n")
    arguments = [
        "sections",
        "--path",
        str(tmp_path / "md"),
        "--out",
        str(tmp_path / "set"),
        "--methods",
        "sentence",
    ]
    shown = called(*arguments, "--dry-run")
    assert "no model is configured" in shown.output
    assert not (tmp_path / "set").exists()
    found = json.loads(called(*arguments, "--json", "--report", str(tmp_path / "r.html")).stdout)
    assert found["questions_by"].startswith("offline")
    assert set(found["methods"][0]["subsets"]) == {"T0", "T1", "T2"}
    assert found["questions_with_located_evidence"] == found["questions"] > 5
    assert "data:image/svg+xml" in (tmp_path / "r.html").read_text("utf-8")
    card = json.loads((tmp_path / "set" / "card.json").read_text("utf-8"))
    assert card["offline"] is True
    assert card["files_left_out"] == {
        "files without a text": 1,
        "files without headed sections (lines with # marks)": 1,
    }
    assert "**offline**" in (tmp_path / "set" / "README.md").read_text("utf-8")
    assert set(card["languages"]) == {"zh", "en"}
    file = tmp_path / "set" / "qas" / "sections.jsonl"
    before = file.read_bytes()
    file.write_bytes(before + b" ")  # a set that is there is taken, not made again
    assert (
        json.loads(called(*arguments, "--json", "--subset", "T1", "--corpus-wide").stdout)["questions"]
        == card["questions"]["T1"]
    )
    assert file.read_bytes() == before + b" "
    called(*arguments, "--json", "--seed", "1")
    assert file.read_bytes() != before + b" "
    published = json.loads(
        called("hichunk", "--path", str(tmp_path / "set"), "--methods", "fixed", "--json").stdout
    )
    assert published["documents"] == 2


def test_the_cost_of_a_set_and_of_a_comparison_is_told_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HCHEM_DATA_DIR", str(tmp_path / "data"))
    monkeypatch.setenv("HCHEM_MODELS__EMBEDDINGS__COHESION", "ngram")
    _markdown(tmp_path / "md")
    MAKERS["hichunk"](tmp_path / "published")
    with ModelServer("never asked") as server:
        monkeypatch.setenv("HCHEM_MODELS__MODEL", "m")
        monkeypatch.setenv("HCHEM_MODELS__BASE_URL", server.base_url)
        made = json.loads(called("sections", "--path", str(tmp_path / "md"), "--dry-run", "--json").stdout)
        told = json.loads(
            called(
                "hichunk",
                "--path",
                str(tmp_path / "published"),
                "--methods",
                "sentence",
                "--dry-run",
                "--json",
            ).stdout
        )
        assert server.calls() == []
    skills = {row["skill"]: row for row in made["skills"]}
    assert {"summarise_section", "write_question", "extract_evidence"} <= set(skills)
    assert skills["write_question"]["calls"] > 5
    assert made["notes"]
    (row,) = told["skills"]
    assert (row["skill"], row["calls"]) == ("answer_question", 2)


@pytest.mark.parametrize(
    "content,message",
    [
        (None, "no Markdown file"),
        (b"", "no document that questions can be made of (1 files without a text)"),
        ("# 苯\n\n短。\n".encode(), "without headed sections"),
        ("# 标题\n\n## 储存\n文".encode("gb18030"), "is not UTF-8 (byte"),
        (b"# A\n\n## B\n\nShort.\n\n## C\n\nShort.\n", "no question was left (no section is long enough)"),
    ],
)
def test_folders_that_no_questions_can_be_made_of(
    content: bytes | None, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HCHEM_DATA_DIR", str(tmp_path / "data"))
    (tmp_path / "md").mkdir()
    if content is not None:
        (tmp_path / "md" / "a.md").write_bytes(content)
    done = called("sections", "--path", str(tmp_path / "md"))
    assert isinstance(done.exception, TerminalError)
    assert message in str(done.exception)


def test_a_folder_of_something_else_is_not_written_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HCHEM_DATA_DIR", str(tmp_path / "data"))
    _markdown(tmp_path / "md")
    put(tmp_path / "mine" / "notes.txt", "keep")
    done = called("sections", "--path", str(tmp_path / "md"), "--out", str(tmp_path / "mine"))
    assert "is no set of questions" in str(done.exception)
    assert [path.name for path in (tmp_path / "mine").iterdir()] == ["notes.txt"]
