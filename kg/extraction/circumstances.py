"""What stands before "does not react with …": under which circumstance the denial holds, in its own words.

"常温下浓硫酸使铁钝化，浓硫酸与金不反应" is two statements. What the first one says of
iron limits nothing of gold, but its "常温下" may reach as far as both, so that is kept: a
denial with a condition too many claims less, one with a condition too few is false. Where
it is not clear what the words before a denial are about, there is no denial.
"""

from __future__ import annotations

import re

from kg.extraction.context import Context

_STATE = re.compile(
    r"(?:\b(?:dry|moist|wet|pure|high-purity|liquid|liquefied|solid|molten|gaseous|anhydrous|fuming|highly|hot|cold|warm|(?:finely )?divided|powdered|metallic|bulk"
    r"|concentrated|dilute|(?:the|an?))\s*"
    r"|干燥的?|潮湿的?|纯净?的?|高纯度?的?|液态的?|固态的?|气态的?|熔融的?|无水|发烟|粉末?状?的?|块状的?|金属|冷的?|热的?|浓|稀)+$",
    re.IGNORECASE,
)
_PRONOUN = re.compile(
    r"(?:其|它|本品|本产品|该(?:物质|化合物|品|产品|气体|液体|金属|元素)|it\b|this\b|the (?:substance|compound|chemical|liquid|solid|gas|material|product|metal|element|acid|base)\b)",
    re.IGNORECASE,
)
# a part that is a circumstance whatever its verb ("铝表面有氧化膜时"), or by how it begins ("because of its oxide layer")
_ENDS_AS_ONE = re.compile(r"(?:时|下|前|后|情况|条件|与否)$")
_BEGINS_AS_ONE = re.compile(
    r"(?:即使|即便|纵使|哪怕|甚至|无论|不论|不管|因|由于|除非)"
    r"|(?:(?:not )?even|because|regardless|irrespective|whether or not|until|when|while|after|before|once|as long as|provided)\b",
    re.IGNORECASE,
)
# without a verb of its own: of "in air iron rusts" the iron is no circumstance
_MAY_BEGIN_ONE = re.compile(
    r"(?:due to|owing to|in|at|on|under|with|without|above|below|up to|for|upon|during)\b", re.IGNORECASE
)
_MAY_END_ONE = re.compile(
    r"(?:中|内|存在|常温|室温|高温|低温|加热|受热|外|℃|°C)$|\b(?:pure|dry|anhydrous|concentrated|dilute)$",
    re.IGNORECASE,
)
# the subject by its kind, in some state ("稀酸", "the dry gas")
_KIND = re.compile(
    r"(?:干燥的?|潮湿的?|纯净?的?|无水|浓|稀|冷|热)(?:酸|碱|液|溶液|气体|液体|品)"
    r"|(?:the )?(?:dry|moist|pure|anhydrous|concentrated|dilute|cold|hot) (?:acid|base|gas|liquid|solid|metal|product|solution)",
    re.IGNORECASE,
)
# what may reach beyond its own clause
_OF_HEAT = re.compile(
    r"常温|室温|低温|高温|加热|受热|℃|°C|\b(?:room|ambient|high|low|elevated|ordinary) temperatures?|heat(?:ed|ing)\b",
    re.IGNORECASE,
)
_STATEMENT = re.compile(
    r"溶于|生锈|锈蚀|互溶|混溶|溶解|比例|稳定|反应|腐蚀|作用|[易可自]燃|挥发|(?<![即纵])使|[令将]|钝化|氧化(?![剂物膜铝铁])|吸[收附水湿]|[生形]成|分解|聚合|活泼"
    r"|为|是|呈|具有|属于?|能|可|有(?![机毒效害])|无(?!水|机|论)"
    r"|\b(?:is|are|was|were|has|have|can|may|will|does|do|forms?|burns?|reacts?|reacted|attacks?|dissolves?|corrodes?|miscible|soluble|flammable|volatile|absorbs?|shows?|resists?|rusts?|melts?|boils?|decomposes?|passivates?|\w{3,}(?:izes|ises|ifies|idates|olyzes|olyses))\b",
    re.IGNORECASE,
)
_COMPARED = re.compile(
    r"^(?:(?:un)?like|in contrast to|compared (?:with|to)|similar to)\b|^(?:与|和|同|跟|不同于|类似于)[^,，]*(?:不同|相反|类似|相似|一样|相比)$|^(?:不同于|类似于)",
    re.IGNORECASE,
)
_JOINS = re.compile(
    r"^(?:(?:且|并且?|又|还|也|亦|同时|另外|此外|因此|所以|故)+|(?:(?:and|also|then|so|thus|therefore|hence)\b\s*)+)",
    re.IGNORECASE,
)
_PARTICLES = re.compile(
    r"(?:并且?|也|都|均|又|亦|而|但|既|却|仍|从|\s|\b(?:and|also|but|still)\b)+$", re.IGNORECASE
)
# "高纯铝对其稳定，与铝不反应": the condition is of what is met
_OF_THE_MET = re.compile(
    r"(?P<what>(?:高纯度?的?|纯净?的?|无水|干燥的?|致密的?|钝化的?|退火的?)(?P<name>[一-鿿]{1,8}?))对(?:其|它|本品|该品|该物质)(?:是)?(?:很|十分|非常)?稳定"
)
_TAIL = re.compile(
    r"(?:(?:即使|即便|纵使|哪怕|甚至|无论|不论|不管|仅|只)[^、]*|(?:[在于当缺]|没有|干燥|无水)[^、的]*(?:时|下|中|后|内|条件|情况)"
    r"|(?:常温|室温|高温|低温|加热|受热|共热)(?:的?(?:时|下|后|条件下|情况下))?)$"
)


def circumstances(ctx: Context, before: str, met: str, *, own: bool) -> dict[str, str] | None:
    """Conditions from the words before a denial with ``met``; None where it is doubtful what they are about.

    ``own``: the sentence is about the subject, so a pronoun in it is the subject's.
    """
    parts = [_PARTICLES.sub("", _JOINS.sub("", part.strip())).strip() for part in re.split(r"[,，]", before)]
    parts = [part for part in parts if part]
    said: list[str] = []
    named = pronoun = False
    while parts:
        part = parts[-1]
        if _COMPARED.match(part):
            parts.pop()
            continue
        if _says_more(ctx, part):
            break
        parts.pop()
        if _PRONOUN.fullmatch(part):
            if not own:
                return None
            pronoun = True
        elif ctx.about_other(part):
            at = _subject_at(ctx, part)
            kind = _KIND.fullmatch(part) is not None
            if at is None and not kind and not _like_one(part):
                return None
            named = named or kind or at is not None
            said.insert(0, part)
        else:
            named = True
    heated = any(_OF_HEAT.search(part) for part in said)
    led = _led(ctx, parts, met, named=named, pronoun=pronoun, own=own, heated=heated) if parts else []
    if led is None:
        return None
    when = ",".join([*led, *said])
    return {"when": when} if when else {}


def carried(ctx: Context, clause: str) -> str:
    """What a clause says of its subject before its verb ("常温下浓硫酸"): it holds on where the next leaves the subject out."""
    at = _subject_at(ctx, clause)
    if at is None:
        return ""
    prefix = clause[: at[1]].strip(" ,，")
    return prefix if ctx.about_other(prefix) and _lead_of(clause[: at[0]]) is not None else ""


def split_tail(words: str) -> tuple[str, str]:
    """Names of what is met, and the circumstance behind them ("氢即使加热", "水在常温下")."""
    found = _TAIL.search(words)
    if found is None or found.start() == 0:
        return words, ""
    return words[: found.start()], found[0]


def _like_one(part: str) -> bool:
    return bool(
        _ENDS_AS_ONE.search(part)
        or _BEGINS_AS_ONE.match(part)
        or _MAY_BEGIN_ONE.match(part)
        or _MAY_END_ONE.search(part)
    )


def _says_more(ctx: Context, part: str) -> bool:
    """Whether a part is a statement of its own and no circumstance."""
    if _ENDS_AS_ONE.search(part):
        return False
    at = _subject_at(ctx, part)
    if at is None:
        return not _BEGINS_AS_ONE.match(part) and bool(_STATEMENT.search(part))
    begins = _BEGINS_AS_ONE.match(part) or _BEGINS_AS_ONE.match(part[at[1] :])
    # a name is no verb, whatever its letters are ("氧化钙")
    return bool(_STATEMENT.search(part[at[1] :] if begins else f"{part[: at[0]]} {part[at[1] :]}"))


def _led(
    ctx: Context, parts: list[str], met: str, *, named: bool, pronoun: bool, own: bool, heated: bool
) -> list[str] | None:
    """What the statements before the denial's own clause leave valid for it; None where that is not clear.

    ``named``: the clause has a subject of its own, so that it takes over no other's state;
    ``heated``: it has a temperature of its own.
    """
    pure = _OF_THE_MET.fullmatch(parts[-1])
    if pure:
        alone = len(parts) == 1 and pure["name"] in re.split(r"[、或和及]", met)
        return [pure["what"]] if alone else None
    leads = []
    while not _says_more(ctx, parts[0]):
        part, *parts = parts
        of_subject = not ctx.about_other(part) or _subject_at(ctx, part) is not None
        if not of_subject and not _like_one(part):
            return None
        if ctx.about_other(part):
            leads.append(part)  # "常温下，浓硫酸使铁钝化，…"
        named = named or of_subject  # "Acetone, which is flammable, does not …"
    first = parts[0]
    if own and _PRONOUN.match(first):
        return None if not named and _OF_HEAT.search(first) else leads
    at = _subject_at(ctx, first)
    lead = _lead_of(first[: at[0]]) if at else None
    if at is None or lead is None:
        return leads if named and not _like_one(first) and not _OF_HEAT.match(first) else None
    if named:
        return [*leads, lead] if lead else leads
    if any(_OF_HEAT.search(words) for words in (first[at[1] :], *parts[1:])):
        # "浓硫酸在加热时溶解铜，与金不反应": does it hold for gold? "…, and it" is a new sentence
        return leads if pronoun and ctx.about_other(first[: at[1]]) is False else None
    again = heated and _OF_HEAT.search(lead) is not None  # "加热时丙酮溶于水，常温下与水不反应"
    prefix = first[len(lead) if again else 0 : at[1]].strip(" ,，")
    return [*leads, prefix] if ctx.about_other(prefix) else leads


def _lead_of(words: str) -> str | None:
    """The circumstance that stands before a subject and its state; None where the words are something else."""
    lead = _STATE.sub("", words).strip(" ,，")
    return lead if not lead or _like_one(lead) else None


def _subject_at(ctx: Context, words: str) -> tuple[int, int] | None:
    """Where the first of the subject's names stands."""
    low = words.lower()
    found = [
        (at, -len(name))
        for name in ctx.spellings
        if name and (at := low.find(name)) >= 0 and (not name.isascii() or _apart(low, at, at + len(name)))
    ]
    if not found:
        return None
    at, length = min(found)
    return at, at - length


def _apart(words: str, start: int, end: int) -> bool:
    return not (words[start - 1 : start].isalnum() and words[start - 1].isascii()) and not (
        words[end : end + 1].isalnum() and words[end].isascii()
    )
