"""``hchem dataset training``: chat records for the distilled chunkers, out of stored debates and headings."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from corpus.errors import TerminalError

if TYPE_CHECKING:
    from chunking.training.build import TrainingBuilder
    from chunking.training.levels import LevelsDocument

_WITH_LEVELS = ("hichunk", "qasper", "gov-report", "wiki-727k")


def training(
    out: Annotated[Path, typer.Option("--out", "-o", help="Directory to write to.")],
    task: Annotated[
        list[str] | None,
        typer.Option(
            "--task", help="generate (M_Gen), discriminate (M_Disc), refine (M_Ref), levels; default: all."
        ),
    ] = None,
    target: Annotated[
        int, typer.Option("--target", min=1, help="Records a task at most (the paper has 45,000).")
    ] = 45_000,
    seed: Annotated[int, typer.Option("--seed", min=0, help="Seed of choice, split and arrangements.")] = 0,
    held_out: Annotated[
        float, typer.Option("--held-out", min=0.0, max=0.9, help="Share of documents for validation.")
    ] = 0.05,
    allow_offline: Annotated[
        bool,
        typer.Option(
            "--allow-offline",
            help="Also take answers that the platform's rules made, wholly or in part, or nobody recorded.",
        ),
    ] = False,
    levels_from: Annotated[
        list[str] | None,
        typer.Option(
            "--levels-from",
            metavar="NAME=PATH",
            help="Published set with headings, for levels: hichunk, qasper, gov-report, wiki-727k.",
        ),
    ] = None,
    window: Annotated[int, typer.Option("--window", min=200, help="Tokens of a levels window.")] = 8192,
    shuffles: Annotated[
        int, typer.Option("--shuffles", min=0, max=20, help="Shuffled (and truncated) arrangements each.")
    ] = 3,
    residuals: Annotated[
        int, typer.Option("--residuals", min=0, max=20, help="Windows behind drawn residual lines.")
    ] = 1,
    characters: Annotated[
        int, typer.Option("--characters", min=0, help="Shortest document for levels (HiChunk's code: 50000).")
    ] = 0,
    direct: Annotated[bool, typer.Option("--direct", help="Without Prefect: in this process.")] = False,
    afresh: Annotated[bool, typer.Option("--afresh", help="Do not go on where a build was stopped.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the card's figures as JSON.")] = False,
) -> None:
    """Write chat records to train M_Gen, M_Disc, M_Ref and the levels model, with a data card.

    Only debates that passed every check are taken; what is left out is counted. A build that is stopped goes on
    where it was; the same data, options and seed give the same bytes.

    Examples: hchem dataset training --out records | hchem dataset training --out levels --task levels
    --levels-from wiki-727k=wiki_727 --characters 50000
    """
    from chunking.training.build import TrainingBuilder, TrainingOptions, build
    from chunking.training.examples import TASKS, Task
    from chunking.training.levels import LevelsOptions
    from flows import prefect_server
    from flows.console import ProgressDisplay, err
    from flows.runtime import open_runtime
    from flows.settings import load_settings

    settings = load_settings()
    unknown = [name for name in task or () if name not in TASKS]
    if unknown:
        raise TerminalError(f"unknown task {unknown[0]!r}; tasks: {', '.join(TASKS)}", reason="usage")
    chosen: tuple[Task, ...] = tuple(name for name in TASKS if not task or name in task)
    view = settings.chunks.hichunk_view
    options = TrainingOptions(
        chosen,
        target,
        seed,
        held_out,
        allow_offline,
        LevelsOptions(window, view, shuffles, residuals, characters=characters),
    )
    published = _published(levels_from or [])
    with open_runtime(settings=settings) as runtime:
        builder = TrainingBuilder(
            runtime.catalogue, runtime.models, settings.chunks, options, out, published, afresh=afresh
        )
        if direct:
            with ProgressDisplay() as display:
                figures = build(builder, display).as_dict()
        else:
            prefect_server.ensure(runtime.data_dir, settings.prefect, tell=err.print)
            figures = _with_prefect(builder)
    if as_json:
        typer.echo(json.dumps(figures, ensure_ascii=False))
    else:
        _show(figures, out)


def _with_prefect(builder: TrainingBuilder) -> dict[str, Any]:
    from flows.console import ProgressDisplay
    from flows.training.dataset_flow import build_with_prefect

    with ProgressDisplay() as display:
        return build_with_prefect(builder, display)


def _published(given: Sequence[str]) -> dict[str, list[LevelsDocument]]:
    """Published sets as documents with gold levels."""
    from chunking.evaluation.published import read_benchmark
    from chunking.segment import language_of
    from chunking.training.levels import LevelsDocument
    from corpus.ids import version_id

    found: dict[str, list[LevelsDocument]] = {}
    for entry in given:
        name, _, path = entry.partition("=")
        if name not in _WITH_LEVELS or not path:
            raise TerminalError(
                f"--levels-from {entry!r}: expected NAME=PATH with one of {', '.join(_WITH_LEVELS)}",
                reason="usage",
            )
        found[name] = [
            LevelsDocument(
                document.id,
                version_id(document.id, document.text),
                language_of(document.text),
                document.text,
                {0: 1, **document.borders},
            )
            for document in read_benchmark(name, Path(path), headings="hidden").documents
            if document.borders
        ]
    return found


def _show(figures: dict[str, Any], out: Path) -> None:
    from rich.table import Table

    from flows.console import out as console

    for title, heads, rows in (
        ("Records", ("task", "split", "records"), figures["records"]),
        ("Who made the answers", ("task", "made by", "records"), figures["made_by"]),
        ("Left out", ("of", "reason", "number"), figures["left_out"]),
    ):
        table = Table(title=title, title_justify="left")
        for head in heads[:-1]:
            table.add_column(head, overflow="fold")
        table.add_column(heads[-1], justify="right")
        for row in rows:
            table.add_row(*(f"{cell:,}" if isinstance(cell, int) else str(cell) for cell in row))
        console.print(table)
    console.print(f"card: {out / 'README.md'}", markup=False, soft_wrap=True)
