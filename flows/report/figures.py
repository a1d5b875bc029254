"""Figures of the report as inline SVG: text stays text, so that the browser's fonts serve zh and en."""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from flows.report.words import EN, Words

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from corpus.catalogue.tables import Evaluation

INK = "#1d2733"
ACCENT = "#0b6e8a"
PALETTE = ("#0b6e8a", "#c8553d", "#588157", "#7b5ea7", "#d19a2a", "#4a6fa5", "#8d6b5a", "#2f3e46")
LABEL_COLOURS = {
    "Substance": "#0b6e8a",
    "Mixture": "#4a6fa5",
    "ReactiveGroup": "#c8553d",
    "HazardClass": "#d19a2a",
    "HazardStatement": "#e0a458",
    "Pictogram": "#7b5ea7",
    "TransportEntry": "#588157",
    "Measure": "#8d6b5a",
    "Measurement": "#5b6875",
    "ExposureLimit": "#a23b72",
    "Toxicity": "#e887a6",
    "Alias": "#9aa5b1",
    "PrecautionaryStatement": "#7f9c3b",
    "NfpaRating": "#3fb0ac",
    "Regulation": "#55432c",
    "Use": "#b8a1d9",
}
OTHER_COLOUR = "#2f3e46"
_DASHES = ("", "7 3", "2 3", "10 3 2 3", "12 6", "4 2 1 2", "1 5", "16 3 2 3 2 3")
_WIDTH = 11.7  # inches: what the report's column of 1,180 px holds at the natural size


def _new(width: float, height: float) -> tuple[Figure, Any]:
    import matplotlib as mpl

    mpl.use("svg")
    mpl.rcParams.update(
        {
            "svg.fonttype": "none",
            "svg.hashsalt": "hchem",
            "font.family": "sans-serif",
            "font.sans-serif": ["Noto Sans CJK SC", "Noto Sans", "DejaVu Sans"],
            "font.size": 10,
            "axes.edgecolor": "#9aa5b1",
            "axes.labelcolor": INK,
            "text.color": INK,
            "xtick.color": INK,
            "ytick.color": INK,
            "axes.spines.top": False,
            "axes.spines.right": False,
        }
    )
    import logging

    from matplotlib.figure import Figure

    logging.getLogger("matplotlib.font_manager").setLevel(logging.ERROR)
    figure = Figure(figsize=(width, height), layout="constrained")
    return figure, figure.add_subplot()


def _svg(figure: Figure) -> str:
    buffer = io.StringIO()
    figure.savefig(buffer, format="svg", metadata={"Date": None, "Creator": None}, transparent=True)
    text = buffer.getvalue()
    return text[text.index("<svg") :]


def histogram(scores: Sequence[float], threshold: float, words: Words = EN) -> str:
    """Quality scores (0 to 5) with the threshold above which a document is kept.

    Scores have one decimal, so that a bin holds two of them and no score lies on a border, where it
    would count with the higher ones: 2.9 and 3.0, 3.1 and 3.2.
    """
    figure, axes = _new(_WIDTH, 2.8)
    bins = [i * 0.2 - 0.15 for i in range(27)]
    below = [s for s in scores if s <= threshold]
    above = [s for s in scores if s > threshold]
    axes.hist(
        [below, above],
        bins=bins,
        stacked=True,
        color=["#c9d1d9", ACCENT],
        label=[words["not_kept"], words["above"]],
    )
    axes.axvline(threshold, color="#c8553d", linewidth=1.2, linestyle="--")
    axes.set_xlabel(words["quality_score"])
    axes.set_ylabel(words.term("documents"))
    axes.set_xlim(bins[0], bins[-1])
    axes.legend(frameon=False, loc="upper left")
    return _svg(figure)


def recall_bars(rows: Sequence[Evaluation], metric: str, words: Words = EN) -> str:
    """One bar per method with its confidence interval."""
    rows = [row for row in rows if row.metric == metric and row.value is not None]
    figure, axes = _new(_WIDTH, 0.42 * max(len(rows), 2) + 0.9)
    positions = range(len(rows))
    values = [row.value or 0.0 for row in rows]
    axes.barh(
        positions, values, xerr=_errors(rows), color=ACCENT, height=0.6, error_kw={"ecolor": INK, "lw": 1}
    )
    axes.set_yticks(list(positions), [row.method for row in rows])
    axes.invert_yaxis()
    axes.set_xlabel(words.term(metric))
    return _svg(figure)


def budget_curve(rows: Sequence[Evaluation], metric: str, words: Words = EN) -> str:
    """The metric over the token budget, one line per method."""
    figure, axes = _new(_WIDTH, 3.2)
    methods = sorted({row.method for row in rows})
    for colour, method in zip(PALETTE * 3, methods, strict=False):
        points = sorted(
            (float(row.setting["budget"]), row.value)
            for row in rows
            if row.method == method
            and row.metric == metric
            and row.value is not None
            and "budget" in row.setting
        )
        if points:
            axes.plot(*zip(*points, strict=True), marker="o", markersize=3.5, color=colour, label=method)
    axes.set_xlabel(words["budget_axis"])
    axes.set_ylabel(words.term(metric))
    axes.legend(frameon=False, fontsize=8)
    return _svg(figure)


def lambda_curve(rows: Sequence[Evaluation], words: Words = EN) -> str:
    """Pearson's r between ChunkScore and ROUGE-L over λ, with its interval; n is the number of methods."""
    points = sorted((float(row.setting["lambda"]), row) for row in rows if row.value is not None)
    figure, axes = _new(_WIDTH, 3.0)
    axes.axhline(0, color="#c9d1d9", linewidth=0.8)
    lambdas = [lam for lam, _ in points]
    axes.fill_between(
        lambdas,
        [row.value if row.low is None else row.low for _, row in points],
        [row.value if row.high is None else row.high for _, row in points],
        color=ACCENT,
        alpha=0.15,
        linewidth=0,
    )
    axes.plot(lambdas, [row.value for _, row in points], color=ACCENT)
    axes.set_xlim(0, 1)
    axes.set_ylim(-1.05, 1.05)
    axes.set_xlabel(words["lambda_axis"])
    axes.set_ylabel(words("pearson_axis", n=rows[0].n) if rows else words.term("pearson_r"))
    return _svg(figure)


def level_curve(rows: Sequence[Evaluation], words: Words = EN) -> str:
    """Evidence recall by the deepest level that Auto-Merge may use, with intervals."""
    figure, axes = _new(_WIDTH, 2.8)
    for colour, method in zip(PALETTE, sorted({row.method for row in rows}), strict=False):
        own = [row for row in rows if row.method == method and row.value is not None]
        own.sort(key=lambda row: str(row.setting["max_level"]))  # 1 … 4, all
        values = [row.value or 0.0 for row in own]
        axes.errorbar(
            [words.term(row.setting["max_level"]) for row in own],
            values,
            yerr=_errors(own),
            color=colour,
            marker="o",
            markersize=4,
            capsize=3,
            label=f"{method}, n = {max((row.n for row in own), default=0)}",
        )
    axes.set_xlabel(words["deepest"])
    axes.set_ylabel(words.term("evidence_recall"))
    axes.margins(y=0.35)
    axes.legend(frameon=False, fontsize=8, loc="upper left")
    return _svg(figure)


def completion_bars(rows: Sequence[Evaluation], words: Words = EN) -> str:
    """Mean token loss of completed chunks before and after, by language, with intervals."""
    by_key = {(str(row.setting["language"]), row.metric): row for row in rows}
    languages = sorted(language for language, metric in by_key if metric == "loss_before")
    figure, axes = _new(_WIDTH, 2.8)
    for side, (metric, colour) in enumerate((("loss_before", "#c9d1d9"), ("loss_after", ACCENT))):
        own = [by_key[language, metric] for language in languages]
        values = [row.value or 0.0 for row in own]
        places = [place + (side - 0.5) * 0.36 for place in range(len(languages))]
        axes.bar(places, values, width=0.34, yerr=_errors(own), color=colour, label=words[metric.removeprefix("loss_")],
                 error_kw={"ecolor": INK, "lw": 1})  # fmt: skip
    counts = [by_key[language, "loss_before"].n for language in languages]
    axes.set_xticks(
        range(len(languages)),
        [f"{words.term(name)}, n = {n}" for name, n in zip(languages, counts, strict=True)],
    )
    axes.set_ylabel(words["loss_axis"])
    axes.margins(y=0.3)
    axes.legend(frameon=False, fontsize=8, loc="upper right", ncols=2)
    return _svg(figure)


def _errors(rows: Sequence[Evaluation]) -> list[list[float]]:
    """Distances from values to both ends of their intervals; 0 where there is none."""
    low = [0.0 if row.low is None or row.value is None else max(0.0, row.value - row.low) for row in rows]
    high = [0.0 if row.high is None or row.value is None else max(0.0, row.high - row.value) for row in rows]
    return [low, high]


def network(edges: Sequence[tuple[str, str, str]], names: dict[str, tuple[str, str]]) -> dict[str, Any]:
    """Positions for the small graph picture: nodes, edges and legends, in a 1000 × 640 box.

    Relations differ by colour and by dashes, so that what is made of a substance is not taken for
    what it must be kept from.
    """
    import networkx as nx

    graph: nx.Graph[str] = nx.Graph()
    graph.add_nodes_from(sorted(names))
    graph.add_edges_from((s, o) for s, _, o in edges)
    if not graph:
        return {"nodes": [], "edges": [], "relations": []}
    placed = nx.kamada_kawai_layout(graph, pos=nx.circular_layout(graph))
    xs = [p[0] for p in placed.values()]
    ys = [p[1] for p in placed.values()]

    def scale(value: float, low: float, high: float, size: float) -> float:
        return round(60 + (value - low) / ((high - low) or 1.0) * (size - 120), 1)

    at = {
        key: (scale(p[0], min(xs), max(xs), 1000), scale(p[1], min(ys), max(ys), 640))
        for key, p in placed.items()
    }
    degree = dict(graph.degree())
    drawn = {
        relation: {"colour": PALETTE[at % len(PALETTE)], "dash": _DASHES[at % len(_DASHES)]}
        for at, relation in enumerate(sorted({relation for _, relation, _ in edges}))
    }
    return {
        "nodes": [
            {
                "x": at[key][0],
                "y": at[key][1],
                "r": round(4 + 1.4 * degree[key] ** 0.5, 1),
                "name": names[key][0],
                "label": names[key][1],
                "colour": LABEL_COLOURS.get(names[key][1], OTHER_COLOUR),
            }
            for key in sorted(names)
        ],
        "edges": [
            {
                "x1": at[s][0],
                "y1": at[s][1],
                "x2": at[o][0],
                "y2": at[o][1],
                "relation": relation,
                **drawn[relation],
            }
            for s, relation, o in edges
        ],
        "relations": [{"relation": relation, **style} for relation, style in drawn.items()],
        "legend": sorted({(names[key][1], LABEL_COLOURS.get(names[key][1], OTHER_COLOUR)) for key in names}),
    }


def borders_picture(candidates: Sequence[tuple[str, Sequence[int], bool]], length: int) -> dict[str, Any]:
    """Where each candidate partition cuts a text of ``length`` characters, one bar each, in a box 1000 wide.

    ``candidates``: (name, offsets of inner borders, whether it won).
    """
    left, width, height = 300.0, 690.0, 22
    rows = []
    for number, (name, cuts, won) in enumerate(candidates):
        edges = [0, *cuts, length]
        places = [left + width * edge / max(length, 1) for edge in edges]
        rows.append(
            {
                "name": name,
                "won": won,
                "y": 6 + number * height,
                "parts": [
                    {
                        "x": round(begin, 1),
                        "width": round(max(end - begin - 1, 0.5), 1),
                        "colour": (ACCENT, "#5fa3b6")[i % 2] if won else ("#9aa5b1", "#c9d1d9")[i % 2],
                        "said": f"{start}–{stop}",
                    }
                    for i, (begin, end, start, stop) in enumerate(
                        zip(places, places[1:], edges, edges[1:], strict=False)
                    )
                ],
            }
        )
    return {"rows": rows, "height": 12 + len(rows) * height}
