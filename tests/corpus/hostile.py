"""Hostile pages for tests and benchmarks: generated markup, mutated real pages, and what must hold on each.

``markup()`` is a hypothesis strategy; ``mutated(seed)`` spoils a sample page, the same way for the
same seed. ``faults(data)`` sends one input through cleaning, quality and refinement and says what
did not hold. Nothing here is a page of anybody's site but the samples themselves.
"""

from __future__ import annotations

import json
import random
import traceback
from bisect import bisect_right
from collections.abc import Callable, Iterator
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

from hypothesis import strategies as st
from hypothesis.internal.conjecture import providers
from hypothesis.internal.conjecture.choice import choice_permitted

from corpus.cleaning import CleanedPage, clean_page
from corpus.errors import TerminalError
from corpus.fidelity import differences
from corpus.ids import normalise_text
from corpus.quality import ScoreDocument, parts_of, scoring_input
from corpus.refinement import Refined, refine_document
from corpus.settings import QualitySettings, RefinementSettings
from models import Models
from models.tokens import count_words

PAGES = Path(__file__).parents[2] / "samples" / "pages"
ENCODINGS = (
    "utf-8",
    "gb18030",
    "big5",
    "shift_jis",
    "windows-1252",
    "utf-16",
    "utf-32",
    "utf-16-be",
    "utf-7",
)
_WINDOWS = RefinementSettings(window=120, overlap=40)


class SameEverywhere(providers.HypothesisProvider):
    """Hypothesis' own provider without the constants of the modules that happen to be loaded.

    With them, a seed gives other inputs after every change of our code, and in another
    process. The constants that come with Hypothesis stay. Used as ``settings(backend=BACKEND)``.
    """

    def _maybe_draw_constant(self, choice_type: Any, constraints: Any, *, p: float = 0.05) -> Any:
        assert self._random is not None
        if self._random.random() > p:
            return None
        known = providers.GLOBAL_CONSTANTS.set_for_type(choice_type)
        permitted = [constant for constant in known if choice_permitted(constant, constraints)]
        return self._random.choice(permitted) if permitted else None


BACKEND = "same-everywhere"
providers.AVAILABLE_PROVIDERS[BACKEND] = SameEverywhere

# --- generated markup ------------------------------------------------------------

TAGS = (  # noqa: SIM905
    "div p span table tr td th tbody thead tfoot caption colgroup col ul ol li dl dt dd h1 h2 h3 h6 a b i em strong sup sub br hr pre code"
    " nav aside header footer main article section form input select option textarea button script style iframe object svg math noscript"
    " template title base meta link body html head font center blockquote img picture figure figcaption details summary ruby rt rp x-y o:p"
).split()
NAMES = (  # noqa: SIM905
    "id class style href src onclick onload colspan rowspan role aria-hidden hidden lang title alt data-x width align name content"
    ' http-equiv itemprop scope headers datetime x" a<b = 中文'
).split()
VALUES = (  # noqa: SIM905
    "nav|main|content|infobox|sidebar ad related|display:none|javascript:alert(1)|data:text/html;base64,PHA+|0|-1|2|9|1000|65534|99999999999|1e9|٣|²|"
    "http://x.example/|#|//|\\|'|\"|>|<p>|&quot;&amp;|zh-CN|en|banner|navigation|true|x\x00y|wikitable|mw-parser-output"
).split("|")
WORDS = (  # noqa: SIM905
    "Benzene is flammable and its flash point is -11 °C, so it must not be heated.|苯为易燃液体，闪点－11℃，不得用水灭火。|71-43-2|CAS 67-56-1、67-64-1|UN1230|H225 P210|"
    "1.8 × 10<sup>-3</sup> mg/m<sup>3</sup>|| | |\n|\t|&nbsp;|&#0;|&#xD800;|&#x110000;|&bogus;|&lt;p&gt;|<![CDATA[x]]>|<!-- -- -->|<!--|-->|<?php echo 1 ?>|<!DOCTYPE html>|"
    "]]>|</|<|>|\x00|\x0b|\ufeff|\u200b\u202e|\ufffe|\U0001f9ea|e\u0301\u0323|H₂O₂ → 2 H₂O|# not a heading|| --- | --- ||* * *|```|    code|1. one|- |第四部分 急救措施|"
    "SECTION 4: First-aid measures|首页 > 化学品 > 苯|Copyright © 2020|分享到：微信|上一篇：乙醇|[edit]|\\*|__x__|<br>|．５％|“Ａ１”|5\u2009628"
).split("|")

_name = st.sampled_from(TAGS)
_attribute = st.tuples(
    st.sampled_from(NAMES), st.sampled_from(VALUES), st.sampled_from(('"{}"', "'{}'", "{}", '"{}', ""))
).map(lambda a: f" {a[0]}={a[2].format(a[1])}" if a[2] else f" {a[0]}")
_text = st.one_of(st.sampled_from(WORDS), st.text(max_size=20))


def _element(children: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    def built(name: str, attributes: list[str], inside: list[str], ending: str) -> str:
        return f"<{name}{''.join(attributes)}>{''.join(inside)}{ending.format(name)}"

    endings = st.sampled_from(("</{}>", "</{}>", "</{}>", "", "</p>", "</table>", "</{}", "</{} x>"))
    return st.builds(built, _name, st.lists(_attribute, max_size=3), st.lists(children, max_size=6), endings)


def _table(children: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    """Rows and cells with wild spans, cells that are tables, lists and headings themselves."""
    span = st.sampled_from(("", "", "", " colspan=2", " rowspan=3", " colspan=0", " rowspan=0", " colspan=1000", " rowspan=65534", " colspan=-1", " colspan=x"))  # fmt: skip
    cell = st.builds(lambda t, s, c: f"<{t}{s}>{c}", st.sampled_from(("td", "th")), span, children)
    row = st.lists(cell, max_size=5).map(lambda cells: "<tr>" + "".join(cells))
    return st.lists(row, max_size=6).map(lambda rows: f"<table>{''.join(rows)}</table>")


_tree = st.recursive(_text, lambda inner: st.one_of(_element(inner), _table(inner)), max_leaves=40)


@st.composite
def markup(draw: st.DrawFn) -> tuple[bytes, dict[str, str]]:
    """A generated page with the arguments it is cleaned with."""
    text = "".join(draw(st.lists(_tree, min_size=1, max_size=6)))
    times = draw(st.sampled_from((1, 1, 1, 1, 3, 40)))
    shape = draw(st.sampled_from(("plain", "plain", "page", "nested", "attribute", "entities", "xml")))
    text = text[:4000] * times if times > 1 else text
    if shape == "page":
        text = f"<html><head><title>x</title></head><body><main><h1>苯</h1>{text}</main></body></html>"
    elif shape == "nested":
        name = draw(_name)
        text = f"<{name}>" * draw(st.integers(2, 700)) + text
    elif shape == "attribute":
        text = f"<div class=\"{'a b ' * draw(st.integers(1, 8000))}\" title='{'x' * draw(st.integers(0, 30000))}'>{text}</div>"
    elif shape == "entities":
        text = (
            draw(st.sampled_from(("&amp;", "&#38;", "&lt;", "&x;", "&#0;", "&#xFFFF;", "&nbsp;"))) * 2000
            + text
        )
    elif shape == "xml":
        entities = "".join(f'<!ENTITY a{n} "{f"&a{n - 1};" * 10}">' for n in range(1, 9))
        text = f'<?xml version="1.0"?><!DOCTYPE a [<!ENTITY a0 "boom">{entities}]><a><p>{text}&a8;</p></a>'
    encoding = draw(st.sampled_from(ENCODINGS))
    declared = draw(st.sampled_from(("", *ENCODINGS, "nonsense")))
    kind = draw(st.sampled_from(("text/html", "text/html", "text/html", "", "text/plain", "application/xml", "application/xhtml+xml")))  # fmt: skip
    data = text.encode(encoding, draw(st.sampled_from(("replace", "surrogatepass", "xmlcharrefreplace", "ignore")))) if encoding.startswith("utf") else text.encode(encoding, "replace")  # fmt: skip
    return data, {"content_type": kind, "header_charset": declared, "url": "https://x.example/a.html"}


# --- mutated real pages ------------------------------------------------------------


@lru_cache(maxsize=1)
def _manifest() -> list[dict[str, Any]]:
    lines = (PAGES.parent / "manifest.jsonl").read_text(encoding="utf-8").splitlines()
    return [page for page in map(json.loads, lines) if page["bytes"] < 400_000]


@cache
def _bytes(name: str) -> bytes:
    return (PAGES / name).read_bytes()


def _position(chance: random.Random, data: bytes) -> int:
    return chance.randrange(len(data) + 1)


def _cut(chance: random.Random, data: bytes) -> bytes:
    a, b = sorted((_position(chance, data), _position(chance, data)))
    return data[:a] + data[b:] if chance.random() < 0.5 else data[a:b]


def _splice(chance: random.Random, data: bytes) -> bytes:
    other = _window(chance, _bytes(chance.choice(_manifest())["file"]), 6_000)
    at = _position(chance, data)
    return data[:at] + other + data[at:]


def _flip(chance: random.Random, data: bytes) -> bytes:
    spoilt = bytearray(data)
    for _ in range(chance.choice((1, 10, 200)) if spoilt else 0):
        spoilt[chance.randrange(len(spoilt))] = chance.randrange(256)
    return bytes(spoilt)


def _doubled(chance: random.Random, data: bytes) -> bytes:
    """A stretch from one tag to another, again and again."""
    starts = [i for i in range(len(data)) if data[i : i + 1] == b"<"][:4000]
    if len(starts) < 2:
        return data * 2
    a, b = sorted(chance.sample(starts, 2))
    return data[:b] + data[a : min(b, a + 3000)] * chance.choice((1, 2, 8)) + data[b:]


def _nested(chance: random.Random, data: bytes) -> bytes:
    tag = chance.choice(TAGS).encode()
    at = _position(chance, data)
    return data[:at] + (b"<" + tag + b">") * chance.choice((50, 300, 2500)) + data[at:]


def _bomb(chance: random.Random, data: bytes) -> bytes:
    bomb = chance.choice(
        (
            b'<p class="' + b"nav " * 20_000 + b'">',
            b"<p" + b" x=1" * 5000 + b">",
            b"&amp;" * 20_000,
            b"<p title='" + b"a" * 300_000,
            b"&#" + b"9" * 3000 + b";",
            b"<" * 5000,
            b"<!--" * 2000,
        )
    )
    at = _position(chance, data)
    return data[:at] + bomb + data[at:]


def _recoded(chance: random.Random, data: bytes) -> bytes:
    text = data.decode(chance.choice(ENCODINGS[:6]), "replace")
    encoding = chance.choice(ENCODINGS[:8])
    return text.encode(encoding, "replace")


def _noise(chance: random.Random, data: bytes) -> bytes:
    noise = chance.choice((b"\x00", b"\xed\xa0\x80", b"\xff\xfe", b"\xef\xbb\xbf", b"\x1b$B", b"\xf4\x90\x80\x80", b"\x0c\x0b", b"\xe2\x80\xae", b"\r", b"%PDF-", b"\x81"))  # fmt: skip
    for _ in range(chance.choice((1, 5, 60))):
        at = _position(chance, data)
        data = data[:at] + noise + data[at:]
    return data


def _unclosed(chance: random.Random, data: bytes) -> bytes:
    parts = data.split(b"</")
    return b"".join(part if chance.random() < 0.5 else b"</" + part for part in parts)


def _spans(chance: random.Random, data: bytes) -> bytes:
    span = chance.choice((b" colspan=1000", b" rowspan=1000", b" rowspan=0", b" colspan=-3", b" colspan=65534 rowspan=65534"))  # fmt: skip
    parts = data.split(b"<td")
    return parts[0] + b"".join(b"<td" + (span if chance.random() < 0.1 else b"") + part for part in parts[1:])


def _retagged(chance: random.Random, data: bytes) -> bytes:
    """One tag name for another, wherever it stands."""
    old, new = (
        chance.choice((b"div", b"p", b"td", b"li", b"span", b"tr", b"h2")),
        chance.choice(TAGS).encode(),
    )
    return data.replace(b"<" + old, b"<" + new)


def _shuffled(chance: random.Random, data: bytes) -> bytes:
    parts = data.split(b"<")
    a = chance.randrange(len(parts))
    middle = parts[a : a + 60]
    chance.shuffle(middle)
    return b"<".join(parts[:a] + middle + parts[a + 60 :])


MUTATIONS: tuple[Callable[[random.Random, bytes], bytes], ...] = (
    _cut, _splice, _flip, _doubled, _nested, _bomb, _recoded, _noise, _unclosed, _spans, _retagged, _shuffled,
)  # fmt: skip


def _window(chance: random.Random, data: bytes, size: int) -> bytes:
    start = chance.randrange(max(1, len(data) - size))
    return data[start : start + size]


def mutated(seed: int) -> tuple[bytes, dict[str, str], str]:
    """A sample page spoilt by one to four mutations: bytes, arguments, and what was done."""
    chance = random.Random(seed)
    page = chance.choice(_manifest())
    data = _bytes(page["file"])
    if len(data) > 12_000 and chance.random() < 0.98:  # whole large pages take long; they are the benchmark's
        data = data[:2000] + _window(chance, data, 8_000)
    done = [page["file"]]
    for mutate in chance.choices(MUTATIONS, k=chance.randint(1, 4)):
        data = mutate(chance, data)
        done.append(mutate.__name__.strip("_"))
    kind = page["content_type"] if chance.random() < 0.8 else chance.choice(("", "text/html", "text/plain"))
    charset = kind.partition("charset=")[2] if chance.random() < 0.8 else chance.choice(ENCODINGS)
    url = f"https://samples.example{page['url_path']}"
    return data, {"content_type": kind, "header_charset": charset, "url": url}, " ".join(done)


# --- what must hold ------------------------------------------------------------------


def faults(data: bytes, arguments: dict[str, str]) -> list[str]:
    """What did not hold on one input, "stage: what"; empty where all did."""
    try:
        page = clean_page(data, **arguments)
    except TerminalError as error:
        return [] if error.reason not in ("", "error") else [f"clean: a refusal without a reason: {error}"]
    except Exception as error:
        return [f"clean: {_shown(error)}"]
    found = [f"clean: {fault}" for fault in _cleaning_faults(page, data, arguments)]
    for stage, check in (("quality", _quality_faults), ("refine", _refining_faults)):
        try:
            found += [f"{stage}: {fault}" for fault in check(page)]
        except Exception as error:
            found.append(f"{stage}: {_shown(error)}")
    return found


def _shown(error: Exception) -> str:
    frames = traceback.extract_tb(error.__traceback__)
    last = next(
        (f for f in reversed(frames) if "/corpus/" in f.filename and "/tests/" not in f.filename), frames[-1]
    )
    return f"{type(error).__name__} in {Path(last.filename).name}:{last.lineno}: {str(error)[:200]}"


def _cleaning_faults(page: CleanedPage, data: bytes, arguments: dict[str, str]) -> Iterator[str]:
    if clean_page(data, **arguments).to_json() != page.to_json():
        yield "not the same twice"
    for name in ("html", "text", "plain", "title"):
        try:
            getattr(page, name).encode()
        except UnicodeEncodeError:
            yield f"{name} holds a surrogate"
    if "\0" in page.text or normalise_text(page.text) != page.text:
        yield "the text is not normal"
    end = 0
    for block in page.blocks:
        if not end <= block["start"] <= block["end"] <= len(page.text):
            yield f"block out of place: {block}"
            break
        end = block["end"]
    if page.kind != "page" or not page.html:
        return
    try:
        again = clean_page(page.html.encode(), content_type="text/html; charset=utf-8")
    except TerminalError as error:
        if page.plain.strip():
            yield f"cleaned HTML is refused: {error.reason}"
        return
    if again.html != page.html:
        yield f"a second cleaning changes the HTML: {_first_difference(page.html, again.html)}"
    elif again.text != page.text:
        yield f"a second cleaning changes the text: {_first_difference(page.text, again.text)}"


def _first_difference(one: str, two: str) -> str:
    at = next((i for i, (a, b) in enumerate(zip(one, two, strict=False)) if a != b), min(len(one), len(two)))
    return f"{one[max(0, at - 60) : at + 60]!r} became {two[max(0, at - 60) : at + 60]!r}"


def _quality_faults(page: CleanedPage) -> Iterator[str]:
    skill = ScoreDocument()
    text = normalise_text(page.text)
    given, spans = scoring_input(
        text,
        title=page.title,
        language=page.language,
        settings=QualitySettings(sample_windows=3, sample_tokens=60),
        count=count_words,
        link_share=page.features.kept_link_density,
    )
    answer = skill.offline(given)
    if refused := skill.check(given, answer).reasons:
        yield f"its own check refuses the offline answer: {refused}"
    if skill.offline(given) != answer:
        yield "not the same twice"
    if any(not 0 <= a <= b <= len(text) for a, b in spans):
        yield f"sampled spans lie outside the text: {spans}"
    json.dumps(parts_of(answer, given.features, spans)).encode()


def _refining_faults(page: CleanedPage) -> Iterator[str]:
    text = normalise_text(page.text)
    common: dict[str, Any] = {"language": page.language, "title": page.title, "models": Models.offline(), "settings": _WINDOWS}  # fmt: skip
    refined = refine_document(text, page.blocks, **common)
    # text that is nothing but furniture is not dropped: it stays as it was, and says why
    refused = [e for e in refined.record["refused"] if "too much was dropped" not in e["reason"]]
    if refused or "violations" in refined.record:
        yield f"the offline answer was refused: {refined.record.get('violations') or refused}"
    if refine_document(text, page.blocks, **common) != refined:
        yield "not the same twice"
    dropped = refined.record["dropped"]
    if any(not entry["reason"] for entry in dropped):
        yield "dropped without a reason"
    covered = sorted([(b["cleaned_start"], b["cleaned_end"]) for b in refined.blocks] + [(d["start"], d["end"]) for d in dropped])  # fmt: skip
    end = 0
    for start, stop in [*covered, (len(text), len(text))]:
        if text[end:start].strip():
            yield f"neither kept nor listed as dropped: {text[end:start].strip()[:80]!r}"
            break
        end = max(end, stop)
    kept = text
    for entry in reversed(dropped):
        kept = kept[: entry["start"]] + kept[entry["end"] :]
    if lost := differences(kept, refined.text):
        yield f"facts differ: {lost[:5]}"
    again = refine_document(refined.text, list(_with_kinds(refined, page)), **common)
    if again.text != refined.text:
        yield f"a second refinement changes the text: {_first_difference(refined.text, again.text)}"


def _with_kinds(refined: Refined, page: CleanedPage) -> Iterator[dict[str, Any]]:
    """The blocks of a refined text with the kinds that the cleaner gave them (a heading shows what it is)."""
    starts = [block["start"] for block in page.blocks]
    for block in refined.blocks:
        at = bisect_right(starts, block["cleaned_start"]) - 1
        known = at >= 0 and block["cleaned_start"] < page.blocks[at]["end"]
        heading = refined.text.startswith("#", block["start"])
        yield block | {"kind": page.blocks[at]["kind"] if known and not heading else ""}
