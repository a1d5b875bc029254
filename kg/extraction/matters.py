"""What a substance meets: incompatible materials, products of fire and decomposition, media, segregation."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

from kg.extraction.context import Context
from kg.extraction.focus import Focus, focuses
from kg.extraction.model import Draft, Entry, Sentence
from kg.extraction.vocabulary import agents, group_term, groups, word_form
from kg.schema import MeasureKind, Modality, NodeLabel, Polarity, Relation, listing_key

Span = tuple[int, int]

_OPEN_LIST = re.compile(
    r"等|例如|比如|包括|诸如|尤其|特别是|如[：:]|(?:^|[,，、;；(])\s*如(?!果|何)|\bespecially\b|\bparticular(?:ly)?\b|\betc\b|such as|including|for example|e\.g\.|among others",
    re.IGNORECASE,
)
_EXCEPTED = re.compile(
    r"除(?!尘|草|虫)|以外|\b(?:except|excluding|unless|not|none|other than|apart from|compatible)\b",
    re.IGNORECASE,
)
_BAD_ITEM = re.compile(
    r"反应|接触|发生|可能|[^可]会|避免|防止|产生|生成|放出|分解|燃烧时|应当|必须|不|无(?!水|机)|有毒|烟气|烟雾|刺激性"
    r"|\b(?:react|avoid|may|can|cannot|is|are|contact|when|if|with water|no|not|none|toxic|fumes?|conditions?|heat|sparks?|flames?|stable)\b",
    re.IGNORECASE,
)
# no name of matter, whatever it ends like: what denies or excepts, and clauses that were not cut
_NEVER_ITEM = re.compile(
    r"^其[他它余]|^对(?![二苯甲硝氯氨羟位])|除|相容|兼容|剧烈|激烈|猛烈|混合(?=时|后|会|可)|相遇|^(?:另|也)?请?(?:参[见照阅考]|见)|[时后]$|(?:存在|条件|情况|作用)下|^[在与]|混淆"
    r"|^(?:in|on|at|under|by|during|within|upon|from|for|if|when|where) |^(?:even|also|especially|particularly|readily|slowly|rapidly|only|both|either|generally|usually)$|一般$|通常$"
    r"|\b(?:see|refer|except|excluding|unless|none|neither|nor|not|never|but|known|other than|apart from|compatible|compatibility|confused|violently|vigorously)\b",
    re.IGNORECASE,
)
_LEAD = re.compile(
    r"^(?:(?:以及|和|及|与|或|推荐:?)\s*|(?:and|or|with|the|some|most|other|suitable:?)(?![A-Za-z-])\s*)",
    re.IGNORECASE,
)
_EXAMPLE = re.compile(
    r"^(?:尤其是?|特别是|例如|比如|诸如|如(?!果|何)"
    r"|(?:especially|particularly|in particular|such as|for example|for instance|e\.g\.?|including)(?![a-z]))[:：,]?\s*",
    re.IGNORECASE,
)
# what follows a class as its examples, and what says that the list goes on
_TAIL = re.compile(
    r"(?<=.)(?:等等?|,?\s+etc\.?|\s*(?:例如|诸如|尤其是|特别是).*|\s+(?:especially|particularly|such as|for example|e\.g\.).*)$",
    re.IGNORECASE,
)
_CONDITION = re.compile(r"\s+(in the presence of|with (?=\w+$)|in contact with|at |above )", re.IGNORECASE)


def split_items(ctx: Context, start: int, end: int) -> list[Span]:
    """Items of a list, brackets kept whole: 、，,;； and joining words, no cut inside known names."""
    words = ctx.shadow(start, end)
    cuts: list[Span] = []
    begin = depth = index = 0
    while index < len(words):
        char = words[index]
        depth += (char in "([") - (char in ")]")
        width = _separator(words, index) if depth <= 0 else 0
        if width:
            cuts.append((begin, index))
            index += width
            begin = index
        else:
            index += 1
    cuts.append((begin, len(words)))
    spans = [ctx.trim(start + a, start + b, " \t\n*。.;；,，、") for a, b in cuts]
    return [part for span in spans if span for part in _joined(ctx, _without_lead(ctx, span))]


def _separator(words: str, index: int) -> int:
    char = words[index]
    if char in "、;；\n" or (char == "，"):
        return 1
    if char == ",":  # a comma between locants belongs to the name
        return 0 if re.match(r",\d", words[index : index + 2]) and index and words[index - 1].isdigit() else 1
    return 0


def _without_lead(ctx: Context, span: Span) -> Span:
    start, end = span
    match = _LEAD.match(ctx.shadow(start, end))
    while match and match.end() and not _known(ctx.shadow(start, end)):
        start += match.end()
        match = _LEAD.match(ctx.shadow(start, end))
    example = _EXAMPLE.match(ctx.shadow(start, end))
    if example and example.end() < end - start:
        return _without_lead(ctx, (start + example.end(), end))
    words = ctx.shadow(start, end)
    tail = _TAIL.search(words)
    if tail and word_form(words) not in groups() and word_form(words) not in agents():
        end = start + tail.start()
    return start, end


def _known(words: str) -> bool:
    return group_term(words) is not None or word_form(words) in agents()


def _joined(ctx: Context, span: Span) -> list[Span]:
    """ "酸类和碱类", "acids and bases": two items, unless the whole is one known name."""
    words = ctx.shadow(*span)
    whole = word_form(words)
    if (
        whole in agents()
        or whole in groups()
        or (group_term(words) and not re.search(r"和|及其[他它余]| and ", words))
    ):
        return [span]
    match = re.search(r"(?<![饱])[和及](?!其(?![他它余]))|\s+and\s+", words)
    if not match:
        return [span]
    left, right = words[: match.start()], words[match.end() :]
    if len(left.strip()) < 1 or len(right.strip()) < 1 or ("(" in left and ")" not in left):
        return [span]
    rest = _joined(ctx, (span[0] + match.end(), span[1]))
    return [(span[0], span[0] + match.start()), *rest]


def item_of(ctx: Context, span: Span) -> tuple[Span, dict[str, str]] | None:
    """An item's name without its remark, with the remark as a condition; None for what is no name."""
    start, end = span
    conditions: dict[str, str] = {}
    words = ctx.shadow(start, end)
    remark = re.search(r"\s*\(([^()]+)\)$", words)
    if remark and not re.search(r"\d$|^[IVX]+$", remark[1]):
        conditions["note"] = ctx.text(start + remark.start(1), start + remark.end(1))
        end = start + remark.start()
    words = ctx.shadow(start, end)
    circumstance = _CONDITION.search(words)
    if circumstance and not re.search(r"[一-鿿]", words):
        conditions["when"] = ctx.text(start + circumstance.start(), end).strip()
        end = start + circumstance.start()
    within = re.match(r"([^在]{1,12})(在[^,，在]{1,12}[下时中])$", ctx.shadow(start, end))
    if within:  # "甲醛在酸催化下"
        conditions["when"] = ctx.text(start + within.start(2), end)
        end = start + within.end(1)
    words = ctx.shadow(start, end).strip()
    if _NEVER_ITEM.search(words) and word_form(words) not in groups():
        return None
    known = group_term(words) is not None
    limit = 20 if re.search(r"[一-鿿]", words) else 45
    if not words or len(words) > limit or (_BAD_ITEM.search(words) and not known) or words.isdigit():
        return None
    if not re.search(r"[A-Za-z一-鿿]", words) or (len(words.split()) > 5 and not known):
        return None
    return (start, end), conditions


def _first_sentence(ctx: Context, start: int, end: int) -> Span:
    match = re.search(r"。|(?<!e\.g)(?<!i\.e)\.(?=\s|$)|\n\n", ctx.shadow(start, end))
    return (start, start + match.start()) if match else (start, end)


_NO_DANGER = re.compile(
    r"无(?:明显)?(?:反应|腐蚀|影响|作用)|不(?:发生)?(?:反应|腐蚀|作用|侵蚀)|均?(?:很|较)?稳定|不产生|无须?避免|适用|(?<!不)(?:可用|可以|相容|兼容)|耐[腐受]"
    r"|\b(?:suitable|recommended|compatible|(?:may|can) be used|unaffected|no reactions?|not (?:attack|react|affect)\w*|does not|resistant to|stable (?:in|to|with|under)|no corrosion)\b",
    re.IGNORECASE,
)


_SPARES = re.compile(
    r"[,，]?\s*\b(?:unaffected by|no reactions? with|resistant to|(?:does )?not (?:attack|react|affect)\w*|stable (?:in|to|with))\b",
    re.IGNORECASE,
)


def _dangerous(ctx: Context, span: Span) -> Span | None:
    """A part of a list up to where it says what does no harm; None where the whole part says so."""
    words = re.sub(r"\([^()]*\)", lambda match: " " * len(match[0]), ctx.shadow(*span))
    if not _NO_DANGER.search(words):
        return span
    spared = _SPARES.search(words)
    if spared is None or _NO_DANGER.search(words[: spared.start()]):
        return None
    return ctx.trim(span[0], span[0] + spared.start())


_LED_BY = re.compile(
    r"^\s*((?:in|on|at|under|above|below|upon|during|with|if|when) [^,;]{3,60}?)\s*,"
    r"|^\s*((?:在|当|如|若|于)?[^,，、;；]{1,16}?(?:时|下|条件下|情况下))\s*[,，:：]",
    re.IGNORECASE,
)


def _led_by(ctx: Context, part: Span, item: Span) -> dict[str, str]:
    """The circumstance that opens a part of a list and holds for all that follows in it ("in the absence of air, ketene")."""
    found = _LED_BY.match(ctx.shadow(*part))
    if found is None or item[0] < part[0] + found.end():
        return {}
    inner = 1 if found[1] else 2
    return {"when": ctx.text(part[0] + found.start(inner), part[0] + found.end(inner))}


_ONLY_IF = re.compile(
    r"仅|只|若|如果|当|时$|下$|\b(?:only|if|when|with|under|above|below|at|in)\b", re.IGNORECASE
)


def _limited(conditions: Mapping[str, str]) -> bool:
    """Whether an item belongs to its list under some circumstance alone ("nitrogen oxides (only with excess air)")."""
    return "when" in conditions or bool(_ONLY_IF.search(conditions.get("note", "")))


def listed(
    ctx: Context,
    relation: Relation,
    entry: Entry,
    *,
    modality: Modality = Modality.IS,
) -> list[Draft]:
    """A labelled list of matter. Complete where it names nothing open ("等", "such as") and every item was read."""
    span = _first_sentence(ctx, entry.start, entry.end)
    rest = ctx.shadow(span[1], entry.end).strip(" 。.\n")
    whole = ctx.segments(*span)
    parts = [part for span in whole if (part := _dangerous(ctx, span)) is not None]
    items = [item for part in parts for item in split_items(ctx, *part)]
    read = [
        (item[0], {**item[1], **_led_by(ctx, part, s)})
        for part in parts
        for s in split_items(ctx, *part)
        if (item := item_of(ctx, s)) is not None
    ]
    if not read or (len(read) < len(items) and len(items) > 2 * len(read)):
        return []
    complete = (
        len(read) == len(items)
        and parts == whole
        and not rest
        and not _OPEN_LIST.search(ctx.shadow(entry.start, entry.end))
        and not _EXCEPTED.search(ctx.shadow(entry.start, entry.end))
        # a list says of its members that they belong to it, without saying when
        and not any(_limited(conditions) for _, conditions in read)
    )
    listing = (
        listing_key(ctx.reading.document_id, ctx.subject.name, relation, entry.start) if complete else ""
    )
    evidence = (entry.label_start if span[1] - entry.label_start <= 300 else entry.start, span[1])
    return [
        matter_draft(ctx, relation, part, conditions, evidence, entry.sds, modality, listing)
        for part, conditions in read
    ]


def matter_draft(
    ctx: Context,
    relation: Relation,
    part: Span,
    conditions: dict[str, str],
    evidence: Span,
    sds: int | None,
    modality: Modality = Modality.IS,
    listing: str = "",
    polarity: Polarity = Polarity.POSITIVE,
) -> Draft:
    """A draft whose object is a substance or a class of matter."""
    words, label, key, properties = ctx.matter(*part)
    if listing:
        properties = {**properties, "listing": listing}
    return ctx.draft(
        relation, words, label, evidence, key=key, properties=properties, polarity=polarity,
        modality=modality, conditions=conditions, section=sds,
    )  # fmt: skip


def reactivity(ctx: Context) -> list[Draft]:
    """INCOMPATIBLE_WITH, DECOMPOSES_TO, BURNS_TO and STORE_APART_FROM from labelled lists."""
    relations = {
        "incompatible": Relation.INCOMPATIBLE_WITH,
        "decomposition": Relation.DECOMPOSES_TO,
        "combustion_products": Relation.BURNS_TO,
    }
    drafts: list[Draft] = []
    for entry, found in ctx.entries("reactivity", "fire"):
        relation = relations.get(found.name)
        if relation is None:
            continue
        if ctx.no_data(entry):
            drafts.append(ctx.no_data_draft(relation, NodeLabel.REACTIVE_GROUP, entry))
        else:
            drafts += listed(ctx, relation, entry)
    return drafts


# --- extinguishing media ------------------------------------------------------------------

_AGENT_LIKE = re.compile(
    r"(?:泡沫|干粉|水|砂|沙|土|foam|powder|spray|fog|chemical|dioxide|sand)$", re.IGNORECASE
)
_SUITABLE = re.compile(r"^\s*(?:suitable(?: media)?|适用的?|推荐)\s*[:：]\s*", re.IGNORECASE)
_FORBID = re.compile(
    r"(?:不可|不宜|不能|不得|不要|禁止|严禁|切勿|请勿|勿|忌)(?:直接)?(?:使用|用|将|以)\s*(?P<zh>[^,，。;；]{1,60})"
    r"|用(?P<vain>[^,，。;；]{1,8}?)灭火无效"
    r"|(?:do not use|don't use|never use|do not direct|avoid using)\s+(?P<en>[^.;]{1,60})"
    r"|(?:not suitable|unsuitable(?: extinguishing)?(?: media)?)\s*[:：]\s*(?P<list>[^.;\n]{1,80})",
    re.IGNORECASE,
)
_PUTTING_OUT = re.compile(r"灭火|扑救|着火时|extinguish|fight(?:ing)? (?:the )?fire", re.IGNORECASE)
_FIRE = re.compile(r"消防|灭火|fire|extinguish|燃", re.IGNORECASE)


def agent_draft(
    ctx: Context, relation: Relation, part: Span, evidence: Span, sds: int | None, listing: str = ""
) -> Draft | None:
    """An extinguishing medium of the lexicon, or words that end like one."""
    words = ctx.text(*part)
    term = agents().get(word_form(words))
    if term is None and (
        not _AGENT_LIKE.search(ctx.shadow(*part)) or _BAD_ITEM.search(ctx.shadow(*part)) or len(words) > 30
    ):
        return None
    properties: dict[str, str] = {"kind": MeasureKind.AGENT.value}
    properties |= {"zh": term.zh, "en": term.en} if term else {"text": words}
    if listing:
        properties["listing"] = listing
    return ctx.draft(
        relation,
        words,
        NodeLabel.MEASURE,
        evidence,
        key=term.key if term else "",
        properties=properties,
        section=sds,
    )


def extinguishing(ctx: Context) -> list[Draft]:
    """EXTINGUISHED_BY from lists of media; NOT_EXTINGUISHED_BY from lists and from "不可用…" sentences."""
    drafts: list[Draft] = []
    for entry, found in ctx.entries("fire"):
        if found.name == "media":
            drafts += _media(ctx, entry, Relation.EXTINGUISHED_BY)
        elif found.name == "unsuitable_media" and not _FORBID.search(ctx.shadow(entry.start, entry.end)):
            drafts += _media(ctx, entry, Relation.NOT_EXTINGUISHED_BY)
    drafts += _card_media(ctx)
    for sentence in ctx.reading.sentences:
        words = ctx.shadow(sentence.start, sentence.end)
        if (
            sentence.sds == 5
            or _FIRE.search(sentence.heading)
            or _FIRE.search(sentence.label)
            or _PUTTING_OUT.search(words)
        ):
            drafts += _forbidden(ctx, sentence)
            if not sentence.label:
                drafts += _advised(ctx, sentence)
    return drafts


def _card_media(ctx: Context) -> list[Draft]:
    """EXTINGUISHED_BY from the fire row of a safety card, where every item of its last column is a known medium."""
    drafts: list[Draft] = []
    for grid in ctx.reading.grids:
        if grid.kind != "exposures":
            continue
        for row in grid.rows:
            if not re.match(
                r"^[#*\s]*(?:火灾|fire)\s*$", ctx.shadow(row[0].start, row[0].end), re.IGNORECASE
            ):
                continue
            cell = row[-1]
            made = [
                agent_draft(ctx, Relation.EXTINGUISHED_BY, part, (cell.start, cell.end), grid.sds)
                for item in split_items(ctx, cell.start, cell.end)
                for part in _either(ctx, item)
            ]
            if made and all(made):
                drafts += [draft for draft in made if draft]
    return drafts


_ADVISED = re.compile(
    r"(?<![不勿])(?:可|宜|应|采)用(?P<list>[^。;；]{2,60}?)(?:灭火|扑救)"
    r"|(?:灭火|扑救|着火)(?:火灾)?时?[,，]?(?:可|宜|应|须|请)?(?:以)?(?:使用|采用|选用|用)(?P<after>[^,，。;；]{1,60})"
    r"|\b(?:extinguish(?:ed)?|fires? (?:can|should|may) be (?:fought|put out|extinguished)) (?:with|by|using) (?P<en>[^.;]{2,100})",
    re.IGNORECASE,
)


def _advised(ctx: Context, sentence: Sentence) -> list[Draft]:
    """ "可用泡沫、干粉、二氧化碳、砂土灭火": every item must be a known medium."""
    drafts: list[Draft] = []
    for match in _ADVISED.finditer(ctx.shadow(sentence.start, sentence.end)):
        if re.search(r"不|勿|禁", match.string[max(0, match.start() - 3) : match.start()]):
            continue
        group = next(name for name in ("list", "after", "en") if match[name])
        start = sentence.start + match.start(group)
        span = (sentence.start, sentence.end)
        made = [
            agent_draft(ctx, Relation.EXTINGUISHED_BY, part, span, sentence.sds)
            for item in split_items(ctx, start, start + len(match[group]))
            for part in _either(ctx, item)
        ]
        if made and all(made):
            drafts += [draft for draft in made if draft]
    return drafts


def _media(ctx: Context, entry: Entry, relation: Relation) -> list[Draft]:
    if ctx.no_data(entry):
        return [ctx.no_data_draft(relation, NodeLabel.MEASURE, entry)]
    start = entry.start
    lead = _SUITABLE.match(ctx.shadow(start, entry.end))
    start += lead.end() if lead else 0
    span = _first_sentence(ctx, start, entry.end)
    if re.search(r"不可|不宜|禁止|严禁|不得|do not|not |无效", ctx.shadow(*span), re.IGNORECASE):
        return []
    items = [part for item in split_items(ctx, *span) for part in _either(ctx, item)]
    rest = ctx.shadow(span[1], entry.end).strip(" 。.\n")
    evidence = (entry.label_start if span[1] - entry.label_start <= 300 else start, span[1])
    read = [(s, agent_draft(ctx, relation, _bare(ctx, s), evidence, entry.sds)) for s in items]
    if any(draft is None for _, draft in read) and sum(d is not None for _, d in read) < len(read) - 1:
        return []
    whole = not rest and not _OPEN_LIST.search(ctx.shadow(entry.start, entry.end))
    complete = whole and all(draft for _, draft in read)
    listing = (
        listing_key(ctx.reading.document_id, ctx.subject.name, relation, entry.start) if complete else ""
    )
    made = [agent_draft(ctx, relation, _bare(ctx, s), evidence, entry.sds, listing) for s, d in read if d]
    return [draft for draft in made if draft]


def _either(ctx: Context, span: Span) -> list[Span]:
    """ "dry chemical or carbon dioxide": two media, unless the whole is one of the lexicon."""
    if word_form(ctx.text(*_bare(ctx, span))) in agents():
        return [span]
    return [part for side in alternatives(ctx, span) if (part := ctx.trim(*side)) is not None]


def _bare(ctx: Context, span: Span) -> Span:
    """The medium without "用/使用" before and "灭火" after it."""
    words = ctx.shadow(*span)
    lead = re.match(r"^(?:请?(?:使用|采用|可用|用)|use |or |appropriate )", words, re.IGNORECASE)
    tail = re.search(r"(?:灭火|扑救|等)$", words)
    start = span[0] + (lead.end() if lead else 0)
    end = span[0] + tail.start() if tail and tail.start() > (lead.end() if lead else 0) else span[1]
    return start, end


def _forbidden(ctx: Context, sentence: Sentence) -> list[Draft]:
    words = ctx.shadow(sentence.start, sentence.end)
    drafts = []
    for match in _FORBID.finditer(words):
        when = _in_what_fire(words[: match.start()])
        if when is None:
            continue
        group = next(name for name in ("zh", "vain", "en", "list") if match[name])
        offset = sentence.start + match.start(group)
        part = match[group]
        spans, behind = (
            (split_items(ctx, offset, offset + len(part)), offset + len(part))
            if group == "list"
            else _named_agents(ctx, offset, part)
        )
        aim = "" if group in {"list", "vain"} else ctx.shadow(behind, offset + len(part))
        if _NO_FIRE.search(aim):
            continue
        aimed = {} if group == "list" else _aimed(ctx, behind, offset + len(part))
        if when and aimed:
            aimed = {"note": aimed["when"]}
        for span in spans:
            draft = agent_draft(
                ctx, Relation.NOT_EXTINGUISHED_BY, span, (sentence.start, sentence.end), sentence.sds
            )
            if draft and draft.object_key:
                drafts.append(replace(draft, conditions={**aimed, **({"when": when} if when else {})}))
    return drafts


# water on a leak or into a tank is no extinguishing; what is said of it is not said of a fire
_NO_FIRE = re.compile(
    r"泄[漏露]|溢漏|酸液|容器内|储罐|\b(?:leak|spill|release|source of|container|tank|cylinder)s?\b",
    re.IGNORECASE,
)
_PUT_OUT = re.compile(
    r"^\s*(?:直接)?(?:进行|来)?(?:灭火|扑救|扑灭|救火|施救)?(?:火灾)?\s*(?:[.,;:)]|$)"
    r"|^\s*,|^\s*(?:as (?:an )?extinguish\w+.*|to (?:extinguish|fight)\b.*|for (?:fire)?\s?(?:extinguish|fight)\w+.*)$",
    re.IGNORECASE,
)


_ANY_FIRE = re.compile(
    r"^(?:本品|该品|其|一旦|发生|如|若)*(?:灭火|着火|起火|失火|火灾|燃烧|扑救|救火|火场)(?:火灾|发生)?(?:时|中|后|情况下)?$"
    r"|^(?:in (?:case|the event) of (?:an? )?fire|when (?:fighting|extinguishing) (?:an? |the )?fires?|during fire-?\s?fighting)$",
    re.IGNORECASE,
)
_SOME_FIRE = re.compile(
    r"(?:(?:时|下|中|后)|[大小]火|初期火灾)$|^(?:for|in|with|on|when|if|where|during|at)\b", re.IGNORECASE
)
_SIZED = re.compile(
    r"[大小]火|初期火|\b(?:large|small|big|major|minor|incipient|massive)\b[\w\s-]*\bfires?\b", re.IGNORECASE
)


def _in_what_fire(before: str) -> str | None:
    """The circumstance under which a medium is forbidden ("大火时", "For large fires"), "" for any fire.

    None where fires of a kind are spoken of in words that are no plain circumstance.
    """
    said = re.split(r"[,，。;；:：\n]|\.\s", before.rstrip(" ,，"))[-1].strip(" *-")
    if _ANY_FIRE.match(said):
        return ""
    if _SOME_FIRE.search(said):
        return said
    return None if _SIZED.search(said) else ""


def _aimed(ctx: Context, start: int, end: int) -> dict[str, str]:
    """What the medium must not be used on or how, where it is more than putting out the fire."""
    words = ctx.shadow(start, end)
    aim = ctx.trim(start, end)
    return {} if aim is None or _PUT_OUT.match(words) else {"when": ctx.text(*aim)}


_NEXT_AGENT = re.compile(r"^\s*(?:、|以?及|和|或者?|与|,?\s*\b(?:or|and|nor)\b|,)\s*", re.IGNORECASE)
_OTHER_AGENT = re.compile(
    r"^[^、,，。;；和或及]{1,12}?(?:灭火剂|泡沫|干粉|水)"
    r"|^(?!(?:as|to|on|in|at|for|if|when|unless|except|because|since|it|this|which|direct)\b)[A-Za-z][A-Za-z -]{1,30}?(?=\s*(?:,|\bor\b|\band\b|$))",
    re.IGNORECASE,
)
_REMARK = re.compile(r"^\s*\([^()]*\)")


def _named_agents(ctx: Context, offset: int, part: str) -> tuple[list[Span], int]:
    """The media that a prohibition begins with ("水、泡沫和酸碱灭火剂灭火"), and where what follows them begins.

    One with a remark ("干粉（磷酸铵盐）") is some kind of it only, and left out.
    """
    spans: list[Span] = []
    at = end = 0
    while True:
        named = _named_agent(ctx, offset + at, part[at:])
        other = None if named else _OTHER_AGENT.match(part[at:]) if at else None
        if named is None and other is None:
            return spans, offset + end
        end = named[1] - offset if named else at + (other.end() if other else 0)
        end += named is not None and part[end : end + 1] in {"流", "柱", "枪"}  # "高压水流"
        remark = _REMARK.match(part[end:])
        if named and not remark:
            spans.append(named)
        end += remark.end() if remark else 0
        joined = _NEXT_AGENT.match(part[end:])
        if joined is None:
            return spans, offset + end
        at = end + joined.end()


def _named_agent(ctx: Context, offset: int, part: str) -> Span | None:
    """The longest medium of the lexicon near the start ("直流水扑救" → 直流水; "a solid water jet")."""
    known = sorted(agents(), key=len, reverse=True)
    lead = re.match(r"^(?:a|an|the|有机类灭火剂\(如|强大?的?)\s*", part, re.IGNORECASE)
    start = lead.end() if lead else 0
    lowered = part.lower()
    for name in known:
        if lowered.startswith(name, start) and not re.match(
            r"[a-z]|[基性溶泥玻]", lowered[start + len(name) :][:1]
        ):
            return offset + start, offset + start + len(name)
    return None


# --- sentences ---------------------------------------------------------------------------------

_APART = re.compile(
    r"(?:应|须|必须)?与(?P<zh>[^。;；]{1,60}?)(?:等)?(?:分开|隔离|分库|分类)(?:存放|储存|贮存|堆放|存储)"
    r"|(?:避免|严禁|切忌|不可|不得|禁止)与(?P<mix>[^,，。;；]{1,60}?)(?:等)?(?:混储|混存|共储|同储|混合储存|同库储存|同库存放)"
    r"|(?:(?:keep|store|kept|stored)\s+(?:apart|separate(?:d|ly)?|segregated)|segregate|^separated)\s+from\s+(?P<en>[^.;]{1,120})",
    re.IGNORECASE,
)
_PRODUCT = re.compile(
    r"(?P<dec>(?:受热|加热|高温|遇热|受高热)[^,，。;；]{0,8}?分解(?:时)?[,，]?(?:会|可|能)?(?:生成|产生|放出|释放出?|释出|形成|为|成)(?:含有?)?"
    r"|(?:decomposes?|decomposition)(?: on heating| when heated)?,? (?:to (?:form|give|produce|yield|release)|(?:forming|giving|producing|releasing)))\s*(?P<decto>[^,，。;；.]{1,50})"
    r"|(?P<burn>燃烧(?:时)?(?:会|可|能)?(?:生成|产生|放出|释放出)|(?:有害|危险)?燃烧产物(?:主要)?(?:为|有|是)|(?:burns|combustion)[^.;]{0,20}? (?:to (?:form|give|produce|yield)|(?:forming|giving|producing)))\s*(?P<burnto>[^,，。;；.]{1,50})",
    re.IGNORECASE,
)


def stated(ctx: Context) -> list[Draft]:
    """Segregation, and products, from sentences about the subject."""
    drafts: list[Draft] = []
    about = focuses(ctx)
    for sentence in ctx.reading.sentences:
        words = ctx.shadow(sentence.start, sentence.end)
        if not (sentence.label in {"装运", "运输注意事项"} or sentence.sds == 14):
            drafts += _apart(ctx, sentence, words)
        if about[sentence.start] is not Focus.OTHER:
            drafts += _products(ctx, sentence, words)
    return drafts


def _apart(ctx: Context, sentence: Sentence, words: str) -> list[Draft]:
    drafts = []
    for match in _APART.finditer(words):
        group = next(name for name in ("zh", "mix", "en") if match[name])
        if re.search(r"运输|装运|混运", words[: match.start()]):
            continue
        start = sentence.start + match.start(group)
        evidence = (sentence.start, sentence.end)
        items = split_items(ctx, start, start + len(match[group]))
        read = [item for s in items if (item := item_of(ctx, s)) is not None]
        complete = (
            len(read) == len(items)
            and "等" not in match[0]
            and not _OPEN_LIST.search(words)
            and not _EXCEPTED.search(words[match.start(group) :])
        )
        listing = (
            listing_key(ctx.reading.document_id, ctx.subject.name, Relation.STORE_APART_FROM, start)
            if complete
            else ""
        )
        drafts += [
            matter_draft(
                ctx,
                Relation.STORE_APART_FROM,
                part,
                conditions,
                evidence,
                sentence.sds,
                Modality.MUST,
                listing,
            )
            for part, conditions in read
        ]
    return drafts


def alternatives(ctx: Context, span: Span) -> list[Span]:
    """ "iron or steel": two items."""
    match = re.search(r"\s+n?or\s+(?:with\s+)?|或与?", ctx.shadow(*span))
    if not match:
        return [span]
    return [(span[0], span[0] + match.start()), (span[0] + match.end(), span[1])]


def _products(ctx: Context, sentence: Sentence, words: str) -> list[Draft]:
    drafts = []
    for match in _PRODUCT.finditer(words):
        relation = Relation.DECOMPOSES_TO if match["dec"] else Relation.BURNS_TO
        group = "decto" if match["dec"] else "burnto"
        if sentence.sds is None and not re.search(r"[一-鿿]", match[0]):
            continue  # English articles speak of syntheses and intermediates in the same words
        owner = re.split(r"[，,。；;、]", words[: match.start()])[-1].strip()
        if (
            owner
            and ctx.about_other(owner)
            and not re.fullmatch(r"其|本品|该物质|it|which", owner, re.IGNORECASE)
        ):
            continue
        if re.search(r"不(?:会|能|易)?$|not ", words[: match.start()][-6:]):
            continue
        start = sentence.start + match.start(group)
        drafts += [
            matter_draft(ctx, relation, item[0], item[1], (sentence.start, sentence.end), sentence.sds)
            for span in split_items(ctx, start, start + len(_FUMES.sub("", match[group])))
            if (item := item_of(ctx, span)) is not None
        ]
    return drafts


# "含有氰化氢、氮氧化物的有毒烟雾": what the fumes are of
_FUMES = re.compile(
    r"的?(?:有毒|剧毒|高毒|腐蚀性|刺激性|有害|和|、|与)*的?(?:烟雾|烟气|烟尘|气体|蒸气|混合物)$"
)
