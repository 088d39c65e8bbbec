"""Page of one regression test: answer, counts and progress."""

from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from django.db.models import QuerySet
from django.urls import reverse
from django.utils import timezone

from alignment.comparison.queries.scope import Scope
from alignment.comparison.queries.scope_summary import scope_summary
from alignment.models.regressions import RegressionTest
from alignment.regression.core import UnusableAnswers, advice_of, unusable_answers
from alignment.regression.core.unread import REMEDIES, STATE_WORDS
from alignment.regression.queries.holdout_access import openings_of
from alignment.regression.queries.tests import gate_policy
from alignment.reports.core.registry import JUDGE_RATES, Table, columns
from alignment.statistics.intervals import proportion
from common import plots
from evaluation.models.judges import JudgePrompt
from evaluation.models.runs import ON_WORKER, Run
from evaluation.runs.queries import run_page
from evaluation.runs.queries.progress import RunProgress, run_progress, units_a_minute
from labeling.models.chats import Split
from labeling.models.people import User
from labeling.models.rubric import Criterion, CriterionVersion, Tier

RUNS = (
    ("baseline_run", "Champion"),
    ("candidate_run", "Candidate"),
    ("noise_run", "Champion again"),
    ("confirm_run", "Candidate again"),
)
CELLS = ("still_right", "broken", "fixed", "still_wrong")
LANE = 15  # px between the dot of before and the one of after


@dataclass(frozen=True, slots=True)
class RunRow:
    """A run of a test: role, progress, error and next step."""

    role: str
    run: Run
    progress: RunProgress
    trouble: str
    next_step: str

    @property
    def paid_before(self) -> bool:
        """Whether the run is older than the test, as a baseline can be."""
        return self.run.purpose not in (Run.Purpose.REGRESSION, Run.Purpose.CONFIRM, Run.Purpose.NOISE)


def regression_tests() -> QuerySet[RegressionTest]:
    """Return tests with the related rows of their page."""
    return RegressionTest.objects.select_related(
        "policy",
        "chat_set",
        "candidate__criterion",
        "profile",
        "candidate_profile",
        *(f"{name}__judge" for name, _ in RUNS),
        "created_by",
        "released_by",
    )


def regression_page(test: RegressionTest, user: User) -> dict[str, Any]:
    """Return the template context: the test, its stored counts and its runs."""
    body = test.body or {}
    criteria = body.get("criteria", ())
    unusable = unusable_answers(criteria, limit=gate_policy(test.policy).largest_left_out)
    context = {
        "test": test,
        "gate": _gate(test, unusable),
        "unusable": _unusable_rows(criteria, unusable),
        "criteria": _shown(test, criteria, linked=_sees_chats(test, user)),
        "pooled": body.get("pooled") if len(criteria) > 1 else None,
        "cautions": body.get("cautions", ()),
        "advice": "" if unusable else advice_of(body),
        "openings": openings_of(test),
        "retest_url": _retest_url(test),
        "sampled": scope_summary(Scope(test.chat_set, test.baseline_run, test.split)).sampled,
    }
    return context | regression_progress(test)


def regression_progress(test: RegressionTest) -> dict[str, Any]:
    """Return the progress, calls and cost of the test's runs."""
    rows = [_row(role, run) for name, role in RUNS if (run := getattr(test, name)) is not None]
    own = [row for row in rows if not row.paid_before]
    costs = [row.progress.costs.cost_usd for row in own]
    states = [row.run.state for row in rows]
    return {
        "test": test,
        "runs": rows,
        "seen": "-".join((test.state, *states)),
        "paused": [row for row in rows if row.run.state == Run.State.PAUSED] if test.is_open else [],
        "running": test.is_open and Run.State.RUNNING in states,
        "waits_for": _waits_for(test, rows),
        "hold_up": next((row.progress.hold_up for row in rows if row.progress.hold_up), ""),
        "done": sum(row.progress.done + row.progress.failed for row in rows),
        "total": sum(row.progress.total for row in rows),
        "calls": sum(row.progress.calls for row in own),
        "reused": sum(row.progress.reused for row in own),
        "cost": None if None in costs else sum((cost for cost in costs if cost is not None), Decimal(0)),
        "seconds_left": _seconds_left(rows),
    }


def regression_name(test: RegressionTest) -> str:
    """Return candidate and champion in one line."""
    if test.candidate is None:
        return f"Judge {test.candidate_run.judge.name}"
    before, after = _versions(test).get(test.candidate.criterion.key, (None, test.candidate.number))
    return f"Version {after} against champion version {before}" if before else f"Version {after}"


def _retest_url(test: RegressionTest) -> str:
    """Return the start form with the same candidate; '' for a whole judge."""
    if test.candidate is None:
        return ""
    query = {"criterion": test.candidate.criterion.key, "version": test.candidate.number}
    return reverse("alignment:regression_new", query=query)


def _gate(test: RegressionTest, unusable: list[UnusableAnswers]) -> dict[str, Any]:
    """Return the answer for the box at the top of the page; answers that nobody can read come first."""
    candidate = f"Version {test.candidate.number}" if test.candidate else "The candidate"
    words = {
        "pass": ("", "ok", "Pass.", f"{candidate} may replace the champion."),
        "fail": ("no", "ko", "Fail.", f"{candidate} is worse than the champion."),
        "inconclusive": ("open-q", "open", "Inconclusive.", "The evidence does not decide."),
    }
    box, css, word, meaning = words.get(test.result, ("", "", "", ""))
    first = unusable[0] if unusable and test.result != RegressionTest.Result.PASS else None
    return {"box": box, "css": css, "word": word, "meaning": meaning, "unusable": first}


def _unusable_rows(criteria: Any, unusable: list[UnusableAnswers]) -> list[dict[str, Any]]:
    """Return the rows of the table by criterion and cause: chats of both judges, and what to do."""
    keys = {one.key for one in unusable}
    rows = []
    for counts in criteria:
        before, after = (counts[side].get("no_verdict_by") or {} for side in ("before", "after"))
        for state, remedy in REMEDIES.items() if counts["key"] in keys else ():
            if before.get(state) or after.get(state):
                rows.append(
                    {
                        "name": Criterion(key=counts["key"]).name,
                        "cause": STATE_WORDS[state],
                        "before": before.get(state, 0),
                        "after": after.get(state, 0),
                        "n": counts["n"],
                        "remedy": remedy,
                    }
                )
    return rows


def _sees_chats(test: RegressionTest, user: User) -> bool:
    """Tell whether the user can see the chats: authors see only numbers of a holdout."""
    return test.split != Split.HOLDOUT or user.has_perm("labeling.see_holdout")


def _versions(test: RegressionTest) -> dict[str, tuple[int | None, int | None]]:
    """Return the numbers of the prompts before and after, by criterion key."""
    used: dict[int, dict[str, int | None]] = {test.baseline_run.judge_id: {}, test.candidate_run.judge_id: {}}
    rows = JudgePrompt.objects.filter(judge__in=used).values_list(
        "judge_id", "criterion__key", "prompt_version__number"
    )
    for judge, key, number in rows:
        used[judge][key] = number
    before, after = used[test.baseline_run.judge_id], used[test.candidate_run.judge_id]
    return {key: (before.get(key), number) for key, number in after.items()}


def _shown(test: RegressionTest, criteria: Any, *, linked: bool) -> list[dict[str, Any]]:
    """Return the counts of each criterion for the page."""
    versions, keys = _versions(test), [counts["key"] for counts in criteria]
    texts = CriterionVersion.objects.filter(criterion__key__in=keys).order_by("number")
    passes = dict(texts.values_list("criterion__key", "passes_when"))
    return [
        _criterion(test, counts, versions, linked=linked) | {"passes_when": passes.get(counts["key"], True)}
        for counts in criteria
    ]


def _criterion(
    test: RegressionTest, counts: dict[str, Any], versions: dict[str, Any], *, linked: bool
) -> dict[str, Any]:
    key = counts["key"]
    before, after = versions.get(key, (None, None))
    return {
        **counts,
        "name": Criterion(key=key).name,
        "before_name": f"Champion, version {before}" if before else "Champion",
        "after_name": f"Candidate, version {after}" if after else "Candidate",
        "subjective": counts["tier"] == Tier.SUBJECTIVE,
        "cells": _cells(test, key) if linked else {},
        "rows": _rates(counts),
        "flips": _flips(counts),
    }


def _cells(test: RegressionTest, key: str) -> dict[str, str]:
    """Return the URL of each cell's list."""
    return {
        cell: reverse("alignment:regression_cell", args=[test.pk, key, cell])
        for cell in (*CELLS, "no_verdict")
    }


def _rates(counts: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the statistics before and after, accuracy first, because the gate tests it."""
    n = counts["n"]
    before, after = (  # old tests did not store the share right
        {**counts[side], "accuracy": counts[side].get("right") or _share(right, n)}
        for side, right in (
            ("before", counts["still_right"] + counts["broken"]),
            ("after", counts["still_right"] + counts["fixed"]),
        )
    )
    # Old tests did not store all of them.
    shown = [one for one in columns(Table.REGRESSION_PAGE) if one.key in before]
    rows: list[dict[str, Any]] = [
        {"name": one.label, "before": _statistic(before, one.key), "after": _statistic(after, one.key)}
        for one in shown
    ]
    rows[0]["change"] = counts["change"]
    for key, row in zip((one.key for one in shown), rows, strict=True):
        ceiling = counts["ceiling"] if key == "balanced_accuracy" else None
        row["plot"] = _plot(row, goal=key in JUDGE_RATES, ceiling=ceiling)
        row["points"] = _points(row["before"]["value"], row["after"]["value"])
    return rows


def _statistic(judge: dict[str, Any], key: str) -> dict[str, Any]:
    """Return a statistic of one judge with the reason for a missing value or interval."""
    undefined = judge.get("undefined", {})
    why = judge[key].get("flag") or undefined.get(key) or undefined.get(f"{key}.interval") or ""
    return {**judge[key], "why": why}


def _plot(row: dict[str, Any], *, goal: bool, ceiling: float | None) -> plots.Plot:
    lanes = [
        plots.Lane(f"{row['name']}, champion", _estimate(row["before"]), css="before", circle=True),
        plots.Lane(
            f"{row['name']}, candidate",
            _estimate(row["after"]),
            css="judge",
            big=True,
            tick=plots.Estimate(ceiling),
            tick_name="human ceiling",
        ),
    ]
    return plots.plot(lanes, goal=goal, padding=LANE)


def _estimate(statistic: dict[str, Any]) -> plots.Estimate:
    return plots.Estimate(statistic["value"], statistic["low"], statistic["high"])


def _points(before: float | None, after: float | None) -> float | None:
    """Return the change in percentage points."""
    return None if before is None or after is None else 100 * (after - before)


def _flips(counts: dict[str, Any]) -> dict[str, Any]:
    """Compare the share of changed verdicts with the judge's noise; `within` if not significantly larger."""
    changed = counts.get("changed") or _share(counts["fixed"] + counts["broken"], counts["n"])
    noise = counts["noise"]
    within = None
    if noise is not None and noise["high"] is not None and changed["low"] is not None:
        within = changed["low"] <= noise["high"]
    return {"changed": changed, "noise": noise, "within": within}


def _share(chats: int, n: int) -> dict[str, Any]:
    return dict(proportion(chats, n, reason="no chat").as_json())


def _row(role: str, run: Run) -> RunRow:
    return RunRow(role, run, run_progress(run), run_page.in_words(run.error), run_page.next_step(run))


def _waits_for(test: RegressionTest, rows: list[RunRow]) -> str:
    """Return what the test waits for if no worker is on any of its runs."""
    going = [row for row in rows if row.run.state == Run.State.RUNNING and row.run.options.get(ON_WORKER)]
    if not test.is_open or not going or any(row.progress.workers for row in going):
        return ""
    return run_page.waits_for(going[0].run, workers=0, batches=())


def _seconds_left(rows: list[RunRow]) -> float | None:
    """Estimate the time for the remaining units at the pace of all runs, which share the workers."""
    left = sum(row.run.units_left for row in rows if row.run.state == Run.State.RUNNING)
    rate = units_a_minute([row.run for row in rows], now=timezone.now()) if left else 0.0
    return 60 * left / rate if rate else None
