"""A regression test's findings for pull requests: Markdown, and a JUnit file."""

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
    """The gate's answer as Markdown: result, reasons, a table with a row a criterion.

    Parameters
    ----------
    answer : the JSON of `regress` (docs/commands.md).
    title : what was tested; one line.
    """
    lines = [f"## {WORDS[answer['gate']]}: {_cell(title)}", ""]
    lines += [f"- {_cell(reason)}" for reason in answer["reasons"]]
    if answer.get("more_labels"):
        lines.append(f"- about {answer['more_labels']:,} more labelled chats would decide")
    names = ["criterion", "n", "fixed", "broken", *(name for name, _ in RATES), "change"]
    lines += ["", f"| {' | '.join(names)} |", f"| --- |{' ---: |' * (len(names) - 1)}"]
    lines += [f"| {' | '.join(_row(found))} |" for found in answer.get("criteria", ())]
    return "\n".join(lines) + "\n"


def junit_xml(answer: Mapping[str, Any], *, title: str) -> str:
    """The gate's answer as a JUnit file: one case.

    A FAIL is a failure, INCONCLUSIVE is skipped: neither passed nor failed.
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


def _row(found: Mapping[str, Any]) -> list[str]:
    rates = [f"{_number(found['before'].get(key))} → {_number(found['after'].get(key))}" for _, key in RATES]
    counts = [str(found[name]) for name in ("n", "fixed", "broken")]
    return [f"`{found['key']}`", *counts, *rates, _change(found["change"])]


def _number(estimate: Mapping[str, Any] | None) -> str:
    """Two decimals; a dash where it is undefined, or was not counted when the test was decided."""
    return "–" if estimate is None or estimate["value"] is None else f"{estimate['value']:.2f}"


def _change(estimate: Mapping[str, Any]) -> str:
    """In points, with its interval."""
    if estimate["value"] is None:
        return "–"
    value, low, high = (100 * estimate[name] for name in ("value", "low", "high"))
    return f"{value:+.1f} ({low:+.1f} to {high:+.1f})"


def _cell(text: str) -> str:
    """One line that cannot break out of a list or a table."""
    return " ".join(text.split()).replace("|", "\\|").replace("<", "&lt;")
