"""The closed vocabulary hangs together, and keys are built from identity."""

from __future__ import annotations

import pytest

from corpus.units import parse_unit, same_dimension
from kg.extraction.vocabulary import agents, fields, group_term, groups, hazard_names
from kg.schema import (
    PICTOGRAMS,
    PROPERTIES,
    RELATIONS,
    AliasKind,
    NodeLabel,
    Property,
    Relation,
    alias_key,
    hazard_class_key,
    measure_key,
    mixture_key,
    substance_key,
    transport_key,
    value_key,
)

_MODEL = {Relation.STATED_IN, Relation.SUBJECT, Relation.OBJECT, Relation.LISTS}


def test_every_relation_has_ends_and_both_wordings() -> None:
    assert set(RELATIONS) == set(Relation) - _MODEL
    for relation, spec in RELATIONS.items():
        assert spec.subjects, relation
        assert spec.objects, relation
        assert all((spec.zh, spec.en)), relation


def test_every_property_is_described() -> None:
    assert set(PROPERTIES) == set(Property)
    for prop, spec in PROPERTIES.items():
        assert all((spec.zh, spec.en)), prop
        assert not spec.textual or not spec.dimension, prop


def test_lexicon_leads_to_known_fields() -> None:
    known = {prop.value for prop in Property} | {"explosive_limits"}
    for label, field in fields().items():
        assert label == label.lower(), label
        if field.family == "measurement":
            assert field.name in known, label
    for term in (*groups().values(), *agents().values()):
        assert term.zh
        assert term.en


def test_lexicon_words_meet_across_languages() -> None:
    assert group_term("强氧化剂") == group_term("Strong oxidizing agents")
    assert group_term("強氧化劑") == group_term("强氧化剂")
    assert group_term("acids") != group_term("strong acids")
    assert group_term("乙醇") is None


def test_hazard_class_spellings_are_unique() -> None:
    spellings = [name.spelling for name in hazard_names()]
    assert len(spellings) == len(set(spellings))


def test_pictograms_are_the_nine_of_ghs() -> None:
    assert list(PICTOGRAMS) == [f"GHS0{n}" for n in range(1, 10)]


def test_keys_follow_identity() -> None:
    assert substance_key("67-56-1", name="甲醇") == "67-56-1"
    assert substance_key(name="Methyl  Alcohol") == substance_key(name="methyl alcohol")
    assert substance_key(name="硫酸") != mixture_key("硫酸")
    assert alias_key("67-56-1", AliasKind.CAS) == "cas:67-56-1"
    assert alias_key("CH₄O", AliasKind.FORMULA) == "formula:CH4O"
    assert hazard_class_key("acute_toxicity", "3", route="oral") == "acute_toxicity/3/oral"
    assert transport_key("1987", "3", "II") != transport_key("1987", "3", "III")
    assert measure_key("extinguishing_agent", "干粉", "agent:dry_powder") == "agent:dry_powder"


def test_a_value_belongs_to_its_subject() -> None:
    value = {"operator": "=", "min": 11.0, "max": 11.0, "unit": "°C", "si": {}}
    kind = {"property": "flash_point", "listing": "x", "comparison": {"a": "agree"}}
    one = value_key(NodeLabel.MEASUREMENT, "67-56-1", kind, value)
    assert one == value_key(NodeLabel.MEASUREMENT, "67-56-1", {"property": "flash_point"}, value)
    assert one != value_key(NodeLabel.MEASUREMENT, "64-17-5", kind, value)
    assert one != value_key(NodeLabel.MEASUREMENT, "67-56-1", kind, {**value, "min": 12.0})


@pytest.mark.parametrize(
    ("prop", "unit"),
    [
        (Property.FLASH_POINT, "°F"),
        (Property.DENSITY, "g/cm3"),
        (Property.VAPOUR_PRESSURE, "mmHg"),
        (Property.LOWER_EXPLOSIVE_LIMIT, "%"),
        (Property.MOLAR_MASS, "g/mol"),
        (Property.VISCOSITY, "cP"),
        (Property.DIPOLE_MOMENT, "D"),
    ],
)
def test_dimensions_fit_usual_units(prop: Property, unit: str) -> None:
    parsed = parse_unit(unit)
    assert parsed is not None
    assert same_dimension(parsed, PROPERTIES[prop].dimension)
