"""``hchem entities``: substances with their names, what was merged or linked and why, and the review list."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from corpus.catalogue.tables import EntityDecision

app = typer.Typer(help="Substances, aliases, merges.")


@app.command("list")
def list_entities(
    name: Annotated[str, typer.Option(help="Only entities with a name that contains this.")] = "",
    limit: Annotated[int, typer.Option(min=1)] = 50,
) -> None:
    """Entities in key order with their preferred names."""
    from sqlalchemy import select

    from corpus.catalogue.tables import Entity, EntityAlias
    from corpus.names import normalise_name
    from flows.runtime import open_runtime

    query = select(Entity).order_by(Entity.key)
    if name:
        form = normalise_name(name)
        query = query.where(
            Entity.key.in_(
                select(EntityAlias.key).where(EntityAlias.normalised.contains(form, autoescape=True))
            )
        )
    with open_runtime() as runtime, runtime.catalogue.reading() as session:
        for row in session.scalars(query.limit(limit)):
            names = " / ".join(row.names[language] for language in sorted(row.names))
            typer.echo(f"{row.key:<40}{row.label:<11}{names}")


@app.command()
def show(
    key: Annotated[str, typer.Argument(help="Key (a CAS number) or a name that leads to one entity.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """An entity with its aliases and decisions, and how many assertions speak of it."""
    from sqlalchemy import func, or_, select

    from corpus.catalogue.tables import Assertion, Entity, EntityAlias, EntityDecision
    from corpus.errors import SettingsError
    from corpus.names import normalise_name
    from flows.runtime import open_runtime

    with open_runtime() as runtime, runtime.catalogue.reading() as session:
        entity = session.get(Entity, key)
        if entity is None:
            keys = session.scalars(
                select(EntityAlias.key)
                .where(EntityAlias.normalised == normalise_name(key), EntityAlias.ambiguous.is_(False))
                .distinct()
            ).all()
            entity = session.get(Entity, keys[0]) if len(keys) == 1 else None
        if entity is None:
            raise SettingsError(f"no single entity is known as {key!r} (see: hchem entities list --name …)")
        aliases = session.scalars(
            select(EntityAlias).where(EntityAlias.key == entity.key).order_by(EntityAlias.text)
        ).all()
        decisions = session.scalars(
            select(EntityDecision)
            .where(
                or_(
                    EntityDecision.left_key == entity.key,
                    EntityDecision.right_key == entity.key,
                    EntityDecision.left_key.in_([alias.text for alias in aliases]),
                    EntityDecision.right_key.in_([alias.text for alias in aliases]),
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
            "aliases": [{"text": a.text, "source": a.source, "ambiguous": a.ambiguous} for a in aliases],
            "decisions": [_plain(d) for d in decisions],
            "assertions": count or 0,
        }
    if as_json:
        typer.echo(json.dumps(shown, ensure_ascii=False, indent=2))
        return
    typer.echo(f"{entity.key}  {entity.label}  {' / '.join(entity.names.values())}")
    typer.echo(f"assertions: {count or 0}")
    for alias in aliases:
        typer.echo(f"  alias  {alias.text}  ({alias.source}{', ambiguous' if alias.ambiguous else ''})")
    for decision in decisions:
        typer.echo(f"  {_line(decision)}")


@app.command()
def review(limit: Annotated[int, typer.Option(min=1)] = 50) -> None:
    """Open cases: names that lead to several substances, and components whose ids disagreed."""
    from sqlalchemy import select

    from corpus.catalogue.tables import EntityDecision
    from flows.runtime import open_runtime

    query = (
        select(EntityDecision)
        .where(EntityDecision.kind.in_(("review", "keep-apart")), EntityDecision.undone.is_(False))
        .order_by(EntityDecision.decision_id)
    )
    with open_runtime() as runtime, runtime.catalogue.reading() as session:
        rows = session.scalars(query.limit(limit)).all()
        for row in rows:
            typer.echo(_line(row))
    if not rows:
        typer.echo("nothing to review")


def _line(decision: EntityDecision) -> str:
    plain = _plain(decision)
    undone = "  (undone)" if plain["undone"] else ""
    return f"{plain['kind']:<11}{plain['left']} | {plain['right']}  {plain['rule']}: {plain['why']}{undone}"


def _plain(decision: EntityDecision) -> dict[str, object]:
    return {
        "kind": decision.kind,
        "left": decision.left_key,
        "right": decision.right_key,
        "rule": decision.rule,
        "why": decision.why,
        "by": decision.decided_by,
        "undone": decision.undone,
    }
