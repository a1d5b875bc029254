"""The split never leaks a substance; duplicates and the curated part. Properties over made-up worlds."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from kg.graph_settings import QuestionSettings
from kg.qa import dedup
from kg.qa.difficulty import LEVELS, level
from kg.qa.facts import Fact, Facts, Source
from kg.qa.records import Candidate, Proof, Reference
from kg.qa.sampling import components, side_of, sides
from kg.qa.verification import Reason, text_checks
from kg.schema import NodeLabel, Relation

L, R = NodeLabel, Relation
SOURCE = Source("d", "v", "t", "u", "zh", "s", "page", "text")
NAMES = ("硫酸", "硫酸溶液", "硫酸铜", "五水硫酸铜", "无水乙醇", "乙醇", "甲醛", "甲醛溶液", "sodium sulfide", "sodium sulfide hydrate",
         "acetone", "Acetone", "ethanol")  # fmt: skip


def fact(at: int, subject: str, item: str, relation: Relation = R.HAS_COMPONENT) -> Fact:
    return Fact(
        f"a{at}", SOURCE, subject, L.MIXTURE if subject.startswith("m") else L.SUBSTANCE, relation, item, L.SUBSTANCE,
        item, {}, {}, "positive", "is", {}, 0, 4, "text", None, "zh",
    )  # fmt: skip


KEYS = st.sampled_from([*(f"s{n}" for n in range(12)), *(f"m{n}" for n in range(4))])
WORLDS = st.builds(
    lambda names, links, parts: Facts(
        [fact(at, a, b) for at, (a, b) in enumerate(parts) if a != b],
        {
            (L.MIXTURE if key.startswith("m") else L.SUBSTANCE, key): {"name_zh": name}
            for key, name in names.items()
        },
        sorted((a, b) for a, b in links if a != b),
    ),
    st.dictionaries(KEYS, st.sampled_from(NAMES), min_size=2),
    st.lists(st.tuples(KEYS, KEYS), max_size=6),
    st.lists(st.tuples(KEYS, KEYS), max_size=6),
)


@settings(deadline=None, max_examples=150)
@given(WORLDS, st.integers(0, 50), st.floats(0, 1))
def test_what_belongs_together_is_on_one_side(facts: Facts, seed: int, share: float) -> None:
    division = sides(components(facts), QuestionSettings(seed=seed, evaluation_share=share))
    for left, right in facts.links:
        if left in division and right in division:
            assert division[left] == division[right]
    for one in facts.facts:
        assert division[one.subject] == division[one.object]
    named: dict[str, set[str]] = defaultdict(set)
    for (_, key), props in facts.nodes.items():
        named[props["name_zh"].casefold()].add(division[key])
    assert all(len(found) == 1 for found in named.values())


@settings(deadline=None, max_examples=150)
@given(WORLDS, st.lists(st.lists(KEYS, min_size=1, max_size=4), min_size=1, max_size=30), st.integers(0, 20))
def test_no_question_lets_a_substance_leak(facts: Facts, asked: list[list[str]], seed: int) -> None:
    division = sides(components(facts), QuestionSettings(seed=seed, evaluation_share=0.5))
    where: dict[str, set[str]] = defaultdict(set)
    split = text_checks(facts, division)["split"]
    for at, keys in enumerate(asked):
        candidate = made(at, substances=tuple(sorted(set(keys))))
        if not split(candidate):
            for key in candidate.substances:
                where[key].add(side_of(candidate.substances, division) or "both")
        else:
            assert len({division.get(key, "train") for key in keys}) == 2
    assert all(len(found) == 1 and "both" not in found for found in where.values())


def test_forms_of_one_substance_are_one_group() -> None:
    names = {"a": "硫酸铜", "b": "五水合硫酸铜", "c": "硫酸铜溶液", "d": "无水硫酸铜", "e": "copper sulfate", "f": "硝酸铜",
             "g": "Copper sulfate pentahydrate"}  # fmt: skip
    nodes = {
        (L.SUBSTANCE, key): {("name_zh" if key not in "eg" else "name_en"): name}
        for key, name in names.items()
    }
    groups = components(Facts([], nodes))
    assert groups["a"] == groups["b"] == groups["c"] == groups["d"]
    assert groups["e"] == groups["g"]
    assert groups["f"] != groups["a"]


def made(at: int, **more: Any) -> Candidate:
    fields: dict[str, Any] = {
        "kind": "single_hop", "language": "zh", "template": "value", "question": f"样品{at}的闪点是多少？", "answer": "1 °C",
        "expected": ("m",), "surfaces": ("1 °C",), "proof": Proof("MATCH (n) WITH n.key AS answer", {"at": at}),
        "references": (Reference("d", "v", 0, 4, "text", "u", "zh"),), "triples": (("a", "r", "m"),),
        "substances": ("a",), "section": 9,
    }  # fmt: skip
    return Candidate(**{**fields, **more})


def test_duplicates_by_proof_by_text_and_by_near_text() -> None:
    assert made(1).id == made(1, question="另一种说法，丙酮的闪点？").id  # one proof is one question
    same = [made(1, question="丙酮的闪点是多少？"), made(2, question="丙酮 的闪点是多少?")]
    assert list(dedup.duplicates(same).values()) == [Reason.DUPLICATE]
    other = [same[0], made(3, question="丙酮的闪点是多少？", expected=("n",))]
    assert set(dedup.duplicates(other).values()) == {Reason.AMBIGUOUS_TEXT}
    long = "根据《丙酮安全技术说明书第三版》，在标准大气压下丙酮的闪点（闭杯）是多少摄氏度？"
    near = [made(4, question=long), made(5, question=long.replace("？", "呢？"))]
    assert list(dedup.duplicates(near).values()) == [Reason.DUPLICATE]
    apart = [near[0], made(6, question=near[1].question, triples=(("b", "r", "m"),))]
    assert dedup.duplicates(apart) == {}  # another statement is another question
    assert dedup.duplicates([made(7), made(8, language="en", question="What is the flash point?")]) == {}


def test_curated_is_balanced() -> None:
    kept, levels = [], {}
    for at in range(600):
        kind = ("single_hop", "boolean")[at % 2]
        answer = ("no" if at % 10 == 1 else "yes") if kind == "boolean" else "m"
        candidate = made(
            at, kind=kind, expected=(answer,), section=(4, 9)[at % 3 == 0], language=("zh", "en")[at % 7 == 0]
        )
        kept.append(candidate)
        levels[candidate.id] = LEVELS[at % 5 % 3]
    given_settings = QuestionSettings(curated_per_cell=6)
    chosen = dedup.curated(kept, levels, {"a": "eval"}, given_settings)
    by_id = {c.id: c for c in kept}
    cells = Counter((c.kind, c.section, c.language, levels[c.id]) for c in map(by_id.__getitem__, chosen))
    assert max(cells.values()) <= 6
    answers = Counter(by_id[key].expected[0] for key in chosen if by_id[key].kind == "boolean")
    assert 0.4 <= answers["no"] / answers.total() <= 0.6
    assert dedup.curated(kept, levels, {"a": "train"}, given_settings) == set()
    assert dedup.curated(list(reversed(kept)), levels, {"a": "eval"}, given_settings) == chosen


def test_levels() -> None:
    easy = {"hops": 1, "answers": 1, "references": 1, "lexical_overlap": 0.6}
    assert level(easy) == "easy"
    assert level({**easy, "hops": 2, "references": 2}) == "medium"
    assert level({**easy, "hops": 3, "references": 4, "answers": 3, "lexical_overlap": 0.1}) == "hard"
    assert level({**easy, "cross_language": True, "lexical_overlap": 0.0}) == "medium"
