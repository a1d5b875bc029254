"""Questions over sections by HiCBench's procedure, offline and with a scripted model. Texts are made up."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest

from chunking.evaluation import extracts
from chunking.evaluation.hicbench import (
    LENGTHS,
    SourceDocument,
    chosen_chunks,
    section_questions,
    section_spans,
)
from chunking.evaluation.statistics import Bootstrap, Estimate
from models import Models, ModelSettings
from models.tokens import count_words
from tests.servers.model_server import ModelServer, Request

PARTS = {
    "zh": ("储罐", "阀门", "车间", "仓库", "通风管道", "灭火装置", "报警仪器", "操作人员", "检修人员", "运输车辆"),
    "en": ("tank", "valve", "workshop", "warehouse", "ventilation", "extinguisher", "alarm", "operator", "inspector", "truck"),
}  # fmt: skip
TOPICS = {
    "zh": ("腐蚀检查", "静电接地", "泄漏报警", "温度记录"),
    "en": ("corrosion", "earthing", "leakage", "temperature"),
}


def sentence(language: str, topic: str, part: str, number: int) -> str:
    if language == "zh":
        return (
            f"负责{topic}的班组每隔{number}天对{part}进行一次全面巡视，并把{topic}结果写入第{number}号台账。"
        )
    return (
        f"The crew in charge of {topic} inspects each {part} every {number} days and writes the "
        f"{topic} result into ledger {number}. "
    )


def made_up(language: str, name: str = "d1", headings: tuple[str, ...] | None = None) -> SourceDocument:
    """A page of four long sections under one title."""
    title = "示例工厂管理规定" if language == "zh" else "Rules of the Example Plant"
    lines = [f"# {title}\n"]
    for at, topic in enumerate(TOPICS[language]):
        heading = (headings or TOPICS[language])[at]
        lines.append(f"## {heading}\n")
        lines += [
            sentence(language, topic, part, 100 + 40 * at + 10 * n + place) + "\n"
            for n in range(4)
            for place, part in enumerate(PARTS[language])
        ]
    return SourceDocument(name, title, language, "\n".join(lines))


def elsewhere(language: str) -> SourceDocument:
    """A page without sections that has the common words, so that those of a section's own tell it apart."""
    title = "其他" if language == "zh" else "Elsewhere"
    topic, part = ("消毒", "走廊") if language == "zh" else ("hygiene", "corridor")
    return SourceDocument("d0", title, language, sentence(language, topic, part, 7))


@pytest.fixture(scope="module")
def offline() -> Models:
    return Models.offline()


@pytest.mark.parametrize("language", ["zh", "en"])
def test_all_kinds_are_asked_with_evidence_in_the_section(offline: Models, language: str) -> None:
    document = made_up(language)
    made = section_questions([document, elsewhere(language)], offline)
    assert {question.kind for question in made.questions} == {"T0", "T1", "T2"}
    assert made.source.startswith("offline")
    assert made.draws == 1
    for question in made.questions:
        assert document.title in question.question
        assert "\n" not in question.question
        quotes = [document.text[start:end] for _, start, end in question.evidence]
        assert tuple(quotes) == question.quotes
        assert all(not quote.startswith("#") for quote in quotes)
        assert len(quotes) <= 2 if question.kind == "T0" else len(quotes) >= 3


@pytest.mark.parametrize("language", ["zh", "en"])
def test_headings_choose_the_section_and_nothing_in_it(offline: Models, language: str) -> None:
    """Other heading words of the same length: same questions, same evidence."""
    plain = made_up(language)
    other = made_up(language, headings=tuple("甲乙丙丁" if language == "zh" else "ABCD"))
    one, two = (
        sorted(
            (q.kind, q.question, q.quotes)
            for q in section_questions([d, elsewhere(language)], offline, per_document=99).questions
        )
        for d in (plain, other)
    )
    assert one
    assert one == two


def test_sections_are_of_the_lengths_and_pairs_do_not_overlap() -> None:
    document = made_up("zh")
    for kind, (low, high) in LENGTHS.items():
        chunks = chosen_chunks(document, kind, 99, 0)
        assert chunks
        assert len(set(chunks)) == len(chunks)
        for chunk in chunks:
            assert all(low <= count_words(document.text[start:end]) <= high for start, end in chunk)
            assert len(chunk) == (2 if kind == "T2" else 1)
            if kind == "T2":
                assert chunk[0][1] <= chunk[1][0]
    assert len(chosen_chunks(document, "T2", 3, 0)) == 3
    assert chosen_chunks(document, "T1", 2, 0) != chosen_chunks(document, "T1", 2, 1)


def test_the_document_itself_is_no_section_and_a_section_has_what_is_below_it() -> None:
    text = "# t\n\na\n\n## x\n\nb\n\n### y\n\nc\n\n## z\n\nd\n"
    assert [text[a:b].split("\n")[0] for a, b in section_spans(text)] == ["## x", "### y", "## z"]
    first = section_spans(text)[0]
    assert "### y" in text[first[0] : first[1]]
    assert section_spans("no heading") == []


def test_what_another_document_says_word_for_word_is_dropped(offline: Models) -> None:
    made = section_questions([made_up("zh"), made_up("zh", "d2"), elsewhere("zh")], offline)
    assert made.questions == ()
    assert made.dropped["T1: evidence stands in another document"] == 8


def test_too_little_text_gives_a_reason(offline: Models) -> None:
    text = "# 表\n\n## 甲\n\n" + "| 1 | 2 |\n" * 400 + "\n## 乙\n\n" + "| 3 | 4 |\n" * 400
    made = section_questions([SourceDocument("d", "表", "zh", text)], offline)
    assert made.questions == ()
    assert made.dropped["T1: too few sentences"] == 2


def test_lexrank_by_hand() -> None:
    """Two sentences that share their words back each other; one that shares none has the least weight."""
    ranks = extracts.centrality([["a", "b"], ["a", "b"], ["c", "d"]])
    assert ranks[0] == pytest.approx(ranks[1])
    assert ranks[0] > ranks[2]
    assert ranks.sum() == pytest.approx(1.0)
    assert extracts.centrality([]).size == 0


def test_key_terms_are_shared_and_rare_elsewhere() -> None:
    pieces = ["alpha beta gamma", "alpha beta delta", "alpha zeta"]
    assert extracts.key_terms(pieces, {"alpha": 1000}, 10, 2)[0] == "beta"
    assert extracts.key_terms(pieces, {}, 10, 1) == ["alpha"]


MARKS = {
    "list_facts": "拆成可以逐条核对",
    "judge_facts": "判断一个答案",
    "answer_question": "根据给出的",
    "write_question": "用来检验检索",
    "extract_evidence": "寻找依据",
    "summarise_section": "概括化学品",
}
QUESTION = "示例工厂的班组巡视仓库后做什么？"
FOUND = sentence("zh", "腐蚀检查", "仓库", 100 + 3)


@pytest.mark.parametrize("answered", [True, False])
def test_a_model_writes_evidence_is_voted_on_and_answers_from_the_chunk_decide(answered: bool) -> None:
    """A page of one section. The model names one sentence in every draw and others in one draw each."""
    page = made_up("zh")
    text = page.text[: page.text.index("## " + TOPICS["zh"][1])] + "## 其他\n\n无。\n"
    document = SourceDocument("d1", page.title, "zh", text)
    answer = FOUND.rstrip("。")
    seen = Counter[str]()

    def script(request: Request) -> Any:
        system = request.messages[0]["content"]
        wanted = {
            "write_question": {"question": QUESTION, "answer": FOUND},
            "list_facts": {"facts": [answer]},
            "judge_facts": {"labels": [{"fact": 1, "covered": answered}]},
            "answer_question": {
                "found": True,
                "answer": FOUND,
                "quotes": [{"passage": 1, "quote": FOUND}],
            },
            "summarise_section": {"summary": "班组巡视储罐。"},
        }
        skill = next(name for name, mark in MARKS.items() if mark in system)
        seen[skill] += 1
        if skill != "extract_evidence":
            return wanted[skill]
        other = sentence("zh", "腐蚀检查", PARTS["zh"][seen[skill] % 3], 100 + seen[skill] % 3)
        return {"sentences": [FOUND, other]}

    with ModelServer(script) as server:
        models = Models(ModelSettings(base_url=server.base_url, model="scripted"))
        try:
            made = section_questions([document], models, per_document=1)
        finally:
            models.close()
    assert made.draws == 5
    assert made.source.startswith("scripted")
    assert seen["extract_evidence"] >= 5
    kinds_left = {question.kind: question.quotes for question in made.questions}
    assert kinds_left == ({"T0": (FOUND,)} if answered else {})
    assert made.dropped["T1: evidence below a tenth of a chunk"] == 1
    assert made.dropped.get("T0: not answered from its chunks", 0) == (0 if answered else 1)


# --- intervals over documents --------------------------------------------------------------------------------------


def test_groups_of_one_are_the_plain_bootstrap() -> None:
    values = list(np.random.default_rng(1).random(40))
    bootstrap = Bootstrap(500, 0.95, 0)
    names = [f"{i:03}" for i in range(40)]
    assert bootstrap.mean(values, names) == bootstrap.mean(values)


def width(estimate: Estimate) -> float:
    return (estimate.high or 0.0) - (estimate.low or 0.0)


def test_questions_on_one_document_widen_the_interval() -> None:
    """Ten documents with ten equal values each hold ten observations, not a hundred."""
    base = list(np.random.default_rng(2).random(10))
    values = [value for value in base for _ in range(10)]
    names = [str(document) for document in range(10) for _ in range(10)]
    bootstrap = Bootstrap(2000, 0.95, 0)
    plain, grouped = bootstrap.mean(values), bootstrap.mean(values, names)
    assert grouped.value == plain.value
    assert width(grouped) > 2 * width(plain)


def test_a_difference_with_groups_leaves_out_what_is_undefined() -> None:
    found = Bootstrap(100, 0.95, 0).difference([1.0, None, 0.5], [0.0, 1.0, 0.5], ["a", "a", "b"])
    assert (found.value, found.n) == (0.5, 2)
    assert Bootstrap(100, 0.95, 0).mean([None], ["a"]).value is None
