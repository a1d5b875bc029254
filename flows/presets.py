"""Presets: the papers' settings by name, laid between the defaults and the user's own values.

A preset is a TOML file in ``flows/presets``. What a user sets (command line,
environment, ``hchem.toml``) goes before it. Names of models depend on the
provider and are never set: they are stated and compared. What no setting
expresses is stated as not applied.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from importlib.resources import files
from itertools import groupby
from typing import TYPE_CHECKING, Any, Literal

from pydantic import BaseModel, ConfigDict, Field
from pydantic.fields import FieldInfo
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource

from corpus.errors import SettingsError
from models.settings import SKILL_DEFAULTS, ModelSettings, SkillModel

if TYPE_CHECKING:
    from flows.settings import Settings

_SKILLS = "models.skills."


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid")


class Value(_Part):
    """A value of the paper that settings (dotted paths) express.

    ``needs``: the setting without which it means nothing; then it is not laid in.
    """

    settings: list[str] = Field(min_length=1)
    value: Any
    source: Literal["paper", "code"]
    remark: str = ""
    needs: str = ""


class Stated(_Part):
    """A name of the paper (any of several) that is compared with the settings and never set."""

    settings: list[str] = Field(min_length=1)
    paper: list[str] = Field(min_length=1)


class NotApplied(_Part):
    """What no setting expresses."""

    what: str
    paper: str


class Preset(_Part):
    """One paper's setting. ``name`` is the file's."""

    name: str
    title: str
    value: list[Value]
    stated: list[Stated]
    not_applied: list[NotApplied]

    def tree(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """The values as nested settings; ``given`` is what the user set, for values that need it."""
        tree: dict[str, Any] = {}
        for value in self.value:
            if value.needs and _at(given, value.needs) is None:
                continue
            for path in value.settings:
                *above, last = path.split(".")
                place = tree
                for part in above:
                    place = place.setdefault(part, {})
                place[last] = value.value
        return tree


@dataclass(frozen=True)
class Finding:
    """One value here beside the paper's. ``subject`` is a skill or a section of the settings."""

    subject: str
    name: str
    here: Any
    paper: str
    same: bool
    source: str
    remark: str = ""

    def text(self) -> str:
        """``temperature 0.7 = paper`` or ``model here X, paper Y; differs``."""
        if self.same:
            return f"{self.name} {shown(self.here)} = {self.source}"
        return f"{self.name} here {shown(self.here)}, {self.source} {self.paper}; differs"


def names() -> tuple[str, ...]:
    """The presets there are."""
    found = (entry.name for entry in (files("flows") / "presets").iterdir())
    return tuple(sorted(name.removesuffix(".toml") for name in found if name.endswith(".toml")))


@cache
def load(name: str) -> Preset:
    """A preset by name. Raises SettingsError, which names all there are, for an unknown one."""
    if name not in names():
        raise SettingsError(
            f"unknown preset {name!r}; presets: {', '.join(names())} (--preset, HCHEM_PRESET, preset)"
        )
    text = (files("flows") / "presets" / f"{name}.toml").read_text("utf-8")
    return Preset(name=name, **tomllib.loads(text))


class PresetSource(PydanticBaseSettingsSource):
    """The preset that the sources before it name, as a source after them."""

    def __init__(
        self, settings_cls: type[BaseSettings], before: Sequence[PydanticBaseSettingsSource]
    ) -> None:
        super().__init__(settings_cls)
        self._before = before

    def get_field_value(self, field: FieldInfo, field_name: str) -> tuple[Any, str, bool]:
        """Unused: the source gives its whole tree at once."""
        return None, field_name, False

    def __call__(self) -> dict[str, Any]:
        """The preset's values; nothing where no preset is named."""
        given = [source() for source in self._before]
        name = next((values["preset"] for values in given if values.get("preset")), None)
        if name is None:
            return {}
        merged: dict[str, Any] = {}
        for values in reversed(given):
            merged = _over(merged, values)
        return load(str(name)).tree(merged)


def _over(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    """One tree of settings laid over another."""
    result = dict(below)
    for name, value in above.items():
        under = result.get(name)
        both = isinstance(value, Mapping) and isinstance(under, Mapping)
        result[name] = _over(under, value) if both and isinstance(under, Mapping) else value
    return result


def _at(tree: Mapping[str, Any], path: str) -> Any:
    found: Any = tree
    for part in path.split("."):
        if not isinstance(found, Mapping):
            return getattr(found, part, None)
        found = found.get(part)
    return found


# --- what is in force beside what the paper has ------------------------------------------------------------------


def findings(preset: Preset, settings: Settings) -> list[Finding]:
    """Every value and name of the preset beside what is in force, by subject."""
    found = []
    for value in preset.value:
        if value.needs and _in_force(settings, value.needs) is None:
            continue
        for path in value.settings:
            here = _in_force(settings, path)
            same = _plain(here) == _plain(value.value)
            subject, name = _subject(path)
            remark = value.remark
            found.append(Finding(subject, name, here, shown(value.value), same, value.source, remark))
    set_there = {path for value in preset.value for path in value.settings}
    for stated in preset.stated:
        for path in stated.settings:
            here = _in_force(settings, path)
            if path in set_there and here is not None:  # compared above
                continue
            same = any(_base(str(here)) == _base(paper) for paper in stated.paper)
            subject, name = _subject(path)
            found.append(Finding(subject, name, here, " or ".join(stated.paper), same, "paper"))
    order = {subject: at for at, subject in enumerate(dict.fromkeys(f.subject for f in found))}
    return sorted(found, key=lambda finding: order[finding.subject])


def as_dict(preset: Preset, found: Sequence[Finding]) -> dict[str, Any]:
    """A preset with its findings as plain data."""
    return {
        "preset": preset.name,
        "title": preset.title,
        "values": [asdict(row) for row in found],
        "not_applied": [row.model_dump() for row in preset.not_applied],
    }


def lines(settings: Settings) -> list[str]:
    """What a run says of its preset: what differs, how much is as in the paper, what is not applied.

    Empty without a preset.
    """
    if not settings.preset:
        return []
    preset = load(settings.preset)
    everything = findings(preset, settings)
    alike: dict[str, list[str]] = {}  # subjects of which the same is to be said
    for subject, group in groupby(everything, key=lambda finding: finding.subject):
        rows = list(group)
        if not all(row.same for row in rows):
            alike.setdefault(_joined(rows), []).append(subject)
    said = [f"preset {preset.name}: {', '.join(subjects)} {text}" for text, subjects in alike.items()]
    same = sum(row.same for row in everything)
    said.append(f"preset {preset.name}: {same} of {len(everything)} values and names as in paper or code")
    missing = "; ".join(row.what for row in preset.not_applied)
    return [*said, f"preset {preset.name}: not applied: {missing} (hchem models presets {preset.name})"]


def _joined(rows: Sequence[Finding]) -> str:
    """Equal values first, then each that differs."""
    same = ", ".join(row.text() for row in rows if row.same)
    return "; ".join([*([same] if same else []), *(row.text() for row in rows if not row.same)])


def _subject(path: str) -> tuple[str, str]:
    if path.startswith(_SKILLS):
        skill, _, name = path.removeprefix(_SKILLS).partition(".")
        return skill, name
    section, _, name = path.rpartition(".")
    return section, name


def _in_force(settings: Settings, path: str) -> Any:
    """The value of a dotted path; of a skill what it resolves to."""
    if path.startswith(_SKILLS):
        return _of_skill(settings.models, *_subject(path))
    found: Any = settings
    for part in path.split("."):
        found = getattr(found, part)
    return found


def _of_skill(models: ModelSettings, skill: str, name: str) -> Any:
    resolved = models.resolve(skill)
    if name.startswith("extra."):
        own = models.skills.get(skill, SkillModel()).extra or {}
        extra = resolved.extra if resolved is not None else {**models.extra, **own}
        return extra.get(name.removeprefix("extra."))
    if resolved is not None:
        return getattr(resolved, name)
    own_value = getattr(models.skills.get(skill, SkillModel()), name)
    return getattr(SKILL_DEFAULTS[skill], name) if own_value is None else own_value


def _plain(value: Any) -> Any:
    """Lists and tuples alike, whole numbers like floats."""
    if isinstance(value, list | tuple):
        return [_plain(part) for part in value]
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else value


def _base(model: str) -> str:
    """A model's name without its owner and in lower case."""
    return model.rpartition("/")[2].casefold()


def shown(value: Any) -> str:
    """A value as people read it."""
    if value is None:
        return "none"
    if isinstance(value, list | tuple):
        return ", ".join(map(str, value))
    if isinstance(value, bool):
        return str(value).lower()
    return f"{value:g}" if isinstance(value, float) else str(value)
