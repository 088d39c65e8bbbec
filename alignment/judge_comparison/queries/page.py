"""A league as its page and its table file show it."""

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
from evaluation.models.runs import Run
from evaluation.runs.queries.runs import OUTSIDE, run_notices

NAMES = {OVERALL: "Overall", "simple": "Simple", "context": "Context", "subjective": "Subjective"}
NO_ANSWER = tuple(code.name.lower() for code in JudgeCode if code > JudgeCode.NA)
RATES = ("balanced_accuracy", "tpr", "tnr", "accuracy")
HEAD = (
    *("part", "run", "judge", "engine", "model", "against_run", "against_judge"),
    *("statistic", "estimate", "low", "high", "n", "only_this", "only_other", "p_holm"),
)
EVEN = "0.0"
# Who leaves the hard ones open is right on the others: told beside "better" from this share on.
LEFT_OPEN = 0.05
MORE_RIGHT = {
    "": "no difference shown",
    "better": "better",
    "right": "right more often",
    "at_odds": "right more often; the other is ahead in balanced accuracy",
}
LESS_RIGHT = {
    "": "no difference shown",
    "better": "worse",
    "right": "right less often",
    "at_odds": "right less often; ahead in balanced accuracy",
}
TOOK = ("calls", "reused", "prompt_tokens", "completion_tokens", "cost_usd")


def league_page(choice: LeagueChoice, document: Mapping[str, Any] | None) -> dict[str, Any]:
    """The template context; `document` is the league's JSON, None where the choice has a problem."""
    query = league_query(choice, choice.runs)
    context = {
        "set": choice.chat_set,
        "set_url": reverse("alignment:report_set", args=[choice.chat_set.pk]),
        "choices": _choices(choice),
        "splits": chosen_filter("split", choice.scope.split),
        "most": MOST,
        "problem": choice.problem,
        "notices": _notices(choice, document),
        "is_demo": is_demo(choice.scope),
    }
    if document is None:
        return context
    judges = {run.pk: _judge(run) for run in choice.runs}
    groups = [_group(group, judges) | _without(group, document, choice) for group in document["groups"]]
    prices = {row["run"]: row["cost_per_answer"] for group in groups[:1] for row in group["rows"]}
    return context | {
        "league": document,
        "left_out": [
            {"judge": _judge(left.run), "answered": left.answered, "most": left.most}
            | {"url": league_query(choice, [*choice.runs, left.run])}
            for left in choice.runs_left_out
        ],
        "computed": parse_datetime(document["generated_at"]),
        "groups": groups,
        "judges": [
            judges[row["run"]] | {"took": row, "silent": _silent(row), "price": prices.get(row["run"])}
            for row in document["runs"]
        ],
        "json_url": reverse("api_set_league", args=[choice.chat_set.pk]) + query,
        "csv_url": reverse("api_set_league_csv", args=[choice.chat_set.pk]) + query,
    }


def league_query(choice: LeagueChoice, runs: Iterable[Run]) -> str:
    """What the address of a comparison of these runs holds, on the same split."""
    held = QueryDict(mutable=True)
    held.setlist("run", [str(run.pk) for run in runs])
    if choice.scope.split:
        held["split"] = choice.scope.split
    return f"?{held.urlencode()}"


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
    """What has to be said of these labels, verdicts and chats."""
    found = notices(choice.scope) if choice.runs else []
    said = [notice for run in choice.runs for notice in run_notices(run)]
    if left := choice.chats_left_out:
        found.append(
            f"{left} chat{'' if left == 1 else 's'} of the holdout, or still yours to label, "
            f"{'is' if left == 1 else 'are'} not counted"
        )
    if document and (other := document["other_questions"]):
        found.append(f"on {', '.join(other)} a judge was asked another text than the labels answer")
    return list(dict.fromkeys([*found, *said]))


def _group(group: Mapping[str, Any], judges: Mapping[int, Mapping[str, Any]]) -> dict[str, Any]:
    human = {"human": {"ceiling": group["ceiling"]}}
    rows = [dict(row) | human | {"judge": judges[row["run"]]} for row in group["judges"]]
    cells = {}
    for pair in group["pairs"]:
        for turned in (False, True):
            own, other = (pair[one] for one in _sides(turned))
            cells[own, other] = _cell(pair, turned=turned) | {"against": judges[other]}
    return {
        "key": group["key"],
        "judge": True,  # the legend's: judges against people
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
        "leads": _leads(group, judges, "better"),
        "one_sided": _leads(group, judges, "right"),
        "at_odds": _leads(group, judges, "at_odds"),
        "untested": group["untested"],
        "worth": group["worth"] and _worth(group["worth"], group, judges),
    }


def _without(group: Mapping[str, Any], document: Mapping[str, Any], choice: LeagueChoice) -> dict[str, Any]:
    """Who makes the part small and the way to leave them out; once where it is the same as overall."""
    found, overall = group["without"], document["groups"][0]
    if not found or (group is not overall and found["runs"] == (overall["without"] or {}).get("runs")):
        return {"without": None}
    left = [_judge(run) for run in choice.runs if run.pk in found["runs"]]
    stay = [run for run in choice.runs if run.pk not in found["runs"]]
    return {"without": {"judges": left, "n": found["n"], "url": league_query(choice, stay)}}


def _cell(pair: Mapping[str, Any], *, turned: bool) -> dict[str, Any]:
    """A pair as seen from its first judge's row, or `turned` from the second's."""
    own, other = _sides(turned)
    difference = pair["difference"]
    ends = [difference[name] for name in ("value", "low", "high")]
    if turned:
        value, low, high = (None if end is None else -end for end in (ends[0], ends[2], ends[1]))
    else:
        value, low, high = ends
    return {
        "turned": turned,
        "won": pair[f"only_{own}"],
        "lost": pair[f"only_{other}"],
        "points": _points(value),
        "low": _points(low),
        "high": _points(high),
        "p_holm": pair["p_holm"],
        "balanced": _points(_turned(pair["balanced_difference"]["value"], turned=turned)),
        "words": MORE_RIGHT[_shown(pair)] if pair["more_right"] == pair[own] else LESS_RIGHT[_shown(pair)],
    }


def _sides(turned: bool) -> tuple[str, str]:
    """Whose row it is, and who stands in the column."""
    return ("second", "first") if turned else ("first", "second")


def _shown(pair: Mapping[str, Any]) -> str:
    """What is shown of a pair: the key of its words."""
    if pair["more_right"] is None:
        return ""
    if pair["better"] is not None:
        return "better"
    low, high = (pair["balanced_difference"][end] or 0.0 for end in ("low", "high"))
    behind = high < 0 if pair["more_right"] == pair["first"] else low > 0
    return "at_odds" if behind else "right"


def _turned(share: float | None, *, turned: bool) -> float | None:
    return -share if turned and share is not None else share


def _points(share: float | None) -> str:
    """Percentage points with their sign; '' where undefined."""
    if share is None:
        return ""
    text = f"{100 * share:+z.1f}".replace("-", "−")
    return EVEN if text in ("+0.0", "−0.0") else text


def _leads(
    group: Mapping[str, Any], judges: Mapping[int, Mapping[str, Any]], shown: str
) -> list[dict[str, Any]]:
    """The judges that are right more often, each with those of whom just this is `shown`.

    `open`: how many of people's answers they left open, where it is more than a twentieth.
    """
    beaten: dict[int, list[int]] = {}
    for pair in group["pairs"]:
        if _shown(pair) == shown:
            loser = pair["second"] if pair["more_right"] == pair["first"] else pair["first"]
            beaten.setdefault(pair["more_right"], []).append(loser)
    ranked = sorted(beaten.items(), key=lambda item: -len(item[1]))
    left_open = {row["run"]: group["answered"] - row["answered"] for row in group["judges"]}
    return [
        {
            "judge": judges[run],
            "over": [judges[one] for one in losers],
            "open": left_open[run] if left_open[run] > LEFT_OPEN * group["answered"] else 0,
        }
        for run, losers in ranked
    ]


def _worth(
    found: Mapping[str, Any], group: Mapping[str, Any], judges: Mapping[int, Mapping[str, Any]]
) -> dict[str, Any]:
    prices = {row["run"]: row["cost_per_answer"] for row in group["judges"]}
    return {
        "cheapest": judges.get(found["cheapest"]),
        "price": prices.get(found["cheapest"]),
        "better": [
            dict(one) | {"judge": judges[one["run"]], "points": _points(one["gain"])}
            for one in found["better"]
        ],
        "unpriced": [judges[run] for run in found["price_not_known"]],
    }


def _silent(row: Mapping[str, Any]) -> int:
    """Verdicts without an answer for another reason than those that have a column."""
    return sum(row["verdicts"][name] for name in NO_ANSWER if name not in ("unparsed", "refused", "none"))


def league_lines(document: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """The league as the rows of a table, one a figure, under HEAD."""
    runs = {row["run"]: row for row in document["runs"]}
    for group in document["groups"]:
        for row in group["judges"]:
            yield from _rate_lines(group, row, runs)
        for pair in group["pairs"]:
            yield from _pair_lines(group, pair, runs)
    for run in document["runs"]:
        yield from _took_lines(run)


def _rate_lines(
    group: Mapping[str, Any], row: Mapping[str, Any], runs: Mapping[int, Any]
) -> Iterator[dict[str, Any]]:
    about = {"part": group["key"], "n": group["n"]} | _who(runs[row["run"]])
    for name in RATES:
        yield about | _figure(name, row[name])
    yield about | {"statistic": "answered", "estimate": row["answered"], "n": group["answered"]}
    yield about | {"statistic": "cost_per_answer_usd", "estimate": row["cost_per_answer"]}


def _pair_lines(
    group: Mapping[str, Any], pair: Mapping[str, Any], runs: Mapping[int, Any]
) -> Iterator[dict[str, Any]]:
    other = runs[pair["second"]]
    about = {"part": group["key"], **_who(runs[pair["first"]]), "n": group["n"]}
    about |= {"against_run": other["run"], "against_judge": other["judge"]}
    counts = {"only_this": pair["only_first"], "only_other": pair["only_second"], "p_holm": pair["p_holm"]}
    yield about | _figure("difference_of_right_answers", pair["difference"]) | counts
    yield about | _figure("difference_of_balanced_accuracy", pair["balanced_difference"])


def _figure(name: str, estimate: Mapping[str, Any]) -> dict[str, Any]:
    ends = {end: estimate[end] for end in ("low", "high")}
    return {"statistic": name, "estimate": estimate["value"], **ends}


def _took_lines(run: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    figures = {name: run[name] for name in TOOK}
    figures |= {f"latency_ms_{name}": value for name, value in run["latency_ms"].items()}
    figures |= {f"verdicts_{name}": value for name, value in run["verdicts"].items()}
    for name, value in figures.items():
        yield {"part": "run", **_who(run), "statistic": name, "estimate": value}


def _who(run: Mapping[str, Any]) -> dict[str, Any]:
    return {name: run[name] for name in ("run", "judge", "engine", "model")}
