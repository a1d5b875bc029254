"""The evaluate stage on hand-made rows."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select

from chunking.evaluation.protocol import evaluation_questions
from chunking.evaluation.settings import EvaluationSettings, VectorSettings
from chunking.evaluation.stage import evaluate_stage
from chunking.evaluation.tables import HEADLINE
from chunking.settings import ChunkSettings
from corpus.catalogue import Catalogue
from corpus.catalogue.tables import Chunk, Evaluation, Partition, Question
from corpus.stages import BatchReport, Stage, StageContext, pending, run_step
from models import Models
from models.settings import EmbeddingSettings, Limits, ModelSettings, SkillModel
from tests.chunking.rows import add_chunks, add_documents, add_question
from tests.servers.model_server import Fault, ModelServer, Request

SETTINGS = EvaluationSettings(budget=30, budgets=(16, 30, 60), bootstrap=200)


def fill(catalogue: Catalogue, *, questions: bool = True) -> None:
    with catalogue.writing() as session:
        add_documents(session)
        add_chunks(session, "sentence", 20)
        add_chunks(session, "hichunk", 20)
        add_chunks(
            session, "fixed", lambda text: [(i, min(i + 9, len(text))) for i in range(0, len(text), 9)]
        )
        if not questions:
            return
        add_question(session, "methanol-zh", "甲醇的闪点是多少？", "11 ℃", "闪点：11 ℃（闭杯）。")
        add_question(
            session, "toluene-zh", "甲苯的引燃温度是多少？", "535 ℃", "引燃温度：535 ℃。", kind="multi_hop"
        )
        add_question(
            session,
            "acetone-en",
            "What is the flash point of acetone?",
            "-20 °C",
            "The flash point is -20 °C (closed cup).",
        )
        add_question(session, "acetone-en", "Not kept?", "x", "Acetone", state="rejected")
        add_question(session, "acetone-en", "For training?", "x", "Acetone", split="train")


def stage_of(data_dir: Path, models: Models | None = None, **changes: Any) -> Stage:
    models = models or Models(ModelSettings(api_key=None, embeddings=EmbeddingSettings(cohesion="ngram")))
    chunks = ChunkSettings(methods=["fixed", "sentence", "hichunk"])
    return evaluate_stage(SETTINGS.model_copy(update=changes), chunks, VectorSettings(), models, data_dir)


def run(catalogue: Catalogue, stage: Stage) -> list[BatchReport]:
    context = StageContext(catalogue=catalogue, run_id="run")
    return [run_step(step, context) for step in stage.steps]


def rows(catalogue: Catalogue, table: str = "") -> list[Evaluation]:
    query = select(Evaluation).order_by(Evaluation.evaluation_id)
    with catalogue.reading() as session:
        return list(session.scalars(query.where(Evaluation.table == table) if table else query))


def plain(catalogue: Catalogue) -> list[dict[str, Any]]:
    return [
        {c.key: getattr(row, c.key) for c in Evaluation.__mapper__.column_attrs} for row in rows(catalogue)
    ]


@pytest.fixture
def catalogue(tmp_path: Path) -> Catalogue:
    catalogue = Catalogue.open(f"sqlite:///{tmp_path}/c.db")
    fill(catalogue)
    return catalogue


def test_tables_of_a_first_run(catalogue: Catalogue, tmp_path: Path) -> None:
    index, score = run(catalogue, stage_of(tmp_path))
    assert index.states["kept"] == 3
    assert score.states == {"kept": 1}
    assert score.counts["questions"] == score.counts["located"] == 3
    main = {(row.method, row.metric): row for row in rows(catalogue, "main")}
    assert {method for method, _ in main} == {"fixed", "sentence", "hichunk", "hichunk+am"}
    sentence = main["sentence", "evidence_recall"]
    assert sentence.value == 1.0
    assert sentence.n == 3
    assert sentence.setting["budget"] == 30
    assert sentence.setting["counter"] == "words"
    assert sentence.setting["answerer"].startswith("offline/")
    fixed = main["fixed", "evidence_recall"]
    assert fixed.value is not None
    assert fixed.low is not None
    assert fixed.high is not None
    assert fixed.low <= fixed.value <= fixed.high
    assert all(main[method, "context_tokens"].value <= 30 for method, _ in main)
    assert "exact" in main["sentence", "meteor"].setting["meteor"]
    assert {row.setting["kind"] for row in rows(catalogue, "kinds")} == {"single_hop", "multi_hop"}
    assert {row.setting["language"] for row in rows(catalogue, "languages")} == {"zh", "en"}
    curve = [
        row.value
        for row in sorted(rows(catalogue, "budget"), key=lambda r: r.setting["budget"])
        if row.method == "sentence"
    ]
    assert len(curve) == 3
    assert curve == sorted(curve, key=lambda v: v or 0)
    assert {row.setting["retrieval"] for row in rows(catalogue, "retrieval")} == {
        "lexical",
        "dense",
        "hybrid",
    }
    sizes = {(row.method, row.metric): row for row in rows(catalogue, "chunks")}
    assert sizes["sentence", "li"].value == 0.5
    assert sizes["sentence", "li"].setting["perplexity"] == "ngram"
    assert sizes["fixed", "count"].value == sizes["fixed", "count"].n
    with catalogue.reading() as session:
        partitions = {
            p.partition_id for p in session.scalars(select(Partition).where(Partition.method == "fixed"))
        }
        leaves = [c for c in session.scalars(select(Chunk)) if c.partition_id in partitions]
    assert sizes["fixed", "count"].value == len(leaves)


def test_headline_names_metrics_of_the_main_table(catalogue: Catalogue, tmp_path: Path) -> None:
    run(catalogue, stage_of(tmp_path))
    assert set(HEADLINE) <= {row.metric for row in rows(catalogue, "main")}


def test_unchanged_input_leaves_nothing_pending(catalogue: Catalogue, tmp_path: Path) -> None:
    run(catalogue, stage_of(tmp_path))
    context = StageContext(catalogue=catalogue, run_id="again")
    assert [pending(step, context) for step in stage_of(tmp_path).steps] == [[], []]
    other = [len(pending(step, context)) for step in stage_of(tmp_path, budget=40).steps]
    assert other == [0, 1]


def test_same_input_same_figures_whatever_came_before(catalogue: Catalogue, tmp_path: Path) -> None:
    run(catalogue, stage_of(tmp_path, budget=50))
    run(catalogue, stage_of(tmp_path))
    fresh_dir = tmp_path / "fresh"
    fresh_dir.mkdir()
    fresh = Catalogue.open(f"sqlite:///{fresh_dir}/c.db")
    fill(fresh)
    run(fresh, stage_of(fresh_dir))
    assert plain(catalogue) == plain(fresh)


def test_a_lost_index_is_rebuilt_once(catalogue: Catalogue, tmp_path: Path) -> None:
    context = StageContext(catalogue=catalogue, run_id="run")
    for _ in range(3):  # the fingerprint goes to and fro
        run(catalogue, stage_of(tmp_path))
        before = plain(catalogue)
        shutil.rmtree(tmp_path / "vectors")
        step = stage_of(tmp_path).steps[0]
        assert len(pending(step, context)) == 3
        assert run_step(step, context).counts["indexed"] > 0
        assert pending(step, context) == []
        assert plain(catalogue) == before


def test_one_changed_document_redoes_only_its_chunks(catalogue: Catalogue, tmp_path: Path) -> None:
    run(catalogue, stage_of(tmp_path))
    complete(catalogue, "甲醇的引燃温度是464 ℃。")
    index, score = run(catalogue, stage_of(tmp_path))
    assert index.states == {"kept": 2}  # the second: its chunks once more, without completion
    assert score.states == {"kept": 1}
    complete(catalogue, "甲醇 Methanol 的引燃温度是464 ℃。")
    index, score = run(catalogue, stage_of(tmp_path))
    assert index.states == {"kept": 1}
    assert index.counts["indexed"] == 1
    assert score.states == {"kept": 1}


def complete(catalogue: Catalogue, text: str) -> None:
    with catalogue.writing() as session:
        row = session.query(Chunk).filter(Chunk.method == "sentence", Chunk.text.contains("464")).one()
        row.completed = text


def test_the_main_table_has_a_row_without_completion(catalogue: Catalogue, tmp_path: Path) -> None:
    """Its figures are those of the same partition before anything was completed; ``chunks`` counts it once."""
    run(catalogue, stage_of(tmp_path))
    before = {
        row.metric: (row.value, row.low, row.high)
        for row in rows(catalogue, "main")
        if row.method == "sentence"
    }
    complete(catalogue, "丙酮 flash point of acetone 甲苯的引燃温度")  # misleads the index
    run(catalogue, stage_of(tmp_path))
    found: dict[str, dict[str, Any]] = {}
    for row in rows(catalogue, "main"):
        found.setdefault(row.method, {})[row.metric] = (row.value, row.low, row.high)
    assert set(found) == {"fixed", "sentence", "sentence-no-completion", "hichunk", "hichunk+am"}
    assert found["sentence-no-completion"] == before
    assert {row.method for row in rows(catalogue, "chunks")} == {"fixed", "sentence", "hichunk"}
    plain_index = stage_of(tmp_path, index_text="chunk")
    run(catalogue, plain_index)
    assert "sentence-no-completion" not in {row.method for row in rows(catalogue, "main")}


def test_a_method_that_is_switched_off_leaves_the_index(catalogue: Catalogue, tmp_path: Path) -> None:
    run(catalogue, stage_of(tmp_path))
    with catalogue.writing() as session:
        for row in session.scalars(select(Chunk).where(Chunk.method == "fixed")):
            session.delete(row)
    run(catalogue, stage_of(tmp_path))
    assert {row.method for row in rows(catalogue, "main")} == {"sentence", "hichunk", "hichunk+am"}


def test_without_questions_the_chunks_are_still_described(tmp_path: Path) -> None:
    catalogue = Catalogue.open(f"sqlite:///{tmp_path}/c.db")
    fill(catalogue, questions=False)
    _, score = run(catalogue, stage_of(tmp_path))
    assert score.states == {"rejected": 1}
    assert score.reasons == {"rejected: no_questions": 1}
    assert {row.table for row in rows(catalogue)} == {"chunks"}


def test_nothing_to_evaluate(tmp_path: Path) -> None:
    catalogue = Catalogue.open(f"sqlite:///{tmp_path}/c.db")
    assert [report.states for report in run(catalogue, stage_of(tmp_path))] == [{}, {}]


def test_subset_is_seeded_and_stale_evidence_is_not_located(catalogue: Catalogue) -> None:
    with catalogue.writing() as session:
        row = session.scalars(
            select(Question).where(
                Question.language == "en", Question.state == "kept", Question.split == "eval"
            )
        ).one()
        row.references = [{**row.references[0], "version_id": "older"}]
    with catalogue.reading() as session:
        everything = evaluation_questions(session, 100, 1)
        one = evaluation_questions(session, 1, 1)
        assert one == evaluation_questions(session, 1, 1)
        picked = {evaluation_questions(session, 1, seed)[0].question_id for seed in range(12)}
    assert len(everything) == 3
    assert one[0] in everything
    assert len(picked) > 1
    assert [q.evidence for q in everything if q.language == "en"] == [()]


# --- with a model ----------------------------------------------------------------------------------------------

ANSWERS = {
    "甲醇的闪点": ("闪点：11 ℃（闭杯）。", "甲醇的闪点为21 ℃。"),  # a changed number
    "甲苯的引燃温度": ("引燃温度：535 ℃。", "甲苯的引燃温度为535 ℃。"),
    "flash point of acetone": ("The flash point is -20 °C (closed cup).", "It is -20 °C."),
}


def answerer(request: Request) -> Any:
    """Answers from the passage that has the words, a changed number for methanol; the later asked, the sooner."""
    quote, answer = next(value for key, value in ANSWERS.items() if key in request.messages[2]["content"])
    passages = re.findall(r"<passage k=(\w+)>\n(.*?)</passage k=\1>", request.text, re.S)
    number = next((n for n, (_, passage) in enumerate(passages, start=1) if quote in passage), 0)
    found = {"found": True, "answer": answer, "quotes": [{"passage": number, "quote": quote}]}
    return Fault(
        "slow", delay_s=0.02 / request.number, then=found if number else {"found": False, "answer": ""}
    )


def answering(server: ModelServer, concurrency: int) -> Models:
    return Models(
        ModelSettings(
            api_key=None,
            embeddings=EmbeddingSettings(cohesion="ngram"),
            skills={"answer_question": SkillModel(base_url=server.base_url, model="scripted")},
            limits=Limits(concurrency=concurrency),
        )
    )


def test_a_refused_answer_counts_as_not_answered_with_its_reason_whatever_runs_at_once(
    tmp_path: Path,
) -> None:
    tables, counts, asked = [], [], []
    for concurrency in (1, 8):
        folder = tmp_path / str(concurrency)
        folder.mkdir()
        catalogue = Catalogue.open(f"sqlite:///{folder}/c.db")
        fill(catalogue)
        with ModelServer(answerer) as server:
            models = answering(server, concurrency)
            _, score = run(catalogue, stage_of(folder, models))
            models.close()
        assert (server.most_in_flight > 1) == (concurrency > 1)
        assert score.states == {"kept": 1}
        tables.append(plain(catalogue))
        counts.append(score.counts)
        asked.append(sorted(request.text for request in server.calls()))
        main = {(row.method, row.metric): row.value for row in rows(catalogue, "main")}
        assert main["sentence", "answered"] == pytest.approx(2 / 3, abs=1e-5)
        assert main["sentence", "evidence_recall"] == 1.0
    assert tables[0] == tables[1]
    assert counts[0] == counts[1]
    assert asked[0] == asked[1]
    # two calls for each refused answer: asked again once
    refused = counts[0]["answers_refused_check"]
    assert refused >= 1
    assert sum("That answer failed" in text or "未通过检查" in text for text in asked[0]) == refused


def test_without_refused_answers_nothing_is_counted(catalogue: Catalogue, tmp_path: Path) -> None:
    _, score = run(catalogue, stage_of(tmp_path))
    assert not any(name.startswith("answers_refused") for name in score.counts)
