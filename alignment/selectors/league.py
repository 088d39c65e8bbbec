"""The engine league: several runs over one chat set, compared on what people and all of them answered."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from django.contrib.auth.models import AnonymousUser
from django.db.models import QuerySet
from django.http import QueryDict
from django.utils import timezone

from alignment.core.league import OVERALL, CriterionAnswers, Group, compare, worth
from alignment.core.report import CONSENSUS, JudgeCode
from alignment.core.report.data import Codes, ReportData
from alignment.models.reports import Report
from alignment.selectors.answers import covered_chats, report_data, run_codes
from alignment.selectors.kept import kept, pin_of
from alignment.selectors.reports import POLICY
from alignment.selectors.scope import Scope
from evaluation.models.judges import Engine, JudgePrompt
from evaluation.models.runs import FINISHED, Run
from evaluation.selectors.runs import id_of, run_list, runs_open_to
from evaluation.selectors.spending import Spending, runs_spending
from labeling.models.chats import Chat, ChatSet, ChatSetMember, Split
from labeling.models.people import User
from labeling.models.rubric import CriterionVersion
from labeling.selectors.blind import chats_shown, sees_every_chat

BODY_VERSION = 3
FEWEST, MOST = 2, 6  # runs in a league
OFFERED = 50  # the newest; the address takes any finished run of the set
WRONG_NUMBER = f"Choose {FEWEST} to {MOST} runs: a league compares each with each."
BY_ITSELF = (Run.Purpose.EVALUATION, Run.Purpose.IMPORT)


@dataclass(frozen=True)
class ShownScope(Scope):
    """A set's chats, of them only those that may be `shown` to who looks; None = all.

    NB: figures over the others would tell of single chats: runs can be chosen anew, and the figures of two
    choices differ by the chats that one run more has not answered.
    """

    shown: QuerySet[Chat] | None = None

    @property
    def members(self) -> QuerySet[Any]:
        """The rows that say which chats are covered, in the set's order."""
        rows = super().members
        return rows if self.shown is None else rows.filter(chat__in=self.shown.values("pk"))


@dataclass(frozen=True)
class LeagueChoice:
    """What a page's address asks for: the compared `runs`, by engine, of those `offered`.

    Either two runs or more, or a `problem` in words and no comparison.
    """

    scope: ShownScope
    chat_set: ChatSet
    runs: list[Run]
    offered: list[Run]
    problem: str = ""

    @property
    def left_out(self) -> int:
        """Chats of the split that are not counted because who looks may not be shown them; one query."""
        if self.scope.shown is None:
            return 0
        asked = {"split": self.scope.split} if self.scope.split else {}
        members = ChatSetMember.objects.filter(chat_set=self.chat_set, **asked)
        return members.exclude(chat__in=self.scope.shown.values("pk")).count()


def league_choice(chat_set: ChatSet, *, query: QueryDict, user: User | AnonymousUser) -> LeagueChoice | None:
    """
    The runs and the split of a query string: `run` (several times) and `split`.

    Without `run`: the newest finished evaluation or imported run of each engine and model. None where a run
    is not a finished one of this set, or the split does not exist.
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
    problem = "" if FEWEST <= len(chosen) <= MOST else WRONG_NUMBER
    scope = ShownScope(chat_set, None, split, shown=shown)
    return LeagueChoice(scope, chat_set, sorted(chosen, key=_place), offered, problem)


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


def _place(run: Run) -> tuple[int, int]:
    """The plain engines first, outside judges last."""
    order = [*Engine.values, ""]
    return order.index(run.judge.engine), run.pk


def league_document(choice: LeagueChoice) -> dict[str, Any]:
    """
    The league as JSON (docs/reports.md), for a choice without a problem.

    Computed once for the same labels and runs, then read back; the number of queries does not depend on
    chats or criteria.
    """
    runs = [[run.pk, run.finished_at] for run in choice.runs]
    pin = pin_of(choice.scope, Report.Kind.LEAGUE.value, BODY_VERSION, runs)
    stored = kept(
        choice.scope,
        kind=Report.Kind.LEAGUE,
        pin=pin,
        policy=POLICY.version,
        body=lambda: _body(choice),
        options=[[run.pk for run in choice.runs], choice.scope.shown is None],
    )
    body: dict[str, Any] = stored.body
    figures = {row["run"]: row for row in body["runs"]}
    return {
        "set": choice.chat_set.name,
        "split": choice.scope.split or None,
        "against": CONSENSUS,
        "chats_left_out": choice.left_out,
        **body,
        "runs": [_named_run(run) | figures[run.pk] for run in choice.runs],
    }


def _named_run(run: Run) -> dict[str, Any]:
    judge = run.judge
    named = {name: getattr(judge, name) for name in ("fingerprint", "engine", "model")}
    return {"run": run.pk, "judge": judge.name, **named}


def _body(choice: LeagueChoice) -> dict[str, Any]:
    scope, runs = choice.scope, choice.runs
    people, chats = report_data(scope), covered_chats(scope)
    codes = {run.pk: run_codes(run, scope, chats) for run in runs}
    spent = runs_spending([run.pk for run in runs], chats=scope.chat_ids)
    prices = _prices(choice, codes, spent)
    groups = compare(_answers(scope, people, codes), runs=[run.pk for run in runs])
    return {
        "chats": len(people.chat_ids),
        "generated_at": timezone.now().isoformat(),
        "other_questions": _other_questions(choice, people),
        "runs": [_took(run, codes[run.pk], spent.get(run.pk)) for run in runs],
        "groups": [_priced(group, prices[group.key]) for group in groups],
    }


def _other_questions(choice: LeagueChoice, people: ReportData) -> list[str]:
    """The keys of criteria on which a judge was asked another question than the labels answer."""
    answered = {one.spec.key: one.questions.labels for one in people.criteria}
    versions = CriterionVersion.objects.filter(criterion__in=choice.scope.criteria)
    counted = {
        key: content
        for key, number, content in versions.values_list("criterion__key", "number", "content_hash")
        if answered[key] == number
    }
    prompts = JudgePrompt.objects.filter(judge__in=[run.judge_id for run in choice.runs])
    asked = prompts.values_list("criterion__key", "criterion_version__content_hash").distinct()
    return sorted({key for key, content in asked.order_by() if counted.get(key, content) != content})


def _priced(group: Group, prices: Mapping[int, float | None]) -> dict[str, Any]:
    body = group.as_json()
    for row in body["judges"]:
        row["cost_per_answer"] = prices[row["run"]]
    return body | {"worth": None if group.untested else worth(group, prices=prices).as_json()}


def _answers(
    scope: Scope, people: ReportData, codes: Mapping[int, Mapping[int, Codes]]
) -> list[CriterionAnswers]:
    return [
        CriterionAnswers(
            key=row.key,
            tier=row.tier,
            human=one.human,
            judges=np.stack([by_criterion[row.pk] for by_criterion in codes.values()]),
            counts=one.counts,
        )
        for row, one in zip(scope.criteria, people.criteria, strict=True)
    ]


def _took(run: Run, codes: Mapping[int, Codes], spent: Spending | None) -> dict[str, Any]:
    """What a run said on the covered chats, and what that took; None where nothing is on record."""
    counts = sum(
        (np.bincount(one, minlength=len(JudgeCode)) for one in codes.values()),
        np.zeros(len(JudgeCode), dtype=np.int64),
    )
    cost = spent.cost if spent else None
    return {
        "run": run.pk,
        "verdicts": {code.name.lower(): int(counts[code]) for code in JudgeCode},
        "calls": spent.calls if spent else None,
        "reused": spent.reused if spent else None,
        "prompt_tokens": spent.prompt_tokens if spent else None,
        "completion_tokens": spent.completion_tokens if spent else None,
        "cost_usd": None if cost is None else float(cost),
        "latency_ms": {
            "median": spent.latency(50) if spent else None,
            "p95": spent.latency(95) if spent else None,
        },
    }


def _prices(
    choice: LeagueChoice, codes: Mapping[int, Mapping[int, Codes]], spent: Mapping[int, Spending]
) -> dict[str, dict[int, float | None]]:
    """Dollars an answer by tier (and overall) and run: criteria asked together share their group's cost."""
    tiers = {row.pk: row.tier for row in choice.scope.criteria}
    asked: dict[int, dict[int, list[int]]] = {}
    prompts = JudgePrompt.objects.filter(judge__in=[run.judge_id for run in choice.runs])
    for judge, group, criterion in prompts.values_list("judge_id", "group", "criterion_id"):
        asked.setdefault(judge, {}).setdefault(group, []).append(criterion)
    prices: dict[str, dict[int, float | None]] = {name: {} for name in (OVERALL, *tiers.values())}
    for run in choice.runs:
        shares = _shares(asked.get(run.judge_id, {}), spent.get(run.pk))
        said = {pk: int((codes[run.pk][pk] != JudgeCode.NONE).sum()) for pk in tiers}
        for name, by_run in prices.items():
            within = [pk for pk, tier in tiers.items() if name in (OVERALL, tier) and said[pk]]
            costs = [cost for pk in within if (cost := shares.get(pk)) is not None]
            known = bool(costs) and len(costs) == len(within)
            by_run[run.pk] = sum(costs) / sum(said[pk] for pk in within) if known else None
    return prices


def _shares(asked: Mapping[int, Sequence[int]], spent: Spending | None) -> dict[int, float]:
    """Dollars by criterion id; one whose group's price is not known is left out."""
    costs = spent.costs if spent else {}
    return {
        criterion: float(cost) / len(criteria)
        for group, criteria in asked.items()
        if (cost := costs.get(group)) is not None
        for criterion in criteria
    }
