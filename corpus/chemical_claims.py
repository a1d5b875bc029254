"""Who says what of a substance, so that what one list or entry said can be taken back alone.

A name's row holds the source that brought it first, a substance's row the values of all sources
together. Beside them every name, formula and UN number that a user's list or entry states is a
claim, also where the catalogue knew it already: a name or value stays as long as somebody claims it.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from pathlib import Path

from sqlalchemy import delete, or_, select
from sqlalchemy.orm import Session

from corpus.catalogue.tables import Chemical, ChemicalClaim, ChemicalName
from corpus.errors import SettingsError
from corpus.ids import digest
from corpus.name_sources import (
    ALIAS,
    LIST_ID,
    USER,
    USER_LIST,
    holder_of,
    is_users,
    old_source_of,
    owner,
    shortened,
    source_of,
)

NAME, FORMULA, UN = "name", "formula", "un"


class Claims:
    """The claims of the catalogue, or of some substances, and their changes in this session."""

    def __init__(self, session: Session, keys: Collection[str] | None = None) -> None:
        self._session = session
        self._by_key: dict[str, dict[tuple[str, str], dict[str, str]]] = {}
        query = select(ChemicalClaim).order_by(ChemicalClaim.claim_id)
        for row in session.scalars(query):
            if keys is None or row.key in keys:
                self._of(row.key, row.kind, row.value)[row.source] = row.claim_id

    def _of(self, key: str, kind: str, value: str) -> dict[str, str]:
        return self._by_key.setdefault(key, {}).setdefault((kind, value), {})

    def add(self, key: str, source: str, kind: str, value: str) -> None:
        """Note that the source says so; nothing where it did already."""
        held = self._of(key, kind, value)
        if source not in held:
            held[source] = digest("claim", key, source, kind, value)
            self._session.add(
                ChemicalClaim(claim_id=held[source], key=key, source=source, kind=kind, value=value)
            )

    def drop(self, key: str, source: str, kind: str, value: str) -> None:
        """Forget that the source says so."""
        claim_id = self._of(key, kind, value).pop(source, None)
        if claim_id is not None:
            self._session.execute(delete(ChemicalClaim).where(ChemicalClaim.claim_id == claim_id))

    def drop_source(self, source: str) -> None:
        """Forget all that the source says."""
        for key in self._by_key:
            for kind, value in list(self._by_key[key]):
                self.drop(key, source, kind, value)

    def holders(self, key: str, kind: str, value: str) -> list[str]:
        """Who says so: the built-in repository before users' sources."""
        return sorted(self._of(key, kind, value), key=lambda source: (is_users(source), source))

    def users(self, key: str) -> set[str]:
        """Users' sources that say anything of the substance."""
        return {source for held in self._by_key.get(key, {}).values() for source in held if is_users(source)}

    def values(self, key: str, source: str, kind: str) -> list[str]:
        """What a source says of one kind."""
        entries = self._by_key.get(key, {}).items()
        return sorted(value for (one, value), held in entries if one == kind and source in held)

    def first(self, key: str, kind: str) -> str | None:
        """A value that somebody claims still, the same one each time."""
        entries = self._by_key.get(key, {}).items()
        return min((value for (one, value), held in entries if one == kind and held), default=None)

    def keys(self, source: str) -> set[str]:
        """Substances of which the source says something."""
        return {
            key for key, entries in self._by_key.items() if any(source in held for held in entries.values())
        }

    def owns(self, source: str, row: ChemicalName) -> bool:
        """Whether the name's row is this source's (also one stored before lists had ids)."""
        return owner(row.source) == source or (
            owner(row.source) == LIST_ID.sub("", source) and source in self._of(row.key, NAME, row.name_id)
        )

    def claims(self, source: str, row: ChemicalName) -> bool:
        """Whether the source brought the name, or says it too."""
        return self.owns(source, row) or source in self._of(row.key, NAME, row.name_id)

    def hand_over(self, row: ChemicalName) -> bool:
        """Make a name another holder's, where there is one; whether it stays the main name is not changed."""
        holders = self.holders(row.key, NAME, row.name_id)
        if holders:
            row.source = holders[0] + (ALIAS if row.source.endswith(ALIAS) else "")
        return bool(holders)

    def take_back_values(self, chemical: Chemical, source: str) -> None:
        """Remove formula and UN numbers that only this source stated; nothing while it still has a name there."""
        key = chemical.key
        if self.values(key, source, NAME):
            return
        numbers, formulas = self.values(key, source, UN), self.values(key, source, FORMULA)
        for kind, values in ((UN, numbers), (FORMULA, formulas)):
            for value in values:
                self.drop(key, source, kind, value)
        gone = {number for number in numbers if not self.holders(key, UN, number)}
        chemical.un_numbers = [number for number in chemical.un_numbers if number not in gone]
        if chemical.formula in formulas and not self.holders(key, FORMULA, chemical.formula):
            chemical.formula = None

    def forget(self, key: str) -> None:
        """The substance is gone."""
        self._by_key.pop(key, None)
        self._session.execute(delete(ChemicalClaim).where(ChemicalClaim.key == key))


def sources_of(session: Session, row: ChemicalName) -> list[str]:
    """All sources of a name, the one that brought it first."""
    claimed = session.scalars(
        select(ChemicalClaim.source).where(
            ChemicalClaim.key == row.key, ChemicalClaim.kind == NAME, ChemicalClaim.value == row.name_id
        )
    )
    first = owner(row.source)
    return [row.source, *sorted(one for one in claimed if first not in (one, LIST_ID.sub("", one)))]


def unclaimed(session: Session) -> list[str]:
    """Users' sources whose names were stored before claims were kept, so that it is not known who else says them.

    Loading a list again notes what it says.
    """
    names = select(ChemicalName.key, ChemicalName.name_id, ChemicalName.source).where(
        or_(ChemicalName.source.startswith(USER_LIST), ChemicalName.source.in_((USER, USER + ALIAS)))
    )
    claims = select(ChemicalClaim.key, ChemicalClaim.value, ChemicalClaim.source).where(
        ChemicalClaim.kind == NAME
    )
    known = {(key, name_id, LIST_ID.sub("", source)) for key, name_id, source in session.execute(claims)}
    return sorted(
        {
            owner(source)
            for key, name_id, source in session.execute(names)
            if (key, name_id, LIST_ID.sub("", owner(source))) not in known
        }
    )


def imported_source(session: Session, which: str, protected: Sequence[Path]) -> str:
    """The source of the imported list that is meant: by path, bare file name or #id.

    Raises SettingsError where no such list was imported, several are meant, or it is ``protected``.
    """
    known = {
        owner(source)
        for column in (ChemicalName.source, Chemical.provenance, ChemicalClaim.source)
        for source in session.scalars(select(column).where(column.startswith(USER_LIST)).distinct())
    }
    path = Path(which)
    by_name = False
    if source_of(path) in known:
        found = {source_of(path)}
    elif re.fullmatch(r"(?:.* )?#[0-9a-f]{8}", which):
        found = {source for source in known if source.endswith(f" {which[-9:]}")}
    else:
        # earlier versions stored the bare name; a file that is there but was not imported is not another of its name
        found, by_name = {old_source_of(path)} & known, True
        if path.name == which and not path.is_file():
            found |= {source for source in known if LIST_ID.sub("", source) == shortened(path)}
    if len(found) > 1:
        raise SettingsError(
            f"several lists are called {path.name!r}: {', '.join(map(holder_of, sorted(found)))}; "
            "give the path or the #id"
        )
    if not found:
        raise SettingsError(f"no name came from a list {which!r}")
    (source,) = found
    if source in map(source_of, protected) or (by_name and path.name in {p.name for p in protected}):
        raise SettingsError(
            f"{holder_of(source)} is (or has the name of) the list of the sample source, which the sample site "
            "is asked for; it is not removed. For a list of your own give its path or #id"
        )
    return source
