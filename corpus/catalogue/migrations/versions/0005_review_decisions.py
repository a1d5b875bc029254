"""What people decide on the review page: documents, values that disagree, questions, solutions"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    op.create_table(
        "review_decisions",
        sa.Column("decision_id", sa.String(length=64), nullable=False),
        sa.Column("queue", sa.String(length=16), nullable=False),
        sa.Column("item_id", sa.String(length=64), nullable=False),
        sa.Column("choice", sa.String(length=16), nullable=False),
        sa.Column("state", sa.String(length=16), nullable=False),
        sa.Column("why", sa.Text(), nullable=False),
        sa.Column("decided_by", sa.String(length=64), nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("undoes", sa.String(length=64), nullable=False),
        sa.Column("mark", sa.String(length=64), nullable=False),
        sa.Column("detail", sa.JSON(), nullable=False),
        sa.PrimaryKeyConstraint("decision_id"),
    )
    for column in ("queue", "item_id", "state"):
        op.create_index(f"ix_review_decisions_{column}", "review_decisions", [column])


def downgrade() -> None:
    op.drop_table("review_decisions")
