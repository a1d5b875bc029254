"""``hchem conflicts``: where sources state different values, side by side with their words."""

from __future__ import annotations

import json
from collections import Counter
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from corpus.lookup import one_by_beginning
from flows.runtime import open_runtime
from flows.words import counted

if TYPE_CHECKING:
    from kg.conflicts import Finding

app = typer.Typer(help="Where sources disagree.")
_SHOWN = 12  # characters of an id


class Verdict(StrEnum):
    """How two values stand to each other."""

    CONFLICT = "conflict"
    DIFFER = "differ"
    AGREE = "agree"
    ALL = "all"


@app.command(
    "list",
    epilog="Examples:  hchem conflicts list  |  hchem conflicts list --substance 甲醇 --verdict all  |  "
    "hchem conflicts list --property flash_point --json",
)
def list_conflicts(
    substance: Annotated[str, typer.Option(help="Only this one: key (a CAS number) or name.")] = "",
    prop: Annotated[
        str, typer.Option("--property", help="Only this property (flash_point, limit, toxicity …).")
    ] = "",
    verdict: Annotated[
        Verdict, typer.Option(help="conflict: beyond the property's tolerance; differ: within it.")
    ] = Verdict.CONFLICT,
    settled: Annotated[
        bool, typer.Option("--settled", help="Also those that a decision on the review page settled.")
    ] = False,
    limit: Annotated[int, typer.Option(min=1, help="How many at most.")] = 50,
    as_json: Annotated[bool, typer.Option("--json", help="Print a JSON list.")] = False,
) -> None:
    """Values of one substance and property that two sources state differently, under the same conditions."""
    from corpus import reviews
    from kg import decided
    from kg.conflicts import find
    from kg.decisions import entity_name, find_entity

    wanted = ("conflict", "differ", "agree") if verdict is Verdict.ALL else (verdict.value,)
    with open_runtime() as runtime, runtime.catalogue.reading() as session:
        subjects = [find_entity(session, substance).key] if substance else []
        found = [
            finding
            for finding in find(session, runtime.settings.extraction, subjects=subjects, verdicts=wanted)
            if not prop or finding.what.split(" ")[0] == prop or finding.what == prop
        ]
        rows_by_key = {row.item_id: row for row in reviews.standing(session, "conflicts")}
        said_of = {}
        for finding in found:
            row = rows_by_key.get(decided.conflict_key(finding))
            if row is not None and decided.settled(session, finding, row):
                said_of[finding.id] = f"  [settled: {row.choice}, {row.decided_by}]"
        if not settled:
            found = [finding for finding in found if finding.id not in said_of]
        names = {finding.subject: entity_name(session, finding.subject) for finding in found[:limit]}
    if as_json:
        rows = [{"name": names[finding.subject], **finding.as_dict()} for finding in found[:limit]]
        typer.echo(json.dumps(rows, ensure_ascii=False, indent=2))
        return
    for finding in found[:limit]:
        typer.echo(_line(finding, names[finding.subject], said_of.get(finding.id, "")))
    if said_of and not settled:
        typer.echo(
            f"{counted(len(said_of), 'comparison')} settled by a decision, not listed (--settled)", err=True
        )
    counts: Counter[str] = Counter(finding.result.verdict for finding in found)
    said = ", ".join(f"{name} {counts[name]}" for name in wanted)
    typer.echo(f"{min(limit, len(found))} of {counted(len(found), 'comparison')} ({said})", err=True)


@app.command(epilog="Examples:  hchem conflicts show 3f0a  |  hchem conflicts show 3f0a --json")
def show(
    conflict: Annotated[str, typer.Argument(metavar="ID", help="Id as the list shows it, or its beginning.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Both values with units, sources and the words of each source."""
    from kg.conflicts import find
    from kg.decided import conflict_key
    from kg.decisions import entity_name

    def identity(one: Finding) -> str:
        """The list's id, or the one in the address of the review page, whichever was meant."""
        return one.id if one.id.startswith(conflict) else conflict_key(one)

    with open_runtime() as runtime, runtime.catalogue.reading() as session:
        every = ("conflict", "differ", "agree")
        found = [
            finding
            for finding in find(session, runtime.settings.extraction, verdicts=every)
            if conflict and identity(finding).startswith(conflict)
        ]
        finding = one_by_beginning(
            found, conflict, identity, "comparison", "hchem conflicts list --verdict all"
        )
        name = entity_name(session, finding.subject)
    if as_json:
        typer.echo(json.dumps({"name": name, **finding.as_dict()}, ensure_ascii=False, indent=2))
        return
    typer.echo(_line(finding, name))
    if finding.conditions:
        typer.echo("under " + ", ".join(f"{key} {text}" for key, text in finding.conditions.items()))
    for side in (finding.left, finding.right):
        in_si = f" = {side.in_si}" if side.in_si not in ("", side.words) else ""
        typer.echo(f"\n{side.words}{in_si}")
        typer.echo(f"  {side.title or side.document} ({side.kind}): {side.url}")
        typer.echo(f"  [{side.start}:{side.end}] {' '.join(side.quote.split())}")
        if side.others:
            typer.echo(
                f"  also stated by {len(side.others)} more: {', '.join(o[:_SHOWN] for o in side.others[:5])}"
            )


def _line(finding: Finding, name: str, settled: str = "") -> str:
    detail = "".join(f", {text}" for text in finding.detail.values())
    return (
        f"{finding.id[:_SHOWN]}  {finding.result.verdict:<9}{name}  {finding.what}{detail}: "
        f"{finding.sides}  ({finding.said}){settled}"
    )
