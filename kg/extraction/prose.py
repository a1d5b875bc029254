"""Statements of running text about the subject: uses, appearance, explosive mixtures.

Each sentence must be about the subject (``focus``); what it says of something
else, or of nothing in particular, is left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from corpus.quantities import parse_quantities
from kg.extraction.context import Context
from kg.extraction.denial import denies_use
from kg.extraction.focus import Focus, focuses
from kg.extraction.model import Draft, Sentence
from kg.extraction.values import limits_of
from kg.schema import NodeLabel, Property, Relation, use_key


def statements(ctx: Context) -> list[Draft]:
    """All of them, sentence by sentence."""
    about = focuses(ctx)
    drafts: list[Draft] = []
    for sentence in ctx.reading.sentences:
        words = ctx.shadow(sentence.start, sentence.end)
        focus = about[sentence.start]
        if focus is Focus.OTHER:
            continue
        drafts += _uses(ctx, sentence, words, focus)
        drafts += _mixtures_with_air(ctx, sentence, words)
        if focus is Focus.OWN and not sentence.label:
            drafts += _appearance(ctx, sentence, words)
    return drafts


# --- uses ----------------------------------------------------------------------------------

_USE_HEADING = re.compile(r"用途|应用|\buses?\b|\bapplications?\b", re.IGNORECASE)
_USED_ZH = re.compile(
    r"(?<![不未勿])(?:可以?|也|还|亦|又|常|主要|广泛|大量|通常|一般|多)*(?:用于|用作|用做|应用于|用来)(?P<use>[^。;；]{2,120}?)"
    r"(?=[,，](?:也|还|亦|又|同时|并|可|主要|此外)|[。;；]|$)"
)
_USED_EN = re.compile(
    r"(?<!which )(?<!that )(?<!who )\b(?:is|are) (?:(?:also|widely|mainly|mostly|primarily|chiefly|commonly|often|extensively|largely|typically|sometimes) )*used "
    r"(?P<use>(?:as|in|for|to)\b.{3,400}?)(?=, (?:for example|such as|including|e\.g|which|where|because|but|although|consuming)|;|\.?\s*$)"
    r"|\b(?:main|major|dominant|principal|primary|chief|most important|largest) (?:uses?|applications?) of (?P<of>[^.,;]{2,40}?) (?:is|are) "
    r"(?P<main>(?:as|in|for|to|the)\b.{3,400}?)(?=, (?:for example|such as|including|which|consuming|with|accounting)|;|\.?\s*$)",
    re.IGNORECASE,
)


def _uses(ctx: Context, sentence: Sentence, words: str, focus: Focus) -> Iterator[Draft]:
    """USED_FOR from sentences in the present tense, and from the items of a list under a heading on uses."""
    on_uses = bool(_USE_HEADING.search(sentence.heading))
    if sentence.label and not on_uses:
        return
    found = False
    for match in _USED_ZH.finditer(words):
        if on_uses or focus is Focus.OWN:
            found = True
            yield from _use(ctx, sentence, match.start("use"), match["use"])
    for match in _USED_EN.finditer(words):
        group = "main" if match["main"] else "use"
        owner = match["of"]
        if (owner and not ctx.about_other(owner)) or (not owner and focus is Focus.OWN):
            found = True
            yield from _use(ctx, sentence, match.start(group), match[group])
    if on_uses and not found and _listed(ctx, sentence) and 3 <= len(words) <= 200 and not denies_use(words):
        yield from _use(ctx, sentence, 0, words)


def _listed(ctx: Context, sentence: Sentence) -> bool:
    """An item of a bulleted list that is no sentence of its own."""
    begin = ctx.reading.text.rfind("\n", 0, sentence.start) + 1
    words = ctx.shadow(sentence.start, sentence.end)
    bullet = re.fullmatch(r"\s*[-*•]\s+", ctx.reading.text[begin : sentence.start])
    return bool(bullet) and not re.search(r"\b(?:is|are|was|were|has|have)\b|是|[:：]", words, re.IGNORECASE)


# where the clause on the use ends: "…，本页介绍…", "…，但不可用于食品", "… but not as a fuel"
_NEXT_CLAUSE = re.compile(
    r"[,，](?=\s*(?:[但而却因故且并如若当可也还又不未无勿禁严切其它该本此对使被会能应须请常已与遇]|由于|所以|一般|通常|主要|在|[^,，。;；]{0,24}(?:是|有|为(?!原料)|介绍|可以|应当|需要|属于|具有|称|使用|必须|禁止|严禁|不得|不可|不能)))"
    r"|[,，]?(?:但|却|而不)(?=[^,，]{0,6}[不禁勿未])"
    r"|,? \b(?:but|however|whereas|although|though|yet)\b|,? (?:not|never|except)\b|,?(?: and,?)? (?:until|formerly|previously|once)\b|,? and (?=(?:is|are|was|were|has|have|had|can|could|may|must|should|will|not|never|does|do)\b)|, (?:it|this|they|these|he|she|we|you|do|does|keep|avoid|and (?:is|are|was|were|has|have|can|may|must|should|it|they))\b",
    re.IGNORECASE,
)


def _use(ctx: Context, sentence: Sentence, offset: int, words: str) -> Iterator[Draft]:
    stop = _NEXT_CLAUSE.search(words)
    kept = (words[: stop.start()] if stop else words).rstrip(" 。.,，;；")
    if kept.count("(") > kept.count(")"):
        kept = kept[: kept.rindex("(")].rstrip()
    if not kept:
        return
    start = sentence.start + offset
    text = ctx.text(start, start + len(kept))
    yield ctx.draft(
        Relation.USED_FOR, text, NodeLabel.USE, (sentence.start, sentence.end), key=use_key(text),
        properties={"text": text}, section=sentence.sds,
    )  # fmt: skip


# --- appearance ------------------------------------------------------------------------------

_STATE_ZH = r"(?:液体|固体|气体|晶体|结晶|粉末|颗粒|油状物|片状物|金属|针状物|块状物|膏状物|油状液体|结晶体)"
_COLOUR_ZH = r"(?:无色|白色|[^,，。;；为是呈的]{0,6}色|透明)"
_LOOKS = re.compile(
    rf"(?:为|是一种|是|呈)(?P<zh>{_COLOUR_ZH}[^,，。;；]{{0,10}}?{_STATE_ZH})(?=[,，。;；]|$)"
    r"|\b(?:is|are) an? (?P<en>(?:[a-z]+(?:-[a-z]+)?,? (?:and |to )?){0,3}(?:[a-z]+-)?(?:colou?rless|white|yellow(?:ish)?|red(?:dish)?|blue|green(?:ish)?|brown(?:ish)?|black|gr[ae]y(?:ish)?|silvery?|pale)\b(?:-[a-z]+)?"
    r"(?:,? (?:[a-z-]+,? (?:and |to )?){0,4}?)(?:liquid|solid|gas|powder|crystals|metal))\b",
    re.IGNORECASE,
)


def _appearance(ctx: Context, sentence: Sentence, words: str) -> Iterator[Draft]:
    """HAS_MEASUREMENT of appearance: colour and state in one phrase."""
    match = _LOOKS.search(words)
    if match is None or re.search(
        r"不(?:纯|洁)|杂质|工业品|impure|older|溶液|solution", words[: match.end()], re.IGNORECASE
    ):
        return
    group = "zh" if match["zh"] else "en"
    start = sentence.start + match.start(group)
    text = ctx.text(start, start + len(match[group]))
    yield ctx.draft(
        Relation.HAS_MEASUREMENT, text, NodeLabel.MEASUREMENT, (sentence.start, sentence.end),
        properties={"property": Property.APPEARANCE.value}, value={"text": text}, section=sentence.sds,
    )  # fmt: skip


# --- mixtures with air -------------------------------------------------------------------------

_WITH_AIR = re.compile(
    r"\bmixtures? of (?P<en>[\d.,]+\s?%?\s?(?:–|-|to|and)\s?[\d.,]+\s?(?:vol\.?\s?%|%\s?\(?(?:by volume|v/v|vol)?\)?)) (?:of )?(?P<en_name>[A-Za-z][\w -]{1,40}?) (?:with|in) air (?:is|are) explosive"
    r"|(?P<zh_name>[^,，。;；]{1,20}?)在空气中(?:的)?(?:含量|浓度|体积分数)(?:为|达|在)?(?P<zh>[\d.]+%?\s?[~–-]\s?[\d.]+%(?:\([^()]*\))?)[^,，。;；]{0,6}[,，]?[^,，。;；]{0,8}(?:爆炸)",
    re.IGNORECASE,
)


def _mixtures_with_air(ctx: Context, sentence: Sentence, words: str) -> Iterator[Draft]:
    """Both explosive limits from "mixtures of 1.7–10.6 vol% of pyridine with air are explosive"."""
    for match in _WITH_AIR.finditer(words):
        group = "zh" if match["zh"] else "en"
        if ctx.about_other(match[f"{group}_name"].strip()):
            continue
        if re.search(r"不|未|无|非|难|禁|勿", words[match.end("zh") : match.end()] if match["zh"] else ""):
            continue  # "2.5%~12.8%时不会爆炸"
        if match["zh"] and re.search(
            r"遇强|强火源|高能|加压|在[^,，]{1,10}下", match.string[match.end("zh") : match.end()]
        ):
            continue  # "10%~16%时遇强火源可爆炸": no limits but under that circumstance
        found = parse_quantities(match[group], dimension="percent")
        if (
            len(found) == 1
            and None not in {found[0].minimum, found[0].maximum}
            and found[0].minimum != found[0].maximum
        ):
            at = sentence.start + match.start(group)
            yield from limits_of(
                ctx,
                found[0],
                at,
                (sentence.start + match.start(), sentence.start + match.end()),
                sentence.sds,
            )
