"""Decisions of people on identity: when, what they take back, and the two sides"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    with op.batch_alter_table("entity_decisions", schema=None) as batch_op:
        batch_op.add_column(sa.Column("at", sa.DateTime(timezone=True), nullable=True))
        batch_op.add_column(sa.Column("undoes", sa.String(length=64), nullable=False, server_default=""))
        batch_op.add_column(sa.Column("detail", sa.JSON(), nullable=False, server_default="{}"))


def downgrade() -> None:
    with op.batch_alter_table("entity_decisions", schema=None) as batch_op:
        batch_op.drop_column("detail")
        batch_op.drop_column("undoes")
        batch_op.drop_column("at")
