"""Small data sets in the shapes in which the benchmarks are published. Every text in them is made up."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

ZH = [
    "虚构剂甲是一种无色液体，沸点为75 ℃。",
    "吸入后应迅速脱离现场，移至空气新鲜处。",
    "灭火时使用抗溶性泡沫，切断火源。",
]
EN = [
    "Example agent A is a colourless liquid and boils at 75 °C.",
    "After inhalation move the person to fresh air at once.",
    "Use alcohol-resistant foam and cut off the source of fire.",
]
ZH_TITLES, EN_TITLES = ["性状", "急救措施", "消防措施"], ["Properties", "First aid", "Fire fighting"]


def put(path: Path, value: Any) -> Path:
    """Write text as it is, anything else as JSON."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(
        value if isinstance(value, str) else json.dumps(value, ensure_ascii=False), encoding="utf-8"
    )
    return path


def lines(rows: list[Any]) -> str:
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


def table(path: Path, rows: list[dict[str, Any]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, fieldnames=list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)


def hichunk(folder: Path) -> None:
    for name, title, titles, texts in (("zh1", "虚构剂甲", ZH_TITLES, ZH), ("en1", "Agent A", EN_TITLES, EN)):
        parts = "".join(f"## {head}\n{text}\n\n" for head, text in zip(titles, texts, strict=True))
        put(folder / "docs" / "HiCBench" / f"{name}.txt", f"# {title}\n\n{parts}")
    rows = [
        {"input": "吸入后怎么办？", "answers": ["移至空气新鲜处"], "facts": [], "_id": "zh1",
         "evidences": ["## 急救措施\n" + ZH[1]], "all_classes": ["T1"]},
        {"input": "Which foam is used?", "answers": ["alcohol-resistant foam"], "facts": [], "_id": "en1",
         "evidences": ["Use  alcohol-resistant foam\nand cut off the source of fire."], "all_classes": ["T2"]},
    ]  # fmt: skip
    put(folder / "qas" / "HiCBench.jsonl", lines(rows))


def hchemsafety(folder: Path) -> None:
    put(folder / "QA_test.json", [{"question": "虚构剂甲的沸点是多少？", "answer": "75 ℃", "type": "事实"},
                                  {"question": "How is it put out?", "answer": EN[2], "reference": [EN[2]]}])  # fmt: skip
    put(folder / "doc_test.json", ["".join(ZH), {"id": "en", "title": "Agent A", "text": " ".join(EN)}])


def crud(folder: Path) -> None:
    news = ["".join(ZH), "某地开展虚构演练。演练顺利结束。"]
    tasks = {
        "event_summary": [],
        "questanswer_1doc": [{"ID": "a1", "event": "虚构剂甲", "news1": news[0], "questions": "沸点是多少？", "answers": "75 ℃"}],
        "questanswer_2docs": [{"ID": "b2", "event": "演练", "news1": news[0], "news2": news[1],
                               "questions": "演练和急救？", "answers": "顺利结束"}],
    }  # fmt: skip
    put(folder / "split_merged.json", tasks)
    put(folder / "80000_docs" / "documents_dup_part_1_part_1", f"{news[1]}\n虚构的另一条新闻，与问题无关。\n")


def omnieval(folder: Path) -> None:
    put(folder / "OmniEval.json", [{"question": "虚构基金的费率是多少？", "answer": "0.5%"}])
    put(folder / "docs" / "one.jsonl", lines([{"id": "1", "contents": "虚构基金的费率为0.5%。赎回需两天。"}]))


def longbench(folder: Path) -> None:
    row = {"length": 30, "dataset": "multifieldqa_zh", "language": "zh", "all_classes": None, "_id": "x1"}
    put(
        folder / "multifieldqa_zh.jsonl",
        lines([{**row, "input": "沸点？", "context": "".join(ZH), "answers": ["75 ℃"]}]),
    )
    put(
        folder / "qasper.jsonl",
        lines(
            [
                {
                    **row,
                    "input": "Which foam?",
                    "context": " ".join(EN),
                    "answers": ["foam", "alcohol-resistant foam"],
                }
            ]
        ),
    )
    put(
        folder / "gov_report.jsonl",
        lines([{**row, "input": "", "context": "A report.", "answers": ["A summary."]}]),
    )


def qasper(folder: Path) -> None:
    paper = {
        "title": "A made-up paper",
        "abstract": "We study an example agent. It is made up.",
        "full_text": [
            {"section_name": "Introduction", "paragraphs": [EN[0], ""]},
            {"section_name": "Methods ::: First aid", "paragraphs": [EN[1]]},
            {"section_name": "Methods ::: Fire ::: Foam", "paragraphs": [EN[2]]},
            {"section_name": None, "paragraphs": ["It ends here."]},
        ],
        "qas": [
            {"question": "What is used?", "question_id": "q1", "answers": [
                {"answer": {"unanswerable": False, "extractive_spans": ["alcohol-resistant foam"], "yes_no": None,
                            "free_form_answer": "", "evidence": [EN[2], "FLOAT SELECTED: Figure 1"]}},
                {"answer": {"unanswerable": False, "extractive_spans": [], "yes_no": True, "free_form_answer": "", "evidence": [EN[2]]}}]},
            {"question": "Why?", "question_id": "q2", "answers": [{"answer": {"unanswerable": True}}]},
        ],
    }  # fmt: skip
    put(folder / "qasper-dev-v0.3.json", {"1000.00001": paper})


def gov_report(folder: Path) -> None:
    inner = {"section_title": "Foam", "paragraphs": [EN[2]], "subsections": []}
    first = {"section_title": "Background", "paragraphs": [EN[0], EN[1]], "subsections": [inner]}
    second = {"section_title": "Conclusions", "paragraphs": ["It is made up."], "subsections": []}
    put(
        folder / "gao" / "GAO-1.json",
        {"id": "GAO-1", "title": "Made up", "report": [first, second], "highlight": []},
    )
    root = {"section_title": "", "paragraphs": [], "subsections": [first, second]}
    put(folder / "crs" / "R1.json", {"id": "R1", "title": "Made up too", "reports": root, "summary": []})


def gutenqa(folder: Path) -> None:
    base = {"Book Name": "A_Made_Up_Book", "Book ID": 1, "Chapter": "I"}
    table(folder / "GutenQA.csv", [{**base, "Chunk ID": n, "Chunk": text} for n, text in enumerate(EN)])
    table(folder / "questions.csv", [{**base, "Chunk ID": 2, "Question": "Which foam is used?", "Answer": "Resistant foam",
                                      "Chunk Must Contain": "alcohol-resistant foam"}])  # fmt: skip


def wiki_727k(folder: Path) -> None:
    text = (
        f"========,1,preface.\n{EN[0]}\n========,2,First aid.\n{EN[1]}\nIt helps.\n========,3,Deep.\n"
        f"***LIST***.\n========,2,Fire.\n{EN[2]}\n"
    )
    put(folder / "test" / "ab" / "cd" / "12345", text)
    put(folder / "paths_cache", "test/ab/cd/12345\n")


def ohr_bench(folder: Path) -> None:
    put(
        folder / "retrieval_base" / "gt" / "manual" / "agent.json",
        [{"page_idx": 1, "text": EN[2]}, {"page_idx": 0, "text": f"{EN[0]}\n{EN[1]}"}],
    )
    row = {"doc_name": "manual/agent", "ID": "u1", "questions": "Which foam?", "answers": "resistant", "doc_type": "manual",
           "answer_form": "String", "evidence_source": "text", "evidence_context": EN[2], "evidence_page_no": 1}  # fmt: skip
    put(folder / "qas_v2.json", [row, {**row, "ID": "u2", "doc_name": "manual/absent"}])


def chroma(folder: Path) -> None:
    text = "\r\n".join(EN)
    (folder / "corpora").mkdir(parents=True)
    (folder / "corpora" / "notes.md").write_bytes(text.encode())
    plain = "\n".join(EN)
    at = plain.index(EN[1])
    spans = [
        {"content": EN[1], "start_index": at, "end_index": at + len(EN[1])},
        {"content": "not there", "start_index": 1, "end_index": 9},
    ]
    table(
        folder / "questions_df.csv",
        [{"question": "What after inhalation?", "references": json.dumps(spans), "corpus_id": "notes"}],
    )


def choi(folder: Path) -> None:
    rule = "=" * 10
    put(
        folder / "3-5" / "0.ref",
        f"{rule}\n{EN[0]}\nIt is made up .\n{rule}\n{EN[1]}\n{rule}\n{EN[2]}\nIt ends .\n{rule}\n",
    )


MAKERS: dict[str, Callable[[Path], None]] = {
    "hichunk": hichunk, "hchemsafety": hchemsafety, "crud": crud, "omnieval": omnieval, "longbench": longbench,
    "qasper": qasper, "gov-report": gov_report, "gutenqa": gutenqa, "wiki-727k": wiki_727k, "ohr-bench": ohr_bench,
    "chroma": chroma, "choi": choi,
}  # fmt: skip
