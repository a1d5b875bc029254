"""One record by its id or the beginning of it: one search for all commands."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from sqlalchemy import select
from sqlalchemy.orm import InstrumentedAttribute, Session

from corpus.errors import SettingsError

T = TypeVar("T")
_SHOWN = 12  # characters of an id
_CANDIDATES = 5


def by_beginning(
    session: Session,
    column: InstrumentedAttribute[str],
    given: str,
    noun: str,
    command: str,
    *conditions: Any,
) -> Any:
    """The one row whose id (``column``) is ``given`` or begins so, among those that meet the conditions.

    Raises SettingsError as ``one_by_beginning``.
    """
    query = select(column.class_).where(
        column.startswith(encodable(given, f"the id of a {noun}"), autoescape=True)
    )
    found = (
        session.scalars(query.where(*conditions).order_by(column).limit(_CANDIDATES + 1)).all()
        if given
        else []
    )
    return one_by_beginning(found, given, lambda row: str(getattr(row, column.key)), noun, command)


def one_by_beginning(
    found: Sequence[T], given: str, identity: Callable[[T], str], noun: str, command: str
) -> T:
    """The one record whose id is ``given`` or begins so.

    ``found``: records whose id begins with ``given``, a few are enough; ``command``
    lists the ids. Raises SettingsError with what to do where there is none or more than one.
    """
    if not given:
        raise SettingsError(f"give the id of a {noun} or its beginning; see: {command}")
    if not found:
        raise SettingsError(f"no {noun} has an id that begins with {given!r}; see: {command}")
    whole = [record for record in found if identity(record) == given]
    if len(found) > 1 and not whole:
        ids = sorted(identity(record) for record in found)
        length = max(_SHOWN, len(given) + 2)
        shown = ", ".join(key[:length] for key in ids[:_CANDIDATES])
        more = ", …" if len(ids) > _CANDIDATES else ""
        raise SettingsError(
            f"more than one {noun} has an id that begins with {given!r} ({shown}{more}); give more of the id"
        )
    return (whole or list(found))[0]


def encodable(text: str, what: str) -> str:
    """The text; raises SettingsError for lone surrogates, which are what a shell's bytes outside UTF-8 become."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise SettingsError(
            f"{what} is not UTF-8 (character {error.start + 1}): {ascii(text)[:80]}"
        ) from error
    return text
