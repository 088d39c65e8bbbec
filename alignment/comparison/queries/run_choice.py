"""Choice of a report's run: runs of a chat set, filtered by engine and prompt versions."""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.contrib.auth.models import AnonymousUser
from django.urls import reverse

from alignment.comparison.queries.filters import FILTERS, chosen_filter
from evaluation.models.judges import JudgePrompt
from evaluation.models.runs import FINISHED, Run
from evaluation.runs.queries.runs import OUTSIDE, id_of, runs_open_to
from labeling.models.chats import ChatSet
from labeling.models.people import User

MAX_RUN_OPTIONS = 100  # newest runs in the select; the URL can name any run
HUMAN_ONLY = "none"  # instead of a run: the report on human labels only
UNKNOWN = "unknown"  # version of an imported judge, whose prompts are not stored
NAMES = ("set", "engine", "version")
ENGINES = tuple(value for value, _ in FILTERS["engine"].choices)


@dataclass(frozen=True, slots=True)
class Version:
    """Prompt versions of a judge; `key` is the same for the same prompts with any engine."""

    key: str = UNKNOWN
    words: str = "unknown prompts"


@dataclass(frozen=True, slots=True)
class RunChoice:
    """Filters of the query string: set id, engine ('outside': imported), version; '' is any."""

    set: str = ""
    engine: str = ""
    version: str = ""

    @classmethod
    def read(cls, query: Mapping[str, str]) -> "RunChoice":
        """Read the filters from a query string."""
        return cls(**{name: query.get(name, "") for name in NAMES})

    @property
    def narrows(self) -> bool:
        """Whether any filter is set."""
        return bool(self.set or self.engine or self.version)

    @property
    def set_id(self) -> int | None:
        """The set's id; None for any set or an invalid id."""
        return id_of(self.set)

    def fits(self, run: Run, versions: Mapping[int, Version]) -> bool:
        """Whether a run matches the filters."""
        return (
            (not self.set or run.chat_set_id == self.set_id)
            and (not self.engine or engine_of(run) == self.engine)
            and (not self.version or versions[run.judge_id].key == self.version)
        )


def engine_of(run: Run) -> str:
    """The engine of a run; 'outside' for imported verdicts."""
    return run.judge.engine or OUTSIDE


@dataclass(frozen=True, slots=True)
class RunOptions:
    """Runs to choose from, newest first, and versions by judge id."""

    runs: Sequence[Run]
    versions: Mapping[int, Version]

    def version(self, run: Run) -> Version:
        """The version of the run's judge."""
        return self.versions[run.judge_id]


def run_options(chat_set: int | None, *, user: User | AnonymousUser, shown: Run | None = None) -> RunOptions:
    """Newest finished evaluations and imports over a set (None: any) that the user may open; two queries.

    Always includes the run `shown`.
    """
    own = (Run.Purpose.EVALUATION, Run.Purpose.IMPORT)
    rows = runs_open_to(user).filter(state__in=FINISHED, purpose__in=own)
    if chat_set is not None:
        rows = rows.filter(chat_set=chat_set)
    runs = list(rows.order_by("-pk")[:MAX_RUN_OPTIONS])
    if shown is not None and shown not in runs:
        runs = sorted([*runs, shown], key=lambda run: -run.pk)
    return RunOptions(runs, versions_of(runs))


def versions_of(runs: Iterable[Run]) -> dict[int, Version]:
    """Versions by judge id; one query."""
    judges = {run.judge_id for run in runs}
    prompts: dict[int, list[tuple[int, int]]] = {}
    rows = JudgePrompt.objects.filter(judge__in=judges).order_by("prompt_version")
    for judge, pk, number in rows.values_list("judge", "prompt_version", "prompt_version__number"):
        prompts.setdefault(judge, []).append((pk, number or 0))
    return {judge: _version(prompts[judge]) if judge in prompts else Version() for judge in judges}


def _version(prompts: Sequence[tuple[int, int]]) -> Version:
    key = hashlib.sha256(repr([pk for pk, _ in prompts]).encode()).hexdigest()[:8]
    numbers = [number for _, number in prompts]
    least, most = min(numbers), max(numbers)
    return Version(key, f"prompts v{least}{f'–{most}' if most > least else ''}, {key}")


def newest_fitting(choice: RunChoice, *, run_id: str, user: User | AnonymousUser) -> Run | None:
    """The run of this id if it matches, else the newest finished run that matches, else None."""
    pk = id_of(run_id)
    named = None if pk is None else runs_open_to(user).filter(pk=pk).first()
    offered = run_options(choice.set_id, user=user, shown=named)
    fitting = [run for run in offered.runs if choice.fits(run, offered.versions)]
    if named in fitting:
        return named
    return next((run for run in fitting if run.state in FINISHED), None)


def run_filters(
    choice: RunChoice, *, shown: Run | None, chat_set: ChatSet | None, offered: RunOptions
) -> list[dict[str, Any]]:
    """Selects of set, engine, version and run, for the report of a run or of a set; one query."""
    shown_set = chat_set.pk if chat_set else choice.set_id
    sets = ChatSet.objects.listed(also=shown_set).order_by("name").values_list("pk", "name")
    by_engine = RunChoice(engine=choice.engine)
    versions = [offered.version(run) for run in offered.runs if by_engine.fits(run, offered.versions)]
    fitting = [run for run in offered.runs if choice.fits(run, offered.versions) or run == shown]
    engines = {engine_of(run) for run in offered.runs} | ({choice.engine} & set(ENGINES))
    known = {version.key: version.words for version in versions}
    if choice.version:
        known.setdefault(choice.version, choice.version)
    names = [*([] if chat_set else [("", "none")]), *((str(pk), name) for pk, name in sets)]
    alone = [(HUMAN_ONLY, "none: human labels only")] if chat_set else []
    runs = [*alone, *((str(run.pk), _named(run)) for run in fitting)]
    shown_engines = [(name, name) for name in ENGINES if name in engines]
    return [
        chosen_filter("set", str(chat_set.pk) if chat_set else "", names, required=True),
        chosen_filter("engine", choice.engine, shown_engines),
        chosen_filter("version", choice.version, list(known.items())),
        chosen_filter("run", str(shown.pk) if shown else HUMAN_ONLY, runs),
    ]


def hidden_filters(choice: RunChoice) -> list[dict[str, Any]]:
    """Hidden inputs that keep the run filters, for forms without a run select."""
    chosen = {"engine": choice.engine, "version": choice.version}
    return [{"name": name, "hidden": value} for name, value in chosen.items() if value]


def other_runs(offered: RunOptions, *, shown: Run | None, query: str) -> list[dict[str, Any]]:
    """Links to related runs: the newest of each other engine, and other versions with the same engine.

    Prefers runs with the same prompts for other engines. Without a run, the newest of every engine.
    """
    engine, version = (engine_of(shown), offered.version(shown).key) if shown else ("", "")
    related: list[tuple[str, Run]] = []
    for name in ENGINES:
        same = [run for run in offered.runs if engine_of(run) == name != engine]
        same.sort(key=lambda run: (offered.version(run).key == version, run.pk), reverse=True)
        related += [(name, run) for run in same[:1]]
    if shown is not None:
        rows = [run for run in offered.runs if engine_of(run) == engine]
        prompts = [run for run in rows if offered.version(run).key != version]
        related += [("previous version", run) for run in [one for one in prompts if one.pk < shown.pk][:1]]
        related += [("next version", run) for run in [one for one in prompts if one.pk > shown.pk][:1]]
    return [
        {
            "run": run,
            "words": words,
            "version": offered.version(run),
            "url": reverse("alignment:report_run", args=[run.pk]) + query,
        }
        for words, run in related
    ]


def _named(run: Run) -> str:
    return f"{run.pk}: {run.judge.name}, {run.created_at:%-d %b %Y}"
