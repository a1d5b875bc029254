"""``hchem clean``: a file or a batch of pages to text, without a catalogue."""

from __future__ import annotations

import json
import sys
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

if TYPE_CHECKING:
    from corpus.cleaning.page import CleanedPage
    from corpus.cleaning.sandbox import SandboxedCleaner


class Format(StrEnum):
    """What ``hchem clean`` prints."""

    text = "text"
    markdown = "markdown"
    html = "html"
    json = "json"


app = typer.Typer()


@app.command()
def clean(
    file: Annotated[
        str | None, typer.Argument(help="HTML, PDF, XML, text or Markdown file; - for stdin.")
    ] = None,
    url: Annotated[str, typer.Option(help="Address the page came from.")] = "",
    output: Annotated[Format, typer.Option("--format", help="What to print.")] = Format.text,
    batch: Annotated[
        bool, typer.Option("--batch", help='JSON lines {"id","url","html"} → {"id","text"}.')
    ] = False,
    timeout: Annotated[float, typer.Option(min=0.1, help="Seconds that one page may take.")] = 20.0,
) -> None:
    """Clean a page: navigation, scripts and the like out, main content with its tables kept."""
    if batch:
        if file not in (None, "-"):
            _fail("--batch reads standard input and takes no file")
        _run_batch(timeout)
        return
    if file is None:
        _fail("give a file, or - for standard input, or --batch")
    data, name = _read(str(file))
    from corpus.cleaning.sandbox import SandboxedCleaner
    from corpus.errors import PlatformError

    try:
        with SandboxedCleaner(timeout_s=timeout) as cleaner:
            page = cleaner.clean(data, url=url or (name if file != "-" else ""))
    except PlatformError as error:
        _fail(f"{name}: {error} ({error.reason})")
    if not url:
        page.canonical_url = page.canonical_url if page.canonical_url.startswith("http") else ""
    _print(page, output, name)


def _print(page: CleanedPage, output: Format, name: str) -> None:
    from corpus.cleaning.pipeline import summary

    shown = {
        Format.text: lambda: page.plain,
        Format.markdown: lambda: page.text,
        Format.html: lambda: page.html,
        Format.json: lambda: json.dumps(summary(page), ensure_ascii=False, indent=2),
    }[output]()
    if page.verdict != "ok":
        typer.echo(f"{name}: {page.verdict}: {', '.join(page.reasons)}", err=True)
    if shown:
        _write(shown if shown.endswith("\n") else shown + "\n")


def _write(text: str) -> None:
    """UTF-8 whatever the locale says."""
    sys.stdout.buffer.write(text.encode("utf-8", "replace"))
    sys.stdout.buffer.flush()


def _read(file: str) -> tuple[bytes, str]:
    if file == "-":
        return sys.stdin.buffer.read(), "standard input"
    path = Path(file)
    try:
        return path.read_bytes(), path.name
    except FileNotFoundError:
        _fail(f"{file}: no such file")
    except IsADirectoryError:
        _fail(f"{file}: is a directory")
    except OSError as error:
        _fail(f"{file}: {error.strerror or error}")


def _fail(message: str) -> NoReturn:
    typer.echo(f"hchem clean: {message}", err=True)
    raise typer.Exit(2)


def _run_batch(timeout: float) -> None:
    from corpus.cleaning.sandbox import SandboxedCleaner

    with SandboxedCleaner(timeout_s=timeout) as cleaner:
        for line in sys.stdin.buffer:
            if line.strip():
                _write(json.dumps(_batch_line(cleaner, line), ensure_ascii=False) + "\n")


def _batch_line(cleaner: SandboxedCleaner, line: bytes) -> dict[str, Any]:
    """One output object for one input line; whatever is wrong with it becomes its ``error``."""
    from corpus.errors import PlatformError

    try:
        given = json.loads(line.decode("utf-8-sig", "replace"))
    except (ValueError, RecursionError) as error:
        return {"id": None, "text": "", "error": f"not JSON: {error}"}
    if not isinstance(given, dict):
        return {"id": None, "text": "", "error": "not a JSON object"}
    identity, html = given.get("id"), given.get("html")
    if not isinstance(html, str):
        return {"id": identity, "text": "", "error": "no field html of type string"}
    url = given.get("url") if isinstance(given.get("url"), str) else ""
    data = html.encode("utf-8", "replace")
    try:
        page = cleaner.clean(data, url=str(url or ""), content_type="text/html; charset=utf-8")
    except PlatformError as error:
        return {"id": identity, "text": "", "error": f"{error.reason}: {error}"}
    answer = {"id": identity, "text": page.plain}
    if page.verdict != "ok":
        answer["verdict"] = page.verdict
    return answer
