"""The report as rows of a CSV file: criteria, then dimensions, tiers and the overall result."""

from collections.abc import Iterator, Mapping
from typing import Any

from alignment.comparison.core.outcomes import Outcome, outcome_counts
from alignment.reports.core.pooled import POOLED
from alignment.reports.core.registry import BY_KEY, Statistic, Table, columns
from alignment.session_scores.core import ESTIMATES

CELLS = ("tp", "fn", "fp", "tn")
SESSION_COUNTS = ("rank_correlation", "n", "partial", "subjective_counted", "criteria")
OUTCOME_COLUMNS = {Outcome.MISSED_FAILURE: "missed_failures", Outcome.FALSE_ALARM: "false_alarms"}
COUNTS = columns(Table.CSV_COUNTS)
STATISTICS = (*columns(Table.CSV_JUDGE), *columns(Table.CSV_RATERS), *columns(Table.CSV_RATES))
POOLED_STATISTICS = tuple(BY_KEY[name] for name in POOLED)
SCOPE = (
    *("run", "set", "split", "against", "topic", "since", "until"),
    *("judge", "fingerprint", "engine", "model", "generated_at", "pin"),
)


def column_of(statistic: Statistic) -> str:
    """Return the name of a statistic's column; its bounds add `_low` and `_high`.

    >>> column_of(BY_KEY["human.ceiling"])
    'human_ceiling'
    """
    return statistic.key.replace(".", "_")


HEAD = (
    *("level", "key", "name", "dimension", "tier", "passes_when"),
    *("status", "reasons", "cautions", "flags", "prevalence", "most_frequent_accuracy"),
    *(column_of(one) for one in COUNTS),
    *("unjudged_true", "unjudged_false", "drawn_by_verdict"),
    *CELLS,
    *OUTCOME_COLUMNS.values(),
    *("raters", "overlap"),
    *(f"{column_of(one)}{end}" for one in STATISTICS for end in ("", "_low", "_high")),
    "corrected_by",
    *("criteria_averaged", "criteria_left_out"),
    *("question_version", "question_hash", "prompt_version", "prompt_hash"),
    *(f"session_score_{name}{end}" for name in ESTIMATES for end in ("", "_low", "_high")),
    *(f"session_score_{name}" for name in SESSION_COUNTS),
    *SCOPE,
)


def csv_rows(body: Mapping[str, Any], *, pin: str) -> Iterator[dict[str, Any]]:
    """Yield the rows of a report's JSON, with the columns of HEAD.

    Every row names the report's run, set and filters. `level` is criterion, dimension, tier or overall.
    The row `overall` has the session score. Undefined values are missing, so their cells are empty.
    """
    scope = _scope(body) | {"pin": pin}
    pinned = {row["key"]: row for row in body["pinned"]["criteria"]}
    for row in body["criteria"]:
        yield _criterion(row, pinned[row["key"]]) | scope
    for level, rows in (("dimension", body["dimensions"]), ("tier", body["tiers"])):
        for row in rows:
            yield {"level": level, "key": row["key"], "name": row.get("name"), **_pooled(row), **scope}
    yield {"level": "overall", **_pooled(body["overall"]), **_session_score(body), **scope}


def _session_score(body: Mapping[str, Any]) -> dict[str, Any]:
    """Return the cells of the session score; an older report has none."""
    found = body.get("session_score")
    if found is None:
        return {}
    cells = {f"session_score_{name}": found[name] for name in SESSION_COUNTS}
    for name in ESTIMATES:
        cells |= {
            f"session_score_{name}{end}": found[name][key]
            for end, key in (("", "value"), ("_low", "low"), ("_high", "high"))
        }
    return cells


def _scope(body: Mapping[str, Any]) -> dict[str, Any]:
    judge = body["judge"] or {}
    of_judge = {"judge": "name", "fingerprint": "fingerprint", "engine": "engine", "model": "model"}
    of_report = {name: body[name] for name in SCOPE if name in body and name not in of_judge}
    return of_report | {column: judge.get(name) for column, name in of_judge.items()}


def _criterion(row: Mapping[str, Any], pinned: Mapping[str, Any]) -> dict[str, Any]:
    """Return a criterion's row; cells that an older report does not have stay empty."""
    human, text, prompt = row["human"], pinned["texts"][0], pinned["prompt"] or {}
    unjudged = row.get("unjudged") or {}
    same_name = ("key", "dimension", "tier", "passes_when", "status", "prevalence")
    return {
        "level": "criterion",
        "name": pinned["name"],
        "most_frequent_accuracy": row.get("most_frequent_accuracy"),
        **{name: row[name] for name in same_name},
        **{column_of(one): one.of(row) for one in COUNTS},
        "reasons": "; ".join(row["reasons"]),
        "cautions": "; ".join(row["cautions"]),
        "flags": "; ".join(_flags(row, STATISTICS)),
        **{f"unjudged_{answer}": unjudged.get(answer) for answer in ("true", "false")},
        "drawn_by_verdict": row.get("drawn_by_verdict"),
        **(row["confusion"] or {}),
        **_outcomes(row),
        "raters": human["raters"],
        "overlap": human["overlap"],
        **_statistics(row, STATISTICS),
        "corrected_by": row.get("corrected_by"),
        "question_version": text["version"],
        "question_hash": text["hash"],
        "prompt_version": prompt.get("version"),
        "prompt_hash": prompt.get("hash"),
    }


def _outcomes(row: Mapping[str, Any]) -> dict[str, int]:
    if not row["confusion"]:
        return {}
    counts = outcome_counts(row["confusion"], passes_when=row["passes_when"])
    return {column: counts[outcome] for outcome, column in OUTCOME_COLUMNS.items()}


def _pooled(row: Mapping[str, Any]) -> dict[str, Any]:
    flags = "; ".join(_flags(row, POOLED_STATISTICS))
    averaged = {
        "criteria_averaged": row.get("criteria_averaged"),
        "criteria_left_out": "; ".join(row.get("criteria_left_out") or ()),
    }
    return {"n": row["n"], "flags": flags, **averaged, **_statistics(row, POOLED_STATISTICS)}


def _statistics(row: Mapping[str, Any], statistics: tuple[Statistic, ...]) -> dict[str, Any]:
    """Return value, low and high of each statistic by column; a plain number has no interval."""
    cells: dict[str, Any] = {}
    for one in statistics:
        value = one.of(row)
        estimate = value if isinstance(value, Mapping) else {"value": value}
        column = column_of(one)
        cells[column] = estimate.get("value")
        cells |= {f"{column}_{end}": estimate.get(end) for end in ("low", "high")}
    return cells


def _flags(row: Mapping[str, Any], statistics: tuple[Statistic, ...]) -> list[str]:
    """Return the flag of each value that has one, after the name of its column."""
    values = [(column_of(one), one.of(row)) for one in statistics]
    return [
        f"{name}: {value['flag']}"
        for name, value in values
        if isinstance(value, Mapping) and value.get("flag")
    ]
