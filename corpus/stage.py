"""The curate stage: profile → templates → clean → decided → score → refine → deduplicate.

``templates`` and ``deduplicate`` are barriers; every step keys on the text it
receives, so that one changed page does its own work again and no other's.
"""

from __future__ import annotations

from pathlib import Path

from corpus.curating.decided import DecidedStep
from corpus.curating.pages import CleanStep, PageReader, ProfileStep, TemplatesStep
from corpus.curating.texts import DeduplicateStep, RefineStep, ScoreStep
from corpus.settings import CorpusSettings
from corpus.stages import Stage
from models import Models


def curate_stage(settings: CorpusSettings, models: Models, data_dir: Path) -> Stage:
    """The stage over the pages archived under ``data_dir``; ``close`` ends the cleaner's process."""
    reader = PageReader(settings.cleaning, data_dir)
    return Stage(
        "curate",
        [
            ProfileStep(reader=reader),
            TemplatesStep(),
            CleanStep(reader=reader),
            DecidedStep(),
            ScoreStep(settings=settings, models=models),
            RefineStep(settings=settings, models=models),
            DeduplicateStep(settings=settings),
        ],
        close=reader.close,
    )
