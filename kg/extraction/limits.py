"""Exposure limits, wherever a kind of limit stands before or behind a concentration in air."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Any

from corpus.quantities import Quantity, parse_quantities
from kg.extraction.context import Context
from kg.extraction.model import Draft
from kg.extraction.owner import name_like, named_before, named_behind, spoken_of_other
from kg.extraction.vocabulary import shadow
from kg.schema import NodeLabel, Relation

_SORTS = r"TWA|STEL|ST|C|Excursion limit|CEILING|Ceiling|ceiling"
_KIND = rf"(?P<kind>PC-TWA|PC-STEL|MAC|(?:TLV|PEL|REL)-(?:TWA|STEL|C)|TLV|PEL|REL|WEEL|MAK|IDLH|{_SORTS})"
_BODY = (
    r"OSHA|NIOSH|ACGIH|中国|我国|美国|前?苏联|俄罗斯|日本|德国|英国|法国|欧盟|台湾|香港|GBZ ?2(?:\.1)?"
    r"|China|United States|USA|Russian?|USSR|Japan|Germany|United Kingdom|UK|France|Taiwan|Hong Kong"
)
_NOTE = r"(?P<note>\s*\([^()]{1,60}\))?"
_LIMIT = re.compile(
    rf"(?:(?<![A-Za-z])(?P<body>{_BODY})[\s(:]*)?(?<![A-Za-z-]){_KIND}(?![A-Za-z-]){_NOTE}[\s):]*(?:(?:value|limit)s?\s*)?(?:为|是|=|of|is)?\s*"
    r"(?=[<≤]?\s?\d)"
)
# "TLVTN：OSHA 5ppm，19mg/m3；ACGIH 2ppm": two bodies' limits behind the old names of TWA and STEL
_BY_BODY = re.compile(r"(?<![A-Za-z])T[LV]{2}-?(?P<over>TN|TWA|WN|STEL)\s*[:：]")
_OF_BODY = re.compile(r"(?P<body>OSHA|ACGIH|NIOSH)\s*(?=\d)")
# whose "TWA 5 ppm" is: the last that names a family of limits or who sets them
_FAMILY = re.compile(
    rf"(?<![A-Za-z])(?:(?P<family>PEL|REL|TLV|MAK|WEL|AGW|OEL|PC|MAC)(?![A-Za-z])|(?P<body>{_BODY})(?![A-Za-z]))"
)
# a country, state, union or body of which the lists of families know nothing, and what is no air at work
_SETTER = re.compile(
    r"Cal\s?/\s?OSHA|Cal[- ]OSHA|\b(?:California|Washington(?: State)?|Oregon|Minnesota|Michigan|Hawaii|Alaska|Tennessee|Vermont|Alberta|Ontario|Qu[eé]bec|British Columbia|Manitoba|Saskatchewan"
    r"|Canada|Mexico|Brazil|Argentina|Chile|Australia|New Zealand|Korea|Singapore|Malaysia|India|Thailand|Philippines|Vietnam|Indonesia|Israel|Turkey|South Africa"
    r"|Ireland|Spain|Italy|Portugal|Greece|Netherlands|Belgium|Luxembourg|Switzerland|Austria|Poland|Czech(?: Republic|ia)?|Slovakia|Hungary|Romania|Bulgaria|Croatia|Slovenia"
    r"|Denmark|Sweden|Norway|Finland|Iceland|Estonia|Latvia|Lithuania|Ukraine|EU|European(?: Union)?|SCOEL|IOELV|BOELV|ECHA|HSE|DFG|JSOH|MSHA|AIHA|HSIS|SUVA|EH40|TRGS ?900|Great Britain|British|German|French|Japanese|Swiss|Swedish|Canadian|Australian|State)\b(?! of the art)"
    r"|加州|加利福尼亚|华盛顿州|安大略|魁北克|阿尔伯塔|加拿大|墨西哥|巴西|澳大利亚|澳洲|新西兰|韩国|朝鲜|新加坡|马来西亚|印度|泰国|菲律宾|越南|以色列|土耳其|南非"
    r"|爱尔兰|西班牙|意大利|葡萄牙|希腊|荷兰|比利时|瑞士|奥地利|波兰|捷克|匈牙利|罗马尼亚|丹麦|瑞典|挪威|芬兰|乌克兰|欧洲|欧共体|我国台湾"
)
_NOT_AIR = re.compile(
    r"水体|水中|地[表面下]水|饮用水|海水|废水|污水|渔业|土壤|食品|尿|血|\b(?:drinking|surface|waste|ground|sea) ?-?water\b|\b(?:in|of) water\b|\bsoil\b|\bfood\b|\burine\b|\bblood\b|居住区|居民区|大气",
    re.IGNORECASE,
)
# what is only put forward ("NIC-2025 TLV-TWA")
_PUT_FORWARD = re.compile(
    r"\bNIC\b|\bnotice of intended|\bintended change|\bpropos(?:ed?|es|al|ing)\b|\bdraft\b|\bunder (?:review|study|consideration)\b|拟议|拟[订定改修]|草案|征求意见|提议|建议稿|预告",
    re.IGNORECASE,
)
_FAMILY_OF = {"OSHA": "PEL", "NIOSH": "REL", "ACGIH": "TLV"}
_SORT_OF = {"ST": "STEL", "CEILING": "C"}
_JURISDICTION = {
    "OSHA": "US-OSHA", "NIOSH": "US-NIOSH", "ACGIH": "ACGIH", "中国": "CN", "我国": "CN", "美国": "US", "苏联": "SU", "前苏联": "SU",
    "俄罗斯": "RU", "日本": "JP", "德国": "DE", "英国": "GB", "法国": "FR", "欧盟": "EU", "台湾": "TW", "香港": "HK",
    "China": "CN", "United States": "US", "USA": "US", "Russia": "RU", "Russian": "RU", "USSR": "SU", "Japan": "JP",
    "Germany": "DE", "United Kingdom": "GB", "UK": "GB", "France": "FR", "Taiwan": "TW", "Hong Kong": "HK",
}  # fmt: skip


_SOVIET = re.compile(r"USSR|Soviet", re.IGNORECASE)
# a limit that was in force once
_PAST = re.compile(
    r"(?<!\d)\d{4}年?(?:以|之)?前|至\s?\d{4}年?|旧|原(?!子|料)|废止|作废|已(?:撤销|取消|修订)|修订前"
    r"|\b(?:until|till|before|prior to|up to)\s+(?:19|20)\d\d\b|\bfrom (?:19|20)\d\d to\b|\b(?:former(?:ly)?|previous(?:ly)?|old|vacated|withdrawn|obsolete|superseded|no longer)\b(?! soviet| ussr)",
    re.IGNORECASE,
)
_IN_FORCE_ONCE = re.compile(
    r"^[^.;。；]{0,40}?\b(?:was|were|had been) (?:in (?:force|effect)|valid|applied|set|used)\b"
    r"|^\s*(?:until|till|before|up to) (?:19|20)\d\d\b|^\s*[,，]?(?:至|到)\s?(?:19|20)\d\d年",
    re.IGNORECASE,
)


def _body_of(note: str) -> str:
    """Whose a limit is by the remark beside it ("仅适用于前苏联", "former USSR only"), "" where none is named."""
    found = re.search(_BODY, note)
    return "前苏联" if _SOVIET.search(note) else found[0] if found else ""


def body_named(words: str) -> str:
    """Who sets a limit, by words beside it ("OSHA PEL" is OSHA), "" where nobody is named."""
    found = re.search(rf"(?<![A-Za-z])(?:{_BODY})(?![A-Za-z])", words)
    return found[0] if found else ""


def whole_kind(kind: str, beside: str) -> str:
    """The kind of a limit of which a cell gives only the sort, with the family that the cells beside it name.

    "" where they name somebody whom the lists do not know.
    """
    if _set_elsewhere(_Label("", "", 0), beside, kind):
        return ""
    return _kind_said(_Label("", "", 0), kind, beside)


def limit_kind(kind: str, body: str = "", *, chinese: bool = True) -> tuple[str, str]:
    """Kind of an exposure limit and whose it is ("PEL" is OSHA's, "PC-TWA" China's).

    "MAC" alone is China's on Chinese pages only (``chinese``); elsewhere nobody knows whose it is.
    """
    plain = kind.upper() if kind.lower() in {"ceiling", "excursion limit"} else kind
    if plain == "MAC" and body:
        return plain, "CN" if body.startswith("GBZ") else _JURISDICTION.get(body, "")
    if plain == "MAC":
        return plain, "CN" if chinese else ""
    if plain.startswith("PC-") or body.startswith("GBZ"):
        return plain, "CN"
    if plain.startswith("PEL"):
        whose = _JURISDICTION.get(body, "US-OSHA")
        return plain, "US-OSHA" if whose == "US" else whose
    if plain.startswith("REL") or plain == "IDLH":
        return plain, "US-NIOSH"
    if plain.startswith("TLV"):
        return plain, "ACGIH"
    return plain, _JURISDICTION.get(body, "")


def exposure_limits(ctx: Context) -> list[Draft]:
    """HAS_LIMIT wherever a kind of limit stands before or behind a concentration, and from labels."""
    drafts: list[Draft] = []
    seen: set[tuple[int, str, str]] = set()
    spans = [
        (e.start, e.end, e.sds, _Label(f.name, e.label_text, e.label_start))
        for e, f in ctx.entries("exposure")
    ]
    inside = [(a, b) for a, b, _, _ in spans]
    spans += [
        (s.start, s.end, s.sds, _Label("", "", s.start))
        for s in ctx.reading.sentences
        if not any(a <= s.start < b for a, b in inside)
    ]
    for start, end, sds, label in spans:
        for left, right in ctx.segments(start, end):
            for draft in _limits(ctx, left, right, sds, replace(label, before=ctx.shadow(start, left))):
                mark = (draft.start, str(draft.properties["kind"]), draft.object)
                if mark not in seen:
                    seen.add(mark)
                    drafts.append(draft)
    return drafts


@dataclass(frozen=True)
class _Label:
    """Where a value stands: its label's field and words, where the label begins, and the value's words before a part."""

    field: str
    words: str
    start: int
    before: str = ""


_FIELD_PREFIX = {"pel": "PEL", "rel": "REL", "threshold_limit_value": "TLV"}
# labels that say the kind themselves
_SAID_IN_LABEL = (
    (re.compile(r"PC-TWA|时间加权平均容许浓度", re.IGNORECASE), "PC-TWA"),
    (re.compile(r"PC-STEL|短时间接触容许浓度", re.IGNORECASE), "PC-STEL"),
    (re.compile(r"\bMAC\b|MAC(?![A-Za-z])|最高容许浓度"), "MAC"),
    (re.compile(r"IDLH"), "IDLH"),
)


def _family(label: _Label, words: str) -> str:
    """The family of limits that words before a value speak of last ("OSHA PEL: TWA 5 ppm"); "" where none of ours."""
    prefix = _FIELD_PREFIX.get(label.field, "")
    said = f"{label.words} {label.before} {words}"
    named = list(_FAMILY.finditer(said))
    if not named:
        return prefix
    family = named[-1]["family"] or _FAMILY_OF.get(named[-1]["body"], "")
    return family if family in {"PEL", "REL", "TLV"} else ""


def _set_elsewhere(label: _Label, words: str, kind: str) -> bool:
    """Whether words before a kind of limit give it to somebody we do not know, to another medium, or to a proposal."""
    said = f"{label.words} {label.before} {words}"
    clause = re.split(r"[;；。]|\.\s+(?=[A-Z])", said)[-1]
    if _PUT_FORWARD.search(clause) or (kind in {"MAC", "TWA", "STEL"} and _NOT_AIR.search(clause)):
        return True
    # who is named last holds over semicolons for a sort alone ("Cal/OSHA: PEL 5 ppm; STEL 7 ppm")
    reach = said if re.fullmatch(_SORTS, kind) else clause
    setters = list(_SETTER.finditer(reach))
    if not setters or (kind == "MAK" and re.fullmatch("German|DFG|TRGS ?900", setters[-1][0])):
        return False
    known = [found.start() for found in _KNOWN.finditer(reach)]
    return not known or setters[-1].end() > known[-1]


# somebody whom we know, or a family of limits that is his
_KNOWN = re.compile(rf"(?<![A-Za-z])(?:{_BODY}|ACGIH|TLV|(?:PC|GBZ)(?=[-\s\d]))(?![A-Za-z])")


def _kind_said(label: _Label, kind: str, before: str) -> str:
    """The whole kind of a limit of which only the sort stands beside the value; "" where a bare "C" may be anything."""
    if kind not in {"TWA", "STEL", "ST", "C"} and kind.lower() not in {"ceiling", "excursion limit"}:
        return kind
    family = _family(label, before)
    sort = _SORT_OF.get(kind.upper(), kind)
    if family and kind.lower() != "excursion limit":
        return f"{family}-{sort}"
    return "" if kind in {"ST", "C"} else kind


_BEHIND = re.compile(
    r"^\s*(?:\([^()]*\)\s*)?[,，]?\s*\(?\s*(?:as\s+)?(?:an?\s+)?(?P<sort>TWA|STEL|ST|C|ceiling)(?![A-Za-z-])(?:\s+value)?",
    re.IGNORECASE,
)


def _sort_behind(words: str) -> str:
    """ "0.1 ppm, as Ceiling value", "1000 ppm (2400 mg/m³) TWA": what sort of limit a value is, "" where it is not said."""
    found = _BEHIND.match(words)
    return _SORT_OF.get(found["sort"].upper(), found["sort"].upper()) if found else ""


def _limits(ctx: Context, start: int, end: int, sds: int | None, label: _Label) -> list[Draft]:
    words = ctx.shadow(start, end)
    matches = list(_LIMIT.finditer(words))
    drafts = _limits_by_body(ctx, start, words, sds)
    for index, match in enumerate(matches):
        if spoken_of_other(ctx, words[: match.start()]) or _named_limit(ctx, words, match.start()):
            continue
        clause = re.split(r"[;；。.](?!\d)", words[: match.start()])[-1]
        if _PAST.search(clause) or _PAST.search(match["note"] or ""):
            continue
        stop = matches[index + 1].start() if index + 1 < len(matches) else len(words)
        if _set_elsewhere(label, words[: match.start("kind")], match["kind"]) or _PUT_FORWARD.search(
            match["note"] or ""
        ):
            continue
        kind = _kind_said(label, match["kind"], words[: match.start("kind")])
        if kind:
            body = match["body"] or _body_of(match["note"] or "")
            drafts += _values(
                ctx, start, words, (match.start(), match.end(), stop), kind, body, sds, match["note"] or ""
            )
    if (
        not matches
        and not drafts
        and (kind := _labelled_kind(label))
        and not _PAST.search(label.words)
        and not _set_elsewhere(label, "", kind)
    ):
        twa = re.search(r"\((TWA|STEL|C)\)", words)
        body = _body_of(label.words)
        kind = f"{kind}-{twa[1]}" if twa and kind in _FIELD_PREFIX.values() else kind
        unit = _unit_of(label.words)
        lead = label.start if label.start < start and not label.before.strip() else start
        note = "; ".join(re.findall(r"\(([^()]+)\)", label.words))
        drafts += _values(ctx, start, words, (lead - start, 0, len(words)), kind, body, sds, note, unit)
    return drafts


def _labelled_kind(label: _Label) -> str:
    """The kind that a label gives ("PC-TWA（mg/m³）", "OSHA PEL-TWA"), "" where it gives none."""
    if label.field == "idlh":
        return "IDLH"
    full = re.search(r"(?<![A-Za-z])(TLV|PEL|REL)-(TWA|STEL|C)(?![A-Za-z])", label.words)
    if full:
        return full[0]
    if label.field in _FIELD_PREFIX:
        return _FIELD_PREFIX[label.field]
    said = [kind for pattern, kind in _SAID_IN_LABEL if pattern.search(label.words)]
    return said[0] if label.field in {"limit_kind", "limits"} and len(said) == 1 else ""


def _unit_of(words: str) -> str:
    found = re.search(r"mg/m(?:3|³)|ppm", words)
    return found[0] if found else ""


_FRACTION = re.compile(
    r"总[粉烟]?尘|呼吸?性?[粉]?尘|可吸入|\b(?:total|respirable|inhalable|thoracic|fume|dust|vapou?r|mist|aerosol)\b",
    re.IGNORECASE,
)


def _values(
    ctx: Context,
    offset: int,
    words: str,
    places: tuple[int, int, int],
    kind: str,
    body: str,
    sds: int | None,
    note: str = "",
    unit: str = "",
) -> list[Draft]:
    """The limit that words state, and further ones of the same kind that say behind them how they differ.

    ``places``: where the kind stands, where the value may begin, where the kind's words end.
    """
    at, begin, stop = places
    drafts: list[Draft] = []
    first = True
    while begin < stop:
        made = _limit(ctx, offset, words, (at, begin, stop), kind, body, sds, note, unit, further=not first)
        if made is None:
            break
        draft, reach = made
        drafts += [draft] if draft else []
        # "; 5 mg/m³ (respirable)", "，150 mg/m³（呼尘）", ", 500 ppm as STEL"
        joined = re.match(r"\s*(?:[,，;；/、]|and\b|和)\s*(?=[<≤]?\s?\d)", words[reach:stop])
        if joined is None:
            break
        at = begin = reach + joined.end()
        first = False
    return drafts


def _named_limit(ctx: Context, words: str, at: int) -> bool:
    """ "Calcium hydroxide TLV-TWA 5 mg/m³": another substance's name right before the kind of limit."""
    said = re.sub(r"\([^()]*\)\s*$", "", words[:at])  # "铀（可溶性化合物）TLV-TWA"
    lead = re.split(r"[;；。,，:：\d)]", said)[-1].strip(" (")
    if not lead or not ctx.about_other(lead):
        return False
    if name_like(named_before(ctx, lead)):
        return True
    left = _LIMIT_WORDS.sub("", lead).strip()
    if len(left) == 1 and left in _ELEMENTS:
        return True
    return bool(re.fullmatch(r"[一-鿿]{1,8}", left) and ctx.about_other(left) and named_before(ctx, left))


_ELEMENTS = "铀铅汞镉铬锰镍钴铍砷硒碲锑钡铜锌银锡铝钒钼钨铊铂锆铟氯溴碘氟氨苯磷硫肼钠钾锂钙镁铁硼"
_LIMIT_WORDS = re.compile(
    rf"{_BODY}|工作场所|作业场所|车间|空气中?|国家|现行|职业|接触|容许|允许|最高|浓度|限值|标准|规定|时间|加权|平均|短时间|工业|卫生|有害因素|化学|参考|暂行|推荐|值|的|为|和|及|其|该|本品|[A-Za-z/-]+"
)


def _limits_by_body(ctx: Context, start: int, words: str, sds: int | None) -> list[Draft]:
    named = _BY_BODY.search(words) or _BY_BODY.search(
        ctx.shadow(max(0, start - 60), start).rpartition("\n")[2]
    )
    if not named:
        return []
    over = "TWA" if named["over"] in {"TN", "TWA"} else "STEL"
    bodies = list(_OF_BODY.finditer(words))
    drafts: list[Draft] = []
    for index, match in enumerate(bodies):
        stop = bodies[index + 1].start() if index + 1 < len(bodies) else len(words)
        kind = f"{_FAMILY_OF[match['body']]}-{over}"
        made = _limit(ctx, start, words, (match.start(), match.end(), stop), kind, match["body"], sds)
        drafts += [made[0]] if made and made[0] else []
    return drafts


_DURATION = re.compile(r"^\W*(\d[^()\[\]]*(?:min|h\b|hours?|小时|分钟)[^()\[\]]*?)\W*$", re.IGNORECASE)
_REMARK = re.compile(r"\s*(?:\(([^()]*)\)|\[([^\[\]]*)\])")
_AS = re.compile(
    r"^\s*,?\s*as (?!a\b|an\b|TWA|STEL|ST\b|C\b|ceil)([A-Za-z][\w ,-]{0,40}?)(?=\s*(?:[.;(\[]|$|, or\b))|^\s*[,，]?\s*(以[^,，;；。()]{1,12}计)"
    r"|^\s*((?:maximum |acceptable )*peak|峰值)(?![A-Za-z])",
    re.IGNORECASE,
)


def _limit(
    ctx: Context,
    offset: int,
    words: str,
    places: tuple[int, int, int],
    kind: str,
    body: str,
    sds: int | None,
    note: str = "",
    unit: str = "",
    *,
    further: bool = False,
) -> tuple[Draft | None, int] | None:
    """A limit and where its words end; None where no concentration stands there.

    ``further``: the value is not the kind's first and must say how it differs.
    """
    start, at, stop = places
    part = re.split(r"[;；。]|\.\s+(?=[A-Z])", words[at:stop])[0]
    quantity = concentration(part, unit)
    if quantity is None or _lead_words(part[: quantity.start]) or named_behind(ctx, part[quantity.end :]):
        return None
    rest = part[quantity.end :]
    sort = _sort_behind(rest)
    if sort and "-" not in kind and kind in _FIELD_PREFIX.values():
        kind = f"{kind}-{sort}"
    elif sort and further and kind.partition("-")[0] in _FIELD_PREFIX.values():
        kind = f"{kind.partition('-')[0]}-{sort}"
    remarks = note.strip().strip("()").split("; ") if note else []
    reach = quantity.end
    while remark := _REMARK.match(part[reach:]):
        inner = 1 if remark[1] is not None else 2
        remarks.append(
            ctx.text(offset + at + reach + remark.start(inner), offset + at + reach + remark.end(inner))
        )
        reach += remark.end()
    if sort:
        behind = _BEHIND.match(rest)
        reach = max(reach, quantity.end + (behind.end() if behind else 0))
    said = _AS.match(part[reach:])
    if said:
        inner = next(number for number in (1, 2, 3) if said[number])
        remarks.append(
            ctx.text(offset + at + reach + said.start(inner), offset + at + reach + said.end(inner))
        )
        reach += said.end()
    if further and not (sort or any(_FRACTION.search(remark) for remark in remarks)):
        return None
    if _IN_FORCE_ONCE.match(part[reach:]):
        return None, at + reach
    made = _with_remarks(ctx, kind, body, quantity, remarks)
    if made is None:
        return None, at + reach
    name, jurisdiction, value = made
    begin = offset + start + (len(words[start:]) - len(words[start:].lstrip()) if start >= 0 else 0)
    end = re.sub(r"[\s,，、]*$", "", part[: max(reach, _clause_end(part, reach))])
    draft = limit_draft(ctx, name, jurisdiction, value, (begin, offset + at + len(end)), sds,
                        ctx.text(offset + at + quantity.start, offset + at + quantity.end))  # fmt: skip
    return draft, at + reach


def _lead_words(words: str) -> bool:
    """Whether something is said before a value, so that it may be another's ("德国：500 ppm")."""
    return len(words) > 3 or bool(re.search(r"[A-Za-z一-鿿]", words))


def _clause_end(part: str, reach: int) -> int:
    """The end of the words behind a value: what follows a comma and begins with a figure is another value's."""
    more = re.compile(r"[,，]\s*(?=[<≤]?\s?\d)").search(part, reach)
    return more.start() if more else len(part)


def _with_remarks(
    ctx: Context, kind: str, body: str, quantity: Quantity, remarks: list[str]
) -> tuple[str, str, dict[str, Any]] | None:
    """Kind, whose it is and the value with what the remarks say; None where they give it to nobody we know, or to the past."""
    chinese = ctx.reading.language == "zh"
    name, jurisdiction = limit_kind(kind, body, chinese=chinese)
    value = quantity.as_value()
    conditions = {
        k: v for k, v in value.get("conditions", {}).items() if k not in {"route", "species", "method"}
    }
    value.pop("conditions", None)
    notes: list[str] = []
    for remark in remarks:
        plain = shadow(remark).strip()
        over = _DURATION.match(plain)
        if _OF_OTHER.match(plain):
            continue  # "（乙醇：1000 mg/m³）"
        if over:  # "Ceiling (15 min): 5 ppm" is no ceiling over 10 min
            conditions["duration"] = over[1].strip()
        elif (
            not plain
            or parse_quantities(plain)
            or re.fullmatch(rf"{_SORTS}|mg/m(?:3|³)|ppm", plain, re.IGNORECASE)
        ):
            continue  # the value in another unit
        elif _PAST.search(plain) and not _body_of(plain):
            return None
        elif "GBZ" in plain:
            jurisdiction = "CN"
            notes.append(remark.strip())
        elif name == "MAC" and (whose := _body_of(plain)):
            jurisdiction = _JURISDICTION.get(whose, "")
            notes.append(remark.strip())
        elif re.search(r"仅(?:适用|限|用|在)|\bonly\b", plain, re.IGNORECASE):
            return None  # of somebody whom the lists do not know
        elif not _KIND_WORDS.fullmatch(plain):
            notes.append(remark.strip())
    if notes:
        conditions["note"] = "; ".join(dict.fromkeys(notes))
    if conditions:
        value["conditions"] = conditions
    return name, jurisdiction, value


# a bracket that gives another substance's value
_OF_OTHER = re.compile(r"^[^:\d]{1,30}:\s*[<≤>≥]?\s?\d")

# the kind said once more in words
_KIND_WORDS = re.compile(
    r"(?:PC-|TLV-|PEL-|REL-)?(?:TWA|STEL|C)|PEL|REL|TLV|MAC|IDLH|时间加权平均(?:容许浓度|值)?|短时间接触(?:容许浓度|限值)?|最高容许浓度|8\s?(?:小时|h|hours?)?.{0,6}"
    r"|time[- ]weighted average|short[- ]term(?: exposure limit)?|immediate(?:ly)? danger\w*.*|permissible|recommended",
    re.IGNORECASE,
)


def limit_draft(
    ctx: Context,
    kind: str,
    jurisdiction: str,
    value: dict[str, Any],
    span: tuple[int, int],
    sds: int | None,
    shown: str,
) -> Draft:
    """An exposure limit."""
    properties = {"kind": kind} | ({"jurisdiction": jurisdiction} if jurisdiction else {})
    return ctx.draft(
        Relation.HAS_LIMIT,
        shown,
        NodeLabel.EXPOSURE_LIMIT,
        span,
        properties=properties,
        value=value,
        section=sds,
    )


def concentration(words: str, unit: str = "") -> Quantity | None:
    """The first concentration in air (mg/m³ or ppm) of a text; ``unit`` is that of numbers without one."""
    found = [
        q
        for dimension in ("kg/m**3", "percent")
        for q in parse_quantities(words, dimension=dimension, default_unit=unit)
        if dimension != "percent" or q.unit in {"ppm", "ppb"}
    ]
    return min(found, key=lambda q: q.start) if found else None
