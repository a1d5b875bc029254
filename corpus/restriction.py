"""What a restricted run works on: only some sources, substances, or contents of a span of time.

The one place where a restriction becomes a choice of pages and of documents. A document
belongs to its page: to the page's source, to the substances that led to it, and to the moment
at which the page's present content was transferred. Records without a page (reference data)
and pages that no transfer is recorded of count as of ``EPOCH``, so that every page and every
document is in exactly one span of any division of time.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, TypeVar

from sqlalchemy import ColumnElement, Select, exists, func, literal, or_, select
from sqlalchemy.orm import Session

from corpus.catalogue.tables import Document, Page, UtcDateTime
from corpus.chemicals import find_chemicals
from corpus.errors import SettingsError

if TYPE_CHECKING:
    from corpus.stages import StageContext

Query = TypeVar("Query", bound="Select[*tuple[Any, ...]]")

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MOMENT: ColumnElement[datetime] = func.coalesce(Page.fetched_at, Page.first_seen, literal(EPOCH, UtcDateTime))
"""When a page's present content was transferred."""

_AGO = re.compile(r"([0-9]{1,5})\s*([hdw])")
_UNITS = {"h": timedelta(hours=1), "d": timedelta(days=1), "w": timedelta(weeks=1)}


def is_restricted(ctx: StageContext) -> bool:
    """Whether a run sees only a part, so that what it does not see need not have vanished."""
    return bool(ctx.limit) or _narrowed(ctx)


def _narrowed(ctx: StageContext) -> bool:
    return bool(ctx.sources or ctx.chemicals or ctx.since or ctx.until)


def pages(session: Session, ctx: StageContext) -> list[ColumnElement[bool]]:
    """Conditions on ``Page`` for a query of what the run works on; empty where it is not restricted."""
    conditions: list[ColumnElement[bool]] = []
    if ctx.sources:
        conditions.append(Page.source.in_(list(ctx.sources)))
    if ctx.chemicals:
        conditions.append(_leads_from(session, keys_of(session, ctx.chemicals)))
    if ctx.since is not None:
        conditions.append(ctx.since <= MOMENT)
    if ctx.until is not None:
        conditions.append(ctx.until > MOMENT)
    return conditions


def documents(session: Session, ctx: StageContext, query: Query) -> Query:
    """A query of documents, restricted to what the run works on."""
    if not _narrowed(ctx):
        return query
    if ctx.sources:
        query = query.where(Document.source.in_(list(ctx.sources)))
    conditions = pages(session, ctx)
    of_page = Document.page_id.in_(select(Page.page_id).where(*conditions))
    if ctx.chemicals or not within(EPOCH, ctx.since, ctx.until):
        return query.where(of_page)
    return query.where(or_(of_page, Document.page_id == ""))


def within(moment: datetime, since: datetime | None, until: datetime | None) -> bool:
    """Whether a moment is in a span of time, whose end is not in it."""
    return (since is None or since <= moment) and (until is None or moment < until)


def keys_of(session: Session, words: Sequence[str]) -> list[str]:
    """Keys of the substances that names (of any language), CAS numbers or keys lead to; an unknown word stays as it is."""
    found: set[str] = set()
    for word in words:
        found.update(find_chemicals(session, word) or [word])
    return sorted(found)


def unknown_chemicals(session: Session, words: Sequence[str]) -> list[str]:
    """The words that lead to no substance of the name repository."""
    return [word for word in words if not find_chemicals(session, word)]


def _leads_from(session: Session, keys: Sequence[str]) -> ColumnElement[bool]:
    """Whether one of the substances is among those that led to the page (a JSON list)."""
    named: ColumnElement[Any]
    if session.get_bind().dialect.name == "postgresql":
        named = func.json_array_elements_text(Page.chemicals).column_valued("named")
    else:
        named = func.json_each(Page.chemicals).table_valued("value").c.value
    return exists(select(literal(1)).where(named.in_(list(keys))))


def moment_of(text: str, now: datetime) -> datetime:
    """The moment that ``2026-11-01``, ``2026-11-01T06:00`` (UTC where no zone is given), ``7d``, ``12h`` or ``2w`` means.

    Raises SettingsError for anything else, for a moment that is yet to come, and for one before ``EPOCH``.
    """
    given = text.strip()
    ago = _AGO.fullmatch(given)
    try:
        if ago is not None:
            moment = now - int(ago[1]) * _UNITS[ago[2]]
        else:
            moment = datetime.fromisoformat(given)
    except (ValueError, OverflowError) as error:
        raise SettingsError(
            f"{text!r} is no date: give 2026-11-01, or how long ago: 7d, 12h, 2w (--since)"
        ) from error
    moment = moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
    if moment > now:
        raise SettingsError(f"{text!r} is yet to come (--since)")
    if moment < EPOCH:
        raise SettingsError(f"{text!r} is before 1970, and no page is that old (--since)")
    return moment
