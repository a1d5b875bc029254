"""A denied reaction holds under its own clause's words: no foreign clause, no lost "even when heated".

Sentences in Chinese and English, on a data sheet about the substance; the first four stand on pages
of the sample site. Of those in the last table nothing may come out.
"""

from __future__ import annotations

import pytest

from kg.extraction import extract
from kg.extraction.evidence import judge
from kg.schema import Polarity, Relation
from tests.kg.documents import document

CAS = {
    "硫酸": "7664-93-9", "Sulfuric acid": "7664-93-9", "过氧化氢": "7722-84-1", "氨": "7664-41-7",
    "钴": "7440-48-4", "Cobalt": "7440-48-4", "丙酮": "67-64-1", "Acetone": "67-64-1",
}  # fmt: skip


def denied(name: str, sentence: str) -> dict[str, dict[str, str]]:
    """Conditions of the kept denials, by what is met."""
    chinese = not name.isascii()
    labels = ("中文名", "CAS号", "第十部分 稳定性和反应性")
    label, number, section = (
        labels if chinese else ("Name", "CAS No.", "SECTION 10: Stability and reactivity")
    )
    made = document(
        f"# {name}\n\n| {label} | {name} |\n| --- | --- |\n| {number} | {CAS[name]} |\n\n## {section}\n\n{sentence}\n",
        title=name,
        language="zh" if chinese else "en",
    )
    return {
        draft.object: dict(draft.conditions)
        for draft in extract(made)[1]
        if draft.relation is Relation.INCOMPATIBLE_WITH
        and draft.polarity is Polarity.NEGATIVE
        and judge(draft, made)[0] is None
    }


@pytest.mark.parametrize(
    ("name", "sentence", "item", "when"),
    [
        ("硫酸", "常温下浓硫酸使铁、铝钝化，浓硫酸与金不发生反应。", "金", "常温下,浓硫酸"),
        ("硫酸", "常温下浓硫酸使铁、铝表面钝化，不会与铝持续发生反应。", "铝", "常温下浓硫酸"),
        ("过氧化氢", "高纯铝对其稳定，与铝不发生反应，可用铝制罐贮存。", "铝", "高纯铝"),
        ("氨", "干燥的氨对钢、铁无腐蚀性，与铁不发生反应；潮湿的氨腐蚀铜、锌及其合金。", "铁", "干燥的氨"),
        ("硫酸", "稀硫酸腐蚀铁，浓硫酸与金不发生反应。", "金", "浓硫酸"),
        ("硫酸", "浓硫酸与铜剧烈反应，但与金不反应。", "金", "浓硫酸"),
        ("丙酮", "丙酮是无色液体，与水不反应。", "水", None),
        ("丙酮", "丙酮的化学性质不活泼，与水不反应。", "水", None),
        ("丙酮", "只有在加热时丙酮才与水反应，常温下与水不反应。", "水", "常温下"),
        ("丙酮", "与铁不同，丙酮与水不反应。", "水", None),
        ("丙酮", "丙酮与水在没有催化剂时不反应。", "水", "在没有催化剂时"),
        ("Sulfuric acid", "At room temperature concentrated sulfuric acid passivates iron, and concentrated sulfuric acid does not react with gold.", "gold", "At room temperature,concentrated sulfuric acid"),
        ("Sulfuric acid", "At room temperature concentrated sulfuric acid passivates iron, and does not react with aluminium.", "aluminium", "At room temperature concentrated sulfuric acid"),
        ("Sulfuric acid", "Concentrated sulfuric acid reacts violently with copper but does not react with gold.", "gold", "Concentrated sulfuric acid"),
        ("Acetone", "Acetone is a colourless liquid, and it does not react with water.", "water", None),
        ("Acetone", "Acetone, which is flammable, does not react with water.", "water", None),
        ("Acetone", "Pure acetone is stable and does not react with iron.", "iron", "Pure acetone"),
        ("Acetone", "Unlike iron, acetone does not react with water.", "water", None),
        ("Acetone", "Without a catalyst, acetone does not react with water.", "water", "Without a catalyst"),
    ],
)  # fmt: skip
def test_a_denial_holds_under_its_own_words(name: str, sentence: str, item: str, when: str | None) -> None:
    assert denied(name, sentence)[item] == ({} if when is None else {"when": when})


@pytest.mark.parametrize(
    ("name", "sentence", "items", "when"),
    [
        ("钴", "钴即使加热也不与氢、氮反应。", {"氢", "氮"}, "钴即使加热"),
        ("钴", "即使加热，钴也不与氢反应。", {"氢"}, "即使加热"),
        ("钴", "钴与氢即使加热也不反应。", {"氢"}, "即使加热"),
        ("钴", "钴与氢不反应，即使加热也不反应，但与硼剧烈反应。", {"氢"}, "即使加热也不反应"),
        ("钴", "哪怕加热到500 ℃，钴也不与氢反应。", {"氢"}, "哪怕加热到500 ℃"),
        ("钴", "尽管加热，钴也不与氢反应。", {"氢"}, "尽管加热"),
        ("钴", "钴无论加热与否都不与氢反应。", {"氢"}, "钴无论加热与否"),
        ("Cobalt", "Cobalt does not react with hydrogen or nitrogen even when heated, but it does react with boron.", {"hydrogen", "nitrogen"}, "even when heated"),
        ("Cobalt", "Even when heated, cobalt does not react with hydrogen.", {"hydrogen"}, "Even when heated"),
        ("Cobalt", "Cobalt, even when heated, does not react with hydrogen.", {"hydrogen"}, "even when heated"),
        ("Cobalt", "Cobalt does not react with hydrogen, even at high temperatures.", {"hydrogen"}, "even at high temperatures"),
        ("Cobalt", "Cobalt does not react with hydrogen, not even on heating.", {"hydrogen"}, "not even on heating"),
        ("Cobalt", "Cobalt does not react with hydrogen regardless of temperature.", {"hydrogen"}, "regardless of temperature"),
    ],
)  # fmt: skip
def test_a_concession_is_kept(name: str, sentence: str, items: set[str], when: str) -> None:
    assert denied(name, sentence) == {item: {"when": when} for item in items}


def test_a_state_of_what_is_met_is_no_circumstance() -> None:
    assert denied("丙酮", "丙酮与硝酸、干燥的氯不反应。") == {"硝酸": {}, "干燥的氯": {}}
    assert denied("Acetone", "Acetone does not react with iron or dry chlorine.") == {
        "iron": {},
        "dry chlorine": {},
    }


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("硫酸", "浓硫酸在加热时溶解铜，与金不发生反应。"),  # is it gold that is heated?
        ("硫酸", "铁在硫酸中钝化，与金不反应。"),
        ("丙酮", "丙酮在常温下稳定，与水不反应。"),
        ("丙酮", "铁易生锈，其与水不反应。"),
        ("丙酮", "常温下铁易生锈，与水不反应。"),
        ("Acetone", "Acetone is stable at room temperature and does not react with water."),
        ("Acetone", "Iron rusts, and it does not react with water."),
        ("Acetone", "In air iron rusts, and acetone does not react with water."),
    ],
)
def test_a_denial_of_unclear_reach_is_left_out(name: str, sentence: str) -> None:
    assert denied(name, sentence) == {}
