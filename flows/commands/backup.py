"""``hchem backup``, ``hchem restore`` and ``hchem gc``."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table

from flows.console import ProgressDisplay, err, out
from flows.words import counted

if TYPE_CHECKING:
    from flows.backup_format import Manifest

app = typer.Typer()
_DryRun = Annotated[bool, typer.Option("--dry-run", help="Show what would be done, change nothing.")]


@app.command()
def backup(
    file: Annotated[Path, typer.Argument(help="File to write, for example hchem-2026-11-30.tar.gz.")],
    no_archive: Annotated[
        bool, typer.Option("--no-archive", help="Without the page archive (WARC).")
    ] = False,
    no_reports: Annotated[bool, typer.Option("--no-reports", help="Without the reports.")] = False,
    with_prefect: Annotated[
        bool, typer.Option("--with-prefect", help="With Prefect's history (its SQLite file, without blocks).")
    ] = False,
    dry_run: _DryRun = False,
) -> None:
    """Write the whole platform into one file; a run may be on meanwhile.

    In it: the catalogue as it is at this moment, the page archive, the versions of the data set with their tags, the
    reports, the settings file without secrets. Examples: hchem backup hchem.tar.gz | hchem backup --dry-run hchem.tar.gz
    """
    from flows import backup as work
    from flows.runtime import prepare_data_dir
    from flows.settings import load_settings

    settings = load_settings()
    settings.data_dir = prepare_data_dir(settings.data_dir)
    what = {"archive": not no_archive, "reports": not no_reports, "prefect": with_prefect}
    if dry_run:
        planned = work.plan(settings, **what)
        table = Table("what", "files", "MB")
        for group, files in planned.files.items():
            table.add_row(group, str(files), f"{planned.bytes[group] / 1e6:.1f}")
        out.print(table)
        out.print("not in it: " + "; ".join(planned.left_out), markup=False, soft_wrap=True)
        return
    with ProgressDisplay() as display:
        manifest = work.backup(settings, file, **what, progress=display)
    size = f"{file.stat().st_size / 1e6:.1f} MB"
    out.print(f"{file}: {size}, {_held(manifest)}; verified", markup=False, soft_wrap=True)
    out.print("not in it: " + "; ".join(manifest.left_out), markup=False, soft_wrap=True)


@app.command()
def restore(
    file: Annotated[Path, typer.Argument(help="A file that `hchem backup` wrote.")],
    into: Annotated[
        Path | None, typer.Option("--into", help="Data directory to fill instead of that of the settings.")
    ] = None,
    verify_only: Annotated[
        bool, typer.Option("--verify-only", help="Read all of it, write nothing.")
    ] = False,
    force: Annotated[bool, typer.Option("--force", help="Replace what is in the target.")] = False,
) -> None:
    """Put a backup into an empty data directory (and its catalogue), verified before anything is written.

    A backup of SQLite restores into PostgreSQL and the other way round, as HCHEM_CATALOGUE__URL says.
    Examples: hchem restore hchem.tar.gz --into data2 | hchem restore hchem.tar.gz --verify-only
    """
    from flows import backup as work
    from flows import projections
    from flows.backup_format import SETTINGS
    from flows.settings import load_settings

    with ProgressDisplay() as display:
        if verify_only:
            manifest = work.check(file, display)
        else:
            settings = load_settings({"data_dir": into} if into else None)
            manifest = work.restore(settings, file, force=force, progress=display)
    made = f"made {manifest.made_at} by version {manifest.code_version}, schema {manifest.schema_revision}"
    out.print(f"{file}: whole, {made}, {_held(manifest)}", markup=False, soft_wrap=True)
    if verify_only:
        return
    err.print("the graph and the vector index are not part of a backup: `hchem refresh` makes them again")
    if settings.graph.uri is not None:
        projections.mark_restored(settings.data_dir)
        err.print("the graph on the server of your settings may hold another state: `hchem graph rebuild`")
    if SETTINGS in manifest.members:
        err.print("the settings file of then is beside the data as restored-hchem.toml; it is not in force")


@app.command()
def gc(
    keep_days: Annotated[
        int | None,
        typer.Option(
            "--keep-days", min=0, max=36_500, help="Age below which nothing goes (housekeeping.keep_days)."
        ),
    ] = None,
    dry_run: _DryRun = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print plain data.")] = False,
) -> None:
    """Remove what is old and nothing refers to any more: superseded page contents, tombstones, answers, leftovers.

    What a page, a document or a kept version of the data set rests on stays. Example: hchem gc --dry-run
    """
    from flows import housekeeping
    from flows.runtime import open_runtime

    with open_runtime() as runtime, ProgressDisplay() as display:
        if dry_run:
            plan = housekeeping.survey(runtime, keep_days=keep_days)
        else:
            plan = housekeeping.collect(runtime, display, keep_days=keep_days)
    if as_json:
        skipped = plan.archive.skipped
        typer.echo(
            json.dumps({"dry_run": dry_run, "lines": [asdict(x) for x in plan.lines], "skipped": skipped})
        )
        return
    table = Table("what would go" if dry_run else "what went", "number", "MB", "why")
    for line in plan.lines:
        table.add_row(line.what, str(line.count), f"{line.bytes / 1e6:.1f}" if line.bytes else "", line.why)
    out.print(table)
    for file, why in plan.archive.skipped.items():
        err.print(f"{file} left alone: {why}", markup=False, soft_wrap=True)


def _held(manifest: Manifest) -> str:
    pages, questions = manifest.rows.get("pages", 0), manifest.rows.get("questions", 0)
    rows = f"{counted(pages, 'page')}, {counted(questions, 'question')}"
    return f"{counted(len(manifest.members), 'file')} ({manifest.bytes / 1e6:.1f} MB), {rows}"
