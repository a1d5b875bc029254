"""Training records as files: read, proved, and counted by who made the answers."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from corpus.errors import SettingsError

Messages = list[dict[str, str]]


@dataclass(frozen=True)
class Records:
    """Chat records of one task and split. ``tokens`` are those that the records state, in ``counter``."""

    prompts: list[Messages] = field(default_factory=list)
    answers: list[Messages] = field(default_factory=list)
    tokens: list[int] = field(default_factory=list)
    made_by: Counter[str] = field(default_factory=Counter)
    checksum: str = ""

    def __len__(self) -> int:
        return len(self.prompts)


def read_records(directory: Path, task: str, split: str, *, allow_offline: bool) -> Records:
    """The records of a task. Raises SettingsError for missing or broken files.

    So it does for answers that the platform's rules made, unless they are allowed.
    """
    path = directory / f"{task}.{split}.jsonl"
    try:
        data = path.read_bytes()
    except FileNotFoundError as error:
        raise SettingsError(
            f"{path} does not exist; make it with: hchem dataset training --out {directory}"
        ) from error
    except OSError as error:
        raise SettingsError(f"{path} cannot be read: {error.strerror or error}") from error
    found = Records(checksum=hashlib.sha256(data).hexdigest())
    for number, line in enumerate(data.split(b"\n"), start=1):
        if line:
            row = _row(line, f"{path}, line {number}")
            found.prompts.append(row["messages"][:-1])
            found.answers.append(row["messages"][-1:])
            found.tokens.append(int(row.get("tokens", 0)))
            found.made_by[str(row.get("made_by", "unknown"))] += 1
    rules = {who: n for who, n in found.made_by.items() if who not in ("model", "document")}
    if rules and not allow_offline:
        told = ", ".join(f"{n} {who}" for who, n in sorted(rules.items()))
        raise SettingsError(
            f"{path}: not all answers were made by a model ({told}); a model trained on them learns the rules. "
            "Take them with --allow-offline"
        )
    return found


def _row(line: bytes, where: str) -> Mapping[str, Any]:
    try:
        row = json.loads(line)
        roles = [message["role"] for message in row["messages"]]
        texts = [message["content"] for message in row["messages"]]
    except (ValueError, KeyError, TypeError) as error:
        raise SettingsError(f"{where}: not a chat record") from error
    if len(roles) < 2 or roles[-1] != "assistant" or not all(isinstance(text, str) for text in texts):
        raise SettingsError(f"{where}: a chat record ends with the assistant's answer")
    return row  # type: ignore[no-any-return]
