from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chunking.partition import spans_from_cuts
from chunking.qchunker.completer import CompleteChunk, CompleteIn, Support
from chunking.qchunker.guards import guard
from chunking.qchunker.heads import heads_of, locate_heads
from chunking.qchunker.outline import OutlineIn, OutlineQuestion, QuestionOutline, anchors
from chunking.qchunker.reviewer import MissingItem, Review, ReviewChunk, ReviewIn, locate_items
from chunking.segment import Segmenter
from chunking.sentences import split_sentences
from chunking.settings import ChunkSettings
from models import Models, ModelSettings
from models.settings import SkillModel
from tests.chunking.test_partition import HashedModels
from tests.servers.model_server import ModelServer, Request

# --- heads -----------------------------------------------------------------------------------------------------


@settings(max_examples=80, deadline=None)
@given(st.text(alphabet="甲乙a. \n", min_size=1, max_size=60), st.sets(st.integers(1, 59), max_size=8))
def test_heads_lead_back_to_their_spans(text: str, cuts: set[int]) -> None:
    text += "完"  # with an end of its own no text repeats itself to its end
    spans = [span for span in spans_from_cuts(cuts, len(text)) if text[slice(*span)].strip()]
    heads = heads_of(text, spans)
    expected = [start for (start, _), head in zip(spans, heads, strict=True) if head.strip()]
    assert list(locate_heads(text, heads).starts) == expected


def test_heads_of_a_text_that_repeats_itself() -> None:
    assert heads_of("aaaa", [(0, 1), (1, 2), (2, 4)]) == ["a", "a", "aa"]


def test_repeated_heads_are_found_one_after_the_other() -> None:
    text = "注意事项：一。注意事项：二。注意事项：三。"
    assert locate_heads(text, ["注意事项"] * 3).starts == (0, 7, 14)
    located = locate_heads(text, ["注意事项"] * 4)
    assert located.starts == (0, 7, 14)
    assert located.unresolved == ("注意事项",)


def test_heads_that_do_not_occur_or_stand_before_the_cursor_are_unresolved() -> None:
    text = "Alpha one. Beta two. Gamma three."
    located = locate_heads(text, ["Beta two", "Delta nine is nowhere", "Alpha one", "", "Gamma"])
    assert located.starts == (11, 21)
    assert located.unresolved == ("Delta nine is nowhere", "Alpha one", "")


def test_nearly_right_heads_are_found_at_sentence_starts() -> None:
    text = "Methanol is a toxic liquid. Store it in a cool and dry place. Use foam on fires."
    starts = [start for start, _ in split_sentences(text)]
    located = locate_heads(text, ["Store it in a cool, dry place"], starts)
    assert located.starts == (28,)
    assert located.fuzzy == 1


# --- outline ---------------------------------------------------------------------------------------------------

LAW = "# 危险化学品条例\n\n## 第一章 总则\n\n第一条 为了安全，制定本条例。\n\n本条例所称危险化学品，是指具有毒害性质的化学品。\n\n## 第二章 储存\n\n第四条 单独存放。\n"


def test_outline_asks_about_headings_and_definitions_in_order() -> None:
    outline = QuestionOutline().offline(OutlineIn(LAW, "zh", 3))
    assert [q.about for q in outline.questions] == ["危险化学品条例", "总则", "危险化学品", "储存"]
    assert outline.questions[2].kind == "definition"
    assert QuestionOutline().check(OutlineIn(LAW, "zh", 3), outline).kind == "accept"


def test_outline_of_english_text_without_headings() -> None:
    text = (
        "Methanol is a simple alcohol that burns. " + "It mixes with water and burns with a pale flame. " * 30
    )
    outline = QuestionOutline().offline(OutlineIn(text, "en", 4))
    assert outline.questions[0].question == "What is Methanol?"
    assert all(q.about in text for q in outline.questions)


def test_anchors_move_forward_and_lost_questions_are_told() -> None:
    sentences = split_sentences(LAW)
    asked = [OutlineQuestion(question="?", about=about) for about in ("总则", "硝酸甘油", "储存", "总则")]
    places = anchors(LAW, sentences, asked)
    assert [None if p is None else LAW[slice(*sentences[p])].strip() for p in places] == [
        "## 第一章 总则",
        None,
        "## 第二章 储存",
        None,
    ]


# --- guards ----------------------------------------------------------------------------------------------------

CHUNK_ZH = "LD50为5628 mg/kg，不易燃，CAS号67-56-1。本品须密闭储存于阴凉通风处，远离火种和热源。"
CHUNK_EN = (
    "The LD50 is 5628 mg/kg and it is not flammable. Keep the container tightly closed in a cool place."
)


@pytest.mark.parametrize(
    "chunk,completed,supports",
    [
        (CHUNK_ZH, "甲醇：" + CHUNK_ZH, ["甲醇"]),
        (CHUNK_ZH, CHUNK_ZH + "（LD50即半数致死量）", ["LD50（半数致死量）"]),
        (CHUNK_EN, "Methanol. " + CHUNK_EN, ["Methanol"]),
        (CHUNK_EN, CHUNK_EN + " (LD50 is the median lethal dose)", ["LD50 (median lethal dose)"]),
        (CHUNK_ZH, CHUNK_ZH.replace("本品", "甲醇"), ["甲醇"]),
        (CHUNK_EN, CHUNK_EN.replace("it is not", "methanol is not"), ["Methanol"]),
        (CHUNK_EN, CHUNK_EN, []),
    ],
)
def test_guard_lets_stated_insertions_pass(chunk: str, completed: str, supports: list[str]) -> None:
    assert guard(chunk, completed, supports) == []


@pytest.mark.parametrize(
    "chunk,completed,supports",
    [
        (CHUNK_ZH, "", []),
        (CHUNK_ZH, CHUNK_ZH + "甲醇" * 40, ["甲醇"]),
        (CHUNK_ZH, CHUNK_ZH.replace("5628", "5268"), []),
        (CHUNK_ZH, CHUNK_ZH.replace("mg/kg", "g/kg"), []),
        (CHUNK_ZH, CHUNK_ZH.replace("67-56-1", "64-17-5"), []),
        (CHUNK_ZH, CHUNK_ZH.replace("不易燃", "易燃"), []),
        (CHUNK_ZH, CHUNK_ZH.replace("远离", "不远离"), ["不"]),
        (CHUNK_ZH, CHUNK_ZH + "闪点11℃。", ["甲醇"]),
        (CHUNK_ZH, "二甲苯：" + CHUNK_ZH, ["甲苯", "第二节"]),
        (CHUNK_ZH, "苯：" + CHUNK_ZH, ["甲醇"]),
        (CHUNK_ZH, CHUNK_ZH[:-6], []),
        (CHUNK_EN, CHUNK_EN.replace("is not", "is"), []),
        (CHUNK_EN, CHUNK_EN.replace("5628", "562.8"), []),
        (CHUNK_EN, "Benzene. " + CHUNK_EN, ["Methanol"]),
        (CHUNK_EN, CHUNK_EN.replace("Keep", "Do not keep"), ["Do not"]),
        (CHUNK_EN, CHUNK_EN + " It causes cancer.", ["Methanol"]),
        (CHUNK_EN, CHUNK_EN + " UN 1230.", ["Methanol"]),
    ],
)
def test_guard_stops_lost_and_added_facts(chunk: str, completed: str, supports: list[str]) -> None:
    assert guard(chunk, completed, supports)


# --- reviewer and completer ------------------------------------------------------------------------------------

SHEET = (
    "# 甲醇安全技术说明书\n\n## 第一部分 化学品标识\n中文名：甲醇。本说明书所用的LD50（半数致死量）为经口数据。\n\n"
    "## 第四部分 急救措施\n吸入：迅速脱离现场，就医。\n\n## 第十一部分 毒理学信息\n"
    "LD50：5628 mg/kg（大鼠经口）。急性中毒的处理见第四部分，不得催吐，注意保暖并保持呼吸道通畅。\n"
)


def _review(document: str, chunk: str, language: str) -> tuple[ReviewIn, Review]:
    start = document.index(chunk)
    given = ReviewIn(document, start, start + len(chunk), language)
    return given, ReviewChunk().offline(given)


def test_offline_review_finds_heading_abbreviation_and_reference() -> None:
    chunk = SHEET[SHEET.index("LD50：5628") :]
    given, review = _review(SHEET, chunk, "zh")
    assert review.incomplete
    assert {(item.kind, item.quote) for item in review.items} == {
        ("subject", "甲醇安全技术说明书"),
        ("subject", "第十一部分 毒理学信息"),
        ("abbreviation", "LD50（半数致死量）"),
        ("reference", "第四部分 急救措施"),
    }
    items, discarded = locate_items(given, review)
    assert len(items) == 4
    assert discarded == []
    assert all(item.end <= given.start or item.start >= given.end for item in items)


def test_offline_review_of_english_text() -> None:
    text = (
        "# Methanol\n\n## Limits\nThe permissible exposure limit (PEL) is 200 ppm.\n\n## Work\n"
        "Above the PEL a respirator must be worn at all times, see section 4.\n\n## Section 4 First aid\nMove to fresh air.\n"
    )
    chunk = "Above the PEL a respirator must be worn at all times, see section 4.\n\n"
    _, review = _review(text, chunk, "en")
    found = {(item.kind, item.quote) for item in review.items}
    assert ("abbreviation", "permissible exposure limit (PEL)") in found or any(
        kind == "abbreviation" and "exposure limit (PEL)" in quote for kind, quote in found
    )
    assert ("reference", "Section 4 First aid") in found
    assert ("subject", "Methanol") in found


def test_a_table_cut_in_the_middle_gets_its_header() -> None:
    text = "# 限值\n\n| 物质 | 限值 |\n|---|---|\n| 甲醇 | 25 |\n| 乙醇 | 100 |\n| 苯 | 6 |\n"
    chunk = "| 乙醇 | 100 |\n| 苯 | 6 |\n"
    given, review = _review(text, chunk, "zh")
    assert ("table_header", "| 物质 | 限值 |") in {(i.kind, i.quote) for i in review.items}
    supports = tuple(Support(i.kind, i.need, i.quote) for i in review.items if i.kind == "table_header")
    completion = CompleteChunk().offline(CompleteIn(given.chunk, supports, "zh"))
    assert completion.text == "| 物质 | 限值 |\n" + chunk


def test_items_not_stated_outside_the_chunk_are_discarded() -> None:
    chunk = SHEET[SHEET.index("LD50：5628") :]
    given, _ = _review(SHEET, chunk, "zh")
    review = Review(
        items=[
            MissingItem(kind="term", need="?", quote="甲醇对胎儿有害。"),
            MissingItem(kind="term", need="?", quote="不得催吐"),
            MissingItem(kind="premise", need="?", quote=" 中文名：甲醇。 "),
            MissingItem(kind="term", need="?", quote=""),
        ],
        incomplete=True,
    )
    items, discarded = locate_items(given, review)
    assert [SHEET[item.start : item.end] for item in items] == ["中文名：甲醇。"]
    assert [entry["reason"] for entry in discarded] == [
        "not stated in the document",
        "stated in the chunk itself",
        "not stated in the document",
    ]


def test_offline_completion_inserts_stated_words_within_the_length() -> None:
    chunk = SHEET[SHEET.index("LD50：5628") :]
    supports = (
        Support("subject", "heading", "甲醇安全技术说明书"),
        Support("abbreviation", "LD50", "LD50（半数致死量）"),
        Support("premise", "long", "长" * 200),
    )
    given = CompleteIn(chunk, supports, "zh")
    completion = CompleteChunk().offline(given)
    assert completion.text.startswith("甲醇安全技术说明书\nLD50：5628 mg/kg")
    assert completion.text.endswith("（LD50（半数致死量））\n")
    assert [item.accepted for item in completion.items] == [True, True, False]
    assert CompleteChunk().check(given, completion).kind == "accept"


# --- the debate ------------------------------------------------------------------------------------------------


def _run(models: Models, text: str = SHEET, **options: Any) -> Any:
    language = "zh" if "甲" in text else "en"
    return Segmenter(models, ChunkSettings(size=60, selection_samples=8, **options)).run(
        text, "qchunker", language
    )


@pytest.fixture(scope="module")
def offline() -> Models:
    return Models.offline()


def test_offline_debate(offline: Models) -> None:
    result = _run(offline)
    assert "".join(SHEET[n.start : n.end] for n in result.leaves) == SHEET
    record = result.record
    assert record["outline"]["source"] == "offline"
    assert len(record["segmenter"]["candidates"]) > 2
    best = record["segmenter"]["candidates"][record["segmenter"]["selected"]]
    assert best["z"] == max(c["z"] for c in record["segmenter"]["candidates"] if c["z"] is not None)
    assert record["reviewer"]["counts"]["completed"] == len(result.completed) > 0
    assert set(result.questions) == set(range(len(result.nodes)))
    json.dumps(record, allow_nan=False)
    for index, text in result.completed.items():
        node = result.nodes[index]
        chunk = SHEET[node.start : node.end]
        assert chunk.strip() in text
        assert len(text) <= 1.6 * len(chunk)


def test_without_completion_nothing_is_reviewed(offline: Models) -> None:
    result = _run(offline, completion=False)
    assert result.completed == {}
    assert "reviewer" not in result.record


EN_SHEET = (
    "# Methanol safety data sheet\n\n## Section 1 Identification\nThe product is methanol. The median lethal dose (MLD) is oral.\n\n"
    "## Section 4 First aid\nInhalation: move to fresh air and call a doctor at once.\n\n## Section 11 Toxicology\n"
    "MLD: 5628 mg/kg in rats. It must not be swallowed, and vomiting must never be induced in such cases.\n"
)


class Agents:
    """Scripted answers by agent; an answer may be a function of the request."""

    def __init__(self, **answers: Any) -> None:
        self.answers = answers

    def __call__(self, request: Request) -> Any:
        system = request.messages[0]["content"]
        for agent, marks in {
            "outline": ("问题提纲：动机", "question outline of an expert"),
            "segment": ("文本分块专家", "You split text into chunks"),
            "review": ("文本完整性审查员", "You review the integrity"),
            "complete": ("知识补全者", "You complete text chunks"),
        }.items():
            if any(mark in system for mark in marks):
                answer = self.answers.get(agent, DEFAULTS[agent])
                return answer(request) if callable(answer) else answer
        raise AssertionError(system)


DEFAULTS: dict[str, Any] = {
    "outline": {"questions": [{"question": "?", "about": "甲醇"}, {"question": "?", "about": "Methanol"}]},
    "segment": {"heads": ["# 甲醇安全技术说明书", "## 第四部分", "## 第十一部分"]},
    "review": {"items": [], "incomplete": False},
    "complete": {"items": [], "text": "x"},
}


def _debate(text: str, draws: int = 1, **answers: Any) -> Any:
    with ModelServer(Agents(**answers)) as server:
        chosen = ModelSettings(
            base_url=server.base_url, model="scripted", skills={"segment_text": SkillModel(draws=draws)}
        )
        models = HashedModels(chosen)
        result = _run(models, text)
        models.close()
    assert "".join(text[n.start : n.end] for n in result.leaves) == text
    return result


def test_every_draw_competes_with_the_offline_candidates() -> None:
    numbers = iter(range(100))
    heads = [
        ["# 甲醇", "## 第四部分", "## 第十一部分"],
        ["# 甲醇", "## 第十一部分"],
        ["# 甲醇", "中文名", "吸入"],
    ]
    result = _debate(SHEET, draws=3, segment=lambda request: {"heads": heads[next(numbers) % 3]})
    origins = [candidate["origin"] for candidate in result.record["segmenter"]["candidates"]]
    assert origins[:3] == ["scripted, draw 0", "scripted, draw 1", "scripted, draw 2"]
    assert any(origin.startswith("offline") for origin in origins)
    assert [c["k"] for c in result.record["segmenter"]["candidates"][:3]] == [3, 2, 3]


@pytest.mark.parametrize("text", [SHEET, EN_SHEET])
@pytest.mark.parametrize(
    "heads",
    [
        [],
        [""],
        ["nowhere at all to be found", "auch nicht hier"],
        ["## 第十一部分", "## 第四部分", "Section 11", "Section 4"],
        ["#"] * 50,
        ["甲醇" * 4000],
    ],
)
def test_wrong_heads_never_break_tiling(text: str, heads: list[str]) -> None:
    result = _debate(text, segment={"heads": heads})
    assert len(result.leaves) >= 1


@pytest.mark.parametrize(
    "outline", [{"questions": []}, {"questions": [{"question": "?", "about": "nowhere"}]}, "no json"]
)
def test_a_refused_outline_is_empty_and_told(outline: Any) -> None:
    result = _debate(SHEET, outline=outline)
    assert result.record["outline"]["questions"] == []
    assert result.record["outline"]["refused"]


def _one_item(request: Request) -> Any:
    quote = "中文名：甲醇" if "甲醇" in request.text else "The product is methanol."
    return {"items": [{"kind": "subject", "need": "subject", "quote": quote}], "incomplete": True}


@pytest.mark.parametrize(
    "text,heads",
    [(SHEET, ["# 甲", "## 第四", "## 第十一"]), (EN_SHEET, ["# Meth", "## Section 4", "## Section 11"])],
)
@pytest.mark.parametrize(
    "wrong",
    [
        lambda chunk: "",
        lambda chunk: chunk * 10,
        lambda chunk: chunk + "LD50 9999 mg/kg",
        lambda chunk: chunk.replace("5628", "6528") if "5628" in chunk else chunk + "苯 benzene",
        lambda chunk: chunk.replace("不得", "").replace("not ", "").replace("never ", "") + "7",
    ],
)
def test_wrong_completions_never_replace_a_chunk(text: str, heads: list[str], wrong: Any) -> None:
    def complete(request: Request) -> Any:
        chunk = request.messages[1]["content"].split("<chunk>\n")[1].split("\n</chunk>")[0]
        return {
            "items": [{"index": 0, "needed": True, "stated": True, "new_topic": False}],
            "text": wrong(chunk),
        }

    result = _debate(text, segment={"heads": heads}, review=_one_item, complete=complete)
    assert result.completed == {}
    counts = result.record["reviewer"]["counts"]
    assert counts["kept"] == counts["incomplete"] > 0


def test_a_right_completion_is_kept_beside_the_chunk() -> None:
    def complete(request: Request) -> Any:
        chunk = request.messages[1]["content"].split("<chunk>\n")[1].split("\n</chunk>")[0]
        return {"items": [{"index": 0}], "text": "甲醇。" + chunk}

    result = _debate(
        SHEET, segment={"heads": ["# 甲", "## 第四", "## 第十一"]}, review=_one_item, complete=complete
    )
    assert result.completed
    for index, text in result.completed.items():
        node = result.nodes[index]
        assert text == "甲醇。" + SHEET[node.start : node.end]


def test_reviewer_items_that_the_document_does_not_state_add_nothing() -> None:
    invented = {"items": [{"kind": "term", "need": "?", "quote": "甲醇可致癌。"}], "incomplete": True}
    result = _debate(SHEET, review=invented)
    assert result.completed == {}
    assert result.record["reviewer"]["chunks"][0]["discarded"][0]["reason"] == "not stated in the document"


def test_the_document_is_the_shared_prefix_of_all_reviews() -> None:
    seen: list[list[dict[str, str]]] = []

    def review(request: Request) -> Any:
        seen.append(request.messages)
        return DEFAULTS["review"]

    _debate(SHEET, review=review)
    assert len({json.dumps(messages[:2]) for messages in seen}) == 1
    assert SHEET in seen[0][1]["content"]


def test_windows_of_a_long_document_re_read_the_last_chunk() -> None:
    text = "".join(
        f"## 第{i}节 标题\n" + "这是一段说明文字，讲述储存与运输要求。" * 8 + "\n" for i in range(1, 9)
    )

    def segment(request: Request) -> Any:
        document = request.messages[1]["content"]
        return {"heads": [line for line in document.split("\n") if line.startswith("## ")]}

    with ModelServer(
        Agents(segment=segment, outline={"questions": [{"question": "?", "about": "标题"}]})
    ) as server:
        models = HashedModels(ModelSettings(base_url=server.base_url, model="scripted"))
        chosen = ChunkSettings(size=200, selection_samples=8, qchunker_window=500)
        result = Segmenter(models, chosen).run(text, "qchunker", "zh")
        models.close()
    drawn = result.record["segmenter"]["candidates"][0]
    assert drawn["origin"] == "scripted, draw 0"
    assert drawn["k"] == 8
