"""Whether two substances react, where the knowledge base holds a denial: "no" with the words that say so.

"与水不发生反应" shares few words with "甲苯与水反应吗", and stands on pages in either
language, so a search by words misses it; the assertion that was extracted from it does not.
A "no" rests on a denial that a page states, never on there being nothing else.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass

from sqlalchemy import ColumnElement, and_, or_, select
from sqlalchemy.orm import Session

from chunking.subjects import Subjects, fold_names
from corpus.catalogue.tables import Assertion, Document, EntityAlias
from corpus.names import normalise_name

_EN = re.compile(
    r"(?:does|do|will|would|can|could)\s+(?:the\s+|an?\s+)?(?P<one>.+?)\s+(?:chemically\s+)?react\s+with\s+(?:the\s+|an?\s+)?(?P<other>.+?)"
    r"|is\s+(?:the\s+|an?\s+)?(?P<is_one>.+?)\s+reactive\s+(?:with|to|towards?)\s+(?:the\s+|an?\s+)?(?P<is_other>.+?)",
    re.IGNORECASE,
)
_MAY_ZH = r"(?:会不会|能不能|可不可以|能否|会否|是否(?:会|能|可以)?|会|能|可以|可)?"

_ZH = re.compile(
    rf"(?:请问)?(?P<one>.+?){_MAY_ZH}(?:[与和跟同及遇])(?P<other>.+?)(?:之间|接触|混合)?{_MAY_ZH}(?:发生|起|有)?(?:化学)?反应(?:吗|么|嘛|不|否)?"
)
# "does not react violently" may react
_VIOLENT = re.compile(
    r"(?:^| )(?:剧烈|激烈|猛烈|强烈|爆炸性|危险|violently|vigorously|explosively|dangerously)(?: |$)",
    re.IGNORECASE,
)
_MOST = 3
_WATER = "7732-18-5"
# hazard statements of substances that react with water
_WITH_WATER = ("H260", "H261", "EUH014", "EUH029")
_SAID = {
    "no": {"zh": "否。", "en": "No."},
    "limited": {
        "zh": "页面称不反应，所述情形：{}。",
        "en": "The pages say that it does not, in these circumstances: {}.",
    },
    "solution": {"zh": "页面所述的溶液或混合物", "en": "the solution or mixture of the page"},
    "differ": {"zh": "各页面所述不一：", "en": "The pages differ:"},
}


@dataclass(frozen=True)
class Held:
    """An answer from what is held. ``facts``: its assertions, those in the question's language first."""

    answer: str
    facts: tuple[Assertion, ...]


def reaction_asked(question: str) -> tuple[str, str] | None:
    """The two names of a plain question whether one reacts with the other; None for any other question.

    A question with a circumstance ("when heated", "剧烈") is another one.
    """
    plain = question.strip().rstrip("?？。. ")
    found = _EN.fullmatch(plain) or _ZH.fullmatch(plain)
    if found is None:
        return None
    one, other = (words for name, words in found.groupdict().items() if words)
    return one.strip(), other.strip()


def held_denial(session: Session, question: str, language: str, subjects: Subjects) -> Held | None:
    """The answer of held denials to a question whether two substances react; None where none is held.

    With a condition it is no plain "no", and where a page states the reaction, or a class of
    matter with it, both are told.
    """
    asked = reaction_asked(question)
    if asked is None:
        return None
    one, other = (_keys(subjects, name) for name in asked)
    if not one or not other or one & other:
        return None
    dissolved = _solutions(session, asked, one | other)
    facts = _between(session, one | dissolved[0], other | dissolved[1])
    denied = [fact for fact in facts if fact.polarity == "negative" and not _VIOLENT.search(_limits(fact))]
    if not denied:
        return None
    stated = [fact for fact in facts if fact.polarity != "negative"]
    stated += [*_by_class(session, one, other), *_by_class(session, other, one)]
    solutions = dissolved[0] | dissolved[1]
    plain = [
        fact for fact in denied if not fact.conditions and not {fact.subject_key, fact.object_key} & solutions
    ]
    if stated:
        said, chosen = _SAID["differ"][language], _apart(stated, language) + _apart(denied, language)
    elif plain:
        said, chosen = _SAID["no"][language], _apart(plain, language)
    else:
        chosen = _apart(denied, language)
        limits = dict.fromkeys(str(value) for fact in chosen for value in fact.conditions.values())
        if any({fact.subject_key, fact.object_key} & solutions for fact in chosen):
            limits[_SAID["solution"][language]] = None
        said = _SAID["limited"][language].format(("；" if language == "zh" else "; ").join(limits))
    return Held("\n".join([said, *(fact.quote for fact in chosen)]), tuple(chosen))


def _limits(fact: Assertion) -> str:
    return " ".join(str(value) for value in fact.conditions.values())


def _keys(subjects: Subjects, name: str) -> frozenset[str]:
    """Keys of what a name is the whole name of; none where it may be several substances."""
    keys = subjects.named(name)
    pure = [key for key in keys if not key.startswith(("mixture:", "name:"))]
    return keys if fold_names(name) in subjects.names(keys) and len(pure) <= 1 else frozenset()


def _solutions(
    session: Session, asked: tuple[str, str], known: Collection[str]
) -> tuple[frozenset[str], frozenset[str]]:
    """Keys of mixtures that pages call by the names: what holds for them is no plain "no" for the substance."""
    found = []
    for name in asked:
        keys = session.scalars(
            select(EntityAlias.key).where(
                EntityAlias.normalised == normalise_name(name), EntityAlias.key.startswith("mixture:")
            )
        )
        found.append(frozenset(keys).difference(known))
    return found[0], found[1]


def _between(session: Session, one: Collection[str], other: Collection[str]) -> list[Assertion]:
    return _kept(
        session,
        Assertion.relation == "INCOMPATIBLE_WITH",
        or_(
            and_(Assertion.subject_key.in_(one), Assertion.object_key.in_(other)),
            and_(Assertion.subject_key.in_(other), Assertion.object_key.in_(one)),
        ),
    )


def _by_class(session: Session, one: Collection[str], other: Collection[str]) -> list[Assertion]:
    """That the one does not agree with a class which the other belongs to, or is known to react with water."""
    classes = select(Assertion.object_key).where(
        Assertion.state == "kept",
        Assertion.polarity == "positive",
        Assertion.relation == "MEMBER_OF",
        Assertion.subject_key.in_(other),
    )
    found = _kept(
        session,
        Assertion.relation == "INCOMPATIBLE_WITH",
        Assertion.polarity == "positive",
        Assertion.subject_key.in_(one),
        Assertion.object_key.in_(classes),
    )
    if _WATER in other:
        found += _kept(
            session,
            Assertion.relation == "HAS_H",
            Assertion.polarity == "positive",
            Assertion.subject_key.in_(one),
            Assertion.object.in_(_WITH_WATER),
        )
    return found


def _kept(session: Session, *where: ColumnElement[bool]) -> list[Assertion]:
    """Kept assertions whose quote stands in the present version of its document."""
    rows = session.execute(
        select(Assertion, Document.text)
        .join(Document, Document.document_id == Assertion.document_id)
        .where(Assertion.state == "kept", Document.version_id == Assertion.version_id, *where)
        .order_by(Assertion.assertion_id)
    )
    return [fact for fact, text in rows if fact.quote and text[fact.start : fact.end] == fact.quote]


def _apart(facts: list[Assertion], language: str) -> list[Assertion]:
    """A few that say something else each, those in the language of the question first."""
    ordered = sorted(facts, key=lambda fact: not fact.language.startswith(language))
    known: dict[str, Assertion] = {}
    for fact in ordered:
        known.setdefault("".join(fact.quote.split()), fact)
    return list(known.values())[:_MOST]
