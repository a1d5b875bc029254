"""Published data sets: their readers, the comparison on them, and ``hchem benchmark``. All data are made up."""

from __future__ import annotations

import itertools
import json
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow
import pyarrow.parquet
import pytest
from typer.testing import CliRunner, Result

from chunking.evaluation.published import READERS, Benchmark, comparison, read_benchmark
from chunking.evaluation.published.comparison import Cuts, compare
from chunking.evaluation.published.data import (
    BenchmarkDocument,
    BenchmarkError,
    BenchmarkQuestion,
    Places,
)
from chunking.evaluation.settings import EvaluationSettings, VectorSettings
from chunking.evaluation.statistics import Bootstrap
from chunking.segment import Segmenter
from chunking.settings import ChunkSettings
from corpus.errors import TerminalError
from flows.commands.benchmark import app
from models import ModelSettings
from models.embeddings import CachedEmbedder, NgramEncoder, Side
from models.errors import OfflineUnavailable
from models.protocols import Vectors
from tests.chunking.published_sets import EN, EN_TITLES, MAKERS, ZH, ZH_TITLES, lines, put
from tests.chunking.test_partition import HashedModels
from tests.servers.model_server import ModelServer

NAMES = list(READERS)
SETTINGS = EvaluationSettings(budget=24, budgets=(16, 24), bootstrap=100)


def made(name: str, folder: Path, **options: Any) -> Benchmark:
    MAKERS[name](folder)
    return read_benchmark(name, folder, **options)


def segments(document: BenchmarkDocument) -> list[str]:
    edges = [0, *sorted(document.borders), len(document.text)]
    return [document.text[a:b] for a, b in itertools.pairwise(edges)]


# --- the readers -------------------------------------------------------------------------------------------------


def test_every_reader_has_made_up_data() -> None:
    assert set(MAKERS) == set(READERS)


@pytest.mark.parametrize("headings", ["hidden", "removed"])
@pytest.mark.parametrize("name", NAMES)
def test_evidence_and_borders_stand_in_the_texts(name: str, headings: Any, tmp_path: Path) -> None:
    found = made(name, tmp_path, headings=headings)
    texts = {document.id: document.text for document in found.documents}
    assert len(texts) == len(found.documents) > 0
    for document in found.documents:
        assert "#" not in document.text
        assert "====" not in document.text
        assert all(0 < at < len(document.text) for at in document.borders)
        assert all(document.text[at - 1] == "\n" for at in document.borders)
    for question in found.questions:
        assert question.question
        assert question.document is None or question.document in texts
        for document_id, start, end in question.regions:
            words = texts[document_id][start:end].split()
            assert "".join(words) in "".join(" ".join(question.evidence).split()).replace("#", "")


def test_hichunk_documents(tmp_path: Path) -> None:
    found = made("hichunk", tmp_path)
    by_id = {document.id: document for document in found.documents}
    for name, title, titles, texts in (("zh1", "虚构剂甲", ZH_TITLES, ZH), ("en1", "Agent A", EN_TITLES, EN)):
        document = by_id[f"HiCBench/{name}"]
        assert segments(document) == [
            f"{title}\n",
            *(f"{a}\n{b}\n" for a, b in zip(titles, texts, strict=True)),
        ]
        assert set(document.borders.values()) == {2}
        assert document.title == title
    assert [question.subset for question in found.questions] == ["T1", "T2"]
    assert [len(question.regions) for question in found.questions] == [1, 1]
    removed = read_benchmark("hichunk", tmp_path, headings="removed", subsets=["HiCBench"])
    assert segments({d.id: d for d in removed.documents}["HiCBench/zh1"]) == [f"{text}\n" for text in ZH]
    assert removed.notes["evidence not found in the text"] == 1  # the one that quotes its heading


def test_questions_over_a_corpus(tmp_path: Path) -> None:
    safety = made("hchemsafety", tmp_path / "a")
    assert [document.id for document in safety.documents] == ["doc_test/0", "en"]
    assert [(q.subset, len(q.regions), q.answers) for q in safety.questions] == [
        ("事实", 0, ("75 ℃",)), ("", 1, (EN[2],))
    ]  # fmt: skip
    crud = made("crud", tmp_path / "b")
    assert len(crud.documents) == 3
    assert [[region[0] for region in q.regions] for q in crud.questions] == [["a1/1"], ["a1/1", "b2/2"]]
    one = read_benchmark("crud", tmp_path / "b", subsets=["questanswer_1doc"])
    assert [q.subset for q in one.questions] == ["questanswer_1doc"]
    omni = made("omnieval", tmp_path / "c")
    assert (len(omni.documents), omni.questions[0].answers) == (1, ("0.5%",))


def test_longbench_leaves_out_what_asks_nothing(tmp_path: Path) -> None:
    found = made("longbench", tmp_path)
    assert sorted(question.subset for question in found.questions) == ["multifieldqa_zh", "qasper"]
    assert found.notes == {"subsets that ask no questions": 1}
    assert {q.document for q in found.questions} == {d.id for d in found.documents}
    assert [q.subset for q in read_benchmark("longbench", tmp_path, subsets=["qasper"]).questions] == [
        "qasper"
    ]
    with pytest.raises(
        BenchmarkError, match="no subset hotpotqa; there: gov_report, multifieldqa_zh, qasper"
    ):
        read_benchmark("longbench", tmp_path, subsets=["hotpotqa"])


def test_qasper_levels_come_from_the_names_of_sections(tmp_path: Path) -> None:
    document = made("qasper", tmp_path).documents[0]
    assert [(part.split("\n")[0], document.borders.get(document.text.index(part), 0)) for part in segments(document)] == [
        ("Abstract", 0), ("Introduction", 1), ("Methods", 1), ("First aid", 2), ("Fire", 2), ("Foam", 3), ("It ends here.", 1),
    ]  # fmt: skip
    removed = read_benchmark("qasper", tmp_path, headings="removed").documents[0]
    assert [(at, level) for at, level in removed.borders.items()] == [
        (removed.text.index(text), level)
        for text, level in ((EN[0], 1), (EN[1], 1), (EN[2], 2), ("It ends", 1))
    ]
    question = read_benchmark("qasper", tmp_path / "qasper-dev-v0.3.json").questions
    assert [(q.answers, q.evidence) for q in question] == [(("alcohol-resistant foam", "Yes"), (EN[2],))]


def test_reports_articles_and_choi_files(tmp_path: Path) -> None:
    gao, crs = made("gov-report", tmp_path / "g").documents
    assert (gao.id, crs.id) == ("gao/GAO-1", "crs/R1")
    assert gao.borders == crs.borders == {gao.text.index("Foam\n"): 2, gao.text.index("Conclusions"): 1}
    wiki = made("wiki-727k", tmp_path / "w")
    assert [document.id for document in wiki.documents] == ["test/ab/cd/12345"]
    text = wiki.documents[0].text
    assert text.startswith(EN[0])
    assert wiki.documents[0].borders == {
        text.index("First aid"): 1,
        text.index("Deep"): 2,
        text.index("Fire\n"): 1,
    }
    choi = made("choi", tmp_path / "c").documents[0]
    assert segments(choi) == [f"{EN[0]}\nIt is made up .\n", f"{EN[1]}\n", f"{EN[2]}\nIt ends .\n"]


def test_books_pages_and_spans(tmp_path: Path) -> None:
    guten = made("gutenqa", tmp_path / "g")
    assert guten.documents[0].text == "\n\n".join(EN)
    assert [EN[2][4:26]] == [guten.documents[0].text[a:b] for _, a, b in guten.questions[0].regions]
    pages = made("ohr-bench", tmp_path / "o")
    assert pages.documents[0].text == f"{EN[0]}\n{EN[1]}\n\n{EN[2]}"  # by page, not by place in the file
    assert pages.notes == {"questions without their text": 1}
    spans = made("chroma", tmp_path / "c")
    (question,) = spans.questions
    assert [spans.documents[0].text[a:b] for _, a, b in question.regions] == [EN[1]]
    assert spans.notes == {"spans whose words do not stand at their offsets": 1}


@pytest.mark.parametrize(
    "quote,region",
    [
        ("乙 二。", ("b", 0, 3)),
        ("## 乙二。\n丙３", ("b", 0, 6)),
        ("丙3", ("b", 4, 6)),
        ("一。乙", None),  # from the end of one text into the next
        (" \n", None),
        ("#", None),
    ],
)
def test_quotes_are_found_across_texts_and_forms(quote: str, region: Any) -> None:
    places = Places([BenchmarkDocument("a", "", "甲一。"), BenchmarkDocument("b", "", "乙二。\n丙３")])
    assert places.find(quote) == region


def test_parquet_is_read_like_csv(tmp_path: Path) -> None:
    made("gutenqa", tmp_path / "csv")
    import csv

    for name in ("GutenQA", "questions"):
        with (tmp_path / "csv" / f"{name}.csv").open(encoding="utf-8", newline="") as file:
            rows = list(csv.DictReader(file))
        (tmp_path / "pq").mkdir(exist_ok=True)
        pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows), tmp_path / "pq" / f"{name}.parquet")
    left, right = (read_benchmark("gutenqa", tmp_path / kind) for kind in ("csv", "pq"))
    assert (left.documents, left.questions) == (right.documents, right.questions)


# --- wrong folders -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
def test_a_wrong_folder_is_told_with_what_is_there(name: str, tmp_path: Path) -> None:
    with pytest.raises(BenchmarkError, match="nowhere is not there"):
        read_benchmark(name, tmp_path / "nowhere")
    with pytest.raises(BenchmarkError, match=r"no .*; there: nothing"):
        read_benchmark(name, tmp_path)
    (tmp_path / "picture.bin").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(BenchmarkError, match=r"there: picture\.bin|is not UTF-8"):
        read_benchmark(name, tmp_path)


@pytest.mark.parametrize("content", ["{", "[1, 2]", '{"a": 1}', "null", '[{"a": "b"}]', '"text"', "", "[[]]"])
@pytest.mark.parametrize("name", NAMES)
def test_files_of_another_shape_are_one_error(name: str, content: str, tmp_path: Path) -> None:
    """Each file of the set in turn is spoiled: an error that names it, or nothing worse than rows left out."""
    MAKERS[name](tmp_path)
    paths = sorted(path for path in tmp_path.rglob("*") if path.suffix in (".json", ".jsonl", ".csv", ".ref"))
    for path in paths:
        original = path.read_bytes()
        path.write_text(content, encoding="utf-8")
        assert _told(name, tmp_path) in (None, True)
        path.write_bytes(original)


def _told(name: str, folder: Path) -> bool | None:
    """Whether the error names the folder; None where there is none."""
    try:
        read_benchmark(name, folder)
    except BenchmarkError as error:
        return str(folder) in str(error)
    return None


@pytest.mark.parametrize(
    ("name", "key", "value", "place"),
    [
        *(("qasper", "free_form_answer", value, "answer 1, free_form_answer: expected a text") for value in ("5", "true", "1e400")),
        ("qasper", "extractive_spans", "[5]", "answer 1, extractive_spans: expected a text, not 5"),
        *(("ohr-bench", "page_idx", value, "page 1, page_idx: expected a whole number") for value in ('""', '"x\\ud800"', "1e400", "true")),
    ],
)  # fmt: skip
def test_a_value_of_another_type_is_told_with_its_place(
    name: str, key: str, value: str, place: str, tmp_path: Path
) -> None:
    MAKERS[name](tmp_path)
    holder = next(path for path in sorted(tmp_path.rglob("*.json")) if f'"{key}"' in path.read_text("utf-8"))
    data = json.loads(holder.read_text("utf-8"))
    assert _spoil(data, key)
    holder.write_text(json.dumps(data).replace('"SPOILT"', value), encoding="utf-8")
    with pytest.raises(BenchmarkError) as caught:
        read_benchmark(name, tmp_path)
    assert f"{holder}, " in str(caught.value)
    assert place in str(caught.value)
    str(caught.value).encode("utf-8")


def _spoil(data: Any, key: str) -> bool:
    """Mark the first value of a key."""
    if isinstance(data, dict) and key in data:
        data[key] = "SPOILT"
        return True
    inner = data.values() if isinstance(data, dict) else data if isinstance(data, list) else ()
    return any(_spoil(part, key) for part in inner)


@pytest.mark.parametrize("value", ["1e400", "9" * 5000, "[" * 5000])
def test_endless_values_of_any_set_are_one_error(value: str, tmp_path: Path) -> None:
    MAKERS["chroma"](tmp_path / "chroma")
    table = tmp_path / "chroma" / "questions_df.csv"
    spans = '"[{""content"": ""x"", ""start_index"": ' + value + ', ""end_index"": 1}]"'
    head = "question,references,corpus_id\n"
    corpus = next((tmp_path / "chroma" / "corpora").iterdir()).stem
    table.write_text(f"{head}What?,{spans},{corpus}\n", encoding="utf-8")
    with pytest.raises(
        BenchmarkError, match=r"questions_df\.csv, question 1: references are no list of spans"
    ):
        read_benchmark("chroma", tmp_path / "chroma")
    article = tmp_path / "article"
    article.write_text(f"========,{'9' * 5000},x.\nText.\n", encoding="utf-8")
    with pytest.raises(BenchmarkError, match="article, line 1, level: expected a whole number"):
        read_benchmark("wiki-727k", article)


@pytest.mark.parametrize(
    ("name", "file"),
    [("hichunk", "qas/HiCBench.jsonl"), ("longbench", "qasper.jsonl"), ("gutenqa", "questions.csv"),
     ("omnieval", "OmniEval.json"), ("hchemsafety", "QA_test.json"), ("ohr-bench", "qas_v2.json")],
)  # fmt: skip
def test_a_file_without_a_row_is_counted(name: str, file: str, tmp_path: Path) -> None:
    MAKERS[name](tmp_path)
    path = tmp_path / file
    assert path.is_file()
    path.write_bytes(b"[]" if path.suffix == ".json" else b"\n")
    assert read_benchmark(name, tmp_path).notes["files without a row"] == 1


def test_a_missing_value_is_no_question(tmp_path: Path) -> None:
    """NaN, which pandas writes for nothing, is neither the question "nan" nor an answer."""
    put(tmp_path / "docs" / "a.txt", ZH[0])
    (tmp_path / "QA_test.json").write_text('[{"question": NaN, "answer": "75 ℃"}]', encoding="utf-8")
    with pytest.raises(BenchmarkError, match="a row has no 'question'"):
        read_benchmark("hchemsafety", tmp_path)


def test_unknown_names_and_subsets_are_told(tmp_path: Path) -> None:
    with pytest.raises(BenchmarkError, match="unknown benchmark 'squad'; benchmarks: hichunk, hchemsafety"):
        read_benchmark("squad", tmp_path)
    with pytest.raises(BenchmarkError, match="choi has no subsets"):
        read_benchmark("choi", tmp_path, subsets=["3-5"])
    put(tmp_path / "QA_test.json", [{"question": "?", "answer": "!"}])
    with pytest.raises(BenchmarkError, match="no documents"):
        read_benchmark("hchemsafety", tmp_path)


# --- the comparison ----------------------------------------------------------------------------------------------


def run(
    data: Benchmark, *methods: str, size: int = 24, cuts: Cuts | None = None
) -> dict[str, dict[str, Any]]:
    segmenter = Segmenter(HashedModels(), ChunkSettings(size=size))
    rows = compare(data, methods, segmenter, SETTINGS, VectorSettings(), cuts=cuts).rows
    json.dumps(rows, allow_nan=False)
    return {row["method"]: row for row in rows}


def test_figures_of_borders_by_hand() -> None:
    """Eight sentences of five characters, chunks of ten: predicted 10, 20, 30; gold 10 (level 1) and 25 (level 2)."""
    text = "甲甲甲甲。" * 8
    data = Benchmark("x", [BenchmarkDocument("d", "", text, {10: 1, 25: 2})])
    row = run(data, "sentence", size=10)["sentence"]
    assert (row["chunks"], row["gold_borders"], row["border_documents"]) == (4, 2, 1)
    assert row["border_precision"] == pytest.approx(1 / 3, abs=1e-6)
    assert row["border_recall"] == 0.5
    assert row["border_f1"] == {"value": 0.4, "low": 0.4, "high": 0.4, "n": 1}
    assert row["border_f1_near"]["value"] == 0.8  # 25 is one sentence from 20
    assert row["f1_level_1"]["value"] == 0.5
    assert row["f1_level_2"]["value"] == 0.0
    assert row["pk"]["n"] == 1
    assert "questions" not in row


def test_f1_is_that_of_the_sums_and_its_interval_holds_it() -> None:
    counts = np.array([[1, 2, 2], [0, 3, 1], [4, 4, 4], [2, 2, 6]], dtype=np.float64)
    found = Bootstrap(500, 0.95, 7).f1(counts)
    assert (found.value, found.n) == (pytest.approx(2 * 7 / (11 + 13), abs=1e-6), 4)
    assert found.low is not None
    assert found.high is not None
    assert found.low < found.value < found.high  # type: ignore[operator]
    assert Bootstrap(500, 0.95, 7).f1(np.zeros((3, 3))).value is None


def test_figures_of_questions_by_hand() -> None:
    texts = ["虚构剂甲易燃，有毒。", "虚构剂乙稳定，无毒。", "虚构剂丙受热分解。"]
    documents = [BenchmarkDocument(f"d{i}", "", text * 3) for i, text in enumerate(texts)]
    questions = [
        BenchmarkQuestion("1", "虚构剂乙稳定吗？", ("稳定",), (texts[1],), (("d1", 0, 10),), document="d1"),
        BenchmarkQuestion("2", "虚构剂丙受热怎样？", ("分解",), ("不在文中。",)),
        BenchmarkQuestion("3", "虚构剂丙受热怎样？", ("爆炸",), (texts[2],), (("d2", 0, 9),)),
    ]
    row = run(Benchmark("x", documents, questions), "sentence", size=10)["sentence"]
    assert row["questions"] == 3
    assert row["evidence_recall@24"]["n"] == 2  # evidence that is not in the texts is no miss
    assert row["questions_without_located_evidence"] == 1
    assert row["evidence_recall@24"]["value"] == 1.0
    assert row["answer_in_context@24"]["n"] == 3
    assert row["answer_in_context@24"]["value"] == pytest.approx(2 / 3, abs=1e-6)
    assert row["context_tokens"]["value"] <= 24
    assert "border_f1" not in row


@pytest.mark.parametrize("name", NAMES)
def test_every_set_gives_a_table(name: str, tmp_path: Path) -> None:
    data = made(name, tmp_path)
    rows = run(data, "fixed", "sentence", "hichunk")
    assert set(rows) == {"fixed", "sentence", "hichunk"} | ({"hichunk+am"} if data.questions else set())
    for row in (rows["fixed"], rows["sentence"], rows["hichunk"]):
        assert row["chunks"] >= row["documents"] == len(data.documents)
        assert ("border_f1" in row) == any(document.borders for document in data.documents)
        assert ("evidence_recall@24" in row) == any(question.regions for question in data.questions)
        assert ("answer_in_context@24" in row) == any(question.answers for question in data.questions)


def test_a_run_goes_on_where_it_was_stopped(tmp_path: Path) -> None:
    data = made("hichunk", tmp_path)
    kept = tmp_path / "kept.jsonl"
    whole = run(data, "sentence", "hichunk", cuts=Cuts(kept))
    full = kept.read_text(encoding="utf-8").splitlines()
    assert len(full) == 4
    kept.write_text("\n".join(full[:2]) + '\n{"key": "torn', encoding="utf-8")
    again = Cuts(kept)
    assert run(data, "sentence", "hichunk", cuts=again)["hichunk"]["chunks"] == whole["hichunk"]["chunks"]
    assert again.taken == 2
    third = Cuts(kept)
    rows = run(data, "sentence", "hichunk", cuts=third)
    assert third.taken == 4
    for method, row in rows.items():
        assert {k: v for k, v in row.items() if "seconds" not in k} == {
            k: v for k, v in whole[method].items() if "seconds" not in k
        }
    other = Cuts(kept)
    run(data, "sentence", size=10, cuts=other)
    assert other.taken == 0  # another size is another partition


@pytest.mark.parametrize("texts", [ZH, EN], ids=["zh", "en"])
def test_a_document_whose_answer_is_refused_counts_as_uncut(texts: list[str]) -> None:
    data = Benchmark("x", [BenchmarkDocument("d", "", "\n".join(texts), {len(texts[0]) + 1: 1})])
    with ModelServer("no json at all") as server:
        models = HashedModels(ModelSettings(base_url=server.base_url, model="m"))
        rows = compare(
            data, ["direct-llm"], Segmenter(models, ChunkSettings()), SETTINGS, VectorSettings()
        ).rows
        models.close()
    assert (rows[0]["refused_documents"], rows[0]["chunks"], rows[0]["border_recall"]) == (1, 1, 0.0)


def test_loading_the_encoder_is_no_documents_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where vectors are stored by an earlier run: made-up encoder, whose loading moves a made-up clock."""
    clock = [0.0]
    monkeypatch.setattr(comparison, "time", SimpleNamespace(monotonic=lambda: clock[0]))

    class Loading(NgramEncoder):
        loaded = False

        def encode(self, texts: Sequence[str], side: Side) -> Vectors:
            clock[0] += 1 if self.loaded else 1000
            self.loaded = True
            return super().encode(texts, side)

    class Stored:
        def __init__(self) -> None:
            self.rows: dict[str, Vectors] = {}

        def get(self, model: str, keys: Sequence[str]) -> dict[str, Vectors]:
            return {key: self.rows[key] for key in keys if key in self.rows}

        def put(self, model: str, vectors: dict[str, Vectors]) -> None:
            self.rows |= vectors

    store = Stored()
    for text in (". " + " ".join(EN), " ".join(ZH)):  # the second run is another process with the same store
        models = HashedModels()
        embedder = CachedEmbedder(Loading(), store)
        monkeypatch.setattr(models, "embedder", lambda purpose, given=embedder: given)
        data = Benchmark("x", [BenchmarkDocument("d", "", text)])
        rows = compare(
            data, ["semantic"], Segmenter(models, ChunkSettings()), SETTINGS, VectorSettings()
        ).rows
        assert 0 < rows[0]["seconds_per_document"] < 1000


def test_limit_keeps_the_questions_of_the_documents_that_stay(tmp_path: Path) -> None:
    data = made("hichunk", tmp_path)
    one = data.limited(1)
    assert len(one.documents) == len(one.questions) == 1
    assert one.questions[0].document == one.documents[0].id
    assert data.limited(9) is data
    crud = made("crud", tmp_path / "c").limited(1)
    assert [question.subset for question in crud.questions] == ["questanswer_1doc"]


# --- the command -------------------------------------------------------------------------------------------------


def called(*arguments: str) -> Result:
    return CliRunner().invoke(app, list(arguments))


def test_the_command_prints_a_table_and_json(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HCHEM_DATA_DIR", str(tmp_path / "data"))
    MAKERS["hichunk"](tmp_path / "set")
    arguments = [
        "hichunk",
        "--path",
        str(tmp_path / "set"),
        "--methods",
        "sentence,hichunk",
        "--budgets",
        "16,40",
    ]
    shown = called(*arguments)
    assert shown.exit_code == 0, shown.output
    for words in (
        "2 documents, 2 questions",
        "Borders",
        "Evidence recall by budget",
        "hichunk+am",
        "cut sentence",
    ):
        assert words in shown.output + shown.stderr
    done = called(*arguments, "--json", "--limit", "1")
    found = json.loads(done.stdout)
    assert (found["documents"], found["questions"], found["from_an_earlier_run"]) == (1, 1, 2)
    assert [row["method"] for row in found["methods"]] == ["sentence", "hichunk", "hichunk+am"]
    assert set(found["methods"][0]["evidence_recall@40"]) == {"value", "low", "high", "n"}
    assert (tmp_path / "data" / "benchmarks" / "hichunk.jsonl").is_file()
    again = json.loads(called(*arguments, "--json", "--afresh").stdout)
    assert again["from_an_earlier_run"] == 0


@pytest.mark.parametrize(
    "arguments,message",
    [
        (["squad"], "unknown benchmark 'squad'"),
        (["hichunk", "--methods", "magic"], "unknown method 'magic'"),
        (["hichunk", "--methods", " , "], "unknown method none"),
        (["hichunk", "--headings", "gone"], "unknown form 'gone'"),
        (["hichunk", "--budgets", "many"], "no whole numbers"),
        (["hichunk", "--budgets", "3"], "budget: Input should be"),
        (["hichunk", "--subset", "other"], "no documents of other; there: HiCBench"),
        (["hichunk", "--methods", "sentence,direct-llm"], "direct-llm needs a model"),
    ],
)
def test_wrong_calls_are_told(
    arguments: list[str], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HCHEM_DATA_DIR", str(tmp_path / "data"))
    MAKERS["hichunk"](tmp_path / "set")
    done = called(*arguments, "--path", str(tmp_path / "set"))
    assert isinstance(done.exception, TerminalError | OfflineUnavailable)
    assert message in str(done.exception)


def test_lines_of_json_in_a_json_file(tmp_path: Path) -> None:
    put(
        tmp_path / "QA_test.json",
        lines([{"question": "沸点？", "answer": "75 ℃"}, {"question": "?", "answer": "!"}]),
    )
    put(tmp_path / "docs" / "a.txt", ZH[0])
    assert len(read_benchmark("hchemsafety", tmp_path).questions) == 2
