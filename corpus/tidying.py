"""Rule-based tidying of a block: the offline refinement of one block (corpus design, section 7).

Only what cannot change a meaning: Unicode NFC, blanks, full-width digits and
letters, lines broken in mid-sentence, furniture that cleaning left. Inside
quotation marks nothing is changed. Each function is idempotent.
"""

from __future__ import annotations

import re

from corpus.fidelity import INVISIBLE, holds_facts
from corpus.ids import normalise_text
from corpus.sections import sds_section, split_heading

# Thin and no-break blanks between digits may separate thousands: they stay.
_BLANKS = re.compile(
    r"(?<!\d)[\u00a0\u2000-\u200a\u202f\u205f\u3000\t]+|[\u00a0\u2000-\u200a\u202f\u205f\u3000\t]+(?!\d)"
)
_QUOTED = re.compile(r"“[^“”\n]*”|「[^「」\n]*」|『[^『』\n]*』|《[^《》\n]*》|`[^`\n]*`")
_FULL = {
    code: code - 0xFEE0 for code in [*range(0xFF10, 0xFF1A), *range(0xFF21, 0xFF3B), *range(0xFF41, 0xFF5B)]
}
_WIDE = re.compile(r"[\uff01-\uff5e]")
# Full-width signs become ASCII only between or beside digits, where they are signs of a value.
_SIGNS: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(r"(?<=\d)．(?=\d)"), "."),
    (re.compile(r"(?<=\d)％"), "%"),
    (re.compile(r"(?<=\d)－(?=\d)|(?<![^\s（(：:≤≥<>~～])－(?=\d)"), "-"),
    (re.compile(r"(?<=[0-9A-Za-z])／(?=[0-9A-Za-z])"), "/"),
    (re.compile(r"(?<=\d)＋(?=[0-9HP])"), "+"),
    (re.compile(r"＜(?=\s?[-\d])"), "<"),
    (re.compile(r"＞(?=\s?[-\d])"), ">"),
    (re.compile(r"(?<=\d)＝(?=\d)"), "="),
)
_CJK = "\u3400-\u9fff\uf900-\ufaff，、；：（）"
_ENDED = re.compile(r"[。！？!?;；:：|.…”’」』)）>]$|\s\s$|\\$")
_OPENER = re.compile(
    r"\s*(?:[-*+•·●○□■◆▪]|\(?\d{1,3}[.)、．]|[（(][一二三四五六七八九十\d]+[)）]|[一二三四五六七八九十]+[、.]|第.{1,3}[条款章节部]|#|\||>)"
)
_LABELLED = re.compile(r"^\s*[^\s:：]{1,24}(?:\s[^\s:：]{1,16}){0,3}\s?[:：]")
_WRAPPED = (
    40  # columns (a Chinese character has two): a line this wide without an end mark was broken by the layout
)

_EDIT_MARK = re.compile(
    r"(?<=\S)\s*(?:\[\s*(?:edit|编辑|編輯|edit source|编辑源代码)(?: \| [^\]]{1,12})?\s*\]|(?<=[\u4e00-\u9fff]{2})(?:编辑|編輯))\s*$"
)

# Whole blocks that are page furniture in any language; never dropped when they hold facts.
_FURNITURE = re.compile(
    r"^[\s*_#>|-]*(?:\[?(?:edit|编辑|編輯|隐藏|展开|收起|目录|contents|table of contents|top|返回顶部|回到顶部|back to top)\]?"
    r"|jump to (?:navigation|search|content).{0,40}|skip to (?:main )?content.{0,30}"
    r"|retrieved from .{0,200}|this page was last (?:edited|modified|updated).{0,200}"
    r"|(?:from )?wikipedia, the free encyclopedia|from wikibooks.{0,60}"
    r"|(?:©|\(c\)\s*(?:19|20)\d\d|copyright\s*(?:©|\(c\)|(?:19|20)\d\d|by\b)|版权所有).{0,160}|.{0,40}all rights reserved.{0,60}|.{0,30}icp备.{0,40}|.{0,20}公网安备.{0,40}"
    r"|(?:上一篇|下一篇|上一页|下一页|上一条|下一条)(?:\s*[:：>»].{0,80})?|[«‹<]*\s*(?:previous|next)(?: page| article)?\s*[>›»]*"
    r"|(?:分享(?:到|至)?|收藏(?:本页)?|打印(?:本页|此页)?|关闭(?:窗口)?|举报|纠错|点赞|share(?: this)?(?: page| article| on .{0,20})?|print(?: this page)?|tweet|e-?mail this)"
    r"(?:[\s|/·:：]*(?:分享|收藏|打印|关闭|微信|微博|qq空间|qq|举报|纠错|点赞|share|print|tweet|facebook|twitter|linkedin|email))*"
    r"|(?:privacy policy|terms of (?:use|service)|cookie (?:policy|settings)|about us|contact us|disclaimers?|sitemap|隐私政策|关于我们|联系我们|网站地图|免责声明)"
    r"(?:[\s|/·*-]*(?:privacy policy|terms of (?:use|service)|cookie (?:policy|settings)|about us|contact us|disclaimers?|sitemap|隐私政策|关于我们|联系我们|网站地图|免责声明))*"
    r"|(?:advertisement|广告|sponsored|赞助商链接)"
    r"|we use cookies.{0,300}|本(?:网)?站使用\s?cookie.{0,200}"
    r"|(?:扫一扫|扫码|关注).{0,10}(?:微信|公众号|二维码).{0,30})[\s.。*_]*$",
    re.IGNORECASE,
)


def tidy_block(text: str, kind: str) -> str:
    """A block in tidy form; its facts (``corpus.fidelity``) are those of ``text``. May become empty."""
    if kind == "code":
        return INVISIBLE.sub("", normalise_text(text)).rstrip()
    text = _BLANKS.sub(" ", INVISIBLE.sub("", normalise_text(text)))
    text = half_width(text)
    indent = re.match(r" *", text)[0] if kind == "list" else ""  # type: ignore[index]  # it always matches
    # the indent of a list line says whose child it is; other runs of blanks say nothing
    lines = [re.sub(r"(?<=\S) {2,}", " ", line).rstrip() for line in text.split("\n")]
    if kind in ("paragraph", "heading"):
        lines = [line.strip() for line in lines]
    text = join_lines(lines) if kind == "paragraph" else "\n".join(line for line in lines if line)
    text = normalise_text(indent + text.strip())
    if kind == "heading":
        text = without_edit_mark(text)
    return promoted(text) if kind == "paragraph" else text


def without_edit_mark(heading: str) -> str:
    """A heading without the encyclopedia's edit link ("理化性质编辑", "Production[edit]")."""
    return _EDIT_MARK.sub("", heading)


def half_width(text: str) -> str:
    """Full-width digits, letters and signs of values as ASCII, outside quotation marks."""
    if not _WIDE.search(text):
        return text
    parts: list[str] = []
    position = 0
    for match in _QUOTED.finditer(text):
        parts.append(_half(text[position : match.start()]))
        parts.append(match[0])
        position = match.end()
    parts.append(_half(text[position:]))
    return "".join(parts)


def _half(text: str) -> str:
    text = text.translate(_FULL)
    for pattern, sign in _SIGNS:
        text = pattern.sub(sign, text)
    return text


def join_lines(lines: list[str]) -> str:
    """Lines of a paragraph that the layout broke in mid-sentence, joined; others stay apart."""
    joined: list[str] = []
    for line in lines:
        if not line:
            continue
        if joined and _continues(joined[-1], line):
            joined[-1] += _glue(joined[-1], line) + line
        else:
            joined.append(line)
    return "\n".join(joined)


def _continues(before: str, line: str) -> bool:
    if _columns(before) < _WRAPPED or _ENDED.search(before) or _OPENER.match(line):
        return False
    return not _LABELLED.match(line) and not (before[-1].isdigit() and line[0].isdigit())


def _columns(line: str) -> int:
    return len(line) + len(re.findall(rf"[{_CJK}]", line))


def _glue(before: str, line: str) -> str:
    both_chinese = re.match(rf"[{_CJK}]{{2}}", before[-1] + line[0])
    # "non-" at a line's end may be a hyphen of the word: it stays, and no blank is put in
    return "" if both_chinese or (before.endswith("-") and line[0].isalpha()) else " "


def promoted(text: str) -> str:
    """A numbered data sheet heading that stands as a paragraph, as a Markdown heading."""
    plain = text.strip().strip("*_ ")
    if "\n" in plain or len(plain) > 60 or not plain:
        return text
    number, _, words = split_heading(plain)
    if number is None or not words or sds_section(plain) != number:
        return text
    return f"## {plain}"


def furniture_reason(text: str) -> str:
    """Why a block is dropped: ``empty``, ``page_furniture``; "" for a block that stays."""
    if text.startswith("|"):
        return ""  # an empty row or a rule belongs to its table
    if not text.strip(" \n*_#>-"):
        return "empty"
    if len(text) <= 320 and _FURNITURE.match(text) and not holds_facts(text):
        return "page_furniture"
    return ""
