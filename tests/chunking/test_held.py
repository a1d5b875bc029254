"""Whether two substances react: a held denial answers "no" with its words, and nothing else does."""

from __future__ import annotations

from pathlib import Path

import pytest

from chunking.asking import Reply, ask
from chunking.evaluation.settings import EvaluationSettings, VectorSettings
from chunking.held import reaction_asked
from corpus.catalogue import Catalogue
from corpus.catalogue.tables import Assertion, ChemicalName, EntityAlias
from corpus.ids import digest
from models import Models
from models.settings import EmbeddingSettings, ModelSettings, SkillModel
from tests.chunking.rows import PAGES, add_chunks, add_documents, identity
from tests.servers.model_server import ModelServer

KEYS = {"甲苯": "108-88-3", "甲醇": "67-56-1", "丙酮": "67-64-1", "水": "7732-18-5"}
DENIED = "甲苯是无色透明液体。"  # any words of the page: what they deny is in the row
ENGLISH = "Acetone is a colourless liquid."


def hold(catalogue: Catalogue, page: str, quote: str, subject: str, other: str, **values: object) -> None:
    document, version = identity(page)
    start = PAGES[page][2].index(quote)
    row = {
        "assertion_id": digest(page, quote, subject, other, str(values)),
        "document_id": document,
        "version_id": version,
        "state": "kept",
        "subject": subject,
        "subject_key": KEYS.get(subject, subject),
        "relation": "INCOMPATIBLE_WITH",
        "object": other,
        "object_key": KEYS.get(other, other),
        "polarity": "negative",
        "start": start,
        "end": start + len(quote),
        "quote": quote,
        "language": PAGES[page][1],
    }
    with catalogue.writing() as session:
        session.add(Assertion(**{**row, **values}))


@pytest.fixture
def catalogue(tmp_path: Path) -> Catalogue:
    catalogue = Catalogue.open(f"sqlite:///{tmp_path}/c.db")
    with catalogue.writing() as session:
        add_documents(session)
        add_chunks(session, "sentence", 40)
        names = [("7732-18-5", "水", "zh"), ("7732-18-5", "water", "en"), ("108-88-3", "toluene", "en")]
        for key, name, language in names:
            session.add(
                ChemicalName(
                    name_id=digest(key, name), key=key, name=name, normalised=name, language=language,
                    kind="common", source="t",
                )
            )  # fmt: skip
    return catalogue


def asked(catalogue: Catalogue, question: str, folder: Path) -> Reply:
    settings = EvaluationSettings(retrieval="lexical")
    return ask(catalogue, question, Models.offline(), settings, VectorSettings(), folder, method="sentence")


@pytest.mark.parametrize(
    ("question", "names"),
    [
        ("Does toluene react with water?", ("toluene", "water")),
        ("Will the toluene react with water", ("toluene", "water")),
        ("Is sodium hydroxide reactive towards water?", ("sodium hydroxide", "water")),
        ("甲苯与水反应吗？", ("甲苯", "水")),
        ("甲苯会不会和水发生反应", ("甲苯", "水")),
        ("甲苯遇水会反应吗？", ("甲苯", "水")),
        ("甲苯是否与水起化学反应？", ("甲苯", "水")),
        ("What does toluene react with?", None),
        ("How does toluene react with water?", None),
        ("甲苯与水反应的产物是什么？", None),
        ("甲苯的闪点是多少？", None),
    ],
)
def test_which_questions_are_of_reactions(question: str, names: tuple[str, str] | None) -> None:
    assert reaction_asked(question) == names


@pytest.mark.parametrize(
    "question",
    ["Does toluene react with water when heated?", "甲苯与水剧烈反应吗？", "甲苯加热时与水反应吗？"],
)
def test_a_question_with_a_circumstance_gets_no_plain_no(
    catalogue: Catalogue, tmp_path: Path, question: str
) -> None:
    hold(catalogue, "toluene-zh", DENIED, "甲苯", "水")
    assert not asked(catalogue, question, tmp_path).answer.startswith(("否", "No."))


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("Does toluene react with water?", f"No.\n{DENIED}"),
        ("Does water react with toluene?", f"No.\n{DENIED}"),
        ("甲苯与水反应吗？", f"否。\n{DENIED}"),
        ("水会不会和甲苯发生反应？", f"否。\n{DENIED}"),
    ],
)
def test_a_held_denial_answers_no_with_its_words(
    catalogue: Catalogue, tmp_path: Path, question: str, answer: str
) -> None:
    hold(catalogue, "toluene-zh", DENIED, "甲苯", "水")
    reply = asked(catalogue, question, tmp_path)
    assert (reply.found, reply.answer, reply.source) == (True, answer, "offline")
    (citation,) = reply.citations
    assert PAGES["toluene-zh"][2][citation.start : citation.end] == citation.quote == DENIED
    assert citation.chunk_id
    assert bool(reply.note) == question.isascii()  # the page is in Chinese


@pytest.mark.parametrize(
    "question",
    [
        "Does toluene react with water?",
        "甲苯与水反应吗？",
        "Does acetone react with water?",
        "甲醇会和水反应吗？",
    ],
)
def test_without_a_denial_nothing_is_denied(catalogue: Catalogue, tmp_path: Path, question: str) -> None:
    hold(catalogue, "toluene-zh", DENIED, "甲苯", "水", state="rejected")
    hold(catalogue, "toluene-zh", DENIED, "甲苯", "7439-89-6")
    hold(catalogue, "acetone-en", ENGLISH, "丙酮", "水", version_id="older")
    reply = asked(catalogue, question, tmp_path)
    assert not reply.found
    assert reply.answer in ("知识库中没有找到答案。", "Not found in the knowledge base.")


def test_what_limits_a_denial_is_told(catalogue: Catalogue, tmp_path: Path) -> None:
    hold(catalogue, "toluene-zh", DENIED, "甲苯", "水", conditions={"when": "常温下"})
    assert (
        asked(catalogue, "甲苯与水反应吗？", tmp_path).answer == f"页面称不反应，所述情形：常温下。\n{DENIED}"
    )
    hold(catalogue, "acetone-en", ENGLISH, "丙酮", "水", conditions={"when": "even when heated"})
    answer = asked(catalogue, "Does acetone react with water?", tmp_path).answer
    assert answer == f"The pages say that it does not, in these circumstances: even when heated.\n{ENGLISH}"


@pytest.mark.parametrize("note", ["剧烈", "violently"])
def test_what_does_not_react_violently_may_react(catalogue: Catalogue, tmp_path: Path, note: str) -> None:
    hold(catalogue, "toluene-zh", DENIED, "甲苯", "水", conditions={"note": note})
    assert not asked(catalogue, "甲苯与水反应吗？", tmp_path).found
    assert not asked(catalogue, "Does toluene react with water?", tmp_path).found


def test_a_denial_of_a_solution_is_no_plain_no(catalogue: Catalogue, tmp_path: Path) -> None:
    with catalogue.writing() as session:
        session.add(
            EntityAlias(
                alias_id="a", key="mixture:1", text="甲苯", normalised="甲苯", language="zh", kind="name",
                source="crawled", ambiguous=True,
            )
        )  # fmt: skip
    hold(catalogue, "toluene-zh", DENIED, "甲苯", "水", subject_key="mixture:1")
    answer = asked(catalogue, "甲苯与水反应吗？", tmp_path).answer
    assert answer == f"页面称不反应，所述情形：页面所述的溶液或混合物。\n{DENIED}"


@pytest.mark.parametrize(
    "values",
    [
        {"polarity": "positive"},
        {"polarity": "positive", "relation": "HAS_H", "object": "H260", "object_key": "H260"},
    ],
)
def test_where_a_page_states_the_reaction_both_are_told(
    catalogue: Catalogue, tmp_path: Path, values: dict[str, object]
) -> None:
    hold(catalogue, "toluene-zh", DENIED, "甲苯", "水")
    hold(catalogue, "toluene-zh", "用水灭火无效。", "甲苯", "水", **values)
    for question, said in (
        ("甲苯与水反应吗？", "各页面所述不一："),
        ("Does toluene react with water?", "The pages differ:"),
    ):
        reply = asked(catalogue, question, tmp_path)
        assert reply.answer == f"{said}\n用水灭火无效。\n{DENIED}"


def test_a_class_that_the_other_belongs_to_counts(catalogue: Catalogue, tmp_path: Path) -> None:
    hold(catalogue, "toluene-zh", DENIED, "甲苯", "丙酮")
    hold(catalogue, "toluene-zh", "用水灭火无效。", "甲苯", "group:ketone", polarity="positive")
    assert asked(catalogue, "甲苯与丙酮反应吗？", tmp_path).answer.startswith("否。")
    hold(catalogue, "acetone-en", ENGLISH, "丙酮", "group:ketone", polarity="positive", relation="MEMBER_OF")
    assert asked(catalogue, "甲苯与丙酮反应吗？", tmp_path).answer.startswith("各页面所述不一：")


def _model(server: ModelServer) -> Models:
    return Models(
        ModelSettings(
            api_key=None,
            embeddings=EmbeddingSettings(cohesion="ngram"),
            skills={"answer_question": SkillModel(base_url=server.base_url, model="scripted")},
        )
    )


@pytest.mark.parametrize(
    ("question", "said"), [("甲苯与水反应吗？", "否。"), ("Does toluene react with water?", "No.")]
)
def test_what_a_model_does_not_find_is_answered_from_the_denial(
    catalogue: Catalogue, tmp_path: Path, question: str, said: str
) -> None:
    hold(catalogue, "toluene-zh", DENIED, "甲苯", "水")
    with ModelServer(lambda request: {"found": False, "answer": "", "quotes": []}) as server:
        models = _model(server)
        settings = EvaluationSettings(retrieval="lexical")
        reply = ask(catalogue, question, models, settings, VectorSettings(), tmp_path, method="sentence")
        models.close()
        assert server.calls()
    assert (reply.answer, reply.source) == (f"{said}\n{DENIED}", "offline")
