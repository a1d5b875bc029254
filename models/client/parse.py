"""From raw text to the pydantic answer, without inventing what is not there.

Real servers wrap JSON in fences, prose and ``<think>`` blocks and forget commas.
All that is read; but a cut answer is never completed, a repair never changes a
number or a word, and two different answers in one text are no answer.
"""

from __future__ import annotations

import json
import re
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

T = TypeVar("T", bound=BaseModel)

_WORD = re.compile(r"-?\d+(?:[.,]\d+)*|\w+")
_NOT_JSON = re.compile(r"[:\[,]\s*-?(?:NaN|Infinity|nan|inf)\s*[,}\]]")
_OPENING = re.compile(r"[{\[]")
_FENCE = re.compile(r"```[\w-]*\s*\n(.*?)\n?\s*```", re.S)


class Unreadable(Exception):
    """The text holds no acceptable answer; ``reason`` is counted, the message goes to the model."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason


def parse(raw: str, output: type[T], finish_reason: str = "stop") -> T:
    """Read an answer. Raises Unreadable (empty, truncated, no_json, ambiguous, schema)."""
    text = _without_thoughts(raw)
    if finish_reason == "length":
        raise Unreadable(
            "truncated", "The answer was cut at the output limit. Answer more briefly, complete."
        )
    if not text.strip():
        raise Unreadable("empty", "The answer was empty.")
    values = _values(text)
    if not values:
        raise Unreadable("no_json", "The answer holds no complete JSON object.")
    fitting, problem = _fitting(values, output)
    if not fitting:
        raise Unreadable("schema", f"The JSON does not fit the schema: {problem}")
    if any(value != fitting[0] for value in fitting[1:]):
        raise Unreadable("ambiguous", "The answer holds several different JSON objects. Give exactly one.")
    return fitting[0]


def _without_thoughts(raw: str) -> str:
    text = raw.removeprefix("\ufeff")
    _, mark, tail = text.rpartition("</think>")
    if mark:
        return tail
    if re.match(r"\s*<think>", text):
        raise Unreadable("truncated", "The answer ended while still thinking. Answer with the JSON only.")
    return text


def _values(text: str) -> list[Any]:
    """The JSON values of a text: the whole of it, else those in fences, else those in prose."""
    stripped = text.strip()
    try:
        return [_loads(stripped)]
    except ValueError:
        pass
    for part in [*_FENCE.findall(text)[::-1], text]:
        found = [value for piece in _balanced(part) for value in _read(piece)]
        if found:
            return found
    return []


def _read(piece: str) -> list[Any]:
    try:
        return [_loads(piece)]
    except ValueError:
        return _repaired(piece)


def _loads(text: str) -> Any:
    try:
        value = json.loads(text, object_pairs_hook=_unique, parse_constant=_no_constant)
    except RecursionError as error:
        raise ValueError("nested too deeply") from error
    if not isinstance(value, dict | list):
        raise ValueError("a bare value is no answer")
    return value


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in pairs:
        if name in found and found[name] != value:
            raise Unreadable("ambiguous", f"The JSON gives {name!r} twice with different values.")
        found[name] = value
    return found


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


def _repaired(piece: str) -> list[Any]:
    """A balanced object with slips (commas, quotes, comments); dropped where a word would change."""
    if _NOT_JSON.search(piece):
        return []
    from json_repair import repair_json

    try:
        value = repair_json(piece, return_objects=True, skip_json_loads=True)
    except (ValueError, RecursionError):  # nested too deeply
        return []
    if not isinstance(value, dict | list) or not value:
        return []
    return [value] if _substance(json.dumps(value, ensure_ascii=False)) == _substance(piece) else []


def _substance(text: str) -> tuple[list[str], list[int]]:
    """Numbers and words in order, and how often each structural sign occurs.

    A repair that changes them changed what was said: ``{"value": 1 2}`` must not
    become ``{"value": 1, "2}": ""}``.
    """
    uncommented = re.sub(r"/\*.*?\*/", " ", text, flags=re.S)
    found = [word.casefold() for word in _WORD.findall(uncommented)]
    words = ["null" if word == "none" else word for word in found]
    return words, [uncommented.count(sign) for sign in "{}[]:"]


def _balanced(text: str) -> list[str]:
    """The outermost complete ``{…}`` or ``[…]`` pieces; an unclosed one ends the search."""
    pieces: list[str] = []
    position = 0
    while (match := _OPENING.search(text, position)) is not None:
        end = _closing(text, match.start())
        if end is None:
            return []
        pieces.append(text[match.start() : end])
        position = end
    return pieces


def _closing(text: str, start: int) -> int | None:
    """End of the bracketed piece that opens at ``start``; None where it is never closed."""
    depth, quoted, escaped = 0, False, False
    for position in range(start, len(text)):
        char = text[position]
        if quoted:
            if escaped:
                escaped = False
            elif char == "\\":
                escaped = True
            elif char == '"':
                quoted = False
        elif char == '"':
            quoted = True
        elif char in "{[":
            depth += 1
        elif char in "}]":
            depth -= 1
            if depth == 0:
                return position + 1
    return None


def _fitting(values: list[Any], output: type[T]) -> tuple[list[T], str]:
    fitting: list[T] = []
    problem = ""
    for value in values:
        if isinstance(value, dict) and not set(value) & set(output.model_fields):
            problem = (
                f"none of the fields {', '.join(output.model_fields)} is given"  # defaults are no answer
            )
            continue
        try:
            fitting.append(output.model_validate_json(json.dumps(value)))
        except ValidationError as error:
            items = error.errors(include_url=False, include_input=False)[:5]
            problem = "; ".join(f"{'.'.join(map(str, item['loc']))}: {item['msg']}" for item in items)
    return fitting, problem
