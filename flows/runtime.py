"""What a run needs, opened once: settings, catalogue, models, stages."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from corpus.catalogue import Catalogue
from corpus.catalogue.stores import CatalogueAnswers, CatalogueBatches, CatalogueVectors
from corpus.errors import SettingsError
from corpus.stages import Stage, Step
from flows.settings import Settings, load_settings
from models import Models

if TYPE_CHECKING:
    from kg.store import GraphHandle

STAGES = ("acquire", "curate", "graph", "questions", "chunks", "evaluate")


@dataclass
class Runtime:
    """Open settings, catalogue and models; stages are built when they are asked for."""

    settings: Settings
    catalogue: Catalogue
    models: Models
    run_id: str = ""
    archive: Path | None = None
    _stages: dict[str, Stage] = field(default_factory=dict)
    _graph: GraphHandle | None = None

    @property
    def data_dir(self) -> Path:
        """Where everything that is produced lives."""
        return self.settings.data_dir

    def stage(self, name: str) -> Stage:
        """The stage of that name, built once."""
        if name not in self._stages:
            self._stages[name] = _build(name, self)
        return self._stages[name]

    def step(self, name: str) -> Step:
        """The step ``<stage>.<step>``."""
        for step in self.stage(name.split(".", maxsplit=1)[0]).steps:
            if step.name == name:
                return step
        raise SettingsError(f"unknown step {name!r}")

    def graph(self) -> GraphHandle:
        """The graph of this run, connected (and the embedded server started) at first use."""
        from kg.store import GraphHandle

        if self._graph is None:
            self._graph = GraphHandle(self.settings.graph, self.data_dir)
        return self._graph

    def close(self) -> None:
        """Release servers, indexes and connections."""
        for stage in self._stages.values():
            stage.close()
        self._stages.clear()
        if self._graph is not None:
            self._graph.close()
        self.models.close()
        self.catalogue.close()


def _build(name: str, runtime: Runtime) -> Stage:
    settings, models, data_dir = runtime.settings, runtime.models, runtime.data_dir
    match name:
        case "acquire":
            from crawlers.stage import acquire_stage

            return acquire_stage(
                settings.crawl,
                data_dir,
                settings.catalogue_url(),
                chemicals=settings.corpus.chemicals,
                from_archive=runtime.archive,
            )
        case "curate":
            from corpus.stage import curate_stage

            return curate_stage(settings.corpus, models, data_dir)
        case "graph":
            from kg.stage import graph_stage

            return graph_stage(settings.extraction, settings.graph, models, runtime.graph())
        case "questions":
            from kg.stage import questions_stage

            return questions_stage(settings.questions, models, runtime.graph())
        case "chunks":
            from chunking.stage import chunks_stage

            return chunks_stage(settings.chunks, models)
        case "evaluate":
            from chunking.evaluation.stage import evaluate_stage

            return evaluate_stage(settings.evaluation, settings.chunks, settings.vectors, models, data_dir)
    raise SettingsError(f"unknown stage {name!r}; stages: {', '.join(STAGES)}")


UNFINISHED_RESTORE = ".restore-unfinished"


def prepare_data_dir(path: Path, *, unfinished: bool = False) -> Path:
    """Create the data directory and prove that it can be written.

    Raises SettingsError, also where a restore was killed in it (unless ``unfinished`` is meant).
    """
    if not unfinished and (path / UNFINISHED_RESTORE).exists():
        raise SettingsError(f"a restore into {path} did not come to its end; run `hchem restore` again")
    try:
        path.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=path, prefix=".write-check-"):
            pass
    except OSError as error:
        raise SettingsError(
            f"data directory {path} cannot be written: {error.strerror or error}; set HCHEM_DATA_DIR"
        ) from error
    return path.resolve()


@contextmanager
def open_runtime(
    overrides: dict[str, Any] | None = None,
    *,
    settings: Settings | None = None,
    run_id: str = "",
    archive: str | None = None,
) -> Iterator[Runtime]:
    """Open the platform for a block. Raises SettingsError for anything that is set wrongly."""
    settings = settings or load_settings(overrides)
    settings.data_dir = prepare_data_dir(settings.data_dir)
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    catalogue = Catalogue.open(settings.catalogue_url())
    models = Models(
        settings.models,
        answers=CatalogueAnswers(catalogue, run_id),
        vectors=CatalogueVectors(catalogue),
        batches=CatalogueBatches(catalogue, run_id),
    )
    runtime = Runtime(
        settings=settings,
        catalogue=catalogue,
        models=models,
        run_id=run_id,
        archive=Path(archive) if archive else None,
    )
    try:
        yield runtime
    finally:
        runtime.close()
