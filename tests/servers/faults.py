"""Faults of the scripted model server, drawn from a seed.

    with ModelServer(script, faults=Faults(share=0.2, seed=7)) as server:            # every skill
    with ModelServer(script, faults={"score_document": Faults(1.0, kinds=("429",))}) as server:

Whether an answer is spoilt, and how, depends only on the seed, the question and
how often it was asked before: neither threads nor the order of calls change it.
"""

from __future__ import annotations

import copy
import hashlib
import json
import random
import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tests.servers.model_server import Answer, Reply, Request

TRANSPORT = ("429", "500", "502", "503", "slow", "reset", "cut", "not_json")
"""The reply does not arrive, or late."""
ANSWERS = ("malformed", "schema", "empty", "truncated", "refusal", "number", "language")
"""It arrives and is wrong: each is made from the right answer."""
EMBEDDINGS = ("duplicated_rows",)
KINDS = (*TRANSPORT, *ANSWERS, *EMBEDDINGS)

_CHAT = "/v1/chat/completions"
_POSSIBLE = {
    _CHAT: (*TRANSPORT, *ANSWERS),
    "/v1/embeddings": (*TRANSPORT, *EMBEDDINGS),
    "/v1/completions": TRANSPORT,
}
_CHINESE = re.compile(r"[\u4e00-\u9fff]")
_IN_ENGLISH = "This part of the answer was written in English although the page is not."
_IN_CHINESE = "这一部分回答用中文写成，而原文并不是中文。"


@dataclass(frozen=True)
class Faults:
    """A share of replies goes wrong, in one of ``kinds`` each (those that the path can have)."""

    share: float
    seed: int = 0
    kinds: tuple[str, ...] = KINDS
    delay_s: float = 0.05

    def __post_init__(self) -> None:
        unknown = set(self.kinds) - set(KINDS)
        if unknown or not 0 <= self.share <= 1:
            raise ValueError(f"unknown fault kinds {sorted(unknown)} or share {self.share}")

    def draw(self, path: str, body: dict[str, Any], times: int) -> str | None:
        """The kind of fault of a question that was asked ``times`` times before, if any."""
        possible = [kind for kind in _POSSIBLE.get(path, ()) if kind in self.kinds]
        chance = self._chance(path, body, times)
        if not possible or chance.random() >= self.share:
            return None
        return chance.choice(possible)

    def spoilt(self, kind: str, right: Callable[[], Answer | None], request: Request, times: int) -> Answer:
        """The reply of a kind of fault; the right answer is asked for only where it is needed."""
        from tests.servers.model_server import Fault, as_reply

        match kind:
            case "429":
                return Fault(status=429, retry_after="0")
            case "500" | "502" | "503":
                return Fault(status=int(kind))
            case "reset" | "cut" | "not_json" | "duplicated_rows":
                return Fault(kind=kind)
        answer = right()
        if kind == "slow":
            return Fault(kind="slow", delay_s=self.delay_s, then=answer)
        if isinstance(answer, Fault):  # the script's own goes before
            return answer
        return wrong(kind, as_reply(answer), self._chance(request.path, request.body, times))

    def _chance(self, path: str, body: dict[str, Any], times: int) -> random.Random:
        asked = json.dumps([self.seed, path, times, body], sort_keys=True)
        return random.Random(hashlib.sha256(asked.encode()).digest())


def wrong(kind: str, right: Reply, chance: random.Random) -> Reply:
    """The right reply made wrong; where a kind has nothing to change it becomes ``malformed``."""
    from tests.servers.model_server import Reply

    text = right.content or ""
    match kind:
        case "empty":
            return Reply("")
        case "refusal":
            return Reply(None, refusal="I cannot help with that request.")
        case "truncated":
            return Reply(text[: len(text) // 2], finish_reason="length")
        case "malformed":
            return Reply(text[: -max(1, len(text) // 3)])
    try:
        value = json.loads(text)
    except ValueError:
        return wrong("malformed", right, chance)
    match kind:
        case "schema":
            nested = (
                {name: {"value": item} for name, item in value.items()} if isinstance(value, dict) else {}
            )
            return Reply(json.dumps(nested or {"answer": value}, ensure_ascii=False))
        case "number":
            changed = _with_other_digit(value, chance)
        case "language":
            changed = _in_other_language(value)
        case _:
            raise ValueError(f"no such fault: {kind}")
    if changed == value:
        return wrong("malformed", right, chance)
    return Reply(json.dumps(changed, ensure_ascii=False))


def _with_other_digit(value: Any, chance: random.Random) -> Any:
    """One digit of one number changed: in a text if one holds a digit, else in a number itself."""
    changed = copy.deepcopy(value)
    places = [place for place in _leaves(changed) if re.search(r"\d", str(place.value))]
    texts = [place for place in places if isinstance(place.value, str)]
    numbers = [place for place in places if isinstance(place.value, int | float)]
    if not (texts or numbers):
        return changed
    place = chance.choice(texts or numbers)
    text = str(place.value)
    at = chance.choice([match.start() for match in re.finditer(r"\d", text)])
    other = str((int(text[at]) + chance.randint(1, 9)) % 10)
    place.put(type(place.value)(text[:at] + other + text[at + 1 :]))
    return changed


def _in_other_language(value: Any) -> Any:
    """Every longer text replaced by one in the other language (Chinese or English)."""
    changed = copy.deepcopy(value)
    for place in _leaves(changed):
        text = place.value
        if not isinstance(text, str):
            continue
        if len(_CHINESE.findall(text)) >= 4:
            place.put(_IN_ENGLISH)
        elif len(text) >= 12 and " " in text:
            place.put(_IN_CHINESE)
    return changed


@dataclass
class _Place:
    holder: Any
    at: Any
    value: Any

    def put(self, value: Any) -> None:
        self.holder[self.at] = value


def _leaves(value: Any) -> list[_Place]:
    """The places in a JSON value that hold neither lists nor objects; true and false are no numbers."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    found: list[_Place] = []
    for at, item in items:
        if isinstance(item, dict | list):
            found += _leaves(item)
        elif not isinstance(item, bool) and item is not None:
            found.append(_Place(value, at, item))
    return found


@dataclass
class Counts:
    """What the server saw and gave: calls and right answers by skill, faults by kind.

    A skill is known by its name in the response format, else by its schema's title;
    calls of other paths count under the path's last word (``embeddings``).
    """

    calls: Counter[str] = field(default_factory=Counter)
    answers: Counter[str] = field(default_factory=Counter)
    faults: Counter[str] = field(default_factory=Counter)
