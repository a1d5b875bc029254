"""Small skills and stores that the tests of the model layer share."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import ClassVar

from pydantic import BaseModel

from models import Message, Skill, Verdict
from models.errors import OfflineUnavailable
from models.protocols import StoredAnswer, Vectors


class Score(BaseModel):
    score: int
    note: str = ""


class ScoreDocument(Skill[str, Score]):
    """Scores a text; the rule is its length, the check wants 0–5 and a note that occurs in the text."""

    name: ClassVar[str] = "score_document"
    version: ClassVar[str] = "1"
    output: ClassVar[type[BaseModel]] = Score

    def messages(self, given: str) -> list[Message]:
        return [Message("user", f"<document>{given}</document>"), Message("user", "Score it from 0 to 5.")]

    def check(self, given: str, answer: Score) -> Verdict:
        if answer.note == "forbidden":
            return Verdict.reject("the note is forbidden")
        if not 0 <= answer.score <= 5:
            return Verdict.ask_again(f"score {answer.score} is not within 0 to 5")
        return Verdict()

    def offline(self, given: str) -> Score:
        return Score(score=min(5, len(given)))


class JudgeFacts(ScoreDocument):
    """A skill without an honest rule."""

    name: ClassVar[str] = "judge_facts"

    def offline(self, given: str) -> Score:
        raise OfflineUnavailable("no rule can judge", reason="offline")


class MemoryAnswers:
    """An answer store in memory."""

    def __init__(self) -> None:
        self.rows: dict[str, StoredAnswer] = {}
        self.hits = 0
        self._lock = threading.Lock()

    def get(self, key: str) -> StoredAnswer | None:
        return self.rows.get(key)

    def put(self, answer: StoredAnswer) -> None:
        with self._lock:
            self.rows[answer.key] = answer

    def mark(self, key: str, state: str, reason: str = "") -> None:
        with self._lock:
            self.rows[key].state, self.rows[key].reason = state, reason

    def served(self, key: str) -> None:
        with self._lock:
            self.hits += 1

    def flush(self) -> None:
        """Nothing is gathered."""


class MemoryVectors:
    """A vector store in memory that counts what is put."""

    def __init__(self) -> None:
        self.rows: dict[tuple[str, str], Vectors] = {}
        self.puts = 0

    def get(self, model: str, hashes: Sequence[str]) -> dict[str, Vectors]:
        return {key: self.rows[model, key] for key in hashes if (model, key) in self.rows}

    def put(self, model: str, vectors: dict[str, Vectors]) -> None:
        for key, vector in vectors.items():
            self.puts += 1
            self.rows.setdefault((model, key), vector)
