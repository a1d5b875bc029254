"""The inspection as one HTML file that asks for nothing and runs nothing.

Everything from the page is text put in through autoescaping, or stands in a frame
with an empty ``sandbox``. The content security policy allows the file's own style
sheet by its hash and nothing else, so that even markup that got through could not
run, load, submit or restyle.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from corpus.errors import TerminalError
from flows.files import put_whole

_HUES = 16
_UNKNOWN = {
    "title": "",
    "kind": "",
    "verdict": "",
    "reasons": [],
    "language": "",
    "encoding": {},
    "canonical_url": "",
}
_EXPLAINED = {
    "raw": "as parsed; all that goes is marked",
    "structural": "what functional cleaning takes is marked",
    "functional": "what attribute cleaning takes is faded",
    "attribute": "the cleaned page",
}
_SLUG = re.compile(r"[^\w.-]+")


def render(found: Mapping[str, Any], *, name: str, facts: Mapping[str, Any]) -> str:
    """The report as HTML text.

    ``found``: plain data of an ``Inspection``; ``name``: what the page is called;
    ``facts``: label → value, what is known of it besides (source, cluster, template).
    """
    environment = Environment(
        loader=PackageLoader("flows.inspection"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    source = (
        environment.loader.get_source(environment, "inspect.css") if environment.loader else ("", "", None)
    )
    style = "\n" + source[0].strip() + "\n"
    hashed = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    environment.filters["thousands"] = lambda number: f"{number:,}"
    keys = _keys(found)
    home = found["panes"][0]["home"] if found["panes"] else {}
    places = {int(number): line for number, line in home.items()}  # JSON made the numbers text
    first: dict[int, int] = {}
    for index, block in enumerate(found["blocks"]):
        if block["number"] >= 0:
            first.setdefault(block["number"], index)
    return environment.get_template("inspect.html.j2").render(
        found=found,
        page=_UNKNOWN | found["page"],
        name=name,
        facts=facts,
        style=Markup(style),  # noqa: S704  our own file
        policy=f"default-src 'none'; style-src 'sha256-{hashed}'; base-uri 'none'; form-action 'none'",
        frame_policy='<meta http-equiv="Content-Security-Policy" content="default-src \'none\'">',
        hue={key: f"k{number % _HUES}" for number, key in enumerate(keys)},
        explained=_EXPLAINED,
        places=places,
        first=first,
        panes=found["panes"],
        features=_features(found["page"]),
        groups=_groups(found["rules"]),
    )


def _keys(found: Mapping[str, Any]) -> list[str]:
    """Keys of all rules that appear, those of the list first: the colours go by this order."""
    keys = [rule["key"] for rule in found["rules"]]
    for pane in found["panes"]:
        for line in pane["lines"]:
            keys += [line["key"], line["starts"]]
            keys += [part[0][2:] for part in line["parts"] if part[0].startswith("k:")]
    return [key for key in dict.fromkeys(keys) if key]


def _features(page: Mapping[str, Any]) -> list[tuple[str, str]]:
    shown = []
    for name, value in page.get("features", {}).items():
        if value:
            text = f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)
            shown.append((name.replace("_", " "), text))
    return shown


def _groups(rules: list[dict[str, Any]]) -> list[tuple[str, list[dict[str, Any]]]]:
    """Rules by cleaning, those that took most text first."""
    names = ("structural", "functional", "attribute")
    return [
        (
            name,
            sorted(
                (rule for rule in rules if rule["cleaning"] == name),
                key=lambda rule: (-rule["chars"], -rule["count"], rule["rule"]),
            ),
        )
        for name in names
    ]


def report_of_file(folder: Path, path: Path) -> Path:
    """Where the report of a file goes: by its name, and by where it lies since many files are called alike."""
    place = hashlib.sha256(str(path.resolve()).encode("utf-8", "surrogateescape")).hexdigest()[:8]
    return folder / f"inspect-{_SLUG.sub('-', path.name)[:60]}-{place}.html"


def write_page(html: str, target: Path) -> Path:
    """Write the file, whole or not at all; returns its full path. Raises TerminalError where it cannot be written."""
    try:
        put_whole(target, html)
    except OSError as error:
        raise TerminalError(
            f"{target} cannot be written: {error.strerror or error}", reason="disk"
        ) from error
    return target.resolve()
