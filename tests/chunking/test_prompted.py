"""LumberChunker, the meta-chunker and the plain request: scripted models over real HTTP. The sheets are made up."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from chunking.partition import SegmentResult
from chunking.prompted import PROMPTED
from chunking.prompted.direct import locate_copies
from chunking.prompted.mask import locate_masks
from chunking.segment import ASKING, segment
from chunking.settings import ChunkSettings
from chunking.stage import chunks_stage
from corpus.errors import SettingsError
from flows.commands.chunk import app
from models import Models, ModelSettings
from models.errors import AnswerRejected, OfflineUnavailable
from models.settings import Limits
from tests.chunking.test_partition import ANY_TEXT, TEXTS, HashedModels
from tests.chunking.test_slm import EN, ZH, document_of
from tests.servers.model_server import ModelServer, Reply, Request

METHODS = tuple(PROMPTED)
CUTS = {
    ZH: ["## 第四部分", "## 第十一部分"],
    EN: ["## Section 4 First aid", "## Section 11"],
}
LOST = {ZH: "本品可致癌，禁止使用", EN: "This product causes cancer"}


def pieces(text: str) -> list[str]:
    """The three parts of a sheet."""
    edges = [0, *(text.index(head) for head in CUTS[text]), len(text)]
    return [text[a:b] for a, b in itertools.pairwise(edges)]


def masked(parts: list[str]) -> list[str]:
    return [f"{part[:14]}[MASK]{part.rstrip()[-10:]}" for part in parts]


def shown(request: Request) -> list[tuple[int, str]]:
    """Numbered paragraphs of a LumberChunker request."""
    return [
        (int(number), line)
        for number, line in re.findall(r"^ID (\d+): (.*)$", request.messages[1]["content"], re.M)
    ]


def right(text: str) -> dict[str, Any]:
    """What a model that understands the sheet answers, by method."""
    heads = [head.lstrip("# ") for head in CUTS[text]]

    def shift(request: Request) -> dict[str, Any]:
        numbers = [number for number, line in shown(request)[1:] if line.startswith(tuple(heads))]
        return {"id": numbers[0] if numbers else None}

    return {
        "lumberchunker": shift,
        "meta-chunker": {"chunks": masked(pieces(text))},
        "direct-llm": {"chunks": pieces(text)},
    }


def models_of(server: ModelServer) -> Models:
    return HashedModels(
        ModelSettings(base_url=server.base_url, model="baseline", limits=Limits(concurrency=2))
    )


def cut_by(models: Models, text: str, method: str, **options: Any) -> SegmentResult:
    result = segment(text, method, **({"size": 200, "models": models} | options))
    assert "".join(text[node.start : node.end] for node in result.leaves) == text
    assert (result.completed, result.questions) == ({}, {})  # nothing but spans of the text
    json.dumps(result.record, allow_nan=False)
    return result


def cut(text: str, method: str, answer: Any, **options: Any) -> tuple[SegmentResult, list[Request]]:
    with ModelServer(answer) as server:
        models = models_of(server)
        try:
            return cut_by(models, text, method, **options), server.calls()
        finally:
            models.close()


# --- the methods -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("text", [ZH, EN])
def test_a_right_answer_cuts_where_it_says(method: str, text: str) -> None:
    result, calls = cut(text, method, right(text)[method])
    assert [text[a:b] for a, b in result.spans] == pieces(text)
    assert result.record["generator"]["source"] == "baseline"
    assert result.record["generator"]["refused"] == []
    assert result.settings["window"] > 0
    assert "#" not in "".join(line for call in calls for _, line in shown(call))  # marks are hidden


def test_lumberchunker_asks_again_from_the_paragraph_it_was_told() -> None:
    _, calls = cut(ZH, "lumberchunker", right(ZH)["lumberchunker"])
    firsts = [shown(call)[0][1] for call in calls]
    assert [line.split(" ")[0] for line in firsts] == ["甲醇安全技术说明书", "第四部分", "第十一部分"]
    assert {number for call in calls for number, _ in shown(call)} == set(range(7))


@pytest.mark.parametrize("text", [ZH, EN])
def test_lumberchunkers_window_ends_with_the_paragraph_that_passes_it(text: str) -> None:
    long = text * 6
    count = Models.offline().count_tokens
    _, calls = cut(long, "lumberchunker", {"id": None}, lumber_window=60)
    for call in calls[:-1]:
        sizes = [count(line) for _, line in shown(call)]
        assert sum(sizes[:-1]) < 60 + len(sizes)
        assert sum(sizes) > 60 - 2 * len(sizes)
    numbers = [number for call in calls for number, _ in shown(call)]
    assert numbers == list(range(len(numbers)))  # each paragraph is read once where nothing changes


@pytest.mark.parametrize("text", [ZH, EN])
def test_a_lost_head_is_found_by_the_tail_before_it(text: str) -> None:
    first, second, third = masked(pieces(text))
    answer = {"chunks": [first, LOST[text] + second[second.index("[MASK]") :], third]}
    result, _ = cut(text, "meta-chunker", answer)
    assert [text[a:b] for a, b in result.spans] == pieces(text)
    generator = result.record["generator"]
    assert (generator["found_by_tail"], generator["heads_not_found"]) == (1, [])


@pytest.mark.parametrize("text", [ZH, EN])
def test_a_copy_that_was_changed_tells_its_place_and_nothing_else(text: str) -> None:
    first, second, third = pieces(text)
    changed = third.replace("5628", "6528").replace("不得", "可以").replace("never ", "")
    assert changed != third
    result, _ = cut(text, "direct-llm", {"chunks": [first, second, changed]})
    assert [text[a:b] for a, b in result.spans] == [first, second, third]
    assert result.record["generator"]["copies_changed"] == 1


def test_copies_of_repeated_lines_follow_each_other() -> None:
    text = "甲醇有毒。\n甲醇有毒。\n甲醇有毒。\n"
    located = locate_copies(text, ["甲醇有毒。", "甲醇 有毒。", "甲醇有毒。", "甲醇有毒。"])
    assert (located.starts, located.changed) == ((0, 6, 12), 0)
    assert located.lost == ("甲醇有毒。",)


def test_masks_in_other_spellings_and_without_one() -> None:
    text = "甲醇有毒，应密闭储存。乙醇易燃。丙酮易燃，远离火种。"
    located = locate_masks(text, ["甲醇有毒 [Mask] 密闭储存。", "乙醇易燃。", "丙酮易燃[ MASK ]火种。"])
    assert located.starts == (0, 11, 16)
    assert located.lost == ()


@pytest.mark.parametrize("method", ["meta-chunker", "direct-llm"])
@pytest.mark.parametrize("text", [ZH, EN])
def test_a_long_text_is_read_window_after_window(method: str, text: str) -> None:
    long = text * 8
    marks = "|".join(map(re.escape, [text[:6], *CUTS[text]]))

    def answer(request: Request) -> Any:
        window = document_of(request)
        starts = sorted({0, *(found.start() for found in re.finditer(marks, window))})
        parts = [window[a:b] for a, b in zip(starts, [*starts[1:], len(window)], strict=True)]
        return {"chunks": parts if method == "direct-llm" else masked(parts)}

    option = "direct_window" if method == "direct-llm" else "meta_window"
    result, calls = cut(long, method, answer, **{option: 200})
    assert len(calls) == result.record["generator"]["windows"] > 2
    assert [long[a:b] for a, b in result.spans] == pieces(text) * 8


# --- wrong answers ------------------------------------------------------------------------------------------------


def _heads_that_do_not_occur(text: str, method: str) -> Any:
    wrong = [f"{LOST[text]} {number}" for number in range(4)]
    return {"id": 900} if method == "lumberchunker" else {"chunks": wrong}


def _repeated(text: str, method: str) -> Any:
    first = pieces(text)[0] if method == "direct-llm" else masked(pieces(text))[0]
    return {"id": 0} if method == "lumberchunker" else {"chunks": [first] * 5}


def _out_of_order(text: str, method: str) -> Any:
    if method == "lumberchunker":
        return lambda request: {"id": shown(request)[0][0] - 1}
    parts = pieces(text) if method == "direct-llm" else masked(pieces(text))
    return {"chunks": parts[::-1]}


def _invented(text: str, method: str) -> Any:
    if method == "lumberchunker":
        return {"id": 2, "text": LOST[text]}
    parts = pieces(text) if method == "direct-llm" else masked(pieces(text))
    return {"chunks": [parts[0], f"{LOST[text]} 99 %", parts[1], parts[2] + LOST[text]]}


def _empty(text: str, method: str) -> Any:
    return {} if method == "lumberchunker" else {"chunks": []}


def _blank(text: str, method: str) -> Any:
    return {"id": ""} if method == "lumberchunker" else {"chunks": ["", " ", "\n"]}


def _ten_times_too_long(text: str, method: str) -> Any:
    if method == "lumberchunker":
        return {"id": 10**12}
    parts = pieces(text) if method == "direct-llm" else masked(pieces(text))
    return {"chunks": parts * 10}


def _garbage(text: str, method: str) -> Any:
    return "%$§ [1, 2" + LOST[text]


def _cut_off(text: str, method: str) -> Any:
    return Reply('{"chunks": ["' + text[:30].replace("\n", "\\n"), finish_reason="length")


def _wrong_type(text: str, method: str) -> Any:
    return {"id": [3], "chunks": {"head": 7}}


KINDS: list[Callable[[str, str], Any]] = [
    _heads_that_do_not_occur, _repeated, _out_of_order, _invented, _empty, _blank, _ten_times_too_long, _garbage,
    _cut_off, _wrong_type,
]  # fmt: skip


@pytest.mark.parametrize("kind", KINDS, ids=[kind.__name__.strip("_") for kind in KINDS])
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("text", [ZH, EN], ids=["zh", "en"])
def test_no_wrong_answer_breaks_the_tiling_or_adds_a_word(
    text: str, method: str, kind: Callable[[str, str], Any]
) -> None:
    """One document with that answer alone, and one where it spoils one window among good ones."""
    wrong = kind(text, method)
    try:
        result, _ = cut(text, method, wrong)
    except AnswerRejected:
        result = None
    if result is not None:
        assert LOST[text] not in "".join(text[a:b] for a, b in result.spans)
    refuses = kind in (_empty, _blank, _garbage, _cut_off, _wrong_type, _heads_that_do_not_occur)
    if refuses and not (kind is _cut_off and method == "direct-llm"):
        assert (
            result is None
        )  # an error with its reason; a partition of nobody's is never passed off as the method's

    long = text * (3 if method == "lumberchunker" else 10)
    spoiled: list[str] = []

    def script(request: Request) -> Any:
        seen = request.messages[1]["content"]
        if not spoiled:
            spoiled.append(seen)
        if seen == spoiled[0]:
            return wrong(request) if callable(wrong) else wrong
        if method == "lumberchunker":
            return right(text)[method](request)
        window = document_of(request)
        return {"chunks": [window if method == "direct-llm" else f"{window[:12]}[MASK]{window[-12:]}"]}

    windows = {"lumber_window": 40, "meta_window": 200, "direct_window": 200}
    result, calls = cut(long, method, script, **windows)
    assert len(calls) > 2
    assert len(result.record["generator"]["refused"]) <= 1
    assert LOST[text] not in json.dumps([long[a:b] for a, b in result.spans], ensure_ascii=False)


@pytest.mark.parametrize("method", ["meta-chunker", "direct-llm"])
@pytest.mark.parametrize("text", [ZH, EN], ids=["zh", "en"])
def test_an_invented_chunk_is_told_and_the_others_stand(method: str, text: str) -> None:
    result, _ = cut(text, method, _invented(text, method))
    assert [text[a:b] for a, b in result.spans] == pieces(text)
    generator = result.record["generator"]
    lost = generator["heads_not_found" if method == "meta-chunker" else "copies_not_found"]
    assert lost == [f"{LOST[text]} 99 %"]


@pytest.mark.parametrize("text", [ZH, EN], ids=["zh", "en"])
def test_an_answer_is_mended_when_it_is_asked_again(text: str) -> None:
    for method in METHODS:

        def script(request: Request, method: str = method) -> Any:
            if len(request.messages) <= 3 and "ID 0:" in request.text + "ID 0:" * (method != "lumberchunker"):
                return _heads_that_do_not_occur(text, method)
            answer = right(text)[method]
            return answer(request) if callable(answer) else answer

        result, calls = cut(text, method, script)
        assert [text[a:b] for a, b in result.spans] == pieces(text)
        assert len(calls) > 1
        again = "\n".join(call.messages[-1]["content"] for call in calls)
        assert "ID 900" in again or LOST[text] in again  # the reason was sent back


# --- any text, any answer --------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def anything() -> Iterator[tuple[dict[str, Any], Models]]:
    """Models that cut any text at ``cuts``, name places that are not there, and repeat some."""
    state: dict[str, Any] = {"cuts": []}

    def script(request: Request) -> Any:
        name = request.body["response_format"]["json_schema"]["name"]
        if name == "find_shift":
            numbers = [number for number, _ in shown(request)][1:]
            return {"id": numbers[sum(state["cuts"]) % len(numbers)] if numbers else None}
        window = document_of(request)
        places = sorted({at % len(window) for at in (0, *state["cuts"])})
        parts = [window[a:b] for a, b in zip(places, [*places[1:], len(window)], strict=True)]
        wanted = [part if name == "direct_chunk" else f"{part[:9]}[MASK]{part[-9:]}" for part in parts]
        return {"chunks": [*wanted, "nowhere to be found 7"][: max(2, len(parts))]}

    with ModelServer(script) as server:
        models = models_of(server)
        yield state, models
        models.close()


@pytest.mark.parametrize("method", METHODS)
@settings(max_examples=25, deadline=None)
@given(text=ANY_TEXT.filter(lambda text: bool(text.strip())), cuts=st.lists(st.integers(0, 200), max_size=6))
def test_any_text_is_tiled(
    anything: tuple[dict[str, Any], Models], method: str, text: str, cuts: list[int]
) -> None:
    state, models = anything
    state["cuts"] = cuts
    with suppress(AnswerRejected):  # a model that finds nothing of its own answer in the text
        cut_by(models, text, method, size=25, lumber_window=20, meta_window=200, direct_window=100)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("text", [text for text in TEXTS if text.strip()])
def test_odd_texts_are_tiled_within_the_size(
    anything: tuple[dict[str, Any], Models], method: str, text: str
) -> None:
    state, models = anything
    state["cuts"] = [60, 120]
    result = cut_by(models, text, method, size=60, lumber_window=100, meta_window=200, direct_window=200)
    count = models.count_tokens
    for start, end in result.spans:
        alone = len(segment(text[start:end], "sentence", size=1, models=models).spans) == 1
        assert alone or count(text[start:end]) <= 60


# --- offline, the stage, the command --------------------------------------------------------------------------------


def test_without_a_model_the_methods_are_absent_and_say_so() -> None:
    assert set(METHODS) < set(ASKING)
    for method, skill in PROMPTED.items():
        with pytest.raises(
            OfflineUnavailable, match=rf"{method} needs a model.*\[models\.skills\.{skill.name}\]"
        ):
            segment(ZH, method, models=HashedModels())
        assert segment("", method).nodes == ()
        with pytest.raises(SettingsError, match=rf"chunks\.methods names {method}"):
            chunks_stage(ChunkSettings(methods=["sentence", method]), Models.offline())
        assert method not in ChunkSettings().methods
    models = Models(ModelSettings(base_url="http://127.0.0.1:9/v1", model="m", limits=Limits(concurrency=3)))
    steps = chunks_stage(ChunkSettings(methods=list(PROMPTED)), models).steps
    assert [(step.name, step.concurrency) for step in steps] == [(f"chunks.{name}", 3) for name in PROMPTED]


@pytest.mark.parametrize("method", METHODS)
def test_the_chunk_command_runs_them(method: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "sheet.txt"
    file.write_text(ZH, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    arguments = ["chunk", str(file), "--method", method]
    assert isinstance(CliRunner().invoke(app, arguments).exception, OfflineUnavailable)
    with ModelServer(right(ZH)[method]) as server:
        monkeypatch.setenv("HCHEM_MODELS__BASE_URL", server.base_url)
        monkeypatch.setenv("HCHEM_MODELS__MODEL", "baseline")
        done = CliRunner().invoke(app, arguments)
    assert done.exit_code == 0, done.output
    assert [json.loads(line)["text"] for line in done.output.splitlines()] == pieces(ZH)
