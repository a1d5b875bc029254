"""A site of three pages and the names they need: a whole run of it takes seconds a stage."""

from __future__ import annotations

import shutil
from pathlib import Path

from tests.conftest import SAMPLES

PAGES = (
    "weihua.example/chem/benfen-2041.html",
    "chemsheets.example/datasheets/phenol-108-95-2.html",
    "chemsheets.example/datasheets/acetone-67-64-1.html",
)
_SUBSTANCES = ("108-95-2", "67-64-1")


def tiny_site(target: Path) -> Path:
    """Copy the pages, their rows and their names from the sample site."""
    write_manifest(target, PAGES)
    for name in PAGES:
        (target / "pages" / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(SAMPLES / "pages" / name, target / "pages" / name)
    head, *rows = (SAMPLES / "chemicals.csv").read_text(encoding="utf-8").splitlines()
    kept = [row for row in rows if any(cas in row for cas in _SUBSTANCES)]
    (target / "chemicals.csv").write_text("\n".join([head, *kept]) + "\n", encoding="utf-8")
    return target


def write_manifest(target: Path, names: tuple[str, ...]) -> None:
    """List these pages as the site's."""
    target.mkdir(parents=True, exist_ok=True)
    lines = (SAMPLES / "manifest.jsonl").read_text(encoding="utf-8").splitlines()
    kept = [line for line in lines if any(f'"{name}"' in line for name in names)]
    assert len(kept) == len(names)
    (target / "manifest.jsonl").write_text("\n".join(kept) + "\n", encoding="utf-8")
