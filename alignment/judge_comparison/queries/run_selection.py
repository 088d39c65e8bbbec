"""Which runs of a set a league compares: those an address names, or the newest that answered enough."""

from collections.abc import Sequence
from dataclasses import dataclass

from django.contrib.auth.models import AnonymousUser
from django.db.models import QuerySet
from django.http import QueryDict

from alignment.judge_comparison.queries.answers import LeagueAnswers, ShownScope, answered
from evaluation.models.judges import Engine
from evaluation.models.runs import FINISHED, Run
from evaluation.runs.queries.runs import id_of, run_list, runs_open_to
from labeling.models.chats import ChatSet, ChatSetMember, Split
from labeling.models.people import User
from labeling.people.queries.visibility import chats_shown, sees_every_chat

FEWEST, MOST = 2, 6  # runs in a league
ENOUGH = 0.5  # of the answers of the run that gave the most
OFFERED = 50  # the newest; the address takes any finished run of the set
WRONG_NUMBER = f"Choose {FEWEST} to {MOST} runs: a league compares each with each."
BY_ITSELF = (Run.Purpose.EVALUATION, Run.Purpose.IMPORT)


@dataclass(frozen=True)
class LeftOut:
    """A run that would make the league small: of people's answers it `answered` few, another run `most`."""

    run: Run
    answered: int
    most: int


@dataclass(frozen=True)
class LeagueChoice:
    """What a page's address asks for: the compared `runs`, by engine, of those `offered`.

    Either two runs or more, or a `problem` in words and no comparison. `runs_left_out` only where the address
    names no run.
    """

    answers: LeagueAnswers
    chat_set: ChatSet
    runs: list[Run]
    offered: list[Run]
    problem: str = ""
    runs_left_out: tuple[LeftOut, ...] = ()

    @property
    def scope(self) -> ShownScope:
        """The chats and criteria."""
        return self.answers.scope

    @property
    def chats_left_out(self) -> int:
        """Chats of the split that are not counted because who looks may not be shown them; one query."""
        if self.scope.shown is None:
            return 0
        asked = {"split": self.scope.split} if self.scope.split else {}
        members = ChatSetMember.objects.filter(chat_set=self.chat_set, **asked)
        return members.exclude(chat__in=self.scope.shown.values("pk")).count()


def league_choice(chat_set: ChatSet, *, query: QueryDict, user: User | AnonymousUser) -> LeagueChoice | None:
    """
    The runs and the split of a query string: `run` (several times) and `split`.

    Without `run`: the newest finished evaluation or imported run of each engine and model, less those that
    answered too little. None where a run is not a finished one of this set, or the split does not exist.
    """
    split, asked = query.get("split", ""), list(dict.fromkeys(query.getlist("run")))
    if split and split not in Split.values:
        return None
    runs = _comparable(chat_set, user=user)
    offered = list(runs[:OFFERED])
    chosen = _named(runs, asked) if asked else _newest(offered)
    if chosen is None:
        return None
    shown = None if sees_every_chat(user=user) else chats_shown(user=user)
    answers = LeagueAnswers(ShownScope(chat_set, None, split, shown=shown))
    left = [] if asked else _left_out(answers, chosen)
    stay = sorted((run for run in chosen if run not in [one.run for one in left]), key=_place)
    problem = "" if FEWEST <= len(stay) <= MOST else WRONG_NUMBER
    return LeagueChoice(answers, chat_set, stay, offered, problem, tuple(left))


def _comparable(chat_set: ChatSet, *, user: User | AnonymousUser) -> QuerySet[Run]:
    finished = runs_open_to(user).filter(chat_set=chat_set, state__in=FINISHED)
    return run_list(among=finished)


def _named(runs: QuerySet[Run], asked: Sequence[str]) -> list[Run] | None:
    found = list(runs.filter(pk__in=[pk for one in asked if (pk := id_of(one)) is not None]))
    return found if len(found) == len(set(asked)) else None


def _newest(offered: Sequence[Run]) -> list[Run]:
    """Of each engine and model; outside judges are told apart by their names."""
    newest: dict[tuple[str, str, str], Run] = {}
    for run in offered:
        if run.purpose in BY_ITSELF:
            judge = run.judge
            newest.setdefault((judge.engine, judge.model, "" if judge.engine else judge.name), run)
    return list(newest.values())[:MOST]


def _left_out(answers: LeagueAnswers, runs: Sequence[Run]) -> list[LeftOut]:
    """Those that answered too little; never so many that there is no league."""
    if len(runs) <= FEWEST:
        return []
    counts = answered(answers, runs)
    first, *_ = ranked = sorted(runs, key=lambda run: -counts[run.pk])
    most = counts[first.pk]
    few = [run for run in ranked[FEWEST:] if counts[run.pk] < ENOUGH * most]
    return [LeftOut(run, counts[run.pk], most) for run in few]


def _place(run: Run) -> tuple[int, int]:
    """The plain engines first, outside judges last."""
    order = [*Engine.values, ""]
    return order.index(run.judge.engine), run.pk
