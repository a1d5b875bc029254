"""The skills of the HiCBench procedure: offline, and over real HTTP with scripted answers. Texts are made up."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import chunking.data
from chunking.evaluation.fact_coverage import (
    FactLabel,
    FactList,
    FactsIn,
    Judged,
    JudgeFacts,
    JudgeIn,
    Judgement,
    ListFacts,
    covered,
    fact_coverage,
    judge_answers,
)
from chunking.evaluation.section_questions import (
    Evidence,
    EvidenceIn,
    ExtractEvidence,
    QuestionIn,
    SectionIn,
    SummariseSection,
    WriteQuestion,
    evidence_spans,
    evidence_vote,
    votes_needed,
)
from chunking.grounding import (
    absent_numbers,
    clauses,
    figures,
    names,
    polarity_changed,
    statements,
    states,
    unstated,
)
from models import Models, ModelSettings
from models.errors import AnswerRejected, OfflineUnavailable
from models.settings import Limits, SkillModel
from models.skills import Answer, Skill
from tests.servers.model_server import ModelServer, Request

BACKGROUND = Path(chunking.data.__file__).parent / "background.txt"
ZH = (
    "第九部分 理化特性\n甲醇为无色液体，沸点64.7 ℃，闪点11 ℃（闭杯），爆炸极限6%~36%。CAS号67-56-1。\n"
    "甲醇不得与强氧化剂混存。遇明火易燃，燃烧时火焰不易看见。\n| 项目 | 值 |\n|---|---|\n| 密度 | 0.79 g/cm3 |\n"
)
EN = (
    "## Section 9 Physical properties\nMethanol is a colourless liquid. It boils at 64.7 °C and its flash point is 11 °C (closed cup).\n"
    "Its CAS number is 67-56-1. Do not store methanol together with strong oxidizers. It is flammable. Explosive limits: 6% to 36%.\n"
)
ANSWER = {
    ZH: "沸点为64.7 ℃，闪点为11 ℃。不得与强氧化剂混存；遇明火易燃。",
    EN: "It boils at 64.7 °C, its flash point is 11 °C. Do not store methanol together with strong oxidizers; it is flammable.",
}
QUESTION = {ZH: "甲醇有哪些理化特性？", EN: "What are the physical properties of methanol?"}
LANGUAGE = {ZH: "zh", EN: "en"}
TEXTS = [ZH, EN]
HEADING = {ZH: "理化特性", EN: "Physical properties"}


@pytest.fixture(scope="module")
def offline() -> Models:
    return Models.offline()


def ask(skill: Skill[Any, Any], given: Any, script: Any, draws: int = 1) -> tuple[list[Any], int]:
    """Answers of a skill by a scripted model, and the number of calls."""
    with ModelServer(script) as server:
        chosen = ModelSettings(base_url=server.base_url, model="scripted", limits=Limits(concurrency=4))
        models = Models(chosen)
        try:
            found = models.run_many(skill, [given], draws=range(draws))
        finally:
            models.close()
        return list(found), len(server.calls())


# --- grounding ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text,found",
    [
        ("沸点64.7 ℃，闪点：-11℃", {"64.7°C", "-11°C"}),
        ("boils at 64.7 °C; flash point −11 °C", {"64.7°C", "-11°C"}),
        ("６４．７℃", {"64.7°C"}),
        ("12–15 ℃", {"12", "15°C"}),
        ("6%~36%", {"6%", "36%"}),
        ("6% to 36%", {"6%", "36%"}),
        ("≤25 mg/m3", {"≤25mg/m3"}),
        ("CAS号67-56-1，UN 1230，H225", {"67-56-1", "UN1230", "H225"}),
        ("1. 通风\n2. 报警；（3）撤离；④隔离", set()),
        ("1. Ventilate.\n2. Call.", set()),
        ("LD50 5628 mg/kg", {"50", "5628mg/kg"}),
    ],
)
def test_figures(text: str, found: set[str]) -> None:
    assert figures(text) == found


@pytest.mark.parametrize(
    "text,found",
    [
        ("二甲苯对人体有害，甲醇一般无色", {"二甲苯", "甲醇"}),
        ("用苯、氨水或氯气", {"苯", "氨", "氯"}),
        ("对硝基苯胺与丙烯聚合", {"对硝基苯胺", "丙烯"}),
        ("酸性条件下氧化", set()),
        (
            "Use benzene, not toluene; chlorides were contaminated and oxidizing.",
            {"benzene", "toluene", "chloride"},
        ),
        ("OSHA sets the PEL", {"osha", "pel"}),
        ("甲醇（methanol）的CAS号", {"甲醇", "methanol"}),
        ("The line is fine and alone.", set()),
    ],
)
def test_names(text: str, found: set[str]) -> None:
    assert names(text) == found


@pytest.mark.parametrize("text", TEXTS)
def test_parts_of_a_text_are_stated_by_it(text: str) -> None:
    for part in [*statements(text), *clauses(text)]:
        assert unstated(part, [text]) == []
        assert polarity_changed(part, text) == []
        assert states(text, part) or not any(char.isalnum() for char in part)


TRAPS = [  # source, what was made of it
    ("沸点64.7 ℃", "沸点67.4 ℃"),
    ("闪点-11 ℃", "闪点11 ℃"),
    ("限值25 mg/m3", "限值25 g/m3"),
    ("限值≤25 ppm", "限值25 ppm"),
    ("二甲苯的蒸气", "甲苯的蒸气"),
    ("亚硫酸", "硫酸"),
    ("1,1-二氯乙烷", "1,2-二氯乙烷"),
    ("CAS 67-56-1", "CAS 64-17-5"),
    ("It boils at 64.7 °C", "It boils at 67.4 °C"),
    ("flash point -11 °C", "flash point 11 °C"),
    ("chlorobenzene vapour", "benzene vapour"),
    ("exposure to toluene", "exposure to xylene"),
]


@pytest.mark.parametrize("source,text", TRAPS)
def test_a_changed_figure_or_name_is_unstated(source: str, text: str) -> None:
    assert unstated(text, [source])
    assert unstated(source, [source]) == []
    assert not states(source, text)


@pytest.mark.parametrize(
    "source,text",
    [
        ("甲醇不易燃", "甲醇易燃"),
        ("甲醇易燃", "甲醇不易燃"),
        ("不易燃", "甲醇易燃"),
        ("不得用水灭火", "用水灭火"),
        ("严禁与氧化剂混存", "与氧化剂混存"),
        ("It is not flammable.", "It is flammable."),
        ("Not flammable.", "Methanol is flammable."),
        ("Do not use water.", "Use water."),
        ("不得与氧化剂混存", "可以与氧化剂混存"),
        ("应当密闭储存", "不得密闭储存"),
        ("It must not be heated.", "It may be heated."),
        ("It reacts with water.", "It doesn't react with water. It never reacts with water."),
    ],
)
def test_a_lost_or_added_negation_is_seen(source: str, text: str) -> None:
    assert polarity_changed(text, source)
    assert not states(source, text)


@pytest.mark.parametrize(
    "source,text",
    [
        ("非常易燃，无色", "易燃"),
        ("不燃，不爆", "甲醇不燃不爆"),
        ("易燃。不易燃的部分另存。", "易燃"),
        ("Inorganic, non-flammable", "Methanol is non-flammable"),
        ("anything", "something else"),
    ],
)
def test_other_wordings_are_no_changed_negation(source: str, text: str) -> None:
    assert polarity_changed(text, source) == []


def test_numbers_of_facts_may_be_said_in_other_units() -> None:
    assert absent_numbers("0.5 g was taken at 64.7 °C", "500 mg at 64.7 degrees") == []
    assert absent_numbers("沸点64.7 ℃，三级，3类", "沸点为64.7摄氏度") == []
    assert absent_numbers("沸点64.7 ℃", "沸点67.4 ℃") == ["64.7"]
    assert absent_numbers("1,000 kg", "1000 kg") == []


# --- summaries -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", TEXTS)
def test_offline_summary_is_the_beginning(offline: Models, text: str) -> None:
    given_ = SectionIn(HEADING[text], text, LANGUAGE[text])
    summary = offline.run(SummariseSection(), given_).value.summary
    assert "64.7" in summary
    assert "|" not in summary
    assert "".join(summary.split()) in "".join(text.split())


def test_offline_answers_over_real_prose_pass_their_checks(offline: Models) -> None:
    lines = [line for line in BACKGROUND.read_text("utf-8").split("\n") if len(line) > 40][::8]
    assert len(lines) > 10
    for line in lines:
        language = "zh" if sum("一" <= char <= "鿿" for char in line) > 20 else "en"
        assert offline.run(SummariseSection(), SectionIn("", line, language)).value.summary
        facts = offline.run(ListFacts(), FactsIn("?", line, language)).value.facts
        assert facts
        judged = judge_answers(offline, [JudgeIn(tuple(facts), line, language)])[0]
        assert judged.share == 1.0
        found = offline.run(ExtractEvidence(), EvidenceIn("?", facts[0], line, language)).value
        assert all(sentence in line for sentence in found.sentences)


@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize(
    "wrong",
    [
        lambda text: "",
        lambda text: ANSWER[text].replace("64.7", "67.4"),
        lambda text: ANSWER[text].replace("不得", "可以").replace("Do not store", "Store"),
        lambda text: ANSWER[text] + ("乙醇与之相似。" if text == ZH else " Ethanol is similar."),
        lambda text: ANSWER[EN if text == ZH else ZH],
        lambda text: ANSWER[text] * 12,
    ],
)
def test_summaries_that_change_the_section_are_rejected(text: str, wrong: Callable[[str], str]) -> None:
    given_ = SectionIn(HEADING[text], text, LANGUAGE[text])
    found, calls = ask(SummariseSection(), given_, {"summary": wrong(text)})
    assert isinstance(found[0], AnswerRejected)
    assert calls == 2
    right, calls = ask(SummariseSection(), given_, {"summary": ANSWER[text]})
    assert isinstance(right[0], Answer)
    assert calls == 1


SHEET = {
    "en": "Do not store it together with strong oxidizers. It is a colourless liquid. Boiling point: 75 °C. Flash point: 29 °C.",
    "zh": "不得与强氧化剂混存。本品为无色液体。沸点：75 ℃。闪点：29 ℃。",
}


@pytest.mark.parametrize(
    ("language", "summary", "fine"),
    [
        ("en", "It is stored together with strong oxidizers.", False),
        ("en", "You may store it with strong oxidizers. Boils at 75 °C.", False),
        ("en", "It is safe.", False),
        ("en", "Boiling point: 29 °C, flash point 75 °C.", False),
        ("en", "The boiling and flash points are 29 °C and 75 °C.", False),
        ("en", "29 °C is the boiling point.", False),
        ("zh", "沸点29 ℃，闪点75 ℃。", False),
        ("zh", "不得与强还原剂混存，沸点75 ℃。", False),
        ("zh", "可与强氧化剂混存，沸点75 ℃。", False),
        ("zh", "本品安全。", False),
        ("en", "It must not be stored with strong oxidizers; it boils at 75 °C and has a flash point of 29 °C.", True),
        ("en", "Keep it away from strong oxidizers.", True),
        ("en", "The boiling and flash points are 75 °C and 29 °C.", True),
        ("zh", "无色液体，沸点75 ℃，闪点29 ℃，不得与强氧化剂混存。", True),
        ("zh", "应与强氧化剂分开存放。", True),
    ],
)  # fmt: skip
def test_a_summary_swaps_no_values_denials_or_classes(language: str, summary: str, fine: bool) -> None:
    found, _ = ask(SummariseSection(), SectionIn("", SHEET[language], language), {"summary": summary})
    assert isinstance(found[0], Answer if fine else AnswerRejected), found[0]


@pytest.mark.parametrize(
    ("language", "facts", "fine"),
    [
        ("en", ["It boils at 29 °C", "It flashes at 75 °C"], False),
        ("en", ["Do not store it together with strong reducers", "Boils at 75 °C", "Flashes at 29 °C"], False),
        ("en", ["Do not store it together with strong oxidizers", "Boils at 75 °C", "Flashes at 29 °C"], True),
        ("zh", ["沸点29 ℃", "闪点75 ℃"], False),
        ("zh", ["不得与强还原剂混存", "沸点75 ℃", "闪点29 ℃"], False),
        ("zh", ["不得与强氧化剂混存", "沸点75 ℃", "闪点29 ℃"], True),
    ],
)  # fmt: skip
def test_facts_swap_no_values_or_classes(language: str, facts: list[str], fine: bool) -> None:
    verdict = ListFacts().check(FactsIn("?", SHEET[language], language), FactList(facts=facts))
    assert (verdict.kind == "accept") == fine, verdict.reasons


# --- questions -----------------------------------------------------------------------------------------------------

OTHER = {
    ZH: "第四部分 急救措施\n吸入：迅速将患者移至空气新鲜处，保持呼吸道通畅。皮肤接触：用肥皂水冲洗15分钟。",
    EN: "Section 4 First aid\nInhalation: move the patient to fresh air. Skin contact: wash with soap for 15 minutes.",
}
BOTH = {
    ZH: ("甲醇的沸点和皮肤接触后的处理方法是什么？", "沸点64.7 ℃；皮肤接触后用肥皂水冲洗15分钟。"),
    EN: (
        "At what temperature does methanol boil, and what helps after skin contact?",
        "It boils at 64.7 °C; wash with soap for 15 minutes.",
    ),
}


def two(text: str) -> QuestionIn:
    return QuestionIn("T2", (text, OTHER[text]), (ANSWER[text],), LANGUAGE[text])


@pytest.mark.parametrize("text", TEXTS)
def test_a_question_over_two_chunks_is_accepted(text: str) -> None:
    question, answer = BOTH[text]
    found, calls = ask(WriteQuestion(), two(text), {"question": question, "answer": answer})
    assert found[0].value.question == question
    assert calls == 1


@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize(
    "change,reason",
    [
        (lambda q, a: (q, a.replace("15", "20")), "the chunks do not state 20"),
        (lambda q, a: (q, a.split("；")[0].split(";")[0] + "。"), "takes nothing from chunk 2"),
        (
            lambda q, a: (
                q.replace("甲醇", "上述物质").replace("does methanol", "does the document say it"),
                a,
            ),
            "stand by itself",
        ),
        (lambda q, a: (q.replace("甲醇", "乙醇").replace("methanol", "ethanol"), a), "does not state"),
        (lambda q, a: (f"{q} {a}", a), "gives its answer away"),
        (lambda q, a: ("", a), "must not be empty"),
        (lambda q, a: (q.replace("的", "的\n").replace("boil,", "boil,\n"), a), "not one line"),
    ],
)
def test_wrong_questions_are_rejected_with_the_reason(
    text: str, change: Callable[[str, str], tuple[str, str]], reason: str
) -> None:
    question, answer = change(*BOTH[text])
    found, calls = ask(WriteQuestion(), two(text), {"question": question, "answer": answer})
    assert isinstance(found[0], AnswerRejected)
    assert reason in str(found[0])
    assert calls == 2


def test_a_question_in_the_other_language_is_rejected() -> None:
    found, _ = ask(
        WriteQuestion(),
        QuestionIn("T1", (EN + ZH,), (), "zh"),
        {"question": BOTH[EN][0], "answer": "64.7 °C"},
    )
    assert "answer in Chinese" in str(found[0])


def test_the_kind_says_how_many_chunks() -> None:
    for kind, chunks in [("T0", (ZH, ZH)), ("T1", ()), ("T2", (ZH,))]:
        with pytest.raises(ValueError, match=kind):
            QuestionIn(kind, chunks, (), "zh")  # type: ignore[arg-type]


def test_no_rule_writes_questions(offline: Models) -> None:
    with pytest.raises(OfflineUnavailable, match=r"\[models\.skills\.write_question\]"):
        offline.run(WriteQuestion(), two(ZH))


@pytest.mark.parametrize("text", TEXTS)
def test_summaries_and_context_come_first(text: str) -> None:
    questions = (
        WriteQuestion().messages(two(text)),
        WriteQuestion().messages(QuestionIn("T1", (text,), (ANSWER[text],), LANGUAGE[text])),
    )
    assert questions[0][:2] == questions[1][:2]
    asked = [
        ExtractEvidence().messages(EvidenceIn(q, ANSWER[text], text, LANGUAGE[text])) for q in ("a?", "b?")
    ]
    assert asked[0][:2] == asked[1][:2]
    assert asked[0][2] != asked[1][2]
    judged = [JudgeFacts().messages(JudgeIn(("f", "g"), a, LANGUAGE[text])) for a in ("a", "b")]
    assert judged[0][:2] == judged[1][:2]


# --- evidence ------------------------------------------------------------------------------------------------------


def evidence(text: str) -> EvidenceIn:
    return EvidenceIn(QUESTION[text], ANSWER[text], text, LANGUAGE[text])


@pytest.mark.parametrize("text", TEXTS)
def test_offline_evidence_holds_the_values_of_the_answer(offline: Models, text: str) -> None:
    found = offline.run(ExtractEvidence(), evidence(text)).value
    assert all(sentence in text for sentence in found.sentences)
    joined = "\n".join(found.sentences)
    assert "64.7" in joined
    assert ("强氧化剂" if text == ZH else "oxidizers") in joined
    assert "67-56-1" not in joined or text == ZH  # zh has it in the sentence of the boiling point
    assert "0.79" not in joined
    vote = evidence_vote(text, [found], least=votes_needed(1))
    assert [text[a:b] for a, b in vote.kept] == found.sentences
    assert 0.1 < vote.share < 1


@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize("wrong", ["changed", "invented", "missing", "scrap"])
def test_evidence_that_is_not_verbatim_or_not_whole_is_rejected(
    offline: Models, text: str, wrong: str
) -> None:
    right = offline.run(ExtractEvidence(), evidence(text)).value.sentences
    sentences = {
        "changed": [sentence.replace("64.7", "67.4") for sentence in right],
        "invented": [*right, "甲醇可致失明。" if text == ZH else "Methanol blinds."],
        "missing": [sentence for sentence in right if "64.7" not in sentence],
        "scrap": [*right, "不" if text == ZH else "is"],
    }[wrong]
    found, calls = ask(ExtractEvidence(), evidence(text), {"sentences": sentences})
    assert isinstance(found[0], AnswerRejected)
    assert calls == 2


SENTENCES = [f"第{n}条规定的温度是{n}5 ℃。" for n in range(1, 9)]
CONTEXT = "\n".join(SENTENCES)


@given(
    draws=st.lists(st.sets(st.integers(0, 7)), min_size=1, max_size=6),
    least=st.integers(1, 5),
    order=st.randoms(use_true_random=False),
)
def test_the_vote_keeps_what_enough_draws_name(draws: list[set[int]], least: int, order: Any) -> None:
    answers = [Evidence(sentences=[SENTENCES[n] for n in sorted(draw)]) for draw in draws]
    vote = evidence_vote(CONTEXT, answers, least)
    wanted = [n for n in range(8) if sum(n in draw for draw in draws) >= least]
    assert [CONTEXT[a:b] for a, b in vote.kept] == [SENTENCES[n] for n in wanted]
    assert math.isclose(vote.share, len(wanted) / 8)
    order.shuffle(answers)
    assert evidence_vote(CONTEXT, answers, least) == vote


def test_votes() -> None:
    assert [votes_needed(draws) for draws in (1, 2, 3, 4, 5, 10)] == [1, 2, 3, 4, 4, 8]
    assert evidence_vote(CONTEXT, []).kept == ()
    assert evidence_vote("", [Evidence()]).share == 0.0


def test_copies_are_led_back_to_whole_sentences() -> None:
    text = "甲醇有毒，吸入、食入或经皮肤吸收均可中毒。立即就医。\n保持 通风。"
    spans, lost = evidence_spans(
        text, ["吸入、食入或经皮肤吸收均可中毒。立即就医。", "保持\n通风。", "", "毒", "立即离开"]
    )
    assert [text[a:b] for a, b in spans] == [
        "甲醇有毒，吸入、食入或经皮肤吸收均可中毒。",
        "立即就医。",
        "保持 通风。",
    ]
    assert lost == ["", "毒", "立即离开"]


def test_five_draws_of_a_model_are_put_to_the_vote() -> None:
    numbers = iter(range(100))
    right = ["第1条规定的温度是15 ℃。"]

    def script(request: Request) -> Any:
        n = next(numbers)
        return {"sentences": [*right, SENTENCES[2 + n % 3]]}

    given_ = EvidenceIn("第1条规定的温度是多少？", "温度是15 ℃。", CONTEXT, "zh")
    found, calls = ask(ExtractEvidence(), given_, script, draws=5)
    assert calls == 5
    vote = evidence_vote(CONTEXT, [answer.value for answer in found])
    assert [CONTEXT[a:b] for a, b in vote.kept] == right
    assert sum(vote.seen.values()) == 10


# --- facts ---------------------------------------------------------------------------------------------------------

FACTS = {
    ZH: ["沸点为64.7 ℃", "闪点为11 ℃", "不得与强氧化剂混存", "遇明火易燃"],
    EN: [
        "It boils at 64.7 °C",
        "its flash point is 11 °C",
        "Do not store methanol together with strong oxidizers",
        "it is flammable",
    ],
}


@pytest.mark.parametrize("text", TEXTS)
def test_offline_facts_are_clauses(offline: Models, text: str) -> None:
    found = offline.run(ListFacts(), FactsIn(QUESTION[text], ANSWER[text], LANGUAGE[text])).value
    assert found.facts == FACTS[text]


def test_a_condition_stays_with_its_result(offline: Models) -> None:
    answer = "在高温下，遇水会爆炸。1. 通风；2. 报警。通风。"
    assert offline.run(ListFacts(), FactsIn("?", answer, "zh")).value.facts == [
        "在高温下，遇水会爆炸",
        "通风",
        "报警",
    ]


@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize(
    "change,reason",
    [
        (lambda facts: [facts[0].replace("64.7", "67.4"), *facts[1:]], "does not state 67.4"),
        (lambda facts: facts[1:], "no fact has 64.7"),
        (lambda facts: [*facts, facts[0]], "given twice"),
        (lambda facts: [], "no fact"),
        (lambda facts: [f.replace("不得", "").replace("Do not store", "Store") for f in facts], "negation"),
        (
            lambda facts: [f.replace("氧化剂", "硫酸").replace("oxidizers", "sulfates") for f in facts],
            "does not state",
        ),
    ],
)
def test_facts_that_change_the_answer_are_rejected(
    text: str, change: Callable[[list[str]], list[str]], reason: str
) -> None:
    given_ = FactsIn(QUESTION[text], ANSWER[text], LANGUAGE[text])
    found, calls = ask(ListFacts(), given_, {"facts": change(FACTS[text])})
    assert isinstance(found[0], AnswerRejected)
    assert reason in str(found[0])
    assert calls == 2


def test_facts_in_the_other_language_are_rejected() -> None:
    given_ = FactsIn("甲醇的危险性？", "甲醇易燃，有毒，应当密闭储存。", "zh")
    facts = {"facts": ["It is flammable and toxic", "Keep it in closed containers"]}
    assert "answer in Chinese" in str(ask(ListFacts(), given_, facts)[0][0])


# --- the judge -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize(
    "answer,expected",
    [
        (lambda text: ANSWER[text], [True, True, True, True]),
        (lambda text: ANSWER[text].replace("64.7", "67.4"), [False, True, True, True]),
        (
            lambda text: ANSWER[text].replace("不得", "可以").replace("Do not store", "Store"),
            [True, True, False, True],
        ),
        (
            lambda text: ANSWER[text].replace("易燃", "不易燃").replace("is flammable", "is not flammable"),
            [True, True, True, False],
        ),
        (lambda text: "", [False] * 4),
    ],
)
def test_offline_judge_sees_values_and_negations(
    offline: Models, text: str, answer: Callable[[str], str], expected: list[bool]
) -> None:
    judged = judge_answers(offline, [JudgeIn(tuple(FACTS[text]), answer(text), LANGUAGE[text])])[0]
    assert judged.draws == (tuple(expected),)


def labels(*verdicts: bool) -> dict[str, Any]:
    return {"labels": [{"fact": n, "covered": verdict} for n, verdict in enumerate(verdicts, start=1)]}


@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize(
    "answer,reason",
    [
        (labels(True, True, True), "no label for fact 4"),
        (labels(True, True, True, True, True), "there is no fact 5"),
        (
            {"labels": [*labels(True, True, True, True)["labels"], {"fact": 1, "covered": False}]},
            "several labels for fact 1",
        ),
        (labels(), "no label for fact 1, 2, 3, 4"),
        ({"labels": [{"fact": 1, "covered": "perhaps"}]}, "schema"),
    ],
)
def test_a_judge_that_does_not_label_every_fact_once_is_rejected(text: str, answer: Any, reason: str) -> None:
    given_ = JudgeIn(tuple(FACTS[text]), ANSWER[text], LANGUAGE[text])
    found, calls = ask(JudgeFacts(), given_, answer)
    assert isinstance(found[0], AnswerRejected)
    assert reason in str(found[0])
    assert calls == 2


@pytest.mark.parametrize("text", TEXTS)
def test_an_obedient_judge_cannot_cover_a_changed_number(text: str) -> None:
    given_ = JudgeIn(tuple(FACTS[text]), ANSWER[text].replace("64.7", "67.4"), LANGUAGE[text])
    found, _ = ask(JudgeFacts(), given_, labels(True, True, True, True))
    assert "fact 1 is labelled covered" in str(found[0])
    right, calls = ask(JudgeFacts(), given_, labels(False, True, True, True))
    assert isinstance(right[0], Answer)
    assert calls == 1


def test_draws_of_a_model_are_judged_and_rejected_ones_are_counted() -> None:
    given_ = JudgeIn(tuple(FACTS[ZH]), ANSWER[ZH], "zh")
    numbers = iter(range(100))

    def script(request: Request) -> Any:
        if len(request.messages) > 3:
            return labels(True)  # asked again, it omits the same labels
        return labels(True) if next(numbers) == 2 else labels(True, True, False, False)

    with ModelServer(script) as server:
        chosen = ModelSettings(base_url=server.base_url, model="judge", limits=Limits(concurrency=1))
        models = Models(chosen)
        judged = judge_answers(models, [JudgeIn((), "x", "zh"), given_])
        models.close()
    assert judged[0].draws == ((),)
    assert judged[1].draws.count(None) == 1
    assert set(judged[1].draws) == {None, (True, True, False, False)}
    figures_ = fact_coverage(judged)
    assert (figures_.macro, figures_.micro, figures_.macro_spread) == (0.5, 0.5, 0.0)
    assert (figures_.questions, figures_.facts, figures_.draws) == (1, 4, 5)
    assert (figures_.rejected_draws, figures_.unjudged, figures_.without_facts) == (1, 0, 1)


def test_one_draw_where_the_settings_say_so() -> None:
    with ModelServer(labels(True, False)) as server:
        skills = {"judge_facts": SkillModel(draws=1)}
        models = Models(ModelSettings(base_url=server.base_url, model="judge", skills=skills))
        judged = judge_answers(models, [JudgeIn(("甲醇有毒", "甲醇易燃"), "甲醇有毒。", "zh")])
        models.close()
    assert fact_coverage(judged).as_dict() == {
        "macro": 0.5, "micro": 0.5, "macro_spread": None, "micro_spread": None, "questions": 1, "facts": 2,
        "draws": 1, "rejected_draws": 0, "unjudged": 0, "without_facts": 0,
    }  # fmt: skip


def test_fact_coverage_by_hand() -> None:
    items = [
        Judged(((True, True), (True, False))),  # 1 and 0.5
        Judged(((True, False, False, False, False, False), (False,) * 6)),  # 1/6 and 0
        Judged((None, None)),
        Judged(((),)),
    ]
    found = fact_coverage(items)
    assert found.macro == pytest.approx((0.75 + 1 / 12) / 2)
    assert found.micro == pytest.approx((3 + 1) / 2 / 8)
    assert found.macro_spread == pytest.approx(((1 + 1 / 6) / 2 - (0.5 + 0) / 2) / 2)
    assert found.micro_spread == pytest.approx((3 / 8 - 1 / 8) / 2)
    assert (found.questions, found.facts, found.draws) == (2, 8, 2)
    assert (found.rejected_draws, found.unjudged, found.without_facts) == (2, 1, 1)
    empty = fact_coverage([])
    assert (empty.macro, empty.micro, empty.questions) == (None, None, 0)
    with pytest.raises(ValueError, match="different numbers of facts"):
        Judged(((True,), (True, False)))


LABELS = st.lists(st.tuples(st.integers(0, 6), st.booleans()), max_size=8)


@settings(max_examples=200)
@given(st.integers(1, 5), LABELS, st.data())
def test_a_judge_that_omits_labels_does_not_gain(
    count: int, drawn: list[tuple[int, bool]], data: Any
) -> None:
    given_ = list(dict(drawn).items())  # a label a fact
    kept = data.draw(st.lists(st.sampled_from(given_), unique=True)) if given_ else []
    whole, part = (
        covered(count, Judgement(labels=[FactLabel(fact=n, covered=c) for n, c in rows]))
        for rows in (given_, kept)
    )
    assert len(whole) == len(part) == count
    assert all(full or not less for full, less in zip(whole, part, strict=True))
    more, fewer = fact_coverage([Judged((whole,))]), fact_coverage([Judged((part,))])
    assert 0.0 <= fewer.macro <= more.macro <= 1.0  # type: ignore[operator]
    assert fewer.micro == pytest.approx(fewer.macro)


def test_labels_that_contradict_each_other_cover_nothing() -> None:
    rows = [(1, True), (1, False), (2, False), (2, True), (3, True), (3, True)]
    assert covered(4, Judgement(labels=[FactLabel(fact=n, covered=c) for n, c in rows])) == (
        False,
        False,
        True,
        False,
    )
