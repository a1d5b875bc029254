"""Whether the page takes back what a draft states: one judge for every rule, over the whole clause of the evidence.

A rule cuts its quote to the code or the value; "does not apply", "除外" or
"时不会爆炸" may stand beside it. What a clause denies, prohibits, excepts or
withdraws is no positive statement, so in doubt the draft is refused.
"""

from __future__ import annotations

import re

from kg.extraction.model import Draft
from kg.extraction.vocabulary import COMMA, shadow
from kg.schema import NodeLabel, Polarity, Relation

_REACH = 400
VALUED = frozenset({NodeLabel.MEASUREMENT, NodeLabel.EXPOSURE_LIMIT, NodeLabel.TOXICITY})
CODED = frozenset({Relation.HAS_H, Relation.HAS_P})
_LISTED = frozenset(
    {
        Relation.INCOMPATIBLE_WITH, Relation.DECOMPOSES_TO, Relation.BURNS_TO, Relation.EXTINGUISHED_BY,
        Relation.STORE_APART_FROM, Relation.HAS_COMPONENT, Relation.MEMBER_OF,
    }
)  # fmt: skip
_NAMED = frozenset(
    {
        Relation.CLASSIFIED_AS,
        Relation.SHIPPED_AS,
        Relation.SHOWS_PICTOGRAM,
        Relation.REGULATED_BY,
        Relation.HAS_ALIAS,
    }
)

# --- words that deny ---------------------------------------------------------------

# bounds are no denials: "不低于56 ℃", "should not exceed 5 ppm"
_BOUND = re.compile(
    r"不(?:宜|得|应|能|可|要|应当|允许)?(?:低于|小于|少于|高于|超过|大于|多于|足)"
    r"|\b(?:not|no|n't|cannot) (?:be )?(?:exceed(?:ing|ed)?|to exceed|above|over|more than|higher than|greater than|in excess of|below|under|less than|lower than|fewer than)"
    r"|\bnot only\b|不仅|不只|不但|不论|无论|不管",
    re.IGNORECASE,
)
_NOT_ZH = (
    r"不(?!锈|饱和|燃|溶|挥发|定|同|等|良|明|断|纯|相溶|互溶|混溶|稳定|易|可逆)|未(?!知|来|燃|成年|开封)|禁|勿|(?<!若)(?<!除)并?非(?!常|离子|极性|金属|均|特异|电解|晶|甾)"
    r"|没有|无(?!水|色|机|味|臭|毒|论|菌|规|烟|铅|数据|资料)|很少|极少|罕|停止|避免|忌|除(?!尘|去|水|湿|臭|锈|油|草|虫|痛|外|了)"
)
_NOT_EN = r"\b(?:not|never|neither|nor|cannot|without|none|except(?:ing)?|excluding|unless|rarely|seldom|hardly|unlike)\b|n't\b|\bno(?![.:]|\s?\d)\b"
_NOT = re.compile(f"{_NOT_ZH}|{_NOT_EN}", re.IGNORECASE)
# values that are given as wrong or past
_PAST = re.compile(
    r"过去|曾|以前|旧|原先|误[为作]|废止|作废|撤销|\b(?:once|formerly|previously|originally|wrongly|erroneously|incorrectly|vacated|withdrawn|revoked|obsolete|superseded|retracted|outdated)\b",
    re.IGNORECASE,
)
_WITHDRAWN = (
    r"有误|错误|不正确|不可靠|作废|废止|撤销|撤回|取消|更正|停用|已?被取代|除外|不适用|不再|不成立|未采用"
    r"|\bwithdrawn|revoked|vacated|rescinded|repealed|cancel+ed|superseded|obsolete|deleted|retracted|no longer|incorrect|\bwrong\b|erroneous|outdated|\bexcepted\b|\bexcluded\b"
    r"|(?:does|do|did) not (?:apply|hold|flash|ignite|burn|explode|occur|meet)|not (?:applicable|valid|relevant|correct|reliable|confirmed)"
)
_VALUE_AFTER = re.compile(
    rf"{_WITHDRAWN}|不(?:会|能|可能|至于|致)?(?:被)?(?:发生|引起|产生)?(?:爆炸|燃|闪|沸|熔|自燃|着火|引爆|点燃|死)|不会|未(?:见|发现|发生|观察|燃|闪|检|引|出现|死)|无(?:闪|效|意义|死亡|爆炸|着火)"
    r"|\b(?:is|are|was|were|has|have|does|do|did|will|would|can|could)(?: not|n't)\b|\bno (?:flash|ignition|deaths?|effects?|mortality|explosion)\b|\bnon-?flammable\b",
    re.IGNORECASE,
)
_ITEM_AFTER = re.compile(
    rf"{_WITHDRAWN}|不需要|无需|不要求|不必|未列入|未列为|不属于|不是|已?删除|不符合|未分类|不分类|不存在"
    r"|\b(?:is|are|was|were|has been|have been)(?: not|n't) (?:applicable|required|classified|assigned|listed|needed|relevant|included|known|present|shown)|\bnot (?:applicable|required|classified|assigned|listed|needed|included|shown)|\bremoved\b",
    re.IGNORECASE,
)
# what is said of one item alone, not of those before it
_NO_NEED = re.compile(
    r"不必|不需|无需|无须|不用(?!于)|没有必要|\b(?:need not|needn't|no need|not (?:need|needed|necessary|required|have to))\b",
    re.IGNORECASE,
)
_SINGULAR = re.compile(r"\b(?:does|is|was|has|excepted|excluded)\b|除外", re.IGNORECASE)
BUT = re.compile(r"\b(?:but|however|rather|instead)\b|但|而是|而为|而属于|而应|仍", re.IGNORECASE)

HARD = re.compile(r"[\n|。;；!?！？]|<br\s*/?>|(?<=[a-z]{4})\.\s+(?=[A-Z(])|(?<=[)%\d])\.\s+(?=[A-Z])")
_CODE = re.compile(r"(?:EUH|[HP])\d{3}[A-Za-z]{0,2}(?:\s*\+\s*[HP]?\d{3}[A-Za-z]{0,2})*")
_FILLER = re.compile(
    r"\b(?:carry|carries|longer|subject|ADR|have|has|bear|applicable|classified|assigned|required|listed|needed|as|for|with|to|the|be|been|meet|meeting|meets|criteria|of|hazard|statements?|codes?|category|cat|an?|any|is|are|and|or|in|also)\b"
    r"|分类为|归类为|列为|列入|要求|需要|被|包括|具有|包含|含有?|带|适用于?|为|于|的|符合|满足|标准|条件|类别?|在|内|属于|是|危险性?说明|防范说明|和|及|与|或|等|分|归|列",
    re.IGNORECASE,
)
_NOT_CLASSED = re.compile(
    r"\bnot (?:be )?(?:classified|applicable|assigned|meet|meeting|fulfil\w*|includ\w+|contain\w*|cover\w*|comprise\w*)\b|不属于|不符合|不满足|未(?:被)?(?:归|分|列)|不适用|不列|不包括|不含|未包括",
    re.IGNORECASE,
)
_DENIED_LIST = re.compile(
    rf"(?:{_NOT_ZH}|{_NOT_EN})[^:：。;；|\n]{{0,60}}[:：](?P<rest>[^:：|\n。]*)$", re.IGNORECASE
)
_CONFUSED = re.compile(
    r"不同于|有别于|区别于|混淆|混为|误(?:称|作|为)|不(?:是|可|得|应|要|能)|并非|\b(?:not|unlike|never|different from|distinct from|confused|distinguished)\b",
    re.IGNORECASE,
)
_NO_USE = re.compile(
    rf"{_NOT_ZH}|曾|过去|以前|历史上|淘汰|限制|取代|{_NOT_EN}|\b(?:formerly|previously|historically|once|banned|prohibited|forbidden|discontinued|obsolete|prevent(?:ed)? from)\b",
    re.IGNORECASE,
)


def taken_back(draft: Draft, text: str) -> bool:
    """Whether the page's words around a positive draft deny, except, prohibit or withdraw it."""
    if draft.polarity is not Polarity.POSITIVE:
        return False
    left, right = max(0, draft.start - _REACH), min(len(text), draft.end + _REACH)
    plain = shadow(text[left:right])
    quote = (draft.start - left, draft.end - left)
    found = anchors(draft, plain, quote)
    return any(_denied_at(draft, plain, quote, anchor) for anchor in found)


def anchors(draft: Draft, plain: str, quote: tuple[int, int]) -> list[tuple[int, int]]:
    """Where the object stands in the quote; the last place for a value that a label repeats."""
    words = plain[quote[0] : quote[1]]
    wanted = shadow(draft.object).strip()
    if draft.relation is Relation.SHIPPED_AS:
        wanted = re.sub(r"\D", "", wanted)
    if draft.relation in CODED:
        code = _CODE.match(words)
        if code:
            return [(quote[0], quote[0] + code.end())]
    spots = [m.span() for m in re.finditer(re.escape(wanted), words, re.IGNORECASE)] if wanted else []
    if not spots:
        return []
    spots = spots[-1:] if draft.object_label in VALUED else spots[:1]
    return [(quote[0] + a, quote[0] + b) for a, b in spots]


def _denied_at(draft: Draft, plain: str, quote: tuple[int, int], anchor: tuple[int, int]) -> bool:
    begin = max((m.end() for m in HARD.finditer(plain, 0, anchor[0])), default=0)
    stop = next((m.start() for m in HARD.finditer(plain, anchor[1])), len(plain))
    before, after = plain[begin : anchor[0]], plain[anchor[1] : stop]
    if draft.object_label in VALUED:
        return bool(
            draft.value.get("unit")
            or draft.value.get("min") is not None
            or draft.value.get("max") is not None
        ) and (_value_denied(before, after))
    if draft.relation in CODED:
        return _code_denied(before, after, plain[max(0, plain.rfind("\n", 0, anchor[0])) : anchor[0]])
    if draft.relation in _NAMED:
        return _name_denied(draft, before, after, plain[max(0, plain.rfind("\n", 0, anchor[0])) : anchor[0]])
    if draft.relation is Relation.USED_FOR:
        return _use_denied(before, plain[anchor[0] : anchor[1]])
    if draft.relation in {Relation.STORE_APART_FROM, Relation.REQUIRES_PPE} and _NO_NEED.search(
        _segment_before(before)
    ):
        return True
    if draft.relation is Relation.NOT_EXTINGUISHED_BY:  # "并非不能用水", "不得使用二氧化碳以外的灭火剂"
        return bool(
            re.search(r"(?:并非|不是|并不是)(?:不|禁)[^,，]*$", before)
            or re.match(r"\s*(?:以外|之外|除外)", after)
        )
    if draft.relation in _LISTED:
        return _item_denied(draft, plain, begin, before, after)
    return False


def _segment_before(words: str) -> str:
    cut = max((m.end() for m in COMMA.finditer(words)), default=0)
    return words[cut:]


def segment_after(words: str) -> str:
    """Up to the next comma or list mark outside brackets."""
    depth = 0
    for index, char in enumerate(words):
        depth += (char in "([") - (char in ")]")
        if depth <= 0 and (char == "、" or COMMA.match(words, index)):
            return words[:index]
    return words


def _value_denied(before: str, after: str) -> bool:
    near = _segment_before(before)
    plain = BUT.split(_BOUND.sub(" ", near))[-1]
    plain = re.sub(r"\([^()]*\)", " ", plain)
    return bool(
        _NOT.search(plain)
        or _PAST.search(plain)
        or _VALUE_AFTER.search(_BOUND.sub(" ", segment_after(after)))
    )


def _code_denied(before: str, after: str, line: str) -> bool:
    if _listed_as_denied(line) or after_codes(after):
        return True
    near = BUT.split(before)[-1]
    if _PAST.search(_segment_before(near)):
        return True
    for match in _NOT.finditer(near):
        rest = _FILLER.sub(" ", _CODE.sub(" ", near[match.end() :]))
        if not re.search(r"[A-Za-z一-鿿\d]", rest):
            return True
    if _NOT_CLASSED.search(re.sub(r"\([^()]*\)", " ", near)):
        return True
    opened = re.search(r"([^()]*)\(\s*$", near)
    said = _segment_before(opened[1]) if opened else ""
    return bool(_NOT_CLASSED.search(said) or re.search(r"\bno longer\b", said, re.IGNORECASE))


def _listed_as_denied(line: str) -> bool:
    """ "Not classified: Acute Tox. 4, Skin Corr. 1B": what stands behind a label that denies."""
    match = _DENIED_LIST.search(line)
    return bool(match) and not BUT.search(match["rest"] if match else "")


def after_codes(after: str, words: re.Pattern[str] = _ITEM_AFTER) -> bool:
    """What is said behind a code, or behind the codes that follow it ("H302 and H312 do not apply")."""
    chain = re.match(rf"(?:[\s,，、/]|和|及|与|或|and\b|or\b|{_CODE.pattern})*", after)
    passed = chain[0] if chain else ""
    rest = after[len(passed) :]
    following = _CODE.search(rest)
    said = words.search(rest[: following.start()] if following else rest)
    if re.match(r"\s*(?:not?|否|不)\s*(?:[.,;，。；]|$)", rest, re.IGNORECASE):
        return True  # "P273 is recommended, P405 not"
    if not said:
        return False
    joined = not _CODE.search(passed) or re.search(r"和|及|与|\b(?:and|or)\b", passed)
    return bool(joined or not _SINGULAR.search(said[0]))


def _name_denied(draft: Draft, before: str, after: str, line: str) -> bool:
    behind = segment_after(after)
    if draft.relation is Relation.HAS_ALIAS:
        return bool(_CONFUSED.search(BUT.split(before)[-1]))
    if _ITEM_AFTER.search(behind) or _listed_as_denied(line):
        return True
    near = BUT.split(before)[-1]
    if draft.relation is Relation.CLASSIFIED_AS:
        return bool(
            _NOT_CLASSED.search(near)
            or _PAST.search(near)
            or re.search(r"\bno longer\b", near, re.IGNORECASE)
            or re.search(r"不是|并非|没有|除(?!了)|\b(?:not|except|excluding|without)\b", near, re.IGNORECASE)
        )
    near = near[-30:]
    return bool(_NOT.search(_segment_before(near)))


def _use_denied(before: str, use: str) -> bool:
    near = _BOUND.sub(" ", BUT.split(_segment_before(before))[-1])
    if _NO_USE.search(near):
        return True
    return bool(
        re.search(
            rf"^(?:{_NOT_ZH})|禁止|严禁|不得|不可|不能|不宜|切勿|\b(?:not|never|no longer|except|excluding|other than|prohibited|forbidden)\b",
            use,
            re.IGNORECASE,
        )
    )


def denies_use(words: str) -> bool:
    """Whether a part of a list of uses prohibits, withdraws or restricts one ("以前用作麻醉剂", "not for food")."""
    return bool(_NO_USE.search(_BOUND.sub(" ", words)))


def _item_denied(draft: Draft, plain: str, begin: int, before: str, after: str) -> bool:
    near = BUT.split(before)[-1]
    if re.search(r"除外|\b(?:excepted|excluded)\b", segment_after(after), re.IGNORECASE) and not re.match(
        r"\s*\([^()]*除外\)", after
    ):
        return True
    if re.search(
        r"除(?!尘|去|水|湿|臭|锈|油|外|草|虫)[^,，外]*$|\b(?:except(?: for)?|excluding|other than|(?<!keep )(?<!kept )(?<!store )(?<!stored )apart from|neither|nor|none)\b",
        near,
        re.IGNORECASE,
    ):
        return True
    labelled = re.search(
        r"(?:^|[;；\n|。])\s*(?:not|non|except|无|非|不含|不包括|不与|不是)\s*[:：][^:：;；|\n]*$",
        plain[max(0, begin - 2) : begin] + near,
        re.IGNORECASE,
    )
    return bool(labelled)
