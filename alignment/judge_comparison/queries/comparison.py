"""The engine league: several runs over one chat set, compared on what people and all of them answered."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from django.utils import timezone

from alignment.comparison.core.codes import CONSENSUS, Codes, JudgeCode, ReportData
from alignment.comparison.queries.cached_documents import kept
from alignment.comparison.queries.scope import Scope
from alignment.judge_comparison.core import OVERALL, CriterionAnswers, Group, compare
from alignment.judge_comparison.core.cost_effectiveness import worth
from alignment.judge_comparison.queries.run_selection import LeagueChoice
from alignment.models.reports import Report
from alignment.reports.queries.reports import POLICY
from evaluation.models.judges import JudgePrompt
from evaluation.models.runs import Run
from evaluation.runs.queries.spending import Spending, runs_spending
from labeling.models.rubric import CriterionVersion


def league_document(choice: LeagueChoice) -> dict[str, Any]:
    """
    The league as JSON (docs/reports.md), for a choice without a problem.

    Computed once for the same labels and runs, then read back; the number of queries does not depend on
    chats or criteria.
    """
    stored = kept(
        choice.scope,
        kind=Report.Kind.LEAGUE,
        pin=choice.answers.pin("league", choice.runs),
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
        "chats_left_out": choice.chats_left_out,
        "runs_left_out": [
            _named_run(left.run) | {"answered": left.answered, "most": left.most}
            for left in choice.runs_left_out
        ],
        **body,
        "runs": [_named_run(run) | figures[run.pk] for run in choice.runs],
    }


def _named_run(run: Run) -> dict[str, Any]:
    judge = run.judge
    named = {name: getattr(judge, name) for name in ("fingerprint", "engine", "model")}
    return {"run": run.pk, "judge": judge.name, **named}


def _body(choice: LeagueChoice) -> dict[str, Any]:
    scope, runs, people = choice.scope, choice.runs, choice.answers.people
    codes = {run.pk: choice.answers.codes(run) for run in runs}
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
