"""Runs as lists and pages show them."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any

from django.contrib.auth.models import AnonymousUser
from django.db.models import Case, Q, QuerySet, When
from django.urls import reverse

from common.inbox.subjects import Subject
from common.search.registry import Hit, Query
from evaluation.gateway.simulated import SIMULATED_NOTICE
from evaluation.models.judges import Engine
from evaluation.models.runs import ANCHORS, EVALUATIONS, TESTS, Run, error_in_words
from evaluation.runs.queries.verdict_counts import verdict_counts
from labeling.models.chats import ChatSet
from labeling.models.people import User

OUTSIDE = "outside"
LONGEST_ID = 18  # digits that every database takes for an id
WEAK_JUDGE = "demonstration model, a weak judge"
DEMO_VERDICTS = "verdicts written for this demo"
# The page lists these apart from each other: key → words, purposes.
KINDS: Mapping[str, tuple[str, Collection[str]]] = {
    "evaluations": ("Evaluations", EVALUATIONS),
    "tests": ("Test runs", TESTS),
    "tries": ("Tries from the editor", (Run.Purpose.TRY,)),
    "anchors": ("Anchor runs", (ANCHORS,)),
}


def id_of(text: str) -> int | None:
    """Return the id in an address; None for anything else."""
    return int(text) if text.isdecimal() and len(text) < LONGEST_ID else None


@dataclass(frozen=True, slots=True)
class RunRow:
    """One run with its counts."""

    id: int
    set: str
    judge: str
    fingerprint: str
    kind: str
    mode: str
    engine: str
    model: str
    state: str
    state_label: str
    coverage: str
    error: str
    total: int
    done: int
    failed: int
    verdicts: int
    unparsed: int
    no_verdict: int
    calls: int
    reused: int
    prompt_tokens: int
    completion_tokens: int
    cost_usd: Decimal | None
    created_at: datetime
    finished_at: datetime | None
    url: str
    report_url: str
    notices: tuple[str, ...]
    profile: str = ""

    @property
    def about(self) -> str:
        """Return what the judge's name does not contain: engine and model, profile, mode."""
        plain = f"{self.engine or OUTSIDE}{f', {self.model}' if self.model else ''}"
        parts = ["" if plain == self.judge else plain, f"profile {self.profile}" if self.profile else ""]
        return ", ".join(part for part in [*parts, "batch" if self.mode == "batch" else ""] if part)

    @property
    def standing(self) -> str:
        """Return the state with the coverage, as the run itself says it."""
        return f"{self.state_label}: {self.coverage}" if self.coverage else self.state_label

    @property
    def active(self) -> bool:
        """Return whether units may still be in work."""
        return self.state == Run.State.RUNNING

    @property
    def cancelled(self) -> bool:
        """Return whether somebody ended the run before its last unit."""
        return self.state == Run.State.CANCELLED

    @property
    def ended(self) -> bool:
        """Return whether the run has ended, with any result."""
        return self.state not in (Run.State.RUNNING, Run.State.PAUSED)

    @property
    def left(self) -> int:
        """Return the units that are neither done nor failed."""
        return self.total - self.done - self.failed

    @property
    def share(self) -> float:
        """Return the share of units done or failed."""
        return (self.done + self.failed) / max(1, self.total)


@dataclass(frozen=True, slots=True)
class RunFilter:
    """Which runs a list shows; "" is all of them. `engine` is "outside" for imported judges.

    `purpose` is one of a run, or a kind of KINDS.
    """

    state: str = ""
    set: str = ""
    engine: str = ""
    purpose: str = ""

    @property
    def narrows(self) -> bool:
        """Return whether any run is excluded."""
        return bool(self.state or self.set or self.engine)


def kind_of(purpose: str) -> str:
    """Return the kind of KINDS that a purpose in an address belongs to; evaluations for anything else."""
    if purpose in KINDS:
        return purpose
    return next((key for key, (_, purposes) in KINDS.items() if purpose in purposes), "evaluations")


def runs_open_to(user: User | AnonymousUser) -> QuerySet[Run]:
    """Return the runs whose pages a user can open: all, but tries only for their author and for leads."""
    runs = Run.objects.select_related("judge", "chat_set")
    if user.has_perm("labeling.start_runs"):
        return runs
    return runs.filter(~Q(purpose=Run.Purpose.TRY) | Q(started_by=user.pk))


def run_subjects(ids: Collection[int], user: User) -> dict[int, Subject]:
    """Return those of these runs that the user may open."""
    if not user.has_perm("labeling.see_judge"):
        return {}
    rows = runs_open_to(user).filter(pk__in=ids)
    return {
        row.pk: Subject(
            title=f"run {row.pk}" + (f" on {row.chat_set.name}" if row.chat_set else ""),
            url=reverse("evaluation:run_detail", args=[row.pk]),
        )
        for row in rows
    }


def run_list(only: RunFilter | None = None, *, among: QuerySet[Run] | None = None) -> QuerySet[Run]:
    """Return runs, newest first, with what a row needs; unknown filter values are ignored.

    Tries and anchor runs are listed only if the filter selects them. Its purpose may name a kind of KINDS.
    """
    runs = Run.objects.select_related("judge", "chat_set") if among is None else among
    runs, only = runs.order_by("-id"), only or RunFilter()
    if only.purpose in KINDS:
        runs = runs.filter(purpose__in=KINDS[only.purpose][1])
    elif only.purpose in Run.Purpose.values:
        runs = runs.filter(purpose=only.purpose)
    else:
        runs = runs.exclude(purpose__in=(Run.Purpose.TRY, ANCHORS))
    if only.state in Run.State.values:
        runs = runs.filter(state=only.state)
    if (chat_set := id_of(only.set)) is not None:
        runs = runs.filter(chat_set=chat_set)
    if only.engine in (*Engine.values, OUTSIDE):
        runs = runs.filter(judge__engine="" if only.engine == OUTSIDE else only.engine)
    return runs


def run_filters(only: RunFilter) -> list[dict[str, Any]]:
    """Return the filters of the list with their options; one query."""
    sets = ChatSet.objects.listed(also=only.set).order_by("name").values_list("pk", "name")
    return [
        _filter("state", "Status", only.state, list(Run.State.choices)),
        _filter("set", "Chat set", only.set, [(str(pk), name) for pk, name in sets]),
        _filter("engine", "Engine", only.engine, [(name, name) for name in (*Engine.values, OUTSIDE)]),
        {"name": "purpose", "hidden": only.purpose},
    ]


def _filter(name: str, label: str, chosen: str, options: Sequence[tuple[Any, Any]]) -> dict[str, Any]:
    every = [("", "all"), *options]
    return {
        "name": name,
        "label": label,
        "options": [
            {"value": value, "label": text, "selected": str(value) == chosen} for value, text in every
        ],
    }


def run_rows(runs: Sequence[Run]) -> list[RunRow]:
    """Return rows of these runs; one query for those that have not ended."""
    counts = verdict_counts(runs)
    return [_row(run, counts[run.pk]) for run in runs]


def run_notices(run: Run) -> tuple[str, ...]:
    """Return the notices to show wherever this run's verdicts appear."""
    notices = []
    if run.judge.embedded:
        notices.append(WEAK_JUDGE)
    if run.judge.simulated:
        notices.append(SIMULATED_NOTICE)
    if run.judge.config.get("demo"):
        notices.append(DEMO_VERDICTS)
    return tuple(notices)


def _row(run: Run, count: dict[str, int]) -> RunRow:
    judge = run.judge
    return RunRow(
        id=run.pk,
        set=run.chat_set.name if run.chat_set else "",
        judge=judge.name,
        fingerprint=judge.fingerprint,
        kind=judge.kind,
        mode=run.mode,
        engine=judge.engine,
        model=judge.model,
        state=run.state,
        state_label=run.get_state_display(),
        coverage=run.coverage,
        error=error_in_words(run.error),
        total=run.units_total,
        done=run.units_done,
        failed=run.units_failed,
        verdicts=count["all"],
        unparsed=count["unparsed"],
        no_verdict=count["no_verdict"],
        calls=run.calls,
        reused=run.reused,
        prompt_tokens=run.prompt_tokens,
        completion_tokens=run.completion_tokens,
        cost_usd=run.cost_usd,
        created_at=run.created_at,
        finished_at=run.finished_at,
        url=reverse("evaluation:run_detail", args=[run.pk]),
        report_url=reverse("alignment:report_run", args=[run.pk]),
        notices=run_notices(run),
        profile=str(run.options.get("profile", "")),
    )


def run_json(row: RunRow) -> dict[str, Any]:
    """Return one run as commands and API show it."""
    return {
        "id": row.id,
        "set": row.set,
        "judge": row.judge,
        "fingerprint": row.fingerprint,
        "engine": row.engine,
        "model": row.model,
        "state": row.state,
        "units": row.total,
        "units_done": row.done,
        "units_failed": row.failed,
        "verdicts": row.verdicts,
        "unparsed": row.unparsed,
        "created_at": row.created_at.isoformat(),
    }


def run_hits(query: Query, user: User, limit: int) -> list[Hit]:
    """Return the runs that match by id, judge, model, set or profile, if the user may open them."""
    return [
        Hit(f"Run {row.pk}", reverse("evaluation:run_detail", args=[row.pk]), run_in_words(row))
        for row in runs_matching(query, user, limit)
    ]


def runs_matching(query: Query, user: User | AnonymousUser, limit: int) -> list[Run]:
    """Return the newest runs that match and that the user may open; the one with that id comes first."""
    if not user.has_perm("labeling.see_judge"):
        return []
    texts = ("judge__name", "judge__engine", "judge__config__model", "chat_set__name", "options__profile")
    named = Q(pk=query.number) if query.number is not None else Q(pk__in=[])
    rows = runs_open_to(user).filter(query.matches(*texts) | named)
    return list(rows.order_by(Case(When(named, then=0), default=1), "-pk")[:limit])


def run_in_words(run: Run) -> str:
    """Return set, judge and state of a run in one line."""
    where = f"{run.chat_set.name}, " if run.chat_set else ""
    return f"{where}{run.judge.name}, {run.get_state_display().lower()}"
