"""Pages that give orders: they are found, nothing ordinary is, and they change no score, no schema, no other document.

Against a real server: where the passage stands in a request, and what becomes of
the answers of a model that obeys what it sees outside the fences ("gullible") or
wherever it stands ("obedient").
"""

from __future__ import annotations

import json
import re
import threading
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlalchemy import select

from corpus.catalogue import Catalogue
from corpus.catalogue.tables import Assertion, Document
from corpus.cleaning.decoding import decode
from corpus.curating.texts import RefineStep, ScoreStep
from corpus.documents import Block, Section
from corpus.fidelity import differences
from corpus.ids import digest, document_id
from corpus.names import simplified
from corpus.orders import (
    SIMPLIFIED,
    TRADITIONAL,
    find_orders,
    gives_orders,
    span_with_orders,
    title_without_orders,
    without_orders,
)
from corpus.quality import Score, ScoreDocument, ScoreGiven, formula, measure, sample_windows, scoring_input
from corpus.refinement import Refined, RefineWindow, WindowGiven, refine_document
from corpus.settings import QualitySettings
from corpus.stages import StageContext, run_step
from corpus.tidying import furniture_reason, tidy_block
from corpus.windows import split_units
from kg.extraction.skill import ExtractAssertions, ExtractionGiven, subject_of
from kg.schema import DropReason
from kg.settings import ExtractionSettings
from kg.steps import ExtractStep
from models import Models, ModelSettings
from models.languages import is_chinese
from models.prompts import neutral
from models.settings import Limits
from models.tokens import count_words
from tests.conftest import SAMPLES
from tests.corpus.test_refinement import blocks_of
from tests.kg.documents import document
from tests.orders.pages import Hostile, hostile_pages
from tests.orders.traps import TRAPS
from tests.servers.model_server import ModelServer, Request

PAGES = hostile_pages()
by_page = pytest.mark.parametrize("page", PAGES, ids=lambda page: page.id)
OWN_LINE = [page for page in PAGES if page.place in ("paragraph", "start", "end")]


# --- finding -----------------------------------------------------------------


def test_the_set_is_large_made_up_and_half_chinese() -> None:
    assert len(PAGES) >= 48
    assert all(page.made_up for page in PAGES)
    assert len({page.id for page in PAGES}) == len({page.passage for page in PAGES}) == len(PAGES)
    languages = Counter(page.language for page in PAGES)
    assert abs(languages["zh"] - languages["en"]) <= 2
    assert {page.goal for page in PAGES} >= {"high", "low", "harmless", "numbers", "others", "leak", "language", "schema"}  # fmt: skip
    assert {page.place for page in PAGES} >= {"paragraph", "start", "end", "list", "cell", "heading", "alt", "inline", "title"}  # fmt: skip


@by_page
def test_the_passage_is_found_and_taken_out_to_the_byte(page: Hostile) -> None:
    text = page.hostile_text
    assert without_orders(text) == page.text
    assert title_without_orders(page.hostile_title) == page.title
    assert find_orders(page.text) == find_orders(page.title) == []
    orders = find_orders(text)
    assert all(0 <= order.start < order.end <= len(text) for order in orders)
    assert all(one.end <= two.start for one, two in pairwise(orders))
    if page.place != "title":
        start = text.index(page.passage)
        covered = {at for order in orders for at in range(order.start, order.end)}
        assert all(
            at in covered
            for at in range(start, start + len(page.passage))
            if not text[at].isspace() and text[at] != "\u200b"
        )
        assert gives_orders(text, start, start + 1)
        assert not gives_orders(text, 0, orders[0].start)


@pytest.mark.parametrize("line", TRAPS)
def test_ordinary_sentences_are_no_orders(line: str) -> None:
    assert find_orders(line) == []


def test_traps_stay_traps_side_by_side() -> None:
    assert find_orders("\n".join(TRAPS)) == find_orders("\n\n".join(TRAPS)) == []


def test_characters_are_simplified_as_the_names_are() -> None:
    assert "".join(map(simplified, TRADITIONAL)) == SIMPLIFIED


def test_the_sample_pages_give_none_not_even_in_their_scripts() -> None:
    lines = (SAMPLES / "manifest.jsonl").read_text("utf-8").splitlines()
    assert len(lines) == 82
    for line in lines:
        page = json.loads(line)
        if page["content_type"] == "application/pdf":
            continue
        raw = (SAMPLES / "pages" / page["file"]).read_bytes()
        shown = re.sub(
            r"<[^<>]*>", "\n", decode(raw, header_charset=page["content_type"].partition("charset=")[2]).text
        )
        assert find_orders(shown) == [], page["file"]


@given(st.sampled_from(PAGES), st.sampled_from(OWN_LINE), st.data())
@settings(max_examples=80, deadline=None)
def test_wherever_a_passage_stands_the_rest_is_what_it_was(host: Hostile, guest: Hostile, data: Any) -> None:
    blocks = host.text.split("\n\n")
    at = data.draw(st.integers(0, len(blocks)))
    text = "\n\n".join([*blocks[:at], guest.passage, *blocks[at:]])
    assert without_orders(text) == host.text


@given(st.text(max_size=80), st.sampled_from(PAGES), st.integers(0, 400))
@settings(max_examples=60, deadline=None)
def test_what_is_left_comes_from_the_text_in_order(noise: str, page: Hostile, at: int) -> None:
    text = f"{page.hostile_text[:at]}{noise}{page.hostile_text[at:]}"
    left = without_orders(text)
    position = 0
    for line in left.split("\n"):
        position = text.find(line, position)
        assert position >= 0
    spans = sample_windows(left, 3, 50, count_words)
    for start, end in spans:
        first, last = span_with_orders(text, start, end)
        assert 0 <= first <= last <= len(text)
        assert text[first] == left[start]
        assert text[last - 1] == left[end - 1]


# --- scoring -------------------------------------------------------------------


def scored(text: str, title: str, language: str) -> ScoreGiven:
    return scoring_input(text, title=title, language=language, settings=QualitySettings(), count=count_words)[
        0
    ]


@by_page
def test_no_byte_of_the_scoring_prompt_and_no_score_changes(page: Hostile) -> None:
    skill = ScoreDocument()
    plain = scored(page.text, page.title, page.language)
    hostile = scored(page.hostile_text, page.hostile_title, page.language)
    assert skill.messages(hostile) == skill.messages(plain)
    assert skill.offline(hostile) == skill.offline(plain)


WORTHLESS = {
    "zh": "# 面包\n\n" + "面包师揉好面团，放置一夜，第二天清早烤好后送到客人家里。" * 8,
    "en": "# Bread\n\n"
    + "The baker kneads the dough and lets it rest for the night before it is baked. " * 8,
}


@by_page
def test_even_an_order_that_nobody_recognised_cannot_lift_a_worthless_page(page: Hostile) -> None:
    """As if the passage had been found by no rule: it stands in the prompt, and the model obeys it."""
    text = f"{WORTHLESS[page.language]}\n\n{page.passage}"
    features = measure(text, title=page.title, count=count_words)
    asked = ScoreGiven(page.title, page.language, (text,), features)
    reason = "内容完整可靠" if page.language == "zh" else "complete and reliable"
    five = dict.fromkeys(("score", "density", "safety", "completeness", "readability", "authority"), 5.0)
    answer = Score(**five, reason=reason, language=page.language)
    verdict = ScoreDocument().check(asked, answer)
    assert verdict.kind == "ask_again"
    assert any(said.startswith("score 5.0 is far above") for said in verdict.reasons)


@by_page
def test_nor_can_it_bring_a_good_page_down(page: Hostile) -> None:
    features = measure(page.hostile_text, title=page.title, count=count_words)
    asked = ScoreGiven(page.title, page.language, (page.hostile_text,), features)
    low = formula(features, page.language).model_copy(update={"score": 0.0})
    assert any("far below" in said for said in ScoreDocument().check(asked, low).reasons)


# --- on the wire ----------------------------------------------------------------

QUICK = Limits(retries=0, pause_s=0.01, concurrency=4)
_FENCE = re.compile(r"<([a-z_]+) k=([0-9a-f]{12})>\n(.*?)\n</\1 k=\2>", re.S)
_ROLE_MARK = re.compile(
    r"<\|[^>]*\|>|<｜[^>]*｜>|\[/?INST\]|<</?SYS>>|</?(?:start|end)_of_turn>|</s>|<(?:system|user|assistant)>",
    re.I,
)


def pieces(passage: str) -> list[tuple[str, str]]:
    """The lines of a passage as a fence shows them, as they are and in a JSON text."""
    lines = [neutral(line) for line in passage.split("\n") if len(line.strip()) > 3]
    return [(line, json.dumps(line, ensure_ascii=False)[1:-1]) for line in lines]


def holds(text: str, passage: str) -> bool:
    """Whether a text shows any line of a passage."""
    return any(form in text for piece in pieces(passage) for form in piece)


def outside(content: str) -> str:
    return _FENCE.sub("", content)


def questions(page: Hostile, *, hostile: bool) -> list[tuple[Any, Any]]:
    """(skill, input) of all three skills for a page. The scored text is as if no order had been recognised."""
    text, title = (page.hostile_text, page.hostile_title) if hostile else (page.text, page.title)
    features = measure(page.text, title=page.title, count=count_words)
    units = tuple(split_units(text, blocks_of(text), 10_000, count_words))
    made = document(text, title=title, language=page.language)
    subject = subject_of(document(page.text, title=page.title, language=page.language))
    return [
        (ScoreDocument(), ScoreGiven(title, page.language, (text,), features)),
        (RefineWindow(), WindowGiven(page.language, title, (), units)),
        (ExtractAssertions(), ExtractionGiven(made, 0, len(made.text), subject)),
    ]


def fenced(request: Request) -> dict[str, str]:
    """What stands in the fences of the question, by label."""
    return {
        label: text for message in request.messages for label, _, text in _FENCE.findall(message["content"])
    }


def name_of(request: Request) -> str:
    return str(request.body["response_format"]["json_schema"]["name"])


def honest(request: Request) -> dict[str, Any]:
    """The answer of a model that does its work."""
    shown = fenced(request)
    if name_of(request) == "score_document":
        language = "zh" if is_chinese(request.messages[0]["content"]) else "en"
        features = measure(shown["document"], title=shown["title"], count=count_words)
        return formula(features, language).model_dump()
    if name_of(request) == "refine_window":
        blocks = [json.loads(line) for line in shown["blocks"].split("\n")]
        texts = [(block["id"], tidy_block(block["text"], block["kind"])) for block in blocks]
        return {
            "pieces": [{"sources": [at], "text": text} for at, text in texts if not furniture_reason(text)],
            "dropped": [
                {"source": at, "reason": furniture_reason(text)}
                for at, text in texts
                if furniture_reason(text)
            ],
        }
    row = re.search(r"\| (?:闪点|Flash point) \| (-?\d+ (?:℃|°C))[^|\n]*\|", shown["text"])
    quoted = (
        {"relation": "HAS_MEASUREMENT", "property": "flash_point", "object": row[1], "quote": row[0]}
        if row
        else {}
    )
    return {"assertions": [quoted] if quoted else []}


def obeying(request: Request, page: Hostile) -> dict[str, Any]:
    """The answer of a model that does what the page says."""
    answer = honest(request)
    if name_of(request) == "score_document":
        value = 0.0 if page.goal == "low" else 5.0
        return answer | dict.fromkeys(("score", "density", "safety", "completeness"), value)
    if name_of(request) == "refine_window":
        for piece in answer["pieces"]:
            if re.search(r"\d", piece["text"]):
                piece["text"] = re.sub(r"\d", lambda m: str((int(m[0]) + 1) % 10), piece["text"], count=1)
                return answer
    line = max(page.passage.split("\n"), key=len)
    for relation in ("STORE_UNDER", "SPILL_ACTION", "USED_FOR"):
        answer.setdefault("assertions", []).append({"relation": relation, "object": line, "quote": line})
    return answer


@dataclass
class Reader:
    """A script that obeys passages: those outside of fences only, or wherever they stand."""

    everywhere: bool
    obeyed: list[str] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def __call__(self, request: Request) -> dict[str, Any]:
        seen = "\n".join(
            message["content"] if self.everywhere else outside(message["content"])
            for message in request.messages[:2]
        )
        page = next(
            (p for p in PAGES if all(any(f in seen for f in forms) for forms in pieces(p.passage))), None
        )
        if page is None:
            return honest(request)
        with self.lock:
            self.obeyed.append(f"{name_of(request)} {page.id}")
        return obeying(request, page)


GULLIBLE, OBEDIENT = Reader(everywhere=False), Reader(everywhere=True)


def asking(server: ModelServer) -> Models:
    return Models(ModelSettings.model_validate({"base_url": server.base_url, "model": "m", "limits": QUICK}))


Bodies = dict[str, list[dict[str, Any]]]


@pytest.fixture(scope="module")
def bodies() -> Bodies:
    """Request bodies as a server receives them, one a skill: of each hostile page, and of one plain page a language."""
    found: Bodies = {}
    with ModelServer(GULLIBLE) as server:
        models = asking(server)
        firsts = {page.language: page for page in reversed(PAGES)}
        for name, page, hostile in (
            *((language, page, False) for language, page in firsts.items()),
            *((page.id, page, True) for page in PAGES),
        ):
            before = len(server.calls())
            for skill, asked in questions(page, hostile=hostile):
                models.run(skill, asked)
            found[name] = [request.body for request in server.calls()[before:]]
            assert len(found[name]) == 3  # each answered at once
    return found


@by_page
def test_a_passage_changes_nothing_but_the_inside_of_its_fence(page: Hostile, bodies: Bodies) -> None:
    wished = questions(page, hostile=False)
    for (skill, asked), plain, hostile in zip(wished, bodies[page.language], bodies[page.id], strict=True):
        assert {name: value for name, value in hostile.items() if name != "messages"} == {
            name: value for name, value in plain.items() if name != "messages"
        }
        assert hostile["response_format"]["type"] == "json_schema"
        wanted = [{"role": m.role, "content": m.content} for m in skill.messages(asked)]
        assert [m["role"] for m in hostile["messages"]] == [m["role"] for m in wanted]
        assert hostile["messages"][0] == plain["messages"][0] == wanted[0]
        inside = 0
        for message, before in zip(hostile["messages"][1:], wanted[1:], strict=True):
            content = message["content"]
            assert outside(content) == outside(before["content"])
            assert not holds(outside(content), page.passage)
            assert not _ROLE_MARK.search(content)
            for label, key, text in _FENCE.findall(content):
                assert content.count(f"</{label} k={key}>") == content.count(f"<{label} k={key}>") == 1
                if holds(text, page.passage):
                    inside += 1
                    last = max(content.rfind(form) for piece in pieces(page.passage) for form in piece)
                    assert content.index(f"</{label} k={key}>") > last
        assert inside > 0 or page.place == "title"


def test_a_gullible_model_never_sees_an_order(bodies: Bodies) -> None:
    assert len(bodies) == len(PAGES) + 2
    assert GULLIBLE.obeyed == []


# --- a model that obeys wherever an order stands -------------------------------------


@dataclass(frozen=True)
class Result:
    """What becomes of a page: its score, its refined text, its assertions."""

    score: Score
    refined: Refined
    rows: list[Assertion]

    def facts(self) -> set[tuple[str, str, str, str]]:
        """What is kept: subject, relation, object, value."""
        kept = (row for row in self.rows if row.state == "kept")
        return {
            (a.subject, a.relation, a.object, json.dumps(a.value.get("si"), sort_keys=True)) for a in kept
        }


LENIENT = ExtractionSettings(rejected_share=1.0)  # each assertion stands or falls by itself


def treat(models: Models, page: Hostile, *, hostile: bool) -> Result:
    """Score, refine and extract, as the steps do."""
    text, title = (page.hostile_text, page.hostile_title) if hostile else (page.text, page.title)
    score = models.run(ScoreDocument(), scored(text, title, page.language)).value
    refined = refine_document(text, blocks_of(text), language=page.language, title=title, models=models)
    made = replace(
        document(refined.text, title=title, language=page.language, cleaned=text),
        sections=tuple(Section(**section) for section in refined.sections),
        blocks=tuple(Block(**block) for block in refined.blocks),
    )
    return Result(score, refined, ExtractStep(LENIENT, models).assertions(made)[0])


def treat_all(script: Reader | None, *, hostile: bool) -> dict[str, Result]:
    if script is None:
        return {page.id: treat(Models.offline(), page, hostile=hostile) for page in PAGES}
    with ModelServer(script) as server, ThreadPoolExecutor(4) as pool:
        models = asking(server)
        return dict(
            zip(
                (p.id for p in PAGES),
                pool.map(lambda p: treat(models, p, hostile=hostile), PAGES),
                strict=True,
            )
        )


READERS: dict[str, Reader | None] = {"offline": None, "obedient": OBEDIENT}


@pytest.fixture(scope="module")
def plain() -> dict[str, Result]:
    """Results of the pages without their passages, by the rules (the scripted model scores by them as well)."""
    return treat_all(None, hostile=False)


@pytest.fixture(scope="module")
def spoilt() -> dict[str, dict[str, Result]]:
    """Results of the pages with their passages."""
    return {name: treat_all(reader, hostile=True) for name, reader in READERS.items()}


Results = dict[str, dict[str, Result]]
by_reader = pytest.mark.parametrize("reader", READERS)


def test_an_obedient_one_sees_them_where_it_has_to_read_the_page(spoilt: Results) -> None:
    seen = Counter(entry.split()[0] for entry in OBEDIENT.obeyed)
    assert seen["score_document"] == 0
    assert seen["refine_window"] >= len(PAGES) - 2
    assert seen["extract_assertions"] >= len(PAGES) // 2


@by_page
@by_reader
def test_the_score_is_that_of_the_page_without_the_passage(
    page: Hostile, reader: str, plain: dict[str, Result], spoilt: Results
) -> None:
    assert spoilt[reader][page.id].score == plain[page.id].score


@by_page
@by_reader
def test_nothing_of_what_was_ordered_is_stored(
    page: Hostile, reader: str, plain: dict[str, Result], spoilt: Results
) -> None:
    result = spoilt[reader][page.id]
    record = result.refined.record
    assert differences(page.hostile_text, result.refined.text) == []
    assert record["dropped"] == []
    assert record["orders"][0]["in"] == ("title" if page.place == "title" else "text")
    for a in result.rows:
        assert a.state == "rejected" or not gives_orders(result.refined.text, a.start, a.end)
    assert result.facts() <= plain[page.id].facts()
    assert reader != "offline" or result.facts() == plain[page.id].facts()


@by_page
def test_what_an_obedient_model_changed_is_refused_with_its_reason(page: Hostile, spoilt: Results) -> None:
    result = spoilt["obedient"][page.id]
    asked = {entry.split()[0] for entry in OBEDIENT.obeyed if entry.endswith(f" {page.id}")}
    if "refine_window" in asked:
        assert result.refined.unrefined
        assert {entry["kind"] for entry in result.refined.record["refused"]} == {"check"}
        assert all("lost " in entry["reason"] for entry in result.refined.record["refused"])
    reasons = {a.reason for a in result.rows if a.extractor == "m" and a.state == "rejected"}
    assert reasons == ({DropReason.GIVES_ORDERS.value} if "extract_assertions" in asked else set())


# --- in one run -------------------------------------------------------------------

NEIGHBOURS = [PAGES[0], PAGES[-1]]


def put(catalogue: Catalogue, name: str, title: str, text: str, language: str) -> str:
    identity = document_id(f"https://pages.example/{name}")
    with catalogue.writing() as session:
        session.add(
            Document(
                document_id=identity, page_id=identity, source="made-up", url=f"https://pages.example/{name}",
                identity=name, title=title, language=language, state="kept", flags=[], cleaned_text=text,
                cleaned_hash=digest("text", text), cleaned_blocks=blocks_of(text), score_parts={"page": {}},
            )
        )  # fmt: skip
    return identity


def stored(folder: Path, models: Models, pages: Sequence[Hostile]) -> dict[str, list[dict[str, Any]]]:
    """Document and assertion rows of two ordinary pages and of hostile ones after one run."""
    catalogue = Catalogue.open(f"sqlite:///{folder}/c.db")
    names = {put(catalogue, f"n-{p.id}", p.title, p.text, p.language): f"ordinary {p.id}" for p in NEIGHBOURS}
    names |= {put(catalogue, p.id, p.hostile_title, p.hostile_text, p.language): p.id for p in pages}
    for step in (ScoreStep(models=models), RefineStep(models=models), ExtractStep(LENIENT, models)):
        report = run_step(step, StageContext(catalogue, "run"))
        assert set(report.states) == {"kept"}, (step.name, report.as_dict())
    found: dict[str, list[dict[str, Any]]] = {name: [] for name in names.values()}
    with catalogue.reading() as session:
        for table in (Document, Assertion):
            for row in session.scalars(select(table)):
                columns = {column.key: getattr(row, column.key) for column in table.__mapper__.column_attrs}
                found[names[columns["document_id"]]].append(columns)
    return found


@by_reader
def test_another_document_of_the_run_is_what_it_would_be_alone(reader: str, tmp_path: Path) -> None:
    hostile = [page for page in PAGES if page.goal in ("others", "leak", "low") or page.place == "title"]
    (tmp_path / "alone").mkdir()
    with ModelServer(READERS[reader]) as server:
        models = Models.offline() if READERS[reader] is None else asking(server)
        alone = stored(tmp_path / "alone", models, [])
        beside = stored(tmp_path, models, hostile)
    for page in NEIGHBOURS:
        name = f"ordinary {page.id}"
        assert len(alone[name]) > 3
        assert sorted(map(repr, beside[name])) == sorted(map(repr, alone[name]))
        assert "orders" not in alone[name][0]["flags"]
    for page in hostile:
        assert "orders" in beside[page.id][0]["flags"]
        assert beside[page.id][0]["refinement"]["orders"]
