"""The picture of a substance among what it is linked to, every link with its relation in words.

A dot beside a name says nothing of use: water that must not be used and powder that may be would
look alike. So a node has its relation, its conditions and a denial as text; statements on one
object are shown together or not at all; and what does not fit in whole is left out and counted.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from corpus.catalogue.tables import Assertion
from flows.report.figures import LABEL_COLOURS, OTHER_COLOUR
from flows.report.said import DENIED, Both, said, together
from flows.report.words import WORDS
from flows.visible import visible
from kg.schema import NodeLabel, Relation

MOST_NODES = 28
_NAME_ROOM, _SMALL_ROOM = 46, 54  # Latin letters of a line: a Chinese character takes the room of two
_CENTRE_ROOM, _CENTRE_LINES = 20, 3
_MOST_LINES = 2  # of a name, of a relation, of the conditions
_NAME_LEADING, _SMALL_LEADING, _GAP = 17.0, 15.0, 11.0
_MIDDLE, _REACH, _MARGIN = 500.0, 118.0, 24.0  # where the centre is, and how far the nodes are from it
# of each kind in turn, so that one long list does not push the others out
_FIRST = (
    "Substance", "Mixture", "ReactiveGroup", "HazardClass", "HazardStatement", "TransportEntry", "Measure", "Pictogram",
    "Measurement", "ExposureLimit", "Toxicity", "NfpaRating", "Regulation", "Use",
)  # fmt: skip
_BESIDE = frozenset({"Alias"})  # names stand above the picture


@dataclass(frozen=True)
class Neighbour:
    """A statement as a node: ``key`` and ``label`` of its object, words, and the file of its page or ""."""

    key: str
    label: str
    relation: str
    name: str
    conditions: str
    denied: bool
    unsuitable: bool
    address: str

    @property
    def adverse(self) -> bool:
        """Whether it must not be taken for the plain statement of the same object."""
        return self.denied or self.unsuitable


def gathered(
    rows: Sequence[Assertion], incoming: Sequence[Assertion], names: Mapping[str, Both], key: str, pages: Mapping[str, str]
) -> list[Neighbour]:  # fmt: skip
    """What a substance is linked to: its own statements, and those of others that name it.

    ``pages``: key of a substance → the file of its page.
    """
    found = [
        _neighbour(row, names, row.object_key, row.object_label, pages)
        for row in rows
        if row.object_key not in ("", key)
    ]
    found += [
        _neighbour(row, names, row.subject_key, NodeLabel.SUBSTANCE.value, pages, incoming=True)
        for row in incoming
        if row.subject_key not in ("", key)
    ]
    told: dict[tuple[object, ...], Neighbour] = {}
    # what sources say alike is one node, under the name that says most
    for one in sorted(found, key=lambda n: (-len(n.name), n.name)):
        told.setdefault((one.key, one.relation, one.conditions, one.denied), one)
    return sorted(told.values(), key=lambda n: (n.key, n.relation, n.name, n.conditions, n.denied))


def _neighbour(
    row: Assertion,
    names: Mapping[str, Both],
    other: str,
    label: str,
    pages: Mapping[str, str],
    *,
    incoming: bool = False,
) -> Neighbour:
    words = said(row, names)
    name, relation = together(words.object), together(words.what)
    if incoming:
        name = together(names.get(other, ("", ""))) or row.subject or other
        if row.relation != Relation.INCOMPATIBLE_WITH:  # which is mutual
            zh, en = words.what
            relation = f"本物质是其{zh} · its {en}: this"
    return Neighbour(
        other, label, f"{together(DENIED)}: {relation}" if words.denied else relation, name or row.object or other,
        together(words.conditions), words.denied, words.unsuitable, pages.get(other, ""),
    )  # fmt: skip


def picture(name: str, neighbours: Sequence[Neighbour]) -> dict[str, Any]:
    """Positions of the picture, in a box 1000 wide: ``nodes``, ``centre``, ``height``, ``legend``, ``left_out``.

    At most 28 nodes, of each label in turn, half of them on either side; what must not be done goes first.
    """
    lined = {neighbour: _lines(neighbour) for neighbour in neighbours}
    together_shown: dict[str, list[Neighbour]] = defaultdict(list)
    for neighbour in neighbours:
        together_shown[neighbour.key].append(neighbour)
    by_label: dict[str, list[list[Neighbour]]] = defaultdict(list)
    for group in together_shown.values():
        if group[0].label in _FIRST and all(lined[neighbour] for neighbour in group):
            by_label[group[0].label].append(group)
    for queue in by_label.values():
        queue.sort(key=lambda group: not any(neighbour.adverse for neighbour in group))  # keeps their order
    chosen = _chosen([by_label[label] for label in _FIRST if label in by_label])
    chosen.sort(key=lambda n: (_FIRST.index(n.label), n.relation, n.name, n.conditions))
    counted = sum(neighbour.label not in _BESIDE for neighbour in neighbours)
    return {
        **_placed(chosen, lined),
        "centre": _wrapped(name, _CENTRE_ROOM)[:_CENTRE_LINES],
        "left_out": counted - len(chosen),
        "legend": sorted({(*_label(n.label), LABEL_COLOURS.get(n.label, OTHER_COLOUR)) for n in chosen}),
    }


def _chosen(queues: Sequence[Sequence[list[Neighbour]]]) -> list[Neighbour]:
    """Groups of each queue in turn while there is room; one that no longer fits gives way to a smaller one."""
    chosen: list[Neighbour] = []
    for at in range(max(map(len, queues), default=0)):
        for queue in queues:
            if at < len(queue) and len(chosen) + len(queue[at]) <= MOST_NODES:
                chosen += queue[at]
    return chosen


def _lines(neighbour: Neighbour) -> list[tuple[str, str]]:
    """(style, text) of each line, top down; nothing where one of the texts does not fit in whole."""
    lines = []
    for style, text, room in (
        ("name", neighbour.name, _NAME_ROOM),
        ("relation", neighbour.relation, _SMALL_ROOM),
        ("conditions", neighbour.conditions, _SMALL_ROOM),
    ):
        wrapped = _wrapped(text, room)
        if len(wrapped) > _MOST_LINES:
            return []
        lines += [(style, line) for line in wrapped]
    return lines


def _wrapped(text: str, room: int) -> list[str]:
    """Lines of at most ``room`` cells, broken between words where there are any."""
    plain = " ".join(str(visible(text)).split())  # as the page will show it
    if cell_len(plain) <= room:
        return [plain] if plain else []
    if cell_len(plain) > 10 * room:  # as long as nothing that fits
        return [plain[:room]] * (_MOST_LINES + 1)
    wide = Console(width=room, color_system=None)
    return [line.plain.strip() for line in Text(plain).wrap(wide, room, overflow="fold")]


def _placed(chosen: Sequence[Neighbour], lined: Mapping[Neighbour, list[tuple[str, str]]]) -> dict[str, Any]:
    heights = [_height(lined[neighbour]) for neighbour in chosen]
    half, total = 0, 0.0
    while half < len(chosen) and total < sum(heights) / 2:
        total += heights[half]
        half += 1
    tall = max(sum(heights[:half]), sum(heights[half:]), 120.0) + 2 * _MARGIN
    nodes = []
    for side, part in ((1, range(half)), (-1, range(half, len(chosen)))):
        y = (tall - sum(heights[at] for at in part)) / 2
        for at in part:
            nodes.append(_node(chosen[at], lined[chosen[at]], side, y))
            y += heights[at]
    return {"nodes": nodes, "height": round(tall, 1)}


def _height(lines: Sequence[tuple[str, str]]) -> float:
    return _GAP + sum(_NAME_LEADING if style == "name" else _SMALL_LEADING for style, _ in lines)


def _node(neighbour: Neighbour, lines: Sequence[tuple[str, str]], side: int, top: float) -> dict[str, Any]:
    x, y = _MIDDLE + side * _REACH, top + _NAME_LEADING / 2 + 2
    texts, at = [], top
    for style, text in lines:
        at += _NAME_LEADING if style == "name" else _SMALL_LEADING
        texts.append({"style": style, "text": text, "y": round(at - 3, 1)})
    return {
        "x": x,
        "y": round(y, 1),
        "text_x": x + side * 12,
        "anchor": "start" if side > 0 else "end",
        "label": neighbour.label,
        "texts": texts,
        "adverse": neighbour.adverse,
        "address": neighbour.address,
        "colour": LABEL_COLOURS.get(neighbour.label, OTHER_COLOUR),
    }


def _label(label: str) -> Both:
    return WORDS["zh"].term(label), WORDS["en"].term(label)
