"""Instructions: first aid by route, spill response, storage, personal protection, disposal."""

from __future__ import annotations

import re

from corpus.quantities import is_no_data
from kg.extraction.context import Context
from kg.extraction.model import Draft, Entry, Sentence
from kg.extraction.vocabulary import field_of
from kg.schema import MeasureKind, Modality, NodeLabel, Relation, Route, measure_key

_FIRST_AID = re.compile(r"急救|救护|^应急$|first[ -]?aid", re.IGNORECASE)
_SPILL = re.compile(r"泄[漏露]|溢漏|spill|leak|release", re.IGNORECASE)
_STORAGE = re.compile(r"储|贮|storage", re.IGNORECASE)
_PPE_CONTEXT = re.compile(r"防护|接触|protecti|exposure|ppe", re.IGNORECASE)
_DISPOSAL = re.compile(r"废弃|处置|disposal|waste", re.IGNORECASE)
_TEXT_LIMIT = 1500
# points to another place and says nothing itself
_ELSEWHERE = re.compile(
    r"^(?:另|也)?请?(?:参[见照阅考]|见(?!效)|按)[^。;；,，]{0,40}[。.]?$|^(?:处理)?(?:同|与)(?:上|前|[^。;；,，]{1,10}?(?:接触|吸入|食入|相同|一样|处理))[^。;；,，]{0,6}[。.]?$"
    r"|^(?:please )?(?:see|refer to)\b[^.;,]{0,80}\.?(?:\d+\.?)?$|^(?:the )?(?:same )?as (?:for|with|above|under|in)\b[^.;,]{0,60}\.?$|^idem\.?$",
    re.IGNORECASE,
)


def measures(ctx: Context) -> list[Draft]:
    """FIRST_AID, SPILL_ACTION, STORE_UNDER and DISPOSED_BY from labelled instructions, and storage sentences."""
    drafts: list[Draft] = []
    for entry, found in ctx.entries("first_aid", "measures"):
        draft = (
            _first_aid(ctx, entry, found.name)
            if found.family == "first_aid"
            else _measure(ctx, entry, found.name)
        )
        if draft:
            drafts.append(draft)
    drafts += _card_advice(ctx)
    drafts += _storage_sentences(ctx)
    drafts += _disposal_sentences(ctx)
    return drafts


def _within(entry: Entry, section: int, words: re.Pattern[str]) -> bool:
    """In the right section of a data sheet, or under a heading that says so."""
    if entry.sds is not None:
        return entry.sds == section
    return bool(words.search(entry.heading))


def _first_aid(ctx: Context, entry: Entry, route: str) -> Draft | None:
    if not _within(entry, 4, _FIRST_AID):
        return None
    if ctx.no_data(entry):
        return ctx.no_data_draft(Relation.FIRST_AID, NodeLabel.MEASURE, entry, route=Route(route).value)
    return _instruction(ctx, Relation.FIRST_AID, MeasureKind.FIRST_AID, entry, {"route": Route(route).value})


_AID_COLUMN = re.compile(r"急救|first aid", re.IGNORECASE)


def _card_advice(ctx: Context) -> list[Draft]:
    """FIRST_AID by route from a safety card's table; its other columns (symptoms, prevention) are no first aid."""
    drafts: list[Draft] = []
    for grid in ctx.reading.grids:
        if grid.kind != "exposures":
            continue
        column = next(
            at for at, c in enumerate(grid.header) if _AID_COLUMN.search(ctx.shadow(c.start, c.end))
        )
        for row in grid.rows:
            known = field_of(ctx.shadow(row[0].start, row[0].end))
            if known is None or known[1].family != "first_aid" or len(row) <= column:
                continue
            words = ctx.text(row[column].start, row[column].end).strip()
            if len(words) < 4 or is_no_data(words) or _ELSEWHERE.match(words):
                continue
            route = {"route": Route(known[1].name).value}
            drafts.append(
                ctx.draft(
                    Relation.FIRST_AID, words, NodeLabel.MEASURE, (row[0].start, row[column].end),
                    key=measure_key(MeasureKind.FIRST_AID, words),
                    properties={"kind": MeasureKind.FIRST_AID.value, "text": words, **route},
                    modality=Modality.MUST, conditions=route, section=grid.sds,
                )
            )  # fmt: skip
    return drafts


_KINDS: dict[str, tuple[Relation, MeasureKind, int, re.Pattern[str]]] = {
    "spill": (Relation.SPILL_ACTION, MeasureKind.SPILL, 6, _SPILL),
    "storage": (Relation.STORE_UNDER, MeasureKind.STORAGE, 7, _STORAGE),
    "disposal": (Relation.DISPOSED_BY, MeasureKind.DISPOSAL, 13, _DISPOSAL),
}


def _measure(ctx: Context, entry: Entry, name: str) -> Draft | None:
    kind = _KINDS.get(name)
    if kind is None or not _within(entry, kind[2], kind[3]):
        return None
    if ctx.no_data(entry):
        return ctx.no_data_draft(kind[0], NodeLabel.MEASURE, entry)
    return _instruction(ctx, kind[0], kind[1], entry, {})


def _instruction(
    ctx: Context, relation: Relation, kind: MeasureKind, entry: Entry, extra: dict[str, str]
) -> Draft | None:
    words = ctx.text(entry.start, entry.end)
    if len(words) > _TEXT_LIMIT or len(words) < 4 or _ELSEWHERE.match(words.strip()):
        return None
    properties = {"kind": kind.value, "text": words, **extra}
    return ctx.draft(
        relation, words, NodeLabel.MEASURE, (entry.start, entry.end), key=measure_key(kind, words),
        properties=properties, modality=Modality.MUST, conditions=extra, section=entry.sds,
    )  # fmt: skip


_STORED = re.compile(
    r"(?:储存|贮存|存放|保存|储|贮)于|(?:应|须|宜)(?:密封|低温|避光)?(?:储存|贮存|存放|保存)(?:于|在)|库温不?[^。;；]{0,4}超过|\bstore(?:d)? (?:in|under|at|below|cylinders|tightly)\b",
    re.IGNORECASE,
)


# says of itself that it is advice on storage, wherever it stands
_STORE_ADVICE = re.compile(
    r"(?:应|须|必须|宜)(?:密封|低温|避光)?(?:储存|贮存|保存)(?:于|在)|库温不?[^。;；]{0,4}超过|\bstorage (?:in|at|under) [^.;]{3,80} (?:is|are) (?:recommended|required|advised)\b"
    r"|\b(?:must|should) be stored\b",
    re.IGNORECASE,
)


def _storage_sentences(ctx: Context) -> list[Draft]:
    """ "液氨应储存于阴凉、通风的有毒气体专用库房，库温不宜超过30 ℃。" in running text."""
    labelled = {e.start for e, f in ctx.entries("measures") if f.name == "storage"}
    drafts = []
    for sentence in ctx.reading.sentences:
        words = ctx.shadow(sentence.start, sentence.end)
        if sentence.label or sentence.start in labelled or len(words) > 200:
            continue
        if not (_STORED.search(words) or _STORE_ADVICE.search(words)):
            continue
        if sentence.sds is not None and sentence.sds != 7:
            continue
        if sentence.sds is None and not (_STORAGE.search(sentence.heading) or _STORE_ADVICE.search(words)):
            continue
        text = ctx.text(sentence.start, sentence.end)
        drafts.append(
            ctx.draft(
                Relation.STORE_UNDER, text, NodeLabel.MEASURE, (sentence.start, sentence.end),
                key=measure_key(MeasureKind.STORAGE, text), properties={"kind": MeasureKind.STORAGE.value, "text": text},
                modality=Modality.MUST, section=sentence.sds,
            )
        )  # fmt: skip
    return drafts


_DISPOSED = re.compile(
    r"(?:^|[,，;；:：])\s*(?P<how>用[^,，。;；]{1,14}法(?:处置|处理)|废弃处置时[^。;；]{4,60})"
)


def _disposal_sentences(ctx: Context) -> list[Draft]:
    """ "用焚烧法处置。" in running text outside data sheets."""
    drafts = []
    for sentence in ctx.reading.sentences:
        if sentence.sds not in {None, 7} or sentence.label:
            continue
        match = _DISPOSED.search(ctx.shadow(sentence.start, sentence.end))
        if match:
            span = (sentence.start + match.start("how"), sentence.start + match.end("how"))
            text = ctx.text(*span)
            drafts.append(
                ctx.draft(
                    Relation.DISPOSED_BY, text, NodeLabel.MEASURE, span, key=measure_key(MeasureKind.DISPOSAL, text),
                    properties={"kind": MeasureKind.DISPOSAL.value, "text": text}, modality=Modality.MUST,
                )
            )  # fmt: skip
    return drafts


# --- personal protection -------------------------------------------------------------------

_GEAR_ZH = r"(?:面具|面罩|眼镜|眼罩|护目镜|手套|工作服|防护服|服|防毒衣|衣|鞋|靴|呼吸器|口罩|围裙|头盔)"
_WEAR_ZH = re.compile(
    rf"(?:佩戴|配戴|穿戴|戴|穿着|穿)(?P<item>[^,，。;；、戴穿或]{{0,20}}?{_GEAR_ZH}(?:\([^()]{{1,12}}\))?)"
    rf"(?=[,，。;；、或戴穿]|和|及|$|\s)(?:或(?P<other>[^,，。;；、]{{1,20}}?{_GEAR_ZH}(?:\([^()]{{1,12}}\))?))?"
)
_MORE_ZH = re.compile(
    rf"(?:、|和|及|以及)(?P<item>[^,，。;；、戴穿或和及]{{0,20}}?{_GEAR_ZH}(?:\([^()]{{1,12}}\))?)(?=[,，。;；、或和及]|$)(?P<other>(?!))?"
)
_GEAR_EN = (
    r"(?:gloves|goggles|glasses|shield|respirator|apparatus|clothing|suit|apron|boots|mask|helmet|coveralls)"
)
_WEAR_EN = re.compile(
    rf"\b(?:wear|use|wearing)\s+(?:(?:a|an|suitable|appropriate)\s+)*(?P<item>[A-Za-z][A-Za-z -]*?{_GEAR_EN}(?:\s+with\s+(?!positive)[a-z -]+?)?)"
    rf"(?=[.,;(]|\s+(?:where|for|or|if|when|and|to|with|in|at)\b|$)(?:\s+or\s+(?P<other>[a-z -]*?{_GEAR_EN}))?",
    re.IGNORECASE,
)
_CLASSES: tuple[tuple[str, str], ...] = (
    ("gloves", r"手套|gloves"),
    ("respirator", r"面具|呼吸器|口罩|respirator|apparatus|mask"),
    ("face_shield", r"面罩|shield"),
    ("goggles", r"眼镜|眼罩|护目镜|goggles|glasses"),
    ("footwear", r"鞋|靴|boots"),
    ("clothing", r"服|衣|围裙|clothing|suit|apron|coveralls"),
)


_NOT_WORN = re.compile(
    r"(?:不|勿|未|禁|禁止|严禁|无需|无须|不必|不宜|不得|不可|不能|不应|不要|不建议|不许|不准|不允许|避免|防止|不需要?)(?:再|单独|直接|只|仅)?$"
    r"|\b(?:not|never|avoid|no need to|need not|without|cannot)\s*(?:to\s*)?$",
    re.IGNORECASE,
)


def protection(ctx: Context) -> list[Draft]:
    """REQUIRES_PPE from wear sentences of section 8 or under a heading on protection."""
    drafts = _labelled_gear(ctx)
    for sentence in ctx.reading.sentences:
        words = ctx.shadow(sentence.start, sentence.end)
        if not _on_protection(sentence, words):
            continue
        if re.search(r"P\d{3}", words):
            continue
        for pattern in (_WEAR_ZH, _WEAR_EN):
            for match in pattern.finditer(words):
                before = words[: match.start()]
                if _NOT_WORN.search(before):
                    continue
                drafts.append(_ppe(ctx, sentence, match, before))
                more = _MORE_ZH.match(words, match.end())
                while more:
                    drafts.append(_ppe(ctx, sentence, more, before))
                    more = _MORE_ZH.match(words, more.end())
    return drafts


_GEAR_ALONE = re.compile(
    rf"^(?:(?:suitable|appropriate|compatible)\s+)?(?P<item>(?!(?:wear|use|keep|put)\b)[A-Za-z][A-Za-z -]{{0,50}}?{_GEAR_EN}|[^,，。;；、戴穿或和]{{0,20}}?{_GEAR_ZH}(?:\([^()]{{1,12}}\))?)(?P<other>(?!))?\s*[.。;；]?$",
    re.IGNORECASE,
)


def _labelled_gear(ctx: Context) -> list[Draft]:
    """ "Hand: Compatible chemical-resistant gloves." in section 8: the label says what for, no verb is needed."""
    drafts = []
    for entry, found in ctx.entries("measures", "first_aid"):
        if entry.sds != 8 or (found.family == "measures" and not found.name.startswith("ppe_")):
            continue
        for start, end in ctx.segments(entry.start, entry.end):
            match = _GEAR_ALONE.match(ctx.shadow(start, end))
            if match:
                sentence = Sentence(start, end, entry.sds, entry.heading, entry.label)
                drafts.append(_ppe(ctx, sentence, match, ""))
    return drafts


_RESPONSE = re.compile(r"急救|泄[漏露]|消防|灭火|应急|救援|fire|spill|leak|aid|release", re.IGNORECASE)


def _on_protection(sentence: Sentence, words: str) -> bool:
    """Protection of those who work with it; what fire-fighters wear is another matter."""
    if re.search(r"防护$|protection", sentence.label):
        return True
    workers = re.search(r"作业|操作人员|接触者|工作人员|workers|operators", words)
    if sentence.sds is not None:
        return sentence.sds == 8 or (sentence.sds == 7 and bool(workers))
    if sentence.label or _RESPONSE.search(sentence.heading):
        return False
    return bool(_PPE_CONTEXT.search(sentence.heading) or workers)


def _ppe(ctx: Context, sentence: Sentence, match: re.Match[str], before: str) -> Draft:
    start, end = sentence.start + match.start("item"), sentence.start + match.end("item")
    words = ctx.text(start, end)
    conditions: dict[str, str] = {}
    when = re.search(r"([^,，。;；]*(?:时|情况下))[，,]?[^,，。;；]*$", before)
    if when:
        conditions["when"] = ctx.text(sentence.start + when.start(1), sentence.start + when.end(1)).strip()
    after = re.match(r"\s*((?:where|for|if|when)\b[^.;]*)", ctx.shadow(end, sentence.end), re.IGNORECASE)
    if after:
        conditions["when"] = ctx.text(end + after.start(1), end + after.end(1)).strip()
    if match["other"]:
        conditions["alternative"] = ctx.text(
            sentence.start + match.start("other"), sentence.start + match.end("other")
        ).strip()
    shown = re.sub(r"\([^()]*\)$", "", ctx.shadow(start, end))
    gear = next(
        (name for name, pattern in _CLASSES if re.search(rf"(?:{pattern})$", shown, re.IGNORECASE)), ""
    )
    if not gear:
        gear = next((name for name, pattern in _CLASSES if re.search(pattern, shown, re.IGNORECASE)), "other")
    return ctx.draft(
        Relation.REQUIRES_PPE, words, NodeLabel.MEASURE, (sentence.start, sentence.end),
        key=measure_key(MeasureKind.PPE, words), properties={"kind": MeasureKind.PPE.value, "text": words, "gear": gear},
        modality=Modality.MUST, conditions=conditions, section=sentence.sds,
    )  # fmt: skip
