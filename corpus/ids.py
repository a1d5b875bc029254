"""Content-derived identifiers and fingerprints (architecture, ideas 2 and 3).

Every identifier of the platform is a hash of identity or content, never a
counter, so that an interrupted run resumes to the same bytes.
"""

from __future__ import annotations

import hashlib
import json
import unicodedata
from collections.abc import Iterable, Mapping
from typing import Any

_ID_HEX = 32


def digest(*parts: str | bytes) -> str:
    """Hash parts, each length-prefixed so that boundaries cannot collide.

    Returns 32 hexadecimal characters (128 bits of SHA-256).
    """
    state = hashlib.sha256()
    for part in parts:
        data = part.encode("utf-8", "surrogatepass") if isinstance(part, str) else part
        state.update(len(data).to_bytes(8, "big"))
        state.update(data)
    return state.hexdigest()[:_ID_HEX]


def canonical_json(value: Any) -> str:
    """Serialise with sorted keys and no spare blanks: equal values, equal text."""
    return json.dumps(value, sort_keys=True, ensure_ascii=False, separators=(",", ":"), default=str)


# characters that some readers take for the end of a line
_LINE_ENDS = str.maketrans({c: f"\\u{ord(c):04x}" for c in "\u0085\u2028\u2029"})


def json_line(row: Mapping[str, Any]) -> str:
    """A row as one line of JSON Lines, which every reader takes for one: other line ends are written as escapes."""
    return json.dumps(row, ensure_ascii=False).translate(_LINE_ENDS)


def normalise_text(text: str) -> str:
    """The text form that version ids, spans and assertions refer to: NFC with LF newlines."""
    return unicodedata.normalize("NFC", text.replace("\r\n", "\n").replace("\r", "\n"))


def document_id(identity: str) -> str:
    """Identity of a document: hash of its canonical URL or source id, stable across refreshes."""
    return digest("document", identity)


def version_id(document: str, text: str) -> str:
    """Version of a document: hash of its id and its refined text (already normalised)."""
    return digest("version", document, text)


def fingerprint(
    step: str,
    version: str,
    inputs: Iterable[str],
    settings: Mapping[str, Any] | None = None,
    model: str = "",
) -> str:
    """Fingerprint of a record: its inputs' content hashes, stage version, settings, model.

    ``inputs`` keep their order; sort them first where order has no meaning.
    """
    return digest("fingerprint", step, version, canonical_json(dict(settings or {})), model, *inputs)
