"""What running text says that a substance reacts with, and what it does not react with.

A sentence may do both ("与水不反应，但与硝酸剧烈反应"), and speak of something else
between: each clause is judged with its own subject, its own negation and its own
circumstance. What is doubtful is left out; a denial never loses what limits it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from kg.extraction.circumstances import carried, circumstances, split_tail
from kg.extraction.clauses import clauses
from kg.extraction.context import Context
from kg.extraction.focus import Focus, focuses
from kg.extraction.matters import Span, alternatives, item_of, matter_draft, split_items
from kg.extraction.model import Draft, Sentence
from kg.extraction.owner import name_like
from kg.extraction.vocabulary import group_term
from kg.schema import Modality, Polarity, Relation


def reactions(ctx: Context) -> list[Draft]:
    """INCOMPATIBLE_WITH, stated and denied, from sentences about the subject."""
    about = focuses(ctx)
    drafts: list[Draft] = []
    for sentence in ctx.reading.sentences:
        focus = about[sentence.start]
        words = ctx.shadow(sentence.start, sentence.end)
        whose = _whose(ctx, words)
        drafts += _denied(ctx, sentence, words, focus, whose)
        if focus is not Focus.OTHER:
            drafts += _stated(ctx, sentence, words, focus, whose)
            drafts += _contact(ctx, sentence, words)
    return drafts


# --- whose clause it is ------------------------------------------------------------------

_LEAD = re.compile(
    r"^(?:(?:且|并且?|又|还|也|亦|同时|另外|此外|因此|所以|故|虽然?|尽管(?![^,，]*(?:热|温|[时下])[,，])|但是?|而|却|然而|不过)+[,，]?"
    r"|(?:(?:and|but|although|though|while|whereas|however|also|then|yet)\b[,\s]*)+)",
    re.IGNORECASE,
)
_NAMED_ZH = re.compile(
    r"([一-鿿A-Za-z0-9,()-]{1,14}?)(?=[的易极可能会与和跟不未遇受溶是为有具燃腐反很均都也在于])|([一-鿿]{2,12})$"
)
_NAMED_EN = re.compile(
    r"(?!(?:reacts?|does|do|did|is|are|was|may|can|could|will|would|must|should|never|not|with|even|only|\w+ly|when|if|at|in|on|under)\b)(?:the |an? )?([A-Za-z(][\w(),'-]*(?: [\w(),'-]+){0,3}?) (?:reacts?|does|do|did|is|are|was|may|can|could|will|would|must|should|burns|dissolves|decomposes|attacks|explodes|forms|never|has|have)\b",
    re.IGNORECASE,
)
_PRONOUN = re.compile(
    r"(?:it|this|which|that|they|there|(?:pure |dry |liquid |solid )?(?:substance|compound|chemical|liquid|solid|gas|vapou?r|material|product|metal|element))$",
    re.IGNORECASE,
)
_STATE = re.compile(
    r"^(?:(?:dry|moist|pure|liquid|solid|molten|gaseous|anhydrous|concentrated|dilute|hot|cold)\s+|干燥的?|潮湿的?|纯净?的?|液态的?|固态的?|气态的?|熔融的?|浓|稀)",
    re.IGNORECASE,
)

Owned = list[tuple[int, int, bool]]


def _whose(ctx: Context, words: str) -> Owned:
    """Spans of a sentence's clauses, each with whether it may be about what the sentence is about.

    What a clause names ("但乙醇与硝酸剧烈反应") holds for those behind it that name nothing.
    """
    owned: Owned = []
    own = True
    for at, (start, end) in enumerate(clauses(words)):
        part = words[start:end]
        lead = _LEAD.match(part.lstrip())
        bare = part.lstrip()[lead.end() :] if lead else part.lstrip()
        if at or lead:
            named = _named(bare)
            if named:
                name = _STATE.sub("", named)
                if not ctx.about_other(name):
                    own = True
                elif not re.search(r"[一-鿿]", name) or name_like(name) or group_term(name) is not None:
                    own = False
        owned.append((start, end, own))
    return owned


def _named(words: str) -> str:
    """What a clause opens with as its subject; "" for a pronoun or nothing."""
    if re.match(r"[一-鿿]", words):
        found = _NAMED_ZH.match(words)
        name = (found[1] or found[2] or "") if found else ""
        return "" if re.match(r"其|它|本品|该|此|与|和|遇|受|在|不|加热|常温|室温|高温", name) else name
    found = _NAMED_EN.match(words)
    return "" if found is None or _PRONOUN.match(found[1].strip()) else found[1].strip()


def _matter(ctx: Context, start: int, end: int) -> Iterator[tuple[Span, dict[str, str]]]:
    """The items of a list, alternatives ("发烟硝酸或其他强氧化剂") apart and without "other"."""
    for span in split_items(ctx, start, end):
        for left, right in alternatives(ctx, span):
            lead = re.match(r"\s*(?:其他|其它|other|any)\s*", ctx.shadow(left, right), re.IGNORECASE)
            part = ctx.trim(left + (lead.end() if lead else 0), right)
            item = item_of(ctx, part) if part else None
            if item and not _ANYTHING.fullmatch(ctx.shadow(*item[0])):
                yield item


# no matter of a name: "does not react with any material"
_ANYTHING = re.compile(
    r"(?:其他|其它|任何|多数|大多数|大部分|许多|一般|常见|所有)?的?(?:物质|化学品|物品|材料|化合物|东西)"
    r"|(?:any|most|many|all|other|common|the|these|those|such)*\s*(?:materials?|substances?|chemicals?|compounds?|anything|things?|them|it|these|those)",
    re.IGNORECASE,
)

# --- violent reactions --------------------------------------------------------------------

_STRONG_ZH = r"(?:剧烈|激烈|强烈|猛烈|爆炸性|爆炸|激烈的|剧烈的|强烈的|猛烈的)"
_STRONG_EN = r"(?:violently|vigorously|explosively|dangerously)"
_WHEN_EN = r"(?:only )?(?:when|if|at|above|under|unless|until|once|after|upon|on heating|on contact|in the presence|in contact)\b"
_VIOLENT = re.compile(
    rf"(?:^|[,，。;；:：、]|[^不未无])(?P<may>可能|可|会|能)?[与遇](?P<zh>(?:(?!与)[^。;；:：]){{1,60}}?)(?:等)?(?:接触|混合|相遇)?(?:时|后)?[,，]?(?P<may2>可能|可|会|能)?(?:迅速)?"
    rf"(?:(?:发生|起)?{_STRONG_ZH}(?:的)?(?:化学|氧化|放热|分解|聚合)*反应|(?:发生)?反应(?:十分|非常|极为|极其|很|较为)?(?:剧烈|激烈|猛烈|强烈))"
    rf"|\b(?P<may3>may |can |could )?(?:reacts? (?:very )?|(?<=\band )(?P<more>)){_STRONG_EN}(?: and \w+ly)? with (?P<en>[^.;:]{{2,200}}?)"
    rf"(?=,? (?:causing|producing|forming|giving|generating|releasing|resulting|to |which |and (?:may|can|is|are|causes|\w+ly with)|{_WHEN_EN})|[.;:]|$)",
    re.IGNORECASE,
)
# what a reaction needs, behind the names it is with ("与硝酸仅在加热时剧烈反应")
_NEEDS = re.compile(
    r"(?:仅|只)(?:有|能|会)?[^,，、]{1,16}$|(?:在|于|当)[^,，、在于]{1,12}$|(?:受热|加热|高温|共热|光照|遇热)$"
)
_HEATED = re.compile(r"([^,，。;；]*(?:时|下|条件下))[,，]?[^,，。;；]*$")
_NOT_BEFORE = re.compile(
    r"(?:不|未|无)\s*(?:会|能|易)?$|(?:\b(?:not|never|nor|neither|cannot|hardly|rarely|seldom)|n't)\s*(?:\w+ly )?(?:to )?$",
    re.IGNORECASE,
)


def _stated(ctx: Context, sentence: Sentence, words: str, focus: Focus, whose: Owned) -> Iterator[Draft]:
    """INCOMPATIBLE_WITH from "与强氧化剂剧烈反应", "reacts violently with …"; a mild reaction is no danger."""
    for begin, stop_at, own in whose:
        part = words[begin:stop_at]
        for match in _VIOLENT.finditer(part) if own else ():
            group = "zh" if match["zh"] else "en"
            if group == "en" and focus is not Focus.OWN and not _sheet(sentence):
                continue
            head = part[: match.start(group)].rstrip("与遇 ") if group == "zh" else part[: match.start()]
            if _NOT_BEFORE.search(head) or (match["more"] is not None and re.search(r"\bnot\b|n't", head)):
                continue
            yield from _violent(ctx, sentence, words, begin, match, group)


def _violent(
    ctx: Context, sentence: Sentence, words: str, begin: int, match: re.Match[str], group: str
) -> Iterator[Draft]:
    conditions = {}
    when = _HEATED.search(re.split(r"[。;；:：]", match.string[: match.start(group)])[-1])
    if group == "zh" and when:
        conditions["when"] = _LEAD.sub("", when[1].strip())
    behind = words[begin + match.end() :]
    later = re.match(rf",?\s*({_WHEN_EN}[^.;,]*)", behind, re.IGNORECASE)
    if later:
        kept = re.split(r"\s+(?:but|whereas|while|however)\b", later[1])[0]
        at = sentence.start + begin + match.end() + later.start(1)
        conditions["when"] = ctx.text(at, at + len(kept)).strip()
    start = sentence.start + begin + match.start(group)
    such = re.match(
        r"[^,，、;；()]*?(?:化学品|物质|化合物|substances|chemicals|materials)[,，]?(?:如|例如|such as|including)",
        match[group],
    )
    offset = such.end() if such else 0
    stop = len(match[group])
    needs = _NEEDS.search(match[group]) if group == "zh" else None
    if needs and needs.start() > offset:
        tail = re.match(r"(?:条件|情况)?[时下后]?", match.string[match.end(group) :])
        stop = needs.start()
        conditions["when"] = ctx.text(start + stop, start + needs.end() + (tail.end() if tail else 0))
    may = match["may"] or match["may2"] or match["may3"]
    for item in _matter(ctx, start + offset, start + stop):
        yield matter_draft(
            ctx, Relation.INCOMPATIBLE_WITH, item[0], {**item[1], **conditions}, (sentence.start, sentence.end),
            sentence.sds, Modality.MAY if may else Modality.IS,
        )  # fmt: skip


def _sheet(sentence: Sentence) -> bool:
    """In a data sheet's own section every unnamed subject is the sheet's."""
    return sentence.sds in {5, 7, 10}


_AVOID = re.compile(
    r"(?:避免|防止|禁止|严禁|切勿|勿)(?:使?其)?与(?P<zh>[^。;；,，]{1,60}?)(?:等)?(?:物质)?接触"
    r"|\bavoid (?:any )?contact with (?P<en>[^.;]{2,120})",
    re.IGNORECASE,
)


def _contact(ctx: Context, sentence: Sentence, words: str) -> Iterator[Draft]:
    """INCOMPATIBLE_WITH from "禁止与强碱接触", "Avoid contact with acids": classes of matter only, never skin or air."""
    for match in _AVOID.finditer(words):
        group = "zh" if match["zh"] else "en"
        start = sentence.start + match.start(group)
        for span in split_items(ctx, start, start + len(match[group])):
            item = item_of(ctx, span)
            if item and group_term(ctx.text(*item[0])) is not None:
                yield matter_draft(
                    ctx, Relation.INCOMPATIBLE_WITH, item[0], item[1],
                    (sentence.start + match.start(), sentence.start + match.end()), sentence.sds, Modality.MUST,
                )  # fmt: skip


# --- denied reactions ---------------------------------------------------------------------

_LIST_ZH = r"[一-鿿、A-Za-z]{1,24}?"
_END_EN = (
    r"(?=,? (?:and (?:is|are)|(?:not )?even|regardless|irrespective|no matter|whether|on heating|upon|after|during|in (?:the )?(?:air|cold|dark|bulk)|but|unless|except|when|at|under|below|above|if|until|without|provided|as long as|only|in the absence|however|though|although)\b"
    r"|,? and it\b|[.;:]|$)"
)
_NO_REACTION = re.compile(
    rf"(?:[与遇]|(?<!不)[和跟])(?P<zh>{_LIST_ZH})(?:持续)?(?:均|都|也|亦|皆|全)?(?:(?:不|不会|并不)(?:持续)?(?:发生|起)?(?:任何)?(?:化学|(?P<hard2>剧烈|激烈|猛烈|强烈|危险))?(?:的)?|无(?:任何)?(?:化学)?)反应(?![性物器])"
    rf"|不会?[与和跟](?P<zh2>{_LIST_ZH})(?:持续)?(?:发生|起)?(?P<hard>剧烈|激烈|猛烈|强烈|爆炸性|危险)?(?:的)?(?:化学)?反应(?![性物器])"
    rf"|(?:(?:does|do|will|did)(?: not|n['’]t) react|never reacts?)(?: (?P<hard3>{_STRONG_EN}))? with (?P<en>[^.;:]{{2,120}}?){_END_EN}"
    rf"|\breacts? (?:(?P<hard4>{_STRONG_EN}) )?(?:neither with|with neither) (?P<en2>[^.;:]{{2,120}}?){_END_EN}"
    rf"|^\s*(?P<elided>not) with (?P<en3>[^.;:]{{2,80}}?){_END_EN}",
    re.IGNORECASE,
)
_GROUPS = ("zh", "zh2", "en", "en2", "en3")
_HEDGED = re.compile(
    r"一般|通常|几乎|基本上?|大多|很少|极少|往往|不易|不容易|难以"
    r"|\b(?:generally|usually|normally|typically|mostly|mainly|rarely|hardly|seldom|almost|practically|virtually|essentially|ordinarily)\b",
    re.IGNORECASE,
)
# a denial of the denial, or a question: nothing is said for sure
_UNSURE = re.compile(
    r"并非|不是|是否|能否|会否|未必|不一定|不能(?:说|认为|保证)|难说|如果|假如|倘若|若(?!干)|\b(?:whether|if|unknown|unclear|uncertain|not (?:true|known|certain|clear|only|said)|no evidence)\b",
    re.IGNORECASE,
)


def _denied(ctx: Context, sentence: Sentence, words: str, focus: Focus, whose: Owned) -> list[Draft]:
    """An explicit negative. What it holds under ("常温下", "dry") is kept as its condition."""
    drafts: list[Draft] = []
    held: dict[str, str] = {}  # "常温下与水不反应，与乙醇也不反应"
    for at, (begin, stop, own) in enumerate(whose):
        part = words[begin:stop]
        for match in _NO_REACTION.finditer(part) if own else ():
            group = next(name for name in _GROUPS if match[name])
            conditions = _under(ctx, words, begin, match, whose[:at], focus if not drafts else Focus.OWN)
            if conditions is None:
                continue
            conditions = _behind(ctx, sentence, words, whose[at:], match, group, conditions)
            names, tail = split_tail(match[group]) if group in {"zh", "zh2"} else (match[group], "")
            if tail:  # "与氢即使加热也不反应"
                limits = [conditions[key] for key in ("when",) if key in conditions]
                conditions = {**conditions, "when": ",".join([*limits, tail])}
            if "when" not in conditions:
                conditions = {**held, **conditions}
            held = {"when": conditions["when"]} if "when" in conditions else {}
            hard = next((match[name] for name in ("hard", "hard2", "hard3", "hard4") if match[name]), "")
            if match["elided"]:  # "reacts violently with nitric acid, but not with water"
                said = re.findall(rf"\b{_STRONG_EN}\b", words[:begin], re.IGNORECASE)
                if not said or not re.search(r"\breacts? [^.;]*$", words[:begin]):
                    continue
                hard = said[-1]
            if hard:  # what is denied is a violent reaction, not any
                conditions = {**conditions, "note": hard}
            start = sentence.start + begin + match.start(group)
            clause = (
                sentence.start + begin + match.start() if group in {"zh", "zh2"} else sentence.start,
                sentence.end,
            )
            evidence = (sentence.start, sentence.end) if conditions else clause
            drafts += [
                matter_draft(
                    ctx, Relation.INCOMPATIBLE_WITH, item[0], {**item[1], **conditions}, evidence, sentence.sds,
                    polarity=Polarity.NEGATIVE,
                )
                for item in _matter(ctx, start, start + len(names))
            ]  # fmt: skip
    return drafts


def _under(
    ctx: Context, words: str, begin: int, match: re.Match[str], earlier: Owned, focus: Focus
) -> dict[str, str] | None:
    """What stands before a denial as its circumstance; None where it is doubtful or of something else."""
    head = match.string[: match.start()]
    if _HEDGED.search(match[0]) or _HEDGED.search(head) or _UNSURE.search(head):
        return None  # "与水一般不反应" denies nothing for sure
    # reactions told before are no circumstance of this one
    told = any(_NO_REACTION.search(words[a:b]) or _VIOLENT.search(words[a:b]) for a, b, _ in earlier)
    before = re.split(r"[；;:：]", head if told else words[: begin + match.start()])[-1].strip(" ,，使")
    before = _LEAD.sub("", before)
    if focus is Focus.OTHER and (not before or told):  # a clause of its own needs its own subject
        return None
    if focus is Focus.OWN and re.fullmatch(r"(?:it|the \w+|其|它)", before, re.IGNORECASE):
        return {}
    found = circumstances(ctx, before, _met_of(match), own=focus is Focus.OWN)
    if found == {} and told:  # "浓硫酸与铜剧烈反应，与金不反应"
        taken = [words for a, b, own in earlier if own and (words := carried(ctx, words[a:b]))]
        return {"when": taken[-1]} if taken else {}
    return found


def _met_of(match: re.Match[str]) -> str:
    return next(match[name] for name in _GROUPS if match[name])


def _behind(
    ctx: Context,
    sentence: Sentence,
    words: str,
    whose: Owned,
    match: re.Match[str],
    group: str,
    conditions: dict[str, str],
) -> dict[str, str]:
    """The conditions of a denial with what the words behind it say of when it holds."""
    begin, stop, _ = whose[0]
    at = begin + match.end()
    end = stop
    if not words[at:stop].strip(" ,，"):  # the next clauses, but for those on other matter
        rest = whose[1:]
        while rest and (not rest[0][2] or _of_other_matter(words[rest[0][0] : rest[0][1]], match[group])):
            at = rest[0][1]
            rest = rest[1:]
        end = len(words)
    later = _limited_behind(words[at:end], match[group])
    if later is None:
        return conditions
    said = ctx.text(sentence.start + at + later[0], sentence.start + at + later[1])
    if "when" not in conditions:
        return {**conditions, "when": said}
    if not re.match(r"但|而|然而|不过|but\b|however\b", said, re.IGNORECASE):
        return {**conditions, "note": said}  # "常温下不与水反应，除非有酸存在"
    return conditions


_MET = re.compile(
    r"[与和跟遇](?P<zh>[^,，。;；]{1,40}?)(?:时|后)?(?:均|都|也|不|可|能|会|发生|起|剧烈|激烈|猛烈|强烈|爆炸性|无)*反应"
    r"|(?:\b(?:reacts?(?: \w+ly)?|not)(?: and \w+ly)?\s+|^\s*)with (?P<en>[^.;]+)",
    re.IGNORECASE,
)


def _of_other_matter(clause: str, denied: str) -> bool:
    """Whether a clause tells of reactions with other matter than what is denied ("但与硝酸剧烈反应")."""
    met = [found["zh"] or found["en"] for found in _MET.finditer(clause)]
    parts = [part.strip() for part in re.split(r"[、,或和及]|\b(?:or|and|nor|with)\b", denied)]
    return bool(met) and not any(part and part in words for part in parts for words in met)


# what limits a "does not react" from behind ("除非有酸存在", "（常温）", "but decomposes slowly above 200 °C")
_LIMITS_IT = re.compile(
    r"\s*\((?P<bracket>[^()]+)\)"
    r"|\s*[,，;；]?\s*(?P<even>(?:即使|即便|纵使|哪怕|甚至|无论|不论|不管)[^,，。;；\n]*(?:[,，](?:也|都|亦|仍|均)[^,，。;；\n]*)?)"
    r"|\s*[,，;；]?\s*(?P<zh>(?:除非|除了?|但|然而|不过|可是|而|仅|只|若|如|当|直[到至]|一旦|前提|条件|以|限于?|适用于|在|于)[^。;；\n]*)"
    r"|\s*[,，;；]?\s*(?P<later>(?:[^,，。;；\n]{0,8}(?:加热|受热|遇热|高温|升温|常温|室温|低温|℃|潮湿|催化|[时下中后内])[^,，。;；\n]*)(?:[,，][^,，。;；\n]*(?:反应|分解|水解|作用|生成|产生)[^,，。;；\n]*)?)"
    r"|,?\s*(?P<en>(?:(?:not )?even|regardless|irrespective|no matter|whether|on heating|upon|after|during|in (?:the )?(?:air|cold|dark|bulk)|unless|except|when|at|under|below|above|if|until|without|provided|as long as|only|in the absence)\b[^.;,]*)"
    r"|[,;]?\s*(?P<but>(?:but|however|though|although|while)\b[^.;]*)",
    re.IGNORECASE,
)
_OF_ANOTHER = re.compile(
    r"(?:但是?|而|然而|不过|可是)[,，]?(?:可以?|能够?|会|也|却|易|极易)*(?:剧烈|缓慢|激烈)?(?:[与和跟同遇](?P<zh>[一-鿿A-Za-z]{1,12})|(?:腐蚀|溶于|溶解|不?溶于)(?P<in>[一-鿿]*))"
    r"|(?:but|however|while|though|although),?\s*(?:it\s+)?(?:(?:does|will|can|may|readily|rapidly|slowly|vigorously|violently)\s+)*(?:(?:reacts?|interacts?)\s+(?:\w+ly\s+)?with|attacks?|dissolves?(?: in)?|corrodes?)\s+(?P<en>[^.;,]+)",
    re.IGNORECASE,
)

# the same in a clause with a subject of its own ("潮湿的氨腐蚀铜"); "the metal" may be what is denied
_ELSEWHERE = re.compile(
    r"(?:[与和跟同遇]([^,，。;；]{1,12}?)(?:剧烈|激烈|强烈|缓慢|发生)*反应|(?:腐蚀|溶解)([^,，。;；]{1,16}))"
)
_ANY_MET = re.compile(r"金属|材料|物质|它|两者|二者")


def _limited_behind(behind: str, denied: str) -> tuple[int, int] | None:
    """Where the words behind a denied reaction say when it holds, or when it does not; None where they say nothing.

    What they say of other matter ("不与水反应，但与氯仿剧烈反应") limits nothing.
    """
    found = _LIMITS_IT.match(behind)
    if found is None:
        return None
    group = next(name for name in ("bracket", "even", "zh", "later", "en", "but") if found[name] is not None)
    other = (_ELSEWHERE.search if group == "later" else _OF_ANOTHER.match)(found[group])
    met = next((words for words in other.groups() if words), "") if other else ""
    if (
        met
        and not _ANY_MET.search(met)
        and not any(part and part in met for part in re.split(r"[、或和及]|\b(?:or|and)\b", denied.strip()))
    ):
        return None
    start, end = found.span(group)
    return start, end - (len(found[group]) - len(found[group].rstrip(" ,，")))
