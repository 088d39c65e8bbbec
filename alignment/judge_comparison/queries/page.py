"""Engine league: template context and CSV rows."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from django.http import QueryDict
from django.urls import reverse
from django.utils.dateparse import parse_datetime

from alignment.comparison.core.codes import JudgeCode
from alignment.comparison.queries.filters import chosen_filter
from alignment.judge_comparison.core import OVERALL
from alignment.judge_comparison.queries.run_selection import MOST, LeagueChoice
from alignment.reports.queries.page import is_demo, notices
from alignment.reports.queries.reports import POLICY
from evaluation.models.runs import Run
from evaluation.prompts.queries.definitions import older_notices
from evaluation.runs.queries.runs import OUTSIDE, run_notices

NAMES = {OVERALL: "Overall", "simple": "Simple", "context": "Context", "subjective": "Subjective"}
NO_ANSWER = tuple(code.name.lower() for code in JudgeCode if code > JudgeCode.NA)
RATES = ("balanced_accuracy", "tpr", "tnr", "accuracy")
HEAD = (
    *("part", "run", "judge", "engine", "model", "against_run", "against_judge"),
    *("statistic", "estimate", "low", "high", "n", "only_this", "only_other", "p_holm"),
)
EVEN = "0.0"
AHEAD = {
    "": "no difference shown",
    "better": "better",
    "missing": "higher balanced accuracy, verdicts missing",
    "at_odds": "better, lower accuracy",
    "right": "higher accuracy only",
}
BEHIND = {
    "": "no difference shown",
    "better": "worse",
    "missing": "lower balanced accuracy",
    "at_odds": "worse, higher accuracy",
    "right": "lower accuracy only",
}
SPENDING = ("calls", "reused", "prompt_tokens", "completion_tokens", "cost_usd")


def league_page(choice: LeagueChoice, document: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return the template context; `document` is the league's JSON, None if the choice has a problem."""
    query = league_query(choice, choice.runs)
    context = {
        "set": choice.chat_set,
        "set_url": reverse("alignment:report_set", args=[choice.chat_set.pk]),
        "choices": _choices(choice),
        "splits": chosen_filter("split", choice.scope.split),
        "most": MOST,
        "most_unjudged": f"{POLICY.largest_abstention:.0%}",
        "problem": choice.problem,
        "notices": _notices(choice, document),
        "is_demo": is_demo(choice.scope),
    }
    if document is None:
        return context
    judges = {run.pk: _judge(run) for run in choice.runs}
    names = {row.key: row.name for row in choice.scope.criteria}
    groups = [
        _group(group, judges, names) | _exclusion(group, document, choice) for group in document["groups"]
    ]
    prices = {row["run"]: row["cost_per_answer"] for group in groups[:1] for row in group["rows"]}
    return context | {
        "league": document,
        "excluded": [
            {"judge": _judge(one.run), "answered": one.answered, "most": one.most}
            | {"url": league_query(choice, [*choice.runs, one.run])}
            for one in choice.excluded_runs
        ],
        "computed": parse_datetime(document["generated_at"]),
        "groups": groups,
        "judges": [
            judges[row["run"]] | {"counts": row, "failures": _failures(row), "price": prices.get(row["run"])}
            for row in document["runs"]
        ],
        "json_url": reverse("api_set_league", args=[choice.chat_set.pk]) + query,
        "csv_url": reverse("api_set_league_csv", args=[choice.chat_set.pk]) + query,
    }


def league_query(choice: LeagueChoice, runs: Iterable[Run]) -> str:
    """Return the query string that compares these runs on the same split."""
    query = QueryDict(mutable=True)
    query.setlist("run", [str(run.pk) for run in runs])
    if choice.scope.split:
        query["split"] = choice.scope.split
    return f"?{query.urlencode()}"


def _choices(choice: LeagueChoice) -> list[dict[str, Any]]:
    chosen = {run.pk for run in choice.runs}
    more = [run for run in choice.runs if run.pk not in {one.pk for one in choice.offered}]
    return [
        _judge(run) | {"chosen": run.pk in chosen, "started": run.created_at}
        for run in [*choice.offered, *more]
    ]


def _judge(run: Run) -> dict[str, Any]:
    judge = run.judge
    return {
        "run": run.pk,
        "name": judge.name,
        "engine": judge.engine or OUTSIDE,
        "model": judge.model,
        "url": reverse("alignment:report_run", args=[run.pk]),
    }


def _notices(choice: LeagueChoice, document: Mapping[str, Any] | None) -> list[str]:
    """Notices on the labels, verdicts and chats of the league."""
    texts = notices(choice.scope) if choice.runs else []
    of_runs = [notice for run in choice.runs for notice in run_notices(run)]
    of_runs += older_notices([run.judge for run in choice.runs])
    if hidden := choice.hidden_chats:
        texts.append(
            f"{hidden} chat{'' if hidden == 1 else 's'} excluded: in the holdout, or still in your queue"
        )
    if document and (keys := set(document["other_questions"])):
        names = [row.name for row in choice.scope.criteria if row.key in keys]
        texts.append(f"on {', '.join(names)} a judge was asked another text than the raters")
    return list(dict.fromkeys([*texts, *of_runs]))


def _group(
    group: Mapping[str, Any], judges: Mapping[int, Mapping[str, Any]], names: Mapping[str, str]
) -> dict[str, Any]:
    human = {"human": {"ceiling": group["ceiling"]}}
    rows = [dict(row) | human | {"judge": judges[row["run"]]} for row in group["judges"]]
    cells = {}
    for pair in group["pairs"]:
        for mirrored in (False, True):
            own, other = (pair[one] for one in _row_and_column(mirrored))
            cells[own, other] = _cell(pair, mirrored=mirrored) | {"against": judges[other]}
    return {
        "key": group["key"],
        "judge": True,  # for the legend: judges against human labels
        "name": NAMES[group["key"]],
        "n": group["n"],
        "chats": group["chats"],
        "answered": group["answered"],
        "ceiling": group["ceiling"],
        "no_ceiling": group["undefined"].get("ceiling"),
        "rows": rows,
        "matrix": [
            {"judge": judges[run], "cells": [cells.get((run, other)) for other in judges]} for run in judges
        ],
        "criteria": group["criteria_averaged"] + len(group["criteria_left_out"]),
        "averaged": group["criteria_averaged"],
        "left_out": [names[key] for key in group["criteria_left_out"] if key not in group["label_problems"]],
        "problems": [(names[key], problem) for key, problem in group["label_problems"].items()],
        "leads": _leads(group, judges, "better"),
        "missing": _leads(group, judges, "missing"),
        "at_odds": _leads(group, judges, "at_odds"),
        "one_sided": _leads(group, judges, "right"),
        "differs": any(_result(pair) for pair in group["pairs"]),
        "untested": group["untested"],
        "costs": group["worth"] and _cost_effectiveness(group["worth"], group, judges),
    }


def _exclusion(group: Mapping[str, Any], document: Mapping[str, Any], choice: LeagueChoice) -> dict[str, Any]:
    """Judges that make the comparison small, with a link that excludes them; once if the same as overall."""
    suggestion, overall = group["without"], document["groups"][0]
    if not suggestion or (
        group is not overall and suggestion["runs"] == (overall["without"] or {}).get("runs")
    ):
        return {"exclusion": None}
    judges = [_judge(run) for run in choice.runs if run.pk in suggestion["runs"]]
    others = [run for run in choice.runs if run.pk not in suggestion["runs"]]
    return {"exclusion": {"judges": judges, "n": suggestion["n"], "url": league_query(choice, others)}}


def _cell(pair: Mapping[str, Any], *, mirrored: bool) -> dict[str, Any]:
    """A pair in the row of its first judge, or `mirrored` in the row of the second."""
    own, other = _row_and_column(mirrored)
    balanced, accuracy = (
        _points_of(pair[name], mirrored=mirrored) for name in ("balanced_difference", "difference")
    )
    words = (AHEAD if _ahead(pair) == pair[own] else BEHIND)[_result(pair)]
    better = pair["better"] == pair[own]
    classes = [name for name, on in (("better", better), ("mirrored", mirrored)) if on]
    return {
        "classes": " ".join(classes),
        "won": pair[f"only_{own}"],
        "lost": pair[f"only_{other}"],
        "balanced": balanced,
        "accuracy": accuracy,
        "words": words,
    }


def _points_of(difference: Mapping[str, Any], *, mirrored: bool) -> dict[str, str]:
    """Value, low and high in percentage points; with the opposite sign if mirrored."""
    ends = ("value", "high", "low") if mirrored else ("value", "low", "high")
    values = (difference[end] for end in ends)
    points = [_points(-one if mirrored and one is not None else one) for one in values]
    return dict(zip(("value", "low", "high"), points, strict=True))


def _row_and_column(mirrored: bool) -> tuple[str, str]:
    return ("second", "first") if mirrored else ("first", "second")


def _result(pair: Mapping[str, Any]) -> str:
    """The result of a pair, a key of AHEAD and BEHIND."""
    if pair["better"] is not None:
        return "better" if pair["more_right"] in (None, pair["better"]) else "at_odds"
    if pair["more_balanced"] is not None:
        return "missing"
    return "right" if pair["more_right"] is not None else ""


def _ahead(pair: Mapping[str, Any]) -> int | None:
    """The run that the result names first: by balanced accuracy, else by accuracy."""
    ahead: int | None = pair["more_balanced"] or pair["more_right"]
    return ahead


def _points(share: float | None) -> str:
    """Percentage points with their sign; '' if undefined."""
    if share is None:
        return ""
    text = f"{100 * share:+z.1f}".replace("-", "−")
    return EVEN if text in ("+0.0", "−0.0") else text


def _leads(
    group: Mapping[str, Any], judges: Mapping[int, Mapping[str, Any]], result: str
) -> list[dict[str, Any]]:
    """The judges ahead in pairs with this result, each with the other judges.

    `caution` : on its human answers without a verdict, or ''; `abstains` : whether they are too many. A judge
    can win by abstaining on hard chats.
    """
    beaten: dict[int, list[int]] = {}
    for pair in group["pairs"]:
        if _result(pair) == result:
            ahead = _ahead(pair)
            assert ahead is not None  # noqa: S101  a pair with a result has one ahead
            beaten.setdefault(ahead, []).append(pair["second"] if ahead == pair["first"] else pair["first"])
    ranked = sorted(beaten.items(), key=lambda item: -len(item[1]))
    cautions = {row["run"]: "; ".join(row["cautions"]) for row in group["judges"]}
    abstaining = {row["run"] for row in group["judges"] if row["abstains"]}
    return [
        {
            "judge": judges[run],
            "over": [judges[one] for one in losers],
            "caution": cautions[run],
            "abstains": run in abstaining,
        }
        for run, losers in ranked
    ]


def _cost_effectiveness(
    costs: Mapping[str, Any], group: Mapping[str, Any], judges: Mapping[int, Mapping[str, Any]]
) -> dict[str, Any]:
    prices = {row["run"]: row["cost_per_answer"] for row in group["judges"]}
    return {
        "cheapest": judges.get(costs["cheapest"]),
        "price": prices.get(costs["cheapest"]),
        "better": [
            dict(one) | {"judge": judges[one["run"]], "points": _points(one["gain"])}
            for one in costs["better"]
        ],
        "unpriced": [judges[run] for run in costs["price_not_known"]],
    }


def _failures(row: Mapping[str, Any]) -> int:
    """Number of verdicts without an answer whose reason has no column of its own."""
    return sum(row["verdicts"][name] for name in NO_ANSWER if name not in ("unparsed", "refused", "none"))


def league_rows(document: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the league as CSV rows under HEAD, one per statistic."""
    runs = {row["run"]: row for row in document["runs"]}
    for group in document["groups"]:
        for row in group["judges"]:
            yield from _rate_rows(group, row, runs)
        for pair in group["pairs"]:
            yield from _pair_rows(group, pair, runs)
    for run in document["runs"]:
        yield from _spending_rows(run)


def _rate_rows(
    group: Mapping[str, Any], row: Mapping[str, Any], runs: Mapping[int, Any]
) -> Iterator[dict[str, Any]]:
    about = {"part": group["key"], "n": group["n"]} | _run_columns(runs[row["run"]])
    for name in RATES:
        yield about | _estimate(name, row[name])
    yield about | {"statistic": "answered", "estimate": row["answered"], "n": group["answered"]}
    yield about | {"statistic": "cost_per_answer_usd", "estimate": row["cost_per_answer"]}


def _pair_rows(
    group: Mapping[str, Any], pair: Mapping[str, Any], runs: Mapping[int, Any]
) -> Iterator[dict[str, Any]]:
    other = runs[pair["second"]]
    about = {"part": group["key"], **_run_columns(runs[pair["first"]]), "n": group["n"]}
    about |= {"against_run": other["run"], "against_judge": other["judge"]}
    counts = {"only_this": pair["only_first"], "only_other": pair["only_second"], "p_holm": pair["p_holm"]}
    yield about | _estimate("difference_of_right_answers", pair["difference"]) | counts
    balanced = {"p_holm": pair["balanced_p_holm"]}
    yield about | _estimate("difference_of_balanced_accuracy", pair["balanced_difference"]) | balanced


def _estimate(name: str, estimate: Mapping[str, Any]) -> dict[str, Any]:
    ends = {end: estimate[end] for end in ("low", "high")}
    return {"statistic": name, "estimate": estimate["value"], **ends}


def _spending_rows(run: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    values = {name: run[name] for name in SPENDING}
    values |= {f"latency_ms_{name}": value for name, value in run["latency_ms"].items()}
    values |= {f"verdicts_{name}": value for name, value in run["verdicts"].items()}
    for name, value in values.items():
        yield {"part": "run", **_run_columns(run), "statistic": name, "estimate": value}


def _run_columns(run: Mapping[str, Any]) -> dict[str, Any]:
    return {name: run[name] for name in ("run", "judge", "engine", "model")}
