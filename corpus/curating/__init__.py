"""The steps of the curate stage: pages to cleaned, scored, refined, grouped documents."""
