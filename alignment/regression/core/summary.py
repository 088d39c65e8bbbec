"""Result of a regression test for pull requests: Markdown and JUnit."""

from collections.abc import Mapping
from typing import Any
from xml.etree import ElementTree

RATES = (
    ("TPR", "tpr"),
    ("TNR", "tnr"),
    ("balanced accuracy", "balanced_accuracy"),
    ("AC1", "gwet_ac1"),
    ("kappa", "kappa"),
)
WORDS = {"pass": "Pass", "fail": "Fail", "inconclusive": "Inconclusive"}


def markdown_summary(answer: Mapping[str, Any], *, title: str) -> str:
    """Format the gate's answer as Markdown: result, reasons, and a table with one row per criterion.

    Parameters
    ----------
    answer : the JSON of `regress`.
    title : one line.
    """
    lines = [f"## {WORDS[answer['gate']]}: {_cell(title)}", ""]
    lines += [f"- {_cell(reason)}" for reason in answer["reasons"]]
    if answer.get("more_labels"):
        lines.append(f"- about {answer['more_labels']:,} more labelled chats are needed")
    names = ["criterion", "n", "fixed", "broken", *(name for name, _ in RATES), "change"]
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
    rates = [f"{_number(row['before'].get(key))} → {_number(row['after'].get(key))}" for _, key in RATES]
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
