"""Doses and concentrations of toxicity tests with species, route and duration, and IARC groups."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

from corpus.quantities import Quantity, parse_quantities
from kg.extraction.context import Context
from kg.extraction.model import Draft
from kg.extraction.owner import name_like, named_before, named_behind
from kg.extraction.vocabulary import field_of, shadow
from kg.schema import NodeLabel, Relation

_ENDPOINT = re.compile(
    r"(?<![A-Za-z])((?:LD|LC|EC|IC|ErC)(?:<sub>)?50|(?:LD|LC|TD|TC)(?:<sub>)?Lo|NOAEL|LD(?:<sub>)?100)(?:</sub>)?(?!\d)"
)
_IARC = re.compile(
    r"IARC[^;；。\n]{0,12}?[:：]?\s*(?:Group\s*|第?)?(1|2A|2B|3|4)\s*(?:类|组)?(?![\d.])", re.IGNORECASE
)
_DOSES = ("mg/kg", "kg/m**3", "percent")


_TESTED = re.compile(r"50\s*\((?!median|mean|半数)[^()]+\)", re.IGNORECASE)
# "for soluble cobalt salts": what the dose is one of, where it is not the species
_DOSE_OF = re.compile(
    r"(?:\bfor|\bof|对)\s+(?P<name>[^,;()]{3,60}?)\s+(?:has|have|is|was|were|in)\b", re.IGNORECASE
)
# of another substance, or of a test in which nothing died: no dose of the subject
_NOT_ITS = re.compile(
    r"代谢(?:产)?物|交叉参照|类推|类比|类似物|同系物|衍生物|以.{1,8}类推|(?:无|未见|没有|未发生|未出现)(?:动物)?死亡|无(?:明显)?(?:影响|效应|作用)"
    r"|\bmetabolites?\b|\bread[- ]?across\b|\banalog(?:ue|y|ous)?s?\b|\bno (?:mortality|deaths?|lethality|effects?)\b",
    re.IGNORECASE,
)
_BETWEEN = re.compile(r"\bbetween\s+[\d.,]+\s*(?:and|to)\s|介于", re.IGNORECASE)


def toxicity(ctx: Context) -> list[Draft]:
    """HAS_TOXICITY from LD50, LC50 … with species, route and duration, and IARC groups."""
    drafts: list[Draft] = []
    taken: list[tuple[int, int]] = []
    named, line = "", -1
    for entry, found in ctx.entries("toxicity"):
        begins = ctx.reading.text.rfind("\n", 0, entry.start) + 1
        if begins != line:
            named, line = "", begins
        alone = dose_owner(ctx, ctx.shadow(entry.start, entry.end) + ":LD50")
        if alone and re.match(r"\s*[:：]", ctx.shadow(entry.end, entry.end + 3)):
            named = alone  # "急性毒性：次氯酸钠：LD50：…": the label that follows is of this
            continue
        taken.append((entry.start, entry.end))
        if ctx.no_data(entry):
            endpoint = "carcinogenicity" if found.name == "carcinogenicity" else "acute"
            drafts.append(
                ctx.no_data_draft(Relation.HAS_TOXICITY, NodeLabel.TOXICITY, entry, endpoint=endpoint)
            )
            continue
        fallback = _ENDPOINT.search(entry.label_text.upper())
        owner = named
        for at, (start, end) in enumerate(ctx.segments(entry.start, entry.end)):
            # the label may say of whom: "LC50 (rainbow trout, 96 h): 5540 mg/L"
            begin = entry.label_start if at == 0 and _TESTED.search(entry.label_text) else start
            if _NOT_ITS.search(entry.label_text):
                continue
            named = owner = dose_owner(ctx, ctx.shadow(start, end)) or owner
            made = _doses(ctx, begin, end, entry.sds, fallback[1] if fallback else "", entry.label_start)
            if owner:
                drafts += [replace(draft, subject=owner) for draft in made]
            else:
                drafts += [draft for draft in made if not _named_in_front(ctx, draft, begin)]
            drafts += _iarc(ctx, start, end, entry.sds)
    for sentence in ctx.reading.sentences:
        if any(a <= sentence.start < b for a, b in taken):
            continue
        owner = ""
        for start, end in ctx.segments(sentence.start, sentence.end):
            owner = dose_owner(ctx, ctx.shadow(start, end)) or owner
            made = _doses(ctx, start, end, sentence.sds, "", start)
            if owner:
                drafts += [replace(draft, subject=owner) for draft in made if ctx.subject.mixture]
            else:
                drafts += [draft for draft in made if not _named_in_front(ctx, draft, start)]
    return drafts


_OWNER = re.compile(
    r"^(?P<name>[一-鿿A-Za-z0-9][^:：;；。,，]{1,30}?)\s*[:：]\s*(?=\S*(?:LD|LC)\s?(?:<sub>)?50)"
)


def dose_owner(ctx: Context, words: str) -> str:
    """What a dose is of where the page says so before it ("次氯酸钠：LD50 …" on the sheet of its solution)."""
    match = _OWNER.match(words)
    if not match or field_of(match["name"]) or parse_quantities(f"1 mg/kg ({match['name']})")[0].conditions:
        return ""
    name = re.sub(r"\s*\([^()]*\)$", "", match["name"]).strip()
    plain = re.search(r"毒性|途径|试验|动物|toxicity|acute|route|test|LD|LC", name, re.IGNORECASE)
    return name if not plain and ctx.about_other(name) else ""


def _doses(
    ctx: Context, start: int, end: int, sds: int | None, fallback: str, label_start: int
) -> list[Draft]:
    words = ctx.shadow(start, end)
    marks = list(_ENDPOINT.finditer(words))
    if not marks and not fallback:
        return []
    drafts = []
    scopes = [(m.start(), m.end(), m[1].replace("<sub>", "")) for m in marks] or [(0, 0, fallback)]
    for index, (at, after, endpoint) in enumerate(scopes):
        begin = _clause_start(words, at, scopes[index - 1][1] if index else 0)
        stop = _scope_end(words, scopes[index + 1][0], after) if index + 1 < len(scopes) else len(words)
        scope = re.split(r"[。]", words[begin:stop])[0].rstrip(" ,，、;；")
        found = sorted(
            (q for d in _DOSES for q in parse_quantities(scope, dimension=d) if q.unit not in {"%", "‰"}),
            key=lambda q: q.start,
        )
        found = [q for q in found if begin + q.start >= after or not marks]
        if _BETWEEN.search(scope) or _of_another(ctx, scope) or _NOT_ITS.search(scope):
            continue
        if any(name_like(_STATE.sub("", part)) and ctx.about_other(part) for part in _bracketed(scope)):
            continue  # "LC50（甲苯，虹鳟）"
        if not ctx.subject.mixture and _OF_SOLUTION.search(scope):
            continue
        lead = label_start if not marks and label_start < start and end - label_start < 200 else start + begin
        found = [q for q in found if not named_behind(ctx, scope[q.end :])]
        for quantity in found[:1] if len(found) == 1 or not _each_bracketed(scope, found) else found:
            drafts.append(_dose(ctx, endpoint, quantity, scope, len(found) == 1, start + begin, lead, sds))
    return drafts


_STATE = re.compile(r"(?:\s+(?:gas|vapou?rs?|dust|mist|fumes?|aerosol)|气体?|蒸气|粉尘|烟雾)$", re.IGNORECASE)


_OF_SOLUTION = re.compile(
    r"\d\s?%\s*(?:的?[一-鿿]{0,3}溶液|(?:in )?(?:aqueous |corn |olive |peanut )?(?:solutions?|oil|water|paste|emulsion|suspension)|悬浮液|乳液)",
    re.IGNORECASE,
)


def _bracketed(words: str) -> list[str]:
    """The parts of all brackets."""
    return [
        part.strip()
        for inside in re.findall(r"\(([^()]+)\)", words)
        for part in re.split(r"[,，、;；]", inside)
    ]


def _named_in_front(ctx: Context, draft: Draft, start: int) -> bool:
    """Whether another substance is named right before a dose ("乙醇 7060 mg/kg（大鼠经口）", "乙醇 LD50：…")."""
    at = ctx.shadow(start, draft.end).rfind(shadow(draft.object))
    said = re.sub(r"\([^()]*\)", " ", ctx.shadow(start, start + max(at, 0)))
    lead = re.split(r"[;；。,，]|\.\s+(?=[A-Z])", said)[-1]
    return name_like(named_before(ctx, _ENDPOINT.sub(" ", lead)))


def _of_another(ctx: Context, scope: str) -> bool:
    """Whether the dose is said of something else than the subject."""
    named = _DOSE_OF.search(scope)
    if not named or parse_quantities("1 mg/kg (" + named["name"] + ")", dimension="mg/kg")[0].conditions:
        return False
    lead = (
        r"^(?:the |pure |(?:the )?(?:ingestion|inhalation|injection|intake|absorption|administration) of )+"
    )
    return ctx.about_other(re.sub(lead, "", named["name"], flags=re.IGNORECASE))


def _clause_start(words: str, position: int, floor: int) -> int:
    # a closed bracket ends what was said of the value before it ("12124 mg/kg（兔经皮） LC50：…")
    cut = max(words.rfind(mark, floor, position) for mark in (*",，;；。、", ") "))
    begin = cut + 1 if cut >= floor else floor
    return begin + len(words[begin:position]) - len(words[begin:position].lstrip())


def _scope_end(words: str, position: int, floor: int) -> int:
    """Where an endpoint's words end: at the separator before the next one, else at that one."""
    begin = _clause_start(words, position, floor)
    return position if begin <= floor + 1 else begin


def _each_bracketed(scope: str, found: list[Quantity]) -> bool:
    return all(re.match(r"\s*\(", scope[q.end :]) for q in found)


_SPECIES = re.compile(
    r"大鼠|小鼠|豚鼠|仓鼠|兔|狗|犬|猫|猴|\brat|\bmouse|\bmice|\brabbit|\bguinea|\bhamster|\bdog|\bcat(?=s?\b)"
)


def _dose(
    ctx: Context,
    endpoint: str,
    quantity: Quantity,
    scope: str,
    alone: bool,
    offset: int,
    lead: int,
    sds: int | None,
) -> Draft:
    value = quantity.as_value()
    conditions = dict(value.get("conditions", {}))
    if alone:  # species, route and duration may stand before the value
        plain = _ENDPOINT.sub(
            lambda match: " " * len(match[0]), scope
        )  # "LD50 oral, rat: …" has no figure before the value
        whole = parse_quantities(plain, dimension="mg/kg") or parse_quantities(plain)
        for found in whole:
            conditions = {**found.conditions, **conditions}
    several = alone and len(set(_SPECIES.findall(scope.lower()))) > 1
    if several:
        conditions.pop("species", None)  # "oral in rats, mice": of neither alone
    for neighbour in ("temperature", "pressure", "concentration"):  # other values, never a dose's condition
        conditions.pop(neighbour, None)
    value.pop("conditions", None)
    properties: dict[str, Any] = {"endpoint": endpoint}
    for name in ("species", "route"):
        if name in conditions:
            properties[name] = conditions[name]
    if "species" not in conditions and not several and (organism := _organism(ctx, scope, offset)):
        properties["species"] = conditions["species"] = organism
    if conditions:
        value["conditions"] = conditions
    return ctx.draft(
        Relation.HAS_TOXICITY,
        ctx.text(offset + quantity.start, offset + quantity.end),
        NodeLabel.TOXICITY,
        (lead, offset + len(scope)),
        properties=properties,
        value=value,
        section=sds,
    )


def _organism(ctx: Context, scope: str, offset: int) -> str:
    """The test organism as written in brackets ("96 h，蓝鳃太阳鱼")."""
    for match in re.finditer(r"\(([^()]+)\)", scope):
        position = match.start(1)
        for part in re.split(r"[,，]", match[1]):
            words = part.strip()
            if words and not _ENDPOINT.search(words) and not re.search(r"\d|静态|半静态|流水|static", words):
                start = offset + scope.find(words, position)
                return ctx.text(start, start + len(words))
    return ""


def _iarc(ctx: Context, start: int, end: int, sds: int | None) -> list[Draft]:
    match = _IARC.search(ctx.shadow(start, end))
    if not match or re.search(r"未|不在|not listed", ctx.shadow(start, start + match.end()), re.IGNORECASE):
        return []
    group = match[1].upper()
    value: dict[str, Any] = {"text": f"IARC {group}"}
    remark = re.match(r"\s*\(([^()]+)\)", ctx.shadow(start + match.end(), end))
    if remark and not re.search(r"致癌|carcinogen", remark[1], re.IGNORECASE):
        # "1类（含硫酸的强无机酸雾）" is said of the mist alone
        at = start + match.end()
        value["conditions"] = {"note": ctx.text(at + remark.start(1), at + remark.end(1))}
    return [
        ctx.draft(
            Relation.HAS_TOXICITY, f"IARC {group}", NodeLabel.TOXICITY, (start, end),
            properties={"endpoint": "carcinogenicity"}, value=value, section=sds,
        )
    ]  # fmt: skip
