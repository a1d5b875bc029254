"""A scripted model's bad answers: each is recorded with its reason, and what can be mended without guessing is."""

from __future__ import annotations

from typing import Any

import pytest

from kg.extraction.evidence import judge
from kg.extraction.model import Draft, Subject
from kg.extraction.skill import ExtractedAssertion, ExtractionGiven, to_draft
from kg.schema import DropReason, NodeLabel
from kg.settings import ExtractionSettings
from kg.steps import TURNED, ExtractStep
from models import Models, ModelSettings
from tests.kg.documents import document
from tests.models.skills import MemoryAnswers
from tests.servers.model_server import ModelServer, Request

TEXT = {
    "zh": "# 甲醇\n\nCAS号：67-56-1\n\n闪点：11 ℃（闭杯）\n\n禁配物：强氧化剂、钠。灭火剂：干粉。受热分解生成一氧化碳。\n",
    "en": "# Methanol\n\nCAS No.: 67-56-1\n\nFlash point: 11 °C (closed cup)\n\nIncompatible materials: strong oxidizers, sodium. Extinguishing media: dry powder. Decomposes to form carbon monoxide.\n",
}
NAME = {"zh": "甲醇", "en": "Methanol"}
WORDS = {
    "zh": ("强氧化剂", "钠", "干粉", "一氧化碳", "禁配物：强氧化剂、钠", "灭火剂：干粉", "受热分解生成一氧化碳", "闪点：11 ℃", "11 ℃"),
    "en": (
        "strong oxidizers", "sodium", "dry powder", "carbon monoxide", "Incompatible materials: strong oxidizers, sodium",
        "Extinguishing media: dry powder", "Decomposes to form carbon monoxide", "Flash point: 11 °C", "11 °C",
    ),
}  # fmt: skip


def made(language: str, **fields: Any) -> tuple[Draft | DropReason, DropReason | None]:
    page = document(TEXT[language], title=NAME[language], language=language)
    given = ExtractionGiven(page, 0, len(page.text), Subject(NAME[language], (NAME[language],), "67-56-1"))
    draft = to_draft(given, ExtractedAssertion(**fields))
    return draft, judge(draft, page)[0] if isinstance(draft, Draft) else draft


@pytest.mark.parametrize("language", ["zh", "en"])
def test_every_fault_has_its_reason(language: str) -> None:
    group, other, _, product, list_quote, _, product_quote, flash_quote, flash = WORDS[language]
    name = NAME[language]
    flash_point = {"relation": "HAS_MEASUREMENT", "property": "flash_point", "quote": flash_quote}
    cases: list[tuple[dict[str, Any], DropReason]] = [
        ({"relation": "INCOMPATIBLE_WITH", "object": group, "quote": "nowhere on the page 页面没有"}, DropReason.QUOTE_NOT_FOUND),
        ({"relation": "INCOMPATIBLE_WITH", "object": group, "quote": ""}, DropReason.QUOTE_NOT_FOUND),
        ({"relation": "INCOMPATIBLE_WITH", "object": "", "quote": list_quote}, DropReason.MISSING_VALUE),
        ({"relation": "IS_FRIEND_OF", "object": group, "quote": list_quote}, DropReason.NOT_IN_SCHEMA),
        ({"relation": "", "object": "", "quote": ""}, DropReason.NOT_IN_SCHEMA),
        ({**flash_point, "object": flash.replace("11", "12")}, DropReason.NUMBER_NOT_IN_QUOTE),
        ({**flash_point, "object": flash.replace("℃", "K").replace("°C", "K")}, DropReason.UNIT_NOT_IN_QUOTE),
        ({**flash_point, "object": "garbage ¿¿"}, DropReason.BAD_QUANTITY),
        ({"relation": "INCOMPATIBLE_WITH", "object": "石英", "quote": list_quote}, DropReason.OBJECT_NOT_IN_QUOTE),
        ({"relation": "INCOMPATIBLE_WITH", "object": group, "quote": list_quote, "polarity": "negative"}, DropReason.POLARITY_MISMATCH),
        ({"relation": "INCOMPATIBLE_WITH", "object": name, "quote": list_quote}, DropReason.SELF_LOOP),
        ({"relation": "DECOMPOSES_TO", "subject": product, "object": name, "quote": product_quote}, DropReason.REVERSED),
        ({"relation": "INCOMPATIBLE_WITH", "subject": "unobtainium", "object": other, "quote": list_quote}, DropReason.MISSING_SUBJECT),
    ]  # fmt: skip
    for fields, reason in cases:
        assert made(language, **fields)[1] is reason, fields


@pytest.mark.parametrize("language", ["zh", "en"])
def test_reversed_ends_are_turned_round_where_that_cannot_change_the_meaning(language: str) -> None:
    group, other, agent, *_, flash_quote, flash = WORDS[language]
    list_quote, media_quote = WORDS[language][4:6]
    name = NAME[language]
    for fields, right in (
        ({"relation": "INCOMPATIBLE_WITH", "subject": group, "quote": list_quote}, group),
        ({"relation": "INCOMPATIBLE_WITH", "subject": other, "quote": list_quote}, other),
        ({"relation": "EXTINGUISHED_BY", "subject": agent, "quote": media_quote}, agent),
        (
            {
                "relation": "HAS_MEASUREMENT",
                "property": "flash_point",
                "subject": flash,
                "quote": flash_quote,
            },
            flash,
        ),
    ):
        draft, reason = made(language, object=name, **fields)
        assert reason is None, fields
        assert isinstance(draft, Draft)
        assert (draft.subject, draft.object, draft.turned) == ("", right, True)
        assert draft.object_label is not NodeLabel.MIXTURE


@pytest.mark.parametrize("language", ["zh", "en"])
def test_a_run_records_what_a_model_got_wrong(language: str) -> None:
    group, _, agent, product, list_quote, media_quote, product_quote, *_ = WORDS[language]
    answers = [
        {"relation": "INCOMPATIBLE_WITH", "object": group, "quote": list_quote},
        {"relation": "EXTINGUISHED_BY", "subject": agent, "object": NAME[language], "quote": media_quote},
        {"relation": "DECOMPOSES_TO", "subject": product, "object": NAME[language], "quote": product_quote},
        {"relation": "IS_FRIEND_OF", "object": group, "quote": list_quote},
    ]

    def script(request: Request) -> dict[str, Any]:
        return {"assertions": answers}

    with ModelServer(script) as server:
        settings = ModelSettings.model_validate(
            {"base_url": server.base_url, "model": "scripted", "api_key": None}
        )
        step = ExtractStep(ExtractionSettings(rejected_share=1.0), Models(settings, answers=MemoryAnswers()))
        rows, dropped = step.assertions(document(TEXT[language], title=NAME[language], language=language))
    assert sorted(dropped) == sorted([DropReason.NOT_IN_SCHEMA.value, DropReason.REVERSED.value, TURNED])
    said = {(row.relation, row.object) for row in rows if row.extractor == "scripted" and row.state == "kept"}
    assert said == {("INCOMPATIBLE_WITH", group), ("EXTINGUISHED_BY", agent)}
