"""Result of a regression test: JSON to store, Markdown and JUnit for pull requests."""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any
from xml.etree import ElementTree

from alignment.comparison.core.codes import in_clusters
from alignment.regression.core.advice import labels_needed
from alignment.regression.core.evidence import CriterionEvidence, Evidence, JudgeCounts
from alignment.regression.core.gate import Decision
from alignment.regression.core.unread import no_verdict_words
from alignment.reports.core.clustered import clustered_statistics
from alignment.reports.core.judge_side import judge_statistics
from alignment.reports.core.registry import Table, columns
from alignment.statistics.estimates import Estimate, undefined_reasons
from alignment.statistics.intervals import RESAMPLES

WORDS = {"pass": "Pass", "fail": "Fail", "inconclusive": "Inconclusive"}
NO_VERDICT_NOTE = (
    "No verdict: answers other than True and False. They count as wrong chats; TPR, TNR and the other rates "
    "exclude them."
)
CLUSTER_NOTE = "Chats of one cluster belong together: tests and intervals count clusters, not chats."
_NOT_XML = re.compile("[^\t\n\r -\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


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
        "pooled": {
            "chats": pooled.chats,
            "clusters": pooled.clusters,
            "change": pooled.mean,
            "error": pooled.error,
            "z": pooled.z,
        },
        "bootstrap": {"seed": seed, "resamples": RESAMPLES},
    }


def _criterion(criterion: CriterionEvidence, noise: Estimate | None, seed: int) -> dict[str, Any]:
    table = criterion.table
    return {
        "key": criterion.key,
        "tier": criterion.tier,
        "n": criterion.n,
        "clusters": criterion.clusters,
        "left_out": criterion.left_out,
        "fixed": criterion.fixed,
        "broken": criterion.broken,
        "still_right": table.both,
        "still_wrong": table.neither,
        "change": criterion.difference.as_json(),
        "p_worse": criterion.p_worse,
        "p_holm": criterion.p_holm,
        "changed": criterion.changed.as_json(),
        "before": _judge(criterion.before, criterion.n, seed),
        "after": _judge(criterion.after, criterion.n, seed),
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


def _judge(counts: JudgeCounts, n: int, seed: int) -> dict[str, Any]:
    """Confusion matrix and statistics of one judge; `no_verdict` counts answers other than True and False."""
    table = counts.table
    if counts.clustered is None:
        every = judge_statistics(table, seed=seed)
    else:
        every = clustered_statistics(counts.clustered, table, seed=seed)
    statistics = {one.key: every[one.key] for one in columns(Table.REGRESSION)}
    return {
        "confusion": {"tp": table.tp, "fn": table.fn, "fp": table.fp, "tn": table.tn},
        "no_verdict": n - table.n,
        "no_verdict_by": dict(counts.no_verdict),
        "right": counts.right.as_json(),
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
    """Format the gate's answer as Markdown: result, reasons, the criteria, and all tests of the candidate.

    Parameters
    ----------
    answer : the JSON of `regress`.
    title : one line.
    """
    lines = [f"## {WORDS[answer['gate']]}: {_cell(title)}", ""]
    lines += [f"- **Warning:** {_cell(warning)}" for warning in answer.get("warnings", ())]
    lines += [f"- {_cell(reason)}" for reason in answer["reasons"]]
    lines += [f"- Caution: {_cell(caution)}" for caution in answer.get("cautions", ())]
    if advice := advice_of(answer):
        lines.append(f"- {advice}")
    if against := answer.get("needs_override"):
        lines.append(f"- **A release needs an override:** {_cell('; '.join(against))}")
    names = ["criterion", "n", "fixed", "broken", "no verdict"]
    names += [*(one.head for one in columns(Table.REGRESSION)), "change"]
    lines += _table(names, [_row(row) for row in answer.get("criteria", ())])
    if any(row[side]["no_verdict"] for row in answer.get("criteria", ()) for side in ("before", "after")):
        lines += ["", NO_VERDICT_NOTE]
    if any(row.get("clusters") for row in answer.get("criteria", ())):
        lines += ["", CLUSTER_NOTE]
    if tests := answer.get("tests"):
        lines += ["", "All tests of this candidate:"]
        names = ["test", "set", "split", "gate", "decided", "policy", "note"]
        lines += _table(names, [_test(row) for row in tests], numbers=False)
    return "\n".join(lines) + "\n"


def junit_xml(answer: Mapping[str, Any], *, title: str, inconclusive: str = "failure") -> str:
    """Format the gate's answer as a JUnit file with one case.

    FAIL is a failure. INCONCLUSIVE is one of type `inconclusive`, because CI systems hide skipped cases;
    `inconclusive="skipped"` makes it a skipped case.
    """
    message = "; ".join(answer["reasons"])
    outcome = {"pass": "", "fail": "failure", "inconclusive": inconclusive}[answer["gate"]]
    suite, case = _junit(outcome, title=title, kind=answer["gate"], message=message)
    ElementTree.SubElement(case, "system-out").text = _xml(markdown_summary(answer, title=title))
    if warnings := answer.get("warnings"):
        text = "\n".join(f"warning: {warning}" for warning in warnings)
        ElementTree.SubElement(case, "system-err").text = _xml(text)
    return ElementTree.tostring(suite, encoding="unicode", xml_declaration=True)


def markdown_problem(message: str, *, title: str) -> str:
    """Format as Markdown that there is no result, and why."""
    return f"## No result: {_cell(title)}\n\n- {_cell(message)}\n"


def junit_problem(message: str, *, title: str, kind: str) -> str:
    """Format as a JUnit error that there is no result, and why.

    >>> "<error" in junit_problem("the endpoint is down", title="polite", kind="outside_failure")
    True
    """
    suite, _ = _junit("error", title=title, kind=kind, message=message)
    return ElementTree.tostring(suite, encoding="unicode", xml_declaration=True)


def _junit(
    outcome: str, *, title: str, kind: str, message: str
) -> tuple[ElementTree.Element, ElementTree.Element]:
    """Return a suite with one case, and the case; `outcome` is an element's name, '' for a pass."""
    suite = ElementTree.Element("testsuite", name="regression gate", tests="1")
    for name, element in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
        suite.set(name, str(int(outcome == element)))
    case = ElementTree.SubElement(suite, "testcase", classname="gate", name=_xml(title))
    if outcome:
        ElementTree.SubElement(case, outcome, type=kind, message=_xml(message))
    return suite, case


def _xml(text: str) -> str:
    """Replace the characters that XML 1.0 does not allow."""
    return _NOT_XML.sub("\N{REPLACEMENT CHARACTER}", text)


def _table(names: Sequence[str], rows: Iterable[Sequence[str]], *, numbers: bool = True) -> list[str]:
    """Return the lines of a Markdown table; all columns but the first are right-aligned if `numbers`."""
    rule = " ---: |" if numbers else " --- |"
    head = ["", f"| {' | '.join(names)} |", f"| --- |{rule * (len(names) - 1)}"]
    return [*head, *(f"| {' | '.join(row)} |" for row in rows)]


def _test(row: Mapping[str, Any]) -> list[str]:
    notes = [] if row["policy_in_force"] else ["policy not in force"]
    if row["state"] == "done" and not row["counts"]:
        notes.append("replaced by a newer test")
    return [
        str(row["test"]),
        _cell(row["set"]),
        row["split"] or "all splits",
        WORDS.get(row["gate"] or "", "running"),
        (row["finished_at"] or "")[:10],
        _cell(row["policy"]),
        "; ".join(notes),
    ]


def _row(row: Mapping[str, Any]) -> list[str]:
    rates = [
        f"{_number(row['before'].get(one.key))} → {_number(row['after'].get(one.key))}"
        for one in columns(Table.REGRESSION)
    ]
    counts = [in_clusters(str(row["n"]), row.get("clusters")), str(row["fixed"]), str(row["broken"])]
    no_verdict = f"{no_verdict_words(row['before'])} → {no_verdict_words(row['after'])}"
    return [f"`{row['key']}`", *counts, no_verdict, *rates, _change(row["change"])]


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
