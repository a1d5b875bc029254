"""A sentence that denies one reaction and states another: each clause with its own negation, subject and circumstance.

Made-up sentences in Chinese and English. The last tables hold those of which nothing, or
only a part, may come out: a denial that is doubted, a reaction of something else.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from corpus.documents import RefinedDocument
from kg.extraction import Draft, extract
from kg.extraction.clauses import clauses
from kg.extraction.evidence import judge
from kg.schema import Polarity, Relation
from tests.kg.documents import document

ZH = "# 丙酮\n\n| 中文名 | 丙酮 |\n| --- | --- |\n| CAS号 | 67-64-1 |\n\n## 第十部分 稳定性和反应性\n\n"
EN = "# Acetone\n\n| Name | Acetone |\n| --- | --- |\n| CAS No. | 67-64-1 |\n\n## SECTION 10: Stability and reactivity\n\n"


def _document(sentence: str) -> RefinedDocument:
    chinese = any("一" <= char <= "鿿" for char in sentence)
    return document(
        (ZH if chinese else EN) + sentence + "\n",
        title="丙酮" if chinese else "Acetone",
        language="zh" if chinese else "en",
    )


def drafts(sentence: str) -> list[Draft]:
    """The kept reactions of a data sheet whose section 10 is the sentence."""
    made = _document(sentence)
    return [
        draft
        for draft in extract(made)[1]
        if draft.relation is Relation.INCOMPATIBLE_WITH and judge(draft, made)[0] is None
    ]


def met(sentence: str) -> set[str]:
    """ "+硝酸" for a reaction that is stated, "-水" for one that is denied."""
    return {("-" if d.polarity is Polarity.NEGATIVE else "+") + d.object for d in drafts(sentence)}


@pytest.mark.parametrize(
    ("sentence", "expected"),
    [
        ("与水不反应，但与硝酸剧烈反应。", "-水 +硝酸"),
        ("丙酮与水不反应，但与硝酸剧烈反应。", "-水 +硝酸"),
        ("丙酮与水不反应但与硝酸剧烈反应", "-水 +硝酸"),
        ("不与水反应，但与硝酸剧烈反应。", "-水 +硝酸"),
        ("与硝酸剧烈反应，但与水不反应。", "-水 +硝酸"),
        ("丙酮与硝酸剧烈反应，但不与水反应。", "-水 +硝酸"),
        ("丙酮与浓硝酸剧烈反应，但与水不反应。", "-水 +浓硝酸"),
        ("丙酮与水不反应，与硝酸剧烈反应，与氯仿剧烈反应。", "-水 +硝酸 +氯仿"),
        ("丙酮与水和乙醇不反应，但与硝酸、过氧化氢剧烈反应。", "-水 -乙醇 +硝酸 +过氧化氢"),
        ("丙酮与水不反应，与乙醇也不反应，但与硝酸剧烈反应。", "-水 -乙醇 +硝酸"),
        ("丙酮既不与水反应，也不与乙醇反应，却能与硝酸剧烈反应。", "-水 -乙醇 +硝酸"),
        ("丙酮与水、稀酸均不反应，但可与硝酸发生剧烈反应。", "-水 -稀酸 +硝酸"),
        ("丙酮遇水不反应，但遇硝酸剧烈反应。", "-水 +硝酸"),
        ("丙酮与水无反应，而与硝酸反应剧烈。", "-水 +硝酸"),
        ("丙酮易燃，与水不反应，但与硝酸剧烈反应。", "-水 +硝酸"),
        ("丙酮与水和硝酸都不反应。", "-水 -硝酸"),
        ("丙酮不与水反应，不与硝酸反应。", "-水 -硝酸"),
        ("Acetone does not react with water but reacts violently with nitric acid.", "-water +nitric acid"),
        ("Acetone does not react with water, but it reacts violently with nitric acid.", "-water +nitric acid"),
        ("Acetone reacts violently with nitric acid but does not react with water.", "-water +nitric acid"),
        ("Acetone reacts violently with nitric acid, but not with water.", "-water +nitric acid"),
        ("Acetone doesn't react with water but may react violently with nitric acid.", "-water +nitric acid"),
        ("Acetone never reacts with water and reacts violently with nitric acid.", "-water +nitric acid"),
        ("Although acetone does not react with water, it reacts violently with nitric acid.", "-water +nitric acid"),
        ("Acetone reacts neither with water nor with ethanol, but reacts violently with nitric acid.", "-water -ethanol +nitric acid"),
        ("Acetone does not react with water, does not react with iron, but reacts violently with nitric acid.", "-water -iron +nitric acid"),
        ("Acetone does not react with water, ethanol or iron, but reacts violently with nitric acid and explosively with chloroform.", "-water -ethanol -iron +nitric acid +chloroform"),
    ],
)  # fmt: skip
def test_a_denial_and_a_statement_in_one_sentence(sentence: str, expected: str) -> None:
    wanted = {part.strip() for part in expected.replace(" +", "|+").replace(" -", "|-").split("|")}
    assert met(sentence) == wanted


@pytest.mark.parametrize(
    ("sentence", "expected"),
    [
        # another substance reacts
        ("丙酮与水不反应，但乙醇与硝酸剧烈反应。", {"-水"}),
        ("丙酮与水不反应，但乙醇易燃，与硝酸剧烈反应。", {"-水"}),
        ("丙酮易燃，乙醇与硝酸剧烈反应。", set()),
        ("乙醇与水不反应，但与硝酸剧烈反应。", set()),
        ("Acetone does not react with water but ethanol reacts violently with nitric acid.", {"-water"}),
        ("Ethanol does not react with water but reacts violently with nitric acid.", set()),
        # the denial is denied, doubted or holds as a rule only
        ("丙酮并非不与水反应。", set()),
        ("丙酮是否不与水反应尚不清楚。", set()),
        ("丙酮与水不反应的说法是错误的。", set()),
        ("丙酮与水一般不反应，但与硝酸剧烈反应。", {"+硝酸"}),
        ("丙酮不但与水反应，而且与硝酸剧烈反应。", {"+硝酸"}),
        ("It is unknown whether acetone does not react with water.", set()),
        ("It is false that acetone does not react with water.", set()),
        ("Acetone generally does not react with water.", set()),
        ("Acetone does not fail to react with water.", set()),
        ("Acetone not only reacts with water but reacts violently with nitric acid.", {"+nitric acid"}),
        # nothing of a name, and an exception
        ("丙酮不与除硝酸以外的物质反应。", set()),
        ("Acetone does not react with any material but nitric acid.", set()),
    ],
)
def test_what_is_another_s_or_doubtful_is_left_out(sentence: str, expected: set[str]) -> None:
    assert met(sentence) == expected


@pytest.mark.parametrize(
    ("sentence", "item", "conditions"),
    [
        ("丙酮与水不反应，但与硝酸剧烈反应。", "-水", {}),
        ("丙酮与水不反应，但加热时与硝酸剧烈反应。", "-水", {}),
        ("丙酮与水不反应，但加热时与硝酸剧烈反应。", "+硝酸", {"when": "加热时"}),
        ("常温下丙酮与水不反应，与乙醇也不反应。", "-乙醇", {"when": "常温下丙酮"}),
        ("丙酮不与水反应，但受热时与水剧烈反应。", "-水", {"when": "但受热时与水剧烈反应"}),
        ("丙酮与水不反应，但与硝酸剧烈反应，除非有酸存在。", "+硝酸", {}),
        ("丙酮不与水剧烈反应，但与硝酸剧烈反应。", "-水", {"note": "剧烈"}),
        ("Acetone does not react with water at room temperature but reacts violently with nitric acid.", "-water", {"when": "at room temperature"}),
        ("Acetone does not react with water but reacts violently with nitric acid when heated.", "-water", {}),
        ("Acetone does not react with water but reacts violently with nitric acid when heated.", "+nitric acid", {"when": "when heated"}),
        ("Acetone does not react violently with water, but reacts violently with nitric acid.", "-water", {"note": "violently"}),
        ("Acetone reacts violently with nitric acid, but not with water.", "-water", {"note": "violently"}),
        ("Acetone does not react with water, but it reacts with hot water.", "-water", {"when": "but it reacts with hot water"}),
    ],
)  # fmt: skip
def test_a_circumstance_stays_with_its_own_clause(
    sentence: str, item: str, conditions: dict[str, str]
) -> None:
    found = {("-" if d.polarity is Polarity.NEGATIVE else "+") + d.object: d for d in drafts(sentence)}
    assert dict(found[item].conditions) == conditions


@pytest.mark.parametrize(
    "sentence",
    [
        "丙酮与水不反应，但与硝酸剧烈反应。",
        "丙酮与硝酸剧烈反应，但不与水反应。",
        "丙酮不与水反应，但在150 ℃以上水解，与硝酸剧烈反应。",
        "Acetone does not react with water or ethanol but reacts violently with nitric acid.",
        "Acetone reacts violently with nitric acid, but not with water or ethanol.",
        "Acetone doesn't react with water; it reacts violently with nitric acid.",
    ],
)
def test_the_proof_refuses_each_draft_with_its_polarity_turned(sentence: str) -> None:
    """Whoever reads the sentence, rules or a model: what it states is not denied, what it denies not stated."""
    made = _document(sentence)
    found = drafts(sentence)
    assert {draft.polarity for draft in found} == {Polarity.POSITIVE, Polarity.NEGATIVE}
    for draft in found:
        other = Polarity.POSITIVE if draft.polarity is Polarity.NEGATIVE else Polarity.NEGATIVE
        turned = replace(draft, polarity=other, start=made.text.index(sentence), end=len(made.text.rstrip()))
        assert judge(turned, made)[0] is not None, (draft.object, other)


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("与酸,碱不反应,但与硝酸反应", ["与酸,碱不反应", "与硝酸反应"]),
        ("不会与水剧烈反应,与酸剧烈反应", ["不会与水剧烈反应,与酸剧烈反应"]),
        ("因而与水不反应,加热时除外", ["因而与水不反应,加热时除外"]),
        ("does not react with water, acids or attack metals", ["does not react with water, acids or attack metals"]),
        ("does not react with any material but nitric acid", ["does not react with any material but nitric acid"]),
        ("is stable (but not in light), and reacts with acid", ["is stable (but not in light)", "reacts with acid"]),
    ],
)  # fmt: skip
def test_a_sentence_is_cut_only_where_a_new_statement_begins(words: str, expected: list[str]) -> None:
    assert [words[start:end] for start, end in clauses(words)] == expected
