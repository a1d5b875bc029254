"""What people decide on identity: merges, separations, answers to the review list, and taking them back.

Decisions are appended to the catalogue with who, when and why, and never deleted;
the next resolve applies those that stand. A person is held to the hard blocks that
rules and models are held to (``kg.proposals.refusal``).
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from sqlalchemy import Row, select
from sqlalchemy.orm import Session

from corpus.catalogue.tables import Document, Entity, EntityAlias, EntityDecision, LedgerRow, now
from corpus.errors import SettingsError
from corpus.ids import digest
from corpus.lookup import by_beginning, encodable, one_by_beginning
from corpus.names import as_cas, normalise_name
from kg.components import Choice, Mention, Side, strength
from kg.proposals import refusal, stated
from kg.resolution import ITEM, curated_table, decided_state, load_rows, mentions_of, standing_choices
from kg.steps import RESOLVE

BEHIND = (
    "takes effect with the next `hchem run graph`; until then graph, questions and evaluation are as before"
)
_SHOWN = 12  # characters of a decision's id
_LEAST_PREFIX = 6


@dataclass(frozen=True)
class Made:
    """A decision that was recorded (or, on trial, would be)."""

    id: str
    kind: str
    left: Side
    right: Side
    why: str
    by: str
    undoes: str = ""

    @property
    def words(self) -> str:
        """For people."""
        ends = f"{self.left.shown} and {self.right.shown}"
        return {
            "merge": f"{ends} are one substance",
            "keep-apart": f"{ends} are two substances",
            "undo": f"decision {self.undoes[:_SHOWN]} on {ends} is taken back",
        }[self.kind]

    def as_dict(self) -> dict[str, Any]:
        """Plain data."""
        return {
            "id": self.id, "kind": self.kind, "left": self.left.as_dict(), "right": self.right.as_dict(),
            "why": self.why, "by": self.by, "undoes": self.undoes,
        }  # fmt: skip


# --- entities by key or name -----------------------------------------------------------


def find_entity(session: Session, text: str) -> Entity:
    """The entity that a key, a CAS number or a name leads to.

    Raises SettingsError for an unknown name, and with the candidates for one of several.
    """
    encodable(text, "the name of an entity")
    for key in (text, as_cas(text) or text):
        if entity := session.get(Entity, key):
            return entity
    form = normalise_name(text)[:512]
    rows = session.scalars(select(EntityAlias).where(EntityAlias.normalised == form)).all() if form else []
    plain = {row.key for row in rows if not row.ambiguous}
    keys = plain if len(plain) == 1 else {row.key for row in rows}
    if not keys and text.startswith(("name:", "mixture:")) and len(text.partition(":")[2]) >= _LEAST_PREFIX:
        keys = set(session.scalars(select(Entity.key).where(Entity.key.startswith(text, autoescape=True))))
    if len(keys) > 1:
        listed = "; ".join(f"{key} ({entity_name(session, key)})" for key in sorted(keys))
        raise SettingsError(f"{text!r} may be any of {len(keys)} entities; give the key of one: {listed}")
    entity = session.get(Entity, next(iter(keys))) if keys else None
    if entity is None:
        raise SettingsError(
            f"no entity is known as {text!r}{_vanished(session, text)} (see: hchem entities list --name …)"
        )
    return entity


def _vanished(session: Session, text: str) -> str:
    form = normalise_name(text)
    for choice in standing_choices(session):
        if any(text == side.key or form == normalise_name(side.name) for side in (choice.left, choice.right)):
            return f"; decision {choice.id[:_SHOWN]} speaks of it, but no document does any more"
    return ""


def entity_name(session: Session, key: str) -> str:
    """How an entity is called, for people: its preferred names, or what its one document writes."""
    entity = session.get(Entity, key)
    if entity is None:
        return key
    if entity.names:
        return " / ".join(str(entity.names[language]) for language in sorted(entity.names))
    document = session.get(Document, str(entity.properties.get("document", "")))
    written = str(entity.properties.get("written", key))
    return f"{written} in {document.title or document.document_id[:_SHOWN]!r}" if document else written


def _mentions(session: Session, keys: Collection[str]) -> dict[str, list[Mention]]:
    """Mentions by the key that the last resolve gave them."""
    rows = load_rows(session, keys)
    given = {(r.document, r.subject, r.mixture): r.subject_key for r in rows}
    given |= {(r.document, r.object, False): r.object_key for r in rows if r.object_key in keys}
    found: dict[str, list[Mention]] = {key: [] for key in keys}
    for mention in mentions_of(rows):
        if (key := given.get(mention.ref, "")) in found:
            found[key].append(mention)
    return found


def _side(session: Session, entity: Entity, name: str = "") -> Side:
    """A side with a name that documents use, so that it is found again under another key."""
    counts = Counter(m.name for m in _mentions(session, [entity.key])[entity.key])
    form = normalise_name(name)
    ranked = sorted(counts, key=lambda n: (normalise_name(n) != form, -counts[n], len(n), n))
    shown = ranked[0] if ranked else entity_name(session, entity.key)
    return Side(entity.key, shown, str(entity.properties.get("document", "")))


# --- deciding --------------------------------------------------------------------------


def merge(session: Session, one: str, two: str, why: str, by: str) -> Made:
    """Decide that two entities are one substance. Raises SettingsError for whatever forbids it."""
    left, right = (find_entity(session, text) for text in (one, two))
    if left.key == right.key:
        same = normalise_name(one) == normalise_name(two)
        raise SettingsError(
            f"{one!r} cannot be merged with itself"
            if same
            else f"{one!r} and {two!r} are one entity already ({left.key})"
        )
    sides = (_side(session, left, one), _side(session, right, two))
    return _record_merge(session, sides, why, by)


def _record_merge(session: Session, sides: tuple[Side, Side], why: str, by: str, review: str = "") -> Made:
    if problem := forbids(session, *sides):
        raise SettingsError(f"{sides[0].shown} and {sides[1].shown} cannot be merged: {problem}")
    return _record(session, "merge", sides, why, by, review=review)


def forbids(session: Session, left: Side, right: Side) -> str:
    """Why two sides must not become one, everything counted that is merged with them already; "" for nothing."""
    if problem := _joined(session, left, right):
        return problem
    choices = standing_choices(session)
    groups = _groups(session, choices)
    ends = [_root(groups, left.key), _root(groups, right.key)]
    for choice in choices:
        if choice.kind == "keep-apart":
            others = {_root(groups, _present(session, side)) for side in (choice.left, choice.right)}
            if others == set(ends):
                return (
                    f"decision {choice.id[:_SHOWN]} keeps {choice.left.shown} and {choice.right.shown} apart "
                    f"({choice.why}); take it back first: hchem entities undo {choice.id[:_SHOWN]}"
                )
    members = {end: [key for key in {*groups, *ends} if _root(groups, key) == end] for end in ends}
    mentions = _mentions(session, [key for keys in members.values() for key in keys])
    both = [(end, [m for key in members[end] for m in mentions[key]]) for end in ends]
    problem = refusal(both[0], both[1], curated_table(session))
    return f"{problem}; a shared identifier or a name in the repository would prove it" if problem else ""


def _groups(session: Session, choices: Iterable[Choice]) -> dict[str, str]:
    """Keys → the keys that standing merges join them to, whether a run has applied them yet or not."""
    groups: dict[str, str] = {}
    for choice in choices:
        if choice.kind == "merge":
            ends = [_root(groups, _present(session, side)) for side in (choice.left, choice.right)]
            if all(ends) and ends[0] != ends[1]:
                stays, goes = sorted(ends, key=strength)
                groups[goes] = stays
    return groups


def _root(groups: Mapping[str, str], key: str) -> str:
    while key in groups:
        key = groups[key]
    return key


def _joined(session: Session, left: Side, right: Side) -> str:
    """Whether standing merges make the two one, in words."""
    choices = standing_choices(session)
    groups = _groups(session, choices)
    if _root(groups, left.key) != _root(groups, right.key):
        return ""
    made = [c for c in choices if c.kind == "merge" and {c.left.key, c.right.key} & {left.key, right.key}]
    if not made and left.key == right.key:
        return "the last run made them one; to take that back: hchem entities split"
    return _made_one(made)


def _made_one(made: Iterable[Choice]) -> str:
    ids = [choice.id[:_SHOWN] for choice in made]
    back = (
        f"; to take it back: hchem entities undo {ids[0]}"
        if len(ids) == 1
        else "; see: hchem entities history"
    )
    return f"decision {', '.join(ids) or 'of a person'} makes them one already{back}"


def _against_split(session: Session, left: Side, right: Side) -> str:
    """What forbids that a separation stands again, in words; "" for nothing.

    That the last run made the two one forbids nothing where it was the rules: to undo
    that is what the separation is for. A standing merge of people does.
    """
    if left.key != right.key:
        return _joined(session, left, right)
    form = normalise_name(right.name)
    made = [
        c
        for c in standing_choices(session)
        if c.kind == "merge" and any(normalise_name(side.name) == form for side in (c.left, c.right))
    ]
    return _made_one(made) if made else ""


def _present(session: Session, side: Side) -> str:
    """Key of the entity that a side speaks of, "" where there is none; a name alone stands for itself."""
    if side.key and session.get(Entity, side.key) is not None:
        return side.key
    rows = session.scalars(
        select(EntityAlias.key).where(EntityAlias.normalised == normalise_name(side.name)[:512]).distinct()
    ).all()
    return rows[0] if len(rows) == 1 else side.key


def split(session: Session, one: str, two: str, why: str, by: str, document: str = "") -> Made:
    """Take a merge back: that of a person by its record, one of the rules by keeping the second name apart.

    ``document``: only this document's mention of the second name leaves.
    Raises SettingsError where the two are not one.
    """
    made = [c for c in standing_choices(session) if c.kind == "merge" and _speaks(c, one) and _speaks(c, two)]
    if len(made) == 1 and not document:
        return undo(session, made[0].id, why, by)
    entity = find_entity(session, one)
    mentions = _mentions(session, [entity.key])[entity.key]
    form = normalise_name(two)
    leaving = [m for m in mentions if normalise_name(m.name) == form and m.document.startswith(document)]
    if not leaving:
        known = sorted({m.name for m in mentions})
        raise SettingsError(
            f"{two!r} is not a name under which documents{f' ({document})' if document else ''} speak of "
            f"{entity_name(session, entity.key)} ({entity.key}); those are: {', '.join(known[:20]) or 'none'}"
        )
    merged = [
        c
        for c in standing_choices(session)
        if c.kind == "merge" and any(normalise_name(s.name) == form for s in (c.left, c.right))
    ]
    if merged and not document:
        listed = ", ".join(f"{c.id[:_SHOWN]} ({c.left.shown}, {c.right.shown})" for c in merged)
        raise SettingsError(
            f"people merged {two!r}: take back what is meant with hchem entities undo: {listed}"
        )
    staying = Counter(m.name for m in mentions if m not in leaving)
    if not staying:
        raise SettingsError(
            f"{two!r} is the only name of {entity.key}; nothing would be left (see --document for one of several)"
        )
    if document:
        one_by_beginning(
            sorted({m.document for m in leaving}), document, str, "document", "hchem documents list"
        )
    left = Side(entity.key, max(sorted(staying), key=lambda name: staying[name]))
    right = Side("", leaving[0].name, leaving[0].document if document else "")
    return _record(session, "keep-apart", (left, right), why, by)


def _speaks(choice: Choice, text: str) -> bool:
    form = normalise_name(text)
    cas = as_cas(text)
    return any(
        side.key in {text, cas} or normalise_name(side.name) == form for side in (choice.left, choice.right)
    )


def undo(session: Session, decision: str, why: str, by: str) -> Made:
    """Take a person's decision back, one that took something back included.

    Raises SettingsError for an unknown decision, one that does not stand, and a merge
    that would come back against a block or a later decision.
    """
    row = find_decision(session, decision)
    if row.undone:
        taker = session.scalars(
            select(EntityDecision).where(
                EntityDecision.undoes == row.decision_id, EntityDecision.undone.is_(False)
            )
        ).first()
        hint = f" by {taker.decision_id[:_SHOWN]}" if taker else ""
        raise SettingsError(
            f"decision {row.decision_id[:_SHOWN]} is taken back already{hint}"
            + (f"; to restore it: hchem entities undo {taker.decision_id[:_SHOWN]}" if taker else "")
        )
    sides = (Side.of(row.detail["left"]), Side.of(row.detail["right"]))
    first = _decided(session, row)
    if first.undone:  # it will stand again
        left, right = (_now(session, side) for side in sides)
        problem = (
            forbids(session, left, right) if first.kind == "merge" else _against_split(session, left, right)
        )
        if problem:
            raise SettingsError(f"decision {first.decision_id[:_SHOWN]} cannot come back: {problem}")
    made = _record(session, "undo", sides, why, by, undoes=row.decision_id)
    _mark(session, row, undone=True)
    return made


def _now(session: Session, side: Side) -> Side:
    return Side(_present(session, side), side.name, side.document)


def _decided(session: Session, row: EntityDecision) -> EntityDecision:
    """The merge or separation at the end of a chain of undoing."""
    while row.kind == "undo":
        row = session.get_one(EntityDecision, row.undoes)
    return row


def _mark(session: Session, row: EntityDecision, *, undone: bool) -> None:
    """Whether a decision stands; what it took back then stands the other way."""
    row.undone = undone
    if row.kind == "undo":
        _mark(session, session.get_one(EntityDecision, row.undoes), undone=not undone)


def find_decision(session: Session, text: str) -> EntityDecision:
    """A person's decision by its id or the beginning of it. Raises SettingsError."""
    row: EntityDecision = by_beginning(
        session, EntityDecision.decision_id, text, "decision", "hchem entities history"
    )
    if row.decided_by == "rules":
        raise SettingsError(
            f"{text!r} was decided by the rules; a merge of theirs is taken back with hchem entities split"
        )
    return row


def _record(
    session: Session,
    kind: Literal["merge", "keep-apart", "undo"],
    sides: tuple[Side, Side],
    why: str,
    by: str,
    *,
    undoes: str = "",
    review: str = "",
) -> Made:
    encodable(why, "--why")
    encodable(by, "--by")
    why, by = " ".join(why.split()), " ".join(by.split())[:64]
    if not why:
        raise SettingsError("say why (--why): a decision without a reason cannot be judged later")
    if by in ("", "rules"):
        raise SettingsError("say who decides (--by)")
    at = now()
    made = Made(
        digest("decision", kind, *(v for s in sides for v in s.as_dict().values()), why, by, at.isoformat()),
        kind, sides[0], sides[1], why, by, undoes,
    )  # fmt: skip
    session.add(
        EntityDecision(
            decision_id=made.id, kind=kind, left_key=sides[0].key[:128], right_key=sides[1].key[:128],
            rule="person", why=why, decided_by=by, at=at, undoes=undoes,
            detail={"left": sides[0].as_dict(), "right": sides[1].as_dict()} | ({"review": review} if review else {}),
        )
    )  # fmt: skip
    session.flush()
    return made


# --- the review list ---------------------------------------------------------------------


@dataclass(frozen=True)
class Case:
    """An entry of the review list. ``evidence``: what the documents of both sides say, with their titles."""

    id: str
    rule: str
    why: str
    names: tuple[str, str]
    sides: tuple[Side, Side] | None
    proposal: str
    evidence: tuple[dict[str, Any], ...]
    of: str = ""

    def as_dict(self) -> dict[str, Any]:
        """Plain data."""
        sides = self.sides or ()
        return {
            "id": self.id, "rule": self.rule, "why": self.why, "names": list(self.names),
            "sides": [side.as_dict() for side in sides], "proposal": self.proposal,
            "evidence": list(self.evidence), "about": self.of, "can_be_decided": bool(sides) and not self.of,
        }  # fmt: skip


def review_cases(session: Session, limit: int | None = None) -> list[Case]:
    """What rules and models left open and nobody has settled since, in id order, with evidence."""
    return [case_of(session, row) for row in review_rows(session)[:limit]]


def review_rows(session: Session, case: str = "") -> list[Row[Any]]:
    """The open entries of the review list as they are stored, in id order: thousands cost no more than their rows.

    ``case``: only those whose id is this or begins so.
    """
    columns = (
        EntityDecision.decision_id,
        EntityDecision.left_key,
        EntityDecision.right_key,
        EntityDecision.rule,
        EntityDecision.why,
        EntityDecision.detail,
    )
    query = select(*columns).where(
        EntityDecision.kind.in_(("review", "keep-apart")),
        EntityDecision.decided_by == "rules",
        EntityDecision.undone.is_(False),
    )
    if case:
        query = query.where(EntityDecision.decision_id.startswith(case, autoescape=True))
    people = select(EntityDecision.detail).where(
        EntityDecision.decided_by != "rules", EntityDecision.undone.is_(False), EntityDecision.kind != "undo"
    )
    settled = {str(detail.get("review", "")) for detail in session.scalars(people)}
    rows = session.execute(query.order_by(EntityDecision.decision_id)).all()
    about = any(row.detail.get("of") for row in rows)
    standing = {choice.id for choice in standing_choices(session)} if about else set()
    return [
        row
        for row in rows
        if row.decision_id not in settled and (not row.detail.get("of") or row.detail["of"] in standing)
    ]


def case_of(session: Session, row: Row[Any]) -> Case:
    """An entry with what the documents of both sides say."""
    detail = row.detail or {}
    sides = (Side.of(detail["left"]), Side.of(detail["right"])) if "left" in detail else None
    documents = list(detail.get("documents", ()))
    evidence: list[dict[str, Any]] = []
    if sides and documents:
        said = stated(session, {(d, s.name) for d, s in zip(documents, sides, strict=True)})
        for place, side in zip(documents, sides, strict=True):
            document = session.get(Document, place)
            found = said[place, side.name]
            evidence.append(
                {
                    "name": side.name, "key": side.key, "document": place,
                    "title": document.title if document else "", "url": document.url if document else "",
                    "formulae": sorted(found.formulae), "quotes": list(found.contexts),
                }
            )  # fmt: skip
    return Case(
        row.decision_id, row.rule, row.why, (row.left_key, row.right_key), sides,
        str(detail.get("proposal", "")), tuple(evidence), str(detail.get("of", "")),
    )  # fmt: skip


def settle(session: Session, case: str, why: str, by: str, *, accept: bool) -> Made:
    """Answer an entry of the review list: the two are one (accept) or two (reject). Raises SettingsError."""
    found = review_rows(session, case) if case else []
    row = one_by_beginning(found, case, lambda r: r.decision_id, "open case", "hchem entities review")
    entry = case_of(session, row)
    if entry.of:
        raise SettingsError(
            f"{entry.id[:_SHOWN]} says that decision {entry.of[:_SHOWN]} cannot be applied; take that back: "
            f"hchem entities undo {entry.of[:_SHOWN]}"
        )
    if entry.sides is None:
        raise SettingsError(
            f"{entry.id[:_SHOWN]} is no pair of two entities ({entry.rule}); it cannot be decided"
        )
    left, right = sorted((_now(session, side) for side in entry.sides), key=lambda side: strength(side.key))
    if accept:
        return _record_merge(session, (left, right), why, by, entry.id)
    if problem := _joined(session, left, right):
        raise SettingsError(f"{left.shown} and {right.shown} cannot be kept apart: {problem}")
    return _record(session, "keep-apart", (left, right), why, by, review=entry.id)


# --- history --------------------------------------------------------------------------------


def history(session: Session, text: str = "") -> list[dict[str, Any]]:
    """What people decided, oldest first: who, when, why, whether it stands and whether it could be applied.

    ``text``: only decisions that speak of this key or name.
    """
    rows = session.scalars(select(EntityDecision).where(EntityDecision.decided_by != "rules")).all()
    takers: dict[str, list[EntityDecision]] = defaultdict(list)
    for row in rows:
        takers[row.undoes].append(row)
    problems = {
        str(row.detail.get("of", "")): row.why
        for row in session.scalars(
            select(EntityDecision).where(EntityDecision.rule == "decision_not_applied")
        )
    }
    found = []
    for row in sorted(rows, key=lambda r: (r.at or now(), r.decision_id)):
        sides = [Side.of(row.detail.get(side, {})) for side in ("left", "right")]
        if text and not _speaks(Choice("", "merge", sides[0], sides[1]), text):
            continue
        taken = [taker.decision_id for taker in takers[row.decision_id] if not taker.undone]
        found.append(
            {
                "id": row.decision_id, "kind": row.kind, "left": sides[0].as_dict(), "right": sides[1].as_dict(),
                "why": row.why, "by": row.decided_by, "at": row.at.isoformat() if row.at else "",
                "undoes": row.undoes, "stands": not row.undone, "taken_back_by": taken[0] if taken else "",
                "review": str(row.detail.get("review", "")), "problem": problems.get(row.decision_id, ""),
            }
        )  # fmt: skip
    return found


def waiting(session: Session) -> bool:
    """Whether people decided something that the last resolve did not know of."""
    row = session.get(LedgerRow, (RESOLVE, ITEM))
    return decided_state(session) != (row.detail if row is not None else decided_none())


def decided_none() -> str:
    """The state in which nobody has decided anything."""
    return digest("decided")
