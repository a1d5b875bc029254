"""``hchem refresh``, ``hchem run STAGE`` and ``hchem serve``."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from types import FrameType
from typing import Annotated, Any, TypeVar

import typer
from pydantic import ValidationError
from sqlalchemy import select

from corpus.catalogue.tables import Run
from corpus.errors import SettingsError
from flows import execution, partitions, prefect_server, presets, stopping, watchdog
from flows.console import ProgressDisplay, err, out, show_summary
from flows.parameters import RefreshParameters, StageParameters
from flows.runtime import Runtime, open_runtime
from flows.settings import Settings, load_settings

app = typer.Typer()
P = TypeVar("P", bound=StageParameters)


class StageChoice(StrEnum):
    """The stages, as the command line completes and checks them."""

    acquire = "acquire"
    curate = "curate"
    graph = "graph"
    questions = "questions"
    chunks = "chunks"
    evaluate = "evaluate"


class GateChoice(StrEnum):
    """What a failed blocking gate does."""

    ASK = "ask"
    FAIL = "fail"
    CONTINUE = "continue"


Sources = Annotated[list[str] | None, typer.Option("--source", help="Only this source (repeatable).")]
Chemicals = Annotated[
    list[str] | None, typer.Option("--chemical", help="Only this name or CAS (repeatable).")
]
Since = Annotated[
    str | None,
    typer.Option(
        "--since",
        help="Only content transferred since then; pages that a sitemap says are unchanged since then are not asked "
        "for again. A date (UTC) or how long ago: 2026-11-01, 7d, 12h.",
    ),
]
OnlyFailed = Annotated[bool, typer.Option("--only-failed", help="Only what failed before.")]
Force = Annotated[bool, typer.Option("--force", help="Redo everything, fingerprints or not.")]
Limit = Annotated[
    int | None,
    typer.Option(
        "--limit",
        min=1,
        help="At most this many items per step: pages, documents, questions. Of a crawl sources, each in full: "
        "its pages are limited by --chemical and by max_pages in the sources file.",
    ),
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Show what would be done and what it would cost.")]
Direct = Annotated[bool, typer.Option("--direct", help="Without Prefect: same stages, this process.")]
Preset = Annotated[
    str | None,
    typer.Option("--preset", help="A paper's values below your own: qchunker-paper, hichunk-paper."),
]
Wait = Annotated[bool, typer.Option("--wait", help="Wait for another run to end.")]
OnGate = Annotated[
    GateChoice | None,
    typer.Option(
        "--on-gate",
        help="When a blocking quality gate fails: fail (default) or continue; ask: in runs of a deployment.",
    ),
]
Archive = Annotated[Path | None, typer.Option("--from-archive", help="Take pages from a WARC file.")]


@app.command()
def refresh(
    from_stage: Annotated[
        StageChoice, typer.Option("--from-stage", help="First stage.")
    ] = StageChoice.acquire,
    to_stage: Annotated[StageChoice, typer.Option("--to-stage", help="Last stage.")] = StageChoice.evaluate,
    source: Sources = None,
    chemical: Chemicals = None,
    since: Since = None,
    only_failed: OnlyFailed = False,
    force: Force = False,
    limit: Limit = None,
    dry_run: DryRun = False,
    direct: Direct = False,
    preset: Preset = None,
    wait: Wait = False,
    on_gate: OnGate = None,
) -> None:
    """Run the pipeline: acquire, curate, graph, questions, chunks, evaluate.

    The first run takes minutes (three to eight for the sample site on two cores), later ones less: only
    what changed is redone. An interrupted run goes on where it stopped.

    Examples: hchem refresh | hchem refresh --direct --to-stage curate | hchem refresh --dry-run
    | hchem refresh --preset qchunker-paper | hchem refresh --since 7d
    """
    parameters = checked(
        RefreshParameters,
        from_stage=from_stage.value,
        to_stage=to_stage.value,
        sources=source or [],
        chemicals=chemical or [],
        since=since,
        only_failed=only_failed,
        force=force,
        limit=limit,
        preset=preset,
        wait=wait,
        on_gate=on_gate.value if on_gate else None,
    )
    _start("refresh", parameters, dry_run=dry_run, direct=direct)


@app.command()
def run(
    stage: Annotated[StageChoice, typer.Argument(help="The stage to run.")],
    source: Sources = None,
    chemical: Chemicals = None,
    since: Since = None,
    only_failed: OnlyFailed = False,
    force: Force = False,
    limit: Limit = None,
    dry_run: DryRun = False,
    direct: Direct = False,
    preset: Preset = None,
    wait: Wait = False,
    on_gate: OnGate = None,
    from_archive: Archive = None,
) -> None:
    """Run one stage.

    Examples: hchem run curate --only-failed | hchem run acquire --from-archive pages.warc.gz
    """
    parameters = checked(
        RefreshParameters,
        from_stage=stage.value,
        to_stage=stage.value,
        sources=source or [],
        chemicals=chemical or [],
        since=since,
        only_failed=only_failed,
        force=force,
        limit=limit,
        preset=preset,
        wait=wait,
        on_gate=on_gate.value if on_gate else None,
        archive=str(from_archive) if from_archive else None,
    )
    if from_archive is not None:
        _check_archive(stage, from_archive)
    _start(stage.value, parameters, dry_run=dry_run, direct=direct)


def checked(kind: type[P], **values: Any) -> P:
    """Parameters of a run. Raises SettingsError that says what is wrong with them."""
    try:
        return kind(**values)
    except ValidationError as error:
        raise SettingsError(error.errors()[0]["msg"].removeprefix("Value error, ")) from error


def _check_archive(stage: StageChoice, path: Path) -> None:
    if stage is not StageChoice.acquire:
        raise SettingsError("--from-archive belongs to the stage acquire")
    if not path.is_file():
        raise SettingsError(f"archive {path} does not exist")


def prepared(parameters: StageParameters) -> Settings:
    """The settings of a run that a command is about to start; what a preset says of them is shown."""
    signal.signal(signal.SIGTERM, _terminated)
    settings = load_settings(parameters.overrides())
    for line in presets.lines(settings):
        err.print(line, markup=False, soft_wrap=True)
    return settings


@contextmanager
def interruptible() -> Iterator[None]:
    """A block that Ctrl-C, SIGTERM or a cancelled run ends with one line and an exit code."""
    try:
        yield
    except (KeyboardInterrupt, stopping.RunStoppedError) as error:
        err.print("hchem: interrupted; the same command goes on where it stopped")
        raise typer.Exit(stopping.INTERRUPTED) from error


def _start(flow_name: str, parameters: RefreshParameters, *, dry_run: bool, direct: bool) -> None:
    settings = prepared(parameters)
    if dry_run:
        from flows.planning import show_plan

        with open_runtime(settings=settings, archive=parameters.archive) as runtime:
            _check_selection(runtime, parameters)
            show_plan(runtime, parameters)
        return
    with interruptible():
        if direct:
            _run_direct(flow_name, parameters, settings)
        else:
            _run_flow(flow_name, parameters, settings)


def _terminated(_signal: int, _frame: FrameType | None) -> None:
    """SIGTERM before a run watches for it: as Ctrl-C."""
    raise KeyboardInterrupt


def _run_direct(flow_name: str, parameters: RefreshParameters, settings: Settings) -> None:
    from flows import report

    run_id = execution.new_run_id()
    with open_runtime(settings=settings, run_id=run_id, archive=parameters.archive) as runtime:
        _check_selection(runtime, parameters)
        _say_how_long(runtime)
        with (
            ProgressDisplay() as display,
            execution.session(runtime, flow_name, parameters, progress=display) as current,
        ):
            for stage in parameters.stages():
                execution.run_stage(current, stage, execution.direct)
            execution.take_version(current)
        path = report.write(runtime, current.context.run_id, current.stages)
        show_summary(runtime.catalogue, current.stages)
    out.print(f"report: {path}", soft_wrap=True)


def _run_flow(flow_name: str, parameters: RefreshParameters, settings: Settings) -> None:
    def flow() -> dict[str, Any]:
        from flows import pipeline

        if flow_name == "refresh":
            return pipeline.refresh(parameters)
        return pipeline.STAGE_FLOWS[flow_name](parameters.common())

    run_on_server(flow, parameters, settings, check=lambda runtime: _check_selection(runtime, parameters))


def run_on_server(
    flow: Callable[[], dict[str, Any]],
    parameters: StageParameters,
    settings: Settings,
    *,
    check: Callable[[Runtime], None] = lambda runtime: None,
) -> None:
    """Run a flow on the Prefect server, which is found or started, and show what came of it.

    ``flow`` imports Prefect's flows when it is called, since they read where the server is. ``check``
    refuses before a server is started.
    """
    with open_runtime(settings=settings) as runtime:
        check(runtime)
        _refuse_when_busy(runtime, parameters)
        server = prefect_server.ensure(runtime.data_dir, settings.prefect, tell=err.print)
        _say_how_long(runtime)
        if server.pid:  # a team's server is its own affair: see `hchem up`
            watchdog.attend(runtime.catalogue, settings.prefect.heartbeat_s, own_server=True, tell=err.print)
    from flows import cancelling, pipeline

    with prefect_server.needed(server):
        with ProgressDisplay() as display, cancelling.at_terminal(pipeline.flow_runs):
            pipeline.watch(display)
            result = flow()
        seen, submitted = pipeline.recorded_by_server()
    with open_runtime(settings=settings) as runtime:
        show_summary(runtime.catalogue, result["stages"])
        path = runtime.data_dir / "reports" / "report.html"
    out.print(f"Prefect: {server.ui_url}  ({seen} of {submitted} task runs recorded)", soft_wrap=True)
    out.print(f"report: {path}", soft_wrap=True)


def _check_selection(runtime: Runtime, parameters: RefreshParameters) -> None:
    """Refuse unknown sources and names before anything is recorded."""
    if parameters.from_stage != "acquire" or parameters.archive:
        partitions.check_selection(runtime, parameters)
        return
    from crawlers.sources import enabled_sources
    from crawlers.stage import named_chemicals

    settings = runtime.settings.crawl
    for source in enabled_sources(settings, parameters.sources):
        if parameters.chemicals and source.chemicals == "sample":  # others load their names in the run
            named_chemicals(runtime.catalogue, source, settings, only=parameters.chemicals)


def _say_how_long(runtime: Runtime) -> None:
    """Before the first run of a data directory, what nobody can know yet; of later ones the summary says it."""
    with runtime.catalogue.reading() as db:
        if db.scalar(select(Run.run_id).limit(1)) is not None:
            return
    err.print(
        "first run: minutes (three to eight for the sample site on two cores); "
        "Ctrl-C stops it, the same command goes on"
    )


def _refuse_when_busy(runtime: Runtime, parameters: StageParameters) -> None:
    """Say at once, before a server is started, that another run is on."""
    from corpus.catalogue import leases

    if not parameters.wait:
        holder = leases.holder_name()
        leases.take(runtime.catalogue, "run", holder, 10)
        leases.release(runtime.catalogue, "run", holder)


@app.command()
def serve() -> None:
    """Serve the deployments: a weekly refresh and every stage for ad-hoc runs.

    Stop with Ctrl-C; schedules stay active. Example: hchem serve
    """
    settings = load_settings()
    with open_runtime(settings=settings) as runtime:
        server = prefect_server.ensure(runtime.data_dir, settings.prefect, tell=err.print)
        watchdog.attend(
            runtime.catalogue, settings.prefect.heartbeat_s, own_server=bool(server.pid), tell=err.print
        )
    from flows import deployments

    err.print(f"serving deployments; start one at {server.ui_url}/deployments (Ctrl-C stops)")
    deployments.serve_all(settings.flows)
