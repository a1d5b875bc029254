"""Dry runs against real runs: what was estimated is what a scripted server is then asked."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from os.path import commonprefix
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import func, select, text
from typer.testing import CliRunner

from corpus.catalogue.tables import Document, ModelCall, Run
from corpus.stages import StageContext, run_step
from flows import accounting, asks, estimates, execution, planning, report
from flows.commands import model_estimate
from flows.estimates import Forecast, StepPlan, forecast, history
from flows.parameters import StageParameters
from flows.planning import context_of, plan_step
from flows.runtime import Runtime, open_runtime
from flows.settings import Settings
from models.client.call import Call
from models.errors import OfflineUnavailable
from models.estimate import Rehearsal
from models.settings import Price
from models.skills import Skill
from models.tokens import count_words
from tests.flows.faulty_corpus import fill
from tests.servers.model_server import ModelServer, Reply, Request

PRICE = Price(input=1.0, cached=0.1, output=2.0)
DOCUMENTS = 4  # two Chinese, two English


class Oracle:
    """A model that answers as the rules do and counts in ``words``.

    It learns the prompts of rehearsals; one that no rehearsal made is answered
    ``{}`` and kept. The prefix cache is the plainest there is: compare with all before.
    """

    def __init__(self) -> None:
        self.answers: dict[str, str] = {}
        self.unknown: list[str] = []
        self._before: list[str] = []

    def learn(self, skill: Skill[Any, Any], given: Any, call: Call) -> None:
        answer = {"assertions": []} if skill.name == "extract_assertions" else None
        with suppress(OfflineUnavailable):
            content = json.dumps(answer) if answer else skill.offline(given).model_dump_json()
            self.answers["\n".join(message.content for message in call.messages)] = content

    def __call__(self, request: Request) -> Reply:
        prompt = request.text
        answer = self.answers.get(prompt)
        if answer is None:
            self.unknown.append(prompt)
        shared = max((len(commonprefix([prompt, other])) for other in self._before), default=0)  # noqa: RUF071
        self._before.append(prompt)
        return Reply(
            answer or "{}", tokens_in=count_words(prompt), tokens_cached=count_words(prompt[:shared])
        )


@contextmanager
def learning(oracle: Oracle) -> Iterator[None]:
    """Every rehearsal teaches the oracle."""
    count = Rehearsal._count_call

    def learn(self: Rehearsal, skill: Skill[Any, Any], given: Any, call: Call) -> None:
        oracle.learn(skill, given, call)
        count(self, skill, given, call)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(Rehearsal, "_count_call", learn)
        yield


@pytest.fixture
def oracle() -> Iterator[Oracle]:
    found = Oracle()
    with learning(found):
        yield found


@contextmanager
def opened(path: Path, base_url: str | None, **models: Any) -> Iterator[Runtime]:
    chosen: dict[str, Any] = {"limits": {"concurrency": 1}, "price": PRICE.model_dump(), **models}
    if base_url is not None:
        chosen |= {"base_url": base_url, "model": "scripted"}
    settings = Settings(
        data_dir=path,
        models=chosen,  # type: ignore[arg-type]
        corpus={"refinement": {"window": 60, "overlap": 10}},  # type: ignore[arg-type]
        extraction={"window": 100},  # type: ignore[arg-type]
        chunks={"methods": ["qchunker", "hichunk"], "size": 30, "score": False},  # type: ignore[arg-type]
        embeddings={"cohesion": "ngram", "index": "ngram"},  # type: ignore[arg-type]
    )
    with open_runtime(settings=settings, run_id="run-1") as runtime:
        yield runtime


@pytest.fixture
def server(oracle: Oracle) -> Iterator[ModelServer]:
    with ModelServer(oracle) as running:
        yield running


@pytest.fixture
def runtime(tmp_path: Path, server: ModelServer) -> Iterator[Runtime]:
    with opened(tmp_path / "data", server.base_url) as made:
        fill(made.catalogue, DOCUMENTS)
        yield made


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data directory whose documents are scored and refined, made once."""
    path, oracle = tmp_path_factory.mktemp("curated") / "data", Oracle()
    with learning(oracle), ModelServer(oracle) as server, opened(path, server.base_url) as made:
        fill(made.catalogue, DOCUMENTS)
        for step in ("curate.score", "curate.refine"):
            estimated(made, step)
            run(made, step)
    return path


@pytest.fixture
def curated(finished: Path, tmp_path: Path, server: ModelServer) -> Iterator[Runtime]:
    """A copy of it."""
    shutil.copytree(finished, tmp_path / "data")
    with opened(tmp_path / "data", server.base_url) as made:
        yield made


def steps_of(runtime: Runtime, *names: str, **parameters: Any) -> tuple[StageContext, list[StepPlan]]:
    """The plans of some steps."""
    context = context_of(runtime, StageParameters(**parameters))
    return context, [plan_step(context, runtime.step(name)) for name in names]


def estimated(runtime: Runtime, *names: str, **parameters: Any) -> Forecast:
    return forecast(runtime, *steps_of(runtime, *names, **parameters))


def run(runtime: Runtime, name: str) -> None:
    """Run one step for real."""
    context = StageContext(catalogue=runtime.catalogue, run_id="run-1")
    report = run_step(runtime.step(name), context)
    assert not report.states["failed"], report.reasons


def row(found: Forecast, skill: str) -> Any:
    return next(entry.estimate for entry in found.rows if entry.estimate.skill == skill)


def test_calls_are_those_of_the_run(runtime: Runtime, server: ModelServer, oracle: Oracle) -> None:
    """Score, refine, extract in turn: every prompt that is sent was estimated, and none besides."""
    for step, skill, items in (
        ("curate.score", "score_document", 1),
        ("curate.refine", "refine_window", 2),
        ("graph.extract", "extract_assertions", 2),
    ):
        found = estimated(runtime, step)
        before = runtime.models.usage()["skills"].get(skill, {"calls": 0})["calls"]
        run(runtime, step)
        used = runtime.models.usage()["skills"][skill]
        expected = row(found, skill)
        assert expected.basis == "exact"
        assert expected.calls == used["calls"] - before >= items * DOCUMENTS
        assert expected.repeats == 0
        assert oracle.unknown == []
    again = estimated(runtime, "curate.score", "curate.refine", "graph.extract", force=True)
    assert [(entry.estimate.calls, entry.estimate.stored > 0) for entry in again.rows] == [(0, True)] * 3
    assert estimated(runtime, "curate.score", "curate.refine", "graph.extract").rows == []


def test_tokens_and_the_cached_part_are_what_the_server_counts(runtime: Runtime, server: ModelServer) -> None:
    for step, skill in (("curate.score", "score_document"), ("curate.refine", "refine_window")):
        expected = row(estimated(runtime, step), skill)
        run(runtime, step)
        used = runtime.models.usage()["skills"][skill]
        assert expected.tokens_in == pytest.approx(used["tokens_in"], rel=0.005)
        # the second step's first prompt finds a server that has seen the first step's
        assert expected.tokens_cached == pytest.approx(used["tokens_cached"], rel=0.01)
        assert 0 < expected.tokens_cached < expected.tokens_in
        # answers are a rule of thumb: three characters a token, while the server takes four
        assert 0.4 < expected.tokens_out / (4 * used["tokens_out"] / 3) < 2.5
        assert expected.cost < expected.cost_limit


def test_what_rests_on_scores_is_projected_with_them(runtime: Runtime, server: ModelServer) -> None:
    """Before anything was asked: refining, extraction and chunks of the documents that the rules pass."""
    names = ("curate.score", "curate.refine", "graph.extract", "chunks.qchunker", "chunks.hichunk")
    found = estimated(runtime, *names)
    assert row(found, "score_document").basis == "exact"
    for skill in ("refine_window", "extract_assertions", "question_outline", "assign_levels"):
        assert row(found, skill).basis == "projected"
        assert row(found, skill).certain == 0
    assert server.requests == []
    run(runtime, "curate.score")
    refine = estimated(runtime, "curate.refine")
    assert row(found, "refine_window").calls == row(refine, "refine_window").calls
    run(runtime, "curate.refine")
    extract = row(estimated(runtime, "graph.extract"), "extract_assertions")
    assert row(found, "extract_assertions").calls == pytest.approx(extract.calls, rel=0.25)


def test_the_debate_is_exact_at_first_and_projected_after(
    curated: Runtime, server: ModelServer, oracle: Oracle, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(estimates, "FOLLOWING_SHARE", 1.0)
    found = estimated(curated, "chunks.qchunker", "chunks.hichunk")
    outline, segment = row(found, "question_outline"), row(found, "segment_text")
    assert (outline.basis, outline.calls) == ("exact", DOCUMENTS)
    assert (segment.basis, segment.calls) == ("projected", 4 * DOCUMENTS)
    assert segment.tokens_cached > 0.7 * segment.tokens_in  # three draws of four repeat the first
    assert row(found, "assign_levels").basis == "exact"
    review = row(found, "review_chunk")
    assert review.basis == "projected"
    assert review.tokens_cached > 0.6 * review.tokens_in  # the document before every chunk
    before = curated.models.usage()["skills"]
    run(curated, "chunks.qchunker")
    run(curated, "chunks.hichunk")
    after = curated.models.usage()["skills"]
    assert "question_outline" not in before
    assert after["question_outline"]["calls"] == outline.calls
    assert after["assign_levels"]["calls"] == row(found, "assign_levels").calls
    # the server answers as the rules do, so that the projection comes true
    assert after["segment_text"]["calls"] == segment.calls
    assert after["review_chunk"]["calls"] == pytest.approx(review.calls, rel=0.1)


def test_completions_are_a_share_of_the_reviews(curated: Runtime, monkeypatch: pytest.MonkeyPatch) -> None:
    half = estimated(curated, "chunks.qchunker")
    assert row(half, "complete_chunk").calls == pytest.approx(0.5 * row(half, "review_chunk").calls, abs=1)
    with curated.catalogue.writing() as session:
        for skill, count in (("review_chunk", 40), ("complete_chunk", 10)):
            session.add_all(call(skill, n) for n in range(count))
    quarter = estimated(curated, "chunks.qchunker")
    reviews = row(quarter, "review_chunk").calls
    assert row(quarter, "complete_chunk").calls == pytest.approx(0.25 * reviews, abs=1)


def test_the_distilled_chunker_is_projected_from_a_plain_split(curated: Runtime) -> None:
    curated.settings.chunks.methods = ["qchunker-slm"]
    found = estimated(curated, "chunks.qchunker-slm")
    made, judged, refined = (row(found, f"slm_{name}") for name in ("generate", "discriminate", "refine"))
    assert (made.basis, made.calls) == ("exact", DOCUMENTS)
    assert judged.basis == refined.basis == "projected"
    assert judged.calls > 2 * DOCUMENTS
    assert refined.calls == pytest.approx(judged.calls / 2, abs=1)


def test_a_document_that_breaks_is_told_and_the_others_count(
    runtime: Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    count = Rehearsal._count_call

    def breaking(self: Rehearsal, skill: Skill[Any, Any], given: Any, call: Call) -> None:
        if "MADEUP-0001" in call.messages[-1].content:
            raise RuntimeError("a bug")
        count(self, skill, given, call)

    monkeypatch.setattr(Rehearsal, "_count_call", breaking)
    found = estimated(runtime, "curate.score")
    assert row(found, "score_document").calls == DOCUMENTS - 1
    assert any("curate.score: 1 documents" in note for note in found.notes)


def test_a_budget_that_will_not_do_is_named(tmp_path: Path) -> None:
    budget = {"max_calls": DOCUMENTS - 1, "max_tokens": 10**9, "max_cost": 1e-9}
    with opened(tmp_path / "data", "http://127.0.0.1:9/v1", budget=budget) as runtime:
        fill(runtime.catalogue, DOCUMENTS)
        notes = " ".join(estimated(runtime, "curate.score").notes)
    assert "max_calls" in notes
    assert "max_cost" in notes
    assert "max_tokens" not in notes


def call(skill: str, number: int, state: str = "accepted", tokens_out: int = 11) -> ModelCall:
    return ModelCall(
        key=f"{skill}-{number}", skill=skill, skill_version="1", model="scripted", raw="{}",
        state=state, tokens_out=tokens_out,
    )  # fmt: skip


def test_history_of_the_store(runtime: Runtime) -> None:
    """30 answers, six of them refused and put right: a quarter of the questions was asked twice."""
    with runtime.catalogue.writing() as session:
        session.add_all(call("score_document", n, "refused" if n < 6 else "accepted") for n in range(30))
    known = history(runtime.catalogue)["score_document", "scripted"]
    assert (known.answers, known.tokens_out, known.repeats) == (30, 11.0, 0.25)
    found = row(estimated(runtime, "curate.score"), "score_document")
    assert (found.calls, found.repeats, found.tokens_out) == (DOCUMENTS, 1, 55)
    assert found.sized_by == "30 stored answers"


def test_above_the_sample_figures_are_scaled(runtime: Runtime, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = row(estimated(runtime, "curate.score"), "score_document")
    monkeypatch.setattr(estimates, "SAMPLE", 3)
    sampled = row(estimated(runtime, "curate.score"), "score_document")
    assert (sampled.basis, sampled.calls) == ("sampled", whole.calls)
    assert sampled.tokens_in == pytest.approx(whole.tokens_in, rel=0.2)
    assert estimated(runtime, "curate.score") == estimated(runtime, "curate.score")  # the sample is seeded


def test_a_dry_run_sends_and_changes_nothing(curated: Runtime, server: ModelServer) -> None:
    before = dump(curated)
    estimated(curated, "curate.score", "curate.refine", "graph.extract", "chunks.qchunker", force=True)
    begun = accounting.begin(curated, context_of(curated, StageParameters()), "chunks")
    assert begun.found is not None
    assert begun.found.rows
    assert dump(curated) == before
    assert server.requests == []


def dump(runtime: Runtime) -> list[Any]:
    """Every row of every table."""
    with runtime.catalogue.reading() as session:
        names = session.scalars(text("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name"))
        return [(name, session.execute(text(f'SELECT * FROM "{name}"')).all()) for name in names.all()]


def test_limits_and_only_failed_are_respected(runtime: Runtime) -> None:
    found = estimated(runtime, "curate.score", "curate.refine", limit=3)
    assert row(found, "score_document").calls == 3
    assert row(found, "refine_window").calls <= 3 * 4
    assert estimated(runtime, "curate.score", "curate.refine", only_failed=True).rows == []


def test_questions_and_answers_are_projected_from_sizes(curated: Runtime) -> None:
    context, plans = steps_of(curated, "graph.extract", "evaluate.score")
    found = forecast(curated, context, [*plans, StepPlan("questions.generate", 0, ())])
    answers = row(found, "answer_question")
    methods = 4  # qchunker, the same without completion, hichunk and its Auto-Merge form
    assert answers.calls == methods * curated.settings.evaluation.max_questions
    assert answers.tokens_in / answers.calls > curated.settings.evaluation.budget
    reword = row(found, "reword_question")
    assert reword.basis == answers.basis == "projected"
    assert reword.calls == DOCUMENTS * asks.QUESTIONS_PER_DOCUMENT


def test_without_a_model_nothing_is_asked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with opened(tmp_path / "data", None) as runtime:
        fill(runtime.catalogue, 2)
        found = estimated(runtime, "curate.score", "curate.refine")
        assert (found.offline, found.rows, found.total) == (True, [], None)
        planning.show_forecast(found)
        account = accounting.begin(runtime, context_of(runtime, StageParameters()), "curate")
        assert account.as_dict(runtime.models) == {}
    said = capsys.readouterr().out
    assert "model calls: 0, cost: 0" in said
    assert "offline" in said


def test_an_empty_catalogue_says_what_it_cannot_know(tmp_path: Path) -> None:
    with opened(tmp_path / "data", "http://127.0.0.1:9/v1") as runtime:
        found = estimated(runtime, "curate.score", "graph.extract", "evaluate.score")
    assert found.rows == []
    (note,) = found.notes
    assert all(
        word in note for word in ("no pages yet", "score_document", "answer_question", "without a model")
    )


def test_the_table_fits_eighty_columns(
    curated: Runtime, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    found = estimated(curated, "graph.extract", "chunks.qchunker", "chunks.hichunk", "evaluate.score")
    for entry in found.rows:  # as large as figures get
        monkeypatch.setitem(vars(entry.estimate), "calls", 123_456)
        monkeypatch.setitem(vars(entry.estimate), "repeats", 12_345)
        monkeypatch.setitem(vars(entry.estimate), "cost", 1234.56)
        monkeypatch.setitem(vars(entry.estimate), "cost_limit", 123_456.0)
    capsys.readouterr()
    monkeypatch.setenv("COLUMNS", "80")
    planning.show_forecast(found)
    lines = capsys.readouterr().out.splitlines()
    told = [line for line in lines if len(line.split("  ")) > 1]  # of the table; sentences are never broken
    assert max(map(len, told)) <= 80
    assert not any("…" in line for line in lines)
    for entry in found.rows:
        assert any(line.startswith(entry.estimate.skill) for line in lines)
    assert any("'words'" in line for line in lines)


@pytest.mark.parametrize(
    ("number", "shown"),
    [
        (0, "0"),
        (999, "999"),
        (999.6, "1.00k"),
        (12_345, "12.3k"),
        (123_456, "123k"),
        (999_960, "1.00M"),
        (4.5e9, "4.50G"),
    ],
)
def test_short_numbers(number: float, shown: str) -> None:
    assert accounting.short(number) == shown


def test_the_command_prints_json(
    runtime: Runtime, server: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HCHEM_DATA_DIR", str(runtime.data_dir))
    monkeypatch.setenv("HCHEM_MODELS__BASE_URL", server.base_url)
    monkeypatch.setenv("HCHEM_MODELS__MODEL", "scripted")
    done = CliRunner().invoke(model_estimate.app, ["--stage", "curate", "--json"])
    assert done.exit_code == 0, done.output
    told = json.loads(done.output)
    skills = {entry["skill"]: entry for entry in told["skills"]}
    assert skills["score_document"]["calls"] == DOCUMENTS
    assert skills["score_document"]["basis"] == "exact"
    assert told["counter"] == "words"
    assert told["total"]["cost"] is None
    assert server.requests == []


# --- estimate against actual -----------------------------------------------------------------------------------


def test_estimate_and_actual_of_a_stage(runtime: Runtime, oracle: Oracle) -> None:
    context = StageContext(catalogue=runtime.catalogue, run_id="run-1")
    estimated(runtime, "curate.score")
    account = accounting.begin(runtime, context, "curate")
    for step in ("curate.score", "curate.refine"):
        run(runtime, step)
    told = account.as_dict(runtime.models)
    score, refine = told["skills"]["score_document"], told["skills"]["refine_window"]
    assert (score["estimate"]["basis"], refine["estimate"]["basis"]) == ("exact", "projected")
    assert score["estimate"]["calls"] == score["actual"]["calls"] == DOCUMENTS
    assert refine["estimate"]["calls"] == refine["actual"]["calls"]
    assert score["actual"]["cost"] > 0
    assert score["ratio"] == pytest.approx(score["actual"]["cost"] / score["estimate"]["cost"], abs=1e-3)
    assert score["model"] == "scripted"
    assert told["counter"] == "words"
    # counters of an earlier stage are not counted again
    later = accounting.begin(runtime, context, "curate").as_dict(runtime.models)
    assert later == {}
    stages = {"curate": {"seconds": 1.0, "steps": {}, "models": told}}
    assert [entry["skill"] for entry in accounting.rows_of(stages)] == ["score_document", "refine_window"]
    assert accounting.table(stages) is not None
    assert accounting.table({"curate": {"seconds": 1.0, "steps": {}}}) is None


def test_a_failing_estimate_does_not_end_the_run(runtime: Runtime, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: Any) -> Forecast:
        raise RuntimeError("a bug")

    monkeypatch.setattr(estimates, "forecast", broken)
    account = accounting.begin(runtime, context_of(runtime, StageParameters()), "curate")
    assert account.found is None
    assert "RuntimeError: a bug" in account.as_dict(runtime.models)["notes"][0]


def test_the_run_keeps_estimate_actual_and_preset(runtime: Runtime, oracle: Oracle) -> None:
    """Through the stage runner, as ``hchem run curate --direct`` goes."""
    estimated(runtime, "curate.score")
    chosen = replace(runtime, settings=runtime.settings.model_copy(update={"preset": "hichunk-paper"}))
    with execution.session(chosen, "curate", StageParameters()) as current:
        execution.run_stage(current, "curate", execution.direct)
    with runtime.catalogue.reading() as session:
        kept = session.scalars(select(Run)).one()
        documents = session.scalar(select(func.count()).select_from(Document))
    assert documents == DOCUMENTS
    told = kept.stages["curate"]["models"]["skills"]
    assert told["score_document"]["actual"]["calls"] == told["score_document"]["estimate"]["calls"]
    assert any("differs" in line for line in kept.settings["preset_notes"])
    html = report.write(chosen, kept.run_id, kept.stages).read_text(encoding="utf-8")
    assert 'id="accounts"' in html
    assert "score_document" in html
    assert 'id="preset"' in html
    assert "Preset <code>hichunk-paper</code>" in html
