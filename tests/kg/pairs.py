"""The identity fixture: pairs of names with what must become of them."""

from __future__ import annotations

import json
from pathlib import Path

PAIRS = [
    json.loads(line)
    for line in (Path(__file__).parent / "identity_pairs.jsonl").read_text(encoding="utf-8").splitlines()
]
