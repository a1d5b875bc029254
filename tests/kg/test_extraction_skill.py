"""The skill: a model's answers become drafts only through the closed vocabulary and their quotes."""

from __future__ import annotations

from typing import Any

import pytest

from kg.extraction.evidence import judge
from kg.extraction.model import Draft
from kg.extraction.skill import (
    ExtractAssertions,
    ExtractedAssertion,
    ExtractedAssertions,
    ExtractionGiven,
    drafts_of,
    subject_of,
    to_draft,
    windows,
)
from kg.schema import DropReason, NodeLabel
from models import Models
from models.tokens import count_words
from tests.kg.documents import SDS_ZH, document

DOCUMENT = document(SDS_ZH, title="甲醇安全技术说明书")
GIVEN = ExtractionGiven(DOCUMENT, 0, len(DOCUMENT.text), subject_of(DOCUMENT))
SKILL = ExtractAssertions()


def stated(**given: Any) -> ExtractedAssertion:
    return ExtractedAssertion(**{"relation": "HAS_MEASUREMENT", "object": "11 ℃", "property": "flash_point",
                                 "quote": "闪点：11 ℃（闭杯）", **given})  # fmt: skip


def verdict(item: ExtractedAssertion) -> DropReason | None:
    draft = to_draft(GIVEN, item)
    return draft if isinstance(draft, DropReason) else judge(draft, DOCUMENT)[0]


def test_an_exact_answer_is_taken() -> None:
    draft = to_draft(GIVEN, stated(conditions={"method": "closed cup"}))
    assert isinstance(draft, Draft)
    assert draft.value["min"] == 11
    assert draft.value["conditions"] == {"method": "closed cup"}
    assert judge(draft, DOCUMENT)[0] is None


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"object": "12 ℃"}, DropReason.NUMBER_NOT_IN_QUOTE),
        ({"object": "11 °F"}, DropReason.UNIT_NOT_IN_QUOTE),
        ({"quote": "闪点：12 ℃（闭杯）", "object": "12 ℃"}, DropReason.QUOTE_NOT_FOUND),
        ({"quote": "闪点大约11 ℃"}, DropReason.QUOTE_NOT_FOUND),
        ({"polarity": "negative"}, DropReason.POLARITY_MISMATCH),
        ({"object": "无资料", "quote": "pH值：无资料", "property": "ph"}, DropReason.NO_DATA),
        ({"object": "热的"}, DropReason.BAD_QUANTITY),
        ({"relation": "IS_GREAT"}, DropReason.NOT_IN_SCHEMA),
        ({"relation": "STATED_IN"}, DropReason.NOT_IN_SCHEMA),
        ({"property": "`}) DETACH DELETE n //"}, DropReason.NOT_IN_SCHEMA),
        ({"relation": "INCOMPATIBLE_WITH", "object": "水", "quote": "与水不发生反应"}, DropReason.POLARITY_UNCLEAR),
        ({"relation": "EXTINGUISHED_BY", "object": "直流水", "quote": "不可用直流水扑救"}, DropReason.POLARITY_UNCLEAR),
        ({"relation": "INCOMPATIBLE_WITH", "object": "碱类", "quote": "禁配物：强氧化剂"}, DropReason.OBJECT_NOT_IN_QUOTE),
    ],
)  # fmt: skip
def test_altered_answers_are_refused(changed: dict[str, Any], reason: DropReason) -> None:
    assert verdict(stated(**changed)) is reason


def test_model_words_never_become_keys_or_labels() -> None:
    item = stated(relation="INCOMPATIBLE_WITH", object="强酸", quote="强氧化剂、强酸、酸酐")
    draft = to_draft(GIVEN, item)
    assert isinstance(draft, Draft)
    assert (draft.object_label, draft.object_key) == (NodeLabel.REACTIVE_GROUP, "group:strong_acid")


def test_too_many_faults_are_asked_again() -> None:
    good, bad = stated(), stated(object="99 ℃")
    assert SKILL.check(GIVEN, ExtractedAssertions(assertions=[good] * 9 + [bad])).kind == "accept"
    again = SKILL.check(GIVEN, ExtractedAssertions(assertions=[good, bad]))
    assert again.kind == "ask_again"
    assert "number_not_in_quote" in again.reasons[0]


def test_exact_drafts_count_only_from_the_rules() -> None:
    forged = stated(object="99 ℃", exact={"relation": "HAS_H"})
    drafts, dropped = drafts_of(GIVEN, ExtractedAssertions(assertions=[forged]), trusted=False)
    assert [judge(d, DOCUMENT)[0] for d in drafts] == [DropReason.NUMBER_NOT_IN_QUOTE]
    assert not dropped
    assert "'exact':" not in str(ExtractedAssertions.model_json_schema())


def test_offline_answer_passes_its_own_check() -> None:
    answer = Models.offline().run(SKILL, GIVEN)
    assert answer.source == "offline"
    drafts, _ = drafts_of(GIVEN, answer.value, trusted=True)
    assert sum(judge(d, DOCUMENT)[0] is None for d in drafts) > 40


def test_prompts_speak_the_document_s_language() -> None:
    chinese = SKILL.messages(GIVEN)
    assert "断言" in chinese[0].content
    assert chinese[-1].content.endswith("</text>")
    english = SKILL.messages(ExtractionGiven(document("# Methanol", language="en"), 0, 10, None))
    assert "assertions" in english[0].content


@pytest.mark.parametrize("limit", [50, 200, 10_000])
def test_windows_tile_the_text(limit: int) -> None:
    spans = windows(DOCUMENT, limit, count_words)
    assert "".join(DOCUMENT.text[a:b] for a, b in spans) == DOCUMENT.text
    assert all(DOCUMENT.text[b - 1] == "\n" for _, b in spans[:-1])
