"""What a question asks for in the terms of data sheets, and answers from pages in the other language."""

from __future__ import annotations

from pathlib import Path

import pytest

from chunking.asking import Reply, ask
from chunking.evaluation.settings import EvaluationSettings, VectorSettings
from chunking.matters import Lexicon
from chunking.subjects import Subjects
from corpus.catalogue import Catalogue
from corpus.catalogue.tables import ChemicalName, Document, EntityAlias
from flows.commands.ask import lexicon
from models import Models
from tests.chunking.rows import PAGES, add_chunks, add_documents

NAMES = ("甲苯", "toluene", "丙酮", "acetone")


@pytest.fixture(scope="module")
def labels() -> Lexicon:
    return lexicon()


@pytest.mark.parametrize(
    ("question", "matters"),
    [
        ("甲苯着火怎么灭火", "fire.media"),
        ("丙酮起火了用什么扑灭？", "fire.media"),
        ("How do I put out a toluene fire?", "fire.media"),
        ("Acetone is burning, what should I do?", "fire.media"),
        ("甲苯着火不能用什么灭火？", "fire.unsuitable_media"),
        ("甲苯的禁用灭火剂", "fire.unsuitable_media"),
        ("Which media must not be used to extinguish acetone?", "fire.unsuitable_media"),
        ("甲苯闪点", "measurement.flash_point"),
        ("What's acetone's flash point?", "measurement.flash_point"),
        ("toluene的沸点是多少", "measurement.boiling_point"),
        ("甲苯的蒸气密度", "measurement.vapour_density"),  # not its density
        ("甲苯燃烧时产生什么", "fire.combustion_products"),
        ("甲苯洩漏怎麼處理", "measures.spill"),
        ("How should a spill of acetone be cleaned up?", "measures.spill"),
        ("吸入甲苯怎么办", "first_aid.inhalation"),
        ("acetone in the eyes: what to do?", "first_aid.eyes"),
        ("甲苯中毒如何急救", "first_aid.any"),
        ("What is the occupational exposure limit of acetone?", "exposure.limits"),
        ("甲苯不能和什么混放", "reactivity.incompatible"),
        ("丙酮的UN号", "transport.un"),
        ("Is toluene carcinogenic?", "toxicity.carcinogenicity"),
        # what the lexicon does not know is not guessed
        ("甲苯的慢性毒性", ""),
        ("chronic acute toxicity of acetone", ""),
        ("甲苯的堆积密度", ""),
        ("bulk density of acetone", ""),
        ("甲苯的价格", ""),
        ("Who discovered acetone?", ""),
    ],
)
def test_what_a_question_asks_for(labels: Lexicon, question: str, matters: str) -> None:
    assert labels.asked(question, NAMES).matters == ((matters,) if matters else ())


def test_a_modifier_that_the_lexicon_does_not_know_has_to_be_in_the_answer(labels: Lexicon) -> None:
    for question, right, wrong in (
        ("甲苯的慢性毒性", "慢性毒性：长期接触……", "急性毒性：LD50 5000 mg/kg"),
        ("bulk density of acetone", "Bulk density: 1", "Density: 0.79"),
    ):
        asked = labels.asked(question, NAMES)
        assert asked.speaks(right)
        assert not asked.speaks(wrong)


TABLE = """| 五、消防措施 | | | |
| --- | --- | --- | --- |
| 有害燃烧产物： | 一氧化碳 | 灭火剂： | 泡沫、干粉。 |
| pH值： | 不适用 | 闪点（℃）： | 4 |
| 熔点： | 沸点： | 110.6 |
| 8.1 职业接触限值 | | | |

| 来源 | 数值 |
| --- | --- |
| 中国 | 50 mg/m³ |
| 美国 | 20 ppm |

后面的文字。"""

SHEET = """## SECTION 5: Fire-fighting measures

### 5.1 Extinguishing media

Suitable: foam.

### 5.2 Unsuitable media
### 8.1 Occupational exposure limits

- PEL-TWA: 200 ppm
- IDLH: 500 ppm

### 9.1 pH

Not available

Flash point: no data available
The boiling point is 110.6 °C at 101.3 kPa. The flash point of benzene is -11 °C. Density matters."""


@pytest.mark.parametrize(
    ("text", "matter", "expected"),
    [
        (TABLE, "fire.media", ["灭火剂： | 泡沫、干粉。"]),
        (TABLE, "fire.combustion_products", ["有害燃烧产物： | 一氧化碳"]),
        (TABLE, "measurement.flash_point", ["闪点（℃）： | 4"]),
        (TABLE, "measurement.ph", []),
        (TABLE, "measurement.melting_point", []),  # its cell is empty: the next label is no value
        (TABLE, "measurement.boiling_point", ["沸点： | 110.6"]),
        (
            TABLE,
            "exposure.limits",
            [
                "8.1 职业接触限值 | | | |\n\n| 来源 | 数值 |\n| --- | --- |\n| 中国 | 50 mg/m³ |\n| 美国 | 20 ppm |"
            ],
        ),
        (SHEET, "fire.unsuitable_media", []),  # another heading follows
        (SHEET, "measurement.ph", []),
        (SHEET, "measurement.flash_point", []),  # no data, and that of another substance
        (SHEET, "measurement.boiling_point", ["The boiling point is 110.6 °C at 101.3 kPa."]),
    ],
)
def test_what_stands_under_a_label(labels: Lexicon, text: str, matter: str, expected: list[str]) -> None:
    assert [text[start:end] for _, start, _, end in labels.spans(text, [matter])] == expected


def test_a_list_is_taken_whole_and_once(labels: Lexicon) -> None:
    found = [SHEET[start:end] for _, start, _, end in labels.spans(SHEET, ["exposure.limits"])]
    assert found[0].endswith("- PEL-TWA: 200 ppm\n- IDLH: 500 ppm")


@pytest.fixture(scope="module")
def catalogue(tmp_path_factory: pytest.TempPathFactory) -> Catalogue:
    catalogue = Catalogue.open(f"sqlite:///{tmp_path_factory.mktemp('asked')}/c.db")
    with catalogue.writing() as session:
        add_documents(session)
        session.add(
            ChemicalName(
                name_id="toluene", key="108-88-3", name="toluene", normalised="toluene", language="en",
                kind="name", source="test",
            )
        )  # fmt: skip
        add_chunks(session, "sentence", 40)
    return catalogue


def _reply(catalogue: Catalogue, folder: Path, question: str, labels: Lexicon | None) -> Reply:
    return ask(
        catalogue, question, Models.offline(), EvaluationSettings(), VectorSettings(), folder, lexicon=labels
    )


@pytest.mark.parametrize(
    ("question", "words", "note"),
    [
        ("甲苯着火怎么灭火", "灭火剂：泡沫、干粉、二氧化碳、砂土。用水灭火无效。", ""),
        ("What is the flash point of toluene?", "闪点：4 ℃。", "pages in Chinese"),
        ("How do I put out a toluene fire?", "用水灭火无效。", "pages in Chinese"),
        ("丙酮的闪点是多少？", "The flash point is -20 °C (closed cup).", "英文页面"),
        ("丙酮的引燃温度", "The autoignition temperature is 465 °C.", "英文页面"),
        ("What is the flash point of acetone?", "The flash point is -20 °C (closed cup).", ""),
    ],
)
def test_answers_stand_in_either_language_and_say_so(
    catalogue: Catalogue, tmp_path: Path, labels: Lexicon, question: str, words: str, note: str
) -> None:
    reply = _reply(catalogue, tmp_path, question, labels)
    assert words in reply.answer
    assert note in reply.note
    assert bool(reply.note) == bool(note)
    with catalogue.reading() as session:
        for citation in reply.citations:
            row = session.get_one(Document, citation.document_id)
            assert row.text[citation.start : citation.end] == citation.quote


@pytest.mark.parametrize(
    "question",
    [
        "What is the boiling point of toluene?",  # on no page
        "甲苯的沸点",
        "苯着火怎么灭火",  # no page on it, two on others
        "How do I put out a benzene fire?",
        "What is the flash point of ethanol?",
        "甲苯的慢性毒性",
        "闪点是多少",
    ],
)
def test_no_answer_where_there_is_none(
    catalogue: Catalogue, tmp_path: Path, labels: Lexicon, question: str
) -> None:
    reply = _reply(catalogue, tmp_path, question, labels)
    assert not reply.found, reply.answer
    assert not reply.citations
    assert not reply.note


@pytest.mark.parametrize(
    "question", ["What is the flash point of acetone in Japan?", "日本丙酮的闪点是多少？"]
)
def test_what_a_question_is_limited_to_is_told_where_no_page_has_it(
    catalogue: Catalogue, tmp_path: Path, labels: Lexicon, question: str
) -> None:
    reply = _reply(catalogue, tmp_path, question, labels)
    assert not reply.found
    assert "Japan" in reply.note


def test_without_the_lexicon_nothing_is_translated(catalogue: Catalogue, tmp_path: Path) -> None:
    assert not _reply(catalogue, tmp_path, "丙酮的闪点是多少？", None).found
    assert PAGES["acetone-en"][1] == "en"


def test_the_repository_knows_which_names_are_of_solutions(tmp_path: Path) -> None:
    catalogue = Catalogue.open(f"sqlite:///{tmp_path}/c.db")
    with catalogue.writing() as session:
        for name, kind in (("formaldehyde", "common"), ("formalin", "solution"), ("福尔马林", "solution")):
            language = "en" if name.isascii() else "zh"
            session.add(
                ChemicalName(
                    name_id=name,
                    key="50-00-0",
                    name=name,
                    normalised=name,
                    language=language,
                    kind=kind,
                    source="made",
                )
            )
        session.add(
            EntityAlias(
                alias_id="1",
                key="mixture:3",
                text="福尔马林",
                normalised="福尔马林",
                language="zh",
                kind="name",
                source="made",
            )
        )
    with catalogue.reading() as session:
        names = Subjects.load(session)
    assert names.named("boiling point of formaldehyde") == {"50-00-0"}
    assert names.named("boiling point of formalin") == {"mixture:50-00-0"}
    assert names.named("福尔马林的沸点") == {"mixture:3"}


def test_a_name_of_a_mixture_is_none_of_the_pure_substance() -> None:
    names = Subjects(
        [("7647-01-0", "氯化氢"), ("7647-01-0", "盐酸"), ("mixture:1", "盐酸"), ("name:2", "盐酸"),
         ("50-00-0", "formaldehyde"), ("50-00-0", "formaldehyde solution"), ("mixture:3", "formaldehyde solution")]
    )  # fmt: skip
    assert names.named("盐酸的闪点") == {"mixture:1", "name:2"}
    assert names.named("氯化氢的闪点") == {"7647-01-0"}
    assert names.named("formaldehyde solution") == {"mixture:3"}
    assert names.named("formaldehyde") == {"50-00-0"}
    assert "盐酸" not in names.names(["7647-01-0"])


def test_what_cannot_be_seen_in_a_question_changes_no_answer(
    catalogue: Catalogue, tmp_path: Path, labels: Lexicon
) -> None:
    plain = _reply(catalogue, tmp_path, "丙酮的闪点是多少？", labels)
    assert plain.found
    hidden = _reply(catalogue, tmp_path, "丙\u200b酮的\x00闪\x1b点\u202e是多少？", labels)
    assert hidden.answer == plain.answer
