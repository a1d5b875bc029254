"""What a process used: calls, answers from the store, tokens, money, by skill."""

from __future__ import annotations

import threading
from dataclasses import asdict, dataclass
from typing import Any

from models.client.call import Reply


@dataclass
class SkillUsage:
    """Counters of one skill. ``offline`` counts rule-based answers, ``rejected`` refused ones."""

    calls: int = 0
    cached: int = 0
    offline: int = 0
    rejected: int = 0
    tokens_in: int = 0
    tokens_cached: int = 0
    tokens_out: int = 0
    cost: float = 0.0
    seconds: float = 0.0


class Usage:
    """Thread-safe counters."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._skills: dict[str, SkillUsage] = {}

    def reply(self, skill: str, reply: Reply) -> None:
        """Count a model's reply, paid or from the store."""
        with self._lock:
            row = self._skills.setdefault(skill, SkillUsage())
            if reply.from_store:
                row.cached += 1
                return
            row.calls += 1
            row.tokens_in += reply.tokens_in
            row.tokens_cached += reply.tokens_cached
            row.tokens_out += reply.tokens_out
            row.cost += reply.cost
            row.seconds += reply.seconds

    def offline(self, skill: str) -> None:
        """Count a rule-based answer."""
        with self._lock:
            self._skills.setdefault(skill, SkillUsage()).offline += 1

    def rejected(self, skill: str) -> None:
        """Count an answer that failed its check for good."""
        with self._lock:
            self._skills.setdefault(skill, SkillUsage()).rejected += 1

    def summary(self) -> dict[str, Any]:
        """Sums over all skills, and the rows by skill under ``skills``."""
        with self._lock:
            rows = {name: asdict(self._skills[name]) for name in sorted(self._skills)}
        totals = {key: sum(row[key] for row in rows.values()) for key in asdict(SkillUsage())}
        return {**totals, "skills": rows}
