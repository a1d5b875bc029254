"""Words that commands share: counts with their noun, and one record by the beginning of its id."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from corpus.errors import SettingsError

T = TypeVar("T")
_SHOWN = 12  # characters of an id
_CANDIDATES = 5


def counted(number: int, noun: str, plural: str = "") -> str:
    """ "1 conflict", "2 conflicts"; ``plural`` where it is not the noun with an s."""
    return f"{number} {noun if number == 1 else plural or noun + 's'}"


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
