"""From facts to judged questions: make, verify, deduplicate, divide, curate, reword."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from corpus.asking import ask_many
from corpus.errors import DeferredError, TransientError
from kg.graph_settings import QuestionSettings
from kg.qa import aggregative, boolean, multi_hop, single_hop
from kg.qa.context import Context
from kg.qa.dedup import curated, duplicates
from kg.qa.difficulty import features
from kg.qa.facts import Facts
from kg.qa.records import Candidate, Judged
from kg.qa.reword import RewordIn, RewordQuestion
from kg.qa.sampling import capped_by_document, components, side_of, sides
from kg.qa.verification import Reason, verify, wording_problem
from kg.qa.wording import PLURAL
from kg.schema import NodeLabel
from kg.store import GraphStore
from models import Answer, Models

GENERATOR_VERSION = "3"
_ASKED_AT_ONCE = 200  # questions between two looks at whether the run was cancelled


@dataclass
class Generated:
    """Judged questions in id order; ``dropped``: why candidates never came to be, counted."""

    questions: list[Judged]
    dropped: Counter[str] = field(default_factory=Counter)


def generate(
    facts: Facts,
    store: GraphStore,
    settings: QuestionSettings,
    models: Models,
    cancelled: Callable[[], bool] = lambda: False,
) -> Generated:
    """All questions of the graph. Raises TransientError where the server or a model is away."""
    division = sides(components(facts), settings)
    ctx = Context(facts, settings, division)
    made, dropped = _candidates(ctx, store)
    verdicts = verify(made, facts, store, settings, division)
    held = [c for c in made if not verdicts[c.id]]
    verdicts |= duplicates(held)
    held = [c for c in held if not verdicts[c.id]]
    verdicts |= dict.fromkeys(boolean.surplus(held, settings.seed), Reason.UNBALANCED.value)
    kept = [c for c in held if not verdicts[c.id]]
    reworded = _reworded(kept, facts, models, cancelled)
    worded = {c.id: reworded.get(c.id, (c.question, ""))[0] for c in kept}
    levels = {c.id: str(features(c, worded[c.id])["level"]) for c in kept}
    chosen = curated(kept, levels, division, settings)
    questions = []
    for candidate in made:
        reason = verdicts[candidate.id]
        question, source = reworded.get(candidate.id, (candidate.question, "template"))
        side = side_of(candidate.substances, division) or "train"
        questions.append(
            Judged(candidate, reason, question, source, side, candidate.id in chosen and not reason)
        )
    return Generated(questions, ctx.dropped + dropped)


def _candidates(ctx: Context, store: GraphStore) -> tuple[list[Candidate], Counter[str]]:
    made: dict[str, Candidate] = {}
    for maker in (single_hop.candidates, aggregative.candidates, boolean.candidates):
        for candidate in maker(ctx):
            made.setdefault(candidate.id, candidate)
    paths, dropped = multi_hop.candidates(ctx, store)
    made |= {candidate.id: candidate for candidate in paths}
    kept, cut = capped_by_document([made[key] for key in sorted(made)], ctx.settings)
    return sorted(kept, key=lambda c: c.id), dropped + cut


def _reworded(
    candidates: Sequence[Candidate], facts: Facts, models: Models, cancelled: Callable[[], bool]
) -> dict[str, tuple[str, str]]:
    """Final words of questions and whose they are, by id; absent wherever the model's words do not hold."""
    skill = RewordQuestion()
    found: dict[str, tuple[str, str]] = {}
    if models.is_offline(skill.name):
        return found
    deferred: DeferredError | None = None
    for at in range(0, len(candidates), _ASKED_AT_ONCE):
        if cancelled():  # stored as it is, the rest would never be reworded
            raise TransientError("cancelled while questions were being reworded", reason="cancelled")
        part = candidates[at : at + _ASKED_AT_ONCE]
        try:
            answers = ask_many(models, skill, [reword_input(candidate, facts) for candidate in part])
        except DeferredError as error:  # the other parts join the same batch job
            deferred = error
            continue
        for candidate, answer in zip(part, answers, strict=True):
            if isinstance(answer, Answer) and not wording_problem(candidate, facts, answer.value.question):
                found[candidate.id] = (answer.value.question.strip(), answer.source)
    if deferred:
        raise deferred
    return found


def reword_input(candidate: Candidate, facts: Facts) -> RewordIn:
    """What is asked about a candidate's wording."""
    plural = candidate.template in PLURAL | {"list", "both"}
    kept = _kept_words(candidate, facts)
    return RewordIn(candidate.question, candidate.language, kept, candidate.surfaces, plural)


def _kept_words(candidate: Candidate, facts: Facts) -> tuple[str, ...]:
    """Names and titles that stand in the template's question."""
    words: set[str] = set()
    for label in NodeLabel:
        for key in (*candidate.nodes, *candidate.substances):
            name = facts.name(label, key, candidate.language)
            if name:
                words.add(name)
    words |= {title for r in candidate.references if (title := facts.title(facts.sources[r.document_id]))}
    return tuple(sorted(word for word in words if word in candidate.question))


def by_kind(questions: Sequence[Judged]) -> Counter[str]:
    """Kept questions by kind."""
    return Counter(q.candidate.kind for q in questions if not q.reason)
