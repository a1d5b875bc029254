"""QChunker-3B: three scripted models over real HTTP. The sheets are made up."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from chunking.partition import SegmentResult
from chunking.prompted.windows import WindowIn
from chunking.qchunker.reviewer import ReviewIn
from chunking.qchunker.slm import (
    SLM_SKILLS,
    Generated,
    GeneratedChunk,
    Refinement,
    SlmGenerate,
    SlmRefine,
    Supplement,
    located_supplements,
)
from chunking.segment import Segmenter
from chunking.settings import ChunkSettings
from chunking.stage import chunks_stage
from corpus.errors import SettingsError
from flows.commands.chunk import app
from models import Models, ModelSettings
from models.errors import AnswerRejected, OfflineUnavailable
from models.settings import Limits, SkillModel
from tests.chunking.test_partition import ANY_TEXT, TEXTS, HashedModels
from tests.servers.model_server import ModelServer, Reply, Request

ZH = (
    "# 甲醇安全技术说明书\n\n## 第一部分 化学品标识\n中文名：甲醇。本说明书所用的LD50（半数致死量）为经口数据。\n\n"
    "## 第四部分 急救措施\n吸入：迅速脱离现场，就医。\n\n## 第十一部分 毒理学信息\n"
    "LD50：5628 mg/kg（大鼠经口）。急性中毒的处理见第四部分，不得催吐，注意保暖并保持呼吸道通畅。\n"
)
EN = (
    "# Methanol safety data sheet\n\n## Section 1 Identification\nThe product is methanol. The median lethal dose (MLD) is oral.\n\n"
    "## Section 4 First aid\nInhalation: move to fresh air and call a doctor at once.\n\n## Section 11 Toxicology\n"
    "MLD: 5628 mg/kg in rats. It must not be swallowed, and vomiting must never be induced in such cases.\n"
)
HEADS = {
    ZH: ["# 甲醇安全", "## 第四部分", "## 第十一部分"],
    EN: ["# Methanol safety", "## Section 4 First aid", "## Section 11"],
}
OUTLINE = {
    ZH: ["这是什么化学品？", "吸入后如何急救？", "甲醇的毒性数据是多少？"],
    EN: ["Which product is it?", "What helps after inhalation?", "How toxic is methanol?"],
}
LAST = {ZH: "LD50：5628", EN: "MLD: 5628"}
STATED = {ZH: "中文名：甲醇", EN: "The product is methanol."}

Answers = dict[str, Any]


def generated(heads: list[str], outline: list[str]) -> dict[str, Any]:
    return {
        "outline": outline,
        "chunks": [{"question": number, "head": head} for number, head in enumerate(heads, start=1)],
    }


def chunk_of(request: Request) -> str:
    """The fenced chunk of an M_Disc or M_Ref request."""
    found = re.search(r"<chunk k=\w+>\n(.*)\n</chunk k=", request.messages[2]["content"], re.S)
    assert found
    return found[1]


def document_of(request: Request) -> str:
    found = re.search(r"<document k=\w+>\n(.*)\n</document k=", request.messages[1]["content"], re.S)
    assert found
    return found[1]


class Slm:
    """Scripted answers by skill; an answer may be a function of the request."""

    def __init__(self, text: str, **answers: Any) -> None:
        self.answers = {
            "slm_generate": generated(HEADS.get(text, [text[:20]]), OUTLINE.get(text, ["?"])),
            "slm_discriminate": lambda request: {"incomplete": "5628" in chunk_of(request)},
            "slm_refine": lambda request: {
                "items": [{"unclear": "", "supplement": STATED[text]}],
                "text": f"{STATED[text]}。{chunk_of(request)}"
                if text == ZH
                else f"{STATED[text]} {chunk_of(request)}",
            },
        } | answers

    def __call__(self, request: Request) -> Any:
        answer = self.answers[request.body["response_format"]["json_schema"]["name"]]
        return answer(request) if callable(answer) else answer


def models_of(server: ModelServer, concurrency: int = 4) -> Models:
    chosen = ModelSettings(base_url=server.base_url, model="slm-3b", limits=Limits(concurrency=concurrency))
    return HashedModels(chosen)


def cut_by(models: Models, text: str, **options: Any) -> SegmentResult:
    chosen = ChunkSettings(**{"size": 60} | options)
    result = Segmenter(models, chosen).run(text, "qchunker-slm", "zh" if "甲" in text else "en")
    assert "".join(text[n.start : n.end] for n in result.leaves) == text
    json.dumps(result.record, allow_nan=False)
    return result


def cut(text: str, server: ModelServer, concurrency: int = 4, **options: Any) -> SegmentResult:
    models = models_of(server, concurrency)
    try:
        return cut_by(models, text, **options)
    finally:
        models.close()


def run(
    text: str, concurrency: int = 4, options: dict[str, Any] | None = None, **answers: Any
) -> SegmentResult:
    with ModelServer(Slm(text, **answers)) as server:
        return cut(text, server, concurrency, **options or {})


# --- the whole method ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", [ZH, EN])
def test_one_call_gives_outline_and_chunks_and_the_flagged_chunk_is_completed(text: str) -> None:
    with ModelServer(Slm(text)) as server:
        result = cut(text, server, size=200)
        names = [call.body["response_format"]["json_schema"]["name"] for call in server.calls()]
    assert names.count("slm_generate") == 1
    assert names.count("slm_discriminate") == 3
    assert names.count("slm_refine") == 1
    assert [text[n.start : n.end].split("\n")[0] for n in result.leaves] == [
        line for line in text.split("\n") if line.startswith(tuple(HEADS[text]))
    ]
    assert list(result.questions.values()) == OUTLINE[text]
    last = text[result.leaves[2].start :]
    assert STATED[text] in result.completed[2]
    assert last in result.completed[2]
    record = result.record
    assert record["generator"]["heads_not_found"] == []
    assert record["generator"]["source"] == "slm-3b"
    assert record["discriminator"]["counts"] == {"judged": 3, "incomplete": 1, "refused": 0}
    assert record["refiner"]["counts"] == {"asked": 1, "completed": 1, "kept": 0}
    item = record["refiner"]["chunks"][0]["items"][0]
    assert text[item["start"] : item["end"]] == STATED[text]


def test_without_completion_only_m_gen_is_asked() -> None:
    with ModelServer(Slm(ZH)) as server:
        result = cut(ZH, server, completion=False)
        assert len(server.calls()) == 1
    assert result.completed == {}
    assert set(result.record) == {"generator"}
    assert result.settings["completion"] is False


@pytest.mark.parametrize("text", [ZH, EN])
def test_the_document_is_the_shared_beginning_of_all_its_chunks(text: str) -> None:
    with ModelServer(Slm(text, slm_discriminate={"incomplete": True})) as server:
        cut(text, server, size=200)
        calls = server.calls()
    for skill in ("slm_discriminate", "slm_refine"):
        own = [c for c in calls if c.body["response_format"]["json_schema"]["name"] == skill]
        assert len(own) == 3
        assert len({json.dumps(call.messages[:2]) for call in own}) == 1
        assert {chunk_of(call) for call in own} == {text[a:b] for a, b in _spans(text)}


def _spans(text: str) -> list[tuple[int, int]]:
    starts = [text.index(head) for head in HEADS[text]]
    return list(zip(starts, [*starts[1:], len(text)], strict=True))


@pytest.mark.parametrize("text", [ZH, EN])
def test_concurrency_changes_nothing(text: str) -> None:
    slow = {
        "slm_discriminate": lambda r: Reply(
            json.dumps({"incomplete": "5628" not in chunk_of(r)}), delay_s=0.02
        )
    }
    long = text * 4  # several windows, several chunks in each
    answers = Slm(text, **slow).answers | {"slm_generate": lambda r: _cut_again(text, document_of(r))}
    one, many = (run(long, n, {"qchunker_window": 200, "size": 40}, **answers) for n in (1, 8))
    assert (one.nodes, one.completed, one.questions, one.record) == (
        many.nodes,
        many.completed,
        many.questions,
        many.record,
    )
    assert one.record["generator"]["windows"] > 1
    assert one.record["refiner"]["counts"]["asked"] > 4


def _cut_again(text: str, window: str) -> dict[str, Any]:
    """Heads of a window over repetitions of a text."""
    marks = "|".join(map(re.escape, HEADS[text]))
    return generated(re.findall(marks, window), OUTLINE[text])


# --- any text, any answer ----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def anything() -> Iterator[tuple[dict[str, Any], Models]]:
    """Models whose M_Gen cuts its window at ``cuts`` and names one head too many; every chunk is to be completed."""
    state: dict[str, Any] = {"cuts": []}

    def generate(request: Request) -> Any:
        window = document_of(request)
        places = sorted({at % len(window) for at in (0, *state["cuts"])})
        heads = [head for at in places if (head := window[at : at + 12]).strip()]
        return generated([*heads, "nowhere to be found 7"][: max(len(heads), 2)], ["?"] * 3)

    script = Slm(
        "",
        slm_generate=generate,
        slm_discriminate={"incomplete": True},
        slm_refine=lambda request: {"items": [], "text": chunk_of(request)},
    )
    with ModelServer(script) as server:
        models = models_of(server)
        yield state, models
        models.close()


@settings(max_examples=40, deadline=None)
@given(
    text=ANY_TEXT.filter(lambda text: bool(text.strip())),
    cuts=st.lists(st.integers(0, 200), max_size=6),
    window=st.integers(200, 220),
)
def test_any_text_is_tiled(
    anything: tuple[dict[str, Any], Models], text: str, cuts: list[int], window: int
) -> None:
    state, models = anything
    state["cuts"] = cuts
    cut_by(models, text, size=25, qchunker_window=window)


@pytest.mark.parametrize("text", [text for text in TEXTS if text.strip()])
def test_long_and_odd_texts_are_tiled_over_windows_within_the_size(
    anything: tuple[dict[str, Any], Models], text: str
) -> None:
    state, models = anything
    state["cuts"] = [60, 120]
    result = cut_by(models, text, size=60, qchunker_window=200)
    count = Models.offline().count_tokens
    sentences = Segmenter(HashedModels(), None).table(text).sentences
    for node in result.leaves:
        alone = (node.start, node.end) in sentences
        assert alone or count(text[node.start : node.end]) <= 60


@pytest.mark.parametrize("text", [ZH, EN])
@pytest.mark.parametrize(
    "heads,found,lost",
    [
        (["nowhere at all to be found", "{0}", "{1}", "{2}"], 3, 1),
        (["{0}", "{2}", "{1}"], 2, 1),
        (["{1}", "{2}"], 3, 0),
    ],
)
def test_heads_that_are_not_found_are_counted(text: str, heads: list[str], found: int, lost: int) -> None:
    named = [head.format(*HEADS[text]) for head in heads]
    result = run(text, options={"size": 200}, slm_generate=generated(named, OUTLINE[text]))
    assert len(result.leaves) == found
    generator = result.record["generator"]
    assert len(generator["heads_not_found"]) == lost
    assert set(generator["heads_not_found"]) <= set(named)


@pytest.mark.parametrize(
    "answer,reason",
    [
        (generated(["nowhere", "auch nicht"], ["这是什么化学品？"]), "not in the document"),
        ({"outline": ["这是什么化学品？"], "chunks": []}, "no chunk"),
        (generated(HEADS[ZH], []), "outline has no question"),
        (generated(HEADS[ZH], ["What is the product, and how toxic is it for people?"]), "answer in Chinese"),
        ("no json", "no_json"),
    ],
)
def test_without_an_acceptable_answer_of_m_gen_there_is_no_partition(answer: Any, reason: str) -> None:
    with ModelServer(Slm(ZH, slm_generate=answer)) as server:
        with pytest.raises(AnswerRejected, match=reason):
            cut(ZH, server)
        assert len(server.calls()) == 2  # asked again once, and nothing further


def test_windows_read_the_last_chunk_again() -> None:
    text = "".join(
        f"## 第{n}节 标题{n}\n{'甲醇有毒，应当密闭储存。' * 4}第{n}节完。\n" for n in range(10, 30)
    )

    def generate(request: Request) -> Any:
        heads = re.findall(r"## 第\d+节", document_of(request))
        return generated(heads, [f"{head[3:]}说了什么内容？" for head in heads])

    with ModelServer(Slm(text, slm_generate=generate)) as server:
        result = cut(text, server, size=200, qchunker_window=300, completion=False)
        windows = [document_of(call) for call in server.calls()]
    assert len(result.leaves) == 20
    assert list(result.questions.values()) == [f"第{n}节说了什么内容？" for n in range(10, 30)]
    assert result.record["generator"]["windows"] == len(windows) == 4
    for before, after in itertools.pairwise(windows):
        head = after[: after.index("节") + 1]
        assert head in before  # begins with a chunk that the window before could not end


def test_a_chunk_over_the_size_is_cut_again_and_keeps_its_question() -> None:
    result = run(ZH, options={"size": 30}, slm_generate=generated(HEADS[ZH][:1], OUTLINE[ZH][:1]))
    assert len(result.leaves) > 3
    assert result.record["generator"]["cut_for_size"] == len(result.leaves) - 1
    assert set(result.questions.values()) == {OUTLINE[ZH][0]}


def test_a_question_number_that_leads_nowhere_is_no_question() -> None:
    answer = generated(HEADS[EN], OUTLINE[EN])
    answer["chunks"][0]["question"], answer["chunks"][2]["question"] = 0, 9
    result = run(EN, options={"size": 200}, slm_generate=answer)
    assert result.questions == {1: OUTLINE[EN][1]}


# --- M_Disc and M_Ref --------------------------------------------------------------------------------------------


def test_a_refused_verdict_leaves_the_chunk_alone() -> None:
    result = run(ZH, options={"size": 200}, slm_discriminate="perhaps")
    assert result.completed == {}
    assert result.record["discriminator"]["counts"] == {"judged": 0, "incomplete": 0, "refused": 3}
    assert [entry["chunk"] for entry in result.record["discriminator"]["refused"]] == [0, 1, 2]


WRONG: list[Callable[[str], str]] = [
    lambda chunk: "",
    lambda chunk: chunk * 10,
    lambda chunk: chunk + "LD50 9999 mg/kg",
    lambda chunk: chunk.replace("5628", "6528"),
    lambda chunk: chunk.replace("mg/kg", "g/kg"),
    lambda chunk: chunk.replace("不得", "").replace("not ", "").replace("never ", ""),
    lambda chunk: chunk + ("苯可致癌。" if "催吐" in chunk else "Benzene causes cancer."),
    lambda chunk: chunk[: len(chunk) // 2],
]


@pytest.mark.parametrize("text", [ZH, EN])
@pytest.mark.parametrize("number", range(len(WRONG)))
def test_wrong_rewritings_never_replace_a_chunk(text: str, number: int) -> None:
    wrong = WRONG[number]
    answer = lambda request: {  # noqa: E731
        "items": [{"unclear": "", "supplement": STATED[text]}],
        "text": wrong(chunk_of(request)),
    }
    result = run(text, options={"size": 200}, slm_refine=answer)
    assert result.completed == {}
    assert result.record["refiner"]["counts"] == {"asked": 1, "completed": 0, "kept": 1}
    assert result.record["refiner"]["chunks"][0]["kept"]


def test_a_supplement_that_the_document_does_not_state_supports_nothing() -> None:
    invented = lambda request: {  # noqa: E731
        "items": [{"unclear": "LD50", "supplement": "甲醇可致失明。"}],
        "text": "甲醇可致失明。" + chunk_of(request),
    }
    result = run(ZH, options={"size": 200}, slm_refine=invented)
    assert result.completed == {}
    assert "甲醇可致失明" in result.record["refiner"]["chunks"][0]["kept"]


def test_a_rewriting_is_mended_when_it_is_asked_again() -> None:
    def refine(request: Request) -> Any:
        right = f"{STATED[EN]} {chunk_of(request)}"
        text = right if len(request.messages) > 3 else right.replace("5628", "5268")
        return {"items": [{"unclear": "It", "supplement": STATED[EN]}], "text": text}

    with ModelServer(Slm(EN, slm_refine=refine)) as server:
        result = cut(EN, server, size=200)
        again = server.calls()[-1].messages[-1]["content"]
    assert "5268" in again
    assert result.completed[2].startswith(STATED[EN])


def test_an_unchanged_chunk_is_no_completion() -> None:
    result = run(
        EN, options={"size": 200}, slm_refine=lambda request: {"items": [], "text": chunk_of(request)}
    )
    assert result.completed == {}
    assert result.record["refiner"]["chunks"][0]["kept"] == "the model finds nothing to supplement"


def test_supplements_inside_the_chunk_or_nowhere_are_discarded_with_reasons() -> None:
    start = ZH.index(LAST[ZH])
    asked = ReviewIn(ZH, start, len(ZH), "zh")
    answer = Refinement(
        items=[
            Supplement(unclear="LD50", supplement="LD50（半数致死量）"),
            Supplement(unclear="处理", supplement="不得催吐"),
            Supplement(unclear="?", supplement="甲醇可致癌"),
        ],
        text="x",
    )
    located, discarded = located_supplements(asked, answer)
    assert [(item.need, ZH[item.start : item.end]) for item in located] == [("LD50", "LD50（半数致死量）")]
    assert [entry["reason"] for entry in discarded] == [
        "stated in the chunk itself",
        "not stated in the document",
    ]
    verdict = SlmRefine().check(asked, answer)
    assert verdict.kind == "ask_again"
    assert any("不得催吐" in reason for reason in verdict.reasons)


def test_the_check_of_m_gen_lets_a_minority_of_lost_heads_pass() -> None:
    asked = WindowIn(ZH, "zh", 200)
    answer = Generated(
        outline=OUTLINE[ZH],
        chunks=[GeneratedChunk(question=1, head=head) for head in [*HEADS[ZH], "第九部分不存在的标题"]],
    )
    assert SlmGenerate().check(asked, answer).kind == "accept"


# --- the file tool ---------------------------------------------------------------------------------------------------


def test_the_chunk_command_runs_the_method(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "sheet.txt"
    file.write_text(EN, encoding="utf-8")
    arguments = ["chunk", str(file), "--method", "qchunker-slm"]
    alone = CliRunner().invoke(app, arguments)
    assert isinstance(alone.exception, OfflineUnavailable)
    with ModelServer(Slm(EN)) as server:
        monkeypatch.setenv("HCHEM_MODELS__BASE_URL", server.base_url)
        monkeypatch.setenv("HCHEM_MODELS__MODEL", "slm-3b")
        done = CliRunner().invoke(app, [*arguments, "--without-completion"])
        assert len(server.calls()) == 1
    assert done.exit_code == 0, done.output
    rows = [json.loads(line) for line in done.output.splitlines()]
    assert [row["text"] for row in rows] == [EN[a:b] for a, b in _spans(EN)]


# --- offline -------------------------------------------------------------------------------------------------------


def test_without_a_model_nothing_stands_in_for_it() -> None:
    offline = Segmenter(HashedModels(), ChunkSettings())
    with pytest.raises(OfflineUnavailable, match=r"\[models\.skills\.slm_generate\]"):
        offline.run(ZH, "qchunker-slm", "zh")
    assert offline.run("", "qchunker-slm").nodes == ()
    inputs: list[Any] = [WindowIn(ZH, "zh", 9), ReviewIn(ZH, 0, 9, "zh"), ReviewIn(ZH, 0, 9, "zh")]
    for skill, asked in zip(SLM_SKILLS, inputs, strict=True):
        with pytest.raises(OfflineUnavailable, match=skill.name):
            skill.offline(asked)  # type: ignore[arg-type]


def test_a_model_that_is_missing_for_a_later_step_is_named_before_anything_is_paid() -> None:
    with ModelServer(Slm(ZH)) as server:
        only = {"slm_generate": SkillModel(base_url=server.base_url, model="slm-3b")}
        models = HashedModels(ModelSettings(skills=only))
        with pytest.raises(OfflineUnavailable, match=r"\[models\.skills\.slm_discriminate\]"):
            Segmenter(models, ChunkSettings()).run(ZH, "qchunker-slm", "zh")
        assert server.calls() == []
        alone = Segmenter(models, ChunkSettings(completion=False)).run(ZH, "qchunker-slm", "zh")
        assert len(server.calls()) == 1
        models.close()
    assert len(alone.leaves) == 3


def test_the_stage_refuses_the_method_without_a_model_and_takes_it_with_one() -> None:
    chosen = ChunkSettings(methods=["sentence", "qchunker-slm"])
    with pytest.raises(SettingsError, match=r"chunks\.methods.*\[models\.skills\.slm_generate\]"):
        chunks_stage(chosen, Models.offline())
    assert "qchunker-slm" not in ChunkSettings().methods
    models = Models(
        ModelSettings(base_url="http://127.0.0.1:9/v1", model="slm-3b", limits=Limits(concurrency=3))
    )
    steps = chunks_stage(chosen, models).steps
    assert [(step.name, step.concurrency) for step in steps] == [
        ("chunks.sentence", 1),
        ("chunks.qchunker-slm", 3),
    ]
