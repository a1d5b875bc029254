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
    target: Annotated[
        Path | None, typer.Option("--out", "--output", help="Write to this file, whatever the text is like.")
    ] = None,
    timeout: Annotated[float, typer.Option(min=0.1, help="Seconds that one page may take.")] = 20.0,
) -> None:
    """Clean a page: navigation, scripts and the like out, main content with its tables kept.

    Example: hchem clean page.html --output page.md
    """
    if batch:
        if file not in (None, "-"):
            _fail("--batch reads standard input and takes no file")
        if target is not None:
            _fail("--batch writes to standard output")
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
    shown = _shown(page, output)
    if target is not None:
        _save(shown, target)
    elif output is not Format.json and (junk := _junk(page, data)):
        _fail(f"{name}: {junk} (verdict {page.verdict}); --format json or --output give the record")
    if page.verdict != "ok":
        typer.echo(f"{name}: {page.verdict}: {', '.join(page.reasons)}", err=True)
    if shown and target is None:
        _write(shown)


def _shown(page: CleanedPage, output: Format) -> str:
    from corpus.cleaning.pipeline import summary

    match output:
        case Format.text:
            shown = page.plain
        case Format.markdown:
            shown = page.text
        case Format.html:
            shown = page.html
        case Format.json:
            shown = json.dumps(summary(page), ensure_ascii=False, indent=2)
    return shown if not shown or shown.endswith("\n") else shown + "\n"


_BINARY_SHARE = 0.01  # of the bytes
_SAMPLE = 65_536
_CONTROLS = bytes(code for code in (*range(0x20), 0x7F) if code not in b"\t\n\r\f\x1b")  # ESC: ISO-2022-JP


def _junk(page: CleanedPage, data: bytes) -> str:
    """Why the text is nothing to print, or empty. Text that is damaged in places goes to a pipe all the same."""
    encoding = str(page.encoding.get("encoding", ""))
    sample = data[:_SAMPLE]
    controls = len(sample) - len(sample.translate(None, _CONTROLS))
    if page.kind != "pdf" and not encoding.startswith(("utf-16", "utf-32")):
        share = controls / max(1, len(sample))
        if share > _BINARY_SHARE:
            return f"binary content, no text: {share:.0%} of the bytes are control characters"
    if "replacement_characters" in page.reasons and sys.stdout.isatty():
        return f"the encoding is not understood: {page.encoding.get('replaced')} characters read as {encoding} are broken"
    return ""


def _save(text: str, target: Path) -> None:
    try:
        target.write_text(text, encoding="utf-8", errors="replace")
    except OSError as error:
        _fail(f"{target} cannot be written: {error.strerror or error}")


_C1 = dict.fromkeys(range(0x80, 0xA0), "\ufffd")


def _write(text: str) -> None:
    """UTF-8 whatever the locale says; on a terminal without the C1 codes that some of them obey."""
    if sys.stdout.isatty():
        text = text.translate(_C1)
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
