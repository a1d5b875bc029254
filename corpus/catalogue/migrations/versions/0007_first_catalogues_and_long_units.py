"""Tables of batch jobs for catalogues of the first days, when revision 0001 had none; room for long units of figures"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"


def upgrade() -> None:
    present = set(sa.inspect(op.get_bind()).get_table_names())
    if "model_batches" not in present:
        op.create_table(
            "model_batches",
            sa.Column("job_id", sa.String(length=64), nullable=False),
            sa.Column("base_url", sa.Text(), nullable=False),
            sa.Column("model", sa.Text(), nullable=False),
            sa.Column("skills", sa.JSON(), nullable=False),
            sa.Column("total", sa.Integer(), nullable=False),
            sa.Column("state", sa.String(length=16), nullable=False),
            sa.Column("file_id", sa.Text(), nullable=False),
            sa.Column("batch_id", sa.Text(), nullable=False),
            sa.Column("status", sa.String(length=32), nullable=False),
            sa.Column("answered", sa.Integer(), nullable=False),
            sa.Column("failed", sa.Integer(), nullable=False),
            sa.Column("detail", sa.Text(), nullable=False),
            sa.Column("run_id", sa.String(length=64), nullable=False),
            sa.Column("holder", sa.Text(), nullable=False),
            sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
            sa.PrimaryKeyConstraint("job_id"),
        )
        op.create_index("ix_model_batches_state", "model_batches", ["state"])
    if "model_batch_lines" not in present:
        op.create_table(
            "model_batch_lines",
            sa.Column("key", sa.String(length=64), nullable=False),
            sa.Column("job_id", sa.String(length=64), nullable=False),
            sa.Column("skill", sa.String(length=48), nullable=False),
            sa.Column("skill_version", sa.String(length=16), nullable=False),
            sa.Column("draw", sa.Integer(), nullable=False),
            sa.Column("parameters", sa.JSON(), nullable=False),
            sa.Column("form", sa.JSON(), nullable=False),
            sa.Column("price", sa.JSON(), nullable=True),
            sa.Column("position", sa.Integer(), nullable=False),
            sa.PrimaryKeyConstraint("key"),
        )
        op.create_index("ix_model_batch_lines_job_id", "model_batch_lines", ["job_id"])
    if op.get_context().dialect.name != "sqlite":  # which knows no length of a text
        op.alter_column("evaluations", "unit", type_=sa.String(length=64), existing_nullable=False)


def downgrade() -> None:
    """Revision 0001 has the tables by now, and a longer column holds what a shorter one did."""
