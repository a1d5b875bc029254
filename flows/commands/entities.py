"""``hchem entities``: substances with their names, what was merged or kept apart, by whom and why."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any

import typer

from flows.runtime import open_runtime
from flows.words import visible

if TYPE_CHECKING:
    from sqlalchemy.orm import Session

    from corpus.catalogue.tables import EntityDecision
    from kg.decisions import Case, Made

app = typer.Typer(help="Substances, aliases, merges.")

_JSON = typer.Option("--json", help="Print JSON.")
_LIMIT = typer.Option(min=1, help="How many at most.")
_DRY = typer.Option("--dry-run", help="Check and say what would be recorded; change nothing.")
_WHY = typer.Option(help="The reason, for those who read the history.")
_BY = typer.Option(help="Who decides; the user's login name where left out.")
_SIDE = "Key (a CAS number), or a name that leads to one entity."
_SHOWN = 12  # characters of a decision's id


def examples(*lines: str) -> str:
    """The examples at the end of a command's help."""
    return "Examples:  " + "  |  ".join(lines)


@app.command(
    "list", epilog=examples("hchem entities list --name 二氯乙烷", "hchem entities list --limit 5 --json")
)
def list_entities(
    name: Annotated[str, typer.Option(help="Only entities with a name that contains this.")] = "",
    limit: Annotated[int, _LIMIT] = 50,
    as_json: Annotated[bool, _JSON] = False,
) -> None:
    """Entities in key order with their preferred names."""
    from sqlalchemy import func, select

    from corpus.catalogue.tables import Entity, EntityAlias
    from corpus.names import normalise_name
    from kg.decisions import entity_name, waiting

    query = select(Entity).order_by(Entity.key)
    if name:
        form = normalise_name(name)
        query = query.where(
            Entity.key.in_(
                select(EntityAlias.key).where(EntityAlias.normalised.contains(form, autoescape=True))
            )
        )
    with open_runtime() as runtime, runtime.catalogue.reading() as session:
        total = session.scalar(select(func.count()).select_from(query.order_by(None).subquery())) or 0
        rows = [
            {"key": row.key, "label": row.label, "names": row.names, "shown": entity_name(session, row.key)}
            for row in session.scalars(query.limit(limit))
        ]
        behind = waiting(session)
    if as_json:
        typer.echo(json.dumps(rows, ensure_ascii=False, indent=2))
        return
    for row in rows:
        typer.echo(f"{row['key']:<40}{row['label']:<11}{visible(str(row['shown']))}")
    typer.echo(f"{len(rows)} of {total} entities", err=True)
    _say_behind(behind)


@app.command(epilog=examples("hchem entities show 67-56-1", "hchem entities show 木醇 --json"))
def show(
    key: Annotated[str, typer.Argument(metavar="ENTITY", help=_SIDE)],
    as_json: Annotated[bool, _JSON] = False,
) -> None:
    """An entity with its aliases and decisions, and how many assertions speak of it."""
    from sqlalchemy import func, or_, select

    from corpus.catalogue.tables import Assertion, EntityAlias, EntityDecision
    from kg.decisions import entity_name, find_entity, waiting

    with open_runtime() as runtime, runtime.catalogue.reading() as session:
        entity = find_entity(session, key)
        aliases = session.scalars(
            select(EntityAlias).where(EntityAlias.key == entity.key).order_by(EntityAlias.text)
        ).all()
        texts = [alias.text for alias in aliases]
        decisions = session.scalars(
            select(EntityDecision)
            .where(
                or_(
                    EntityDecision.left_key == entity.key,
                    EntityDecision.right_key == entity.key,
                    EntityDecision.left_key.in_(texts),
                    EntityDecision.right_key.in_(texts),
                )
            )
            .order_by(EntityDecision.decision_id)
        ).all()
        count = session.scalar(
            select(func.count())
            .select_from(Assertion)
            .where(Assertion.subject_key == entity.key, Assertion.state == "kept")
        )
        shown = {
            "key": entity.key,
            "label": entity.label,
            "names": entity.names,
            "shown": entity_name(session, entity.key),
            "aliases": [{"text": a.text, "source": a.source, "ambiguous": a.ambiguous} for a in aliases],
            "decisions": [_plain(d) for d in decisions],
            "assertions": count or 0,
        }
        behind = waiting(session)
    if as_json:
        typer.echo(json.dumps(shown, ensure_ascii=False, indent=2))
        return
    typer.echo(visible(f"{entity.key}  {entity.label}  {shown['shown']}"))
    typer.echo(f"assertions: {count or 0}")
    for alias in aliases:
        typer.echo(
            f"  alias  {visible(alias.text)}  ({alias.source}{', ambiguous' if alias.ambiguous else ''})"
        )
    for decision in decisions:
        typer.echo(f"  {_line(decision)}")
    _say_behind(behind)


@app.command(
    epilog=examples(
        "hchem entities review",
        "hchem entities review --accept 1f3a --why 'both pages give the synonym'",
        "hchem entities review --reject 1f3a --why 不同异构体 --dry-run",
        "hchem entities review --interactive",
    )
)
def review(
    limit: Annotated[int, _LIMIT] = 50,
    accept: Annotated[
        list[str] | None, typer.Option(metavar="ID", help="The two are one substance; may be repeated.")
    ] = None,
    reject: Annotated[
        list[str] | None, typer.Option(metavar="ID", help="The two are two substances; may be repeated.")
    ] = None,
    why: Annotated[str, _WHY] = "",
    by: Annotated[str, _BY] = "",
    interactive: Annotated[
        bool, typer.Option("--interactive", "-i", help="Ask about one case after the other.")
    ] = False,
    evidence: Annotated[bool, typer.Option(help="Show what the documents of both sides say.")] = True,
    dry_run: Annotated[bool, _DRY] = False,
    as_json: Annotated[bool, _JSON] = False,
) -> None:
    """Pairs that rules or a model found possible and nobody has decided: why, and what both sides say."""
    from corpus.errors import SettingsError
    from kg.decisions import review_cases, settle, waiting

    answers = [(case, True) for case in accept or ()] + [(case, False) for case in reject or ()]
    if answers:
        if interactive:
            raise SettingsError("give --accept and --reject, or --interactive, not both")
        if both := set(accept or ()) & set(reject or ()):
            raise SettingsError(f"{', '.join(sorted(both))} cannot be accepted and rejected")
        who = decider(by)

        def decide(session: Session) -> list[Made]:
            return [settle(session, case, why, who, accept=yes) for case, yes in answers]

        _write(decide, dry_run=dry_run, as_json=as_json)
        return
    with open_runtime() as runtime, runtime.catalogue.reading() as session:
        cases = review_cases(session, limit)
        behind = waiting(session)
    if interactive:
        _ask(cases, why, decider(by), dry_run=dry_run)
        return
    if as_json:
        typer.echo(json.dumps([case.as_dict() for case in cases], ensure_ascii=False, indent=2))
        return
    for case in cases:
        _show_case(case, evidence=evidence)
    if not cases:
        typer.echo("nothing to review")
    _say_behind(behind)


def _show_case(case: Case, *, evidence: bool = True) -> None:
    typer.echo(visible(f"{case.id[:_SHOWN]}  {case.names[0]} | {case.names[1]}  {case.rule}: {case.why}"))
    if not evidence:
        return
    for side in case.evidence:
        formulae = f", formula {', '.join(side['formulae'])}" if side["formulae"] else ""
        typer.echo(
            visible(
                f"    {side['name']} in {side['title'] or side['document'][:_SHOWN]!r}{formulae}: {side['url']}"
            )
        )
        for quote in side["quotes"]:
            typer.echo(f"        {visible(quote)}")


def _ask(cases: list[Case], why: str, who: str, *, dry_run: bool) -> None:
    from corpus.errors import SettingsError
    from kg.decisions import settle

    decided = 0
    for at, case in enumerate(cases, start=1):
        typer.echo(f"\n{at} of {len(cases)}")
        _show_case(case)
        if case.sides is None or case.of:
            typer.echo("    (cannot be decided here)")
            continue
        answer = typer.prompt("accept (one substance), reject (two), skip, quit [a/r/s/q]", default="s")
        if answer.strip().lower()[:1] == "q":
            break
        if answer.strip().lower()[:1] not in ("a", "r"):
            continue
        reason = why or typer.prompt("why")
        yes = answer.strip().lower()[:1] == "a"
        try:
            with open_runtime() as runtime, runtime.catalogue.writing() as session:
                made = settle(session, case.id, reason, who, accept=yes)
                if dry_run:
                    session.rollback()
        except SettingsError as error:
            typer.echo(f"not recorded: {error}", err=True)
            continue
        decided += 1
        typer.echo(f"{'dry run: ' if dry_run else ''}{made.words}")
    typer.echo(f"{decided} decided{' (dry run, nothing recorded)' if dry_run else ''}")
    _say_behind(bool(decided) and not dry_run)


@app.command(
    epilog=examples(
        "hchem entities merge 甲号油 67-56-1 --why 'the maker says so'",
        "hchem entities merge 'oil A' 67-56-1 --why 'same batch' --dry-run",
    )
)
def merge(
    one: Annotated[str, typer.Argument(metavar="A", help=_SIDE)],
    two: Annotated[str, typer.Argument(metavar="B", help=_SIDE)],
    why: Annotated[str, _WHY],
    by: Annotated[str, _BY] = "",
    dry_run: Annotated[bool, _DRY] = False,
    as_json: Annotated[bool, _JSON] = False,
) -> None:
    """Decide that A and B are one substance. Hard blocks and identifiers that differ refuse it, without override."""
    from kg import decisions

    who = decider(by)
    _write(lambda session: [decisions.merge(session, one, two, why, who)], dry_run=dry_run, as_json=as_json)


@app.command(
    epilog=examples(
        "hchem entities split 67-56-1 甲号油 --why 'other boiling point'",
        "hchem entities split 67-56-1 spirit --document 0d5f --why 'means ethanol there'",
    )
)
def split(
    one: Annotated[str, typer.Argument(metavar="A", help=_SIDE)],
    two: Annotated[
        str, typer.Argument(metavar="B", help="The name that leaves A, or what a person merged with A.")
    ],
    why: Annotated[str, _WHY],
    document: Annotated[
        str, typer.Option(metavar="ID", help="Only what this document calls so leaves.")
    ] = "",
    by: Annotated[str, _BY] = "",
    dry_run: Annotated[bool, _DRY] = False,
    as_json: Annotated[bool, _JSON] = False,
) -> None:
    """Take a merge back, of people or of the rules: B leaves A and is not joined again."""
    from kg import decisions

    who = decider(by)
    _write(
        lambda session: [decisions.split(session, one, two, why, who, document)],
        dry_run=dry_run,
        as_json=as_json,
    )


@app.command(epilog=examples("hchem entities undo 9c41 --why 'was a misunderstanding'"))
def undo(
    decision: Annotated[
        str, typer.Argument(metavar="ID", help="Decision as the history shows it, or its beginning.")
    ],
    why: Annotated[str, _WHY],
    by: Annotated[str, _BY] = "",
    dry_run: Annotated[bool, _DRY] = False,
    as_json: Annotated[bool, _JSON] = False,
) -> None:
    """Take back a decision of a person: a merge, a split, an answer to the review list, or an undo."""
    from kg import decisions

    who = decider(by)
    _write(lambda session: [decisions.undo(session, decision, why, who)], dry_run=dry_run, as_json=as_json)


@app.command(epilog=examples("hchem entities history", "hchem entities history 甲号油 --json"))
def history(
    name: Annotated[str, typer.Argument(metavar="[ENTITY]", help="Only decisions on this key or name.")] = "",
    as_json: Annotated[bool, _JSON] = False,
) -> None:
    """What people decided: who, when and why, what stands, and what was taken back by what."""
    from kg import decisions

    with open_runtime() as runtime, runtime.catalogue.reading() as session:
        rows = decisions.history(session, name)
        behind = decisions.waiting(session)
    if as_json:
        typer.echo(json.dumps({"decisions": rows, "waiting": behind}, ensure_ascii=False, indent=2))
        return
    for row in rows:
        ends = " | ".join(row[side]["name"] for side in ("left", "right"))
        what = f"undo of {row['undoes'][:_SHOWN]}" if row["undoes"] else row["kind"]
        said = visible(f"{row['by']}  {what}  {ends}: {row['why']}")
        typer.echo(f"{row['id'][:_SHOWN]}  {row['at'][:19]}  {said}")
        if not row["stands"]:
            typer.echo(f"              taken back by {row['taken_back_by'][:_SHOWN]}")
        if row["problem"]:
            typer.echo(f"              not applied: {visible(row['problem'])}")
    if not rows:
        typer.echo("nobody has decided anything" + (f" on {visible(name)}" if name else ""))
    _say_behind(behind)


def _write(decide: Callable[[Session], list[Made]], *, dry_run: bool, as_json: bool) -> None:
    """Record decisions in one transaction and say when they take effect."""
    from kg.decisions import BEHIND

    with open_runtime() as runtime, runtime.catalogue.writing() as session:
        made = decide(session)
        if dry_run:
            session.rollback()
    if as_json:
        shown = {"decisions": [entry.as_dict() for entry in made], "dry_run": dry_run, "effect": BEHIND}
        typer.echo(json.dumps(shown, ensure_ascii=False, indent=2))
        return
    for entry in made:
        head = "dry run, nothing recorded" if dry_run else f"decision {entry.id[:_SHOWN]}"
        typer.echo(f"{head}: {entry.words}")
    if not dry_run:
        typer.echo(BEHIND)


def _say_behind(behind: bool) -> None:
    from kg.decisions import BEHIND

    if behind:
        typer.echo(f"decisions are waiting: what was decided {BEHIND}", err=True)


def decider(by: str) -> str:
    """Who decides: as given, else the login name."""
    import getpass

    if by.strip():
        return by
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a container's user without a name
        return ""


def _line(decision: EntityDecision) -> str:
    plain = _plain(decision)
    undone = "  (undone)" if plain["undone"] else ""
    return visible(
        f"{plain['kind']:<11}{plain['left']} | {plain['right']}  {plain['rule']}: {plain['why']}{undone}"
    )


def _plain(decision: EntityDecision) -> dict[str, Any]:
    return {
        "id": decision.decision_id,
        "kind": decision.kind,
        "left": decision.left_key,
        "right": decision.right_key,
        "rule": decision.rule,
        "why": decision.why,
        "by": decision.decided_by,
        "at": decision.at.isoformat() if decision.at else "",
        "undone": decision.undone,
    }
