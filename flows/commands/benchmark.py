"""``hchem benchmark``: chunk methods on a published data set, or on questions made from one's own Markdown files."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from corpus.errors import TerminalError

if TYPE_CHECKING:
    from chunking.evaluation.published import Benchmark
    from chunking.evaluation.published.questions import Asking
    from chunking.evaluation.section_set import Sources
    from flows.estimates import Forecast
    from flows.runtime import Runtime
    from flows.settings import Settings
    from models import Models

app = typer.Typer()

_DEFAULT = "fixed,sentence,recursive,semantic,hichunk"
_SECTIONS = "sections"


@app.command()
def benchmark(
    name: Annotated[
        str,
        typer.Argument(
            metavar="NAME",
            help="hichunk, hchemsafety, crud, omnieval, longbench, qasper, gov-report, gutenqa, wiki-727k, "
            "ohr-bench, chroma or choi; or sections: questions made from a folder of Markdown files.",
        ),
    ],
    path: Annotated[
        Path,
        typer.Option("--path", help="Folder (or file) with the data set as published, or Markdown files."),
    ],
    methods: Annotated[
        str, typer.Option("--methods", "-m", help="Chunk methods, separated by commas.")
    ] = _DEFAULT,
    limit: Annotated[
        int | None, typer.Option("--limit", min=1, help="Documents at most, the first in order.")
    ] = None,
    subset: Annotated[
        str | None, typer.Option("--subset", help="Subsets or domains, separated by commas; default: all.")
    ] = None,
    headings: Annotated[
        str,
        typer.Option(
            "--headings", help="hidden (headings stand as plain lines) or removed; their marks never stand."
        ),
    ] = "hidden",
    size: Annotated[int | None, typer.Option("--size", min=1, help="Largest chunk in tokens.")] = None,
    budgets: Annotated[
        str | None, typer.Option("--budgets", help="Token budgets of the context, separated by commas.")
    ] = None,
    without_completion: Annotated[
        bool, typer.Option("--without-completion", help="qchunker, qchunker-slm: the paper's w/o M_Ref.")
    ] = False,
    corpus_wide: Annotated[
        bool, typer.Option("--corpus-wide", help="Ask questions of all texts, not only of their own.")
    ] = False,
    answers: Annotated[
        bool, typer.Option("--answers/--no-answers", help="Answer the questions: BLEU, ROUGE-L, METEOR, F1.")
    ] = True,
    fact_cov: Annotated[
        bool,
        typer.Option("--fact-cov", help="Also Fact-Cov of the answers (with a model: 5 judgements each)."),
    ] = False,
    studies: Annotated[
        bool,
        typer.Option(
            "--studies",
            help="Also ChunkScore, λ sweep, perplexity before and after completion, depth of the tree, answers by budget.",
        ),
    ] = False,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out", "-o", help="sections: folder of the set that is made; default: in the data folder."
        ),
    ] = None,
    per_document: Annotated[
        int,
        typer.Option("--per-document", min=1, help="sections: questions of a kind from a document at most."),
    ] = 6,
    least_words: Annotated[
        int,
        typer.Option(
            "--least-words", min=0, help="sections: shorter documents are left out (HiCBench: 4000)."
        ),
    ] = 0,
    seed: Annotated[int, typer.Option("--seed", min=0, help="sections: which sections are asked about.")] = 0,
    report: Annotated[
        Path | None, typer.Option("--report", help="Also write tables and figures to this HTML file.")
    ] = None,
    dry_run: Annotated[
        bool,
        typer.Option(
            "--dry-run", help="Show what models would be asked, and the cost; ask and keep nothing."
        ),
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
    afresh: Annotated[
        bool, typer.Option("--afresh", help="Cut everything again; do not go on where a run was stopped.")
    ] = False,
) -> None:
    """Compare chunk methods on a published data set: borders, evidence at token budgets, answers, counts, time.

    Figures are of our retrieval and settings; they are not the published tables. A run that is stopped goes on
    where it was when it is called again; no answer is paid for twice.

    Examples:

    hchem benchmark qasper --path qasper-dev-v0.3.json --methods sentence,hichunk --limit 20

    hchem benchmark crud --path CRUD --methods sentence,qchunker,hichunk --studies --report crud.html

    hchem benchmark sections --path my-markdown --out my-questions --dry-run
    """
    if headings not in ("hidden", "removed"):
        raise TerminalError(f"unknown form {headings!r}; headings: hidden, removed", reason="usage")
    settings = _settings(size, budgets, without_completion=without_completion)
    chosen = _methods(methods)
    call = _Call(
        name, path, headings, _listed(subset), limit, corpus_wide, out, per_document, least_words, seed
    )
    known = call.read()  # before anything is opened: wrong files are told at once
    # vectors and answers of foreign texts are kept beside the knowledge base, not in it
    settings.data_dir = settings.data_dir / "benchmarks"
    settings.catalogue.url = None
    asking = _asking(answers=answers, facts=fact_cov, studies=studies)
    _run(
        _Work(call, known, settings, chosen, asking, studies=studies, afresh=afresh),
        report,
        as_json=as_json,
        dry=dry_run,
    )


@dataclass(frozen=True)
class _Call:
    """What data are asked for."""

    name: str
    path: Path
    headings: str
    subsets: list[str]
    limit: int | None
    corpus_wide: bool
    out: Path | None
    per_document: int
    least_words: int
    seed: int

    def read(self) -> Benchmark | Sources:
        """The data set, or what one is to be made of."""
        if self.name != _SECTIONS:
            if self.out is not None:
                raise TerminalError("--out belongs to sections: published sets are only read", reason="usage")
            return self.published(self.name, self.path)
        from chunking.evaluation.section_set import Sources, read_sources

        if self.subsets and not set(self.subsets) <= {"T0", "T1", "T2"}:
            raise TerminalError("subsets of sections: T0, T1, T2", reason="usage")
        found = read_sources(self.path, self.least_words)
        return Sources(found.documents[: self.limit], found.left_out)

    def published(self, name: str, folder: Path) -> Benchmark:
        """A data set as published, or as made."""
        from chunking.evaluation.published import read_benchmark

        form = "removed" if self.headings == "removed" else "hidden"
        made = self.name == _SECTIONS
        found = read_benchmark(name, folder, headings=form, subsets=() if made else self.subsets)  # type: ignore[arg-type]
        if made:
            found = found.named(self.name).of_subsets(self.subsets)
        found = found.limited(self.limit)
        return found.corpus_wide() if self.corpus_wide else found


@dataclass(frozen=True)
class _Work:
    """A call with everything that it needs."""

    call: _Call
    known: Benchmark | Sources
    settings: Settings
    methods: list[str]
    asking: Asking
    studies: bool
    afresh: bool

    def folder(self, runtime: Runtime) -> Path:
        """Where the set of questions is made."""
        from corpus.ids import digest

        call = self.call
        return call.out or runtime.data_dir / f"{_SECTIONS}-{digest(str(call.path.resolve()))[:12]}"


def _run(work: _Work, report: Path | None, *, as_json: bool, dry: bool) -> None:
    from flows.runtime import open_runtime

    with open_runtime(settings=work.settings) as runtime:
        from chunking.segment import require_models

        for method in work.methods:  # said before the first one has run for an hour
            require_models(method, runtime.models, completion=work.settings.chunks.completion)
        if dry:
            _show_cost(work, runtime, as_json=as_json)
            return
        data, card = _data(work, runtime.models, runtime)
        kept = runtime.data_dir / f"{work.call.name}.jsonl"
        _compare(work, runtime, data, card, kept, report, as_json=as_json)


def _data(work: _Work, models: Models, runtime: Runtime) -> tuple[Benchmark, dict[str, Any]]:
    """The data set; one of sections is made first (or taken, where it is there)."""
    from chunking.evaluation.published import Benchmark

    if isinstance(work.known, Benchmark):
        return work.known, {}
    from chunking.evaluation.section_set import make_set
    from flows.console import err

    out = work.folder(runtime)
    card = make_set(work.known, models, out, per_document=work.call.per_document, seed=work.call.seed)
    told = ", ".join(f"{n} {kind}" for kind, n in card["questions"].items())
    err.print(f"questions: {told} by {card['made_by']}; in {out}", markup=False)
    return work.call.published("hichunk", out), card


def _compare(
    work: _Work,
    runtime: Runtime,
    data: Benchmark,
    card: dict[str, Any],
    kept: Path,
    report: Path | None,
    *,
    as_json: bool,
) -> None:
    from chunking.evaluation.published.comparison import Cuts, compare
    from chunking.evaluation.published.questions import answers_by
    from chunking.segment import Segmenter
    from flows.benchmarks import print_tables, studies_as_dict, tables_of, write_page
    from flows.console import ProgressDisplay, out

    settings = work.settings
    if work.afresh:
        kept.unlink(missing_ok=True)
    cuts = Cuts(kept)
    with ProgressDisplay() as progress:
        found = compare(
            data,
            work.methods,
            Segmenter(runtime.models, settings.chunks),
            settings.evaluation,
            settings.vectors,
            cuts=cuts,
            asking=work.asking,
            studies=work.studies,
            progress=progress,
        )
    head = {
        **_head(data, settings, work.call.headings, card),
        "tokens": runtime.models.token_counter_name,
        "answers_by": answers_by(runtime.models) if work.asking.answers else "nobody",
        "from_an_earlier_run": cuts.taken,
    }
    tables = tables_of(head, found, settings.evaluation.budget)
    if report is not None:
        write_page(report, head, found, tables)
    if as_json:
        told = {**head, "methods": found.rows, "studies": studies_as_dict(found.studies)}
        typer.echo(json.dumps(told, ensure_ascii=False, indent=2))
        return
    counts = f"{head['documents']} documents, {head['questions']} questions"
    out.print(
        f"{head['benchmark']}: {counts}; chunks of at most {head['size']} {head['tokens']}", markup=False
    )
    for reason, number in {
        **head["left_out"],
        **card.get("files_left_out", {}),
        **card.get("dropped", {}),
    }.items():
        out.print(f"  left out: {number} {reason}", markup=False)
    print_tables(tables)
    if report is not None:
        out.print(f"page: {report}", markup=False)


def _show_cost(work: _Work, runtime: Runtime, *, as_json: bool) -> None:
    """What models would be asked: the real code runs, nobody is asked, nothing is kept."""
    from flows.planning import show_forecast

    found = _forecast(work, runtime)
    if as_json:
        typer.echo(json.dumps(found.as_dict(), ensure_ascii=False, indent=2))
    else:
        show_forecast(found)


def _forecast(work: _Work, runtime: Runtime) -> Forecast:
    from chunking.evaluation.hicbench import section_questions
    from chunking.evaluation.published import Benchmark
    from chunking.evaluation.published.comparison import Cuts, compare
    from chunking.evaluation.section_questions import WrittenQuestion
    from chunking.evaluation.section_set import made_card, set_fingerprint
    from chunking.segment import Segmenter
    from corpus.catalogue.stores import CatalogueAnswers, CatalogueVectors
    from flows.asks import STAND_INS
    from flows.estimates import Forecast, Row, history
    from models.estimate import Rehearsal, by_rules

    settings = work.settings
    found = Forecast(runtime.models.token_counter_name, offline=not settings.models.configured())
    if found.offline:
        return found
    rules = ("summarise_section", "extract_evidence", "list_facts", "judge_facts", "answer_question")
    stand_ins = {
        **STAND_INS,
        **dict.fromkeys(rules, by_rules),
        # of the usual length; the rules cannot write one
        "write_question": lambda skill, given: WrittenQuestion(question="…?", answer=given.chunks[0][:400]),
    }
    models = Rehearsal(
        settings.models,
        CatalogueAnswers(runtime.catalogue),
        CatalogueVectors(runtime.catalogue),
        stand_ins=stand_ins,
    )
    try:
        data: Benchmark | None = None
        if isinstance(work.known, Benchmark):
            data = work.known
        else:
            card = made_card(work.folder(runtime))
            options = (work.call.per_document, work.call.seed)
            if card and card.get("fingerprint") == set_fingerprint(
                work.known.documents, runtime.models, *options
            ):
                data = work.call.published("hichunk", work.folder(runtime))
            else:
                models.begin()
                section_questions(work.known.documents, models, per_document=options[0], seed=options[1])
                found.notes.append("the comparison itself: known when the questions are made")
        known = history(runtime.catalogue)

        def counted(step: str) -> list[Row]:
            tallies = models.take().values()
            return [
                Row(step, t.estimate(found.counter, known.get((t.skill, t.model.model)), "exact"))
                for t in tallies
                if t.calls or t.stored
            ]

        found.rows += counted("questions")
        if data is not None:
            models.begin()
            segmenter = Segmenter(models, settings.chunks)
            compare(
                data,
                work.methods,
                segmenter,
                settings.evaluation,
                settings.vectors,
                cuts=Cuts(None),
                asking=work.asking,
            )
            found.rows += counted("comparison")
    finally:
        models.close()
    return found


def _asking(*, answers: bool, facts: bool, studies: bool) -> Asking:
    from chunking.evaluation.published.questions import Asking

    if facts and not answers:
        raise TerminalError("Fact-Cov is of answers: --fact-cov needs --answers", reason="usage")
    return Asking(answers=answers, every_budget=answers and studies, facts=facts, levels=studies)


def _settings(size: int | None, budgets: str | None, *, without_completion: bool) -> Settings:
    from pydantic import ValidationError

    from chunking.evaluation.settings import EvaluationSettings
    from chunking.settings import ChunkSettings
    from flows.settings import load_settings

    settings = load_settings()
    chunks: dict[str, Any] = {} if size is None else {"size": size}
    if without_completion:
        chunks["completion"] = False
    evaluation: dict[str, Any] = {}
    if budgets is not None:
        try:
            values = [int(value) for value in _listed(budgets)]
        except ValueError as error:
            raise TerminalError(f"budgets {budgets!r} are no whole numbers", reason="usage") from error
        evaluation = {"budgets": values, "budget": max(values, default=0)}
    try:
        settings.chunks = ChunkSettings.model_validate(settings.chunks.model_dump() | chunks)
        settings.evaluation = EvaluationSettings.model_validate(settings.evaluation.model_dump() | evaluation)
    except ValidationError as error:
        first = error.errors()[0]
        raise TerminalError(f"{'.'.join(map(str, first['loc']))}: {first['msg']}", reason="usage") from error
    return settings


def _listed(value: str | None) -> list[str]:
    return [part.strip() for part in (value or "").split(",") if part.strip()]


def _methods(value: str) -> list[str]:
    from chunking.segment import METHODS

    chosen = list(dict.fromkeys(_listed(value)))
    unknown = [method for method in chosen if method not in METHODS]
    if unknown or not chosen:
        what = ", ".join(map(repr, unknown)) or "none"
        raise TerminalError(f"unknown method {what}; methods: {', '.join(METHODS)}", reason="usage")
    return chosen


def _head(data: Benchmark, settings: Settings, headings: str, card: dict[str, Any]) -> dict[str, Any]:
    from models.tokens import count_words

    gold = sum(bool(document.borders) for document in data.documents)
    words = sum(count_words(document.text) for document in data.documents)
    return {
        "benchmark": data.name,
        "documents": len(data.documents),
        "words_per_document": round(words / len(data.documents), 1),
        "documents_with_gold_borders": gold,
        "questions": len(data.questions),
        "questions_with_located_evidence": sum(bool(question.regions) for question in data.questions),
        "questions_with_answers": sum(bool(question.answers) for question in data.questions),
        "questions_by": card.get("made_by", ""),
        "left_out": dict(sorted(data.notes.items())),
        "headings": headings,
        "size": settings.chunks.size,
        "retrieval": settings.evaluation.retrieval,
        "budget": settings.evaluation.budget,
        "budgets": list(settings.evaluation.budgets),
        "confidence": settings.evaluation.confidence,
    }
