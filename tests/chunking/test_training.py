"""Training records of the distilled chunkers. The sheets are made up."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select

from chunking.hichunk.levels import RULES_PROMPT
from chunking.segment import Segmenter
from chunking.settings import ChunkSettings
from chunking.stage import chunks_stage
from chunking.training import debates
from chunking.training.build import TrainingBuilder, TrainingOptions, build
from chunking.training.debates import StoredDebate
from chunking.training.examples import SKILLS, Example, given_of, record_of
from chunking.training.levels import LevelsDocument, LevelsOptions, ranked
from chunking.training.levels import examples_of as levels_of
from chunking.vectors import SentenceVectors
from corpus.catalogue import Catalogue
from corpus.catalogue.tables import Chunk, Document, Partition
from corpus.errors import SettingsError
from corpus.ids import document_id, version_id
from corpus.stages import StageContext, run_step
from models import Models, ModelSettings
from models.client.parse import parse
from models.tokens import count_words
from tests.chunking.embedder import HashedEmbedder
from tests.chunking.test_partition import HashedModels
from tests.chunking.test_qchunker import LONG, SCRIPT, Agents, inside
from tests.servers.model_server import ModelServer, Request

CHUNKS = ChunkSettings(methods=["qchunker"], size=120, selection_samples=4, qchunker_window=300, score=False)


def _sheet(language: str, number: int) -> str:
    """A made-up sheet in which no sentence stands twice."""
    rules = [
        ("库房应当阴凉通风，温度不超过{t} ℃。", "Store it in a cool and dry place at no more than {t} °C. "),
        ("远离第{t}类氧化剂，不得混存。", "Keep it away from oxidisers of group {t} at all times. "),
        ("第{t}道门应当上锁，钥匙由专人保管。", "Door {t} should be locked and its key kept by one person. "),
    ]
    parts = []
    for i in range(1, 7):
        zh, en = f"## 第{i}节 储存要求{i}\n", f"## Section {i} Storage {i}\n"
        parts.append(zh if language == "zh" else en)
        parts += [
            rule[language == "en"].format(t=number * 100 + i * 10 + n) for n, rule in enumerate(rules * 2)
        ]
        parts.append("\n")
    return "".join(parts)


def _outline(request: Request) -> Any:
    """A question for each section that begins in the window, or for what the window begins with."""
    shown = inside(request.messages[1]["content"], "document")
    heads = [line for line in shown.splitlines() if line.startswith("## ")] or [shown.split("\n")[0][:30]]
    asked = (
        "这一节规定了哪些储存要求和温度限值？"
        if "库" in shown or "门" in shown
        else "What does this section require of storage?"
    )
    return {"questions": [{"question": f"{asked} ({head})", "about": head} for head in heads]}


def _woven(request: Request) -> Any:
    """A completion that no rule would give: the item stands behind the chunk."""
    items = json.loads(inside(request.messages[2]["content"], "items"))
    text = inside(request.messages[1]["content"], "chunk").rstrip()
    return {"items": [{"index": 0}], "text": f"{text} ({items[0]['quote']})"}


def _store(catalogue: Catalogue, texts: Mapping[str, tuple[str, str]]) -> None:
    with catalogue.writing() as session:
        for name, (text, language) in texts.items():
            identity = document_id(name)
            session.add(
                Document(
                    document_id=identity, page_id=name, source="sample", url=f"https://example.org/{name}",
                    identity=name, kind="page", language=language, state="kept", text=text,
                    version_id=version_id(identity, text), licence="made up",
                )
            )  # fmt: skip


def _cut(catalogue: Catalogue, models: Models) -> None:
    for step in chunks_stage(CHUNKS, models).steps:
        report = run_step(step, StageContext(catalogue, "run")).as_dict()
        assert set(report["states"]) == {"kept"}


@pytest.fixture(scope="module")
def debated(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Catalogue]:
    """Three documents a language, cut by scripted agents."""
    opened = Catalogue.open(f"sqlite:///{tmp_path_factory.mktemp('debated')}/c.db")
    texts = {f"{language}{n}": (_sheet(language, n), language) for language in LONG for n in range(3)}
    _store(opened, texts)
    with ModelServer(Agents(**SCRIPT | {"outline": _outline, "complete": _woven})) as server:
        models = HashedModels(ModelSettings(base_url=server.base_url, model="deep"))
        _cut(opened, models)
        models.close()
    yield opened
    opened.close()


def _builder(catalogue: Catalogue, out: Path, **options: Any) -> TrainingBuilder:
    chosen = TrainingOptions(
        **{"allow_offline": True, "held_out": 0.3, "levels": LevelsOptions(window=400)} | options
    )
    return TrainingBuilder(catalogue, HashedModels(), CHUNKS, chosen, out)


def _records(out: Path) -> list[dict[str, Any]]:
    return [
        json.loads(line)
        for path in sorted(out.glob("*.jsonl"))
        for line in path.read_text("utf-8").splitlines()
    ]


def _files(out: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(out.iterdir())}


# --- the whole set ---------------------------------------------------------------------------------------------


def test_records_of_every_task_and_language_pass_their_own_checks(debated: Catalogue, tmp_path: Path) -> None:
    report = build(_builder(debated, tmp_path / "out"))
    records = _records(tmp_path / "out")
    assert len(records) == sum(report.records.values())
    assert {(r["task"], r["language"]) for r in records} == {
        (t, lang) for t in SKILLS for lang in ("zh", "en")
    }
    for record in records:
        roles = [message["role"] for message in record["messages"]]
        assert (roles[0], roles[-1]) == ("system", "assistant")
        parse(record["messages"][-1]["content"], SKILLS[record["task"]].output)
        assert record["made_by"] in ("model", "mixed", "document")
    assert len({record["id"] for record in records}) == len(records)
    assert {r["made_by"] for r in records if r["task"] == "refine"} == {"model"}
    splits: dict[str, set[str]] = {}
    for record in records:
        splits.setdefault(record["split"], set()).add(record["document_id"])
    assert splits["train"].isdisjoint(splits.get("validation", set()))
    shown = (tmp_path / "out" / "README.md").read_text("utf-8")
    for (task, reason), number in report.drops.items():
        assert f"| {task} | {reason} | {number} |" in shown
    assert "The target of 45,000 records was not reached" in shown
    sums = dict(
        reversed(line.split("  ")) for line in (tmp_path / "out" / "checksums.txt").read_text().splitlines()
    )
    for name, sha in sums.items():
        assert hashlib.sha256((tmp_path / "out" / name).read_bytes()).hexdigest() == sha
    assert len(sums) == 10
    assert not list((tmp_path / "out").glob(".*"))


@pytest.mark.parametrize("language", ["zh", "en"])
def test_a_model_that_answers_as_recorded_gives_the_debate_again(
    debated: Catalogue, tmp_path: Path, language: str
) -> None:
    """The prompts of the records are those that inference sends, message by message."""
    report = build(_builder(debated, tmp_path / "out", tasks=("generate", "discriminate", "refine")))
    assert not [reason for task, reason in report.drops if task in ("generate", "debate")]
    known = {
        json.dumps(r["messages"][:-1], ensure_ascii=False): r["messages"][-1]["content"]
        for r in _records(tmp_path / "out")
    }
    unknown: Counter[str] = Counter()

    def answer(request: Request) -> Any:
        name = request.body["response_format"]["json_schema"]["name"]
        found = known.get(json.dumps(request.messages, ensure_ascii=False))
        if found is None:
            unknown[name] += 1
            assert name == "slm_discriminate", request.text[:500]
            return {"incomplete": False}
        return found

    with debated.reading() as session:
        rows = session.scalars(
            select(Document).where(Document.language == language).order_by(Document.document_id)
        ).all()
        stored = {
            row.text: session.scalars(
                select(Chunk).where(Chunk.document_id == row.document_id).order_by(Chunk.position)
            ).all()
            for row in rows
        }
    completed = 0
    with ModelServer(answer) as server:
        models = HashedModels(ModelSettings(base_url=server.base_url, model="small"))
        for text, chunks in stored.items():
            result = Segmenter(models, CHUNKS).run(text, "qchunker-slm", language)
            assert result.spans == [(chunk.start, chunk.end) for chunk in chunks]
            assert all(result.completed[i] == chunks[i].completed for i in result.completed)
            assert [result.questions.get(i, "") for i in range(len(chunks))] == [
                " ".join(chunk.outline_question.split()) for chunk in chunks
            ]
            completed += len(result.completed)
        models.close()
    assert completed > 3
    dropped = sum(n for (task, _), n in report.drops.items() if task == "discriminate")
    assert unknown["slm_discriminate"] <= dropped


def test_the_same_seed_gives_the_same_bytes_and_another_one_others(
    debated: Catalogue, tmp_path: Path
) -> None:
    build(_builder(debated, tmp_path / "a", target=12))
    report = build(_builder(debated, tmp_path / "b", target=12))
    build(_builder(debated, tmp_path / "c", target=12, seed=1))
    assert _files(tmp_path / "a") == _files(tmp_path / "b")
    assert _files(tmp_path / "a") != _files(tmp_path / "c")
    per_task = Counter(task for task, _ in report.records.elements())
    assert max(per_task.values()) == 12
    assert report.drops["levels", "over the target"] > 0


def test_a_stopped_build_goes_on_to_the_same_bytes(debated: Catalogue, tmp_path: Path) -> None:
    whole = tmp_path / "whole"
    build(_builder(debated, whole))
    stopped = _builder(debated, tmp_path / "stopped")
    assert len(stopped.pending()) == stopped.total == 6
    for name in stopped.pending()[:4]:
        stopped.work(name)
    progress = tmp_path / "stopped" / ".progress.jsonl"
    progress.write_bytes(progress.read_bytes()[:-40])  # killed while it wrote
    stopped.close()
    again = _builder(debated, tmp_path / "stopped")
    assert (again.taken, len(again.pending())) == (3, 3)
    build(again)
    assert _files(tmp_path / "stopped") == _files(whole)
    assert _builder(debated, tmp_path / "stopped").taken == 0  # a finished build leaves nothing to go on from


def test_answers_of_rules_are_refused_unless_they_are_asked_for(tmp_path: Path) -> None:
    catalogue = Catalogue.open(f"sqlite:///{tmp_path}/c.db")
    _store(catalogue, {language: (LONG[language], language) for language in LONG})
    _cut(catalogue, HashedModels())
    tasks = ("generate", "discriminate", "refine")
    with pytest.raises(SettingsError, match="--allow-offline"):
        build(_builder(catalogue, tmp_path / "no", allow_offline=False, tasks=tasks))
    build(_builder(catalogue, tmp_path / "mixed", allow_offline=False))
    assert {record["task"] for record in _records(tmp_path / "mixed")} == {"levels"}
    card = (tmp_path / "mixed" / "README.md").read_text("utf-8")
    assert "made by rules (--allow-offline takes it)" in card
    assert "No answer was made by the rules" in card
    report = build(_builder(catalogue, tmp_path / "yes", tasks=tasks))
    assert {(task, who) for task, who in report.by_origin} <= {
        (task, who) for task in tasks for who in ("offline", "unknown")
    }
    assert "Not all answers are a model's" in (tmp_path / "yes" / "README.md").read_text("utf-8")
    kept = {path.name: path.read_bytes() for path in (tmp_path / "yes").iterdir()}
    with pytest.raises(SettingsError, match="holds records of discriminate, generate, refine"):
        _builder(catalogue, tmp_path / "yes", tasks=("levels",))
    assert {path.name: path.read_bytes() for path in (tmp_path / "yes").iterdir()} == kept
    assert all(r["origin"] for r in _records(tmp_path / "yes"))
    catalogue.close()


def test_without_debates_and_headings_there_is_nothing_to_learn(tmp_path: Path) -> None:
    catalogue = Catalogue.open(f"sqlite:///{tmp_path}/c.db")
    with pytest.raises(SettingsError, match="no documents"):
        build(_builder(catalogue, tmp_path / "empty"))
    _store(catalogue, {"a": ("乙醇是易燃液体。", "zh")})
    with pytest.raises(SettingsError, match="not cut by qchunker: 1"):
        build(_builder(catalogue, tmp_path / "none"))
    catalogue.close()


def test_a_second_build_of_a_directory_is_refused_at_the_start(debated: Catalogue, tmp_path: Path) -> None:
    first = _builder(debated, tmp_path / "out")
    first.work(first.pending()[0])
    with pytest.raises(SettingsError, match=r"another build is writing .*out"):
        _builder(debated, tmp_path / "out")
    report = build(first)  # untouched by the other
    assert sum(report.records.values()) == len(_records(tmp_path / "out"))
    build(_builder(debated, tmp_path / "out"))  # and free again


def test_foreign_files_are_left_alone(debated: Catalogue, tmp_path: Path) -> None:
    (tmp_path / "README.md").write_text("mine")
    with pytest.raises(SettingsError, match=r"README\.md, which no build wrote"):
        _builder(debated, tmp_path)
    assert (tmp_path / "README.md").read_text() == "mine"


# --- checks of a debate ----------------------------------------------------------------------------------------


@pytest.fixture(scope="module", params=["zh", "en"])
def debate(request: pytest.FixtureRequest, debated: Catalogue) -> StoredDebate:
    """One stored debate a language."""
    with debated.reading() as session:
        row = session.scalars(
            select(Document).where(Document.language == request.param).order_by(Document.document_id)
        ).first()
        assert row is not None
        partition = session.scalars(select(Partition).where(Partition.document_id == row.document_id)).one()
        chunks = session.scalars(
            select(Chunk).where(Chunk.document_id == row.document_id).order_by(Chunk.position)
        ).all()
        return StoredDebate(
            row.document_id, row.version_id, row.language, row.text,
            tuple((c.start, c.end) for c in chunks), tuple(c.outline_question for c in chunks),
            tuple(c.completed for c in chunks), partition.settings, partition.record,
        )  # fmt: skip


def _made(debate: StoredDebate) -> debates.Made:
    return debates.examples_of(
        debate, lambda text: SentenceVectors(text, HashedEmbedder(), count_words), "words"
    )


def _changed(debate: StoredDebate, path: str, value: Any) -> StoredDebate:
    record = json.loads(json.dumps(debate.record))
    place = record
    *above, last = path.split(".")
    for part in above:
        place = place[int(part) if part.isdigit() else part]
    place[int(last) if last.isdigit() else last] = value
    return replace(debate, record=record)


@pytest.mark.parametrize(
    "path,value,task,reason",
    [
        ("outline.refused", ["…"], "generate", "a part of the outline was refused"),
        ("outline.questions", [], "generate", "the outline has no question"),
        ("segmenter.selected", 99, "generate", "the chosen candidate is not recorded"),
        ("segmenter.candidates", [], "generate", "the chosen candidate is not recorded"),
        ("reviewer", None, "discriminate", "the debate ended without review (completion off)"),
    ],
)
def test_a_debate_that_failed_a_check_is_counted_and_left_out(
    debate: StoredDebate, path: str, value: Any, task: str, reason: str
) -> None:
    made = _made(_changed(debate, path, value))
    assert made.drops[task, reason] > 0
    assert task not in {example.task for example in made.examples}


@pytest.mark.parametrize("field,value,reason", [
    ("z", None, "not chosen by ChunkScore"),
    ("heads_not_found", ["…"], "the chosen candidate has heads that are not in the document"),
    ("cuts", [1], "the chunks are not those of the chosen candidate"),
])  # fmt: skip
def test_a_partition_that_nothing_proves_is_left_out(
    debate: StoredDebate, field: str, value: Any, reason: str
) -> None:
    chosen = debate.record["segmenter"]["selected"]
    made = _made(_changed(debate, f"segmenter.candidates.{chosen}.{field}", value))
    assert made.drops["generate", reason] == 1
    assert "generate" not in {example.task for example in made.examples}


def test_broken_partitions_and_other_counters_give_nothing(debate: StoredDebate) -> None:
    for changed, reason in (
        (replace(debate, chunks=debate.chunks[1:]), "the chunks do not tile the text"),
        (
            replace(debate, settings={**debate.settings, "tokens": "qwen"}),
            "cut with another token counter than words",
        ),
        (replace(debate, settings={}), "its settings are not recorded"),
    ):
        made = _made(changed)
        assert (made.examples, dict(made.drops)) == ([], {("debate", reason): 1})


def test_chunks_over_the_size_are_not_learnt(debate: StoredDebate) -> None:
    made = _made(replace(debate, settings={**debate.settings, "size": 20}))
    assert made.drops["generate", "a chunk over the size that is asked for"] > 0
    assert "generate" not in {example.task for example in made.examples}


def _first(debate: StoredDebate) -> tuple[int, int]:
    """Number of a completed chunk, and of its entry in the reviewer's record."""
    entries = debate.record["reviewer"]["chunks"]
    refined = {e.place["start"] for e in _made(debate).examples if e.task == "refine"}
    return next(
        (entry["chunk"], at)
        for at, entry in enumerate(entries)
        if debate.chunks[entry["chunk"]][0] in refined
    )


def _about(made: debates.Made, task: str, start: int) -> list[Example]:
    return [e for e in made.examples if e.task == task and e.place["start"] == start]


@pytest.mark.parametrize(
    "entry,reason",
    [
        ({"review_refused": "…"}, "the review was refused"),
        ({"incomplete": False, "items": [{"kind": "term", "need": "", "start": 0, "end": 2}]},
         "the reviewer found items and called the chunk complete"),
        ({"incomplete": False, "discarded": [{}]}, "the reviewer named only what the document does not state"),
    ],
)  # fmt: skip
def test_a_review_without_agreement_is_left_out(
    debate: StoredDebate, entry: dict[str, Any], reason: str
) -> None:
    chunk, at = _first(debate)
    made = _made(_changed(debate, f"reviewer.chunks.{at}", {"chunk": chunk, **entry}))
    assert made.drops["discriminate", reason] == 1
    start = debate.chunks[chunk][0]
    assert not _about(made, "discriminate", start)
    assert not _about(made, "refine", start)


@pytest.mark.parametrize("change", ["number", "negation", "lost", "empty", "long"])
def test_a_rewriting_that_changes_a_fact_is_never_learnt(debate: StoredDebate, change: str) -> None:
    chunk, _ = _first(debate)
    text = debate.completed[chunk]
    assert text is not None
    digit = next(char for char in text if char.isdigit())
    bad = {
        "number": text.replace(digit, str((int(digit) + 3) % 10)),
        "negation": f"不得{text}" if debate.language == "zh" else f"Never {text}",
        "lost": text[:4] + text[8:],
        "empty": " ",
        "long": text * 3,
    }[change]
    assert bad != text
    completed = list(debate.completed)
    completed[chunk] = bad
    made = _made(replace(debate, completed=tuple(completed)))
    assert not _about(made, "refine", debate.chunks[chunk][0])
    assert made.drops["refine", "check of slm_refine"] == 1


def test_what_the_model_is_not_shown_is_not_asked_of_it(debate: StoredDebate) -> None:
    """Items beyond the window that holds the chunk, and completions that the guard refused."""
    chunk, at = _first(debate)
    items = json.loads(json.dumps(debate.record["reviewer"]["chunks"][at]["items"]))
    far = len(debate.text) - 4 if debate.chunks[chunk][0] < len(debate.text) // 2 else 3
    items[0] |= {"start": far, "end": far + 3}
    made = _made(_changed(debate, f"reviewer.chunks.{at}.items", items))
    reason = "an item is stated outside the window that the model is shown"
    base = _made(debate).drops
    assert made.drops["discriminate", reason] == base["discriminate", reason] + 1
    completed = list(debate.completed)
    completed[chunk] = None
    refused = _made(replace(debate, completed=tuple(completed)))
    assert (
        refused.drops["refine", "the completer, or the guard of facts, refused what the reviewer asked for"]
        > 0
    )
    assert not _about(refused, "discriminate", debate.chunks[chunk][0])


def test_role_marks_of_a_page_never_become_words_of_the_assistant() -> None:
    text = "# 说明\n<|im_end|>甲醇有毒。\n# 储存\n阴凉处储存。\n"
    place = {"start": 0, "end": len(text), "size": 60}
    answer = {"outline": ["甲醇的危害是什么？"], "chunks": [{"question": 1, "head": "<|im_end|>甲醇有毒"}]}
    example = Example("generate", "d", "v", "zh", place, answer, "model")
    made = debates.Made()
    made.add(example, given_of(example, text))
    assert dict(made.drops) == {("generate", "the answer holds role marks or special tokens"): 1}
    assert "<|im_end|>" not in json.dumps(record_of(example, text, count_words)["messages"][:-1])


# --- levels ----------------------------------------------------------------------------------------------------


def _chapters(language: str, chapters: int = 5, sections: int = 3, lines: int = 6) -> str:
    """A made-up document: a title, chapters of sections."""
    zh = language == "zh"
    parts = ["# 危险化学品管理手册\n" if zh else "# Handbook of hazardous chemicals\n"]
    for c in range(chapters):
        parts.append(f"\n## 储运要求{c}\n" if zh else f"\n## Storage rules {c}\n")
        for s in range(sections):
            parts.append(f"\n### 具体规定{c}之{s}\n" if zh else f"\n### Rule {c} of part {s}\n")
            for n in range(lines):
                said = (
                    f"第{c}类物质在温度{n} ℃以下储存，不得混存。"
                    if zh
                    else f"Keep class {c} below {n} °C at all times. "
                )
                parts.append(said)
            parts.append("\n")
    return "".join(parts)


def _levels(text: str, language: str, **options: Any) -> debates.Made:
    chosen = LevelsOptions(**{"window": 600, "shortest": 20} | options)
    return levels_of(LevelsDocument("d", "v", language, text), chosen, count_words, 0)


@pytest.mark.parametrize("language", ["zh", "en"])
@pytest.mark.parametrize("window", [700, 900, 8192])
def test_a_model_that_answers_as_recorded_finds_the_headings_again(language: str, window: int) -> None:
    text = _chapters(language)
    made = _levels(text, language, window=window, shuffles=0, residuals=0)
    records = [record_of(example, text, count_words) for example in made.examples]
    known = {
        json.dumps(r["messages"][:-1], ensure_ascii=False): r["messages"][-1]["content"] for r in records
    }
    asked: list[str] = []

    def answer(request: Request) -> Any:
        asked.append(json.dumps(request.messages, ensure_ascii=False))
        return known[asked[-1]]

    with ModelServer(answer) as server:
        models = HashedModels(ModelSettings(base_url=server.base_url, model="levels"))
        settings = ChunkSettings(hichunk_window=window)
        result = Segmenter(models, settings).run(text, "hichunk", language)
        models.close()
    assert sorted(set(asked)) == sorted(known)
    starts = [start for start, _ in SentenceVectors(text, HashedEmbedder(), count_words).sentences]
    found = [(starts[index], level) for index, level in result.record["levels"]["points"]]
    marks = [(at, line.count("#")) for at, line in _lines(text) if line.startswith("#")]
    assert found == [(at, max(level - 1, 1)) for at, level in marks]
    assert not any("#" in message["content"] for r in records for message in r["messages"][1:])


def _lines(text: str) -> Iterator[tuple[int, str]]:
    at = 0
    for line in text.splitlines(keepends=True):
        yield at, line
        at += len(line)


@pytest.mark.parametrize("language", ["zh", "en"])
def test_variants_keep_every_sentence_whole_and_under_its_heading(language: str) -> None:
    text = _chapters(language, sections=8)
    made = _levels(text, language, window=8192, shuffles=2, residuals=3)
    by_variant = Counter(example.variant for example in made.examples)
    assert set(by_variant) == {"original", "shuffled", "shuffled and truncated", "residual lines"}
    whole = next(e for e in made.examples if e.variant == "original")
    order = {line: e for e, line in enumerate(whole.place["lines"])}
    for example in made.examples:
        given = given_of(example, text)
        points = example.answer["points"]
        residual = example.place["residual"]
        assert all(point["index"] >= residual for point in points)
        assert [p["index"] for p in points] == sorted({p["index"] for p in points})
        for point in points[1:]:  # a level says what the heading is, wherever it stands
            line = given.lines[point["index"]]
            assert point["level"] == (1 if ("储运" in line or "Storage" in line) else 2)
        if example.variant == "shuffled":
            assert sorted(example.place["lines"]) == sorted(order)
            assert example.place["lines"] != whole.place["lines"]
            assert example.place["lines"][0] == 0
        if example.variant == "shuffled and truncated":
            assert set(example.place["lines"]) <= set(order)
    behind = [e for e in made.examples if e.variant == "residual lines"]
    assert all(e.place["residual"] > 0 for e in behind)
    assert all(points["index"] == e.place["residual"] for e in behind for points in e.answer["points"][:1])


@pytest.mark.parametrize(
    "text,reason",
    [
        ("乙醇是易燃液体。不得靠近火源。\n", "fewer than 3 headings"),
        ("# A\n# B\n# C\n# D\nText here.\n", "more than half of the lines are headings"),
    ],
)
def test_documents_without_structure_are_counted(text: str, reason: str) -> None:
    made = _levels(text, "en")
    assert (made.examples, dict(made.drops)) == ([], {("headings", reason): 1})
    assert (
        _levels(_chapters("en"), "en", characters=10**6).drops["headings", "shorter than 1000000 characters"]
        == 1
    )


def test_levels_are_ranked_and_a_lone_title_lifts_what_is_below_it() -> None:
    assert ranked({0: 1, 4: 2, 9: 4, 12: 2}) == {0: 1, 4: 1, 9: 2, 12: 1}
    assert ranked({0: 2, 4: 2, 9: 4}) == {0: 1, 4: 1, 9: 2}
    assert ranked({3: 1, 4: 2, 9: 1}) == {0: 1, 3: 1, 4: 2, 9: 1}
    assert ranked({2: 3, 5: 6}) == {0: 1, 2: 1, 5: 1}


def test_given_levels_of_a_published_set_are_gold() -> None:
    text = "Introduction\nText of the first part. More of it.\nMethods\nText of the second part. And more.\n"
    starts = {0: 1, text.index("Methods"): 1, text.index("And more"): 2}
    options = LevelsOptions(window=600, shuffles=0, residuals=0)
    made = levels_of(LevelsDocument("d", "v", "en", text, starts), options, count_words, 0)
    assert [list(p.values()) for p in made.examples[0].answer["points"]] == [[0, 1], [3, 1], [5, 2]]
    wrong = LevelsDocument("d", "v", "en", text, {0: 1, 3: 1, 8: 2})
    assert levels_of(wrong, options, count_words, 0).drops == {
        ("headings", "a gold heading is not the beginning of a sentence"): 1
    }
    assert RULES_PROMPT  # the prompt's size is the model's, not that of the rules
