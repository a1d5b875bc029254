"""Regular expressions of a source file: tried when they are read, bounded whenever they are used.

Python's ``re`` cannot be stopped: one pattern such as ``^(x|xx)+$`` and one address that a page
names would hold a crawl for ever. No rule about the form of a pattern finds all of these and none
of the harmless ones, so the guarantee is a limit of computing time per use (``regex``, which
measures the processor's time, not the clock's). A pattern that explodes on short texts is refused
when the file is read, before anything is crawled.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any

import regex  # type: ignore[import-untyped]

from corpus.errors import TerminalError

MAX_PATTERN = 1000
MAX_TARGET = 8000
"""Characters of path and query that are looked at; servers take no longer addresses, so neither matters."""
SECONDS_PER_ADDRESS = 0.2
SECONDS_PER_PAGE = 10.0
_SECONDS_OF_TRIAL = 0.25
_TRIAL = 240  # characters: a polynomial pattern is through at once, an exponential one never
_UNITS = (
    "a",
    "A",
    "0",
    "-",
    "_",
    "/",
    ".",
    "=",
    "&",
    " ",
    "中",
    "%E8",
    "a/",
    "0-",
    "a1",
    "ab-",
    "x=1&",
    ", ",
)
_META = frozenset(".^$*+?{}[]|()")


class SlowPattern(TerminalError):
    """A pattern used up its computing time; the page in hand is left, the crawl goes on."""

    def __init__(self, pattern: str, seconds: float, text: str) -> None:
        super().__init__(
            f"pattern {pattern!r} takes more than {seconds:g} s on {text[:200]!r}", reason="slow_pattern"
        )


def fault_of(pattern: str) -> str:
    """Why a pattern cannot be used; empty where it can."""
    if len(pattern) > MAX_PATTERN:
        return f"is longer than {MAX_PATTERN} characters"
    return _fault(pattern)


def groups_of(pattern: str) -> int:
    """How many groups a valid pattern has."""
    return int(_compiled(pattern).groups)


def found(pattern: str, target: str) -> bool:
    """Whether the pattern is found in path and query of an address; never in one that is too long.

    Raises SlowPattern.
    """
    if len(target) > MAX_TARGET:
        return False
    try:
        return _compiled(pattern).search(target, timeout=SECONDS_PER_ADDRESS) is not None
    except TimeoutError as error:
        raise SlowPattern(pattern, SECONDS_PER_ADDRESS, target) from error


def matches(pattern: str, text: str) -> Iterator[Sequence[str | None]]:
    """The groups of each match in a page's text. Raises SlowPattern."""
    try:
        for match in _compiled(pattern).finditer(text, timeout=SECONDS_PER_PAGE):
            yield match.groups()
    except TimeoutError as error:
        raise SlowPattern(pattern, SECONDS_PER_PAGE, text) from error


@lru_cache(maxsize=1024)
def _compiled(pattern: str) -> Any:
    return regex.compile(pattern)


@lru_cache(maxsize=1024)
def _fault(pattern: str) -> str:
    try:
        compiled = _compiled(pattern)
    except (regex.error, RecursionError, OverflowError, MemoryError) as error:
        return f"is not a regular expression: {str(error) or type(error).__name__}"
    for text in _trials(pattern):
        try:
            compiled.search(text, timeout=_SECONDS_OF_TRIAL)
        except TimeoutError:
            return f"takes endless time on texts such as {text[:30] + '…'!r}; avoid repetitions inside repetitions"
    return ""


def _trials(pattern: str) -> Iterator[str]:
    """Long repetitions that do not end as the pattern wants, behind each beginning that it may ask for."""
    beginnings, words = _literals(pattern)
    for beginning in beginnings:
        for unit in dict.fromkeys([*_UNITS, *words, "".join(words)]):
            if unit:
                yield beginning + unit * (_TRIAL // len(unit)) + "\n!"


def _literals(pattern: str) -> tuple[list[str], list[str]]:
    """What must stand before each opening bracket where it is plain text, and the pattern's plain texts."""
    beginnings, words, run = [""], [], ""
    prefix: str | None = ""
    escaped = False
    for character in pattern:
        if escaped and not character.isalnum():  # \. is a dot, \d is not a d
            run, escaped = run + character, False
            prefix = None if prefix is None else prefix + character
            continue
        if escaped:
            escaped, prefix = False, None
        elif character == "\\":
            escaped = True
        elif character not in _META:
            run += character
            prefix = None if prefix is None else prefix + character
            continue
        elif character in "([" and prefix:
            beginnings.append(prefix)
            prefix = None
        elif character not in "^(":
            prefix = None
        if run:
            words.append(run)
            run = ""
    return list(dict.fromkeys(beginnings))[:4], [word for word in [*words, run] if word][:8]
