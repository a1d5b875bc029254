"""Which mentions are one substance: union-find on proved pairs, checked again, then what people decided.

Pure functions on mentions; ``kg.resolution`` brings them from the catalogue. The
result does not depend on the order of mentions, and a mention that shares neither
a name, an identifier nor an alias with others changes nothing for them.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, Literal

from corpus.ids import canonical_json, digest
from corpus.names import normalise_name, valid_cas
from kg.identity import (
    AliasTable,
    Record,
    Verdict,
    configuration,
    contradiction,
    decide,
    disputed,
    features,
    one_composition,
    rivals,
)
from kg.proposals import refusal
from kg.schema import mixture_key, substance_key

Ref = tuple[str, str, bool]
"""Document, name, and whether a mixture is meant."""


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
    formulae: set[str] = field(default_factory=set)

    @property
    def ref(self) -> Ref:
        """What it is known by: a mixture may be named like its component ("硫酸" of 98 %)."""
        return (self.document, self.name, self.mixture)

    @property
    def record(self) -> Record:
        """The mention for pairwise rules; an id counts only where the document gives exactly one."""
        return Record(
            self.name,
            only(self.cas),
            only(self.inchikeys),
            only(self.ecs),
            self.mixture,
            only(self.formulae),
        )


def only(values: Iterable[str]) -> str:
    """The one value that there is, "" for none or several."""
    found = sorted(set(values))
    return found[0] if len(found) == 1 else ""


@dataclass(frozen=True)
class Side:
    """What a person's decision speaks of: an entity by its key, or by a name where the key has changed.

    ``document``: only what this document calls so.
    """

    key: str
    name: str
    document: str = ""

    def as_dict(self) -> dict[str, str]:
        """For the catalogue."""
        return {"key": self.key, "name": self.name, "document": self.document}

    @classmethod
    def of(cls, stored: Mapping[str, Any]) -> Side:
        """From the catalogue."""
        return cls(*(str(stored.get(name, "")) for name in ("key", "name", "document")))

    @property
    def shown(self) -> str:
        """For people: the name with its key where that is an identifier."""
        return f"{self.name} ({self.key})" if self.key and not self.minted else self.name

    @property
    def minted(self) -> bool:
        """Whether the key is made from a name."""
        return self.key.startswith(("name:", "mixture:"))


@dataclass(frozen=True)
class Choice:
    """A standing decision of a person: the two sides are one (merge) or two (keep-apart)."""

    id: str
    kind: Literal["merge", "keep-apart"]
    left: Side
    right: Side
    why: str = ""


@dataclass(frozen=True)
class Decision:
    """A merge, link, keep-apart or review between two names or keys."""

    kind: str
    left: str
    right: str
    rule: str
    why: str
    sides: tuple[Side, Side] | None = None
    of: str = ""

    @property
    def id(self) -> str:
        """Content-derived. ``of``: a person's decision that this one is about."""
        own = [self.of] if self.of else []
        return digest("decision", self.kind, self.left, self.right, self.rule, *own)


@dataclass
class Resolution:
    """Keys by mention (document, name, mixture) and what was decided on the way.

    ``pairs``: all open pairs; ``open``: the first of each two names that nobody has
    settled, by the id of its review decision. ``local``:
    keys that one document's mention has to itself (its name is ambiguous or its
    identifiers are disputed). ``refused``: people's decisions that could not be
    applied, with the reason.
    """

    keys: dict[Ref, str] = field(default_factory=dict)
    names: dict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    decisions: dict[str, Decision] = field(default_factory=dict)
    pairs: list[tuple[Mention, Mention, Verdict]] = field(default_factory=list)
    open: dict[str, tuple[Mention, Mention]] = field(default_factory=dict)
    local: dict[str, Mention] = field(default_factory=dict)
    refused: dict[str, str] = field(default_factory=dict)

    def decide(self, kind: str, left: str, right: str, verdict: Verdict) -> Decision:
        """Record a decision; ends in key order, so that a pair has one record."""
        left, right = sorted((left, right))
        made = Decision(kind, left, right, verdict.rule, verdict.why)
        self.decisions[made.id] = made
        return made

    def review(self, one: Mention, two: Mention, verdict: Verdict) -> None:
        """Note an open pair."""
        one, two = sorted((one, two), key=lambda m: (m.name, m.ref))
        self.pairs.append((one, two, verdict))


class Sets:
    """Union-find; the smaller item is the root."""

    def __init__(self, size: int) -> None:
        self.parent = list(range(size))

    def find(self, item: int) -> int:
        """Root of an item's set."""
        while self.parent[item] != item:
            self.parent[item] = self.parent[self.parent[item]]
            item = self.parent[item]
        return item

    def join(self, one: int, two: int) -> None:
        """Make one set of two."""
        a, b = sorted((self.find(one), self.find(two)))
        self.parent[b] = a

    def groups(self) -> list[list[int]]:
        """All sets, ordered by their first item."""
        found: dict[int, list[int]] = defaultdict(list)
        for item in range(len(self.parent)):
            found[self.find(item)].append(item)
        return [found[root] for root in sorted(found)]


def resolve(mentions: Sequence[Mention], table: AliasTable, choices: Sequence[Choice] = ()) -> Resolution:
    """Keys for all mentions.

    Only pairs that share an id, an alias key or a name are compared, and only
    *merge* verdicts join them. Every component is then checked again: one in which
    two trusted ids meet falls apart, and so does whatever would share a key against
    an identifier, a formula or a hard block. Last come people's decisions.
    """
    ordered = sorted(mentions, key=lambda m: m.ref)
    sets = Sets(len(ordered))
    result = Resolution()
    for bucket in _buckets(ordered, table):
        for one, two in pairwise(bucket):
            _pair(ordered[one], ordered[two], one, two, table, sets, result)
    keys: dict[int, str] = {}
    for group in sets.groups():
        for part, alone in _checked(ordered, group, result):
            key = _key([ordered[i] for i in part], table, alone)
            keys |= dict.fromkeys(part, key)
    _settle(ordered, keys, table, result)
    places = _Places(ordered, keys)
    _apply(places, table, choices, result)
    for index, mention in enumerate(ordered):
        _assign(mention, keys[index], table, result)
    _close(places, choices, result)
    return result


# --- pairs -----------------------------------------------------------------------


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
    a: Mention, b: Mention, one: int, two: int, table: AliasTable, sets: Sets, result: Resolution
) -> None:
    verdict = decide(a.record, b.record, table)
    if verdict.kind == "merge":
        sets.join(one, two)
        if normalise_name(a.name) != normalise_name(b.name):
            result.decide("merge", a.name, b.name, verdict)
    elif verdict.kind == "review":
        result.review(a, b, verdict)


def _checked(
    mentions: Sequence[Mention], group: Sequence[int], result: Resolution
) -> list[tuple[list[int], bool]]:
    """The component, or its parts by trusted id where two ids met through weaker links.

    The second value is true for a mention without id that such a component leaves alone.
    """
    numbers = sorted({mentions[i].record.cas for i in group} - {""})
    if len(numbers) <= 1:
        return [(list(group), False)]
    result.decide(
        "keep-apart", numbers[0], numbers[1], Verdict("apart", "component_conflict", ", ".join(numbers))
    )
    parts: dict[str, list[int]] = defaultdict(list)
    for index in group:
        parts[mentions[index].record.cas or f"alone:{index}"].append(index)
    return [(parts[key], key.startswith("alone:")) for key in sorted(parts)]


# --- keys --------------------------------------------------------------------------


def minted(name: str, document: str = "", mark: str = "") -> str:
    """Key made from a name's normal form; capitals that carry meaning (CoCl2, COCl2; D-, d-) count.

    ``document``: the key of what this one document calls so.
    """
    form = normalise_name(name)
    case = form if form != form.casefold() else ""
    extra = [part for part in (case, configuration(name), document, mark) if part]
    return substance_key(name=f"{form}|{digest(*extra)}" if extra else form)


def _key(members: Sequence[Mention], table: AliasTable, alone: bool) -> str:
    """CAS, InChIKey, EC, alias, else minted; a form of its own (solution, hydrate, stabilised) is minted."""
    first = min(members, key=lambda m: (normalise_name(m.name), m.name, m.document))
    if any(member.mixture for member in members):
        return mixture_key(normalise_name(first.name))
    if any(disputed(member.record, table) for member in members):  # such a mention is joined with no other
        return minted(first.name, first.document)
    records = [member.record for member in members]
    cas = only(r.cas for r in records if r.cas)
    own = all(own_form(member.name, table) for member in members)
    if cas and valid_cas(cas) and not own:
        return cas
    known = only(k for r in records if (k := table.lookup(r.name)))
    if known and not cas and not own_form(first.name, table):
        return known
    if not own:
        inchikey = only(r.inchikey for r in records if r.inchikey)
        ec = only(r.ec for r in records if r.ec)
        mapped = table.inchikeys.get(inchikey, "") or table.ecs.get(ec, "")
        if mapped or inchikey or ec:
            return mapped or substance_key(inchikey=inchikey, ec=ec)
    if alone or table.ambiguous(first.name):
        return minted(first.name, first.document)
    return minted(first.name)


def blocked_form(name: str) -> bool:
    """Solution, hydrate, stabilised or inhibited form, or a class."""
    marks = features(name)
    return any(marks[kind] for kind in ("hydrate", "group")) or bool(set(marks["form"]) - {"concentrated"})


def own_form(name: str, table: AliasTable) -> bool:
    """As ``blocked_form``, names that the repository knows as those of solutions included."""
    return blocked_form(name) or bool(table.dissolved(name))


def base_of(mention: Mention, table: AliasTable) -> str:
    """The pure substance that a solution or form belongs to."""
    if mention.mixture or own_form(mention.name, table):
        return (
            mention.record.cas or table.dissolved(mention.name) or table.lookup(_without_form(mention.name))
        )
    return ""


def _without_form(name: str) -> str:
    return re.sub(
        r"(?:的?水?溶液|[,，]? ?(?:aqueous )?solution|\[[^\]]*\]|（[^）]*）|\([^)]*\))$",
        "",
        name,
        flags=re.IGNORECASE,
    ).strip()


def _assign(mention: Mention, key: str, table: AliasTable, result: Resolution) -> None:
    result.keys[mention.ref] = key
    result.names[key][mention.name] += 1
    for name in mention.names:
        result.names[key][name] += 0
    if not mention.mixture and key == minted(mention.name, mention.document):
        result.local[key] = mention
    base = base_of(mention, table)
    if base and base != key:
        rule = "solution_of" if mention.mixture or table.dissolved(mention.name) else "other_form"
        result.decide("link", key, base, Verdict("link", rule, f"{mention.name} belongs to {base}"))


# --- the second look -----------------------------------------------------------------


def _settle(mentions: Sequence[Mention], keys: dict[int, str], table: AliasTable, result: Resolution) -> None:
    """Take out of each entity what may not be in it, whichever way it came to the key.

    Chains compare neighbours only, and two components can end at one key; here all
    members of a key are looked at together. What the name repository knows of the
    substance stays, what speaks against it leaves; where it knows nothing, all
    that disagree leave, since nobody can tell which is right.
    """
    members: dict[str, list[int]] = defaultdict(list)
    for index, key in keys.items():
        members[key].append(index)
    for key in sorted(members):
        group = sorted(members[key])
        for index, verdict, other in _odd(mentions, group, key, table):
            keys[index] = minted(mentions[index].name, mentions[index].document)
            result.review(mentions[index], mentions[other], verdict)


def _odd(
    mentions: Sequence[Mention], group: Sequence[int], key: str, table: AliasTable
) -> list[tuple[int, Verdict, int]]:
    """Members that leave an entity, each with the reason and a member that it disagrees with."""
    if mentions[group[0]].mixture:
        return []
    found: dict[int, tuple[Verdict, int]] = {}
    for name, leads in (("inchikey", table.inchikeys), ("ec", table.ecs)):
        values = {i: str(getattr(mentions[i].record, name)) for i in group}
        known = {value for value in values.values() if leads.get(value) == key}
        _disagree(values, known, f"different_{name}", found)
    formulae = {i: mentions[i].record.formula for i in group}
    if len({value for value in formulae.values() if value}) > 1:
        own = table.formulae.get(key, "")
        classes = _compositions(formulae.values(), own)
        values = {i: classes.get(formula, "") for i, formula in formulae.items()}
        _disagree(values, {classes[own]} if own else set(), "different_formula", found)
    groups: dict[str, list[int]] = defaultdict(list)
    for index in group:
        for mark in rivals(mentions[index].name):
            groups[mark].append(index)
    for mark in sorted(groups):
        _contradicting(mentions, groups[mark], key, table, found)
    return [(index, *found[index]) for index in sorted(found)]


def _disagree(
    values: Mapping[int, str], known: set[str], rule: str, found: dict[int, tuple[Verdict, int]]
) -> None:
    """Mark the members whose value is not the known one, where there are several values."""
    if len({value for value in values.values() if value}) < 2:
        return
    for index, value in values.items():
        if value and value not in known and index not in found:
            other = next(i for i, v in values.items() if v and v != value)
            found[index] = (Verdict("review", rule, " and ".join(sorted((value, values[other])))), other)


def _compositions(formulae: Iterable[str], known: str) -> dict[str, str]:
    """Each formula → the first one that counts the same atoms; what cannot be read disagrees with nothing."""
    classes: dict[str, str] = {}
    for formula in sorted({*formulae, known} - {""}):
        first = next((c for c in classes.values() if one_composition(formula, c) is not False), formula)
        classes[formula] = first
    return classes


def _contradicting(
    mentions: Sequence[Mention],
    group: Sequence[int],
    key: str,
    table: AliasTable,
    found: dict[int, tuple[Verdict, int]],
) -> None:
    first: dict[str, int] = {}
    for index in group:
        first.setdefault(normalise_name(mentions[index].name), index)
    clash: dict[str, tuple[str, int]] = {}
    forms = sorted(first)
    for at, one in enumerate(forms):
        for two in forms[at + 1 :]:
            if kind := contradiction(mentions[first[one]].name, mentions[first[two]].name):
                clash.setdefault(one, (kind, first[two]))
                clash.setdefault(two, (kind, first[one]))
    for index in group:
        form = normalise_name(mentions[index].name)
        if form in clash and table.lookup(mentions[index].name) != key and index not in found:
            kind, other = clash[form]
            found[index] = (Verdict("review", f"one_key_other_{kind}", f"{key}, but {kind} differs"), other)


# --- people's decisions ----------------------------------------------------------------


class _Places:
    """Where names and keys are; ``keys`` by index of the mention, changed in place."""

    def __init__(self, mentions: Sequence[Mention], keys: dict[int, str]) -> None:
        self.mentions, self.keys = mentions, keys
        self.present = Counter(keys.values())
        self.forms: dict[str, list[int]] = defaultdict(list)
        for index, mention in enumerate(mentions):
            self.forms[normalise_name(mention.name)].append(index)

    def called(self, side: Side) -> list[int]:
        """Mentions of a side's name; mixtures only where a mixture is meant."""
        mixed = side.key.startswith("mixture:")
        return [
            i
            for i in self.forms.get(normalise_name(side.name), ())
            if side.document in ("", self.mentions[i].document)
            and (not side.key or self.mentions[i].mixture == mixed)
        ]

    def key(self, side: Side) -> str:
        """The key of what a side speaks of now, "" where it has vanished or its name is no longer one entity's."""
        if self.present[side.key]:
            return side.key
        return only(self.keys[i] for i in self.called(side))

    def move(self, index: int, key: str) -> None:
        """Give a mention another key."""
        self.present[self.keys[index]] -= 1
        self.present[key] += 1
        self.keys[index] = key


def _apply(places: _Places, table: AliasTable, choices: Sequence[Choice], result: Resolution) -> None:
    """First what is kept apart, then what is merged, each in the order in which it was decided."""
    for choice in choices:
        if choice.kind == "keep-apart":
            _part(places, choice)
    groups: dict[str, str] = {}

    def root(key: str) -> str:
        while key in groups:
            key = groups[key]
        return key

    for choice in choices:
        if choice.kind != "merge":
            continue
        sides = (choice.left, choice.right)
        if gone := [side.shown for side in sides if not places.key(side)]:
            result.refused[choice.id] = f"no document speaks of {' and '.join(gone)} (as one entity) any more"
            continue
        left, right = (root(places.key(side)) for side in sides)
        if left == right:
            continue
        members: dict[str, list[Mention]] = {left: [], right: []}
        for index, mention in enumerate(places.mentions):
            if (end := root(places.keys[index])) in members:
                members[end].append(mention)
        why = refusal((left, members[left]), (right, members[right]), table)
        for other in choices:
            if other.kind == "keep-apart" and {root(places.key(s)) for s in (other.left, other.right)} == {
                left,
                right,
            }:
                why = (
                    why or f"decision {other.id[:12]} keeps {other.left.shown} and {other.right.shown} apart"
                )
        if why:
            result.refused[choice.id] = why
        else:
            stays, goes = sorted((left, right), key=strength)
            groups[goes] = stays
    for index, key in list(places.keys.items()):
        places.move(index, root(key))


def strength(key: str) -> tuple[int, str]:
    """An identifier gives its key to a merged entity, CAS before others; else the first key in order."""
    return (0 if valid_cas(key) else 2 if key.startswith(("name:", "mixture:")) else 1, key)


def _part(places: _Places, choice: Choice) -> None:
    """The right side leaves an entity that has both."""
    left = places.key(choice.left)
    leaving = [i for i in places.called(choice.right) if places.keys[i] == left]
    if left and 0 < len(leaving) < places.present[left]:
        for index in leaving:
            places.move(index, minted(choice.right.name, choice.right.document, "apart"))


def _close(places: _Places, choices: Sequence[Choice], result: Resolution) -> None:
    """Make the review list of the pairs that nobody has settled, and drop the record of merges that were taken back."""
    apart = [c for c in choices if c.kind == "keep-apart"]
    settled = [{places.key(c.left), places.key(c.right)} for c in apart]
    named: set[tuple[str, str]] = set()
    for one, two, verdict in sorted(result.pairs, key=lambda pair: (pair[0].ref, pair[1].ref, pair[2].rule)):
        keys = [result.keys[m.ref] for m in (one, two)]
        if keys[0] == keys[1] or set(keys) in settled:
            continue
        left, right = (
            Side(key, m.name, m.document if key in result.local else "")
            for key, m in zip(keys, (one, two), strict=True)
        )
        made = Decision("review", one.name, two.name, verdict.rule, verdict.why, (left, right))
        if (one.name, two.name) not in named:  # one question about two names, whatever rules ask it
            named.add((one.name, two.name))
            result.decisions[made.id] = made
            result.open[made.id] = (one, two)
    names = [{normalise_name(side.name) for side in (c.left, c.right)} for c in apart]
    for made_id, made in list(result.decisions.items()):
        if made.kind == "merge" and {normalise_name(made.left), normalise_name(made.right)} in names:
            del result.decisions[made_id]
    for choice in choices:
        if why := result.refused.get(choice.id):
            sides = (choice.left, choice.right)
            made = Decision(
                "review", sides[0].name, sides[1].name, "decision_not_applied", why, sides, choice.id
            )
            result.decisions[made.id] = made
