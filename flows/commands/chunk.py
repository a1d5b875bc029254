"""``hchem chunk`` and ``hchem chunkscore``: file tools that need no catalogue."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from pydantic import BaseModel, ValidationError

from corpus.errors import TerminalError
from corpus.ids import json_line

if TYPE_CHECKING:
    from chunking.partition import SegmentResult, Span
    from chunking.segment import Segmenter

app = typer.Typer()


class _Leaf(BaseModel, strict=True):
    """A line of a partition; what else it says is not read."""

    start: int
    end: int
    id: str | int | None = None
    parent: str | int | None = None
    text: str | None = None


@app.command()
def chunk(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A text file in UTF-8.")],
    method: Annotated[
        str,
        typer.Option(
            "--method",
            "-m",
            help="fixed, sentence, recursive, semantic, qchunker or hichunk; with a model also qchunker-slm, "
            "lumberchunker, meta-chunker, direct-llm.",
        ),
    ] = "sentence",
    size: Annotated[
        int | None,
        typer.Option(
            "--size",
            help="Chunk size in words; a sentence that is longer stands alone (fixed cuts anywhere).",
        ),
    ] = None,
    output: Annotated[str, typer.Option("--format", help="jsonl or text.")] = "jsonl",
    language: Annotated[str | None, typer.Option(help="zh or en; default: by its characters.")] = None,
    without_completion: Annotated[
        bool,
        typer.Option(
            "--without-completion", help="qchunker, qchunker-slm: no review and completion of chunks."
        ),
    ] = False,
) -> None:
    """Cut a text file into chunks that tile it; offsets are code points of its text unchanged.

    Example: hchem chunk law.txt --method hichunk --size 200
    """
    if output not in ("jsonl", "text"):
        raise TerminalError(f"unknown format {output!r}; formats: jsonl, text", reason="usage")
    if language not in (None, "zh", "en"):
        raise TerminalError(f"unknown language {language!r}; languages: zh, en", reason="usage")
    text = _read(file)
    changes: dict[str, Any] = {} if size is None else {"size": size}
    if without_completion:
        changes["completion"] = False
    result = _segmenter(changes).run(text, method, language)
    for line in _json_lines(result) if output == "jsonl" else _text_lines(result):
        typer.echo(line)


@app.command()
def chunkscore(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The text that was cut.")],
    partition: Annotated[
        Path, typer.Argument(metavar="PARTITION", help="JSON lines of `hchem chunk`; the leaves count.")
    ],
    vectors: Annotated[
        str, typer.Option(help="pooled (from sentence vectors) or whole (each chunk embedded).")
    ] = "pooled",
    variant: Annotated[str | None, typer.Option(help="ppl_ratio or loss_ratio.")] = None,
) -> None:
    """Score a partition: logical independence, semantic dispersion, ChunkScore; null where undefined.

    Example: hchem chunkscore law.txt law.jsonl
    """
    if vectors not in ("pooled", "whole"):
        raise TerminalError(f"unknown vectors {vectors!r}; choose pooled or whole", reason="usage")
    text = _read(file)
    spans = _leaves(partition, text)
    segmenter = _segmenter({} if variant is None else {"chunkscore_variant": variant})
    score = segmenter.score(text, spans, pooling="whole" if vectors == "whole" else "pooled")
    typer.echo(
        json.dumps({**score.as_dict(), "tokens": segmenter.models.token_counter_name}, ensure_ascii=False)
    )


def _segmenter(changes: dict[str, Any]) -> Segmenter:
    """A segmenter with the platform's settings and these changes; storage is not opened."""
    from pydantic import ValidationError

    from chunking.segment import Segmenter
    from chunking.settings import ChunkSettings
    from flows.settings import load_settings
    from models import Models

    settings = load_settings()
    try:
        chosen = ChunkSettings.model_validate(settings.chunks.model_dump() | changes)
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        raise TerminalError(f"{'.'.join(map(str, first['loc']))}: {first['msg']}", reason="usage") from error
    return Segmenter(Models(settings.models), chosen)


def _read(path: Path) -> str:
    """The file's text with its line ends as they are."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise TerminalError(f"{path} cannot be read: {error.strerror or error}", reason="file") from error
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise TerminalError(f"{path} is not UTF-8 (byte {error.start})", reason="encoding") from error


def _json_lines(result: SegmentResult) -> list[str]:
    ids = result.ids()
    lines = []
    for identifier, node in zip(ids, result.nodes, strict=True):
        row = {
            "id": identifier,
            "start": node.start,
            "end": node.end,
            "level": node.level,
            "parent": None if node.parent is None else ids[node.parent],
            "text": result.text[node.start : node.end],
        }
        lines.append(json_line(row))
    return lines


def _text_lines(result: SegmentResult) -> list[str]:
    """Readable form: a rule with the span before each chunk, indented by level."""
    lines = []
    for node in result.nodes:
        rule = f"{'  ' * node.level}── {node.start}-{node.end} level {node.level}"
        lines.append(f"{rule} ──" if node.leaf else f"{rule} (inner) ──")
        if node.leaf:
            lines.append(result.text[node.start : node.end].rstrip("\r\n"))
    return lines


def _leaves(path: Path, text: str) -> list[Span]:
    """Spans of the leaves of a partition file, in document order, checked against the text."""
    from chunking.errors import PartitionError
    from chunking.partition import check_tiling

    rows = [
        _row(path, number, line)
        for number, line in enumerate(_read(path).split("\n"), start=1)
        if line.strip()
    ]
    inner = {row.parent for row in rows if row.parent is not None}
    leaves = sorted((row.start, row.end) for row in rows if row.id is None or row.id not in inner)
    check_tiling(leaves, len(text))
    for row in rows:
        if row.text is not None and row.text != text[row.start : row.end]:
            raise PartitionError(
                f"{path}: the text of chunk {row.start}-{row.end} is not that of the file: it was made from another one"
            )
    return leaves


def _row(path: Path, number: int, line: str) -> _Leaf:
    try:
        return _Leaf.model_validate_json(line)
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        place = ".".join(map(str, first["loc"]))
        raise TerminalError(
            f"{path}, line {number}: expected an object with whole numbers start and end "
            f"({f'{place}: ' if place else ''}{first['msg'][:200]})",
            reason="file",
        ) from error
