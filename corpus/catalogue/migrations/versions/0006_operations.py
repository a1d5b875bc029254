"""Quality gates, shared batches, periods of sources; of a run Prefect's id and the version of the code"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"


def upgrade() -> None:
    for name, length in (("flow_run_id", 64), ("code_version", 64)):
        op.add_column("runs", sa.Column(name, sa.String(length=length), nullable=False, server_default=""))
    op.create_index("ix_runs_flow_run_id", "runs", ["flow_run_id"])
    op.create_table(
        "checks",
        sa.Column("check_id", sa.String(length=64), nullable=False),
        sa.Column("run_id", sa.String(length=64), nullable=False),
        sa.Column("stage", sa.String(length=16), nullable=False),
        sa.Column("name", sa.String(length=64), nullable=False),
        sa.Column("scope", sa.String(length=64), nullable=False),
        sa.Column("severity", sa.String(length=8), nullable=False),
        sa.Column("state", sa.String(length=8), nullable=False),
        sa.Column("value", sa.Float(), nullable=True),
        sa.Column("limit", sa.Float(), nullable=True),
        sa.Column("baseline", sa.Float(), nullable=True),
        sa.Column("message", sa.Text(), nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("decision", sa.String(length=16), nullable=False),
        sa.Column("decided_by", sa.String(length=64), nullable=False),
        sa.Column("decided_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("why", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("check_id"),
    )
    for column in ("run_id", "name", "state"):
        op.create_index(f"ix_checks_{column}", "checks", [column])
    op.create_table(
        "work_batches",
        sa.Column("batch_id", sa.String(length=64), nullable=False),
        sa.Column("run_id", sa.String(length=64), nullable=False),
        sa.Column("step", sa.String(length=64), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("items", sa.JSON(), nullable=False),
        sa.Column("state", sa.String(length=8), nullable=False),
        sa.Column("holder", sa.String(length=128), nullable=False),
        sa.Column("expires_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("report", sa.JSON(), nullable=False),
        sa.PrimaryKeyConstraint("batch_id"),
    )
    for column in ("run_id", "state"):
        op.create_index(f"ix_work_batches_{column}", "work_batches", [column])
    op.create_table(
        "source_periods",
        sa.Column("source", sa.String(length=64), nullable=False),
        sa.Column("period", sa.String(length=16), nullable=False),
        sa.Column("state", sa.String(length=16), nullable=False),
        sa.Column("run_id", sa.String(length=64), nullable=False),
        sa.Column("counts", sa.JSON(), nullable=False),
        sa.Column("message", sa.Text(), nullable=False),
        sa.Column("started_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("finished_at", sa.DateTime(timezone=True), nullable=True),
        sa.PrimaryKeyConstraint("source", "period"),
    )
    op.create_index("ix_source_periods_state", "source_periods", ["state"])


def downgrade() -> None:
    for table in ("source_periods", "work_batches", "checks"):
        op.drop_table(table)
    op.drop_index("ix_runs_flow_run_id", "runs")
    for name in ("code_version", "flow_run_id"):
        op.drop_column("runs", name)
