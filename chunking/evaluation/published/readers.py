"""One reader for each published data set. The shapes are those of the authors' releases."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from chunking.evaluation.published.data import (
    Benchmark,
    BenchmarkDocument,
    BenchmarkError,
    BenchmarkQuestion,
    Headings,
    Places,
    Section,
    composed,
    counted_rows,
    field_of,
    files,
    from_markdown,
    located,
    read_json,
    read_rows,
    read_text,
    required,
    text_in,
    texts_of,
    whole_in,
)

Read = Callable[[Path, Headings, tuple[str, ...]], Benchmark]


@dataclass(frozen=True)
class Reader:
    """A reader, what its folder holds, and whether it takes ``--subset``."""

    read: Read
    shape: str
    subsets: bool = False


def _finish(
    name: str,
    documents: Sequence[BenchmarkDocument],
    questions: Iterable[BenchmarkQuestion],
    notes: Counter[str] | None = None,
) -> Benchmark:
    """Locate the evidence that has no offsets yet; texts without a word are left out."""
    notes = Counter() if notes is None else notes
    kept = [document for document in documents if document.text.strip()]
    notes["empty texts"] += len(documents) - len(kept)
    by_id = {document.id: document for document in kept}
    own: dict[str, Places] = {}
    every: Places | None = None
    found = []
    for question in questions:
        if question.document is None:
            every = every or Places(kept)
            places = every
        elif question.document in by_id:
            if question.document not in own:
                own[question.document] = Places([by_id[question.document]])
            places = own[question.document]
        else:
            notes["questions without their text"] += 1
            continue
        regions = question.regions or located(question.evidence, places, notes)
        found.append(
            BenchmarkQuestion(
                question.id,
                question.question,
                question.answers,
                question.evidence,
                regions,
                question.document,
                question.subset,
            )
        )
    return Benchmark(name, kept, found, +notes)


# --- HiChunk / HiCBench ---------------------------------------------------------------------------------------


def _hichunk(folder: Path, headings: Headings, subsets: tuple[str, ...]) -> Benchmark:
    """``docs/<set>/<id>.txt`` with ``#`` headings, ``qas/<set>.jsonl``."""
    texts = required(
        folder, "documents", "docs/**/*.txt", "doc/**/*.txt", "**/docs/**/*.txt", "**/doc/**/*.txt"
    )
    documents = []
    for path in texts:
        group = path.parent.name
        if subsets and group not in subsets:
            continue
        identifier = f"{group}/{path.stem}"
        documents.append(from_markdown(identifier, read_text(path), headings))
    if not documents:
        groups = sorted({path.parent.name for path in texts})
        raise BenchmarkError(f"{folder}: no documents of {', '.join(subsets)}; there: {', '.join(groups)}")
    questions = []
    notes: Counter[str] = Counter()
    for path in files(folder, "qas/*.jsonl", "**/qas/*.jsonl"):
        if subsets and path.stem not in subsets:
            continue
        for number, row in enumerate(counted_rows(path, notes)):
            identifier = f"{path.stem}/{field_of(row, path, '_id')}"
            questions.append(
                BenchmarkQuestion(
                    f"{identifier}#{number}",
                    str(field_of(row, path, "input")),
                    texts_of(row.get("answers")),
                    texts_of(row.get("evidences")),
                    document=identifier,
                    subset="+".join(texts_of(row.get("all_classes"))) or path.stem,
                )
            )
    return _finish("hichunk", documents, questions, notes)


# --- questions with texts beside them ---------------------------------------------------------------------------

_TEXT_FIELDS = ("text", "content", "contents", "document", "doc", "passage", "context")
_QUOTE_FIELDS = ("evidence", "evidences", "reference", "references", "relevant_passage", "relevant_passages")


def _corpus(folder: Path, skip: Sequence[Path], *patterns: str) -> list[BenchmarkDocument]:
    """Texts of a folder: ``.txt`` and ``.md`` files, or rows with a text in JSON files."""
    documents: list[BenchmarkDocument] = []
    for path in required(folder, "documents", *patterns):
        if path in skip:
            continue
        if path.suffix in (".txt", ".md"):
            documents.append(BenchmarkDocument(path.stem, path.stem, read_text(path)))
            continue
        value = read_json(path) if path.suffix == ".json" else read_rows(path)
        rows = value if isinstance(value, list) else list(value.values()) if isinstance(value, dict) else []
        for number, row in enumerate(rows):
            text = row if isinstance(row, str) else str(field_of(row, path, *_TEXT_FIELDS))
            title = "" if isinstance(row, str) else str(row.get("title") or "")
            given = None if isinstance(row, str) else row.get("id", row.get("ID", row.get("_id")))
            documents.append(
                BenchmarkDocument(str(given if given is not None else f"{path.stem}/{number}"), title, text)
            )
    if not documents:
        raise BenchmarkError(f"{folder}: no documents ({' or '.join(patterns)}) beside the questions")
    return documents


def _question_rows(paths: Sequence[Path], notes: Counter[str]) -> list[BenchmarkQuestion]:
    questions = []
    for path in paths:
        for number, row in enumerate(counted_rows(path, notes)):
            quotes = next((texts_of(row[name]) for name in _QUOTE_FIELDS if row.get(name)), ())
            questions.append(
                BenchmarkQuestion(
                    f"{path.stem}#{row.get('id', row.get('ID', number))}",
                    str(field_of(row, path, "question", "questions", "input", "query")),
                    texts_of(field_of(row, path, "answer", "answers")),
                    quotes,
                    subset=str(row.get("type") or row.get("task") or ""),
                )
            )
    return questions


def _hchemsafety(folder: Path, headings: Headings, subsets: tuple[str, ...]) -> Benchmark:
    """``QA_test.json`` ({question, answer}; type and reference where given) and ``doc_test.json`` or ``docs/``."""
    paths = required(
        folder, "questions", "QA*.json", "huagong*.json", "**/QA*.json", "**/huagong*.json", "*.json"
    )
    paths = [path for path in paths if not path.stem.lower().startswith("doc")]
    if not paths:
        raise BenchmarkError(f"{folder}: no questions (QA*.json) beside the documents")
    documents = _corpus(
        folder, paths, "doc*.json", "**/doc*.json", "docs/**/*.txt", "docs/**/*.md", "**/*.txt"
    )
    notes: Counter[str] = Counter()
    return _finish("hchemsafety", documents, _question_rows(paths, notes), notes)


def _omnieval(folder: Path, headings: Headings, subsets: tuple[str, ...]) -> Benchmark:
    """``OmniEval.json`` or ``*.jsonl`` of questions, and the passages in ``docs/`` or ``corpus/``."""
    paths = required(
        folder,
        "questions",
        "OmniEval*.json",
        "qas/**/*.jsonl",
        "**/OmniEval*.json",
        "questions*.json*",
        "*.jsonl",
    )
    documents = _corpus(
        folder,
        paths,
        "docs/**/*.json*",
        "corpus/**/*.json*",
        "doc*.json*",
        "docs/**/*.txt",
        "corpus/**/*.txt",
    )
    notes: Counter[str] = Counter()
    return _finish("omnieval", documents, _question_rows(paths, notes), notes)


def _crud(folder: Path, headings: Headings, subsets: tuple[str, ...]) -> Benchmark:
    """``split_merged.json`` with ``questanswer_1doc``, ``_2docs``, ``_3docs``; the news of an item are its evidence.

    Articles of ``80000_docs`` are added as further texts where they are there.
    """
    path = required(
        folder, "split_merged.json", "split_merged*.json", "**/split_merged*.json", "**/crud*.json"
    )[0]
    data = read_json(path)
    tasks = [name for name in data if name.startswith("questanswer")] if isinstance(data, dict) else []
    tasks = [name for name in tasks if not subsets or name in subsets]
    if not tasks:
        wanted = ", ".join(subsets) or "questanswer_1doc"
        there = ", ".join(data) if isinstance(data, dict) else "a list"
        raise BenchmarkError(f"{path}: no task {wanted}; there: {there}")
    texts: dict[str, BenchmarkDocument] = {}
    questions = []
    for task in tasks:
        for row in data[task]:
            number = str(field_of(row, path, "ID"))
            news = [str(row[key]) for key in sorted(row) if re.fullmatch(r"news\d", key) and row[key]]
            regions = []
            for at, text in enumerate(news, start=1):
                document = texts.setdefault(
                    text, BenchmarkDocument(f"{number}/{at}", str(row.get("event") or ""), text)
                )
                regions.append((document.id, 0, len(text)))
            questions.append(
                BenchmarkQuestion(
                    f"{task}#{number}",
                    str(field_of(row, path, "questions")),
                    texts_of(field_of(row, path, "answers")),
                    tuple(news),
                    tuple(regions),
                    subset=task,
                )
            )
    for extra in files(folder, "80000_docs/*", "**/80000_docs/*"):
        for line, text in enumerate(read_text(extra).split("\n")):
            if text.strip() and text not in texts:
                texts[text] = BenchmarkDocument(f"{extra.stem}/{line}", "", text)
    return _finish("crud", list(texts.values()), questions)


_NOT_QUESTIONS = frozenset({"gov_report", "qmsum", "multi_news", "vcsum", "trec", "samsum", "lsht", "passage_count",
                            "passage_retrieval_en", "passage_retrieval_zh", "lcc", "repobench-p"})  # fmt: skip


def _longbench(folder: Path, headings: Headings, subsets: tuple[str, ...]) -> Benchmark:
    """``<subset>.jsonl`` with input, context, answers; each question has its own context, no evidence is given."""
    paths = required(folder, "subsets", "*.jsonl", "data/*.jsonl", "**/*.jsonl")
    there = [path.stem for path in paths]
    if missing := sorted(set(subsets) - set(there)):
        raise BenchmarkError(f"{folder}: no subset {', '.join(missing)}; there: {', '.join(there)}")
    texts: dict[str, BenchmarkDocument] = {}
    questions = []
    notes: Counter[str] = Counter()
    for path in paths:
        if (subsets and path.stem not in subsets) or (
            not subsets and path.stem.removesuffix("_e") in _NOT_QUESTIONS
        ):
            notes["subsets that ask no questions"] += not subsets
            continue
        for number, row in enumerate(counted_rows(path, notes)):
            context = str(field_of(row, path, "context"))
            document = texts.setdefault(context, BenchmarkDocument(f"{path.stem}/{number}", "", context))
            questions.append(
                BenchmarkQuestion(
                    f"{path.stem}#{row.get('_id', number)}",
                    str(field_of(row, path, "input")),
                    texts_of(field_of(row, path, "answers")),
                    document=document.id,
                    subset=path.stem,
                )
            )
    return _finish("longbench", list(texts.values()), questions, notes)


# --- documents with sections ------------------------------------------------------------------------------------


def _qasper(folder: Path, headings: Headings, subsets: tuple[str, ...]) -> Benchmark:
    """``qasper-*.json``: papers by id with ``full_text`` (``:::`` between the levels of a section's name) and ``qas``."""
    paths = required(folder, "papers", "qasper-*.json", "**/qasper-*.json", "*.json")
    paths = [path for path in paths if not subsets or any(subset in path.stem for subset in subsets)]
    documents, questions = [], []
    for path in paths:
        data = read_json(path)
        if not isinstance(data, dict):
            raise BenchmarkError(f"{path}: expected an object of papers by id")
        for paper, row in data.items():
            if not isinstance(row, dict) or "full_text" not in row:
                raise BenchmarkError(f"{path}: paper {paper!r} has no 'full_text'")
            sections = [Section(1, "Abstract", texts_of(row.get("abstract")))]
            above: list[str] = []
            for part in row["full_text"]:
                names = [name.strip() for name in str(part.get("section_name") or "").split(":::")]
                # a section whose parent was not written of itself opens the parent at the same place
                for depth, name in enumerate(names[:-1], start=1):
                    if above[:depth] != names[:depth]:
                        sections.append(Section(depth, name, ()))
                        above = names[:depth]
                sections.append(Section(len(names), names[-1], tuple(map(str, part.get("paragraphs") or ()))))
                above = names
            documents.append(composed(paper, str(row.get("title") or ""), sections, headings))
            questions += [
                _qasper_question(path, paper, number, qa) for number, qa in enumerate(row.get("qas") or ())
            ]
    return _finish("qasper", documents, [question for question in questions if question.answers])


def _qasper_question(path: Path, paper: str, number: int, qa: dict[str, Any]) -> BenchmarkQuestion:
    answers: list[str] = []
    quotes: dict[str, None] = {}
    for at, entry in enumerate(qa.get("answers") or (), start=1):
        answer = entry.get("answer", entry)
        where = f"{path}, paper {paper!r}, question {number + 1}, answer {at}"
        if answer.get("unanswerable"):
            continue
        spans = ", ".join(
            text_in(span, f"{where}, extractive_spans") for span in answer.get("extractive_spans") or ()
        )
        written = text_in(answer.get("free_form_answer"), f"{where}, free_form_answer")
        said = {True: "Yes", False: "No"}.get(answer.get("yes_no"), "")
        answers += [text for text in (spans, written, said) if text][:1]
        # figures and tables are no text: their captions are marked FLOAT SELECTED
        quotes |= dict.fromkeys(
            q for q in texts_of(answer.get("evidence")) if not q.startswith("FLOAT SELECTED")
        )
    return BenchmarkQuestion(
        f"{paper}#{qa.get('question_id', number)}",
        str(qa.get("question") or ""),
        tuple(dict.fromkeys(answers)),
        tuple(quotes),
        document=paper,
    )


def _gov_report(folder: Path, headings: Headings, subsets: tuple[str, ...]) -> Benchmark:
    """``gao/*.json`` (``report``: list) and ``crs/*.json`` (``reports``: tree) of sections with subsections."""
    patterns = ("gao/*.json", "**/gao/*.json"), ("crs/*.json", "**/crs/*.json")
    paths = [path for kind in patterns for path in files(folder, *kind)]
    documents = []
    for path in paths or required(folder, "reports", "gao/*.json", "crs/*.json", "*.json"):
        documents += _reports(path, headings)
    chosen = [d for d in documents if not subsets or d.id.split("/")[0] in subsets]
    return _finish("gov-report", chosen, ())


def _reports(path: Path, headings: Headings) -> list[BenchmarkDocument]:
    found = []
    for number, row in enumerate(read_rows(path)):
        root = row.get("report", row.get("reports"))
        if root is None:
            raise BenchmarkError(f"{path}: a row has neither 'report' (GAO) nor 'reports' (CRS)")
        sections: list[Section] = []
        for part in root if isinstance(root, list) else [root]:
            _walk(part, 1, sections, path)
        name = str(row.get("id") or (path.stem if number == 0 else f"{path.stem}-{number}"))
        found.append(composed(f"{path.parent.name}/{name}", str(row.get("title") or ""), sections, headings))
    return found


def _walk(part: dict[str, Any], level: int, sections: list[Section], path: Path) -> None:
    if not isinstance(part, dict) or "paragraphs" not in part:
        raise BenchmarkError(f"{path}: a section has no 'paragraphs'")
    title = str(part.get("section_title") or "")
    if title or part["paragraphs"]:
        sections.append(Section(level, title, tuple(map(str, part["paragraphs"]))))
    for child in part.get("subsections") or ():
        _walk(child, level + bool(title), sections, path)  # the root of a CRS report has no title


_WIKI = re.compile(r"^={8},(\d+),(.*?)\.?$")


def _wiki727(folder: Path, headings: Headings, subsets: tuple[str, ...]) -> Benchmark:
    """Files (nested folders, most without a suffix) with ``========,<level>,<title>.`` before each section."""
    documents = []
    paths = [path for path in required(folder, "articles", "**/*") if path.name != "paths_cache"]
    for path in paths:
        sections: list[Section] = []
        level, title = 1, ""
        lines: list[str] = []
        for at, line in enumerate(read_text(path).splitlines(), start=1):
            match = _WIKI.match(line)
            if match is None:
                lines.append(line)
                continue
            if title or lines:
                sections.append(Section(level, title, tuple(lines)))
            name = match[2].strip()
            # level 1 is the preface only, whose name is no heading; sections begin at 2
            deep = whole_in(match[1], f"{path}, line {at}, level")
            level, title, lines = max(deep - 1, 1), "" if name == "preface" else name, []
        if not (title or sections):
            raise BenchmarkError(f"{path}: no line '========,<level>,<title>.': this is no Wiki-727K article")
        sections.append(Section(level, title, tuple(lines)))
        name = path.name if folder.is_file() else str(path.relative_to(folder))
        documents.append(composed(name, "", sections, headings))
    return _finish("wiki-727k", documents, ())


def _choi(folder: Path, headings: Headings, subsets: tuple[str, ...]) -> Benchmark:
    """``*.ref`` files: a sentence a line, ``==========`` between segments."""
    documents = []
    for path in required(folder, "files", "**/*.ref"):
        text = read_text(path)
        if "==========" not in text:
            raise BenchmarkError(f"{path}: no line of ten '=': this is no file of Choi's data")
        parts = [part.splitlines() for part in re.split(r"(?m)^={10}\s*$", text)]
        sections = [Section(1, "", tuple(lines)) for lines in parts if any(map(str.strip, lines))]
        name = path.name if folder.is_file() else str(path.relative_to(folder).with_suffix(""))
        documents.append(composed(name, "", sections, headings))
    return _finish("choi", documents, ())


# --- GutenQA, OHR-Bench, Chroma ----------------------------------------------------------------------------------


def _gutenqa(folder: Path, headings: Headings, subsets: tuple[str, ...]) -> Benchmark:
    """Two tables (Parquet or CSV): passages (Book Name, Chunk) and questions (Question, Answer, Chunk Must Contain)."""
    tables = required(folder, "tables", "*.parquet", "**/*.parquet", "*.csv", "**/*.csv")
    books: dict[str, list[str]] = {}
    asked: list[tuple[str, dict[str, Any]]] = []
    notes: Counter[str] = Counter()
    for path in tables:
        for row in counted_rows(path, notes):
            book = str(field_of(row, path, "Book Name"))
            if "Question" in row:
                asked.append((book, row))
            else:
                books.setdefault(book, []).append(str(field_of(row, path, "Chunk")))
    if not books:
        raise BenchmarkError(
            f"{folder}: no table with the columns 'Book Name' and 'Chunk' (the books' passages)"
        )
    documents = [BenchmarkDocument(book, book, "\n\n".join(parts)) for book, parts in books.items()]
    questions = [
        BenchmarkQuestion(
            f"{book}#{number}",
            str(row["Question"]),
            texts_of(row.get("Answer")),
            texts_of(row.get("Chunk Must Contain")),
            document=book,
        )
        for number, (book, row) in enumerate(asked)
    ]
    return _finish("gutenqa", documents, questions, notes)


def _ohr_bench(folder: Path, headings: Headings, subsets: tuple[str, ...]) -> Benchmark:
    """``retrieval_base/gt/<domain>/<doc>.json`` ({page_idx, text} a page) and ``qas*.json``."""
    pages = required(
        folder, "pages", "retrieval_base/gt/**/*.json", "**/retrieval_base/gt/**/*.json", "**/gt/**/*.json"
    )
    documents = []
    for path in pages:
        if subsets and path.parent.name not in subsets:
            continue
        rows = read_rows(path)
        places = [
            whole_in(field_of(row, path, "page_idx"), f"{path}, page {at}, page_idx")
            for at, row in enumerate(rows, start=1)
        ]
        order = sorted(range(len(rows)), key=places.__getitem__)
        text = "\n\n".join(str(rows[at].get("text") or "") for at in order)
        documents.append(BenchmarkDocument(f"{path.parent.name}/{path.stem}", path.stem, text))
    questions = []
    notes: Counter[str] = Counter()
    for path in required(
        folder, "questions", "qas_v2.json", "qas*.json", "**/qas_v2.json", "**/qas*.json", "**/qa/**/*.json"
    ):
        for row in counted_rows(path, notes):
            name = str(field_of(row, path, "doc_name"))
            name = name if "/" in name else f"{row.get('doc_type')}/{name}"
            if subsets and name.split("/")[0] not in subsets:
                continue
            questions.append(
                BenchmarkQuestion(
                    str(field_of(row, path, "ID")),
                    str(field_of(row, path, "questions")),
                    texts_of(field_of(row, path, "answers")),
                    texts_of(row.get("evidence_context")),
                    document=name,
                    subset=str(row.get("evidence_source") or ""),
                )
            )
    return _finish("ohr-bench", documents, questions, notes)


def _chroma(folder: Path, headings: Headings, subsets: tuple[str, ...]) -> Benchmark:
    """``questions_df.csv`` (question, references with exact spans, corpus_id) and ``corpora/<corpus_id>.md``."""
    path = required(folder, "questions_df.csv", "questions_df.csv", "**/questions_df.csv", "questions*.csv")[
        0
    ]
    corpora = required(
        folder, "corpora", "corpora/*.md", "**/corpora/*.md", "corpora/*.txt", "**/corpora/*.txt"
    )
    # offsets count characters of the file read with universal line ends
    texts = {file.stem: re.sub(r"\r\n?", "\n", read_text(file)) for file in corpora}
    documents = [
        BenchmarkDocument(name, name, text) for name, text in texts.items() if not subsets or name in subsets
    ]
    notes: Counter[str] = Counter()
    questions = []
    for number, row in enumerate(read_rows(path)):
        corpus = Path(str(field_of(row, path, "corpus_id"))).stem
        if subsets and corpus not in subsets:
            continue
        if corpus not in texts:
            notes["questions without their text"] += 1
            continue
        try:
            spans = json.loads(field_of(row, path, "references"))
            given = [(str(s["content"]), int(s["start_index"]), int(s["end_index"])) for s in spans]
        except (KeyError, TypeError, ValueError, OverflowError, RecursionError) as error:
            raise BenchmarkError(
                f"{path}, question {number + 1}: references are no list of spans ({error})"
            ) from error
        regions = [(corpus, low, high) for text, low, high in given if texts[corpus][low:high] == text]
        notes["spans whose words do not stand at their offsets"] += len(given) - len(regions)
        questions.append(
            BenchmarkQuestion(
                f"{corpus}#{number}",
                str(field_of(row, path, "question")),
                (),
                tuple(text for text, _, _ in given),
                tuple(regions),
                subset=corpus,
            )
        )
    return _finish("chroma", documents, questions, notes)


READERS: dict[str, Reader] = {
    "hichunk": Reader(_hichunk, "docs/<set>/<id>.txt with # headings, qas/<set>.jsonl", subsets=True),
    "hchemsafety": Reader(_hchemsafety, "QA_test.json, and doc_test.json or docs/"),
    "crud": Reader(_crud, "split_merged.json, 80000_docs/ if there", subsets=True),
    "omnieval": Reader(_omnieval, "OmniEval.json or *.jsonl, and docs/ or corpus/"),
    "longbench": Reader(_longbench, "<subset>.jsonl", subsets=True),
    "qasper": Reader(_qasper, "qasper-*.json", subsets=True),
    "gov-report": Reader(_gov_report, "gao/*.json, crs/*.json", subsets=True),
    "gutenqa": Reader(_gutenqa, "passages and questions as Parquet or CSV"),
    "wiki-727k": Reader(_wiki727, "article files"),
    "ohr-bench": Reader(_ohr_bench, "retrieval_base/gt/<domain>/*.json, qas*.json", subsets=True),
    "chroma": Reader(_chroma, "questions_df.csv, corpora/*.md", subsets=True),
    "choi": Reader(_choi, "*.ref files"),
}
"""Data set to its reader, by the names that ``hchem benchmark`` takes."""


def read_benchmark(
    name: str, folder: Path, *, headings: Headings = "hidden", subsets: Sequence[str] = ()
) -> Benchmark:
    """Read a published data set from a folder (or its one file).

    ``headings``: whether heading lines stand in the texts as plain lines, or not at
    all; their marks never do. Raises BenchmarkError for an unknown name, a wrong
    folder, or a file in another shape.
    """
    reader = READERS.get(name)
    if reader is None:
        raise BenchmarkError(f"unknown benchmark {name!r}; benchmarks: {', '.join(READERS)}")
    if not folder.exists():
        raise BenchmarkError(f"{folder} is not there; {name} takes a folder with {reader.shape}")
    if subsets and not reader.subsets:
        raise BenchmarkError(f"{name} has no subsets")
    try:
        found = reader.read(folder, headings, tuple(subsets))
    # a value of another type than published, or one without end
    except (AttributeError, TypeError, KeyError, ValueError, OverflowError, RecursionError) as error:
        raise BenchmarkError(
            f"{folder} is not in the shape of {name} ({reader.shape}): {type(error).__name__}: {error}"
        ) from error
    if not found.documents:
        raise BenchmarkError(f"{folder}: no text in it; {name} takes a folder with {reader.shape}")
    return found
