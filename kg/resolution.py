"""Identity of substances over all kept assertions: union-find on proved pairs, re-check, records.

The rules are in ``kg.identity``; here they are applied to what documents say.
Merges, links and open cases are written as decisions (who, why) and can be
undone: a decision with ``undone`` set is not made again.
"""

from __future__ import annotations

import re
import tomllib
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from importlib.resources import files
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from sqlalchemy import delete, select, update
from sqlalchemy.orm import Session

from corpus.catalogue.tables import Assertion, Chemical, ChemicalName, Entity, EntityAlias, EntityDecision
from corpus.chemicals import table_rows
from corpus.ids import canonical_json, digest, fingerprint
from corpus.names import normalise_name, valid_cas
from corpus.stages import BaseStep, Item, Outcome, StageContext
from kg.extraction.context import language_of
from kg.identity import AliasTable, Record, Verdict, decide, features
from kg.proposals import IdentityGiven, Proposal, ProposeIdentity, candidate, propose, stated
from kg.reference import compare
from kg.schema import AliasKind, NodeLabel, Relation, mixture_key, substance_key, value_key
from kg.settings import ExtractionSettings
from kg.steps import REFERENCE_KIND, RESOLVE

if TYPE_CHECKING:
    from models import Models

ITEM = "identity"
Ref = tuple[str, str, bool]
_VALUES = {NodeLabel.MEASUREMENT, NodeLabel.EXPOSURE_LIMIT, NodeLabel.TOXICITY}


@dataclass
class Mention:
    """A substance as one document names it, with the ids that the document gives it."""

    document: str
    name: str
    mixture: bool = False
    cas: set[str] = field(default_factory=set)
    inchikeys: set[str] = field(default_factory=set)
    ecs: set[str] = field(default_factory=set)
    names: set[str] = field(default_factory=set)

    @property
    def ref(self) -> Ref:
        """What it is known by: a mixture may be named like its component ("硫酸" of 98 %)."""
        return (self.document, self.name, self.mixture)

    @property
    def record(self) -> Record:
        """The mention for pairwise rules; an id counts only where the document gives exactly one."""
        return Record(self.name, _only(self.cas), _only(self.inchikeys), _only(self.ecs), self.mixture)


def _only(values: Iterable[str]) -> str:
    found = sorted(set(values))
    return found[0] if len(found) == 1 else ""


@dataclass(frozen=True)
class Decision:
    """A merge, link, keep-apart or review between two keys."""

    kind: str
    left: str
    right: str
    rule: str
    why: str

    @property
    def id(self) -> str:
        """Content-derived, so that an undone decision is recognised."""
        return digest("decision", self.kind, self.left, self.right, self.rule)


@dataclass
class Resolution:
    """Keys by mention (document, name, mixture) and what was decided on the way.

    ``open``: the first two mentions behind each review decision, by its id.
    """

    keys: dict[Ref, str] = field(default_factory=dict)
    names: dict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    decisions: dict[str, Decision] = field(default_factory=dict)
    open: dict[str, tuple[Mention, Mention]] = field(default_factory=dict)

    def decide(self, kind: str, left: str, right: str, verdict: Verdict) -> Decision:
        """Record a decision; ends in key order, so that a pair has one record."""
        left, right = sorted((left, right))
        made = Decision(kind, left, right, verdict.rule, verdict.why)
        self.decisions[made.id] = made
        return made


# --- union-find -----------------------------------------------------------------


class _Sets:
    def __init__(self, size: int) -> None:
        self.parent = list(range(size))

    def find(self, item: int) -> int:
        while self.parent[item] != item:
            self.parent[item] = self.parent[self.parent[item]]
            item = self.parent[item]
        return item

    def join(self, one: int, two: int) -> None:
        a, b = sorted((self.find(one), self.find(two)))
        self.parent[b] = a

    def groups(self) -> list[list[int]]:
        found: dict[int, list[int]] = defaultdict(list)
        for item in range(len(self.parent)):
            found[self.find(item)].append(item)
        return [found[root] for root in sorted(found)]


Pair = tuple[str, str]


def resolve(
    mentions: Sequence[Mention], table: AliasTable, undone: frozenset[Pair] = frozenset()
) -> Resolution:
    """Keys for all mentions.

    Only pairs that share an id, an alias key or a name are compared, and only
    *merge* verdicts join them; every component is then checked again, and one in
    which two trusted ids meet falls apart into its members with the same id.
    ``undone``: pairs of names (in order) whose merge somebody took back.
    """
    ordered = sorted(mentions, key=lambda m: m.ref)
    sets = _Sets(len(ordered))
    result = Resolution()
    for bucket in _buckets(ordered, table):
        for one, two in pairwise(bucket):
            _pair(ordered[one], ordered[two], one, two, table, sets, result, undone)
    for group in sets.groups():
        for part in _checked(ordered, group, result):
            for piece, own_key in _taken_back(ordered, part, undone):
                _assign(ordered, piece, table, result, own_key)
    return result


def _taken_back(
    mentions: Sequence[Mention], part: Sequence[int], undone: frozenset[Pair]
) -> list[tuple[list[int], bool]]:
    """The part without the names that were separated from it by hand; those get a key of their own."""
    names = {mentions[i].name for i in part}
    apart = {right for left, right in undone if left in names and right in names}
    pieces = [([i for i in part if mentions[i].name not in apart], False)]
    pieces += [([i for i in part if mentions[i].name == name], True) for name in sorted(apart)]
    return [(piece, own) for piece, own in pieces if piece]


def _buckets(mentions: Sequence[Mention], table: AliasTable) -> list[list[int]]:
    found: dict[str, list[int]] = defaultdict(list)
    for index, mention in enumerate(mentions):
        record = mention.record
        marks = {f"name:{record.form}:{mention.mixture}"}
        key = record.cas or table.lookup(mention.name)
        if key and not mention.mixture:
            # one chain per form, so that a solution does not separate its pure neighbours
            marks.add(f"key:{key}:{_form(mention.name)}")
        marks |= {f"inchikey:{k}" for k in mention.inchikeys if not mention.mixture}
        marks |= {f"ec:{k}" for k in mention.ecs if not mention.mixture}
        for mark in marks:
            found[mark].append(index)
    return [found[mark] for mark in sorted(found)]


def _form(name: str) -> str:
    marks = features(name)
    return canonical_json({kind: sorted(marks[kind].elements()) for kind in ("hydrate", "group", "form")})


def _pair(
    a: Mention,
    b: Mention,
    one: int,
    two: int,
    table: AliasTable,
    sets: _Sets,
    result: Resolution,
    undone: frozenset[Pair],
) -> None:
    verdict = decide(a.record, b.record, table)
    if verdict.kind == "merge":
        left, right = sorted((a.name, b.name))
        made = Decision("merge", left, right, verdict.rule, verdict.why)
        sets.join(one, two)
        if normalise_name(a.name) != normalise_name(b.name) and (left, right) not in undone:
            result.decisions[made.id] = made
    elif verdict.kind == "review":
        made_open = result.decide("review", a.name, b.name, verdict)
        left_first = (a, b) if a.name == made_open.left else (b, a)
        result.open.setdefault(made_open.id, left_first)


def _checked(mentions: Sequence[Mention], group: Sequence[int], result: Resolution) -> list[list[int]]:
    """The component, or its parts by trusted id where two ids met through weaker links."""
    numbers = sorted({mentions[i].record.cas for i in group} - {""})
    if len(numbers) <= 1:
        return [list(group)]
    result.decide(
        "keep-apart", numbers[0], numbers[1], Verdict("apart", "component_conflict", ", ".join(numbers))
    )
    parts: dict[str, list[int]] = defaultdict(list)
    for index in group:
        parts[mentions[index].record.cas or f"alone:{index}"].append(index)
    return [parts[key] for key in sorted(parts)]


def _assign(
    mentions: Sequence[Mention], part: Sequence[int], table: AliasTable, result: Resolution, own_key: bool
) -> None:
    members = [mentions[i] for i in part]
    key = substance_key(name=members[0].name) if own_key else _key(members, table)
    for member in members:
        result.keys[member.ref] = key
        result.names[key][member.name] += 1
        for name in member.names:
            result.names[key][name] += 0
        base = _base(member, table)
        if base and base != key:
            rule = "solution_of" if member.mixture or table.dissolved(member.name) else "other_form"
            result.decide("link", key, base, Verdict("link", rule, f"{member.name} belongs to {base}"))


def _key(members: Sequence[Mention], table: AliasTable) -> str:
    """CAS, InChIKey, EC, alias, else minted; a form of its own (solution, hydrate, stabilised) is minted."""
    first = min(members, key=lambda m: (normalise_name(m.name), m.name))
    if any(member.mixture for member in members):
        return mixture_key(first.name)
    records = [member.record for member in members]
    cas = _only(r.cas for r in records if r.cas)
    own = all(blocked_form(member.name) for member in members)
    if cas and valid_cas(cas) and not own:
        return cas
    known = _only(k for r in records if (k := table.lookup(r.name)))
    if known and not cas and not blocked_form(first.name):
        return known
    if not own:
        inchikey = _only(r.inchikey for r in records if r.inchikey)
        ec = _only(r.ec for r in records if r.ec)
        mapped = table.inchikeys.get(inchikey, "") or table.ecs.get(ec, "")
        if mapped or inchikey or ec:
            return mapped or substance_key(inchikey=inchikey, ec=ec)
    return substance_key(name=first.name)


def blocked_form(name: str) -> bool:
    """Solution, hydrate, stabilised or inhibited form, or a class."""
    marks = features(name)
    return any(marks[kind] for kind in ("hydrate", "group")) or bool(set(marks["form"]) - {"concentrated"})


def _base(member: Mention, table: AliasTable) -> str:
    """The pure substance that a solution or form belongs to."""
    if member.mixture or blocked_form(member.name):
        return member.record.cas or table.dissolved(member.name) or table.lookup(_without_form(member.name))
    return ""


def _without_form(name: str) -> str:
    return re.sub(
        r"(?:的?水?溶液|[,，]? ?(?:aqueous )?solution|\[[^\]]*\]|（[^）]*）|\([^)]*\))$",
        "",
        name,
        flags=re.IGNORECASE,
    ).strip()


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
    inchikeys: dict[str, str] = {}
    ecs: dict[str, str] = {}
    for chemical in session.execute(select(Chemical.key, Chemical.inchikey, Chemical.ec)):
        if chemical.inchikey:
            inchikeys[chemical.inchikey] = chemical.key
        if chemical.ec:
            ecs[chemical.ec] = chemical.key
    return AliasTable(_frozen(keys), inchikeys, ecs, _frozen(solutions))


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


def load_rows(session: Session) -> list[_Row]:
    """Kept assertions, ordered by id."""
    query = (
        select(
            Assertion.assertion_id, Assertion.document_id, Assertion.subject, Assertion.subject_key, Assertion.relation,
            Assertion.object, Assertion.object_label, Assertion.object_key, Assertion.properties, Assertion.value,
            Assertion.polarity, Assertion.extractor,
        )
        .where(Assertion.state == "kept")
        .order_by(Assertion.assertion_id)
    )  # fmt: skip
    return [
        _Row(
            row.assertion_id, row.document_id, row.subject, row.subject_key.startswith("mixture:"), row.relation,
            row.object, row.object_label, row.object_key, row.properties, row.value, row.polarity, row.extractor,
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
    elif kind in {AliasKind.NAME, AliasKind.TRADE}:
        mention.names.add(text)


def with_crawled(table: AliasTable, mentions: Iterable[Mention]) -> AliasTable:
    """The table with the names that pages give to substances of known CAS number.

    A crawled name never overrides the curated table, and one that two pages give
    to two substances leads nowhere.
    """
    crawled: dict[str, set[str]] = defaultdict(set)
    for mention in mentions:
        cas = mention.record.cas
        if not cas or mention.mixture:
            continue
        for name in {mention.name, *mention.names}:
            form = normalise_name(name)
            if form and not table.keys.get(form) and not table.dissolved(name) and not blocked_form(name):
                crawled[form].add(cas)
    return AliasTable({**_frozen(crawled), **table.keys}, table.inchikeys, table.ecs, table.solutions)


class ResolveStep(BaseStep):
    """Sets subject and object keys of all kept assertions; writes entities, aliases and decisions."""

    def __init__(self, settings: ExtractionSettings, models: Models) -> None:
        super().__init__(name=RESOLVE, version="2", batch_size=None)
        self.settings = settings
        self.models = models
        self.skill = ProposeIdentity()

    @property
    def concurrency(self) -> int:
        """Above 1 where a model is waited for."""
        return self.models.concurrency(self.skill.name)

    def plan(self, ctx: StageContext) -> list[Item]:
        """One item, keyed on all kept assertions (their ids are content), the alias table and undone decisions."""
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
            undone = sorted("|".join(pair) for pair in _undone(session))
        if not ids:
            return []
        tolerance = self.settings.model_dump(include={"temperature_tolerance_k", "relative_tolerance"})
        inputs = [digest(*ids), digest(*names), digest(*undone)]
        if not self.models.is_offline(self.skill.name):
            inputs.append(self.models.identity(self.skill))
        return [Item(ITEM, fingerprint(self.name, self.version, inputs, tolerance))]

    def process(self, ctx: StageContext, item: Item) -> Outcome:
        """Resolve everything and store it in one transaction."""
        with ctx.catalogue.reading() as session:
            rows = load_rows(session)
            curated = curated_table(session)
            undone = frozenset(_undone(session))
            preferred = _preferred(session)
        mentions = mentions_of(rows)
        table = with_crawled(curated, mentions)
        resolution = resolve(mentions, table, undone)
        updates = _updates(rows, resolution, self.settings)
        entities, aliases = _entities(rows, resolution, preferred, table)
        proposals = self._proposals(ctx, resolution, table)
        for key, proposal in proposals.items():
            made, (one, two) = resolution.decisions[key], resolution.open[key]
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
            _replace(session, entities, aliases, resolution)

        return Outcome(write=write, counts=dict(counts))

    def _proposals(self, ctx: StageContext, resolution: Resolution, table: AliasTable) -> dict[str, Proposal]:
        """A model's remarks on the open cases by decision; keys and merges are settled before and stay.

        Offline there are none: the rules' answer would only repeat the entry.
        Cases that somebody closed are not asked about.
        """
        if self.models.is_offline(self.skill.name):
            return {}
        with ctx.catalogue.reading() as session:
            closed = set(
                session.scalars(select(EntityDecision.decision_id).where(EntityDecision.undone.is_(True)))
            )
            cases = {key: pair for key, pair in sorted(resolution.open.items()) if key not in closed}
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


def _undone(session: Session) -> list[Pair]:
    query = select(EntityDecision.left_key, EntityDecision.right_key).where(
        EntityDecision.undone.is_(True), EntityDecision.kind == "merge"
    )
    return [(row.left_key, row.right_key) for row in session.execute(query)]


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
    known = reference.get((subject, str(row.properties.get("property"))), [])
    found = {document: compare(row.value, value, settings) for document, value in known}
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
    """A name of an entity; ambiguous where it leads to several, as a pure substance's name on a mixture does."""
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
        ambiguous=len(keys) > 1 or (mixture and bool(keys)),
    )


def _replace(
    session: Session, entities: Sequence[Entity], aliases: Sequence[EntityAlias], resolution: Resolution
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
        )
        for key, made in sorted(resolution.decisions.items())
        if key not in held
    )
