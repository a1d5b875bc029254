"""``hchem dataset snapshot|versions|diff|tag|untag|rollback|gc``: versions of the data set."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table

from flows.console import err, out, whole

if TYPE_CHECKING:
    from kg.versions import Change

_SHOWN = 20  # changes of a kind before the rest is only counted
_AsJson = Annotated[bool, typer.Option("--json", help="Print plain data.")]
_Name = Annotated[str, typer.Argument(help="A tag, current, previous, or an id (its beginning is enough).")]


def register(app: typer.Typer) -> None:
    """Add the commands to a group."""
    for command in (snapshot, versions, diff, tag, untag, rollback, gc):
        app.command()(command)


def _folder() -> Path:
    from flows.runtime import prepare_data_dir
    from flows.settings import load_settings
    from kg.versions import folder_of

    return folder_of(prepare_data_dir(load_settings().data_dir))


def snapshot(
    named: Annotated[str, typer.Option("--tag", help="Name the version, for example release-2026-11.")] = "",
) -> None:
    """Keep the data set as it is now as an immutable version. A whole refresh does so at its end.

    The same content is one version, however often it is taken. Example: hchem dataset snapshot --tag release-1
    """
    from flows.runtime import open_runtime
    from kg.versions import folder_of, take

    with open_runtime() as runtime:
        version, new = take(runtime.catalogue, folder_of(runtime.data_dir), tag=named)
    out.print(f"{version.id}  {'new' if new else 'unchanged'}  {', '.join(version.tags)}")


def versions(as_json: _AsJson = False) -> None:
    """List the versions, the oldest first, with their tags and sizes. Example: hchem dataset versions"""
    from kg.versions import unreadable
    from kg.versions import versions as known

    folder = _folder()
    found = known(folder)
    for path in unreadable(folder):
        err.print(f"{path} bears a version's name and is none: its version.json cannot be read", markup=False)
    if as_json:
        typer.echo(json.dumps([asdict(version) for version in found], ensure_ascii=False))
        return
    if not found:
        err.print("no versions yet; `hchem refresh` or `hchem dataset snapshot` takes one")
        return
    table = Table(box=None, padding=(0, 1), pad_edge=False)
    for heading in ("version", "taken (UTC)", "documents", "facts", "questions", "MB", "tags"):
        table.add_column(
            heading, justify="left" if heading in ("version", "taken (UTC)", "tags") else "right"
        )
    for version in found:
        rows = (str(version.rows.get(f"{name}.jsonl", 0)) for name in ("corpus", "triples", "qa"))
        size, taken = f"{version.bytes / 1e6:.1f}", version.taken_at[:19].replace("T", " ")
        table.add_row(version.id, taken, *rows, size, ",\n".join(version.tags))
    out.print(whole(table, "version", "tags"))


def diff(
    old: _Name = "previous",
    new: Annotated[str, typer.Argument(help="The later version.")] = "current",
    everything: Annotated[
        bool, typer.Option("--all", help="Every change, not the first 20 of a kind.")
    ] = False,
    as_json: _AsJson = False,
) -> None:
    """What differs between two versions: documents, facts added, changed and retired, questions made stale.

    Examples: hchem dataset diff | hchem dataset diff release-1 current --json
    """
    from kg.versions import diff as compare

    found = compare(_folder(), old, new)
    if as_json:
        typer.echo(json.dumps(found.as_dict(), ensure_ascii=False))
        return
    out.print(f"{found.old} → {found.new}")
    if not found.changes:
        out.print("no differences")
    groups: dict[str, list[Change]] = {}
    for change in found.changes:
        groups.setdefault(f"{change.what} {change.how}", []).append(change)
    for kind, changes in groups.items():
        out.print(f"\n{kind}: {len(changes)}")
        for change in changes if everything else changes[:_SHOWN]:
            out.print(f"  {_line(change)}", markup=False)
        if len(changes) > _SHOWN and not everything:
            out.print(f"  … {len(changes) - _SHOWN} more (--all)")


def _line(change: Change) -> str:
    values = " → ".join(value for value in (change.before, change.after) if value)
    about = f"{change.text}: {values}" if values and change.what != "document" else change.text
    plain = "".join(c if c.isprintable() else " " for c in about)
    return f"{change.id[:12]}  {plain}{f'  ({change.why})' if change.why else ''}"


def tag(name: Annotated[str, typer.Argument(help="The name to give.")], version: _Name = "current") -> None:
    """Name a version; versions with a name are never removed by ``gc``. Example: hchem dataset tag release-1"""
    from kg import versions as store

    found = store.tag(_folder(), name, version)
    out.print(f"{found.id}  {', '.join(found.tags)}")


def untag(name: Annotated[str, typer.Argument(help="The name to take away.")]) -> None:
    """Take a name away; the version stays until ``gc``. Example: hchem dataset untag release-1"""
    from kg import versions as store

    store.untag(_folder(), name)


def rollback(version: _Name = "previous") -> None:
    """Point ``current`` at an earlier version, for those who read the data set.

    The catalogue is left alone: the next refresh goes on from it and takes a new version.
    Example: hchem dataset rollback previous
    """
    from kg import versions as store

    found = store.point(_folder(), version)
    out.print(f"current is {found.id} of {found.taken_at}")


def gc(
    keep: Annotated[
        int | None,
        typer.Option("--keep", min=0, help="Versions without a tag to keep (flows.keep_versions)."),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would go.")] = False,
) -> None:
    """Remove the oldest versions that no tag names. Example: hchem dataset gc --keep 3 --dry-run"""
    from flows.settings import load_settings
    from kg.versions import collect

    limit = load_settings().flows.keep_versions if keep is None else keep
    gone = collect(_folder(), limit, dry_run=dry_run)
    for version in gone:
        out.print(f"{version.id}  {version.taken_at[:19]}  {version.bytes / 1e6:.1f} MB")
    size = sum(version.bytes for version in gone) / 1e6
    out.print(f"{'would remove' if dry_run else 'removed'} {len(gone)} versions, {size:.1f} MB")
