"""Remarks beside a value that say it is another substance's ("乙酸", "value of pure xylene", "for the 2,6-isomer")."""

from __future__ import annotations

import re

from kg.extraction.context import Context
from kg.extraction.model import Draft
from kg.extraction.owner import name_like
from kg.extraction.vocabulary import field_of
from kg.schema import NodeLabel

# akin to the subject and not it; what is dissolved or hydrated is another thing too
_AKIN = re.compile(
    r"异构体|单体|二聚体|聚合物|同系物|衍生物|类似物|类比|交叉参照|read-across|水合物|母体|前体|代谢(?:产)?物|杂质"
    r"|\b(?:isomers?|monomers?|dimers?|oligomers?|polymers?|homolog(?:ue)?s?|derivatives?|analog(?:ue)?s?|hydrates?|metabolites?|impurit(?:y|ies)|precursors?|surrogates?|read-?across)\b",
    re.IGNORECASE,
)
_VALUE_OF = re.compile(
    r"(?:此|该|这|以上|上述)?(?:数值|数据|值|结果)?(?:为|是|系|取自|来自|引自|引用)(?P<zh>[^,，。;；]{1,16}?)的(?:数值|数据|值|结果|资料|性质)"
    r"|\b(?:values?|data|figures?|results?|measured|determined|measurement|that|those) (?:is |are |was |were |taken |given |quoted )?(?:of|for|from|on) (?:the |pure |anhydrous |a |an )*(?P<en>[A-Za-z0-9][\w,'()-]*(?: [a-z]+)?)",
    re.IGNORECASE,
)
_SELF = re.compile(
    r"^(?:本品|该品|产品|本产品|该?物质|纯品|同类|文献|实验|手册|供应商|厂家|计算|估算|实测|this|product|substance|compound|material|literature|handbooks?|suppliers?|manufacturers?|experiments?|calculation|estimation|its?|chemical|commercial|technical|reference|tests?|oecd|pubchem|echa|gestis|crc|the)\b",
    re.IGNORECASE,
)


def remarks_of_other(ctx: Context, words: str) -> bool:
    """Whether a remark of a table's row names whose the row's value is, and it is not the subject's."""
    plain = words.strip()
    if not plain or len(plain) > 120:
        return False
    if _AKIN.search(plain):
        return True
    for found in _VALUE_OF.finditer(plain):
        name = (found["zh"] or found["en"] or "").strip()
        if name and not _SELF.match(name) and not _of_the_subject(ctx, name):
            return True
    return any(_named(ctx, part) for part in re.split(r"[,，;；、/]|\s-\s", plain))


def _named(ctx: Context, part: str) -> bool:
    shown = re.sub(
        r"^(?:仅?(?:指|为|是|限|对|以|用|含|系)|(?:this is|for|of|only|pure|refers to|see|as|in)\b)\s*",
        "",
        part.strip(),
        flags=re.IGNORECASE,
    )
    shown = re.sub(r"(?:计|的|中)$", "", shown).strip()
    return bool(shown) and name_like(shown) and not _of_the_subject(ctx, shown)


_STATE = re.compile(
    r"^(?:纯净?的?|无水|液[态体]的?|固[态体]的?|工业|(?:pure|neat|liquid|solid|anhydrous|technical)\s+)",
    re.IGNORECASE,
)


def _of_the_subject(ctx: Context, name: str) -> bool:
    return not ctx.about_other(name) or not ctx.about_other(_STATE.sub("", name))


_VALUED = frozenset({NodeLabel.MEASUREMENT, NodeLabel.TOXICITY, NodeLabel.EXPOSURE_LIMIT})


def remarked_away(ctx: Context, draft: Draft) -> bool:
    """Whether a value stands in a row of label, value and remark whose remark gives it to another substance."""
    if draft.object_label not in _VALUED or draft.subject or not draft.value:
        return False
    begin = ctx.reading.shadow.rfind("\n", 0, draft.start) + 1
    stop = ctx.reading.shadow.find("\n", draft.start)
    line = ctx.shadow(begin, len(ctx.reading.shadow) if stop < 0 else stop).strip()
    if not line.startswith("|"):
        return False
    cells = [cell.strip() for cell in line.strip("|").split("|")]
    cells = [cell for cell in cells if cell]
    return len(cells) == 3 and field_of(cells[0]) is not None and remarks_of_other(ctx, cells[2])
