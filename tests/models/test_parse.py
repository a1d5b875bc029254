import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, Field

from models.client.parse import Unreadable, parse
from tests.servers.model_server import fenced, thinking


class Fact(BaseModel):
    name: str
    value: float | None = None


class Facts(BaseModel):
    facts: list[Fact]


GOOD = {"facts": [{"name": "闪点", "value": -11.0}, {"name": 'a {brace} " and ```', "value": None}]}


@pytest.mark.parametrize(
    "raw",
    [
        json.dumps(GOOD),
        json.dumps(GOOD, ensure_ascii=False, indent=2),
        fenced(GOOD),
        thinking(GOOD),
        thinking(fenced(GOOD)),
        "\ufeff" + json.dumps(GOOD),
        "Sure! " + json.dumps(GOOD),
        "<think>half" + "</think>" + json.dumps(GOOD) + "\nDone.",
        json.dumps(GOOD) + "\n" + json.dumps(GOOD),
    ],
)
def test_wrapped_answers_are_read(raw: str) -> None:
    assert parse(raw, Facts).model_dump() == GOOD


def test_slips_are_repaired() -> None:
    raw = "{'facts': [{'name': 'LEL', 'value': 1.2,}, /* note */ {'name': 'UEL', 'value': 7.8}],}"
    assert [fact.value for fact in parse(raw, Facts).facts] == [1.2, 7.8]


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        ("", "empty"),
        ("  \n", "empty"),
        ("<think>still thinking about {", "truncated"),
        ("<think>x</think>", "empty"),
        ("I cannot answer that.", "no_json"),
        ('{"facts": [{"name": "闪点", "value": -1', "no_json"),
        ('{"facts": [{"name": "a", "value": 1}, {"name": "b"}', "no_json"),
        ('```json\n{"facts": [{"name": "a", "value": 12', "no_json"),
        ('{"fact": []}', "schema"),
        ('{"facts": [{"name": "a", "value": "warm"}]}', "schema"),
        ('{"facts": []} {"facts": [{"name": "a"}]}', "ambiguous"),
        ('{"facts": [{"name": "a", "value": 1, "value": 2}]}', "ambiguous"),
        ('{"facts": [{"name": "a", "value": NaN}]}', "no_json"),
        ('{"facts": [{"name": "a", "value": 1 2}]}', "no_json"),
        ('{"facts": [{"name": "a", "value": 12 °C}]}', "no_json"),
        ('{"facts": [{"name": "a", "value": -0.5e}]}', "no_json"),
        ('{"facts": [{"name": "a", "value": 007}]}', "no_json"),
        ('{"facts": [{"name": "a", "value": 1,234.5}]}', "schema"),
        ('{"facts": [{"name": "a", // not "b"\n "value": 1}]}', "no_json"),
    ],
)
def test_unreadable(raw: str, reason: str) -> None:
    with pytest.raises(Unreadable) as caught:
        parse(raw, Facts)
    assert caught.value.reason == reason


def test_length_is_truncation_even_when_it_parses() -> None:
    with pytest.raises(Unreadable) as caught:
        parse(json.dumps(GOOD), Facts, "length")
    assert caught.value.reason == "truncated"


names = st.text(st.characters(codec="utf-8"), max_size=30)
facts = st.builds(
    Facts,
    facts=st.lists(
        st.builds(Fact, name=names, value=st.none() | st.floats(-1e9, 1e9).map(lambda x: round(x, 3))),
        max_size=4,
    ),
)


@given(facts, st.sampled_from(["plain", "fence", "think"]))
def test_any_answer_survives_wrapping(answer: Facts, form: str) -> None:
    value = answer.model_dump()
    raw = {"plain": json.dumps(value, ensure_ascii=False), "fence": fenced(value), "think": thinking(value)}[
        form
    ]
    try:
        found = parse(raw, Facts)
    except Unreadable:  # a name that itself holds tags or fences may be refused, never misread
        assert any(mark in json.dumps(value) for mark in ("</think>", "```"))
    else:
        assert found == answer


@given(facts, st.data())
def test_a_cut_answer_is_never_completed(answer: Facts, data: st.DataObject) -> None:
    whole = json.dumps(answer.model_dump(), ensure_ascii=False)
    cut = data.draw(st.integers(0, len(whole) - 1))
    with pytest.raises(Unreadable):
        parse(whole[:cut], Facts)


@pytest.mark.parametrize(
    "raw", ["{}", '{"facts": [1]}', "[" * 100_000 + "]" * 100_000, '{"a":' * 50_000 + "1" + "}" * 50_000]
)
def test_what_gives_none_of_the_fields_is_no_answer(raw: str) -> None:
    class Findings(BaseModel):
        items: list[str] = Field(default_factory=list)
        incomplete: bool = False

    with pytest.raises(Unreadable):
        parse(raw, Findings)
    assert parse('{"items": []}', Findings) == Findings()
