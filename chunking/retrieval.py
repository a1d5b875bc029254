"""From ranked chunks to a context of at most T tokens: fusion, Auto-Merge, rendering.

Auto-Merge is HiChunk's Algorithm 2 (hichunk design, "Auto-Merge retrieval"):
retrieved siblings are replaced by their parent while enough of it was retrieved
and the budget has room for the rest.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from chunking.evaluation.settings import ContextText
from chunking.records import ChunkRecord

Counter = Callable[[str], int]

RRF_CONSTANT = 60  # Cormack, Clarke, Büttcher 2009, "Reciprocal rank fusion"
_SEPARATOR = "\n\n"
_REMEMBERED = 4096


def fuse(rankings: Sequence[Sequence[str]], weights: Sequence[float] | None = None) -> list[str]:
    """Reciprocal rank fusion: Σ weight / (60 + rank). Ties by id; an id twice in a ranking counts once."""
    scores: dict[str, float] = {}
    for ranking, weight in zip(rankings, weights or [1.0] * len(rankings), strict=True):
        for rank, key in enumerate(dict.fromkeys(ranking), start=1):
            scores[key] = scores.get(key, 0.0) + weight / (RRF_CONSTANT + rank)
    return sorted(scores, key=lambda key: (-scores[key], key))


def theta(parent: int, used: int, budget: int) -> float:
    """θ* of condition 2: tokens of a parent's retrieved children from which it replaces them."""
    return parent / 3 * (1 + used / budget)


class Forest:
    """The nodes of one method over all documents, with parents, children and token lengths."""

    def __init__(self, nodes: Iterable[ChunkRecord], count: Counter, context: ContextText = "chunk") -> None:
        self.nodes = {node.chunk_id: node for node in nodes}
        self.count = count
        self.context: ContextText = context
        self._lengths: dict[str, int] = {}
        self._rendered: dict[tuple[str, ...], int] = {}

    def text(self, node: ChunkRecord) -> str:
        """The node's context text."""
        return node.context_text(self.context)

    def length(self, node: ChunkRecord) -> int:
        """Tokens of the node's own text."""
        if node.chunk_id not in self._lengths:
            self._lengths[node.chunk_id] = self.count(self.text(node))
        return self._lengths[node.chunk_id]

    def tokens(self, nodes: Sequence[ChunkRecord]) -> int:
        """Tokens of nodes as rendered in this order; recent counts are remembered, since budgets share them."""
        key = tuple(node.chunk_id for node in nodes)
        if key not in self._rendered:
            if len(self._rendered) >= _REMEMBERED:
                self._rendered.clear()
            self._rendered[key] = self.count(render(nodes, self.text))
        return self._rendered[key]

    def parent(self, node: ChunkRecord) -> ChunkRecord | None:
        """The parent, or None at the top."""
        return self.nodes.get(node.parent_id) if node.parent_id else None


@dataclass
class Context:
    """What was chosen for a question: nodes in reading order, their text, its tokens."""

    nodes: list[ChunkRecord]
    text: str
    tokens: int
    merges: int = 0

    def spans(self) -> list[tuple[str, int, int]]:
        """(document, start, end) of each node; disjoint."""
        return [(node.document_id, node.start, node.end) for node in self.nodes]


@dataclass
class _Chosen:
    """Nodes with the best rank of what they replaced; no two overlap."""

    forest: Forest
    ranks: dict[str, int] = field(default_factory=dict)

    def nodes(self) -> list[ChunkRecord]:
        return [self.forest.nodes[key] for key in self.ranks]

    def covers(self, node: ChunkRecord) -> bool:
        nodes = self.forest.nodes
        return any(_within(node, nodes[key]) for key in self.ranks)

    def inside(self, parent: ChunkRecord) -> list[ChunkRecord]:
        return [node for node in self.nodes() if _within(node, parent)]

    def replaced(self, parts: Sequence[ChunkRecord], parent: ChunkRecord) -> _Chosen:
        ranks = dict(self.ranks)
        best = min(ranks.pop(part.chunk_id) for part in parts)
        ranks[parent.chunk_id] = best
        return _Chosen(self.forest, ranks)

    def with_node(self, node: ChunkRecord, rank: int) -> _Chosen:
        return _Chosen(self.forest, {**self.ranks, node.chunk_id: rank})

    def ordered(self) -> list[ChunkRecord]:
        """Documents by their best rank, nodes in document order."""
        best: dict[str, int] = {}
        for key, rank in self.ranks.items():
            document = self.forest.nodes[key].document_id
            best[document] = min(rank, best.get(document, rank))
        return sorted(self.nodes(), key=lambda node: (best[node.document_id], node.document_id, node.start))

    def render(self) -> str:
        return render(self.ordered(), self.forest.text)

    def tokens(self) -> int:
        return self.forest.tokens(self.ordered())


def render(nodes: Sequence[ChunkRecord], text: Callable[[ChunkRecord], str]) -> str:
    """Text of nodes in the given order: neighbours that touch are joined as in the document, others by a blank line."""
    parts: list[str] = []
    before: ChunkRecord | None = None
    for node in nodes:
        if before is not None and not _touch(before, node, text):
            parts.append(_SEPARATOR)
        parts.append(text(node))
        before = node
    return "".join(parts)


def _touch(left: ChunkRecord, right: ChunkRecord, text: Callable[[ChunkRecord], str]) -> bool:
    """Neighbours in the document whose texts are both the document's own."""
    adjacent = left.document_id == right.document_id and left.end == right.start
    return adjacent and text(left) == left.text and text(right) == right.text


def take(ranked: Sequence[str], forest: Forest, budget: int) -> Context:
    """Ranked leaves up to the budget, without merging: whole chunks, never more than ``budget`` tokens."""
    chosen = _Chosen(forest)
    total = 0
    for rank, key in enumerate(dict.fromkeys(ranked)):
        node = forest.nodes.get(key)
        if node is None or chosen.covers(node) or forest.length(node) > budget:
            continue
        total += forest.length(node)
        # Joining changes the count by less than two tokens a node: count exactly only near the limit.
        slack = 2 * (len(chosen.ranks) + 1)
        if total - slack > budget:
            break
        if total + slack > budget and chosen.with_node(node, rank).tokens() > budget:
            break
        chosen.ranks[key] = rank
    return _finished(chosen, budget, 0)


def auto_merge(ranked: Sequence[str], forest: Forest, budget: int, *, strict: bool = False) -> Context:
    """Algorithm 2: ranked leaves, siblings merged into their parent where conditions 1-3 hold.

    ``strict`` asks that the whole parent fits into what was left before the
    chunk came (as printed); by default only the increment has to fit.
    """
    chosen = _Chosen(forest)
    used = merges = 0
    for rank, key in enumerate(dict.fromkeys(ranked)):
        node = forest.nodes.get(key)
        if node is None or chosen.covers(node):
            continue
        candidate = chosen.with_node(node, rank)
        total = candidate.tokens()
        if total > budget:
            if forest.length(node) > budget:
                continue
            break
        before, chosen, used = used, candidate, total
        measured = before  # tk of the first check is measured before the chunk came, then afterwards
        parent = forest.parent(node)
        while parent is not None:
            merged = _merged(chosen, parent, measured, used, before, budget, strict=strict)
            if merged is None:
                break
            chosen, used = merged
            merges += 1
            measured, parent = used, forest.parent(parent)
    return _finished(chosen, budget, merges)


def _merged(
    chosen: _Chosen, parent: ChunkRecord, measured: int, used: int, before: int, budget: int, *, strict: bool
) -> tuple[_Chosen, int] | None:
    """The choice with ``parent`` in place of its parts, or None where a condition fails."""
    forest = chosen.forest
    parts = chosen.inside(parent)
    children = [node for node in parts if node.parent_id == parent.chunk_id]
    length = forest.length(parent)
    if len(children) < 2:
        return None
    if sum(forest.length(node) for node in children) < theta(length, measured, budget):
        return None
    room = (
        length <= budget - before
        if strict
        else (length - sum(forest.length(node) for node in parts) <= budget - used)
    )
    if not room:
        return None
    merged = chosen.replaced(parts, parent)
    total = merged.tokens()
    return None if total > budget else (merged, total)


def _finished(chosen: _Chosen, budget: int, merges: int) -> Context:
    """The context; a counter that is far from additive may still need the worst-ranked node taken back."""
    while (tokens := chosen.tokens()) > budget:
        chosen.ranks.pop(max(chosen.ranks, key=lambda key: chosen.ranks[key]))
    return Context(chosen.ordered(), chosen.render(), tokens, merges)


def _within(node: ChunkRecord, other: ChunkRecord) -> bool:
    return node.document_id == other.document_id and other.start <= node.start and node.end <= other.end


def ranked_by(
    form: str,
    lexical: Mapping[int, Sequence[str]],
    dense: Mapping[int, Sequence[str]],
    question: int,
    dense_weight: float,
) -> list[str]:
    """The ranking of a question under the retrieval form ``lexical``, ``dense`` or ``hybrid``."""
    if form == "lexical":
        return list(lexical[question])
    if form == "dense":
        return list(dense[question])
    return fuse([lexical[question], dense[question]], [1.0, dense_weight])
