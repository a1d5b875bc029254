"""Whom a sentence of running text is about: the document's subject, something else, or nobody it names.

"乙醚是常用的溶剂。其闪点为-45 ℃" on a page about carbon disulfide says nothing of
carbon disulfide, so a pronoun is followed back to the sentence that it stands for.
"""

from __future__ import annotations

import re
from enum import Enum

from kg.extraction.context import Context
from kg.extraction.model import Sentence
from kg.extraction.vocabulary import field_of


class Focus(Enum):
    """OWN: it names the subject, or continues a sentence that does. OTHER: it names something else. OPEN: neither."""

    OWN = "own"
    OTHER = "other"
    OPEN = "open"


_PRONOUN = re.compile(
    r"^(?:其|它|该(?:物质|化合物|品|产品|液体|气体|金属|元素)?|本(?:品|产品|物质)|此(?:物质|化合物)|纯品|产品|(?:常温|常压|室温)[^,，。]{0,6}?下?[,，]?(?=为|是|呈))"
    r"|^(?:it|its|this|these|(?:the|this) (?:pure |free |liquid |solid |molten )?(?:substance|compound|chemical|liquid|solid|gas|vapou?r|material|product|metal|element|acid|base|molecule))\b",
    re.IGNORECASE,
)
# what stands for the page's own subject where nothing else was named
_DEFINITE = re.compile(
    r"^(?:本(?:品|产品|物质)|该(?:物质|化合物|品|产品)|纯品|(?:the|this) (?:substance|compound|chemical|product)\b)",
    re.IGNORECASE,
)
_DETERMINED = re.compile(r"^(?:the|an?) [^,.;]{2,60}? (?:is|are|was|were|has|have|can|may)\b", re.IGNORECASE)
_CIRCUMSTANCE = re.compile(
    r"(?:时|下|中|后|前|上|内)$|存在|^(?:禁止|避免|严禁|切勿|防止|不得|应|须|可|主要|勿)"
)
# "与水不反应，但与硝酸…", "不与水反应": a predicate whose subject is left out
_NO_SUBJECT = re.compile(r"^(?:可能|能够?|会|易|不|并不|也不|均不|都不)*[与和跟遇](?!言)|^对水")
_NAMED_ZH = re.compile(
    r"^(?P<name>[一-鿿A-Za-z0-9α-ω,()'’·-]{1,24}?)(?:\([^()]*\))?(?:[,，](?:又称|俗称|也称|亦称)[^,，。]{1,20}[,，])?"
    r"(?:的[^,，。;；]{1,14}?(?:为|是|约|在|达)|是|为|属于|具有|可与|能与|会与|不与|与|遇|受热|受高热|燃烧|极?易(?:溶|燃|挥发|被)|不?溶于|微溶|难溶|主要用|广泛用|可?用作|可?用于|不会|应储存|应与|着火|对)"
)
_NAMED_EN = re.compile(
    r"^(?P<name>[A-Za-z0-9(][\w()\[\],'’+-]*(?: [\w()\[\]'’+-]+){0,4}?)(?:'s [a-z -]{3,30})?,? (?:\([^()]*\) )?"
    r"(?:is|are|was|were|has|have|had|boils|melts|reacts|burns|forms|does|do|can|may|might|will|decomposes|dissolves|ignites|also|undergoes)\b"
    # "Diphosgene, a liquid of density 1.65 g/cm3, is …", "Cumene, whose boiling point is 152 °C, gives …"
    r"|^(?P<apposed>(?!\w+ly,)[A-Za-z0-9(][\w()\[\]'’+-]*(?: [\w()\[\]'’+-]+){0,2}),? (?:\([^()]*\),? )?(?:(?<=, )(?:an?|one of|also known as)|whose|which|having)\b"
)
_NEUTRAL = re.compile(
    r"^(?:the|in|at|for|when|if|as|on|by|there|although|however|because|most|many|some|several|since|while|with|during|to|under|no|not|such|both|all|other|an?|like|unlike|contact|exposure|effects)\b",
    re.IGNORECASE,
)
# "Dry ammonia", "液态苯": the subject in some state
_QUALIFIED = re.compile(
    r"^(?:(?:dry|moist|pure|liquid|liquefied|solid|molten|gaseous|anhydrous|concentrated|dilute|commercial|crude|hot|cold|metallic)\s+|干燥的?|潮湿的?|纯净?的?|液态的?|固态的?|气态的?|熔融的?|浓|稀|工业)",
    re.IGNORECASE,
)
_OWN_PARTS = re.compile(r"^(?:蒸气|液体|气体|固体|晶体|粉末|粉尘|产品|成品|纯品|遇|受|在|与)$")


def focuses(ctx: Context) -> dict[int, Focus]:
    """The focus of every sentence, by where it starts."""
    found: dict[int, Focus] = {}
    state = Focus.OPEN
    before: Sentence | None = None
    for sentence in ctx.reading.sentences:
        gap = ctx.reading.text[before.end : sentence.start] if before else ""
        if before is None or before.heading != sentence.heading or gap.count("|"):
            state = Focus.OPEN
        elif "\n\n" in gap and state is Focus.OTHER:
            state = Focus.OPEN  # an aside ends with its paragraph
        words = ctx.shadow(sentence.start, sentence.end)
        here = opening(ctx, words)
        if here is None:
            found[sentence.start] = Focus.OTHER if state is Focus.OTHER else Focus.OPEN
            if state is Focus.OWN and _DETERMINED.match(words):
                state = Focus.OPEN  # "The blood urea nitrogen test is …": what "it" means next is open
        elif here is Focus.OPEN and state is Focus.OPEN and _DEFINITE.match(words):
            found[sentence.start] = Focus.OWN
        else:
            state = here if here is not Focus.OPEN else state
            found[sentence.start] = state
        before = sentence
    return found


def opening(ctx: Context, words: str) -> Focus | None:
    """What the first words of a sentence name; OPEN for a pronoun, None where they name nothing."""
    if _PRONOUN.match(words):
        return Focus.OPEN
    if _NO_SUBJECT.match(words):
        return None
    if _KIN.match(words):
        return Focus.OTHER  # "Isopropanol's ether, diisopropyl ether, has …"
    for name in sorted((n for n in ctx.spellings if n), key=len, reverse=True):
        if words.lower().startswith(name) and _whole(words[len(name) :]):
            return Focus.OWN
    chinese = re.match(r"[一-鿿]", words)
    match = _NAMED_ZH.match(words) if chinese else _NAMED_EN.match(words)
    name = next((words for words in match.groups() if words), "") if match else ""
    if not name or _OWN_PARTS.match(name) or (not chinese and _NEUTRAL.match(name)):
        return None
    if field_of(name) or _CIRCUMSTANCE.search(name):
        return None  # a property and no thing ("自燃温度为651 ℃")
    if not ctx.about_other(_QUALIFIED.sub("", name)):
        return Focus.OWN
    return Focus.OTHER if ctx.about_other(name) else Focus.OWN


_VERB = re.compile(
    r"^(?:'s\b|,|:|$| ?\([^()]*\),?| (?:itself|alone|also|and|or|is|are|was|were|has|have|had|can|could|may|might|must|should|will|does|do"
    r"|(?:re|inter)?act(?:s|ed)?|burns?|dissolves?|forms?|melts?|boils?|supports?|absorbs?|undergo(?:es)?|exhibits?|decomposes?|ignites?|occurs?|serves?"
    r"|behaves?|crystalli[sz]es?|freezes?|attacks?|corrodes?|mixes|evaporates?|polymeri[sz]es?|oxidi[sz]es?|hydroly[sz]es?|produces?|releases?|gives?"
    r"|shows?|possesses|contains?|causes?|irritates?|explodes?|sublimes?|condenses?|combines?|liberates?|emits?|appears?|tends?|readily|slowly|rapidly|easily|never|cannot|doesn't|not only)\b)",
    re.IGNORECASE,
)
_COMPOUND_ZH = re.compile(
    r"^(?:钠|钾|钙|胺|酸|酐|酮|醛|醇|酯|盐|酚|类|溶液|水溶液|衍生物|化合物|树脂|磺|基|腈|醚|烯|烷|肼|乙|甲|丙|丁|苯|的(?:水溶液|溶液|衍生物|混合物|盐|同系物))"
)


_KIN = re.compile(
    r"^[\w,()-]+'s? (?:[a-z]+ ){0,2}?(?:ethers?|esters?|salts?|dimers?|trimers?|isomers?|polymers?|monomers?|hydrates?|anhydrides?|oxides?|derivatives?|metabolites?|analog(?:ue)?s?|homolog(?:ue)?s?|precursors?|impurit(?:y|ies)|solutions?)\b"
    r"|^[一-鿿]{1,8}的(?:[一-鿿]{0,4}(?:盐|醚|酯|酐|醛|酮|胺|氧化物)|同系物|同分异构|异构体|二聚体|单体|聚合物|水合物|代谢|类似物|前体|原料|杂质)(?![一-鿿]{0,6}(?:反应|接触|剧烈))",
    re.IGNORECASE,
)


def _whole(rest: str) -> bool:
    """Whether the name ends here: "Cobalt compounds", "Urea labeled with …", "苯胺", "甲醇钠" name something else."""
    if re.match(r"[一-鿿]", rest):
        return not _COMPOUND_ZH.match(rest)
    if re.match(r"[\w-]", rest, re.ASCII) or re.match(r"\([IVX\d]+\)", rest):
        return False
    return bool(_VERB.match(rest)) or not re.match(r" ?[A-Za-z]", rest)
