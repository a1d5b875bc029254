"""One door to all segmenters: ``segment(text, method)``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, get_args

from pydantic import ValidationError

from chunking import baselines
from chunking.background import Backgrounds
from chunking.chunkscore import ChunkScore, Pooling, chunk_score
from chunking.errors import MethodError, no_rule
from chunking.hichunk import AssignLevels, HiChunkOptions, hichunk
from chunking.partition import SegmentResult, Span, check_tiling, flat
from chunking.prompted import PROMPTED, direct, lumber, meta
from chunking.qchunker import SKILLS, QChunkerOptions, qchunk
from chunking.qchunker.slm import METHOD as SLM
from chunking.qchunker.slm import SLM_SKILLS, qchunk_slm
from chunking.qchunker.slm import require_models as require_slm
from chunking.settings import ChunkSettings, Method
from chunking.vectors import SentenceVectors
from models.skills import Skill

if TYPE_CHECKING:
    from models import Models

_WAITING = 100  # tables without vectors that may wait

METHODS: tuple[str, ...] = get_args(Method)
SKILLS_OF: dict[str, tuple[Skill[Any, Any], ...]] = {
    **{method: (skill,) for method, skill in PROMPTED.items()},
    "qchunker": SKILLS,
    SLM: SLM_SKILLS,
    "hichunk": (AssignLevels(),),
}
"""The skills that a method asks, in order; the others ask none."""
ASKING: tuple[str, ...] = ("lumberchunker", "meta-chunker", "direct-llm", "qchunker-slm")
"""Methods that only a model can answer; the others have rules, or ask nobody."""


_WINDOWS = {
    "lumberchunker": "lumber_window",
    "meta-chunker": "meta_window",
    "direct-llm": "direct_window",
}


class Segmenter:
    """Cuts texts with one set of settings and models; what texts share is made once."""

    def __init__(self, models: Models, settings: ChunkSettings | None = None) -> None:
        self.models = models
        self.settings = settings or ChunkSettings()
        self.backgrounds = Backgrounds(models)
        self._ready: dict[str, SentenceVectors] = {}

    def warm(self, texts: Sequence[str]) -> None:
        """Embed the sentences of several texts in one call, which costs less than one call a text.

        Their tables wait for the next :meth:`table` of the same text. Raises the model layer's errors.
        """
        tables = {text: self.table(text) for text in texts}
        units = {unit for table in tables.values() for unit in table.units}
        self.models.embedder("cohesion").passages(sorted(units))
        while len(self._ready) > _WAITING:  # those of a batch that was given up
            self._ready.pop(next(iter(self._ready)), None)
        self._ready.update(tables)

    def table(self, text: str) -> SentenceVectors:
        """Sentences with token counts; vectors are computed when a method asks for them."""
        ready = self._ready.pop(text, None)
        if ready is not None:
            return ready
        return SentenceVectors(text, self.models.embedder("cohesion"), self.models.count_tokens)

    def run(
        self, text: str, method: str, language: str | None = None, table: SentenceVectors | None = None
    ) -> SegmentResult:
        """Partition a text. Raises MethodError for an unknown method, and the model layer's errors.

        OfflineUnavailable among them: the methods of :data:`ASKING` have no rules.

        The result is checked: its leaves tile the text.
        """
        if method not in METHODS:
            raise MethodError(f"unknown chunking method {method!r}; methods: {', '.join(METHODS)}")
        if not text:
            result = SegmentResult(text, method, ())
        else:
            result = self._run(text, method, language or language_of(text), table or self.table(text))
        check_tiling(result.spans, len(text))
        return replace(result, settings=self.relevant(method))

    def _run(self, text: str, method: str, language: str, table: SentenceVectors) -> SegmentResult:
        chosen, count = self.settings, self.models.count_tokens
        match method:
            case "qchunker":
                perplexity = self.backgrounds.perplexity(text)
                return qchunk(text, table, self.models, perplexity, language, self._qchunker())
            case "qchunker-slm":
                window, completion = chosen.qchunker_window, chosen.completion
                return qchunk_slm(
                    text, table, self.models, language, chosen.size, window, completion=completion
                )
            case "lumberchunker":
                return lumber(text, table, self.models, language, chosen.size, chosen.lumber_window)
            case "meta-chunker":
                return meta(text, table, self.models, language, chosen.size, chosen.meta_window)
            case "direct-llm":
                return direct(text, table, self.models, language, chosen.size, chosen.direct_window)
            case "hichunk":
                return hichunk(text, table, self.models, language, self._hichunk())
            case "semantic":
                spans = baselines.semantic(
                    table, chosen.size, percentile=chosen.semantic_percentile, buffer=chosen.semantic_buffer
                )
            case "fixed":
                spans = baselines.fixed(text, chosen.size, count)
            case "recursive":
                spans = baselines.recursive(text, chosen.size, count)
            case _:
                spans = baselines.sentence(text, chosen.size, count)
        return SegmentResult(text, method, flat(spans))

    def score(
        self,
        text: str,
        spans: list[Span],
        table: SentenceVectors | None = None,
        *,
        pooling: Pooling = "pooled",
        reach: int | None = None,
    ) -> ChunkScore:
        """ChunkScore of a partition with the settings' λ, α and variant."""
        chosen = self.settings
        return chunk_score(
            text,
            spans,
            self.backgrounds.perplexity(text),
            table or self.table(text),
            lam=chosen.chunkscore_lambda,
            alpha=chosen.chunkscore_alpha,
            variant=chosen.chunkscore_variant,
            pooling=pooling,
            reach=reach,
        )

    def relevant(self, method: str) -> dict[str, Any]:
        """The settings that decide this method's partition."""
        chosen = self.settings
        values: dict[str, Any] = {"size": chosen.size, "tokens": self.models.token_counter_name}
        if method == "semantic":
            values |= {"percentile": chosen.semantic_percentile, "buffer": chosen.semantic_buffer}
        elif method == "hichunk":
            options = self._hichunk()
            values |= {"window": options.window, "view": options.view, "max_level": options.max_level}
        elif method in _WINDOWS:
            values["window"] = getattr(chosen, _WINDOWS[method])
        elif method == "qchunker-slm":
            values |= {"window": chosen.qchunker_window, "completion": chosen.completion}
        elif method == "qchunker":
            options_q = self._qchunker()
            values |= {
                "window": options_q.window, "lambda": options_q.lam, "alpha": options_q.alpha,
                "samples": options_q.samples, "seed": options_q.seed, "variant": options_q.variant,
                "completion": options_q.completion,
            }  # fmt: skip
        return values

    def _qchunker(self) -> QChunkerOptions:
        chosen = self.settings
        return QChunkerOptions(
            size=chosen.size,
            window=chosen.qchunker_window,
            lam=chosen.chunkscore_lambda,
            alpha=chosen.chunkscore_alpha,
            samples=chosen.selection_samples,
            seed=chosen.seed,
            variant=chosen.chunkscore_variant,
            completion=chosen.completion,
        )

    def _hichunk(self) -> HiChunkOptions:
        chosen = self.settings
        return HiChunkOptions(
            size=chosen.size,
            window=chosen.hichunk_window,
            view=chosen.hichunk_view,
            max_level=chosen.hichunk_max_level,
        )


def segment(
    text: str,
    method: str,
    *,
    size: int = 200,
    language: str | None = None,
    models: Models | None = None,
    **options: Any,
) -> SegmentResult:
    """Partition a text with one of :data:`METHODS`.

    ``size`` in the token counter in force (``words``); ``options`` are fields of
    :class:`ChunkSettings`. Without ``models`` everything is answered offline,
    which the methods of :data:`ASKING` cannot be (OfflineUnavailable). Raises MethodError for
    an unknown method or option.
    """
    try:
        settings = ChunkSettings(size=size, **options)
    except ValidationError as error:
        first = error.errors()[0]
        raise MethodError(
            f"option {'.'.join(map(str, first['loc']))!r} of {method!r}: {first['msg']}"
        ) from error
    if models is None:
        from models import Models

        models = Models.offline()
    return Segmenter(models, settings).run(text, method, language)


def require_models(method: str, models: Models, *, completion: bool) -> None:
    """Raise OfflineUnavailable, naming the setting, where a method needs a model that is not set."""
    if method == SLM:
        require_slm(models, completion=completion)
    elif method in PROMPTED and models.is_offline(PROMPTED[method].name):
        no_rule(method, PROMPTED[method].name)


def language_of(text: str) -> str:
    """``zh`` where at least a tenth of the characters that are not blank are Han, else ``en``."""
    sample = text[:20_000]
    han = sum("\u3400" <= char <= "\u9fff" for char in sample)
    return "zh" if han * 10 >= max(1, sum(not char.isspace() for char in sample)) else "en"
