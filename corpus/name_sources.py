"""Where a name of a substance comes from: added by hand, a user's list, the built-in repository."""

from __future__ import annotations

import re
from pathlib import Path

from corpus.ids import digest

ALIAS = ", alias"  # ends the source of every name but a substance's main ones
USER = "user"
USER_LIST = "user list "
LIST_ID = re.compile(r" #[0-9a-f]{8}$")


def owner(source: str) -> str:
    """The source of a substance's main names, of whichever name's source."""
    return source.removesuffix(ALIAS)


def holder_of(source: str) -> str:
    """Who holds a name of this source, in words: what was added, a list, the built-in repository."""
    if source.startswith(USER_LIST):
        return "list " + owner(source).removeprefix(USER_LIST)
    return "what was added" if owner(source) == USER else "the built-in repository"


def is_users(source: str) -> bool:
    """Whether a name was added or came with a user's list."""
    return source in (USER, USER + ALIAS) or source.startswith(USER_LIST)


def source_of(path: Path) -> str:
    """Source of a list's names: its file name, and an id of where it is since many lists have one file name."""
    return f"{shortened(path)} #{digest('list', str(path.resolve()))[:8]}"


def shortened(path: Path) -> str:
    """Source of a list without the id of its place."""
    return f"{USER_LIST}{path.name}"[: 64 - len(ALIAS) - len(" #12345678")]


def old_source_of(path: Path) -> str:
    """What a list's source was called before it carried an id."""
    return f"{USER_LIST}{path.name}"[: 64 - len(ALIAS)]
