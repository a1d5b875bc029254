"""Made-up pages for the tests of people's decisions: what they say of substances is invented."""

from __future__ import annotations

from dataclasses import asdict

from corpus.catalogue import Catalogue
from corpus.catalogue.tables import ChemicalName, Document
from corpus.ids import digest
from corpus.names import normalise_name
from corpus.stages import StageContext, run_step
from kg.settings import ExtractionSettings
from kg.steps import extraction_steps
from models import Models
from tests.kg.documents import document

# title of the page → name, CAS number on the page, boiling point, flash point
PAGES = {
    "甲醇": ("甲醇", "67-56-1", "64.7", "11"),
    "甲号油": ("甲号油", "", "64.5", "31"),
    "乙醇": ("乙醇", "64-17-5", "78.3", "13"),
    "1,1-假想烷": ("1,1-假想烷", "", "57.1", "-11"),
    "1,2-假想烷": ("1,2-假想烷", "", "83.1", "13"),
    "二氯乙烷甲": ("二氯乙烷", "", "57.3", "-12"),
    "二氯乙烷乙": ("二氯乙烷", "", "83.5", "12"),
    "木醇": ("木醇", "67-56-1", "64.6", "12"),
}
REPOSITORY = {"甲醇": "67-56-1", "木醇": "67-56-1", "乙醇": "64-17-5"}


def page(title: str) -> Document:
    """The page of that title as a kept document."""
    name, cas, boiling, flash = PAGES[title]
    number = f"CAS号：{cas}\n\n" if cas else ""
    text = (
        f"# {name}\n\n## 第一部分 化学品及企业标识\n\n化学品中文名称：{name}\n\n{number}## 第五部分 消防措施\n\n灭火剂：干粉。\n\n"
        f"## 第七部分 操作处置与储存\n\n储存条件：储存于阴凉、通风的库房。\n\n## 第九部分 理化特性\n\n沸点：{boiling} ℃\n\n闪点（闭杯）：{flash} ℃\n"
    )
    made = document(text, title=title)
    return Document(
        document_id=made.document_id, page_id="p", source="test", url=f"http://sheets.test/{title}", kind="page",
        identity=made.document_id, title=title, language="zh", state="kept", cleaned_text=made.cleaned_text,
        cleaned_hash=digest(made.cleaned_text), version_id=made.version_id, text=made.text,
        blocks=[asdict(b) for b in made.blocks], sections=[asdict(s) for s in made.sections],
    )  # fmt: skip


def fill(catalogue: Catalogue) -> None:
    """All pages and the names that the repository knows."""
    with catalogue.writing() as session:
        session.add_all(page(title) for title in PAGES)
        session.add_all(
            ChemicalName(name_id=digest(key, name), key=key, name=name, normalised=normalise_name(name), language="zh",
                         kind="common", source="test")
            for name, key in REPOSITORY.items()
        )  # fmt: skip


def run(catalogue: Catalogue, *, force: bool = False, reference: bool = False) -> dict[str, dict[str, int]]:
    """What ``hchem run graph`` does before the graph; counts by step."""
    ctx = StageContext(catalogue, "r", force=force)
    steps = extraction_steps(ExtractionSettings(reference=reference), Models.offline())
    return {step.name: dict(run_step(step, ctx).states) for step in steps}
