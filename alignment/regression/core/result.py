"""Result of a regression test: JSON to store, Markdown and JUnit for pull requests."""

from collections.abc import Mapping
from typing import Any
from xml.etree import ElementTree

from alignment.regression.core.advice import labels_needed
from alignment.regression.core.evidence import CriterionEvidence, Evidence
from alignment.regression.core.gate import Decision
from alignment.reports.core.judge_side import judge_statistics
from alignment.reports.core.registry import Table, columns
from alignment.statistics.agreement import Confusion
from alignment.statistics.estimates import Estimate, undefined_reasons
from alignment.statistics.intervals import RESAMPLES

WORDS = {"pass": "Pass", "fail": "Fail", "inconclusive": "Inconclusive"}


def regression_body(
    evidence: Evidence, decision: Decision, *, seed: int, noise: Mapping[str, Estimate] | None = None
) -> dict[str, Any]:
    """Return the counts, tests and intervals that are stored with the result.

    Parameters
    ----------
    seed : seed of the chat bootstrap for AC1 and kappa.
    noise : share of verdicts that change when one judge is asked again, by criterion key.
    """
    pooled = evidence.pooled
    return {
        "gate": decision.gate.value,
        "reasons": list(decision.reasons),
        "cautions": list(decision.cautions),
        "advice": decision.advice,
        "more_labels": decision.more_labels,
        "bound": decision.bound,
        "criteria": [_criterion(row, (noise or {}).get(row.key), seed) for row in evidence.criteria],
        "pooled": {"chats": pooled.chats, "change": pooled.mean, "error": pooled.error, "z": pooled.z},
        "bootstrap": {"seed": seed, "resamples": RESAMPLES},
    }


def _criterion(criterion: CriterionEvidence, noise: Estimate | None, seed: int) -> dict[str, Any]:
    table = criterion.table
    return {
        "key": criterion.key,
        "tier": criterion.tier,
        "n": criterion.n,
        "left_out": criterion.left_out,
        "fixed": criterion.fixed,
        "broken": criterion.broken,
        "still_right": table.both,
        "still_wrong": table.neither,
        "change": criterion.difference.as_json(),
        "p_worse": criterion.p_worse,
        "p_holm": criterion.p_holm,
        "before": _judge(criterion, criterion.before, seed),
        "after": _judge(criterion, criterion.after, seed),
        "classes": [
            {
                "human": row.answer,
                "n": row.n,
                "fixed": row.fixed,
                "broken": row.broken,
                "p_worse": row.p_worse,
            }
            for row in criterion.classes
        ],
        "ceiling": criterion.ceiling,
        "noise": None if noise is None else noise.as_json(),
    }


def _judge(criterion: CriterionEvidence, table: Confusion, seed: int) -> dict[str, Any]:
    """Confusion matrix and statistics of one judge; `no_verdict` counts answers other than True and False."""
    every = judge_statistics(table, seed=seed)
    statistics = {one.key: every[one.key] for one in columns(Table.REGRESSION)}
    return {
        "confusion": {"tp": table.tp, "fn": table.fn, "fp": table.fp, "tn": table.tn},
        "no_verdict": criterion.n - table.n,
        **{name: estimate.as_json() for name, estimate in statistics.items()},
        "undefined": undefined_reasons(statistics),
    }


def advice_of(answer: Mapping[str, Any]) -> str:
    """Return what decides an inconclusive test; '' if it is decided. Old results stored a number alone.

    >>> advice_of({"more_labels": 90})
    'about 90 more labelled chats are needed for the gate'
    """
    more = answer.get("more_labels")
    return answer.get("advice") or (labels_needed(more) if more else "")


def markdown_summary(answer: Mapping[str, Any], *, title: str) -> str:
    """Format the gate's answer as Markdown: result, reasons, and a table with one row per criterion.

    Parameters
    ----------
    answer : the JSON of `regress`.
    title : one line.
    """
    lines = [f"## {WORDS[answer['gate']]}: {_cell(title)}", ""]
    lines += [f"- {_cell(reason)}" for reason in answer["reasons"]]
    lines += [f"- Caution: {_cell(caution)}" for caution in answer.get("cautions", ())]
    if advice := advice_of(answer):
        lines.append(f"- {advice}")
    names = ["criterion", "n", "fixed", "broken", *(one.head for one in columns(Table.REGRESSION)), "change"]
    lines += ["", f"| {' | '.join(names)} |", f"| --- |{' ---: |' * (len(names) - 1)}"]
    lines += [f"| {' | '.join(_row(row))} |" for row in answer.get("criteria", ())]
    return "\n".join(lines) + "\n"


def junit_xml(answer: Mapping[str, Any], *, title: str) -> str:
    """Format the gate's answer as a JUnit file with one case.

    FAIL is a failure, INCONCLUSIVE is skipped.
    """
    suite = ElementTree.Element("testsuite", name="regression gate", tests="1", failures="0", skipped="0")
    case = ElementTree.SubElement(suite, "testcase", classname="gate", name=title)
    message = "; ".join(answer["reasons"])
    if answer["gate"] == "fail":
        suite.set("failures", "1")
        ElementTree.SubElement(case, "failure", message=message)
    elif answer["gate"] == "inconclusive":
        suite.set("skipped", "1")
        ElementTree.SubElement(case, "skipped", message=message)
    output = ElementTree.SubElement(case, "system-out")
    output.text = markdown_summary(answer, title=title)
    return ElementTree.tostring(suite, encoding="unicode", xml_declaration=True)


def _row(row: Mapping[str, Any]) -> list[str]:
    rates = [
        f"{_number(row['before'].get(one.key))} → {_number(row['after'].get(one.key))}"
        for one in columns(Table.REGRESSION)
    ]
    counts = [str(row[name]) for name in ("n", "fixed", "broken")]
    return [f"`{row['key']}`", *counts, *rates, _change(row["change"])]


def _number(estimate: Mapping[str, Any] | None) -> str:
    """Format with two decimals; a dash if undefined or missing in an old test."""
    return "–" if estimate is None or estimate["value"] is None else f"{estimate['value']:.2f}"


def _change(estimate: Mapping[str, Any]) -> str:
    """Format in points, with the interval."""
    if estimate["value"] is None:
        return "–"
    value, low, high = (100 * estimate[name] for name in ("value", "low", "high"))
    return f"{value:+.1f} ({low:+.1f} to {high:+.1f})"


def _cell(text: str) -> str:
    """Escape a text for one line of a list or table."""
    return " ".join(text.split()).replace("|", "\\|").replace("<", "&lt;")
