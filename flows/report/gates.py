"""What quality gates found, in the page's language.

The catalogue holds one sentence per check, in English (``flows.gates``). The Chinese one is put together
from its parts, so that every figure is the one that was judged; a sentence that is not known stays as it is.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Protocol

from markupsafe import Markup, escape

from flows.operation_settings import GATES
from flows.report.words import Words

_JUDGED_ZH = {
    "crawl_empty": "来源的抓取带回的页面",
    "crawl_refused": "来源的页面被 robots 规则、退出声明、防护、401、403、429、451 或验证页拒绝的比例",
    "pages_drop": "有内容的页面，按来源和总计",
    "documents_drop": "保留的文档，按来源和总计",
    "documents_held": "待复核或失败的文档的比例",
    "refinements_refused": "保留的文档中精炼未通过忠实性检查的比例",
    "assertions_drop": "保留的陈述",
    "conflicts_rise": "各来源相互矛盾的数值",
    "questions_drop": "保留的问题",
    "proofs_failed": "图查询给出其他答案的问题",
    "boolean_balance": "答案为“是”的比例，按关系",
    "chunks_untiled": "分块没有无缝覆盖文档的切分",
    "evidence_recall_fall": "证据召回率，按分块方法",
}

_AMOUNT = r"[^\s→]+(?: %)?"
_NOTE = r"(?: \((?P<note>.*)\))?"
_CHANGED = re.compile(
    rf"(?P<old>{_AMOUNT}) → (?P<new>{_AMOUNT}){_NOTE}, (?P<change>\S+ %|from nothing|\S+ points) \(limit (?P<limit>[^()]*)\)"
)
_BETWEEN = re.compile(rf"(?P<value>{_AMOUNT}){_NOTE} \(limit (?P<low>{_AMOUNT}) to (?P<high>{_AMOUNT})\)")
_BOUNDED = re.compile(
    rf"(?P<value>{_AMOUNT}){_NOTE} \(limit at (?P<side>least|most) (?P<limit>{_AMOUNT})\)"
    rf"(?:, (?P<accepted>{_AMOUNT}) was accepted)?"
)
_SKIPPED = re.compile(rf"(?P<value>{_AMOUNT}), not judged: (?P<why>.*)")
_COUNTED = re.compile(r"(?P<code>\S+) (?P<n>\d+)")


class Found(Protocol):
    """A check as the report has it: of a gate, of what, and what was found."""

    @property
    def name(self) -> str:
        """The gate."""

    @property
    def scope(self) -> str:
        """A source, a relation, a method; "" for the whole."""

    @property
    def message(self) -> str:
        """The sentence of the catalogue."""


def judged(name: str, words: Words) -> str:
    """What a gate judges; "" for one that there is no more."""
    if words.language == "zh":
        return _JUDGED_ZH.get(name, "")
    return GATES[name].what if name in GATES else ""


def found(check: Found, words: Words, term: Callable[[str], Markup]) -> Markup:
    """The sentence of a check without the gate's name; ``term`` gives a code's name in the language."""
    label = f"{check.name} ({check.scope})" if check.scope else check.name
    said = check.message.removeprefix(f"{label}: ")
    if words.language != "zh":
        return escape(said)
    return _in_chinese(said, term) or Markup('<span translate="no" lang="en">{}</span>').format(said)


def _in_chinese(said: str, term: Callable[[str], Markup]) -> Markup | None:
    if part := _CHANGED.fullmatch(said):
        change = part["change"].replace("from nothing", "原先为零").replace(" points", " 个百分点")
        return Markup("{} → {}{}，{}（限值 {}）").format(
            part["old"], part["new"], _noted(part["note"], term), change, part["limit"]
        )
    if part := _BETWEEN.fullmatch(said):
        return Markup("{}{}（限值 {} 至 {}）").format(
            part["value"], _noted(part["note"], term), part["low"], part["high"]
        )
    if part := _BOUNDED.fullmatch(said):
        side = "至少" if part["side"] == "least" else "至多"
        accepted = Markup("，曾接受 {}").format(part["accepted"]) if part["accepted"] else ""
        return Markup("{}{}（限值{} {}）{}").format(
            part["value"], _noted(part["note"], term), side, part["limit"], accepted
        )
    if part := _SKIPPED.fullmatch(said):
        why = _why(part["why"], term)
        return Markup("{}，未判定：{}").format(part["value"], why) if why is not None else None
    return None


def _noted(note: str | None, term: Callable[[str], Markup]) -> Markup:
    if not note:
        return Markup("")
    if part := re.fullmatch(r"of (\d+)( pages?)?(?:: (.*))?", note):
        counts = _COUNTED.findall(part[3] or "")
        listed = Markup("、").join(Markup("{} {}").format(term(code), n) for code, n in counts)
        unit = "页" if part[2] else "篇"
        said = Markup("共 {} {}").format(part[1], unit) + (Markup("：{}").format(listed) if counts else "")
    elif part := re.fullmatch(r"(\d+) of (\d+)", note):
        said = Markup("{} 篇中的 {} 篇").format(part[2], part[1])
    elif part := re.fullmatch(r"(\d+) yes, (\d+) no", note):
        said = Markup("“是” {}，“否” {}").format(part[1], part[2])
    else:  # a reason, or "n = 200"
        said = escape(note) if note.startswith("n = ") else term(note)
    return Markup("（{}）").format(said)


def _why(why: str, term: Callable[[str], Markup]) -> Markup | None:
    plain = {
        "no documents": "没有文档",
        "no documents kept": "没有保留的文档",
        "nothing new in the graph": "图谱没有新内容",
        "no completed run of the whole to compare with": "没有可以比较的已完成的完整运行",
    }
    if why in plain:
        return Markup(plain[why])  # noqa: S704 - our own words
    if part := re.fullmatch(r"the crawl failed: (.*)", why):
        return Markup("抓取失败：{}").format(term(part[1]))
    if part := re.fullmatch(r"only (\d+) (pages? asked for|Boolean questions?)", why):
        if part[2].startswith("page"):
            return Markup("只请求了 {} 页").format(part[1])
        return Markup("只有 {} 个是否题").format(part[1])
    if part := re.fullmatch(r"no completed run with the same restriction (.*) to compare with", why):
        return Markup("没有可以比较的已完成且限制相同（<code>{}</code>）的运行").format(part[1])
    if part := re.fullmatch(r"other settings \((.*)\) than in run (\S+)", why):
        return Markup("设置（<code>{}</code>）与运行 <code>{}</code> 的不同").format(part[1], part[2])
    return None
