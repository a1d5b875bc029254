"""Whether a list that is counted, given whole or denied on is whole in its document.

A list may be called complete by its line and still go on elsewhere: in a cell
beside it, in a sentence with "also" before or behind it, in another sentence of
the same section that names more of the kind. All of these speak against it; a
list in doubt gives no question.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from kg.qa.facts import Fact
from kg.schema import Relation

Span = tuple[int, int]

_SEPARATORS = re.compile(
    r"[\s、，,;；。./|()（）\[\]·•\-–—:：*+&]+|(?:以及|和|及|与|或|等)|分开存放|分储|切忌混储|隔离储存|隔离存放|分開存放|切忌混儲|\b(?:and|or|the|a|an|with|etc)\b",
    re.IGNORECASE,
)
CODE = re.compile(r"\b(?:EU)?[HP]\d{3}[A-Za-z]{0,2}\b|GHS0\d")
_CODED = frozenset({Relation.HAS_H, Relation.HAS_P, Relation.SHOWS_PICTOGRAM})


def list_is_whole(members: Sequence[Fact]) -> bool:
    """Whether nothing but the members belongs to their list, in its sentences or cells and in its section.

    Codes: all codes of the section are members. Words: after the label, the
    members' words and separators nothing is left, and no other sentence of the
    section speaks of the kind (of the whole text where the list is in no
    section of a data sheet or asks for names, which stand anywhere).
    """
    first = members[0]
    text = first.source.text
    spans = _stretches(text, members)
    anywhere = first.section is None or first.relation == Relation.HAS_ALIAS
    scope = (0, len(text)) if anywhere else _scope(text, spans, first.section)
    if first.relation in _CODED:
        known = {code for fact in members for code in CODE.findall(fact.object + " " + fact.words)}
        # codes of one kind: a list of H codes says nothing of P codes
        kind = {code[:1] for code in known}
        found = {code for code in CODE.findall(text[scope[0] : scope[1]]) if code[:1] in kind}
        return found <= known and all(set(CODE.findall(text[a:b])) <= known for a, b in spans)
    words = sorted({fact.words.strip() for fact in members if fact.words.strip()}, key=len, reverse=True)
    if not words or any(_residue(text[a:b], words) for a, b in spans):
        return False
    return not any(
        _MORE.search(sentence) or _speaks_of_more(sentence, first.relation)
        for sentence in _sentences(text, scope, spans)
    )


_BOUNDARY = re.compile(r"[\n。|]|\.(?=\s|$)")


def _stretches(text: str, members: Sequence[Fact]) -> list[Span]:
    """What the members' quotes cover on each line, out to the end of sentence or table cell on both sides.

    A semicolon is no boundary: it may stand between the items of a list.
    """
    covered: dict[int, Span] = {}
    for fact in members:
        line = text.rfind("\n", 0, fact.start) + 1
        start, end = covered.get(line, (fact.start, fact.end))
        covered[line] = (min(start, fact.start), max(end, fact.end))
    found = []
    for line in sorted(covered):
        start, end = covered[line]
        before = [match.end() for match in _BOUNDARY.finditer(text, line, start)]
        closed = end > 0 and _BOUNDARY.match(text, end - 1) is not None
        after = None if closed else _BOUNDARY.search(text, end)
        found.append(
            (before[-1] if before else line, end if closed else after.start() if after else len(text))
        )
    return found


_HEADING = re.compile(r"^(#{1,6}) [^\n]*\n?", re.MULTILINE)
# the label of a list ends with a mark or with the word that governs it
_LABEL = re.compile(
    r".*(?:[:：|]|应与|應與|避免与|避免接触|可用|使用|\bfrom\b|\bwith\b|\binclude\b|\buse\b|\bsuitable\b)",
    re.IGNORECASE | re.DOTALL,
)


def _residue(stretch: str, words: Sequence[str]) -> str:
    """What a stretch says beside its label and the members."""
    lowered = stretch.lower()
    first = min((at for word in words if (at := lowered.find(word.lower())) >= 0), default=len(stretch))
    # a heading above a list is its label too
    head, rest = _LABEL.sub("", _HEADING.sub("", stretch[:first])), stretch[first:]
    for word in words:
        rest = re.sub(re.escape(word), " ", rest, flags=re.IGNORECASE)
    return _SEPARATORS.sub("", head + " " + rest)


def _scope(text: str, spans: Sequence[Span], section: int | None) -> Span:
    """The section around a list.

    From the heading above it (a sub-heading's parent too) to the next of its rank, or, in tables
    whose rows begin with the number of their section, the rows with the number of the list's row.
    """
    start, end = spans[0][0], spans[-1][1]
    line = text.rfind("\n", 0, start) + 1
    if section is not None and _row_number(text, line) == section:
        return _rows(text, line, section)
    # a stretch that takes its own heading in begins with it
    above = [m for m in _HEADING.finditer(text, 0, end) if m.start() <= start]
    if not above:
        return (0, len(text))
    chosen = above[-1]
    for heading in reversed(above):
        if len(heading[1]) < len(chosen[1]) and len(chosen[1]) > _SECTION_RANK:
            chosen = heading
    rank = len(chosen[1])
    after = (m.start() for m in _HEADING.finditer(text, end) if len(m[1]) <= rank)
    return (chosen.start(), next(after, len(text)))


_SECTION_RANK = 2  # "## 10. Stability and reactivity"; what is below it is part of it
_ROW_NUMBER = re.compile(r"\|[ *]*(\d{1,2})(?!\d)")


def _row_number(text: str, line: int) -> int | None:
    """Number that a table row begins with ("| 10 | 10.2 …", "| 10.2 … |"), where it has one."""
    found = _ROW_NUMBER.match(text, line)
    return int(found[1]) if found else None


def _rows(text: str, line: int, section: int) -> Span:
    """The stretch of rows around a line that have this number, rows without a number among them."""
    first = end = line
    while first > 0:
        above = text.rfind("\n", 0, first - 1) + 1
        if text[above] != "|" or _row_number(text, above) not in {section, None}:
            break
        first = above
    while end < len(text) and text[end] == "|" and _row_number(text, end) in {section, None}:
        end = text.find("\n", end) + 1 or len(text)
    return (first, end)


_SENTENCE = re.compile(r"[^。；;！!?？\n.]+(?:\.(?=\S)[^。；;！!?？\n.]*)*")


def _sentences(text: str, scope: Span, spans: Sequence[Span]) -> Iterator[str]:
    """Sentences and table rows of a section, without headings and without what the list itself covers."""
    covered = [*spans, *((m.start(), m.end()) for m in _HEADING.finditer(text, *scope))]
    # the label cell in front of a list belongs to it
    for start, _ in spans:
        line = text.rfind("\n", 0, start) + 1
        if "|" in text[line:start]:
            covered.append((text.rfind("|", line, max(line, start - 1)) + 1, start))
    for match in _SENTENCE.finditer(text, *scope):
        parts = [match.span()]
        for a, b in covered:
            cut = ((left, min(right, a), max(left, b), right) for left, right in parts)
            parts = [part for p, q, r, s in cut for part in ((p, q), (r, s)) if part[0] < part[1]]
        for left, right in parts:
            if said := text[left:right].strip(" |\t"):
                yield said


_MORE = re.compile(
    r"[还也亦還]应?(?:应|應|须|須|要|需)?(?:避免|不得|不可|不能|禁止|与|與|包括)|此外|另外|除此之外|同时(?:应|須|须)?(?:避免|禁止)|同樣|同样"
    r"|\b(?:also|in addition|additionally|furthermore|moreover|further(?:more)?)\b",
    re.IGNORECASE,
)

_AGENT = (
    r"(?:泡沫|干粉|乾粉|二氧化碳|砂土|沙土|雾状水|霧狀水|直流水|水雾|水流|foams?|dry (?:chemical|powder)s?|"
    r"carbon dioxide|\bCO2\b|sand|water(?: spray| fog| mist| jets?)?|水)"
)
_PUT_OUT = r"(?:灭火|滅火|扑救|撲救|扑灭|extinguish|fight(?:ing)? (?:the )?fires?)"
_NOT = r"(?:禁|不可|不得|不宜|不能|不要|切勿|勿用|无效|無效|忌|unsuitable|not\b|never|avoid|no\b)"

# How a sentence speaks of more of a kind. What must not stand in it ("conditions to avoid") follows behind.
_CUES: dict[Relation, tuple[str, str]] = {
    Relation.INCOMPATIBLE_WITH: (
        r"禁配|禁忌物|不相容|不兼容|配伍|切忌|避免(?:与|與|接触|接觸)|(?:不得|不可|不能|禁止|忌)(?:与|與)|忌(?:水|酸|碱|氧)"
        r"|(?:与|與|遇|和)[^。；;\n]{1,40}(?:反应|反應|爆炸|燃烧|燃燒|作用|起火|着火|自燃)"
        r"|incompatib|\breact(?:s|ed|ing|ion|ions)?\b[^.;\n]{0,40}\bwith\b|avoid contact with|keep (?:it )?(?:away|apart) from"
        r"|(?:contact|mix(?:ed|ing|tures?)) with\b|attacks?\b|violent",
        r"(?:避免接触|避免接觸|应避免|應避免|需避免)的?(?:条件|條件)|不(?:会|會)?(?:与|與|发生|發生)[^。；;\n]{0,20}反[应應]|聚合|皮肤|眼睛|conditions? to (?:be )?avoid"
        r"|not react|\bskin\b|\beyes?\b|clothing",
    ),
    Relation.STORE_APART_FROM: (
        r"(?:分开|分開|隔离|隔離|分别|单独|單獨)(?:存放|储存|儲存|贮存|堆放|存储)?|混储|混儲|混存|混放|同储|同库|混合储存|混装"
        r"|(?:不得|不可|不能|禁止|避免|切忌)(?:与|與|和)|远离(?!火|热|熱|明火|高温|光|潮)"
        r"|(?:apart|separate(?:d|ly)?|segregat\w*|away|isolat\w*) from|store (?:with|near)|contact with",
        r"heat|ignition|open flame|sparks?|\bfire\b|direct sun|\blight\b|moisture|children|foodstuffs?|热源|火种|儿童|食品|皮肤|skin|eyes?",
    ),
    Relation.EXTINGUISHED_BY: (
        rf"(?:灭火剂|滅火劑|灭火介质|extinguishing (?:media|agents?))[^。；;\n]*{_AGENT}"
        rf"|{_PUT_OUT}[^。；;\n]*{_AGENT}|{_AGENT}[^。；;\n]*{_PUT_OUT}",
        rf"{_NOT}|冷却|冷卻|\bcool",
    ),
    Relation.NOT_EXTINGUISHED_BY: (
        rf"{_NOT}[^。；;\n]{{0,40}}{_AGENT}|{_AGENT}[^。；;\n]{{0,40}}(?:无效|無效|扩散|蔓延|unsuitable|not (?:be )?(?:used|effective)|spread)",
        r"下水道|水源|水体|河流|sewer|drain|surface water|ground ?water|waterways?",
    ),
    Relation.DECOMPOSES_TO: (
        r"(?:分解|受热|受熱|加热|加熱|热解)[^。；;\n]*(?:产生|產生|生成|放出|释放|釋放|产物|產物|为|成)"
        r"|decompos\w*[^.;\n]*(?:products?|produc|form|releas|emit|giv|yield|\bto\b|into)"
        r"|(?:products?|fumes?|gases?|vapou?rs?)\b[^.;\n]*\b(?:decompos|when heated|on heating)",
        r"分解温度|分解溫度|decomposition temperature|燃烧产物|combustion products|燃烧\(分解\)",
    ),
    Relation.BURNS_TO: (
        r"(?:燃烧|燃燒|着火|火灾|起火)[^。；;\n]*(?:产生|產生|生成|放出|释放|釋放|产物|產物)"
        r"|(?:combustion|burn\w*|fire)\b[^.;\n]*\b(?:products?|produc\w*|forms?|releas\w*|emits?|gives?|yields?)",
        r"防护|灭火|呼吸器|wear|protective|extinguish",
    ),
    Relation.HAS_COMPONENT: (
        r"组分|組分|成分|含有|含量|杂质|雜質|compositions?\b|components?\b|ingredients?\b|contain(?:s|ing)?\b|impurit",
        r"$^",
    ),
    Relation.HAS_ALIAS: (
        r"别名|別名|又称|又稱|俗称|俗稱|亦称|亦稱|也叫|又名|简称|商品名|同义|also (?:known|called|named)|synonyms?\b|trade names?\b|other names?\b",
        r"$^",
    ),
}  # fmt: skip
_COMPILED = {
    relation: (re.compile(cue, re.IGNORECASE), re.compile(but, re.IGNORECASE))
    for relation, (cue, but) in _CUES.items()
}


# what is said of almost every substance and names nothing of the kind
_NEUTRAL = re.compile(
    r"(?:可|能)?(?:与|與)空[气氣](?:混合|接触|接觸)?(?:可|能)?(?:混合)?(?:形成爆炸性混合物)?|遇(?:明火|火源|火种|火星|火|高热|高熱|热|光|静电|、|，|或)+"
    r"|(?:may |can )?forms? (?:an )?explosive mixtures? with air|explosive vapou?r[- ]air mixtures?",
    re.IGNORECASE,
)
_LABEL_ALONE = re.compile(
    r"[\d.\s*#|]*(?:禁配物|禁忌物|禁配物质|不相容的?物质|应避免接触的?(?:物质|物料)|(?:适用的?)?灭火(?:剂|介质|方法)|(?:有害)?(?:燃烧|分解)产物"
    r"|incompatible (?:materials|substances|products)|materials to avoid|(?:hazardous )?(?:de)?com(?:bustion|position) products"
    r"|(?:suitable |unsuitable )?extinguishing (?:media|agents)|(?:possibility of )?hazardous reactions|synonyms|别名)[\s:：*|]*",
    re.IGNORECASE,
)


def _speaks_of_more(sentence: str, relation: Relation) -> bool:
    """Whether a sentence beside the list speaks of its kind; whether it names only members is not told apart."""
    if relation not in _COMPILED or _LABEL_ALONE.fullmatch(sentence):
        return False
    cue, but = _COMPILED[relation]
    said = _NEUTRAL.sub(" ", sentence)
    return cue.search(said) is not None and but.search(said) is None
