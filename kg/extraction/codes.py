"""Identity and classification: names, numbers, GHS classes, H and P codes, pictograms, NFPA, transport."""

from __future__ import annotations

import re
import unicodedata

from corpus.names import find_cas, normalise_name, valid_cas
from kg.extraction.context import Context, language_of
from kg.extraction.denial import denies_use
from kg.extraction.focus import Focus, focuses
from kg.extraction.matters import split_items
from kg.extraction.model import Draft, Entry
from kg.extraction.owner import CLAUSE_END, name_like, spoken_of_other
from kg.extraction.vocabulary import hazard_names, hazard_term
from kg.schema import (
    PICTOGRAMS,
    AliasKind,
    DropReason,
    NodeLabel,
    Polarity,
    Relation,
    alias_key,
    hazard_class_key,
    regulation_key,
    transport_key,
    use_key,
)

_EC = re.compile(r"(?<![\d-])(\d{3})-(\d{3})-(\d)(?![\d-])")
_FORMULA = re.compile(r"^[A-Z(\[][A-Za-z0-9()\[\]·.*+-]{0,40}$")
_INCHIKEY = re.compile(r"\b[A-Z]{14}-[A-Z]{10}-[A-Z]\b")


def valid_ec(text: str) -> bool:
    """Check digit of an EC number: sum of position × digit modulo 11."""
    match = _EC.fullmatch(text.strip())
    if not match:
        return False
    digits = [int(c) for c in match[1] + match[2]]
    return sum(i * d for i, d in enumerate(digits, start=1)) % 11 == int(match[3])


def _identifier(
    ctx: Context, entry: Entry, kind: AliasKind, text: str, rejected: DropReason | None = None
) -> Draft:
    return ctx.draft(
        Relation.HAS_ALIAS, text, NodeLabel.ALIAS, (entry.label_start, entry.end), key=alias_key(text, kind),
        properties={"kind": kind.value}, section=entry.sds, rejected=rejected,
    )  # fmt: skip


def identifiers(ctx: Context) -> list[Draft]:
    """CAS, EC, formula, InChIKey, PubChem and RTECS numbers as aliases of their kind."""
    drafts: list[Draft] = []
    drafts += _unlabelled(ctx)
    drafts += _prose_formula(ctx)
    for entry, found in ctx.entries("identity"):
        words = ctx.shadow(entry.start, entry.end).strip()
        if ctx.subject.mixture and found.name in {"cas", "ec", "formula", "cid"}:
            continue  # a solution's page names the number of what is dissolved
        if found.name == "cas":
            drafts += _cas(ctx, entry, words)
        elif found.name == "ec":
            numbers = [m[0] for m in _EC.finditer(words)]
            bad = None if len(set(numbers)) == 1 and valid_ec(numbers[0]) else DropReason.BAD_IDENTIFIER
            drafts += [_identifier(ctx, entry, AliasKind.EC, numbers[0], bad)] if numbers else []
        elif found.name == "formula":
            drafts += _formula(ctx, entry)
        elif found.name == "cid" and re.match(r"\d+", words):
            drafts.append(_identifier(ctx, entry, AliasKind.CID, re.match(r"\d+", words)[0]))  # type: ignore[index]
        elif found.name == "rtecs" and re.fullmatch(r"[A-Z]{2}\d{7}", words):
            drafts.append(_identifier(ctx, entry, AliasKind.RTECS, words))
    return drafts


def _unlabelled(ctx: Context) -> list[Draft]:
    """A CAS number that stands in the lead or a table only, and the one standard InChIKey of a page."""
    drafts = []
    has_field = any(found.name == "cas" for _, found in ctx.entries("identity"))
    if ctx.subject.cas and not has_field:
        at = ctx.reading.shadow.find(ctx.subject.cas)
        if at >= 0:
            drafts.append(_line_identifier(ctx, AliasKind.CAS, ctx.subject.cas, at))
    keys = {m[0]: m.start() for m in _INCHIKEY.finditer(ctx.reading.text) if m[0].endswith("SA-N")}
    if len(keys) == 1 and not ctx.subject.mixture:
        key, at = next(iter(keys.items()))
        drafts.append(_line_identifier(ctx, AliasKind.INCHIKEY, key, at))
    return drafts


_FORMULA_SAID = re.compile(
    r"(?:(?:化学|分子)式(?:为|是|:)?|\b(?:(?:chemical|molecular) )?formula (?:is |of )?)\s*"
    r"(?P<formula>[A-Z(\[][A-Za-z0-9()\[\]]{0,30}[A-Za-z0-9)\]])(?=\s*(?:[,，。;；)]|\.(?!\w)|$|[一-鿿])|\s[a-z])"
)


def _prose_formula(ctx: Context) -> list[Draft]:
    """The formula that an article's first sentences give, where no label does."""
    if ctx.subject.mixture or any(found.name == "formula" for _, found in ctx.entries("identity")):
        return []
    for sentence in ctx.reading.sentences[:8]:
        words = ctx.shadow(sentence.start, sentence.end)
        match = _FORMULA_SAID.search(words)
        named = any(name and words.lower().startswith(name) for name in ctx.spellings)
        if match and named and not sentence.label:
            text = unicodedata.normalize("NFKC", match["formula"])
            span = (sentence.start + match.start(), sentence.start + match.end())
            return [
                ctx.draft(
                    Relation.HAS_ALIAS, text, NodeLabel.ALIAS, span, key=alias_key(text, AliasKind.FORMULA),
                    properties={"kind": AliasKind.FORMULA.value}, section=sentence.sds,
                )
            ]  # fmt: skip
    return []


def _line_identifier(ctx: Context, kind: AliasKind, text: str, at: int) -> Draft:
    start = max(ctx.reading.text.rfind("\n", 0, at) + 1, at - 150)
    return ctx.draft(
        Relation.HAS_ALIAS, text, NodeLabel.ALIAS, ctx.trim(start, at + len(text), " |*") or (at, at + len(text)),
        key=alias_key(text, kind), properties={"kind": kind.value},
    )  # fmt: skip


def _cas(ctx: Context, entry: Entry, words: str) -> list[Draft]:
    numbers = find_cas(words)
    if ctx.subject.cas:
        return [_identifier(ctx, entry, AliasKind.CAS, ctx.subject.cas)] if ctx.subject.cas in numbers else []
    looks = re.search(r"\d{2,7}-\d{2}-\d", words)
    if looks and not valid_cas(looks[0]):
        return [_identifier(ctx, entry, AliasKind.CAS, looks[0], DropReason.BAD_IDENTIFIER)]
    return []


def _formula(ctx: Context, entry: Entry) -> list[Draft]:
    words = unicodedata.normalize("NFKC", ctx.text(entry.start, entry.end)).strip()
    words = re.split(r"[;；,，、\s/]|\(?或", re.sub(r"</?sub>", "", words))[0]
    if not _FORMULA.match(words) or not re.search(r"[A-Z]", words):
        return []
    return [_identifier(ctx, entry, AliasKind.FORMULA, words)]


# --- names --------------------------------------------------------------------------------

_PROSE_ALIAS = re.compile(
    r"(?:又称(?:为|作)?|俗称(?:为)?|亦称|又名|也称(?:为|作)?|别名)[“\"]?([^,，。;；、()“”\"]{1,16})[”\"]?(?=[,，。;；、()]|$)"
)
_PROSE_ALIAS_EN = re.compile(
    r"\b(?:also known as|also called|or commonly)\s+([A-Za-z0-9][A-Za-z0-9 ,'-]{1,40}?)(?=[,.;)]| is | and )"
)
_LEAD_ALIAS = re.compile(r"^([^(（]{1,20})[(（]([A-Za-z][A-Za-z ,'-]{2,40}?)\s*[,，)）]")
_NOT_SAME = re.compile(
    r"([一-鿿]{2,10})(?:与|和)(?:纯|纯净的)?([一-鿿]{1,10})(?:并)?不是同一(?:种)?(?:物质|化学品)"
)


def names(ctx: Context) -> list[Draft]:
    """HAS_ALIAS for the names that a page gives its subject."""
    drafts: list[Draft] = []
    seen = {normalise_name(ctx.subject.name)}
    for entry, found in ctx.entries("identity"):
        if found.name not in {"name", "name_other", "alias"} or ctx.no_data(entry):
            continue
        if ctx.subject.mixture and entry.sds == 3:
            continue  # a component's name
        parts = ctx.segments(entry.start, entry.end) if found.name == "name" else _name_parts(ctx, entry)
        for start, end in parts:
            _add_name(ctx, drafts, seen, start, end, (entry.label_start, entry.end), entry.sds)
    for sentence in ctx.reading.sentences[:12]:
        if sentence.label:
            continue
        words = ctx.shadow(sentence.start, sentence.end)
        lead = _LEAD_ALIAS.match(words)
        spans = [lead.span(2)] if lead and not ctx.about_other(lead[1]) else []
        if any(name and name in words.lower()[: len(name) + 30] for name in ctx.names):
            spans += [m.span(1) for p in (_PROSE_ALIAS, _PROSE_ALIAS_EN) for m in p.finditer(words)]
        for a, b in spans:
            _add_name(
                ctx,
                drafts,
                seen,
                sentence.start + a,
                sentence.start + b,
                (sentence.start, sentence.end),
                sentence.sds,
            )
    drafts += _not_same(ctx)
    return drafts


def _name_parts(ctx: Context, entry: Entry) -> list[tuple[int, int]]:
    parts: list[tuple[int, int]] = []
    for start, end in ctx.segments(entry.start, entry.end):
        parts += split_items(ctx, start, end)
    return parts


def _add_name(
    ctx: Context,
    drafts: list[Draft],
    seen: set[str],
    start: int,
    end: int,
    span: tuple[int, int],
    sds: int | None,
) -> None:
    text = _without_remark(ctx, start, end)
    form = normalise_name(text)
    if re.search(r"[a-z] [A-Z][a-z]", text) or form in {"anhydrous", "solution", "liquid", "gas"}:
        return  # "Azine Azabenzene": several names whose line breaks were lost
    if (
        not form
        or form in seen
        or len(text) > 120
        or not re.search(r"[A-Za-z一-鿿]", text)
        or re.search(r"[。:：]", text)
    ):
        return
    seen.add(form)
    drafts.append(
        ctx.draft(
            Relation.HAS_ALIAS, text, NodeLabel.ALIAS, span, key=alias_key(text, AliasKind.NAME),
            properties={"kind": AliasKind.NAME.value, "language": language_of(text)}, section=sds,
        )
    )  # fmt: skip


_CONFUSED = re.compile(
    r"混淆|不含|不包括|除外|不同于|有别于|区别于|不是|并非|不要|勿|不(?:可|得|应)|误(?:称|作|为)|有区别|另一种|\b(?:not|confused|unlike|never|different|distinct)\b",
    re.IGNORECASE,
)


_DISSOLVED = re.compile(
    r"溶液|混合物|[%％]|^\W*含(?!氧|氮|氯|氟|溴|碘|硫|磷|水)|\b(?:solutions?|aqueous|mixtures?)\b",
    re.IGNORECASE,
)


def _without_remark(ctx: Context, start: int, end: int) -> str:
    """A name without the remark on what it is not ("二甲酮（勿与丁酮混淆）"); "" where the words say only that."""
    words = ctx.shadow(start, end)
    remark = re.search(r"\s*[(\[][^()\[\]]*[)\]]?\s*$", words)
    if remark and _DISSOLVED.search(remark[0]):
        return ""  # "氨水（溶液）" is no name of the pure substance
    if remark and _CONFUSED.search(remark[0]):
        end, words = start + remark.start(), words[: remark.start()]
    return "" if _CONFUSED.search(words) else ctx.text(start, end).strip()


def _not_same(ctx: Context) -> list[Draft]:
    """ "福尔马林与纯甲醛不是同一种物质": an explicit negative on a name."""
    drafts = []
    for sentence in ctx.reading.sentences:
        match = _NOT_SAME.search(ctx.shadow(sentence.start, sentence.end))
        if not match:
            continue
        sides = [match.span(1), match.span(2)]
        mine = [
            i
            for i, side in enumerate(sides)
            if not ctx.about_other(ctx.shadow(sentence.start + side[0], sentence.start + side[1]))
        ]
        if len(mine) != 1:
            continue
        a, b = sides[1 - mine[0]]
        text = ctx.text(sentence.start + a, sentence.start + b)
        drafts.append(
            ctx.draft(
                Relation.HAS_ALIAS, text, NodeLabel.ALIAS, (sentence.start, sentence.end),
                key=alias_key(text, AliasKind.NAME), properties={"kind": AliasKind.NAME.value, "language": language_of(text)},
                polarity=Polarity.NEGATIVE, section=sentence.sds,
            )
        )  # fmt: skip
    return drafts


# --- GHS --------------------------------------------------------------------------------------

H_CODE = re.compile(
    r"(?<![A-Za-z0-9])(EUH\d{3}[A-Z]?|H[2-4]\d{2}[A-Za-z]{0,2})(?![A-Za-z0-9])(?:\s*\+\s*H?[2-4]\d{2}[A-Za-z]{0,2}(?![A-Za-z0-9]))*"
)
_P = re.compile(
    r"(?<![A-Za-z0-9])P[1-5]\d{2}[A-Za-z]?(?:\s*\+\s*P?[1-5]\d{2}[A-Za-z]?(?![A-Za-z0-9]))*(?![A-Za-z0-9])"
)
_H_RANGE = (200, 442)
_CATEGORY = r"\s*[,，:：;]?\s*\(?\s*(?P<mark>类别|第|category|cat\.?)?\s*(?P<cat>1\.[1-6]|[1-5][A-H]?|type [A-G]|[A-G]型)(?![0-9A-Za-z.])\s*(?:类|级)?\)?"
_STATE = r"\s*[,，:：]?\s*\(?\s*(?P<state>压缩气体|液化气体|冷冻液化气体|溶解气体|compressed gas|liquefied gas|refrigerated liquefied gas|dissolved gas|附加类别|妨害)\)?"
_ROUTES = {
    "oral": r"经口|口服|oral",
    "dermal": r"经皮|dermal|skin",
    "inhalation": r"吸入|inhalation",
}
_STATES = {
    "压缩气体": "compressed", "液化气体": "liquefied", "冷冻液化气体": "refrigerated", "溶解气体": "dissolved",
    "compressed gas": "compressed", "liquefied gas": "liquefied", "refrigerated liquefied gas": "refrigerated",
    "dissolved gas": "dissolved",
}  # fmt: skip


def hazard_codes(ctx: Context) -> list[Draft]:
    """HAS_H and HAS_P: a code with the words beside it, in fields and lists of a subject's page."""
    drafts: list[Draft] = []
    taken: set[str] = set()
    spans = [
        (e.start, e.end, e.sds)
        for e, f in ctx.entries("hazard")
        if f.name in {"h_statements", "p_statements"}
    ]
    spans += [(s.start, s.end, s.sds) for s in ctx.reading.sentences if s.sds in {None, 2, 11}]
    for start, end, sds in spans:
        for left, right in ctx.segments(start, end):
            drafts += _codes(ctx, left, right, sds, taken)
    return drafts


# a class that holds for a content or for some notifiers only, or is another system's or an older one
_SUPPOSED_BEFORE = re.compile(
    r"若|如果|假如|假设|可能(?:为|是|属|被|分)|或许|疑似为|部分|有的|某些|个别|旧|原分类|原先|以前|浓度|含量|[≥≤<>]"
    r"|\b(?:if|for|concentrations?|content|above|below|may be|might be|could be|would be|some|several|certain|notifiers?|notified|previous|former|old|concentration limits?|scl)\b",
    re.IGNORECASE,
)
_SUPPOSED_AFTER = re.compile(
    r"^[^;；。\n|]{0,24}?(?:[<>≤≥]\s?C\b|\bC\s?[<>≤≥]|(?:若|如果?|当)(?:含|其|苯|浓度)|仅(?:限|当|在)|\bonly (?:if|when|where)\b|\bif (?:it |the )?[\w ]{0,20}?(?:contain|content|concentration)|[≥≤<>]\s?\d|\((?:from|at|above|over|up to|in|[\d.]+\s?[%~–-])\s?[^()]*%)",
    re.IGNORECASE,
)


def _not_its(ctx: Context, at: int, end: int) -> bool:
    """Whether what stands at a place of a line is said of a component, an impurity, another substance or a supposition."""
    begin = ctx.reading.shadow.rfind("\n", 0, at) + 1
    bar = ctx.reading.shadow.rfind("|", begin, at) + 1
    before = ctx.shadow(max(begin, bar, at - 200), at)
    stop = ctx.reading.shadow.find("\n", end)
    after = ctx.shadow(end, min(len(ctx.reading.shadow) if stop < 0 else stop, end + 60))
    # the statements themselves say "if swallowed"
    clause = H_CODE.split(CLAUSE_END.split(before)[-1])[0]
    head = re.match(r"[^:：]{0,60}[:：]", before)
    supposed = _SUPPOSED_BEFORE.search(clause) or _SUPPOSED_BEFORE.search(head[0] if head else "")
    return bool(supposed or _SUPPOSED_AFTER.match(after) or spoken_of_other(ctx, before))


# joining words and what is said of a code, which are no statement of its own
_NO_STATEMENT = re.compile(
    r"^\W*(?:and|or|not|applies|apply|is|are|as well|also|which|was|were)\b.*$|^\W*(?:和|及|与|或|适用|不|亦|也).{0,6}$",
    re.IGNORECASE | re.DOTALL,
)


def _said_with_code(words: str) -> str:
    """The statement behind a code, without what leads to the next one ("May cause cancer. Not H360")."""
    tail = words.rstrip(" ,，;；、/|(")
    tail = re.sub(
        r"(?<=[.。;；])\s*(?:Not|And|Or|But|Also|No|不含|不|及|和)\s*$", "", tail, flags=re.IGNORECASE
    )
    opened = tail.rfind("(") if tail.count("(") > tail.count(")") else -1
    tail = tail[:opened].rstrip() if opened >= 0 else tail
    return "" if _NO_STATEMENT.match(tail) else tail


def _unwrapped(words: str) -> str:
    """A statement without the marks around it; brackets that close inside stay whole."""
    text = words.strip(" :：-–")
    whole = re.fullmatch(r"[(（]([^()（）]*)[)）]?", text)
    text = whole[1] if whole else text
    loose = text.count("(") + text.count("（") < text.count(")") + text.count("）")
    return text.rstrip(" )）") if loose else text.strip()


def full_code(shown: str) -> str:
    """A joined code with the letter before each part: "P305 + 351+338" is P305+P351+P338."""
    parts = re.sub(r"\s+", "", shown).split("+")
    return "+".join(part if part[0].isalpha() else parts[0][0] + part for part in parts)


def _codes(ctx: Context, start: int, end: int, sds: int | None, taken: set[str]) -> list[Draft]:
    words = ctx.shadow(start, end)
    found = sorted(
        [(m.start(), m.end(), m[0], Relation.HAS_H) for m in H_CODE.finditer(words)]
        + [(m.start(), m.end(), m[0], Relation.HAS_P) for m in _P.finditer(words)]
    )
    if re.search(r"(?:不|未|无)(?:属于|适用|具有|需)|not classified|不存在", words):
        return []
    drafts = []
    for index, (at, after, shown, relation) in enumerate(found):
        stop = found[index + 1][0] if index + 1 < len(found) else len(words)
        code = full_code(shown)
        number = int(re.search(r"\d{3}", code)[0])  # type: ignore[index]
        if (
            relation is Relation.HAS_H
            and not code.startswith("EUH")
            and not _H_RANGE[0] <= number <= _H_RANGE[1]
        ):
            continue
        if code in taken or (relation is Relation.HAS_H and _not_its(ctx, start + at, start + after)):
            continue
        taken.add(code)
        tail = _said_with_code(words[after:stop])
        if re.match(r"\s*[),，、;；]", tail):
            tail = ""  # "H330), Carc. 2": what follows is no statement of the code's
        label = (
            NodeLabel.HAZARD_STATEMENT if relation is Relation.HAS_H else NodeLabel.PRECAUTIONARY_STATEMENT
        )
        properties = {"code": code}
        statement = _unwrapped(ctx.text(start + after, start + after + len(tail)))
        if 3 <= len(statement) <= 300:
            properties[f"text_{language_of(statement)}"] = statement
        drafts.append(
            ctx.draft(
                relation,
                code,
                label,
                (start + at, start + after + len(tail)),
                key=code,
                properties=properties,
                section=sds,
            )
        )
    return drafts


def classifications(ctx: Context) -> list[Draft]:
    """CLASSIFIED_AS: class, category and route, as data sheets write them in either language."""
    drafts: list[Draft] = []
    seen: set[tuple[str, Polarity]] = set()
    spans = [(e.start, e.end, e.sds) for e, f in ctx.entries("hazard") if f.name == "classification"]
    spans += [(s.start, s.end, s.sds) for s in ctx.reading.sentences if s.sds in {None, 2, 11}]
    for start, end, sds in spans:
        for left, right in ctx.segments(start, end):
            for draft in classes_in(ctx, left, right, sds):
                mark = (draft.object_key, draft.polarity)
                if mark not in seen:
                    seen.add(mark)
                    drafts.append(draft)
    return drafts


def classes_in(ctx: Context, start: int, end: int, sds: int | None) -> list[Draft]:
    """The classes of one stretch of a sheet, each with its category, as often as they stand there."""
    words = ctx.shadow(start, end)
    lowered = words.lower()
    used: list[tuple[int, int]] = []
    drafts: list[tuple[int, Draft]] = []
    for name in hazard_names():
        at = lowered.find(name.spelling)
        while at >= 0:
            stop = at + len(name.spelling)
            if not any(a < stop and at < b for a, b in used) and _word_edge(lowered, at, stop):
                draft, reach = _class(ctx, start, words, name.slug, name.routed, at, stop, sds)
                if draft:
                    used.append((at, reach))
                if draft and not _not_its(ctx, start + at, start + reach):
                    drafts.append((at, draft))
            at = lowered.find(name.spelling, stop)
    return [draft for _, draft in sorted(drafts, key=lambda pair: pair[0])]


def _word_edge(words: str, at: int, stop: int) -> bool:
    """Whether an English name begins and ends at word boundaries."""

    def letter(index: int) -> bool:
        return 0 <= index < len(words) and words[index].isascii() and words[index].isalpha()

    return not (letter(at) and letter(at - 1)) and not (letter(stop - 1) and letter(stop))


def _class(
    ctx: Context, offset: int, words: str, slug: str, routed: bool, at: int, stop: int, sds: int | None
) -> tuple[Draft | None, int]:
    tail = words[stop:]
    route = ""
    joint = (
        re.match(r"\.?\s*[-–—,，(]?\s*(" + "|".join(_ROUTES.values()) + r")(?:\s*\))?", tail, re.IGNORECASE)
        if routed
        else None
    )
    if joint:
        route = next(name for name, pattern in _ROUTES.items() if re.match(pattern, joint[1], re.IGNORECASE))
    rest = stop + (joint.end() if joint else 0)
    dots = re.match(r"\.?\s*", words[rest:])
    rest += dots.end() if dots else 0
    match = re.compile(_CATEGORY, re.IGNORECASE).match(words, rest)
    abbreviated = words[at:stop].isascii() and "." in words[at : rest + 1]
    if match and not match["mark"] and not abbreviated:
        match = None  # a figure after the name alone may be anything
    state = None if match else re.compile(_STATE, re.IGNORECASE).match(words, rest)
    category = match["cat"].upper() if match else _STATES.get(state["state"].lower(), "") if state else ""
    alone = slug in {"gases_under_pressure", "explosives"} and words.strip(" 。.") == words[at:stop]
    if not category and not alone:
        return None, stop
    end = match.end() if match else state.end() if state else stop
    organ = re.match(r"\s*\(([^()]{2,30})\)", words[end:]) if slug.startswith("stot") else None
    behind = (
        re.match(rf"\s*\(?\s*({'|'.join(_ROUTES.values())})\s*\)", words[end:], re.IGNORECASE)
        if routed and not route
        else None
    )
    if behind and match:  # "Acute Tox. 4 (oral)"
        route = next(name for name, pattern in _ROUTES.items() if re.match(pattern, behind[1], re.IGNORECASE))
        end += behind.end()
    reach = end + (organ.end() if organ else 0)
    negated = re.search(
        r"(?:不属于|未列为|不列为|未被分类为|not (?:be )?classified as)\s*$", words[:at], re.IGNORECASE
    )
    term = hazard_term(slug)
    properties = {"hazard": slug, "category": category, "scheme": "ghs", "zh": term.zh, "en": term.en}
    if route:
        properties["route"] = route
    conditions = (
        {"organ": ctx.text(offset + end + organ.start(1), offset + end + organ.end(1))} if organ else {}
    )
    begin = re.split(r"[。]", words[:at])[-1]
    lead = at - len(begin) if negated else at
    draft = ctx.draft(
        Relation.CLASSIFIED_AS, ctx.text(offset + at, offset + reach), NodeLabel.HAZARD_CLASS,
        (offset + lead, offset + reach), key=hazard_class_key(slug, category, route=route), properties=properties,
        polarity=Polarity.NEGATIVE if negated else Polarity.POSITIVE, conditions=conditions, section=sds,
    )  # fmt: skip
    return draft, reach


PICTOGRAM_WORDS: dict[str, str] = {
    "爆炸弹": "GHS01", "爆炸的炸弹": "GHS01", "爆炸炸弹": "GHS01", "exploding bomb": "GHS01",
    "火焰": "GHS02", "flame": "GHS02",
    "圆圈上方火焰": "GHS03", "火焰在圆环上": "GHS03", "圆环上方火焰": "GHS03", "圆圈上的火焰": "GHS03", "flame over circle": "GHS03",
    "高压气瓶": "GHS04", "气瓶": "GHS04", "气体钢瓶": "GHS04", "钢瓶": "GHS04", "gas cylinder": "GHS04",
    "腐蚀": "GHS05", "腐蚀性": "GHS05", "corrosion": "GHS05",
    "骷髅和交叉骨": "GHS06", "骷髅与交叉骨": "GHS06", "骷髅和交叉骨头": "GHS06", "骷髅旗": "GHS06", "skull and crossbones": "GHS06",
    "感叹号": "GHS07", "惊叹号": "GHS07", "exclamation mark": "GHS07",
    "健康危害": "GHS08", "健康危险": "GHS08", "health hazard": "GHS08",
    "环境": "GHS09", "环境危害": "GHS09", "environment": "GHS09",
}  # fmt: skip


def pictograms(ctx: Context) -> list[Draft]:
    """SHOWS_PICTOGRAM from names (骷髅和交叉骨, flame) and codes (GHS02)."""
    drafts: list[Draft] = []
    for entry, found in ctx.entries("hazard"):
        if found.name != "pictograms" or ctx.no_data(entry):
            continue
        seen: set[str] = set()
        for left, right in ctx.segments(entry.start, entry.end):
            for start, end in pictogram_parts(ctx, left, right):
                words = ctx.shadow(start, end).strip().lower()
                coded = re.search(r"ghs0([1-9])", words)
                code = f"GHS0{coded[1]}" if coded else PICTOGRAM_WORDS.get(words, "")
                if not code or code in seen:
                    continue
                seen.add(code)
                zh, en = PICTOGRAMS[code]
                drafts.append(
                    ctx.draft(
                        Relation.SHOWS_PICTOGRAM, ctx.text(start, end), NodeLabel.PICTOGRAM, (entry.label_start, entry.end),
                        key=code, properties={"code": code, "zh": zh, "en": en}, section=entry.sds,
                    )
                )  # fmt: skip
    return drafts


def pictogram_parts(ctx: Context, start: int, end: int) -> list[tuple[int, int]]:
    """Items; "骷髅和交叉骨" is one of them though it is joined by 和."""
    words = ctx.shadow(start, end)
    parts: list[tuple[int, int]] = []
    for match in re.finditer(r"[^、，,;；\n]+", words):
        span = ctx.trim(start + match.start(), start + match.end(), " \t\n。.")
        if span:
            parts.append(span)
    return parts


# --- transport, regulation, use -------------------------------------------------------------------

_UN = re.compile(r"(?:UN|联合国编号|UN编号)?\s*[:：]?\s*(?:UN\s?)?(?<!\d)(\d{4})(?!\d)", re.IGNORECASE)
# a number opens the field or follows another entry; one inside a remark is no entry
_UN_EACH = re.compile(
    r"(?:^|[\s,，、;；/或和)])\s*(?:UN|ID)?(?:\s?No\.?)?\s*[:：]?\s*(\d{4})(?![\d%]|\.\d)(?:\s*\((?P<form>[^()]{1,80})\))?(?=\s*(?:$|[\s,，、;；/或和(.。]))",
    re.IGNORECASE,
)
_PROSE_UN = re.compile(
    r"(?:联合国(?:危险货物)?编号|UN编号|UN号|UN number|UN)\s*(?:为|是|:|：)?\s*(?:UN\s?)?(\d{4})(?!\d)"
)
_CLASS = re.compile(r"(?<![\d.])([1-9](?:\.[1-6])?)(?:[A-S])?(?![\d.])")
_PROSE_CLASS = re.compile(r"第\s?([1-9](?:\.[1-6])?)\s?[类项]")
_GROUP = re.compile(r"(?<![A-Za-z])(Ⅲ|III|Ⅱ|II|Ⅰ|I|[123](?![\d.%]))(?![A-Za-z])类?")
_ROMAN = {"Ⅲ": "III", "Ⅱ": "II", "Ⅰ": "I", "1": "I", "2": "II", "3": "III"}


def transport(ctx: Context) -> list[Draft]:
    """SHIPPED_AS: UN number with class and packing group where the same section gives them."""
    fields: dict[str, list[Entry]] = {}
    for entry, found in ctx.entries("transport"):
        fields.setdefault(found.name, []).append(entry)
    numbers: dict[str, tuple[Entry, str]] = {}
    for entry in fields.get("un", []):
        for un, form in _numbers_of(ctx, entry):
            numbers.setdefault(un, (entry, form))
    if not numbers:
        return _prose_transport(ctx)
    if len(numbers) > 1:
        return [
            _shipped(ctx, un, (entry.label_start, entry.end), "", "", entry.sds, form)
            for un, (entry, form) in numbers.items()
        ]
    un, (entry, form) = next(iter(numbers.items()))
    near: dict[str, Entry] = {}
    for name in ("transport_class", "packing_group"):
        beside = [e for e in fields.get(name, []) if e.sds == entry.sds and abs(e.start - entry.start) < 500]
        if beside:  # the nearest: a sheet may repeat them for every mode of transport
            near[name] = min(beside, key=lambda e: abs(e.start - entry.start))
    hazard = _field_value(ctx, near.get("transport_class"), _CLASS)
    group = _one_group(ctx, near.get("packing_group"))
    used = [entry, *(near[n] for n, v in (("transport_class", hazard), ("packing_group", group)) if v)]
    span = (min(e.label_start for e in used), max(e.end for e in used))
    return [_shipped(ctx, un, span, hazard, _ROMAN.get(group, group), entry.sds, form)]


def _numbers_of(ctx: Context, entry: Entry) -> list[tuple[str, str]]:
    """All UN numbers of a field, each with the form it is for ("1198（溶液，易燃） 2209（溶液，…）")."""
    words = ctx.shadow(entry.start, entry.end)
    if not _UN.match(words.strip()):
        return []
    found: list[tuple[str, str]] = []
    for match in _UN_EACH.finditer(words):
        lead = re.split(r"[;；,，、\n]", words[: match.start(1)])[-1]
        if re.search(r"[:：]", lead) and not re.fullmatch(
            r"[\s:：]*(?:UN|ID|No\.?|\s|[:：]|编?号|联合国)*", lead, re.IGNORECASE
        ):
            continue  # "1410; ethereal solution: 1411"
        if 4 <= int(match[1]) <= 3600:
            span = (entry.start + match.start("form"), entry.start + match.end("form"))
            form = ctx.text(*span).strip() if match["form"] else ""
            if _FORMER.search(form):
                form = ""  # "UN 3105 (until 1991: UN 2550)": what it was is no form
            found.append((match[1], "" if re.match(r"PG\b|包装", form, re.IGNORECASE) else form))
    return found


_FORMER = re.compile(
    r"原(?:先|来|为|属|第|\s?UN)|曾|旧|以前|过去|此前|[年]?(?:以|之)?前|\b(?:former(?:ly)?|previous(?:ly)?|until|till|before|prior to|once|old|was|were|originally|ex)\b",
    re.IGNORECASE,
)


def _field_value(ctx: Context, entry: Entry | None, pattern: re.Pattern[str]) -> str:
    if entry is None or ctx.no_data(entry):
        return ""
    words = ctx.shadow(entry.start, entry.end)
    match = pattern.search(words)
    if match and _FORMER.search(words[: match.start()]):
        return ""  # "none (formerly II)"
    if match and entry.label == "运输类别" and match[1] in "1234":
        return ""  # may as well be the transport category of the road rules (0 to 4)
    return match[1] if match else ""


def _one_group(ctx: Context, entry: Entry | None) -> str:
    """The packing group of a field, "" where it names several ("Ⅱ或Ⅲ", "II (III for < 25 %)")."""
    first = _field_value(ctx, entry, _GROUP)
    if entry is None or not first:
        return ""
    found = {m[1] for m in _GROUP.finditer(ctx.shadow(entry.start, entry.end))}
    roman = {_ROMAN.get(mark, mark) for mark in found if not mark.isdigit()}
    return first if len(roman or found) == 1 else ""


def _prose_transport(ctx: Context) -> list[Draft]:
    about = focuses(ctx)
    for sentence in ctx.reading.sentences:
        words = ctx.shadow(sentence.start, sentence.end)
        match = _PROSE_UN.search(words)
        if about[sentence.start] is Focus.OTHER or (match and _in_brackets_of_other(ctx, words, match)):
            continue
        if match and spoken_of_other(ctx, re.sub(r"\bUN\s*$", "", words[: match.start()])):
            continue  # "Acetic acid, glacial: UN 2789"
        if match and 4 <= int(match[1]) <= 3600 and len(_PROSE_UN.findall(words)) == 1:
            hazard = _PROSE_CLASS.search(words, match.end())
            end = hazard.end() if hazard else match.end()
            span = (sentence.start + match.start(), sentence.start + end)
            return [_shipped(ctx, match[1], span, hazard[1] if hazard else "", "", sentence.sds)]
    return []


def _in_brackets_of_other(ctx: Context, words: str, match: re.Match[str]) -> bool:
    """ "Acetic anhydride (UN 1715)": the number of what the brackets stand behind."""
    opened = re.search(r"([^,，。;；:：()]{2,40}?)\s*\([^()]*$", words[: match.start()])
    return opened is not None and ctx.about_other(opened[1]) and name_like(opened[1])


def _shipped(
    ctx: Context, un: str, span: tuple[int, int], hazard: str, group: str, sds: int | None, form: str = ""
) -> Draft:
    properties = {"un": un, "hazard_class": hazard, "packing_group": group}
    return ctx.draft(
        Relation.SHIPPED_AS, f"UN{un}", NodeLabel.TRANSPORT_ENTRY, span, key=transport_key(un, hazard, group),
        properties=properties, conditions={"form": form} if form else {}, section=sds,
    )  # fmt: skip


def regulations(ctx: Context) -> list[Draft]:
    """REGULATED_BY: the lists and regulations that a page names for its subject."""
    drafts: list[Draft] = []
    for entry, found in ctx.entries("regulatory"):
        if found.name != "regulations" or ctx.no_data(entry):
            continue
        for start, end in _named_rules(ctx, entry):
            words = ctx.shadow(start, end)
            if not 4 <= len(words) <= 60 or re.search(r"不|未|无|[。]\S|\bnot\b", words.strip("。 ")):
                continue
            text = _law_name(ctx.text(start, end))
            drafts.append(
                ctx.draft(
                    Relation.REGULATED_BY, text, NodeLabel.REGULATION, (start, end), key=regulation_key(text),
                    properties={"name": text}, section=entry.sds,
                )
            )  # fmt: skip
    return drafts


def _law_name(words: str) -> str:
    """A regulation's name: marks around the whole go ("《…条例》"), those of a part stay ("《…目录》（2015版）")."""
    text = words.strip(" 。.")
    whole = re.fullmatch(r"《([^《》]*)》", text)
    if whole:
        return whole[1]
    return text if text.count("《") == text.count("》") else text.strip("《》")


def _named_rules(ctx: Context, entry: Entry) -> list[tuple[int, int]]:
    """Names of a list; a line break inside a cell may have become a blank between Chinese names."""
    parts: list[tuple[int, int]] = []
    for start, end in ctx.segments(entry.start, entry.end):
        words = ctx.shadow(start, end)
        begin = 0
        for match in re.finditer(r"(?<=[一-鿿)》])\s+(?=[一-鿿《])", words):
            parts.append((start + begin, start + match.start()))
            begin = match.end()
        parts.append((start + begin, end))
    return parts


# "用于染料的合成" is a use; "甲醇不用于食品", "Ethanol is used as …" are sentences
_SAID = re.compile(
    r"^[^,，。;；]{1,40}?(?:用于|用作|用来|应用于)(?<!^用于)(?<!^用作)(?<!^可用于)|^不|\b(?:is|are|was|were|not|has been|have been)\b",
    re.IGNORECASE,
)


def uses(ctx: Context) -> list[Draft]:
    """USED_FOR: the use as the page words it."""
    drafts = []
    for entry, found in ctx.entries("identity"):
        if found.name != "use" or ctx.no_data(entry):
            continue
        end = _end_of_uses(ctx, entry)
        words = ctx.text(entry.start, end).strip(" 。.;；")
        if _SAID.search(ctx.shadow(entry.start, end)):
            continue  # a sentence, which names a subject and may deny, is read as one
        if not 2 <= len(words) <= 300:
            continue
        drafts.append(
            ctx.draft(
                Relation.USED_FOR, words, NodeLabel.USE, (entry.label_start, entry.end), key=use_key(words),
                properties={"text": words}, section=entry.sds,
            )
        )  # fmt: skip
    return drafts


def _end_of_uses(ctx: Context, entry: Entry) -> int:
    """Where the uses of a field end: before the first part that prohibits one or speaks of the past."""
    begin = entry.start
    for match in re.finditer(r"[^。;；\n]+[。;；\n]*|[。;；\n]+", ctx.shadow(entry.start, entry.end)):
        if denies_use(match[0]):
            break
        begin = entry.start + match.end()
    return begin
