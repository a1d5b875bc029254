"""A corpus of made-up data sheets that goes through score → refine → extract on a scripted model server.

The right answers are the platform's own rules (what is tested is the way, not the
answers). As a program it runs the three steps on a catalogue, so that it can be
killed: ``python -m tests.flows.faulty_corpus CATALOGUE_URL BASE_URL RETRIES``.
"""

from __future__ import annotations

import json
import re
import sys
import threading
from collections.abc import Sequence
from typing import Any

from corpus.catalogue import Catalogue
from corpus.catalogue.stores import CatalogueAnswers
from corpus.catalogue.tables import Document
from corpus.curating.texts import RefineStep, ScoreStep
from corpus.ids import digest
from corpus.stages import BatchReport, StageContext, Step, run_step
from kg.extraction.skill import ExtractAssertions, ExtractedAssertions, ExtractionGiven
from kg.settings import ExtractionSettings
from kg.steps import ExtractStep
from models import Answer, Models, ModelSettings, Skill
from tests.servers.model_server import Request

STEPS = ("curate.score", "curate.refine", "graph.extract")
SKILLS = ("score_document", "refine_window", "extract_assertions")
CONCURRENCY = 16

_ZH = """# 试剂{n}安全技术说明书

文件编号 MADEUP-{n:04}。本页为测试而编写，不是真实资料。

## 第一部分 化学品及企业标识

试剂{n}，CAS 67-56-1，UN1230。

## 第五部分 消防措施

用干粉灭火。

## 第七部分 操作处置与储存

储存于阴凉、通风的库房。远离火种、热源。库温不宜超过{t} ℃。应与氧化剂分开存放。

## 第九部分 理化特性

沸点 {b} ℃，闪点 {f} ℃（闭杯）。不得靠近明火。"""
_EN = """# Safety Data Sheet: Reagent {n}

Document number MADEUP-{n:04}. This page was written for a test; it is no real data.

## SECTION 1: Identification

Reagent {n}, CAS 67-64-1, UN 1090, used as a solvent.

## SECTION 5: Fire-fighting measures

Use dry powder.

## SECTION 7: Handling and storage

Store in a cool, well-ventilated place below {t} °C, away from oxidizing agents and acids.

## SECTION 9: Physical and chemical properties

Boiling point {b} °C, flash point {f} °C. Do not bring near an open flame."""
_NUMBER = re.compile(r"MADEUP-(\d{4})")


def sheet(n: int) -> str:
    """Text number n; even ones are Chinese."""
    form = _ZH if n % 2 == 0 else _EN
    return form.format(n=n, t=20 + n % 17, b=50 + n % 97, f=n % 61 - 20)


def fill(catalogue: Catalogue, count: int) -> None:
    """Put cleaned documents into a catalogue, as the cleaning step leaves them."""
    with catalogue.writing() as session:
        for n in range(count):
            text = sheet(n)
            blocks, at = [], 0
            for part in text.split("\n\n"):
                kind = "heading" if part.startswith("#") else "paragraph"
                blocks.append({"start": at, "end": at + len(part), "path": "/html/body", "kind": kind})
                at += len(part) + 2
            session.add(
                Document(
                    document_id=f"doc{n:04}",
                    page_id=f"page{n:04}",
                    source="made-up",
                    url=f"https://made-up.example/{n}",
                    identity=str(n),
                    title=text.split("\n")[0].strip("# "),
                    language="zh" if n % 2 == 0 else "en",
                    state="kept",
                    cleaned_text=text,
                    cleaned_hash=digest("text", text),
                    cleaned_blocks=blocks,
                )
            )


def steps(models: Models) -> list[Step]:
    """The three steps that ask a model."""
    return [ScoreStep(models=models), RefineStep(models=models), ExtractStep(ExtractionSettings(), models)]


def run(catalogue: Catalogue, models: Models, run_id: str) -> dict[str, BatchReport]:
    """Run the steps one after another in this process."""
    return {
        step.name: run_step(step, StageContext(catalogue=catalogue, run_id=run_id)) for step in steps(models)
    }


class Recording(Models):
    """Answers by rules and keeps what was asked and answered, by skill and document."""

    def __init__(self) -> None:
        super().__init__(ModelSettings(api_key=None))
        self.right: dict[tuple[str, str], dict[str, Any]] = {}
        self._guard = threading.Lock()

    def run(self, skill: Skill[Any, Any], given: Any, *, draw: int = 0) -> Answer[Any]:
        """As ``Models.run``."""
        answer = super().run(skill, given, draw=draw)
        prompt = "\n".join(message.content for message in skill.messages(given))
        value = answer.value
        if isinstance(given, ExtractionGiven):
            value = _as_a_model(given, value)
        with self._guard:
            key = (skill.name, _number(prompt))
            assert key not in self.right, "a document takes one question per skill here"
            self.right[key] = json.loads(value.model_dump_json())
        return answer


def _as_a_model(given: ExtractionGiven, found: ExtractedAssertions) -> ExtractedAssertions:
    """What a model could have answered: no exact drafts, only statements that the check accepts one by one."""
    skill = ExtractAssertions()
    plain = [item.model_copy(update={"exact": None}) for item in found.assertions]
    fine = [
        item for item in plain if skill.check(given, ExtractedAssertions(assertions=[item])).kind == "accept"
    ]
    return ExtractedAssertions(assertions=fine)


def _number(prompt: str) -> str:
    found = set(_NUMBER.findall(prompt))
    assert len(found) == 1, "one document in a prompt"
    return found.pop()


def skill_of(request: Request) -> str:
    """The skill that a request belongs to, from its response format."""
    return str(request.body["response_format"]["json_schema"]["name"])


def document_of(request: Request) -> str:
    """The number of the document that a request is about."""
    return _number(request.text)


def settings(base_url: str, *, retries: int) -> ModelSettings:
    """A model at the scripted server, many calls at once, quick repeats."""
    limits = {
        "concurrency": CONCURRENCY,
        "retries": retries,
        "pause_s": 0.01,
        "max_wait_s": 1.0,
        "give_up_after": 50,
    }
    return ModelSettings.model_validate(
        {"base_url": base_url, "model": "scripted", "api_key": None, "limits": limits, "timeout_s": 60.0}
    )


def main(arguments: Sequence[str]) -> None:
    """Run the steps on a catalogue until they end or somebody kills the process."""
    url, base_url, retries = arguments
    catalogue = Catalogue.open(url)
    models = Models(settings(base_url, retries=int(retries)), answers=CatalogueAnswers(catalogue, "killed"))
    run(catalogue, models, "killed")
    models.close()
    catalogue.close()


if __name__ == "__main__":
    main(sys.argv[1:])
