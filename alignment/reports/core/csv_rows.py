"""The report as rows of a table file: one a criterion, then dimensions, tiers and the whole."""

from collections.abc import Iterator, Mapping
from typing import Any

from alignment.reports.core.pooled import POOLED

COUNTS = (
    *("n", "human_true", "unlabelled", "unresolved", "not_applicable", "no_verdict"),
    "judge_not_applicable",
)
CELLS = ("tp", "fn", "fp", "tn")
STATISTICS = (
    *("balanced_accuracy", "tpr", "tnr", "accuracy", "precision", "f1", "mcc", "kappa"),
    *("gwet_ac1", "pabak"),
)
HUMAN = ("percent_agreement", "krippendorff_alpha", "fleiss_kappa", "gwet_ac1", "ceiling")
PASSES = ("human", "judge", "judge_corrected")
ABOUT = (
    *("run", "set", "split", "against", "topic", "since", "until"),
    *("judge", "fingerprint", "engine", "model", "generated_at", "pin"),
)
_NAMES = (*STATISTICS, *(f"human_{name}" for name in HUMAN), *(f"pass_rate_{name}" for name in PASSES))
HEAD = (
    *("level", "key", "name", "dimension", "tier", "passes_when"),
    *("status", "reasons", "cautions", "flags", "prevalence"),
    *COUNTS,
    *("unjudged_true", "unjudged_false", "drawn_by_verdict"),
    *CELLS,
    *("raters", "overlap"),
    *(column for name in _NAMES for column in (name, f"{name}_low", f"{name}_high")),
    "corrected_by",
    *("question_version", "question_hash", "prompt_version", "prompt_hash"),
    *ABOUT,
)


def report_lines(body: Mapping[str, Any], *, pin: str) -> Iterator[dict[str, Any]]:
    """The rows under HEAD of a report's JSON.

    Every row says what the report is of; `level` is criterion, dimension, tier or overall. What is undefined
    is left out, so that its cell is empty.
    """
    about = _about(body) | {"pin": pin}
    names = {row["key"]: row for row in body["pinned"]["criteria"]}
    for row in body["criteria"]:
        yield _criterion(row, names[row["key"]]) | about
    for level, rows in (("dimension", body["dimensions"]), ("tier", body["tiers"])):
        for row in rows:
            yield {"level": level, "key": row["key"], "name": row.get("name"), **_pooled(row), **about}
    yield {"level": "overall", **_pooled(body["overall"]), **about}


def _about(body: Mapping[str, Any]) -> dict[str, Any]:
    judge = body["judge"] or {}
    names = {"judge": "name", "fingerprint": "fingerprint", "engine": "engine", "model": "model"}
    said = {name: body[name] for name in ABOUT if name in body and name not in names}
    return said | {column: judge.get(name) for column, name in names.items()}


def _criterion(row: Mapping[str, Any], pinned: Mapping[str, Any]) -> dict[str, Any]:
    """Cells of columns that a report from an older version knows nothing of are empty."""
    human, text, prompt = row["human"], pinned["texts"][0], pinned["prompt"] or {}
    unjudged = row.get("unjudged") or {}
    plain = ("key", "dimension", "tier", "passes_when", "status", "prevalence", *COUNTS)
    return {
        "level": "criterion",
        "name": pinned["name"],
        **{name: row[name] for name in plain},
        "reasons": "; ".join(row["reasons"]),
        "cautions": "; ".join(row["cautions"]),
        "flags": "; ".join(
            [
                *_flags(row, STATISTICS),
                *_flags(human, HUMAN, "human_"),
                *_flags(row["pass_rate"], PASSES, "pass_rate_"),
            ]
        ),
        **{f"unjudged_{answer}": unjudged.get(answer) for answer in ("true", "false")},
        "drawn_by_verdict": row.get("drawn_by_verdict"),
        **(row["confusion"] or {}),
        "raters": human["raters"],
        "overlap": human["overlap"],
        **_statistics(row, STATISTICS),
        **_statistics(human, HUMAN, "human_"),
        **_statistics(row["pass_rate"], PASSES, "pass_rate_"),
        "corrected_by": row.get("corrected_by"),
        "question_version": text["version"],
        "question_hash": text["hash"],
        "prompt_version": prompt.get("version"),
        "prompt_hash": prompt.get("hash"),
    }


def _pooled(row: Mapping[str, Any]) -> dict[str, Any]:
    flags = "; ".join(_flags(row, POOLED))
    return {"n": row["n"], "flags": flags, **_statistics(row, POOLED)}


def _statistics(holder: Mapping[str, Any], names: tuple[str, ...], start: str = "") -> dict[str, Any]:
    """Value, low and high of each, as the columns are called; a plain number has no interval."""
    found: dict[str, Any] = {}
    for name in names:
        given = holder[name]
        whole = given if isinstance(given, Mapping) else {"value": given}
        found[f"{start}{name}"] = whole.get("value")
        found |= {f"{start}{name}_{end}": whole.get(end) for end in ("low", "high")}
    return found


def _flags(holder: Mapping[str, Any], names: tuple[str, ...], start: str = "") -> list[str]:
    """What a reader has to know of any of these values, each under the name of its column."""
    given = [(name, holder[name]) for name in names if isinstance(holder[name], Mapping)]
    return [f"{start}{name}: {value['flag']}" for name, value in given if value.get("flag")]
