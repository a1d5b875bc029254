"""XML documents (eCFR, JATS articles and the like) turned into an HTML tree.

Parsed without entities, network or DTD. Element names are mapped by what they are
called in the common vocabularies; unknown elements become blocks where they hold
blocks, inline text otherwise.
"""

from __future__ import annotations

import re

from lxml import etree

from corpus.cleaning.attributes import clean_attributes
from corpus.cleaning.document import document
from corpus.cleaning.markdown import assemble, render
from corpus.cleaning.measure import HEADINGS, characters, size
from corpus.cleaning.page import CleanedPage, Features, language_of
from corpus.cleaning.parsing import LIMITS, MARK, Limits, strip_marks, without_controls
from corpus.cleaning.tags import Element, all_text, name_set
from corpus.errors import TerminalError

_TAGS: dict[str, str] = {
    **dict.fromkeys(
        ("p", "para", "fp", "fp-1", "fp-2", "fp1-2", "psp", "extract", "simpara", "note", "line"), "p"
    ),
    **dict.fromkeys(("table", "gpotable", "tgroup", "informaltable"), "table"),
    **dict.fromkeys(("tr", "row"), "tr"),
    **dict.fromkeys(("td", "ent", "entry"), "td"),
    **dict.fromkeys(("th", "ched"), "th"),
    **{"thead": "thead", "boxhd": "tr", "tbody": "tbody", "caption": "caption", "ttitle": "caption"},
    **dict.fromkeys(("list", "itemizedlist", "ul"), "ul"),
    **dict.fromkeys(("orderedlist", "ol"), "ol"),
    **dict.fromkeys(("list-item", "listitem", "li"), "li"),
    **dict.fromkeys(("sup", "su", "superscript"), "sup"),
    **dict.fromkeys(("sub", "fr", "subscript"), "sub"),
    **dict.fromkeys(
        ("i", "e", "em", "italic", "emphasis", "b", "bold", "ac", "xref", "ext-link", "a", "u"), "span"
    ),
    **{"br": "br", "pre": "pre", "code": "code", "dl": "dl", "dt": "dt", "dd": "dd"},
}
_HEADING_NAMES = name_set("head title article-title hd hd1 hd2 hd3 subject heading label-title sectno")
_DROPPED = name_set("ref-list back xref-list license permissions journal-meta graphic img prtpage styles")
_XML_START = re.compile(r"^\s*(?:<\?xml[^>]*\?>\s*)?(?:<!--.*?-->\s*|<\?[^>]*\?>\s*)*", re.DOTALL)
_DOCTYPE = re.compile(r"<!DOCTYPE[^>\[]*(?:\[.*?\]\s*)?>", re.DOTALL | re.IGNORECASE)


def is_xml(text: str) -> bool:
    """Whether text starts as XML that is not (X)HTML."""
    if not text[:300].lstrip().startswith("<?xml"):
        return False
    start = _XML_START.match(text)
    head = _DOCTYPE.sub("", text[start.end() if start else 0 : 4000])
    return not re.search(r"<(?:\w+:)?html[\s>]", head[:1500], re.IGNORECASE)


def clean_xml(text: str, limits: Limits = LIMITS) -> CleanedPage:
    """Text of an XML document with its headings, lists and tables.

    Raises TerminalError(reason="malformed_xml") where nothing can be parsed.
    """
    root = _parse(text)
    count = 0
    for count, element in enumerate(root.iter()):
        if count >= limits.max_elements:
            raise TerminalError(f"more than {limits.max_elements} elements", reason="too_many_elements")
        if isinstance(element.tag, str):
            element.set(MARK, str(count))
    paths = _paths(root)
    main = _as_html(root)
    attributes = clean_attributes(main)
    rendered = assemble(render(main))
    for block, source in zip(rendered.blocks, rendered.sources, strict=True):
        block["path"] = paths.get(_mark(source), "")
    heading = next((b for b in rendered.blocks if b["kind"] == "heading"), None)
    title = rendered.markdown[heading["start"] : heading["end"]].lstrip("# ") if heading else ""
    cells = sum(1 for _ in main.iter("td", "th"))
    strip_marks(main)
    page = CleanedPage(
        kind="xml",
        html=document(etree.tostring(main, encoding="unicode", method="html"), title),
        text=rendered.markdown,
        plain=rendered.plain,
        blocks=rendered.blocks,
        title=title,
        language=language_of(rendered.plain, root.get("{http://www.w3.org/XML/1998/namespace}lang") or ""),
        removed={"structural": {}, "functional": {}, "attribute": dict(sorted(attributes.items()))},
        features=Features(
            raw_text_chars=size(all_text(root)),
            kept_text_chars=size(rendered.plain),
            n_headings=sum(1 for _ in main.iter(*HEADINGS)),
            n_tables=sum(1 for _ in main.iter("table")),
            n_table_cells=cells,
            n_paragraphs=sum(block["kind"] == "paragraph" for block in rendered.blocks),
        ),
    )
    if size(page.plain) < 60 and not cells:
        page.verdict, page.reasons = "no_main_content", (f"{characters(page.plain)} characters of content",)
    return page


def _parse(text: str) -> Element:
    parser = etree.XMLParser(
        resolve_entities=False, no_network=True, load_dtd=False, huge_tree=False, recover=True, remove_comments=True,
        remove_pis=True,
    )  # fmt: skip
    body = _DOCTYPE.sub("", without_controls(text), count=1)
    body = re.sub(r"^\s*<\?xml[^>]*\?>", "", body)
    try:
        root = etree.fromstring(body.encode("utf-8", "replace"), parser=parser)
    except etree.XMLSyntaxError as error:
        raise TerminalError(f"not parseable as XML: {error}", reason="malformed_xml") from error
    if root is None:
        raise TerminalError("an XML document without elements", reason="malformed_xml")
    return root


def _paths(root: Element) -> dict[str, str]:
    """Number → path, one step per level, for all elements."""
    found: dict[str, str] = {}
    counters: list[dict[str, int]] = [{}]
    trail: list[str] = []
    for event, element in etree.iterwalk(root, events=("start", "end")):
        if not isinstance(element.tag, str):
            continue
        if event == "end":
            trail.pop()
            counters.pop()
            continue
        tag = _local_name(element)
        counters[-1][tag] = counters[-1].get(tag, 0) + 1
        trail.append(f"/{tag}[{counters[-1][tag]}]")
        counters.append({})
        found[element.get(MARK) or ""] = "".join(trail[-60:])
    return found


def _mark(element: Element) -> str:
    node: Element | None = element
    while node is not None and node.get(MARK) is None:
        node = node.getparent()
    return node.get(MARK, "") if node is not None else ""


def _as_html(root: Element) -> Element:
    """A parallel HTML tree under ``main``; iterative, since documents nest deeply."""
    main: Element = etree.Element("main")
    targets: list[Element] = [main]
    sections = 0
    walker = etree.iterwalk(root, events=("start", "end"))
    for event, element in walker:
        if not isinstance(element.tag, str):
            continue
        name = _local_name(element).lower()
        if event == "start":
            if name in _DROPPED:
                walker.skip_subtree()
                continue
            target = etree.SubElement(targets[-1], _tag(element, name, sections))
            target.set(MARK, element.get(MARK, ""))
            for key in ("colspan", "rowspan"):
                if element.get(key):
                    target.set(key, str(element.get(key)))
            target.text = element.text
            targets.append(target)
            sections += name not in _TAGS and name not in _HEADING_NAMES
        elif name not in _DROPPED:
            done = targets.pop()
            sections -= name not in _TAGS and name not in _HEADING_NAMES
            done.tail = element.tail
        elif element.tail and element.tail.strip():
            _append(targets[-1], element.tail)
    return main


def _local_name(element: Element) -> str:
    """Tag without namespace; also of what a recovering parser lets pass, such as ``:`` or ``o:p``."""
    return str(element.tag).rpartition("}")[2].rpartition(":")[2] or "_"


def _append(target: Element, text: str) -> None:
    if len(target):
        target[-1].tail = (target[-1].tail or "") + text
    else:
        target.text = (target.text or "") + text


def _tag(element: Element, name: str, sections: int) -> str:
    if name in _HEADING_NAMES:
        return f"h{min(6, max(1, sections))}"
    known = _TAGS.get(name)
    if known is not None:
        return known
    parent = element.getparent()
    inline = parent is not None and bool((parent.text or "").strip() or (element.tail or "").strip())
    return "span" if inline and not len(element) else "div"
