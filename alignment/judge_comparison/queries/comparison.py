"""Engine league: several runs over one chat set, compared on the answers of the consensus and all judges."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from django.utils import timezone

from alignment.comparison.core.codes import (
    CONSENSUS,
    Clusters,
    Codes,
    CriterionData,
    HumanCode,
    JudgeCode,
    ReportData,
)
from alignment.comparison.queries.cached_documents import cached_document
from alignment.comparison.queries.scope import Scope
from alignment.judge_comparison.core import OVERALL, CriterionAnswers, Group, compare
from alignment.judge_comparison.core.cost_effectiveness import cost_effectiveness
from alignment.judge_comparison.queries.run_selection import LeagueChoice
from alignment.models.reports import Report
from alignment.reports.core.label_problems import label_problem
from alignment.reports.queries.reports import POLICY, SEED
from evaluation.models.judges import JudgePrompt
from evaluation.models.runs import Run
from evaluation.runs.queries.spending import Spending, runs_spending
from labeling.models.rubric import CriterionVersion


def league_document(choice: LeagueChoice) -> dict[str, Any]:
    """
    Return the league as JSON, for a choice without a problem.

    Cached for the same labels and runs. The number of queries does not depend on chats or criteria.
    """
    stored = cached_document(
        choice.scope,
        kind=Report.Kind.LEAGUE,
        pin=choice.answers.pin("league", choice.runs),
        policy=POLICY.version,
        body=lambda: _body(choice),
        options=[[run.pk for run in choice.runs], choice.scope.visible is None],
    )
    body: dict[str, Any] = stored.body
    results = {row["run"]: row for row in body["runs"]}
    return {
        "set": choice.chat_set.name,
        "split": choice.scope.split or None,
        "against": CONSENSUS,
        "chats_left_out": choice.hidden_chats,
        "runs_left_out": [
            _named_run(one.run) | {"answered": one.answered, "most": one.most} for one in choice.excluded_runs
        ],
        **body,
        "runs": [_named_run(run) | results[run.pk] for run in choice.runs],
    }


def _named_run(run: Run) -> dict[str, Any]:
    judge = run.judge
    fields = {name: getattr(judge, name) for name in ("fingerprint", "engine", "model")}
    return {"run": run.pk, "judge": judge.name, **fields}


def _body(choice: LeagueChoice) -> dict[str, Any]:
    scope, runs, human = choice.scope, choice.runs, choice.answers.human
    codes = {run.pk: choice.answers.codes(run) for run in runs}
    spent = runs_spending([run.pk for run in runs], chats=scope.chat_ids)
    prices = _prices(choice, codes, spent)
    groups = compare(
        _answers(scope, human, codes),
        runs=[run.pk for run in runs],
        clusters=human.clusters,
        policy=POLICY,
    )
    return {
        "chats": len(human.chat_ids),
        "generated_at": timezone.now().isoformat(),
        "other_questions": _other_questions(choice, human),
        "runs": [_run_counts(run, codes[run.pk], spent.get(run.pk)) for run in runs],
        "groups": [_priced(group, prices[group.key]) for group in groups],
    }


def _other_questions(choice: LeagueChoice, human: ReportData) -> list[str]:
    """Return the keys of criteria whose text differs between a judge and the labels."""
    label_version = {one.spec.key: one.questions.labels for one in human.criteria}
    versions = CriterionVersion.objects.filter(criterion__in=choice.scope.criteria)
    labelled = {
        row.criterion.key: row
        for row in versions.select_related("criterion")
        if label_version[row.criterion.key] == row.number
    }
    prompts = JudgePrompt.objects.filter(judge__in=[run.judge_id for run in choice.runs])
    judged = CriterionVersion.objects.filter(pk__in=prompts.values("criterion_version"))
    others = {
        row.criterion.key
        for row in judged.select_related("criterion")
        if row.criterion.key in labelled and not row.asks_as(labelled[row.criterion.key])
    }
    return sorted(others)


def _priced(group: Group, prices: Mapping[int, float | None]) -> dict[str, Any]:
    body = group.as_json()
    for row in body["judges"]:
        row["cost_per_answer"] = prices[row["run"]]
    return body | {"worth": None if group.untested else cost_effectiveness(group, prices=prices).as_json()}


def _answers(
    scope: Scope, human: ReportData, codes: Mapping[int, Mapping[int, Codes]]
) -> list[CriterionAnswers]:
    return [
        _criterion_answers(one, np.stack([of_run[row.pk] for of_run in codes.values()]), human.clusters)
        for row, one in zip(scope.criteria, human.criteria, strict=True)
    ]


def _criterion_answers(human: CriterionData, judges: Codes, clusters: Clusters) -> CriterionAnswers:
    """`judges` : shape (judges, chats). Only labels on chats that every judge was asked can be a problem."""
    asked = (judges != JudgeCode.NONE).all(axis=0)
    labels = replace(
        human,
        human=np.where(asked, human.human, HumanCode.UNLABELLED).astype(np.int8),
        counts=human.counts * asked[:, np.newaxis],
    )
    return CriterionAnswers(
        key=human.spec.key,
        tier=human.spec.tier,
        human=human.human,
        judges=judges,
        counts=human.counts,
        problem=label_problem(labels, policy=POLICY, seed=SEED, clusters=clusters),
    )


def _run_counts(run: Run, codes: Mapping[int, Codes], spent: Spending | None) -> dict[str, Any]:
    """Return a run's verdict counts, cost and latency on the compared chats; None without recorded calls."""
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
    """Return dollars an answer by tier (and overall) and run. Criteria of one group share its cost."""
    tiers = {row.pk: row.tier for row in choice.scope.criteria}
    groups: dict[int, dict[int, list[int]]] = {}
    prompts = JudgePrompt.objects.filter(judge__in=[run.judge_id for run in choice.runs])
    for judge, group, criterion in prompts.values_list("judge_id", "group", "criterion_id"):
        groups.setdefault(judge, {}).setdefault(group, []).append(criterion)
    prices: dict[str, dict[int, float | None]] = {name: {} for name in (OVERALL, *tiers.values())}
    for run in choice.runs:
        shares = _shares(groups.get(run.judge_id, {}), spent.get(run.pk))
        verdicts = {pk: int((codes[run.pk][pk] != JudgeCode.NONE).sum()) for pk in tiers}
        for name, by_run in prices.items():
            within = [pk for pk, tier in tiers.items() if name in (OVERALL, tier) and verdicts[pk]]
            costs = [cost for pk in within if (cost := shares.get(pk)) is not None]
            known = bool(costs) and len(costs) == len(within)
            by_run[run.pk] = sum(costs) / sum(verdicts[pk] for pk in within) if known else None
    return prices


def _shares(groups: Mapping[int, Sequence[int]], spent: Spending | None) -> dict[int, float]:
    """Return dollars by criterion id, without criteria whose price is unknown."""
    costs = spent.costs if spent else {}
    return {
        criterion: float(cost) / len(criteria)
        for group, criteria in groups.items()
        if (cost := costs.get(group)) is not None
        for criterion in criteria
    }
