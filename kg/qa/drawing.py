"""Which candidates become questions where more are possible than are wanted, before any proof is run.

The pool holds of each candidate what a draw needs, about a hundred bytes, instead of the candidate
itself. The number wanted is divided evenly: over kinds, in a kind over languages, then relations, then
templates (paths), each getting what it has where that is less than its share; Boolean questions
get as many with yes as with no. Within such a cell all substances have their first question before one has its second,
in the order of hashes of ids; so the draw is the same on every machine, and of a corpus that grows
the earlier questions mostly stay. Candidates that read alike are drawn together: that one text has two answers must
not be hidden by drawing only one of them.
"""

from __future__ import annotations

from array import array
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import TYPE_CHECKING

from corpus.ids import digest
from kg.graph_settings import QuestionSettings
from kg.qa.facts import plain
from kg.qa.records import KINDS, LANGUAGES, Candidate

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_HALF = 16  # hexadecimal digits of half an id


@dataclass(frozen=True, order=True)
class Cell:
    """Candidates that stand for each other in the draw. ``answer`` is that of a Boolean question, else ""."""

    kind: str
    language: str
    relation: str
    template: str
    answer: str = ""

    @property
    def pair(self) -> tuple[str, str, str, str]:
        """The cell, whatever is answered."""
        return (self.kind, self.language, self.relation, self.template)


def cell_of(candidate: Candidate) -> Cell:
    """The cell that a candidate belongs to."""
    boolean = candidate.kind == "boolean"
    return Cell(
        candidate.kind,
        candidate.language,
        candidate.relation,
        candidate.metapath if candidate.kind == "multi_hop" else candidate.template,
        str(candidate.expected[0]) if boolean else "",
    )


class Pool:
    """All candidates by their ids, ``add``-ed one by one, then ``closed``."""

    def __init__(self, settings: QuestionSettings) -> None:
        self.settings = settings
        self._ids = (array("Q"), array("Q"))
        self._order = array("Q")
        self._text = array("Q")
        self._cell = array("I")
        self._substance = array("I")
        self._documents = array("I")
        self._ends = array("Q")
        self._cells: dict[Cell, int] = {}
        self._numbers: dict[str, int] = {}

    def __len__(self) -> int:
        return len(self._order)

    def add(self, candidate: Candidate) -> None:
        """Take note of a candidate; of several with one id the first counts."""
        key = candidate.id
        self._ids[0].append(int(key[:_HALF], 16))
        self._ids[1].append(int(key[_HALF:], 16))
        self._order.append(int(digest("order", str(self.settings.seed), key)[:_HALF], 16))
        text = f"{candidate.language} {plain(candidate.question)}".encode()
        self._text.append(int.from_bytes(blake2b(text, digest_size=8).digest(), "big"))
        self._cell.append(self._cells.setdefault(cell_of(candidate), len(self._cells)))
        self._substance.append(self._number("".join(candidate.substances[:1])))
        self._documents.extend(sorted({self._number(r.document_id) for r in candidate.references}))
        self._ends.append(len(self._documents))

    def _number(self, name: str) -> int:
        return self._numbers.setdefault(name, len(self._numbers))

    def closed(self) -> Draw:
        """The draw from what was added, within the cap per kind and document."""
        import numpy as np

        high, low, order = (np.asarray(column) for column in (*self._ids, self._order))
        arranged = np.lexsort((np.arange(len(order)), low, high))  # of one id the first comes first
        again = np.zeros(len(order), dtype=bool)
        again[arranged[1:]] = (high[arranged[1:]] == high[arranged[:-1]]) & (
            low[arranged[1:]] == low[arranged[:-1]]
        )
        ordered = np.lexsort((low, high, order))
        ordered = ordered[~again[ordered]]
        within = self._within_documents(ordered)
        return Draw(self, ordered[within], Counter({"cap_document": len(ordered) - int(within.sum())}))

    def _within_documents(self, ordered: NDArray[np.intp]) -> NDArray[np.bool_]:
        """Which of the ordered candidates keep to the cap per kind and document."""
        import numpy as np

        kinds = [KINDS.index(cell.kind) for cell in self._cells]
        used: Counter[tuple[int, int]] = Counter()
        within = np.ones(len(ordered), dtype=bool)
        most = self.settings.per_document
        for place, at in enumerate(ordered.tolist()):
            kind = kinds[self._cell[at]]
            documents = self._documents[self._ends[at - 1] if at else 0 : self._ends[at]]
            keys = [(kind, document) for document in documents]
            if any(used[key] >= most for key in keys):
                within[place] = False
            else:
                used.update(keys)
        return within

    def id_at(self, at: int) -> str:
        """Id of the candidate that was added at a place."""
        return f"{self._ids[0][at]:016x}{self._ids[1][at]:016x}"


class Draw:
    """The order in which the candidates of each cell are drawn, and how far that has come."""

    def __init__(self, pool: Pool, ordered: NDArray[np.intp], cut: Counter[str]) -> None:
        import numpy as np

        self.cut = cut
        self.possible = len(ordered)
        self._pool, self._ordered = pool, ordered
        self.cells = list(pool._cells)
        text = np.asarray(pool._text)[ordered]
        # those that read alike lie together, the first of them in order stands for all
        together = np.lexsort((np.arange(len(text)), text))
        starts = np.ones(len(text), dtype=bool)
        starts[1:] = text[together[1:]] != text[together[:-1]]
        self._together, self._starts = together, np.flatnonzero(starts)
        leaders = together[starts]
        units = np.arange(len(leaders))
        cell = np.asarray(pool._cell)[ordered][leaders]
        substance = np.asarray(pool._substance)[ordered][leaders]
        arranged = np.lexsort((leaders, substance, cell))
        turn = _ranks(cell[arranged], substance[arranged])
        final = np.lexsort((leaders[arranged], turn, cell[arranged]))
        sequence = units[arranged[final]]
        bounds = np.searchsorted(cell[arranged[final]], np.arange(len(self.cells) + 1))
        self._sequences = {one: sequence[bounds[at] : bounds[at + 1]] for at, one in enumerate(self.cells)}
        self.drawn: Counter[Cell] = Counter()

    def left(self, cell: Cell) -> int:
        """Texts of a cell that are not drawn yet."""
        return len(self._sequences[cell]) - self.drawn[cell]

    def take(self, wanted: Mapping[Cell, int]) -> list[str]:
        """Ids of the next candidates of the cells, with those that read like one of them."""
        found: list[str] = []
        for cell in self.cells:
            first = self.drawn[cell]
            for unit in self._sequences[cell][first : first + wanted.get(cell, 0)].tolist():
                found += (self._pool.id_at(int(self._ordered[at])) for at in self._members(unit))
                self.drawn[cell] += 1
        return found

    def _members(self, unit: int) -> Sequence[int]:
        end = self._starts[unit + 1] if unit + 1 < len(self._starts) else len(self._together)
        members: list[int] = self._together[self._starts[unit] : end].tolist()
        return members

    def everything(self) -> list[str]:
        """Ids of all candidates, in the order of the seed."""
        return [self._pool.id_at(at) for at in self._ordered.tolist()]

    def places(self, wanted: set[str]) -> dict[str, int]:
        """Place of each of the ids in the sequence of the cell it was drawn with."""
        found: dict[str, int] = {}
        for cell in self.cells:
            for place, unit in enumerate(self._sequences[cell][: self.drawn[cell]].tolist()):
                for at in self._members(unit):
                    if (key := self._pool.id_at(int(self._ordered[at]))) in wanted:
                        found[key] = place
        return found


def _ranks(*keys: NDArray[np.uint32]) -> NDArray[np.intp]:
    """Place of each row among the rows with equal keys; rows with equal keys lie together."""
    import numpy as np

    rows = np.arange(len(keys[0]))
    new = np.ones(len(rows), dtype=bool)
    new[1:] = np.logical_or.reduce([key[1:] != key[:-1] for key in keys])
    return rows - np.maximum.accumulate(np.where(new, rows, 0))


# --- how many of each cell --------------------------------------------------------


def shares(capacity: Mapping[Cell, int], settings: QuestionSettings) -> dict[Cell, int]:
    """How many questions of each cell, where each can give so many, make the number wanted as evenly as can be."""
    pairs: dict[tuple[str, ...], int] = {}
    for pair, cells in _pairs(capacity).items():
        numbers = [capacity[cell] for cell in cells]
        if pair[0] != "boolean":
            pairs[pair] = sum(numbers)
        else:  # each yes has its no
            pairs[pair] = 2 * min(numbers) if len(numbers) == 2 else 0
    for language in LANGUAGES:
        limit = settings.at_most_of.get(language)
        own = {pair: n for pair, n in pairs.items() if pair[1] == language}
        if limit is not None:
            pairs |= _divided(own, limit, settings)
    divided = _divided(pairs, settings.at_most or sum(pairs.values()), settings)
    found: dict[Cell, int] = {}
    for pair, cells in _pairs(capacity).items():
        each = divided[pair] // len(cells)
        found |= dict.fromkeys(cells, each)
    return found


def _pairs(capacity: Mapping[Cell, int]) -> dict[tuple[str, ...], list[Cell]]:
    found: dict[tuple[str, ...], list[Cell]] = defaultdict(list)
    for cell in sorted(capacity):
        found[cell.pair].append(cell)
    return found


def _divided(
    capacity: Mapping[tuple[str, ...], int], total: int, settings: QuestionSettings, depth: int = 0
) -> dict[tuple[str, ...], int]:
    """A number divided over names, level by level of the names."""
    if not capacity:
        return {}
    if depth == len(next(iter(capacity))):
        return {name: min(total, n) for name, n in capacity.items()}
    parts: dict[str, dict[tuple[str, ...], int]] = defaultdict(dict)
    for name, n in capacity.items():
        parts[name[depth]][name] = n
    limits = {part: sum(inside.values()) for part, inside in sorted(parts.items())}
    if depth == 0:
        limits = {part: min(n, settings.at_most_of.get(part, n)) for part, n in limits.items()}
    found: dict[tuple[str, ...], int] = {}
    for part, n in evenly(limits, total).items():
        found |= _divided(parts[part], n, settings, depth + 1)
    return found


def evenly(limits: Mapping[str, int], total: int) -> dict[str, int]:
    """A total divided evenly; who has less than an even share gives all, the rest is divided among the others."""
    found: dict[str, int] = {}
    left = min(total, sum(limits.values()))
    for at, name in enumerate(ordered := sorted(limits, key=lambda name: (limits[name], name))):
        found[name] = min(limits[name], left // (len(ordered) - at))
        left -= found[name]
    return found


# --- drawing until enough are proved ---------------------------------------------------

_SPARE = 1.05  # drawn above what is wanted, for those that fail
_WAVES = 6
_SPENT = 1000  # one in so many may be lacking


@dataclass(frozen=True)
class Drawn:
    """Ids to keep (None: all that hold), counts of what was left out, and how many candidates there were."""

    chosen: set[str] | None
    left_out: Counter[str]
    possible: int


def drawn(
    pool: Pool,
    prove: Callable[[list[str]], Mapping[str, Cell]],
    say: Callable[[str], None] = lambda _: None,
) -> Drawn:
    """Draw and prove until enough hold.

    ``prove`` is given the ids of a wave and returns all that hold so far, earlier waves included.
    """
    draw, settings = pool.closed(), pool.settings
    if not limited(draw, settings):
        prove(draw.everything())
        return Drawn(None, draw.cut, draw.possible)
    sound: Counter[Cell] = Counter()
    held: Mapping[str, Cell] = {}
    taken = 0
    for wave, wanted in enumerate(_waves(draw, sound, settings), start=1):
        ids = draw.take(wanted)
        taken += len(ids)
        say(f"wave {wave}: {len(ids)} of {draw.possible} candidates")
        held = prove(ids)
        sound.clear()
        sound.update(held.values())
    chosen = _chosen(draw, held, shares({cell: sound[cell] for cell in draw.cells}, settings))
    cut = Counter({"not_drawn": draw.possible - taken + len(held) - len(chosen)})
    return Drawn(chosen, draw.cut + cut, draw.possible)


def limited(draw: Draw, settings: QuestionSettings) -> bool:
    """Whether more questions are possible than are wanted, in all or of a kind or language."""
    counts: Counter[str] = Counter()
    for cell in draw.cells:
        counts.update({name: draw.left(cell) for name in (cell.kind, cell.language)})
    return 0 < settings.at_most < draw.possible or any(
        counts[name] > most for name, most in settings.at_most_of.items()
    )


def _waves(draw: Draw, sound: Counter[Cell], settings: QuestionSettings) -> Iterator[dict[Cell, int]]:
    """How many of each cell are drawn next, while ``sound`` is short of what is wanted and there are more."""
    for _ in range(_WAVES):
        share = shares({cell: sound[cell] + draw.left(cell) for cell in draw.cells}, settings)
        wanted: dict[Cell, int] = {}
        if _SPENT * sum(max(0, n - sound[cell]) for cell, n in share.items()) < sum(share.values()):
            return  # a wave costs as much as making all candidates
        for cell in draw.cells:
            lacking = share[cell] - sound[cell]
            if lacking > 0 and draw.left(cell):
                before = draw.drawn[cell]
                # where few held, as many more as that share of them needs, but at most as many again as there were
                yielded = max(sound[cell], 1) / before if before else 1.0
                more = int(lacking * _SPARE / yielded) + 1
                wanted[cell] = min(more, max(before, int(lacking * _SPARE) + 1), draw.left(cell))
        if not wanted:
            return
        yield wanted


def _chosen(draw: Draw, held: Mapping[str, Cell], share: Mapping[Cell, int]) -> set[str]:
    """Of those that hold the first of each cell."""
    places = draw.places(set(held))
    cells: dict[Cell, list[tuple[int, str]]] = defaultdict(list)
    for key, cell in held.items():
        cells[cell].append((places[key], key))
    return {key for cell, found in cells.items() for _, key in sorted(found)[: share[cell]]}
