"""Runs of a league: those in the query string, or the newest with enough verdicts."""

from collections.abc import Sequence
from dataclasses import dataclass

from django.contrib.auth.models import AnonymousUser
from django.db.models import QuerySet
from django.http import QueryDict

from alignment.judge_comparison.queries.answers import LeagueAnswers, VisibleScope, answered
from evaluation.models.judges import Engine
from evaluation.models.runs import FINISHED, Run
from evaluation.runs.queries.runs import id_of, run_list, runs_open_to
from labeling.models.chats import ChatSet, ChatSetMember, Split
from labeling.models.people import User
from labeling.people.queries.visibility import chats_shown, sees_every_chat

FEWEST, MOST = 2, 6  # runs in a league
ENOUGH = 0.5  # of the answers of the run with most answers
OFFERED = 50  # newest runs in the list; the query string may name any finished run of the set
WRONG_NUMBER = f"Choose {FEWEST} to {MOST} runs. The league compares every pair."
BY_ITSELF = (Run.Purpose.EVALUATION, Run.Purpose.IMPORT)


@dataclass(frozen=True)
class ExcludedRun:
    """A run with few answers: it `answered` this many of the human answers, another run `most`."""

    run: Run
    answered: int
    most: int


@dataclass(frozen=True)
class LeagueChoice:
    """The selection of a query string: the compared `runs`, by engine, of those `offered`.

    problem : a message if fewer than two or too many runs are selected. excluded_runs : filled only if the
    query string names no run.
    """

    answers: LeagueAnswers
    chat_set: ChatSet
    runs: list[Run]
    offered: list[Run]
    problem: str = ""
    excluded_runs: tuple[ExcludedRun, ...] = ()

    @property
    def scope(self) -> VisibleScope:
        """Chats and criteria of the league."""
        return self.answers.scope

    @property
    def hidden_chats(self) -> int:
        """Number of chats of the split that the user cannot see; one query."""
        if self.scope.visible is None:
            return 0
        split = {"split": self.scope.split} if self.scope.split else {}
        members = ChatSetMember.objects.filter(chat_set=self.chat_set, **split)
        return members.exclude(chat__in=self.scope.visible.values("pk")).count()


def league_choice(chat_set: ChatSet, *, query: QueryDict, user: User | AnonymousUser) -> LeagueChoice | None:
    """
    Read runs and split from a query string: `run` (repeatable) and `split`.

    The default is the newest finished evaluation or import of each engine and model, without those that have
    too few verdicts. Returns None if a run is not a finished one of this set, or the split is unknown.
    """
    split, ids = query.get("split", ""), list(dict.fromkeys(query.getlist("run")))
    if split and split not in Split.values:
        return None
    runs = _comparable(chat_set, user=user)
    offered = list(runs[:OFFERED])
    chosen = _named(runs, ids) if ids else _newest(offered)
    if chosen is None:
        return None
    visible = None if sees_every_chat(user=user) else chats_shown(user=user)
    answers = LeagueAnswers(VisibleScope(chat_set, None, split, visible=visible))
    excluded = [] if ids else _excluded(answers, chosen)
    compared = sorted((run for run in chosen if run not in [one.run for one in excluded]), key=_place)
    problem = "" if FEWEST <= len(compared) <= MOST else WRONG_NUMBER
    return LeagueChoice(answers, chat_set, compared, offered, problem, tuple(excluded))


def _comparable(chat_set: ChatSet, *, user: User | AnonymousUser) -> QuerySet[Run]:
    finished = runs_open_to(user).filter(chat_set=chat_set, state__in=FINISHED)
    return run_list(among=finished)


def _named(runs: QuerySet[Run], ids: Sequence[str]) -> list[Run] | None:
    rows = list(runs.filter(pk__in=[pk for one in ids if (pk := id_of(one)) is not None]))
    return rows if len(rows) == len(set(ids)) else None


def _newest(offered: Sequence[Run]) -> list[Run]:
    """Return the newest run of each engine and model, and of each imported judge by name."""
    newest: dict[tuple[str, str, str], Run] = {}
    for run in offered:
        if run.purpose in BY_ITSELF:
            judge = run.judge
            newest.setdefault((judge.engine, judge.model, "" if judge.engine else judge.name), run)
    return list(newest.values())[:MOST]


def _excluded(answers: LeagueAnswers, runs: Sequence[Run]) -> list[ExcludedRun]:
    """Return the runs with too few answers, but keep at least two."""
    if len(runs) <= FEWEST:
        return []
    counts = answered(answers, runs)
    first, *_ = ranked = sorted(runs, key=lambda run: -counts[run.pk])
    most = counts[first.pk]
    few = [run for run in ranked[FEWEST:] if counts[run.pk] < ENOUGH * most]
    return [ExcludedRun(run, counts[run.pk], most) for run in few]


def _place(run: Run) -> tuple[int, int]:
    """Sort key: by engine, imported judges last."""
    order = [*Engine.values, ""]
    return order.index(run.judge.engine), run.pk
