"""Lists of H statements, pictograms and classes that a sheet gives whole.

Membership of a complete list (``properties["listing"]``) is what later proves a
"no", so a labelled entry becomes one only where nothing is left unread: each part
is a code with words that are that code's and no other's, a pictogram of the
lexicon, or a class with its category; nothing is open, conditional or of a
component; nothing runs on below it; and nothing else of the page names more of
the kind. Whatever is in doubt is left without a list.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import cache

from corpus.sections import sds_section
from kg.extraction import codes
from kg.extraction.context import Context
from kg.extraction.model import Draft, Entry
from kg.extraction.owner import PART_OF, name_like
from kg.extraction.vocabulary import field_of, hazard_names
from kg.schema import Polarity, Relation, listing_key

_LABELS = {
    "h_statements": Relation.HAS_H,
    "pictograms": Relation.SHOWS_PICTOGRAM,
    "classification": Relation.CLASSIFIED_AS,
}
_OPEN = re.compile(
    r"等|诸如|例如|比如|包括|参见|参阅|参考|详见|[另请]见|见第|部分|主要|其[他它]|另外|此外|还有|也|全文|完整|摘[要录]|\.{2,}|…|至少|或者"
    r"|\b(?:etc|e\.g|eg|such as|includ\w+|among|others?|more|see|refer\w*|main\w*|some|several|partial\w*|select\w+|also|further|additional\w*|full text|excerpt|at least)\b",
    re.IGNORECASE,
)
_DOUBTED = re.compile(
    r"含(?!有?(?:加压|压缩|高压|冷冻|压力下))|浓度|若|如|当|仅|除|混合物|溶液|组[分份]|成分|杂质|稳定剂|旧|原先|以前|企业|可能(?:为|是|属|被|分)|拟|建议|不|无|未|非|[%<>≤≥?？]"
    r"|\b(?:contain(?:s|ing)?(?! (?:gas|refrigerated))|content|concentrations?|mixtures?|solutions?|components?|ingredients?|impurit\w+|stabili[sz]er|former\w*|previous\w*|old|notif\w*"
    r"|only|except|unless|when|where|may be (?:classified|an?)|might|proposed|not|no|none|nil|without|if (?:it|the|present|used)|or(?= *(?:EU)?H\d))\b",
    re.IGNORECASE,
)
_MARKS = " \t\n,，、;；.。•·*|"
_BETWEEN = re.compile(rf"(?:[{re.escape(_MARKS)}]|和|及|与|\band\b|&|<br\s*/?>)*", re.IGNORECASE)
# a statement's own second half, which a semicolon or comma sets off
_SECOND_HALF = re.compile(
    r"\s*(?:(?:遇热|受热|加热)(?:时|后)?(?:可能?|会)?(?:发生)?爆[炸裂]|可?(?:能|会)?(?:造成|引起|导致)低温灼伤(?:或(?:损)?伤害?)?|(?:强)?氧化(?:性)?剂|(?:可能?|会)(?:自)?燃(?:烧)?|可能起火|并?(?:且)?(?:具?有|造成|产生)长期持续(?:性)?(?:的)?影响"
    r"|(?:有)?(?:整体|严重|大规模|严重的)?(?:爆炸|迸射|燃烧|喷射)(?:的)?危险"
    r"|may (?:explode|burst)(?: if heated)?|may cause cryogenic burns or injury|(?:strong )?oxidi[sz]er|may catch fire|(?:mass |severe )?(?:explosion|projection|fire)(?:, blast or projection)? hazard"
    r"|which may ignite spontaneously)\s*[.。]?\s*",
    re.IGNORECASE,
)
_TWO_HALVES = re.compile(r"H2(?:0[0-5]|29|51|52|60|7[0-2]|8[01])|H41[0-3]")
# what else than its code a statement may hold no more of: a number, a code in a writing that is not read
_UNREAD = re.compile(r"\d|(?<![A-Za-z])(?:EU)?[HRPS][\s.-]?[\dOIl]{2}|[:：](?=.*[:：])")

# Subjects of statements and the codes whose words (UN GHS, annex 3) speak of them. Words on any
# other subject behind a code are another statement whose code is missing, or the code is misprinted.
_SUBJECTS: tuple[tuple[str, str], ...] = (
    (r"易燃|自燃|燃烧|着火|起火|火灾|flammable|fire|ignit", "200-252 260-272"),
    (r"爆炸|爆裂|爆|explo|burst", "200-211 229-231 240-241 271 280"),
    (r"氧化|oxidi[sz]", "270-272"),
    (r"加压|压力|pressuri[sz]ed|under pressure", "229 231 280"),
    (r"金属|metal", "290"),
    (r"吞咽|吞食|误食|食入|摄入|口服|swallow|ingest", "300-305"),
    (r"皮肤|skin", "310-317"),
    (r"灼伤|腐蚀|burn|corros", "281 290 314"),
    (r"刺激|irritat", "315-316 319-320 335"),
    (r"过敏|致敏|allerg|sensiti", "317 334"),
    (r"眼|\beyes?\b", "314 318-320"),
    (r"吸入|inhal", "330-334"),
    (r"呼吸道|呼吸系统|airways|respiratory", "304-305 334-335"),
    (r"哮喘|呼吸困难|asthma|breathing", "334"),
    (r"嗜睡|昏昏|昏睡|困倦|眩晕|头晕|麻醉|drows|dizz|narcot", "336"),
    (r"遗传|基因|genetic|mutagen", "340-341"),
    (r"癌|cancer|carcino", "350-351"),
    (r"生育|生殖|胎儿|未出生|fertil|unborn|reproduct", "360-361"),
    (r"母乳|哺乳|breast|lactation", "362"),
    (r"器官|organ", "370-373"),
    (r"水生|水体|aquatic", "400-413"),
    (r"臭氧|ozone", "420"),
    (r"致命|致死|fatal|deadly", "300 304 310 330"),
    (r"毒|toxic|poison", "301 311 331 400-401 410-411"),
    (r"有害|harmful", "302-303 305 312-313 332-333 402 412-413"),
)  # fmt: skip


@cache
def _subjects() -> tuple[tuple[re.Pattern[str], frozenset[int]], ...]:
    found = []
    for words, ranges in _SUBJECTS:
        numbers: set[int] = set()
        for part in ranges.split():
            low, _, high = part.partition("-")
            numbers |= set(range(int(low), int(high or low) + 1))
        found.append((re.compile(words, re.IGNORECASE), frozenset(numbers)))
    return tuple(found)


def with_listings(ctx: Context, drafts: Sequence[Draft]) -> list[Draft]:
    """The drafts, those of H statements, pictograms and classes that a sheet lists whole as members of their list."""
    made = list(drafts)
    for field, relation in _LABELS.items():
        if members := _members(ctx, field, relation, made):
            entry, keys = members
            key = listing_key(ctx.reading.document_id, ctx.subject.name, relation, entry.start)
            made = [
                replace(draft, properties={**draft.properties, "listing": key})
                if _inside(draft, entry, relation) and draft.object_key in keys
                else draft
                for draft in made
            ]
    return made


def _inside(draft: Draft, entry: Entry, relation: Relation) -> bool:
    return (
        draft.relation is relation
        and not draft.subject
        and draft.polarity is Polarity.POSITIVE
        and draft.rejected is None
        and entry.label_start <= draft.start
        and draft.end <= entry.end
    )


def _members(
    ctx: Context, field: str, relation: Relation, drafts: Sequence[Draft]
) -> tuple[Entry, frozenset[str]] | None:
    """The entry that lists a page's codes or classes whole, and their keys; None where it is in doubt."""
    entries = [entry for entry, found in ctx.entries("hazard") if found.name == field]
    if not entries or any(entry.sds not in {None, 2} for entry in entries if field != "h_statements"):
        return None
    entries = [entry for entry in entries if entry.sds in {None, 2}]
    lists = [_whole(ctx, entry, relation) for entry in entries]
    if not lists or not lists[0] or any(keys != lists[0] for keys in lists):
        return None  # of two lists that differ neither is the page's
    entry, keys = entries[0], lists[0]
    # everything that the page says of its subject is in the list, and the list's part of it was kept
    said = [draft for draft in drafts if draft.relation is relation and not draft.subject]
    own = {draft.object_key for draft in said if _inside(draft, entry, relation)}
    if own != keys or any(draft.object_key not in keys or draft.conditions for draft in said):
        return None
    return entry, keys


def _whole(ctx: Context, entry: Entry, relation: Relation) -> frozenset[str]:
    """Keys of all items of an entry; none where a part of it was not read or may not be the subject's."""
    words = ctx.shadow(entry.start, entry.end)
    if ctx.no_data(entry) or _OPEN.search(words) or not _stands_alone(ctx, entry):
        return frozenset()
    doubted = _DOUBTED.search(_without_names(words) if relation is Relation.CLASSIFIED_AS else words)
    if doubted:
        return frozenset()
    parts = ctx.segments(entry.start, entry.end)
    read = {
        Relation.HAS_H: _statements,
        Relation.SHOWS_PICTOGRAM: _pictograms,
        Relation.CLASSIFIED_AS: _classes,
    }[relation](ctx, parts)
    return frozenset(read or ())


def _without_names(words: str) -> str:
    """Words of a classification without the names of classes, some of which speak of mixtures."""
    low = words.lower()
    for name in hazard_names():
        low = low.replace(name.spelling, " ")
    return low


# --- where an entry stands -----------------------------------------------------------------


def _stands_alone(ctx: Context, entry: Entry) -> bool:
    """Whether a label opens its line or cell, under no heading of another matter, and its value ends with it."""
    shadow = ctx.reading.shadow
    if PART_OF.search(entry.heading) or (
        name_like(entry.heading.strip()) and ctx.about_other(entry.heading.strip())
    ):
        return False
    line = shadow.rfind("\n", 0, entry.label_start) + 1
    above = [said for said in shadow[:line].split("\n")[-4:] if said.strip()]
    if any(PART_OF.search(said) for said in above[-2:]):
        return False
    before = shadow[line : entry.label_start]
    row = before.lstrip().startswith("|")
    if row:
        cells = [cell.strip(" *") for cell in before.split("|")]
        if cells[-1] or any(re.sub(r"[\d.]", "", cell) and field_of(cell) is None for cell in cells[1:2]):
            return False
    elif re.sub(r"[\s#*•\d.()+-]", "", before):
        return False
    return not _runs_on(shadow, entry.end, row)


def _runs_on(shadow: str, end: int, row: bool) -> bool:
    """Whether a value is cut at its end or goes on behind it: in its line, or in a line with no label of its own."""
    stop = shadow.find("\n", end)
    stop = len(shadow) if stop < 0 else stop
    rest = shadow[end:stop].strip(" .。;；*")
    if row:
        others = [cell.strip(" *") for cell in rest.split("|")]
        # further cells are a second value, unless a label stands before it
        if others[0] or (any(others) and field_of(next(cell for cell in others if cell)) is None):
            return True
    elif rest and field_of(re.split(r"[:：]", rest)[0]) is None:
        return True
    if shadow[:end].rstrip()[-1:] in set(",，、+/-–—(（:：&和及与或"):
        return True
    below = [line.strip() for line in shadow[stop:].split("\n") if re.sub(r"[\s|:*-]", "", line)]
    following = below[0] if below else ""
    if not following:
        ended = shadow[end - 1] in "。.)" or shadow[end : end + 1] in set("。.")
        return not row and not ended  # the last words of a page may be cut
    if following.startswith("#") or field_of(following) or row != following.startswith("|"):
        return False
    if row:  # a row without a label of its own goes on with the one above
        cells = [cell.strip(" *") for cell in following.strip("|").split("|")]
        labelled = field_of(cells[0]) or sds_section(cells[0]) or re.search("[:：]", cells[0])
        return (
            not cells[0]
            or not (labelled or (len(cells) > 1 and any(cells[1:])))
            or bool(codes.H_CODE.match(cells[0]))
        )
    return not re.match(r"(?:[-*•]\s+)?(?:\*\*)?(?!EUH|H\d|P\d)[^:：。;；]{1,60}[:：]", following)


# --- what an entry holds -------------------------------------------------------------------


def _statements(ctx: Context, parts: Iterable[tuple[int, int]]) -> list[str] | None:
    """All H codes of the parts; None where words of a part are no statement of their code."""
    keys: list[str] = []
    for start, end in parts:
        words = re.sub(r"\[\d{1,3}\]", "", ctx.shadow(start, end))
        found = list(codes.H_CODE.finditer(words))
        if not found:
            # "Contains gas under pressure; may explode if heated": the second half of the statement above
            if keys and _TWO_HALVES.search(keys[-1]) and _SECOND_HALF.fullmatch(words):
                continue
            return None
        lead = words[: found[0].start()].strip(_MARKS)
        if len(found) == 1 and lead.endswith("(") and words[found[0].end() :].strip(_MARKS) == ")":
            pairs = [(found[0][0], lead[:-1])]  # "Highly flammable liquid and vapour (H225)"
        elif lead:
            return None
        else:
            stops = [match.start() for match in found[1:]] + [len(words)]
            pairs = [(m[0], words[m.end() : stop]) for m, stop in zip(found, stops, strict=True)]
        for shown, text in pairs:
            code = codes.full_code(shown)
            if code.startswith("EUH") or not _says_only(code, text):
                return None
            keys.append(code)
    return keys


def _says_only(code: str, text: str) -> bool:
    """Whether the words behind a code are its statement at most."""
    if _BETWEEN.fullmatch(text):
        return True
    if _UNREAD.search(text) or re.match(r"\s*[/+~～]", text) or len(text) > 200:
        return False
    numbers = {int(number) for number in re.findall(r"\d{3}", code)}
    # effects and organs in brackets: "Causes damage to organs (eyes, central nervous system)"
    plain = re.sub(r"\([^()]*\)", " ", text) if min(numbers) >= 340 else text
    body = plain.strip(_MARKS + ":：-–—")
    if not body or re.search(r"[()]", plain):
        return False
    pieces = re.split(r"[,，、;；]|[。.](?=\s*\S)|\s(?:and|和|及)\s*$", body)
    if not all(_SECOND_HALF.fullmatch(piece) for piece in pieces[1:]):
        return False
    spoken = [own for pattern, own in _subjects() if pattern.search(plain)]
    return bool(spoken) and all(numbers & own for own in spoken)


def _pictograms(ctx: Context, parts: Iterable[tuple[int, int]]) -> list[str] | None:
    """All pictograms of the parts; None where a part is not one of the lexicon, whole."""
    keys: list[str] = []
    for left, right in parts:
        for start, end in codes.pictogram_parts(ctx, left, right):
            words = ctx.shadow(start, end).strip().lower()
            coded = re.findall(r"ghs0([1-9])", words)
            name = re.sub(r"\(?ghs0[1-9]\)?", "", words).strip(" ():-")
            known = codes.PICTOGRAM_WORDS.get(name, "") if name else f"GHS0{coded[0]}" if coded else ""
            if not known or len(coded) > 1 or (coded and f"GHS0{coded[0]}" != known):
                return None
            keys.append(known)
    return keys


def _classes(ctx: Context, parts: Iterable[tuple[int, int]]) -> list[str] | None:
    """All classes with their categories; None where words beside them are left."""
    keys: list[str] = []
    for start, end in parts:
        drafts = codes.classes_in(ctx, start, end, 2)
        if not drafts or any(d.polarity is not Polarity.POSITIVE or d.conditions for d in drafts):
            return None
        words = ctx.shadow(start, end)
        for draft in sorted(drafts, key=lambda d: -d.start):
            words = words[: draft.start - start] + "、" + words[draft.end - start :]
        if codes.H_CODE.sub("", words).strip(_MARKS + "()-–—:：和及与") or "EUH" in words:
            return None
        keys += [draft.object_key for draft in drafts]
    return keys
