"""``hchem chemicals``: the name repository."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table
from rich.text import Text
from sqlalchemy import func, or_, select
from sqlalchemy.orm import Session

from corpus.catalogue.tables import Chemical, ChemicalName
from corpus.errors import SettingsError
from flows.console import out, whole
from flows.runtime import open_runtime
from flows.settings import Settings

app = typer.Typer()


@app.command("list")
def list_chemicals(
    search: Annotated[str, typer.Argument(help="Part of a name, or a CAS number; all where left out.")] = "",
    limit: Annotated[int, typer.Option(min=1, help="How many at most.")] = 50,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON lines.")] = False,
) -> None:
    """List substances with their names. Example: hchem chemicals list 甲醇"""
    from corpus.chemicals import as_cas, normalise_name

    query = select(Chemical).order_by(Chemical.key)
    if search:
        part = normalise_name(search)
        named = select(ChemicalName.key).where(ChemicalName.normalised.contains(part, autoescape=True))
        query = query.where(or_(Chemical.cas == (as_cas(search) or search), Chemical.key.in_(named)))
    with open_runtime() as runtime, runtime.catalogue.reading() as db:
        total = db.scalar(select(func.count()).select_from(query.order_by(None).subquery())) or 0
        rows = [
            {
                "key": row.key,
                "name": _name(db, row.key, "en"),
                "name_zh": _name(db, row.key, "zh"),
                "formula": row.formula or "",
                "un": list(row.un_numbers),
                "lists": [entry["list"] for entry in row.hazards],
            }
            for row in db.scalars(query.limit(limit))
        ]
    if as_json:
        for row in rows:
            typer.echo(json.dumps(row, ensure_ascii=False))
        return
    table = Table(box=None, padding=(0, 2, 0, 0))
    for column in ("key", "English", "Chinese", "formula", "UN", "on lists"):
        table.add_column(column, overflow="fold")
    for row in rows:
        cells = (
            row["key"],
            row["name"],
            row["name_zh"],
            row["formula"],
            " ".join(row["un"]),
            ", ".join(row["lists"]),
        )
        table.add_row(*(Text(str(cell)) for cell in cells))
    out.print(whole(table, "key"))
    out.print(f"{min(limit, total)} of {total} substances")


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _name(db: Session, key: str, language: str) -> str:
    """The name shown: the main one, of the platform's own table first."""
    from corpus.chemicals import TABLE
    from corpus.name_sources import ALIAS

    rows = db.scalars(
        select(ChemicalName).where(ChemicalName.key == key, ChemicalName.language == language)
    ).all()
    ranked = sorted(rows, key=lambda r: (r.source != TABLE, r.source.endswith(ALIAS), r.kind, r.name_id))
    return ranked[0].name if ranked else ""


_SHARED = "Give names also to this substance that are another's already; else they are reported and left out."
_DRY_RUN = "Say what would happen; change nothing."


@app.command("add")
def add(
    name: Annotated[str, typer.Argument(help="Name of the substance.")],
    cas: Annotated[str, typer.Option(help="CAS number; its check digit is verified.")] = "",
    zh: Annotated[str, typer.Option(help="Chinese name.")] = "",
    alias: Annotated[list[str] | None, typer.Option(help="Another name; may be repeated.")] = None,
    formula: Annotated[str, typer.Option(help="Molecular formula.")] = "",
    un: Annotated[str, typer.Option(help="UN number (four digits).")] = "",
    shared: Annotated[bool, typer.Option("--shared", help=_SHARED)] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help=_DRY_RUN)] = False,
) -> None:
    """Add one substance, or names to a known one. Example: hchem chemicals add methanol --cas 67-56-1 --zh 甲醇"""
    from corpus.chemicals import add_chemical

    with open_runtime() as runtime:
        key, report = add_chemical(
            runtime.catalogue, name, cas=cas, name_zh=zh, aliases=alias or (), formula=formula, un=un,
            shared=shared, dry_run=dry_run,
        )  # fmt: skip
    _say([f"warning: {message}" for message in report.warnings])
    _say([f"conflict: {message}" if "also a name of" in message else message for message in report.reviews])
    what = "added" if report.added else "extended" if report.updated else "already known:"
    out.print(f"{'dry run, nothing changed: ' if dry_run else ''}{what} {key}", markup=False)


def _say(messages: list[str]) -> None:
    for message in messages:
        typer.echo(message, err=True)


@app.command("import")
def import_file(
    path: Annotated[Path, typer.Argument(help="CSV or JSON list: name, cas, aliases, name_zh, formula, un.")],
    shared: Annotated[bool, typer.Option("--shared", help=_SHARED)] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help=_DRY_RUN)] = False,
) -> None:
    """Import a list; bad rows are reported by line, the rest loads. Example: hchem chemicals import list.csv"""
    from corpus.chemicals import import_list

    with open_runtime() as runtime:
        report = import_list(runtime.catalogue, path, shared=shared, dry_run=dry_run)
    _say(report.errors)
    _say([f"warning: {message}" for message in report.warnings])
    _say([f"review: {message}" for message in report.reviews])
    if report.unused:
        _say([f"columns not used: {', '.join(report.unused)}"])
    out.print(
        f"{'dry run, nothing changed: ' if dry_run else ''}{report.added} added, {report.updated} extended, "
        f"{report.unchanged} unchanged, {_count(len(report.errors), 'bad row')}, {len(report.reviews)} to review"
    )
    if report.errors and not report.total:
        raise typer.Exit(1)


@app.command("remove")
def remove(
    which: Annotated[
        str, typer.Argument(metavar="[CHEMICAL]", help="CAS number, key or exact name of a substance.")
    ] = "",
    name: Annotated[str, typer.Option(help="Only this name of the substance.")] = "",
    imported: Annotated[
        str,
        typer.Option("--list", help="Path, file name or #id of an imported list: take back what it brought."),
    ] = "",
    dry_run: Annotated[bool, typer.Option("--dry-run", help=_DRY_RUN)] = False,
) -> None:
    """Take back what was added, or with --list what a list brought. Example: hchem chemicals remove --list mine.csv"""
    from corpus.chemical_claims import unclaimed
    from corpus.chemicals import remove_chemical, remove_list
    from corpus.name_sources import holder_of

    if bool(which) == bool(imported) or (name and imported):
        raise SettingsError("give a substance (with --name for one of its names), or --list with a file name")
    with open_runtime() as runtime:
        with runtime.catalogue.reading() as db:
            old = unclaimed(db)
        report = (
            remove_list(
                runtime.catalogue,
                imported,
                protected=_sample_lists(runtime.settings),
                dry_run=dry_run,
            )
            if imported
            else remove_chemical(runtime.catalogue, which, name=name, dry_run=dry_run)
        )
    for key, names in report.removed.items():
        if names:
            out.print(f"{key}: removed {'; '.join(names)}", markup=False, soft_wrap=True)
    for key in report.gone:
        out.print(f"{key}: removed, no name is left", markup=False)
    if which:
        _show_kept(report.kept)
    if old:
        _say(
            [
                f"note: names of {', '.join(map(holder_of, old))} were stored by an earlier version, which did not "
                "note what several lists say: such a name goes with the first of them. Import your lists (again) "
                "to have all their names: hchem chemicals import FILE"
            ]
        )
    out.print(
        f"{'dry run, nothing changed: ' if dry_run else ''}{_count(report.names, 'name')} and "
        f"{_count(report.substances, 'substance')} removed"
    )


def _sample_lists(settings: Settings) -> list[Path]:
    from crawlers.sources import sample_folder

    try:
        return [sample_folder(settings.crawl) / "chemicals.csv"]
    except SettingsError:  # an installed wheel has no sample site
        return []


def _show_kept(kept: Mapping[str, Sequence[tuple[str, str]]]) -> None:
    for key, names in kept.items():
        by_holder: dict[str, list[str]] = {}
        for name, holder in names:
            by_holder.setdefault(holder, []).append(name)
        for holder, texts in sorted(by_holder.items()):
            out.print(f"{key}: {'; '.join(texts)} stays, of {holder}", markup=False, soft_wrap=True)


@app.command("show")
def show(
    which: Annotated[str, typer.Argument(metavar="CHEMICAL", help="CAS number, key or exact name.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Show a substance with all names and hazard lists. Example: hchem chemicals show 67-56-1"""
    from corpus.chemicals import find_chemicals, not_found

    with open_runtime() as runtime, runtime.catalogue.reading() as db:
        keys = find_chemicals(db, which)
        if not keys:
            raise SettingsError(f"{not_found(which)}; see: hchem chemicals list {which}")
        if len(keys) > 1:
            raise SettingsError(f"{which!r} may be any of {', '.join(keys)}; give the CAS number")
        shown = _shown(db, keys[0])
    if as_json:
        typer.echo(json.dumps(shown, ensure_ascii=False, indent=2))
        return
    for label, value in shown.items():
        if isinstance(value, list):
            out.print(f"{label}:")
            for entry in value:
                out.print("  " + " | ".join(str(v) for v in entry.values()), markup=False)
        else:
            out.print(f"{label}: {value}", markup=False)


def _shown(db: Session, key: str) -> dict[str, object]:
    from corpus.chemical_claims import sources_of

    row = db.get_one(Chemical, key)
    names = db.scalars(
        select(ChemicalName)
        .where(ChemicalName.key == key)
        .order_by(ChemicalName.language, ChemicalName.kind, ChemicalName.normalised)
    )
    return {
        "key": row.key,
        "cas": row.cas or "",
        "formula": row.formula or "",
        "inchikey": row.inchikey or "",
        "un": " ".join(row.un_numbers),
        "provenance": row.provenance,
        "hazards": list(row.hazards),
        "names": [
            {
                "name": n.name,
                "language": n.language,
                "kind": n.kind,
                "source": "; ".join(sources_of(db, n)),
            }
            for n in names
        ],
    }
