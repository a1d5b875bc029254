"""What users' lists say of chemicals; a trusted sitemap's word about a page"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    op.create_table(
        "chemical_claims",
        sa.Column("claim_id", sa.String(length=64), nullable=False),
        sa.Column("key", sa.String(length=64), nullable=False),
        sa.Column("source", sa.String(length=64), nullable=False),
        sa.Column("kind", sa.String(length=16), nullable=False),
        sa.Column("value", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("claim_id"),
    )
    op.create_index("ix_chemical_claims_key", "chemical_claims", ["key"])
    op.create_index("ix_chemical_claims_source", "chemical_claims", ["source"])
    op.add_column("pages", sa.Column("sitemap_lastmod", sa.DateTime(timezone=True), nullable=True))


def downgrade() -> None:
    op.drop_column("pages", "sitemap_lastmod")
    op.drop_table("chemical_claims")
