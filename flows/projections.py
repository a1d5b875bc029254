"""What can be made again from the catalogue and is not there: after a restore, the graph and the vector index.

A backup holds neither. The catalogue still tells how large the graph was, so that its figures
alone would make a restored directory look whole.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from corpus.catalogue.tables import LedgerRow
from flows.settings import value_at
from kg.embedded import database_exists
from kg.stage import current_snapshot

_OF_SERVER = "restored-graph"  # beside the data: the graph server has not been loaded since a restore


def mark_restored(data_dir: Path) -> None:
    """Remember that a restore left the graph on the server of the settings as it was."""
    (data_dir / _OF_SERVER).write_text(
        "the graph on the server may hold another state: hchem graph rebuild\n", encoding="utf-8"
    )


def mark_loaded(data_dir: Path) -> None:
    """The graph has been loaded anew from the catalogue."""
    (data_dir / _OF_SERVER).unlink(missing_ok=True)


def absent(db: Session, settings: dict[str, Any]) -> list[dict[str, str]]:
    """What is to be made again, each with ``what``, ``why`` and the ``command`` that makes it.

    ``settings``: those in force, as plain data. Only what is on this disk is looked at, no server is asked.
    """
    data_dir, found = Path(str(settings["data_dir"])), []
    if current_snapshot(db) is not None:
        on_server = value_at(settings, "graph.uri") is not None
        if on_server and (data_dir / _OF_SERVER).is_file():
            why = "the server may hold another state than this restored catalogue"
            found.append({"what": "graph", "why": why, "command": "hchem graph rebuild"})
        elif not on_server and not database_exists(data_dir / "graph"):
            found.append({"what": "graph", "why": "no data in this directory", "command": "hchem refresh"})
    indexed = db.scalar(select(LedgerRow.item_id).where(LedgerRow.step == "evaluate.index").limit(1))
    if indexed is not None and not (data_dir / "vectors").is_dir():
        found.append({"what": "vector index", "why": "no data in this directory", "command": "hchem refresh"})
    return found


def described(missing: list[dict[str, str]]) -> str:
    """What is absent in words; empty where nothing is."""
    return "; ".join(
        f"{entry['what']}: {entry['why']}, make it again: {entry['command']}" for entry in missing
    )
