"""Which run a report shows: runs of a chat set, narrowed by engine and by the prompts that the judge asks."""

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

OFFERED = 100  # newest runs of a set; the address takes any
PEOPLE_ALONE = "none"  # in place of a run: the report of the set alone
UNKNOWN = "unknown"  # the version of a judge whose prompts are not known here
NAMES = ("set", "engine", "version")
ENGINES = tuple(value for value, _ in FILTERS["engine"].choices)


@dataclass(frozen=True, slots=True)
class Version:
    """The prompt versions of a judge: `key` is the same for the same prompts, under whatever engine."""

    key: str = UNKNOWN
    words: str = "prompts not known"


@dataclass(frozen=True, slots=True)
class RunChoice:
    """What the address asks for: a set by its id, an engine ('outside': imported), a version; '' is any."""

    set: str = ""
    engine: str = ""
    version: str = ""

    @classmethod
    def read(cls, query: Mapping[str, str]) -> "RunChoice":
        """From a query string."""
        return cls(**{name: query.get(name, "") for name in NAMES})

    @property
    def narrows(self) -> bool:
        """Whether anything is left out."""
        return bool(self.set or self.engine or self.version)

    @property
    def set_id(self) -> int | None:
        """The set's id; None for any set and for nonsense."""
        return id_of(self.set)

    def fits(self, run: Run, versions: Mapping[int, Version]) -> bool:
        """Whether a run is of this set, engine and version."""
        return (
            (not self.set or run.chat_set_id == self.set_id)
            and (not self.engine or engine_of(run) == self.engine)
            and (not self.version or versions[run.judge_id].key == self.version)
        )


def engine_of(run: Run) -> str:
    """Its engine; 'outside' for imported verdicts."""
    return run.judge.engine or OUTSIDE


@dataclass(frozen=True, slots=True)
class Offered:
    """Runs that may be chosen, newest first, and the version of each judge by its id."""

    runs: Sequence[Run]
    versions: Mapping[int, Version]

    def version(self, run: Run) -> Version:
        """Of the run's judge."""
        return self.versions[run.judge_id]


def runs_offered(chat_set: int | None, *, user: User | AnonymousUser, shown: Run | None = None) -> Offered:
    """The newest finished evaluations and imports over a set (None: any) that the user may open; two queries.

    The run `shown` is always among them.
    """
    own = (Run.Purpose.EVALUATION, Run.Purpose.IMPORT)
    rows = runs_open_to(user).filter(state__in=FINISHED, purpose__in=own)
    if chat_set is not None:
        rows = rows.filter(chat_set=chat_set)
    runs = list(rows.order_by("-pk")[:OFFERED])
    if shown is not None and shown not in runs:
        runs = sorted([*runs, shown], key=lambda run: -run.pk)
    return Offered(runs, versions_of(runs))


def versions_of(runs: Iterable[Run]) -> dict[int, Version]:
    """The version of each judge, by its id; one query."""
    judges = {run.judge_id for run in runs}
    asked: dict[int, list[tuple[int, int]]] = {}
    rows = JudgePrompt.objects.filter(judge__in=judges).order_by("prompt_version")
    for judge, pk, number in rows.values_list("judge", "prompt_version", "prompt_version__number"):
        asked.setdefault(judge, []).append((pk, number or 0))
    return {judge: _version(asked[judge]) if judge in asked else Version() for judge in judges}


def _version(prompts: Sequence[tuple[int, int]]) -> Version:
    key = hashlib.sha256(repr([pk for pk, _ in prompts]).encode()).hexdigest()[:8]
    numbers = [number for _, number in prompts]
    least, most = min(numbers), max(numbers)
    return Version(key, f"prompts v{least}{f'–{most}' if most > least else ''}, {key}")


def newest_fitting(choice: RunChoice, *, run_id: str, user: User | AnonymousUser) -> Run | None:
    """The run of this id where it fits, else the newest finished one that does; None where none fits."""
    pk = id_of(run_id)
    named = None if pk is None else runs_open_to(user).filter(pk=pk).first()
    offered = runs_offered(choice.set_id, user=user, shown=named)
    fitting = [run for run in offered.runs if choice.fits(run, offered.versions)]
    if named in fitting:
        return named
    return next((run for run in fitting if run.state in FINISHED), None)


def run_filters(
    choice: RunChoice, *, shown: Run | None, chat_set: ChatSet | None, offered: Offered
) -> list[dict[str, Any]]:
    """Selects of set, engine, version and run for the report of a run, or of a set alone; one query."""
    sets = ChatSet.objects.order_by("name").values_list("pk", "name")
    by_engine = RunChoice(engine=choice.engine)
    found = [offered.version(run) for run in offered.runs if by_engine.fits(run, offered.versions)]
    fitting = [run for run in offered.runs if choice.fits(run, offered.versions) or run == shown]
    engines = {engine_of(run) for run in offered.runs} | ({choice.engine} & set(ENGINES))
    known = {version.key: version.words for version in found}
    if choice.version:
        known.setdefault(choice.version, choice.version)
    names = [*([] if chat_set else [("", "none")]), *((str(pk), name) for pk, name in sets)]
    alone = [(PEOPLE_ALONE, "none: people alone")] if chat_set else []
    runs = [*alone, *((str(run.pk), _named(run)) for run in fitting)]
    shown_engines = [(name, name) for name in ENGINES if name in engines]
    return [
        chosen_filter("set", str(chat_set.pk) if chat_set else "", names, required=True),
        chosen_filter("engine", choice.engine, shown_engines),
        chosen_filter("version", choice.version, list(known.items())),
        chosen_filter("run", str(shown.pk) if shown else PEOPLE_ALONE, runs),
    ]


def carried(choice: RunChoice) -> list[dict[str, Any]]:
    """What the runs were narrowed to, for forms of pages that offer no runs: hidden, so that it is kept."""
    chosen = {"engine": choice.engine, "version": choice.version}
    return [{"name": name, "hidden": value} for name, value in chosen.items() if value]


def other_runs(offered: Offered, *, shown: Run | None, query: str) -> list[dict[str, Any]]:
    """The newest run of each other engine, rather with the same prompts; and of the same engine the
    runs just before and after with other prompts. Without a run, the newest of every engine.
    """
    engine, version = (engine_of(shown), offered.version(shown).key) if shown else ("", "")
    found: list[tuple[str, Run]] = []
    for name in ENGINES:
        same = [run for run in offered.runs if engine_of(run) == name != engine]
        same.sort(key=lambda run: (offered.version(run).key == version, run.pk), reverse=True)
        found += [(name, run) for run in same[:1]]
    if shown is not None:
        rows = [run for run in offered.runs if engine_of(run) == engine]
        prompts = [run for run in rows if offered.version(run).key != version]
        found += [("the version before", run) for run in [one for one in prompts if one.pk < shown.pk][:1]]
        found += [("a newer version", run) for run in [one for one in prompts if one.pk > shown.pk][:1]]
    return [
        {
            "run": run,
            "words": words,
            "version": offered.version(run),
            "url": reverse("alignment:report_run", args=[run.pk]) + query,
        }
        for words, run in found
    ]


def _named(run: Run) -> str:
    return f"{run.pk}: {run.judge.name}, {run.created_at:%-d %b %Y}"
