"""Rounds of crawls with what they have spent; hosts that asked to be left alone"""

from __future__ import annotations

from datetime import timedelta

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"

_MARKER = "crawl:"  # rounds were marked in the table of leases, which ended after this age
_AGE = timedelta(days=7)


def _leases() -> sa.TableClause:
    return sa.table(
        "leases",
        sa.column("resource", sa.String),
        sa.column("holder", sa.Text),
        sa.column("expires_at", sa.DateTime(timezone=True)),
    )


def _rounds() -> sa.TableClause:
    return sa.table(
        "crawl_rounds",
        sa.column("source", sa.String),
        sa.column("round_id", sa.String),
        sa.column("began_at", sa.DateTime(timezone=True)),
        sa.column("bytes_received", sa.BigInteger),
    )


def upgrade() -> None:
    op.create_table(
        "crawl_rounds",
        sa.Column("source", sa.String(length=64), nullable=False),
        sa.Column("round_id", sa.String(length=64), nullable=False),
        sa.Column("began_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("bytes_received", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("source"),
    )
    op.create_table(
        "host_pauses",
        sa.Column("host", sa.String(length=255), nullable=False),
        sa.Column("until", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("host"),
    )
    leases, rounds = _leases(), _rounds()
    is_marker = leases.c.resource.startswith(_MARKER)
    for resource, holder, expires_at in op.get_bind().execute(sa.select(leases).where(is_marker)).all():
        source, began_at = resource.removeprefix(_MARKER), expires_at - _AGE
        op.execute(
            sa.insert(rounds).values(source=source, round_id=holder, began_at=began_at, bytes_received=0)
        )
    op.execute(sa.delete(leases).where(is_marker))


def downgrade() -> None:
    leases, rounds = _leases(), _rounds()
    for source, round_id, began_at, _ in op.get_bind().execute(sa.select(rounds)).all():
        op.execute(
            sa.insert(leases).values(resource=_MARKER + source, holder=round_id, expires_at=began_at + _AGE)
        )
    op.drop_table("host_pauses")
    op.drop_table("crawl_rounds")
