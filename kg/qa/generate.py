"""From facts to judged questions: make, verify, deduplicate, divide, curate, reword."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from corpus.asking import ask_many
from corpus.errors import DeferredError, TransientError
from kg.graph_settings import QuestionSettings
from kg.qa import aggregative, boolean, multi_hop, single_hop
from kg.qa.context import Context
from kg.qa.dedup import curated, duplicates
from kg.qa.difficulty import features
from kg.qa.drawing import Cell, Pool, cell_of, drawn
from kg.qa.facts import Facts
from kg.qa.records import Candidate, Judged
from kg.qa.reword import RewordIn, RewordQuestion
from kg.qa.sampling import Side, components, side_of, sides
from kg.qa.verification import Reason, verify, wording_problem
from kg.qa.wording import PLURAL
from kg.schema import NodeLabel
from kg.store import GraphStore
from models import Answer, Models

GENERATOR_VERSION = "4"
_ASKED_AT_ONCE = 200  # questions between two looks at whether the run was cancelled
_PROVED_AT_ONCE = 20_000
_HELD = 50_000  # candidates that are held rather than made again when they are drawn


@dataclass
class Generated:
    """Judged questions in id order; ``dropped``: why candidates never came to be, counted.

    ``possible``: candidates that the questions were drawn from.
    """

    questions: list[Judged]
    dropped: Counter[str] = field(default_factory=Counter)
    possible: int = 0


def generate(
    facts: Facts,
    store: GraphStore,
    settings: QuestionSettings,
    models: Models,
    cancelled: Callable[[], bool] = lambda: False,
    say: Callable[[str], None] = lambda _: None,
) -> Generated:
    """The questions of the graph, all or as many as are wanted. ``say`` is told how far it has come.

    Raises TransientError where the server or a model is away.
    """
    division = sides(components(facts), settings)
    maker = _Maker(facts, store, settings, division)
    say(f"{len(maker.pool)} candidates")
    made: dict[str, Candidate] = {}
    verdicts: dict[str, str] = {}
    repeated: dict[str, str] = {}

    def prove(ids: list[str]) -> dict[str, Cell]:
        """Verify a wave; all that hold so far."""
        # those of one proof together: it is run once for all languages
        wave = sorted(maker.candidates(ids), key=lambda c: (c.proof.id, c.id))
        for at in range(0, len(wave), _PROVED_AT_ONCE):
            _stop_if(cancelled, "proved")
            verdicts.update(verify(wave[at : at + _PROVED_AT_ONCE], facts, store, settings, division))
            say(f"{min(at + _PROVED_AT_ONCE, len(wave))} of {len(wave)} of the wave verified")
        made.update((c.id, c) for c in wave)
        sound = [c for c in made.values() if not verdicts[c.id]]
        repeated.clear()
        repeated.update(duplicates(sound))
        say(f"{len(sound) - len(repeated)} of {len(made)} hold")
        return {c.id: cell_of(c) for c in sound if c.id not in repeated}

    draw = drawn(maker.pool, prove, say)
    verdicts |= repeated
    # what holds beyond the number wanted is not rejected, it is not asked
    asked = (key for key in made if draw.chosen is None or verdicts[key] or key in draw.chosen)
    made = {key: made[key] for key in sorted(asked)}
    held = [c for c in made.values() if not verdicts[c.id]]
    verdicts |= dict.fromkeys(boolean.surplus(held, settings.seed), Reason.UNBALANCED.value)
    kept = [c for c in held if not verdicts[c.id]]
    reworded = _reworded(kept, facts, models, cancelled)
    worded = {c.id: reworded.get(c.id, (c.question, ""))[0] for c in kept}
    levels = {c.id: str(features(c, worded[c.id])["level"]) for c in kept}
    chosen = curated(kept, levels, division, settings)
    questions = []
    for candidate in made.values():
        reason = verdicts[candidate.id]
        question, source = reworded.get(candidate.id, (candidate.question, "template"))
        side = side_of(candidate.substances, division) or "train"
        questions.append(
            Judged(candidate, reason, question, source, side, candidate.id in chosen and not reason)
        )
    return Generated(questions, maker.dropped + draw.left_out, draw.possible)


class _Maker:
    """All candidates as a pool to draw from, and those that are drawn.

    Paths are capped and held. The others are held while they are few; of many each is made
    again when it is drawn, so that memory does not grow with what is possible.
    """

    def __init__(
        self, facts: Facts, store: GraphStore, settings: QuestionSettings, division: Mapping[str, Side]
    ) -> None:
        self._facts, self._settings, self._division = facts, settings, division
        self.pool = Pool(settings)
        ctx = self._context()
        most = max(_HELD, settings.at_most) if settings.at_most else sys.maxsize
        held: dict[str, Candidate] | None = {}
        for candidate in _plain_candidates(ctx):
            self.pool.add(candidate)
            if held is not None:
                held.setdefault(candidate.id, candidate)
                if len(held) > most:
                    held = None
        paths, dropped = multi_hop.candidates(ctx, store)
        for candidate in paths:
            self.pool.add(candidate)
        self._paths = {candidate.id: candidate for candidate in paths}
        self._held = held
        self.dropped = ctx.dropped + dropped

    def _context(self) -> Context:
        return Context(self._facts, self._settings, self._division)

    def candidates(self, ids: Sequence[str]) -> list[Candidate]:
        """The candidates with these ids, in id order."""
        wanted = set(ids)
        found = {key: self._paths[key] for key in wanted if key in self._paths}
        if self._held is not None:
            found |= {key: self._held[key] for key in wanted if key in self._held}
        elif len(found) < len(wanted):
            for candidate in _plain_candidates(self._context()):
                if candidate.id in wanted:
                    found.setdefault(candidate.id, candidate)
        return [found[key] for key in sorted(wanted)]


def _plain_candidates(ctx: Context) -> Iterator[Candidate]:
    """Candidates that are made from the facts alone, always in the same order."""
    for maker in (single_hop.candidates, aggregative.candidates, boolean.candidates):
        yield from maker(ctx)


def _stop_if(cancelled: Callable[[], bool], done: str) -> None:
    if cancelled():
        raise TransientError(f"cancelled while questions were being {done}", reason="cancelled")


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
        _stop_if(cancelled, "reworded")  # stored as it is, the rest would never be reworded
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
