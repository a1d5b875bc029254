"""Identity of substances over all kept assertions: from the catalogue to keys, entities and records.

The pairwise rules are in ``kg.identity``, components in ``kg.components``, what
people decide in ``kg.decisions``. Merges, links and open cases are written as
decisions (who, why).
"""

from __future__ import annotations

import tomllib
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Literal

from sqlalchemy import delete, or_, select, update
from sqlalchemy.orm import Session

from corpus.catalogue.tables import Assertion, Chemical, ChemicalName, Entity, EntityAlias, EntityDecision
from corpus.chemicals import table_rows
from corpus.ids import canonical_json, digest, fingerprint
from corpus.names import normalise_name, valid_cas
from corpus.stages import BaseStep, Item, Outcome, StageContext
from kg.components import Choice, Decision, Mention, Ref, Resolution, Side, own_form, resolve
from kg.extraction.context import language_of
from kg.identity import AliasTable, contradiction, disputed, rivals
from kg.proposals import IdentityGiven, Proposal, ProposeIdentity, candidate, propose, stated
from kg.reference import compare
from kg.schema import AliasKind, NodeLabel, Relation, value_key
from kg.settings import ExtractionSettings
from kg.steps import REFERENCE_KIND, RESOLVE

if TYPE_CHECKING:
    from models import Models

ITEM = "identity"
_VALUES = {NodeLabel.MEASUREMENT, NodeLabel.EXPOSURE_LIMIT, NodeLabel.TOXICITY}


# --- the catalogue ----------------------------------------------------------------


def curated_table(session: Session) -> AliasTable:
    """Names and ids of the name repository. Names of solutions lead to what is dissolved, never to a merge."""
    keys: dict[str, set[str]] = defaultdict(set)
    solutions: dict[str, set[str]] = defaultdict(set)
    for row in session.execute(select(ChemicalName.key, ChemicalName.normalised, ChemicalName.kind)):
        (solutions if row.kind == "solution" else keys)[row.normalised].add(row.key)
    for entry in common_substances():
        for name in f"{entry['zh']}|{entry['en']}".split("|"):
            if not keys.get(normalise_name(name)):
                keys[normalise_name(name)].add(entry["cas"])
    for name, meanings in homographs().items():
        keys[name] |= meanings
    inchikeys: dict[str, str] = {}
    ecs: dict[str, str] = {}
    formulae: dict[str, str] = {}
    for chemical in session.execute(select(Chemical.key, Chemical.inchikey, Chemical.ec, Chemical.formula)):
        if chemical.formula:
            formulae[chemical.key] = chemical.formula
        if chemical.inchikey:
            inchikeys[chemical.inchikey] = chemical.key
        if chemical.ec:
            ecs[chemical.ec] = chemical.key
    return AliasTable(_frozen(keys), inchikeys, ecs, _frozen(solutions), formulae)


def _frozen(names: Mapping[str, set[str]]) -> dict[str, frozenset[str]]:
    return {name: frozenset(found) for name, found in names.items()}


@dataclass(frozen=True)
class _Row:
    """The columns of an assertion that identity needs."""

    id: str
    document: str
    subject: str
    mixture: bool
    relation: str
    object: str
    label: str
    object_key: str
    properties: Mapping[str, Any]
    value: Mapping[str, Any]
    polarity: str
    extractor: str
    subject_key: str = ""


def load_rows(session: Session, keys: Collection[str] = ()) -> list[_Row]:
    """Kept assertions, ordered by id; with ``keys`` only those whose subject or object is one of them."""
    query = (
        select(
            Assertion.assertion_id, Assertion.document_id, Assertion.subject, Assertion.subject_key, Assertion.relation,
            Assertion.object, Assertion.object_label, Assertion.object_key, Assertion.properties, Assertion.value,
            Assertion.polarity, Assertion.extractor,
        )
        .where(Assertion.state == "kept")
        .order_by(Assertion.assertion_id)
    )  # fmt: skip
    if keys:
        query = query.where(or_(Assertion.subject_key.in_(keys), Assertion.object_key.in_(keys)))
    return [
        _Row(
            row.assertion_id, row.document_id, row.subject, row.subject_key.startswith("mixture:"), row.relation,
            row.object, row.object_label, row.object_key, row.properties, row.value, row.polarity, row.extractor,
            row.subject_key,
        )
        for row in session.execute(query)
    ]  # fmt: skip


def mentions_of(rows: Iterable[_Row]) -> list[Mention]:
    """Subjects with the ids that their document gives, and substances named as objects."""
    found: dict[Ref, Mention] = {}
    for row in rows:
        mention = _mention(found, row.document, row.subject, row.mixture)
        if row.relation == Relation.HAS_ALIAS and row.polarity == "positive":
            _add_id(mention, str(row.properties.get("kind", "")), row.object)
        if row.label == NodeLabel.SUBSTANCE:
            other = _mention(found, row.document, row.object, False)
            if cas := str(row.properties.get("cas", "")):
                other.cas.add(cas)
    return list(found.values())


def _mention(found: dict[Ref, Mention], document: str, name: str, mixture: bool) -> Mention:
    made = Mention(document, name, mixture)
    return found.setdefault(made.ref, made)


def _add_id(mention: Mention, kind: str, text: str) -> None:
    if kind == AliasKind.CAS:
        mention.cas.add(text)
    elif kind == AliasKind.INCHIKEY:
        mention.inchikeys.add(text)
    elif kind == AliasKind.EC:
        mention.ecs.add(text)
    elif kind == AliasKind.FORMULA:
        mention.formulae.add(text)
    elif kind in {AliasKind.NAME, AliasKind.TRADE}:
        mention.names.add(text)


def with_crawled(table: AliasTable, mentions: Iterable[Mention]) -> AliasTable:
    """The table with the names that pages give to substances of known CAS number.

    A crawled name never overrides the curated table, one that two pages give to two
    substances leads nowhere, and neither do two names of one number that contradict
    each other.
    """
    crawled: dict[str, set[str]] = defaultdict(set)
    for mention in mentions:
        cas = mention.record.cas
        if not cas or mention.mixture or disputed(mention.record, table):
            continue
        for name in {mention.name, *mention.names}:
            form = normalise_name(name)
            new = form and not table.keys.get(form) and not own_form(name, table)
            if new and not contradiction(mention.name, name):
                crawled[form].add(cas)
    same: dict[tuple[str, str], list[str]] = defaultdict(list)
    for form, numbers in crawled.items():
        for number in numbers:
            for mark in rivals(form):
                same[number, mark].append(form)
    doubtful = {
        form
        for forms in same.values()
        for form in forms
        if any(contradiction(form, other) for other in forms if other != form)
    }
    kept = {form: frozenset(found) for form, found in crawled.items() if form not in doubtful}
    return replace(table, keys={**kept, **table.keys})


class ResolveStep(BaseStep):
    """Sets subject and object keys of all kept assertions; writes entities, aliases and decisions."""

    def __init__(self, settings: ExtractionSettings, models: Models) -> None:
        super().__init__(name=RESOLVE, version="4", batch_size=None)
        self.settings = settings
        self.models = models
        self.skill = ProposeIdentity()

    @property
    def concurrency(self) -> int:
        """Above 1 where a model is waited for."""
        return self.models.concurrency(self.skill.name)

    def plan(self, ctx: StageContext) -> list[Item]:
        """One item, keyed on all kept assertions (their ids are content), the alias table and people's decisions."""
        with ctx.catalogue.reading() as session:
            ids = list(
                session.scalars(
                    select(Assertion.assertion_id)
                    .where(Assertion.state == "kept")
                    .order_by(Assertion.assertion_id)
                )
            )
            names = [
                f"{row.key}|{row.normalised}|{row.kind}"
                for row in session.execute(
                    select(ChemicalName.key, ChemicalName.normalised, ChemicalName.kind).order_by(
                        ChemicalName.name_id
                    )
                )
            ]
            decided = decided_state(session)
        if not ids:
            return []
        tolerance = self.settings.model_dump(include={"temperature_tolerance_k", "relative_tolerance"})
        inputs = [digest(*ids), digest(*names), decided]
        if not self.models.is_offline(self.skill.name):
            inputs.append(self.models.identity(self.skill))
        return [Item(ITEM, fingerprint(self.name, self.version, inputs, tolerance))]

    def process(self, ctx: StageContext, item: Item) -> Outcome:
        """Resolve everything and store it in one transaction."""
        with ctx.catalogue.reading() as session:
            rows = load_rows(session)
            curated = curated_table(session)
            choices, decided = standing_choices(session), decided_state(session)
            preferred = _preferred(session)
        mentions = mentions_of(rows)
        table = with_crawled(curated, mentions)
        resolution = resolve(mentions, table, choices)
        updates = _updates(rows, resolution, self.settings)
        entities, aliases = _entities(rows, resolution, preferred, table)
        proposals = self._proposals(ctx, resolution, table)
        remarks: dict[str, str] = {}
        for key, proposal in proposals.items():
            made, (one, two) = resolution.decisions[key], resolution.open[key]
            remarks[key] = proposal.verdict
            remark = f"on {one.document[:12]} and {two.document[:12]}: {proposal.words}"
            resolution.decisions[key] = replace(made, why=f"{made.why}; {remark}")
        counts = Counter(f"decision: {d.kind}" for d in resolution.decisions.values())
        counts.update(f"proposal: {proposal.verdict}" for proposal in proposals.values())
        counts.update(
            f"reference: {c}" for u in updates for c in u["properties"].get("comparison", {}).values()
        )
        counts.update({"entities": len(entities), "aliases": len(aliases)})

        def write(session: Session) -> None:
            if updates:
                session.execute(update(Assertion), updates)
            _replace(session, entities, aliases, resolution, remarks)

        return Outcome(detail=decided, write=write, counts=dict(counts))

    def _proposals(self, ctx: StageContext, resolution: Resolution, table: AliasTable) -> dict[str, Proposal]:
        """A model's remarks on the open cases by decision; keys and merges are settled before and stay.

        Offline there are none: the rules' answer would only repeat the entry.
        Cases that somebody settled are not open, so they are not asked about.
        """
        if self.models.is_offline(self.skill.name):
            return {}
        with ctx.catalogue.reading() as session:
            cases = dict(sorted(resolution.open.items()))
            said = stated(session, {(m.document, m.name) for pair in cases.values() for m in pair})
        givens = [
            IdentityGiven(*(candidate(m.record, table, m.names, said[m.document, m.name]) for m in pair))
            for pair in cases.values()
        ]
        return dict(zip(cases, propose(self.models, givens), strict=True))

    def retire(self, session: Session, item_ids: Sequence[str]) -> None:
        """No assertions are left: nothing has an identity."""
        _clear(session)


def _clear(session: Session) -> None:
    """Entities, aliases and the rules' standing decisions; those of people and undone ones stay."""
    session.execute(delete(Entity))
    session.execute(delete(EntityAlias))
    session.execute(
        delete(EntityDecision).where(EntityDecision.decided_by == "rules", EntityDecision.undone.is_(False))
    )


def standing_choices(session: Session) -> list[Choice]:
    """People's decisions that stand, in the order in which they were made.

    A merge of the rules that is marked as undone counts as kept apart.
    """
    query = select(EntityDecision).where(EntityDecision.kind.in_(("merge", "keep-apart")))
    choices = []
    for row in sorted(session.scalars(query), key=lambda r: (r.at is not None, r.at, r.decision_id)):
        if row.decided_by == "rules":
            if row.kind == "merge" and row.undone:
                left, right = Side("", row.left_key), Side("", row.right_key)
                choices.append(Choice(row.decision_id, "keep-apart", left, right, row.why))
        elif not row.undone:
            left, right = (Side.of(row.detail[side]) for side in ("left", "right"))
            kind: Literal["merge", "keep-apart"] = "merge" if row.kind == "merge" else "keep-apart"
            choices.append(Choice(row.decision_id, kind, left, right, row.why))
    return choices


def decided_state(session: Session) -> str:
    """Hash of what people's decisions come to: what the last resolve applied is compared with it."""
    return digest(
        "decided",
        *(canonical_json([c.kind, c.left.as_dict(), c.right.as_dict()]) for c in standing_choices(session)),
    )


def _updates(
    rows: Sequence[_Row], resolution: Resolution, settings: ExtractionSettings
) -> list[dict[str, Any]]:
    subjects = {row.id: resolution.keys[row.document, row.subject, row.mixture] for row in rows}
    reference = _reference_values(rows, subjects)
    updates = []
    for row in rows:
        subject = subjects[row.id]
        properties = {k: v for k, v in row.properties.items() if k != "comparison"}
        label = NodeLabel(row.label)
        if label in _VALUES:
            key = value_key(label, subject, properties, row.value)
        elif label is NodeLabel.SUBSTANCE:
            key = resolution.keys[row.document, row.object, False]
        else:
            key = row.object_key
        comparison = _compared(row, subject, reference, settings)
        if comparison:
            properties["comparison"] = comparison
        updates.append(
            {"assertion_id": row.id, "subject_key": subject, "object_key": key, "properties": properties}
        )
    return updates


_Reference = dict[tuple[str, str], list[tuple[str, Mapping[str, Any]]]]


def _reference_values(rows: Sequence[_Row], subjects: Mapping[str, str]) -> _Reference:
    found: _Reference = defaultdict(list)
    for row in rows:
        if row.extractor == REFERENCE_KIND and row.label == NodeLabel.MEASUREMENT:
            found[subjects[row.id], str(row.properties["property"])].append((row.document, row.value))
    return found


def _compared(row: _Row, subject: str, reference: _Reference, settings: ExtractionSettings) -> dict[str, str]:
    """Reference document → agree, differ or conflict, for an extracted measurement."""
    if row.extractor == REFERENCE_KIND or row.label != NodeLabel.MEASUREMENT or row.polarity != "positive":
        return {}
    what = str(row.properties.get("property"))
    known = reference.get((subject, what), [])
    found = {document: compare(row.value, value, settings, what) for document, value in known}
    return {document: verdict for document, verdict in sorted(found.items()) if verdict}


def _preferred(session: Session) -> dict[str, dict[str, str]]:
    """Key → language → curated name: the common ones of the platform's own table before the package's."""
    rank = {"common": 0, "systematic": 1, "trade": 2}
    best: dict[tuple[str, str], tuple[tuple[bool, int, int, str], str]] = {}
    for row in session.scalars(select(ChemicalName).where(ChemicalName.kind != "solution")):
        order = (row.source != "hazardous_zh", rank.get(row.kind, 3), len(row.name), row.name)
        known = best.get((row.key, row.language))
        if known is None or order < known[0]:
            best[row.key, row.language] = (order, row.name)
    names: dict[str, dict[str, str]] = defaultdict(dict)
    for (key, language), (_, name) in sorted(best.items()):
        names[key][language] = name
    for entry in (*table_rows(), *common_substances()):
        for language in ("zh", "en"):
            if entry.get(f"name_{language}"):
                names[entry["cas"]][language] = entry[f"name_{language}"]
    return names


@cache
def homographs() -> dict[str, frozenset[str]]:
    """Words that several substances share, by normal form: they prove nothing, in whatever table they stand."""
    data = tomllib.loads((files("kg") / "data" / "homographs.toml").read_text(encoding="utf-8"))
    return {normalise_name(name): frozenset(meanings) for name, meanings in data["names"].items()}


@cache
def common_substances() -> tuple[dict[str, str], ...]:
    """Metals and everyday substances that lists of incompatible materials name but no hazard list does."""
    data = tomllib.loads((files("kg") / "data" / "common.toml").read_text(encoding="utf-8"))
    return tuple({"cas": cas, **{k: "|".join(v) for k, v in names.items() if isinstance(v, list)},
                  "name_zh": names["zh"][0], "name_en": names["en"][0]} for cas, names in data.items())  # fmt: skip


def _entities(
    rows: Sequence[_Row], resolution: Resolution, preferred: Mapping[str, dict[str, str]], table: AliasTable
) -> tuple[list[Entity], list[EntityAlias]]:
    mixtures = {resolution.keys[row.document, row.subject, row.mixture] for row in rows if row.mixture}
    shares = _shares(rows, resolution)
    entities: list[Entity] = []
    aliases: dict[str, EntityAlias] = {}
    for key in sorted(resolution.names):
        label = NodeLabel.MIXTURE if key in mixtures or key.startswith("mixture:") else NodeLabel.SUBSTANCE
        names = dict(preferred.get(key, {}))
        ranked = sorted(resolution.names[key].items(), key=lambda pair: (-pair[1], len(pair[0]), pair[0]))
        for name, _ in ranked:
            names.setdefault(language_of(name), name)
        if label is NodeLabel.MIXTURE:
            names = {
                language: _mixture_name(name, language, shares[key], table)
                for language, name in names.items()
            }
        properties = {"cas": key} if valid_cas(key) else {}
        if local := resolution.local.get(key):
            # called like another substance: without a name of its own no question can confuse the two
            names, properties = {}, {"written": local.name, "document": local.document}
        entities.append(Entity(key=key, label=label.value, names=names, properties=properties))
        known = [(name, "crawled") for name, _ in ranked] + [
            (name, "curated") for name in preferred.get(key, {}).values()
        ]
        for name, source in known:
            alias = _alias(key, name, source, table, mixture=label is NodeLabel.MIXTURE)
            aliases.setdefault(alias.alias_id, alias)
    return entities, [aliases[key] for key in sorted(aliases)]


def _shares(rows: Sequence[_Row], resolution: Resolution) -> dict[str, dict[str, set[str]]]:
    """Mixture key → component key → shares in words ("98%", "65～68%"), as its pages state them."""
    found: dict[str, dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    for row in rows:
        if row.relation != Relation.HAS_COMPONENT or row.polarity != "positive":
            continue
        low, high, unit = row.value.get("min"), row.value.get("max"), row.value.get("unit")
        if row.value.get("operator") == "=" and low is not None and high is not None and unit == "%":
            words = f"{low:g}%" if low == high else f"{low:g}~{high:g}%"
            part = resolution.keys[row.document, row.object, False]
            found[resolution.keys[row.document, row.subject, row.mixture]][part].add(words)
    return found


def _mixture_name(name: str, language: str, shares: Mapping[str, set[str]], table: AliasTable) -> str:
    """A mixture's own name. Pages call 98 % sulfuric acid "硫酸": said of a mixture, such a name
    carries its share, so that nobody takes the one for the other."""
    pure = table.lookup(name)
    if not pure:
        return name
    stated = shares.get(pure, set())
    remark = next(iter(stated)) if len(stated) == 1 else "混合物" if language == "zh" else "mixture"
    return f"{name}（{remark}）" if language == "zh" else f"{name} ({remark})"


def _alias(key: str, name: str, source: str, table: AliasTable, *, mixture: bool) -> EntityAlias:
    """A name of an entity; ambiguous where the repository leads it to another one, or to several."""
    form = normalise_name(name)[:512]
    keys = table.keys.get(form, frozenset())
    return EntityAlias(
        alias_id=digest("alias", key, form),
        key=key,
        text=name,
        normalised=form,
        language=language_of(name),
        kind=AliasKind.NAME.value,
        source=source,
        ambiguous=len(keys) > 1 or bool(keys - {key}) or (mixture and bool(keys)),
    )


def _replace(
    session: Session,
    entities: Sequence[Entity],
    aliases: Sequence[EntityAlias],
    resolution: Resolution,
    remarks: Mapping[str, str],
) -> None:
    """Rewrite entities, aliases and the rules' decisions."""
    _clear(session)
    held = set(session.scalars(select(EntityDecision.decision_id)))
    session.add_all(entities)
    session.add_all(aliases)
    session.add_all(
        EntityDecision(
            decision_id=made.id,
            kind=made.kind,
            left_key=made.left[:128],
            right_key=made.right[:128],
            rule=made.rule,
            why=made.why,
            decided_by="rules",
            detail=_detail(made, resolution, remarks.get(key, "")),
        )
        for key, made in sorted(resolution.decisions.items())
        if key not in held
    )


def _detail(made: Decision, resolution: Resolution, remark: str) -> dict[str, Any]:
    """Both sides and their documents, the decision that the entry is about, and a model's verdict."""
    detail: dict[str, Any] = {}
    if made.sides:
        detail |= {"left": made.sides[0].as_dict(), "right": made.sides[1].as_dict()}
    if pair := resolution.open.get(made.id):
        detail["documents"] = [mention.document for mention in pair]
    if made.of:
        detail["of"] = made.of
    if remark:
        detail["proposal"] = remark
    return detail
