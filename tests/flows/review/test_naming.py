"""Codes of facts and values in the language of the visitor: nothing of a property is left in the other one."""

from __future__ import annotations

import re

import pytest

from corpus.catalogue.tables import ReviewDecision
from flows.review import history, naming
from flows.review.words import LANGUAGES, Language
from kg.conflicts import Finding, Stated
from kg.reference import Compared, Tolerance
from kg.schema import PROPERTIES, RELATIONS

CHINESE = re.compile(r"[\u3400-\u9fff]")


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_property_relation_and_condition_has_a_name(language: Language) -> None:
    codes = [member.value for member in PROPERTIES] + [relation.value for relation in RELATIONS]
    for code in (*codes, "limit PC-TWA", "toxicity LD50", "species", "method", "single_hop", "error_page"):
        said = naming.code(code, language)
        assert bool(CHINESE.search(said)) == (language == "zh"), (code, said)
        assert "_" not in said
    assert naming.code("of_a_users_file", language) == "of_a_users_file"


def _finding(result: Compared) -> Finding:
    side = Stated("a", "11 ℃", {}, {}, "d", "t", "u", "page", "q", "", 0, 1)
    return Finding("67-56-1", "flash_point", {}, {}, result, side, side)


@pytest.mark.parametrize(
    ("result", "zh", "en"),
    [
        (
            Compared("conflict", 50.0, Tolerance(5, 20, relative=False), "K"),
            "相差 50 K，容差 20 K",
            "50 K apart, tolerance 20 K",
        ),
        (
            Compared("conflict", 0.235, Tolerance(0.05, 0.1, relative=True)),
            "相差 23.5 %，容差 10 %",
            "23.5 % apart, tolerance 10 %",
        ),
        (Compared("conflict"), "类别不同", "the classes differ"),
        (Compared("agree"), "类别相同", "the same class"),
    ],
)
def test_how_far_values_lie_apart_with_the_same_figures(result: Compared, zh: str, en: str) -> None:
    assert naming.difference(_finding(result), "zh") == zh
    assert naming.difference(_finding(result), "en") == en


def test_conditions_are_worded_where_that_is_safe() -> None:
    assert naming.condition("method", "closed cup", "zh") == "闭杯"
    assert naming.condition("species", "rat", "zh") == "大鼠"
    assert naming.condition("temperature", "293 K", "zh") == "293 K"
    assert naming.condition("method", "ASTM D93", "zh") == "ASTM D93"  # as the source has it
    assert naming.condition("method", "closed cup", "en") == "closed cup"


def test_the_history_names_the_property_in_both() -> None:
    detail = {"name": "甲醇", "what": "flash_point", "left": {"shown": "11 ℃"}, "right": {"shown": "12 °C"}}
    row = ReviewDecision(
        decision_id="d", queue="conflicts", item_id="i", choice="left", detail=detail, state="standing", why="w", undoes=""
    )  # fmt: skip
    assert history._of_review(row).about == "甲醇, 闪点 / flash point: 11 ℃ | 12 °C"
