"""Alembic environment: migrates the engine that the catalogue hands in."""

from __future__ import annotations

from typing import Any, Literal

import sqlalchemy as sa
from alembic import context

from corpus.catalogue.tables import Base, UtcDateTime


def _render(kind: str, item: Any, _context: Any) -> str | Literal[False]:
    """Write plain column types into migrations, so that old ones never import today's tables."""
    return "sa.DateTime(timezone=True)" if kind == "type" and isinstance(item, UtcDateTime) else False


_LOCK = 5216771  # any number that nobody else uses in this database

engine = context.config.attributes["engine"]
with engine.connect() as connection:
    # One process at a time: a second one waits here and then finds nothing left to do.
    if connection.dialect.name == "sqlite":
        connection = connection.execution_options(hchem_immediate=True)
    else:
        connection.execute(sa.text(f"SELECT pg_advisory_xact_lock({_LOCK})"))
    context.configure(
        connection=connection,
        target_metadata=Base.metadata,
        render_as_batch=True,
        render_item=_render,
    )
    with context.begin_transaction():
        context.run_migrations()
    connection.commit()
