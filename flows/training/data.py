"""Training records as files: read, proved, and counted by who made the answers."""

from __future__ import annotations

import hashlib
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, Field, ValidationError

from chunking.training.build import CHECKSUMS
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
    _prove(path, found.checksum)
    for number, line in enumerate(data.split(b"\n"), start=1):
        if line:
            record = _record(line, f"{path}, line {number}")
            messages = [message.model_dump() for message in record.messages]
            found.prompts.append(messages[:-1])
            found.answers.append(messages[-1:])
            found.tokens.append(record.tokens)
            found.made_by[record.made_by] += 1
    rules = {who: n for who, n in found.made_by.items() if who not in ("model", "document")}
    if rules and not allow_offline:
        told = ", ".join(f"{n} {who}" for who, n in sorted(rules.items()))
        raise SettingsError(
            f"{path}: not all answers were made by a model ({told}); a model trained on them learns the rules. "
            "Take them with --allow-offline"
        )
    return found


class _Message(BaseModel, strict=True):
    role: Literal["system", "user", "assistant"]
    content: str


class _Record(BaseModel, strict=True):
    """What is read of a record's line."""

    messages: list[_Message] = Field(min_length=2)
    tokens: int = Field(default=0, ge=0)
    made_by: str = "unknown"


def _record(line: bytes, where: str) -> _Record:
    try:
        record = _Record.model_validate_json(line)
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        place = ".".join(map(str, first["loc"]))
        raise SettingsError(f"{where}: not a chat record ({place}: {first['msg'][:200]})") from error
    roles = [message.role for message in record.messages]
    if roles[-1] != "assistant" or roles[-2] != "user":
        raise SettingsError(f"{where}: a chat record ends with a question and the assistant's answer")
    return record


def _prove(path: Path, checksum: str) -> None:
    """Compare a file with the checksums of the build that wrote it, where there are any."""
    sums = path.with_name(CHECKSUMS)
    try:
        stated = dict(line.split("  ", 1)[::-1] for line in sums.read_text("utf-8").splitlines())
    except FileNotFoundError:
        return  # records of one's own
    except (OSError, ValueError) as error:
        raise SettingsError(f"{sums} cannot be read: {error}") from error
    if not stated:
        raise SettingsError(f"{path.parent}: the build of these records was not finished; run it again")
    if stated.get(path.name) != checksum:
        raise SettingsError(f"{path} is not as it was built ({CHECKSUMS} differs)")
