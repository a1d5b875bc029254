"""A user's additions to the vocabulary: a TOML file of node labels, relations, properties and labels.

``[graph] schema_file`` names it. Everything in it is checked before any of it
counts, and each fault is told with its place; names come from the file alone,
so that no text of a page or a model becomes a label or a type::

    [nodes.Catalyst]
    zh = "催化剂"
    en = "catalyst"

    [relations.HAS_CATALYST]
    objects = ["Catalyst"]
    zh = "催化剂"
    en = "catalysts"
    labels = ["催化剂", "所用催化剂", "catalyst", "catalysts"]

    [properties.thermal_expansion]
    zh = "热膨胀系数"
    en = "thermal expansion"
    dimension = "1/kelvin"
    labels = ["热膨胀系数", "thermal expansion"]

    [labels.measurement]
    flash_point = ["闪燃点"]
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from threading import RLock
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from corpus.errors import SettingsError
from corpus.ids import canonical_json, digest
from kg.schema import (
    PROPERTIES,
    RELATIONS,
    NodeLabel,
    Property,
    PropertySpec,
    Relation,
    RelationSpec,
    add_label,
    add_property,
    add_relation,
    remove_added,
)

_LABEL = re.compile(r"[A-Z][A-Za-z0-9]{1,39}")
_TYPE = re.compile(r"[A-Z][A-Z0-9_]{2,39}")
_PROPERTY = re.compile(r"[a-z][a-z0-9_]{1,39}")
_SUBJECTS = frozenset({NodeLabel.SUBSTANCE, NodeLabel.MIXTURE})
_OBJECTS = frozenset({NodeLabel.SUBSTANCE, NodeLabel.REACTIVE_GROUP})
_FIXED = frozenset(
    {"CREATE", "MATCH", "MERGE", "DELETE", "DETACH", "RETURN", "SET", "REMOVE", "CALL", "LOAD"}
)

Wording = Annotated[str, Field(min_length=1, max_length=80)]


class _Table(BaseModel):
    model_config = ConfigDict(extra="forbid")


class _Node(_Table):
    zh: Wording
    en: Wording


class _Relation(_Table):
    subjects: tuple[str, ...] = ("Substance", "Mixture")
    objects: tuple[str, ...] = Field(min_length=1)
    zh: Wording
    en: Wording
    labels: tuple[Wording, ...] = ()
    list: bool = True
    functional: bool = False
    symmetric: bool = False


class _Property(_Table):
    zh: Wording
    en: Wording
    dimension: str = ""
    textual: bool = False
    low: float | None = None
    high: float | None = None
    labels: tuple[Wording, ...] = ()


class _File(_Table):
    nodes: dict[str, _Node] = Field(default_factory=dict)
    relations: dict[str, _Relation] = Field(default_factory=dict)
    properties: dict[str, _Property] = Field(default_factory=dict)
    labels: dict[str, dict[str, tuple[Wording, ...]]] = Field(default_factory=dict)


_lock = RLock()
_in_force: dict[str, Any] = {"digest": "", "file": _File(), "members": [], "relations": ()}


def extension_digest() -> str:
    """Changes with the additions in force; "" where there are none. Part of the extraction's fingerprint."""
    return str(_in_force["digest"])


def added_relations() -> tuple[Relation, ...]:
    """The relations that the file in force adds, in its order."""
    return tuple(_in_force["relations"])


def use(path: Path | None) -> None:
    """Put a file's additions in force instead of those before; None for none.

    Raises SettingsError with every fault of the file, and then changes nothing.
    """
    with _lock:
        made = _read(path) if path is not None else _File()
        identity = digest("extension", canonical_json(made.model_dump())) if path is not None else ""
        if identity == _in_force["digest"]:
            return
        before: _File = _in_force["file"]
        remove_added(_in_force["members"])
        _in_force.update(_admit(_File()))
        faults = _faults(made)
        if faults:
            _in_force.update(_admit(before))
            raise SettingsError(f"{path}: " + "; ".join(faults))
        _in_force.update(digest=identity, file=made, **_admit(made))


@contextmanager
def extended(path: Path) -> Iterator[None]:
    """A file's additions for a while (tests, tools)."""
    use(path)
    try:
        yield
    finally:
        use(None)


def _read(path: Path) -> _File:
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise SettingsError(f"{path}: the schema file cannot be read ({error.strerror or error})") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise SettingsError(f"{path}: no valid TOML: {error}") from error
    try:
        return _File.model_validate(data)
    except ValidationError as error:
        told = [f"[{'.'.join(map(str, fault['loc']))}] {fault['msg']}" for fault in error.errors()]
        raise SettingsError(f"{path}: " + "; ".join(told)) from error


# --- checks ---------------------------------------------------------------------------


def _faults(made: _File) -> list[str]:
    """Every fault of a file; nothing added is in force while it is checked."""
    faults: list[str] = []
    faults += _names(
        "nodes", made.nodes, _LABEL, NodeLabel, "a letter A–Z, then letters and digits (Catalyst)"
    )
    faults += _names(
        "relations", made.relations, _TYPE, Relation, "capitals, digits and underscores (HAS_CATALYST)"
    )
    faults += _names(
        "properties",
        made.properties,
        _PROPERTY,
        Property,
        "small letters, digits and underscores (shelf_life)",
    )
    lowered = [label.lower() for label in (*(str(n) for n in NodeLabel), *made.nodes)]
    faults += [
        f"[nodes.{name}] differs from another label in case alone"
        for name in made.nodes
        if lowered.count(name.lower()) > 1
    ]
    for name, relation in made.relations.items():
        faults += _ends(name, relation, set(made.nodes))
    for name, prop in made.properties.items():
        faults += _quantity(name, prop)
    used = {end for relation in made.relations.values() for end in relation.objects}
    faults += [f"[nodes.{name}] no relation leads to it" for name in made.nodes if name not in used]
    return faults + _label_faults(made)


def _names(
    table: str,
    entries: dict[str, Any],
    shape: re.Pattern[str],
    vocabulary: type[StrEnum],
    wanted: str,
) -> list[str]:
    faults = []
    known = {member.value for member in vocabulary}
    for name in entries:
        if not shape.fullmatch(name) or name in _FIXED:
            faults.append(f"[{table}.{name!r}] is no name: {wanted}, at most 40 characters")
        elif name in known:
            faults.append(f"[{table}.{name}] is part of the vocabulary already")
    return faults


def _ends(name: str, relation: _Relation, nodes: set[str]) -> list[str]:
    faults = []
    subjects = {str(label) for label in _SUBJECTS}
    objects = {str(label) for label in _OBJECTS} | nodes
    faults += [
        f"[relations.{name}] subject {end!r} is none of {', '.join(sorted(subjects))}"
        for end in relation.subjects
        if end not in subjects
    ]
    faults += [
        f"[relations.{name}] object {end!r} is none of {', '.join(sorted(objects))}"
        for end in relation.objects
        if end not in objects
    ]
    if not relation.subjects:
        faults.append(f"[relations.{name}] has no subject")
    new = [end for end in relation.objects if end in nodes]
    if len(new) > 1 or (new and len(relation.objects) > 1):
        faults.append(
            f"[relations.{name}] an added label must be its only object: rules could not tell them apart"
        )
    if relation.symmetric and new:
        faults.append(f"[relations.{name}] cannot be symmetric: its ends are of different kinds")
    return faults


def _quantity(name: str, prop: _Property) -> list[str]:
    from pint.errors import PintError

    from corpus.units import registry

    faults = []
    if prop.textual and (prop.dimension or prop.low is not None or prop.high is not None):
        faults.append(f"[properties.{name}] is textual, so it has neither dimension nor bounds")
    if prop.low is not None and prop.high is not None and prop.low > prop.high:
        faults.append(f"[properties.{name}] low is above high")
    try:
        if prop.dimension:
            registry().parse_expression(prop.dimension)
    except (PintError, AttributeError, ValueError, TypeError, SyntaxError) as error:
        faults.append(f"[properties.{name}] dimension {prop.dimension!r} is no unit ({type(error).__name__})")
    return faults


def _label_faults(made: _File) -> list[str]:
    from kg.extraction.vocabulary import fields, label_form

    known = dict(fields())
    names = {
        found.family: {f.name for f in known.values() if f.family == found.family} for found in known.values()
    }
    faults: list[str] = []
    told: dict[str, str] = {}
    for place, label, _ in _labels(made):
        form = label_form(label)
        if not form or len(form) > 40:
            faults.append(f"{place} label {label!r} is empty or longer than 40 characters")
        elif form in known:
            faults.append(f"{place} label {label!r} means {known[form].name} already")
        elif told.setdefault(form, place) != place:
            faults.append(f"{place} label {label!r} stands in {told[form]} too")
    for family, fields_of in made.labels.items():
        if family not in names:
            faults.append(f"[labels.{family}] is none of {', '.join(sorted(names))}")
            continue
        faults += [
            f"[labels.{family}] {name!r} is none of {', '.join(sorted(names[family]))}"
            for name in fields_of
            if name not in names[family]
        ]
    return faults


def _labels(made: _File) -> Iterator[tuple[str, str, tuple[str, str]]]:
    """Every label of the file: where it stands, its words, and family and name of what it gives."""
    from kg.extraction.extended import FAMILY

    for name, relation in made.relations.items():
        for label in relation.labels:
            yield f"[relations.{name}]", label, (FAMILY, name)
    for name, prop in made.properties.items():
        for label in prop.labels:
            yield f"[properties.{name}]", label, ("measurement", name)
    for family, names in made.labels.items():
        for name, labels in names.items():
            for label in labels:
                yield f"[labels.{family}.{name}]", label, (family, name)


# --- in force ---------------------------------------------------------------------------


def _admit(made: _File) -> dict[str, Any]:
    from kg.extraction.reader import read
    from kg.extraction.vocabulary import Field as LabelField
    from kg.extraction.vocabulary import label_form, set_added_labels
    from models.client.call import schema_of, schema_text

    members: list[StrEnum] = [add_label(name, node.zh, node.en) for name, node in made.nodes.items()]
    relations = [
        add_relation(
            name,
            RelationSpec(
                frozenset(NodeLabel(end) for end in entry.subjects),
                frozenset(NodeLabel(end) for end in entry.objects),
                entry.zh,
                entry.en,
                entry.functional,
                entry.symmetric,
                entry.list,
            ),
        )
        for name, entry in made.relations.items()
    ]
    properties = [
        add_property(name, PropertySpec(p.zh, p.en, p.dimension, p.textual, p.low, p.high))
        for name, p in made.properties.items()
    ]
    set_added_labels({label_form(label): LabelField(*field) for _, label, field in _labels(made)})
    read.cache_clear()
    for made_once in (schema_of, schema_text):
        made_once.cache_clear()
    return {"members": [*members, *relations, *properties], "relations": tuple(relations)}


def described(language: str) -> str:
    """The added relations and properties for a prompt, a line each; "" where there are none."""
    zh = language.startswith("zh")
    lines = [
        f"- {relation.value} ({RELATIONS[relation].zh if zh else RELATIONS[relation].en})"
        for relation in added_relations()
    ]
    new = [member for member in _in_force["members"] if isinstance(member, Property)]
    lines += [
        f"- HAS_MEASUREMENT, property {prop.value} ({PROPERTIES[prop].zh if zh else PROPERTIES[prop].en})"
        for prop in new
    ]
    return "\n".join(lines)
