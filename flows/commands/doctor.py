"""``hchem doctor``: is every configured service there, and what to do if not."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import typer

from corpus.errors import PlatformError, TransientError
from flows import prefect_server, watchdog
from flows.console import out
from flows.runtime import Runtime, open_runtime
from flows.settings import config_path
from models.errors import ModelError

app = typer.Typer()
_LOW_DISK_GB = 2.0


@dataclass(frozen=True)
class Finding:
    """One check: fine or not, what was seen, what to do."""

    name: str
    fine: bool
    seen: str
    advice: str = ""


@app.command()
def doctor() -> None:
    """Check every configured service and say what to do. Exit code 2 when something is wrong.

    Example: hchem doctor
    """
    bad = 0
    with open_runtime() as runtime:
        for finding in _findings(runtime):
            mark = "[green]ok[/green] " if finding.fine else "[red]bad[/red]"
            out.print(f"{mark} {finding.name}: ", end="")
            out.print(finding.seen + (f" → {finding.advice}" if finding.advice else ""), markup=False)
            bad += not finding.fine
    if bad:
        raise typer.Exit(2)


def _findings(runtime: Runtime) -> Iterator[Finding]:
    file = config_path()
    yield Finding("settings", True, f"{file} {'read' if file.is_file() else 'absent, defaults in force'}")
    free = shutil.disk_usage(runtime.data_dir).free / 1e9
    yield Finding(
        "data directory",
        free > _LOW_DISK_GB,
        f"{runtime.data_dir}, {free:.1f} GB free",
        "" if free > _LOW_DISK_GB else "make room: the default run needs about 2 GB",
    )
    yield Finding("catalogue", True, runtime.catalogue.engine.url.render_as_string(hide_password=True))
    for name, check, advice in _SERVICES:
        yield _try(name, check, advice, runtime)


def _try(name: str, check: Callable[[Runtime], str], advice: str, runtime: Runtime) -> Finding:
    try:
        return Finding(name, True, check(runtime))
    except TransientError as error:
        return Finding(name, True, f"busy: {error}")
    except (PlatformError, ModelError, OSError, ImportError) as error:
        return Finding(name, False, f"{error}", advice)


def _prefect(runtime: Runtime) -> str:
    server = prefect_server.running(runtime.data_dir)
    if server is None:
        return "not running; hchem refresh or hchem up starts it"
    if troubles := watchdog.troubles(server.url):
        raise PlatformError(f"{server.ui_url}: {'; '.join(troubles)}")
    return server.ui_url


def _runs(runtime: Runtime) -> str:
    if dead := watchdog.dead(runtime.catalogue):
        names = ", ".join(row.run_id for row in dead)
        raise PlatformError(f"marked running, but without a process: {names}")
    return "none is marked running without a process"


def _sources(runtime: Runtime) -> str:
    from crawlers.sources import enabled_sources

    names = [source.name for source in enabled_sources(runtime.settings.crawl)]
    if not names:
        raise PlatformError("no source is enabled")
    return f"enabled: {', '.join(names)}"


def _graph(runtime: Runtime) -> str:
    from kg.store import GraphStore

    with GraphStore.connect(runtime.settings.graph, runtime.data_dir) as store:
        figures = store.stats()
        where = runtime.settings.graph.uri or "embedded server"
        return f"{where}, {sum(figures['nodes'].values())} nodes"


def _vectors(runtime: Runtime) -> str:
    from chunking.index import check_vectors

    return check_vectors(runtime.settings.vectors, runtime.data_dir)


def _models(runtime: Runtime) -> str:
    return runtime.models.check()


_SERVICES: tuple[tuple[str, Callable[[Runtime], str], str], ...] = (
    ("prefect", _prefect, "hchem up"),
    ("runs", _runs, "the next run goes on where they stopped; hchem up marks them as crashed"),
    ("sources", _sources, "enable one in sources.toml or set HCHEM_CRAWL__ENABLED"),
    ("graph", _graph, "check HCHEM_GRAPH__URI, USER and PASSWORD, or unset them for the embedded server"),
    ("vectors", _vectors, "check HCHEM_VECTORS__URI, or unset it for the embedded index"),
    (
        "models",
        _models,
        "check HCHEM_MODELS__BASE_URL, MODEL and OPENAI_API_KEY, or unset them to work offline",
    ),
)
